#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the GEMMs of a workload through PyTorch, measured as bench_gemm measures on CUDA: inputs of uniform random
numbers in [-1,1] rotating over more than 256 MB, graphs of 4 to 40 calls replayed between events, the ways interleaved,
median of the rounds. Ways: eager (mm, bmm with out=), eager with TunableOp on, torch.compile with max-autotune. Writes
the CSV that join.py puts beside bench_gemm's."""
import argparse
import csv
import math
import os
import signal
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import turns

torch = turns.cuda_torch()
DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
ROTATE_BYTES = 256 << 20
TARGET_S = 1.5e-3
MAX_SETS = 4096
OTHER_COLUMNS = {"dtype_out", "layout", "lda", "ldb", "ldc", "ldd", "stride_a", "stride_b", "stride_c", "stride_d"}


class OutOfTime(BaseException):
    """Not an Exception: the compiler takes those for a candidate that failed, and goes on."""


def read_workload(path):
    with open(path, newline="") as file:
        rows = csv.DictReader(line for line in file if line.strip() and not line.startswith("#"))
        for row in rows:
            unknown = set(row) & OTHER_COLUMNS
            if any(row[column] for column in unknown):
                raise SystemExit(f"torch_gemm.py: {path}: columns {sorted(unknown)} are not supported here")
            problem = {key: int(row.get(key) or 1) for key in ("m", "n", "k", "batch")}
            problem.update(name=row.get("name") or "", dtype=row["dtype"], contract=row.get("contract") or "strict",
                           transa=row.get("transa") or "n", transb=row.get("transb") or "n")
            yield problem


def problem_text(p):
    batch = f"x{p['batch']}" if p["batch"] > 1 else ""
    return f"gemm {p['dtype']} {p['transa']}{p['transb']} {p['m']}x{p['n']}x{p['k']}{batch} {p['contract']}"


def set_precision(contract):
    """The contract's arithmetic: TF32 and reduced-precision reductions only where it says reduced."""
    reduced = contract == "reduced"
    torch.set_float32_matmul_precision("high" if reduced else "highest")
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = reduced
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = reduced


def uniform(shape, dtype):
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    return torch.empty(shape, dtype=wide, device="cuda").uniform_(-1, 1).to(dtype)


def make_set(p):
    """Column-major C = op(A) op(B) is row-major C' = op(B)' op(A)': what is stored as k x m in columns is an (m, k)
    tensor, and so on."""
    dtype, m, n, k = DTYPES[p["dtype"]], p["m"], p["n"], p["k"]
    lead = (p["batch"],) if p["batch"] > 1 else ()
    a = uniform(lead + ((k, m) if p["transa"] == "n" else (m, k)), dtype)
    b = uniform(lead + ((n, k) if p["transb"] == "n" else (k, n)), dtype)
    right = a if p["transa"] == "n" else a.transpose(-1, -2)
    left = b if p["transb"] == "n" else b.transpose(-1, -2)
    return left, right, torch.empty(lead + (n, m), dtype=dtype, device="cuda")


def set_bytes(p):
    element = torch.empty(0, dtype=DTYPES[p["dtype"]]).element_size()
    return p["batch"] * element * (p["m"] * p["k"] + p["k"] * p["n"] + p["m"] * p["n"])


