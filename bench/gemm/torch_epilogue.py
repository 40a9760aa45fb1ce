#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares products with bias and activation on cuda:0: attune's problem with an epilogue, attune's product followed by its
elementwise kernel, cuBLASLt's epilogue (by torch._addmm_activation; gelu only), PyTorch eager and torch.compile, in one
process, on the same buffers, in turns; with --gated gated products, as the feed-forward layers of LLMs have them, with weights
[gate; up]. Exit codes: 0 success, 1 a problem failed or results differ, 2 wrong usage, 77 no GPU."""
import argparse
import math
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import attune_calls as at
import turns
from torch_ways import Ratios, Way, measure, plan_calls, settle_compiler

FLOOR = 0.99
# tokens x features out x features in: prefill, decode and tall ones of transformers
SHAPES = [(4096, 3072, 768), (6304, 3072, 768), (16, 4096, 4096), (1, 4096, 4096), (8, 14336, 4096), (64, 4096, 4096),
          (128, 8192, 2048), (256, 4096, 1024), (512, 2048, 2048), (1024, 4096, 4096), (2048, 5120, 1280), (4096, 4096, 1024),
          (8192, 3072, 768), (16384, 1024, 256), (32768, 512, 128), (65536, 256, 64), (100, 1000, 512), (2048, 11008, 4096),
          (333, 3072, 768), (4096, 16384, 4096)]
# tokens x features out (gate and up) x features in
GATED_SHAPES = [(1, 28672, 4096), (8, 22016, 4096), (16, 28672, 4096), (64, 22016, 4096), (128, 28672, 4096), (512, 22016, 4096),
                (1024, 11008, 2048), (2048, 28672, 4096), (4096, 22016, 4096), (8192, 8192, 2048)]
ACTIVATIONS = ("gelu_tanh", "silu")
METHOD = ("one process, the same operands, rotating over 256 MiB; graphs of 4 to 40 calls replayed between events, behind an "
          "untimed replay; ways in turns, median of {rounds} rounds, microseconds a call; a ratio is the median of the rounds' "
          "ratios; torch eager and torch.compile write to memory of their own")


class Set:
    """One set: X (tokens x in), W (out x in), bias (out), D (tokens x out), gated Z so and D half of it; row-major."""

    def __init__(self, torch, gated, tokens, out, features, dtype):
        def uniform(*shape):
            return (torch.rand(*shape, device="cuda", dtype=torch.float32) * 2 - 1).to(dtype)
        self.x, self.w, self.bias = uniform(tokens, features), uniform(out, features), uniform(out)
        self.z = torch.full((tokens, out), math.nan, device="cuda", dtype=dtype) if gated else None
        self.d = torch.full((tokens, out // 2 if gated else out), math.nan, device="cuda", dtype=dtype)
        self.bytes = sum(t.numel() * t.element_size() for t in (self.x, self.w, self.d))


def function(torch, activation):
    f = torch.nn.functional
    return (lambda z: f.gelu(z, approximate="tanh")) if activation == "gelu_tanh" else f.silu


def layer(torch, activation, gated):
    act, linear = function(torch, activation), torch.nn.functional.linear

    def halves(x, w, _):
        gate, up = linear(x, w).chunk(2, dim=-1)
        return act(gate) * up
    return halves if gated else lambda x, w, b: act(linear(x, w, b))


def problem_of(shape, name, activation, gated):
    """Attune's product, and all of it."""
    tokens, out, features = shape
    product = f"gemm {name} tn {out}x{tokens}x{features} strict"
    return product, f"{product} {'gated' if gated else 'bias'}=m {activation}"


def second_call(attune, s, shape, name, activation):
    """What follows the product in attune's pair."""
    tokens, out, _ = shape
    if s.z is None:
        d = at.tensor(None, s.d.data_ptr(), name, (tokens, out))
        inputs = [at.tensor("x", s.d.data_ptr(), name, (tokens, out)), at.tensor("b", s.bias.data_ptr(), name, (out,))]
        return at.Call(attune, f"{activation}(x + b)", d, inputs)
    half = out // 2
    inputs = [at.tensor(letter, s.z.data_ptr() + place * half * s.z.element_size(), name, (tokens, half), (out, 1))
              for place, letter in enumerate("xy")]
    return at.Call(attune, f"{activation}(x) * y", at.tensor(None, s.d.data_ptr(), name, (tokens, half)), inputs)


def ways_of(torch, attune, shape, name, activation, gated, first, compiled):
    product, fused = problem_of(shape, name, activation, gated)
    product, fused, eager, calls = at.Gemm(attune, product), at.Gemm(attune, fused), layer(torch, activation, gated), {}

    def pair(s):
        product.run(s.w.data_ptr(), s.x.data_ptr(), (s.z if gated else s.d).data_ptr())
        if id(s) not in calls:
            calls[id(s)] = second_call(attune, s, shape, name, activation)
        calls[id(s)].run()

    ways = [Way("attune", lambda s: fused.run(s.w.data_ptr(), s.x.data_ptr(), s.d.data_ptr(),
                                           bias=s.bias.data_ptr())),
            Way("attune's pair", pair)]
    if activation == "gelu_tanh" and not gated:
        ways.append(Way("cublasLt fused", lambda s: torch._addmm_activation(s.bias, s.x, s.w.t(), use_gelu=True)))
    ways.append(Way("torch eager", lambda s: eager(s.x, s.w, s.bias)))
    if compiled is not None:
        ways.append(Way("torch.compile", lambda s: compiled(s.x, s.w, s.bias)))
    pair(first)
    attune.tune(calls[id(first)].problem())
    return ways


