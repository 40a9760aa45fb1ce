#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares scaled products of f8e4m3 on cuda:0: attune's, cublasLt's by the first algorithm of its heuristic, and
torch._scaled_mm, in one process, on the same buffers, in turns. Exit codes: 0 success, 1 a problem failed or results differ,
2 wrong usage, 77 no GPU."""
import argparse
import math
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import attune_calls as at
import cublas_ctypes
import turns
from torch_ways import Ratios, Way, measure, plan_calls

FLOOR = 0.99
# features out x features in of DeepGEMM's table, each with these numbers of tokens
LAYERS = [(2112, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048)]
TOKENS = (4096, 128, 64, 1)
# name: scales of W, scales of X, accuracy
MODES = {"tensor": ("tensor", "tensor", "reduced"), "vector": ("vector", "vector", "reduced"),
         "block": ("128x128", "1x128", "strict"), "tensor strict": ("tensor", "tensor", "strict")}
METHOD = ("one process, the same operands, rotating over 256 MiB; graphs of 4 to 40 calls replayed between events, behind an "
          "untimed replay; ways in turns, median of {rounds} rounds, microseconds a call; a ratio is the median of the rounds' "
          "ratios; reduced: fast accumulation everywhere; torch writes to memory of its own")


class Set:
    """One set: X (tokens x in), W (out x in), both f8e4m3, their scales, D (tokens x out), bf16; row-major."""

    def __init__(self, torch, tokens, out, features, modes):
        def uniform(*shape):
            return (torch.rand(*shape, device="cuda") * 2 - 1).to(torch.float8_e4m3fn)
        self.x, self.w = uniform(tokens, features), uniform(out, features)
        self.d = torch.full((tokens, out), math.nan, device="cuda", dtype=torch.bfloat16)
        self.scale_w, self.scale_x = (self.scales(torch, mode, lines, features)
                                      for mode, lines in zip(modes, (out, tokens)))
        self.bytes = sum(t.numel() * t.element_size() for t in (self.x, self.w, self.d))

    @staticmethod
    def scales(torch, mode, lines, depth):
        """As torch takes them; in memory as attune and cublasLt do."""
        blocks = -(-depth // 128)
        if mode == "128x128":
            return (torch.rand(-(-lines // 128), -(-blocks // 4) * 4, device="cuda") + 0.5)[:, :blocks]
        if mode == "1x128":
            return (torch.rand(blocks, lines, device="cuda") + 0.5).t()
        return torch.rand(1 if mode == "tensor" else lines, 1, device="cuda") + 0.5

    def spread(self, scale, lines, depth):
        """A scale for each element."""
        rows, columns = -(-lines // scale.shape[0]), -(-depth // scale.shape[1])
        return scale.repeat_interleave(rows, 0)[:lines].repeat_interleave(columns, 1)[:, :depth]

    def expected(self):
        x, w = (t.float() * self.spread(s, *t.shape) for t, s in ((self.x, self.scale_x), (self.w, self.scale_w)))
        return x.double() @ w.double().t()

    def addresses(self):
        return [t.data_ptr() for t in (self.w, self.x, self.d, self.scale_w, self.scale_x)]


def text_of(shape, mode):
    tokens, out, features = shape
    of_w, of_x, accuracy = MODES[mode]
    return f"gemm f8e4m3:bf16 tn {out}x{tokens}x{features} {accuracy} scale_a={of_w} scale_b={of_x}"


def ways_of(torch, attune, lt, shape, mode):
    tokens, out, features = shape
    product, fast = at.Gemm(attune, text_of(shape, mode)), MODES[mode][2] == "reduced"
    ways = [Way("attune", lambda s: product.run(*s.addresses()))]
    try:
        run = lt.scaled(out, tokens, features, ("f8e4m3", "f8e4m3", "bf16"), MODES[mode][:2], fast)
        ways.append(Way("cublasLt", lambda s: run(*s.addresses())))
    except RuntimeError as error:
        print(f"torch_scaled.py: {text_of(shape, mode)}: cublasLt has none: {error}", file=sys.stderr)

    def by_torch(s):
        one = MODES[mode][0] == "tensor"
        scales = [t.reshape(()) if one else t for t in (s.scale_x, s.scale_w.t())]
        return torch._scaled_mm(s.x, s.w.t(), *scales, out_dtype=torch.bfloat16, use_fast_accum=fast)

    ways.append(Way("torch._scaled_mm", by_torch))
    return ways


def agree(torch, ways, first):
    """Leaves out ways that refuse the problem; names those whose results differ from float64's by more than rounding explains."""
    expected, wrong = first.expected(), []
    most = 0.02 * expected.abs().max().item()
    for way in list(ways):
        first.d.fill_(math.nan)
        try:
            own = way.call(first)
            torch.cuda.synchronize()
        except RuntimeError as error:
            if way.name == "attune":
                raise
            print(f"torch_scaled.py: {way.name}: {str(error).splitlines()[0]}", file=sys.stderr)
            ways.remove(way)
            continue
        if not ((first.d if own is None else own).double() - expected).abs().max().item() <= most:
            wrong.append(way.name)
    return wrong