def plan_calls(p, call_s):
    """Calls in a graph, and sets of operands: all sets are used before one comes again, as in bench_gemm."""
    calls = max(4, min(40, math.ceil(TARGET_S / call_s)))
    sets = min(ROTATE_BYTES // set_bytes(p) + 2, MAX_SETS)
    if sets <= calls:
        return (calls + sets - 1) // sets * sets, sets
    return calls, (sets + calls - 1) // calls * calls


class Way:
    """One way to do the problem, captured into a graph for each window of sets."""

    def __init__(self, name, call, keep_outputs=False):
        self.name, self.call, self.keep_outputs = name, call, keep_outputs
        self.graphs, self.samples, self.note = [], [], ""
        self.outputs = []

    def capture(self, sets, calls):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for operands in sets[:3]:
                self.call(*operands)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        for window in range(max(1, len(sets) // calls)):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                # Outputs made inside the graph are kept, so that each call writes memory of its own, as with out=.
                results = [self.call(*sets[(window * calls + i) % len(sets)]) for i in range(calls)]
            if self.keep_outputs:
                self.outputs.append(results)
            self.graphs.append(graph)


def measure(ways, calls, rounds):
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    named, turn = {way.name: way for way in ways}, iter(range(1 << 30))

    def sample(name):
        graphs = named[name].graphs
        # The first replay keeps the device busy while the timed one is queued.
        graphs[next(turn) % len(graphs)].replay()
        start.record()
        graphs[next(turn) % len(graphs)].replay()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) * 1e3 / calls

    for name, samples in turns.take_turns(named, rounds, sample).items():
        named[name].samples = samples


def eager_call(p):
    product = torch.bmm if p["batch"] > 1 else torch.mm
    return lambda left, right, out: product(left, right, out=out)


def compiled_call(p, mode):
    product = torch.bmm if p["batch"] > 1 else torch.mm
    torch._dynamo.reset()
    compiled = torch.compile(lambda left, right: product(left, right), mode=mode, dynamic=False)
    return lambda left, right, out: compiled(left, right)


def try_compile(p, operands, options):
    """The compiled call, compiled; None and why when it cannot be, or takes longer than the cap."""
    def expired(_signal, _frame):
        raise OutOfTime
    previous = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, options.compile_cap)
    begin = time.monotonic()
    try:
        call = compiled_call(p, options.mode)
        result = call(*operands)
        torch.cuda.synchronize()
        return call, result, time.monotonic() - begin
    except (OutOfTime, Exception) as error:  # whatever stops the compiler leaves the other ways
        took = time.monotonic() - begin
        why = "over the cap" if isinstance(error, OutOfTime) else type(error).__name__
        print(f"torch_gemm.py: {p['name']}: not compiled after {took:.1f} s: {why}", file=sys.stderr)
        return None, None, took
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def tunable(on):
    torch.cuda.tunable.enable(on)
    torch.cuda.tunable.tuning_enable(on)


class TunableWay(Way):
    """Eager with TunableOp: on only while it tunes and is captured."""

    def capture(self, sets, calls):
        tunable(True)
        try:
            super().capture(sets, calls)
        finally:
            tunable(False)


def estimate(call, operands):
    least = math.inf
    for attempt in range(4):
        torch.cuda.synchronize()
        begin = time.monotonic()
        call(*operands)
        torch.cuda.synchronize()
        if attempt > 0:
            least = min(least, time.monotonic() - begin)
    return least


def close_enough(result, expected):
    """A coarse check: the ways do the same product."""
    scale = expected.float().abs().max().item() or 1.0
    return (result.float() - expected.float()).abs().max().item() <= 0.02 * scale


def run_problem(p, options):
    set_precision(p["contract"])
    first = make_set(p)
    eager = eager_call(p)
    ways = [Way("torch eager", eager)]
    calls, count = plan_calls(p, estimate(eager, first))
    if options.tunable:
        ways.append(TunableWay("torch TunableOp", eager))
    if not options.no_compile:
        call, result, took = try_compile(p, first, options)
        if call is not None:
            if not close_enough(result, first[2]):
                raise SystemExit(f"torch_gemm.py: {p['name']}: the compiled result differs from the eager one")
            way = Way("torch compile", call, keep_outputs=True)
            way.note = f"compiled in {took:.1f} s"
            ways.append(way)
    sets = [first] + [make_set(p) for _ in range(count - 1)]
    for way in ways:
        way.capture(sets, calls)
    measure(ways, calls, options.rounds)
    return ways


def figures(way):
    middle = statistics.median(way.samples)
    return middle, statistics.median(abs(sample - middle) for sample in way.samples) / middle


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload")
    parser.add_argument("--csv", help="write the figures here")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="problems whose name contains this")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--tunable", action="store_true", help="also eager with TunableOp on")
    parser.add_argument("--mode", default="max-autotune-no-cudagraphs", help="torch.compile's mode")
    parser.add_argument("--compile-cap", type=float, default=40.0, help="most seconds to compile one problem")
    parser.add_argument("--time-limit", type=float, default=math.inf, help="start no problem after these seconds")
    return parser.parse_args()


def main():
    options = arguments()
    if options.tunable:
        folder = tempfile.mkdtemp()
        torch.cuda.tunable.set_filename(os.path.join(folder, "tunableop.csv"))
    begin, skipped, failed = time.monotonic(), 0, 0
    out = open(options.csv, "w", newline="") if options.csv else None
    writer = csv.writer(out, lineterminator="\n") if out else None
    if writer:
        writer.writerow(["name", "problem", "way", "us", "spread", "note"])
    print(f"# torch {torch.__version__}, CUDA {torch.version.cuda}, {torch.cuda.get_device_name()}; us a call")
    for p in read_workload(options.workload):
        if options.only not in p["name"]:
            continue
        if time.monotonic() - begin > options.time_limit:
            skipped += 1
            continue
        try:
            ways = run_problem(p, options)
        except RuntimeError as error:
            failed += 1
            print(f"torch_gemm.py: {p['name']}: {str(error).splitlines()[0]}", file=sys.stderr)
            torch.cuda.empty_cache()
            continue
        line = [f"{p['name']:<20}"]
        for way in ways:
            middle, spread = figures(way)
            line.append(f"{way.name} {middle:.2f} {way.note}")
            if writer:
                writer.writerow([p["name"], problem_text(p), way.name, f"{middle:.4f}", f"{spread:.5f}", way.note])
                out.flush()
        print("  ".join(line), flush=True)
        del ways
        torch.cuda.empty_cache()
    print(f"# {time.monotonic() - begin:.1f} s; {skipped} problems left out by the time limit, {failed} failed")
    if out:
        out.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