def compile_one(torch, activation, gated, first, mode):
    torch._dynamo.reset()
    call = torch.compile(layer(torch, activation, gated), mode=mode, dynamic=False)
    call(first.x, first.w, first.bias)
    torch.cuda.synchronize()
    return call


def agree(torch, ways, first, activation, gated):
    """Ways whose results differ from float32's by more than rounding explains."""
    wrong = []
    expected = layer(torch, activation, gated)(first.x.float(), first.w.float(), first.bias.float())
    most = 0.02 * (expected.abs().max().item() or 1.0)
    for way in ways:
        first.d.fill_(math.nan)
        own = way.call(first)
        torch.cuda.synchronize()
        result = (first.d if own is None else own).float()
        if not (result - expected).abs().max().item() <= most:
            wrong.append(way.name)
    return wrong


def run_problem(torch, attune, options, shape, name, dtype, activation):
    first = Set(torch, options.gated, *shape, dtype)
    product, fused = problem_of(shape, name, activation, options.gated)
    attune.tune_well(product)
    attune.tune_well(fused)
    compiled = None
    if not options.skip_compile:
        compiled = compile_one(torch, activation, options.gated, first, options.mode)
    ways = ways_of(torch, attune, shape, name, activation, options.gated, first, compiled)
    wrong = agree(torch, ways, first, activation, options.gated)
    calls, count = plan_calls(torch, ways[0].call, first)
    sets = [first] + [Set(torch, options.gated, *shape, dtype) for _ in range(count - 1)]
    for way in ways:
        way.capture(torch, sets, calls)
    times = measure(torch, ways, calls, options.rounds)
    if any(turns.ratio(times, way.name, "attune") < FLOOR for way in ways[1:]):
        times = measure(torch, ways, calls, 2 * options.rounds + 1)
    decision = attune.explain(fused)
    return times, at.candidate(decision) + at.doubts(decision), wrong


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", help="libattune.so")
    parser.add_argument("--db", help="attune's tuning database (default: a new one)")
    parser.add_argument("--device", default="cuda:0", help="device of attune (default: cuda:0)")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of the ways (default: 15)")
    parser.add_argument("--mode", default="default", help="mode of torch.compile (default: default)")
    parser.add_argument("--gated", action="store_true", help="gated products instead of bias and activation")
    parser.add_argument("--skip-compile", action="store_true", help="without torch.compile")
    parser.add_argument("--only", metavar="TEXT", default="", help="only problems whose text contains TEXT")
    parser.add_argument("--time-limit", type=float, default=math.inf, metavar="S", help="start no problem after S seconds")
    parser.add_argument("--markdown", metavar="FILE", help="also write the report to FILE")
    return parser.parse_args()


def main():
    options, torch, begin = arguments(), turns.cuda_torch(), time.monotonic()
    stream = torch.cuda.Stream()
    torch.cuda.set_stream(stream)
    attune = at.Attune(options.library, options.device, stream.cuda_stream, options.db)
    attune.wait_for_compiler()
    settle_compiler()
    put = turns.Report()
    put.head("Gated products" if options.gated else "Bias and activation behind a product", torch.cuda.get_device_name(0),
             f"PyTorch {torch.__version__} (CUDA {torch.version.cuda})", METHOD.format(rounds=options.rounds))
    names = ["attune", "attune's pair", "cublasLt fused", "torch eager", "torch.compile"]
    put.table("tokens x out x in", "type", "activation", *(f"{name}>" for name in names), "best peer / attune>", "attune runs")
    ratios, failed, left = Ratios("attune", FLOOR), [], 0
    for number, shape in enumerate(GATED_SHAPES if options.gated else SHAPES):
        for activation in ACTIVATIONS:
            name = ("bf16", "f16")[(number + ACTIVATIONS.index(activation)) % 2]
            title = f"{'x'.join(map(str, shape))} {name} {activation}"
            if options.only not in title:
                continue
            if time.monotonic() - begin > options.time_limit:
                left += 1
                continue
            times, runs, wrong = run_problem(torch, attune, options, shape, name,
                                             torch.bfloat16 if name == "bf16" else torch.float16, activation)
            if wrong:
                failed.append(f"{title}: {', '.join(wrong)}")
            middles = turns.medians(times)
            ratio = ratios.add(title, times)
            put.row("x".join(map(str, shape)), name, activation,
                    *(f"{middles[way]:.2f}" if way in middles else "-" for way in names), ratio, runs)
            torch.cuda.empty_cache()
    ratios.put(put)
    if left:
        put(f"- {left} problems not started within the time limit")
    put.write(options.markdown)
    for line in failed:
        print(f"torch_epilogue.py: results differ: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