def run_problem(torch, attune, lt, options, shape, mode):
    first = Set(torch, *shape, MODES[mode][:2])
    attune.tune_well(text_of(shape, mode))
    ways = ways_of(torch, attune, lt, shape, mode)
    wrong = agree(torch, ways, first)
    calls, count = plan_calls(torch, ways[0].call, first)
    sets = [first] + [Set(torch, *shape, MODES[mode][:2]) for _ in range(count - 1)]
    for way in ways:
        way.capture(torch, sets, calls)
    times = measure(torch, ways, calls, options.rounds)
    if any(turns.ratio(times, way.name, "attune") < FLOOR for way in ways[1:]):
        times = measure(torch, ways, calls, 2 * options.rounds + 1)
    decision = attune.explain(text_of(shape, mode))
    return times, at.candidate(decision) + at.doubts(decision), wrong


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", help="libattune.so")
    parser.add_argument("--db", help="attune's tuning database (default: a new one)")
    parser.add_argument("--device", default="cuda:0", help="device of attune (default: cuda:0)")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of the ways (default: 15)")
    parser.add_argument("--modes", default="tensor,vector,block", help=f"of {', '.join(MODES)} (default: tensor,vector,block)")
    parser.add_argument("--only", metavar="TEXT", default="", help="only problems whose text contains TEXT")
    parser.add_argument("--time-limit", type=float, default=math.inf, metavar="S", help="start no problem after S seconds")
    parser.add_argument("--markdown", metavar="FILE", help="also write the report to FILE")
    options = parser.parse_args()
    options.modes = options.modes.split(",")
    for mode in options.modes:
        if mode not in MODES:
            parser.error(f"--modes has \"{mode}\"; should be of {', '.join(MODES)}")
    return options


def main():
    options, torch, begin = arguments(), turns.cuda_torch(), time.monotonic()
    stream = torch.cuda.Stream()
    torch.cuda.set_stream(stream)
    attune = at.Attune(options.library, options.device, stream.cuda_stream, options.db)
    attune.wait_for_compiler()
    workspace = torch.empty(cublas_ctypes.WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")
    lt = cublas_ctypes.CublasLt(torch.version.cuda.split(".")[0], stream.cuda_stream, workspace.data_ptr())
    put, ratios, failed, left = turns.Report(), {mode: Ratios("attune", FLOOR) for mode in options.modes}, [], 0
    put.head("Scaled products of f8e4m3", torch.cuda.get_device_name(0),
             f"PyTorch {torch.__version__} (CUDA {torch.version.cuda})", METHOD.format(rounds=options.rounds))
    names = ["attune", "cublasLt", "torch._scaled_mm"]
    put.table("tokens x out x in", "scales", *(f"{name}>" for name in names), "TFLOPS>", "GB/s>", "best peer / attune>",
              "attune runs")
    for tokens in TOKENS:
        for out, features in LAYERS:
            for mode in options.modes:
                shape, title = (tokens, out, features), f"{tokens}x{out}x{features} {mode}"
                if options.only not in title:
                    continue
                if time.monotonic() - begin > options.time_limit:
                    left += 1
                    continue
                times, runs, wrong = run_problem(torch, attune, lt, options, shape, mode)
                if wrong:
                    failed.append(f"{title}: {', '.join(wrong)}")
                middles = turns.medians(times)
                ratio = ratios[mode].add(title, times)
                put.row("x".join(map(str, shape)), mode,
                        *(f"{middles[way]:.2f}" if way in middles else "-" for way in names),
                        f"{2e-6 * tokens * out * features / middles['attune']:.0f}",
                        f"{1e-3 * (tokens * features + out * features + 2 * tokens * out) / middles['attune']:.0f}",
                        ratio, runs)
                torch.cuda.empty_cache()
    for mode, of_mode in ratios.items():
        put(f"\nScales: {mode}")
        of_mode.put(put)
    if left:
        put(f"- {left} problems not started within the time limit")
    put.write(options.markdown)
    for line in failed:
        print(f"torch_scaled.py: results differ: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
