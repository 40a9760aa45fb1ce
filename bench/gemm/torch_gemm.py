#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares GEMM on cuda:0: attune, cublasGemmEx and PyTorch (eager, torch.compile with max-autotune, TunableOp) in one
process, on the same buffers, in turns. Exit codes: 0 success, 1 a problem failed or results differ, 2 wrong usage, 77 no GPU."""
import argparse
import math
import os
import shutil
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import attune_calls as at
import cublas_ctypes
import torch_problems as problems
import turns
from torch_ways import Compiler, Way, measure

FLOOR = 0.99
MIB = 1 << 20
MINE, DEFAULT = "attune", "GemmEx default"
METHOD = ("one process, the same operands, rotating over {rotate} MiB (twice the L2 is {l2}); graphs of 4 to 40 calls "
          "replayed between events, behind an untimed replay; ways in turns, median of {rounds} rounds, microseconds a "
          "call; a ratio is the median of the rounds' ratios, and one below 0.99 is taken again; torch.compile writes to "
          "memory of its own; W and MHz of the SMs (NVML) while the ways ran")


class Bench:
    """What is the same for all problems: PyTorch, a stream of its own, attune and cuBLAS on that stream."""

    def __init__(self, torch, options):
        self.torch, self.options = torch, options
        self.compiler = None if options.skip_compile else Compiler(torch, options.mode, options.compile_cap, options.compile_limit)
        self.stream = torch.cuda.Stream()
        torch.cuda.set_stream(self.stream)
        native = self.stream.cuda_stream
        self.attune = at.Attune(options.library, options.device, native, options.db)
        self.attune.wait_for_compiler()
        major = torch.version.cuda.split(".")[0]
        self.blas, self.workspaces = [], []
        for _ in (cublas_ctypes.DEFAULT, cublas_ctypes.AUTOTUNE):  # a handle each: AUTOTUNE keeps its winners there
            space = torch.empty(cublas_ctypes.WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")
            self.workspaces.append(space)
            self.blas.append(cublas_ctypes.Cublas(major, native, space.data_ptr()))
        self.l2 = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0)
        self.rotate_bytes = max(256 * MIB, 2 * self.l2) if options.rotate is None else options.rotate * MIB

    def tunable(self, on):
        self.torch.cuda.tunable.enable(on)
        self.torch.cuda.tunable.tuning_enable(on)

    def ways(self, p, first):
        product = self.torch.bmm if p["batch"] > 1 else self.torch.mm

        def eager(s):
            product(s.left, s.right, out=s.out)

        mine, default = at.Gemm(self.attune, p["text"]), self.blas[0].call(p, cublas_ctypes.DEFAULT)
        ways = [Way(MINE, lambda s: mine.run(*s.addresses)), Way(DEFAULT, lambda s: default(*s.addresses))]
        if self.blas[1].version >= cublas_ctypes.AUTOTUNE_SINCE:
            best = self.blas[1].call(p, cublas_ctypes.AUTOTUNE)
            ways.append(Way("GemmEx AUTOTUNE", lambda s: best(*s.addresses)))
        ways.append(Way("torch eager", eager))
        if self.options.tunable:
            ways.append(Way("TunableOp", eager, self.tunable))
        if self.compiler:
            compiled = self.compiler.product(p["name"], product, first)
            if compiled:
                ways.append(Way("torch.compile", lambda s: compiled(s.left, s.right)))
        return ways


def agree(torch, ways, operands):
    """The ways that differ from cublasGemmEx's default by more than rounding explains, coarsely. Each result begins as NaN,
    so that what a way does not write is seen."""
    results = {}
    for way in ways:
        operands.out.fill_(math.nan)
        way.around(True)
        own = way.call(operands)
        way.around(False)
        torch.cuda.synchronize()
        results[way.name] = (operands.out if own is None else own).to(torch.float64, copy=True)
    expected = results[DEFAULT]
    most = 0.02 * (expected.abs().max().item() or 1.0)
    return [name for name, result in results.items() if not (result - expected).abs().max().item() <= most]


def estimate(torch, call, operands):
    least = math.inf
    for attempt in range(4):
        torch.cuda.synchronize()
        begin = time.monotonic()
        call(operands)
        torch.cuda.synchronize()
        if attempt > 0:
            least = min(least, time.monotonic() - begin)
    return max(least, 1e-7)


def measure_with_telemetry(bench, ways, calls, rounds):
    """Times of the ways, microseconds a call by name, and the telemetry of each round."""
    states, count = [], iter(range(1 << 30))

    def during():
        if next(count) % (len(ways) + 1) == 0:  # in another way's turn each time
            states.append(bench.attune.telemetry())

    return measure(bench.torch, ways, calls, rounds, during), states


def run_problem(bench, p):
    """Times by way, telemetry and what attune runs."""
    torch, text = bench.torch, p["text"]
    problems.set_precision(torch, p["contract"])
    first = problems.Operands(torch, p)
    if bench.options.tune or not bench.options.db:
        bench.attune.tune_well(text)
    ways = bench.ways(p, first)
    wrong = agree(torch, ways, first)
    calls, count = problems.plan_calls(p, estimate(torch, ways[0].call, first), bench.rotate_bytes)
    sets = [first] + [problems.Operands(torch, p) for _ in range(count - 1)]
    for way in list(ways):
        try:
            way.capture(torch, sets, calls)
        except (RuntimeError, at.attune.Error) as error:
            if way.name in (MINE, DEFAULT):
                raise
            print(f"torch_gemm.py: {p['name']}: {way.name} was not captured: {str(error).splitlines()[0]}", file=sys.stderr)
            ways.remove(way)
    times, states = measure_with_telemetry(bench, ways, calls, bench.options.rounds)
    if any(turns.ratio(times, way.name, MINE) < FLOOR for way in ways[1:]):
        times, states = measure_with_telemetry(bench, ways, calls, 2 * bench.options.rounds + 1)
    decision = bench.attune.explain(text)
    return times, states, at.candidate(decision) + at.doubts(decision), wrong


def number(value):
    return "-" if value is None else f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def middle(states, field, scale=1):
    known = [getattr(state, field) for state in states if getattr(state, field) >= 0]
    return f"{statistics.median(known) / scale:.0f}" if known else "-"


class Table:
    """The rows, and the ratios of all of them for the summary."""

    def __init__(self, put, options):
        self.put, self.ratios, self.best = put, {}, {}
        self.ways = [MINE, DEFAULT, "GemmEx AUTOTUNE", "torch eager", *(["TunableOp"] if options.tunable else []),
                     *([] if options.skip_compile else ["torch.compile"])]
        put.table("name", "problem", *(f"{way}>" for way in self.ways), "default / attune>", "best peer / attune>", "W>",
                  "MHz>", "attune runs")

    def row(self, p, times, states, runs):
        middles = turns.medians(times)
        ratios = {way: turns.ratio(times, way, MINE) for way in middles if way != MINE}
        for way, value in ratios.items():
            self.ratios.setdefault(way, {})[p["name"]] = value
        best = min(ratios, key=ratios.get)
        self.best[p["name"]] = ratios[best]
        cells = [number(middles.get(way)) for way in self.ways]
        self.put.row(p["name"], p["text"].removeprefix("gemm "), *cells, f"{ratios[DEFAULT]:.3f}",
                     f"{ratios[best]:.3f} ({best})", middle(states, "power_mw", 1000), middle(states, "clock_mhz"), runs)

    def summary(self):
        self.put("")
        for title, ratios in [*self.ratios.items(), ("best peer of each problem", self.best)] if self.best else []:
            least = min(ratios, key=ratios.get)
            below = sorted((value, name) for name, value in ratios.items() if value < FLOOR)
            names = ": " + ", ".join(f"{name} {value:.3f}" for value, name in below) if below else ""
            self.put(f"- {title} / attune: geomean {turns.geomean(ratios.values()):.4f} over {len(ratios)} problems, least "
                     f"{ratios[least]:.3f} ({least}), {len(below)} below {FLOOR}{names}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", help="libattune.so")
    parser.add_argument("workload", help="CSV of problems")
    parser.add_argument("--db", help="attune's tuning database (default: a new one, each problem tuned first)")
    parser.add_argument("--tune", action="store_true", help="first tune problems without a winner in --db")
    parser.add_argument("--device", default="cuda:0", help="device of attune (default: cuda:0)")
    parser.add_argument("--only", metavar="NAME", default="", help="only problems whose name contains NAME")
    parser.add_argument("--rounds", type=int, default=15, help="number of samples of each call (default: 15)")
    parser.add_argument("--rotate", type=int, metavar="MIB", help="size of the operands to rotate over (default: at least 256 and twice the L2)")
    parser.add_argument("--tunable", action="store_true", help="also time eager mode with TunableOp")
    parser.add_argument("--skip-compile", action="store_true", help="do not time torch.compile")
    parser.add_argument("--mode", default="max-autotune-no-cudagraphs", help="mode of torch.compile")
    parser.add_argument("--compile-cap", type=float, metavar="S", default=30.0, help="seconds to compile one problem at most (default: 30)")
    parser.add_argument("--compile-limit", type=float, metavar="S", default=200.0, help="seconds to compile all problems at most (default: 200)")
    parser.add_argument("--time-limit", type=float, metavar="S", default=math.inf, help="start no problem after S seconds (default: no limit)")
    parser.add_argument("--small-first", action="store_true", help="order by number of operations, so that a limit leaves out the largest")
    parser.add_argument("--markdown", metavar="FILE", help="also write the table to FILE")
    options = parser.parse_args()
    if options.rounds < 3:
        parser.error("--rounds should be 3 at least")
    options.list = [p for p in problems.read_workload(options.workload) if options.only in p["name"]]
    if not options.list:
        parser.error(f"{options.workload} has no problem whose name contains \"{options.only}\"")
    if options.small_first:
        options.list.sort(key=lambda p: p["m"] * p["n"] * p["k"] * p["batch"])
    return options


def run_all(bench, table):
    """How many problems the time left out, how many failed, and how many had results that differ."""
    begin, skipped, failed, differ = time.monotonic(), 0, 0, 0
    for p in bench.options.list:
        if time.monotonic() - begin > bench.options.time_limit:
            skipped += 1
            continue
        try:
            times, states, runs, wrong = run_problem(bench, p)
        except (RuntimeError, at.attune.Error) as error:
            failed += 1
            print(f"torch_gemm.py: {p['name']}: {str(error).splitlines()[0]}", file=sys.stderr)
        else:
            table.row(p, times, states, runs)
            differ += bool(wrong)
            for way in wrong:
                print(f"torch_gemm.py: {p['name']}: the result of {way} differs from the default's", file=sys.stderr)
        bench.torch.cuda.empty_cache()
    table.summary()
    bench.torch.cuda.synchronize()
    table.put(f"- {time.monotonic() - begin:.1f} s, {bench.compiler.spent if bench.compiler else 0:.1f} s of them in torch.compile; {skipped} problems left "
              f"out by the time limit, {failed} failed, {differ} with results that differ")
    return failed + differ


def main():
    options = arguments()
    torch = turns.cuda_torch()
    folder = tempfile.mkdtemp()
    if options.tunable:
        torch.cuda.tunable.set_filename(os.path.join(folder, "tunableop.csv"))
    bench, put = Bench(torch, options), turns.Report()
    put.head("GEMM: attune beside its peers in one process", torch.cuda.get_device_name(0),
             f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, cuBLAS {bench.blas[0].version}",
             METHOD.format(rounds=options.rounds, rotate=bench.rotate_bytes // MIB, l2=2 * bench.l2 // MIB))
    table = Table(put, options)
    bad = run_all(bench, table)
    put.write(options.markdown)
    shutil.rmtree(folder, ignore_errors=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
