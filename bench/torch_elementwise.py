#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bytes a second of PyTorch's elementwise work on cuda:0, measured as bench_elementwise_cuda does: eager and torch.compile
beside a copy, interleaved, 3 calls between two events, median of 21."""
import statistics
import sys

try:
    import torch
except ImportError:
    print("torch_elementwise.py: PyTorch is not installed; nothing was measured", file=sys.stderr)
    sys.exit(77)

ROUNDS, CALLS = 21, 3
gelu = torch.nn.functional.gelu
CASES = [
    ("add", lambda a, b: a + b, "pp"),
    ("relu", lambda a: torch.relu(a), "p"),
    ("gelu", lambda a: gelu(a), "p"),
    ("exp", lambda a: torch.exp(a), "p"),
    ("gelu(a+b)*b", lambda a, b: gelu(a + b) * b, "pp"),
    ("bias", lambda a, b: a + b, "pb"),
    ("alpha*x*y+x", lambda a, b: 0.5 * a * b + a, "pp"),
    ("transposed add", lambda a, b: a + b, "pt"),
    ("dropout", lambda a: torch.nn.functional.dropout(a, 0.5), "p"),
]


def timed(call):
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(CALLS):
        call()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / CALLS


def main():
    if not torch.cuda.is_available():
        print("torch_elementwise.py: no CUDA device; nothing was measured", file=sys.stderr)
        return 77
    side = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 14
    compiled = "--compile" in sys.argv
    print(f"### PyTorch {torch.__version__}: {torch.cuda.get_device_name(0)}, {side} x {side}, median of {ROUNDS}")
    print("| expression | eager GB/s | compiled GB/s | copy GB/s |\n|---|---|---|---|")
    for name_of_dtype, dtype in [("f32", torch.float32), ("bf16", torch.bfloat16)]:
        source, out = (torch.randn(side, side, device="cuda").to(dtype) for _ in range(2))
        for name, function, lies in CASES:
            inputs = []
            for way in lies:
                x = torch.randn(side if way == "b" else (side, side), device="cuda").to(dtype)
                inputs.append(x.t() if way == "t" else x)
            moved = out.numel() * out.element_size() + sum(x.numel() * x.element_size() for x in inputs)
            ways = [lambda: function(*inputs)]
            if compiled:
                fast = torch.compile(function)
                ways.append(lambda: fast(*inputs))
            ways.append(lambda: out.copy_(source))
            for way in ways:
                way()
            times = [[timed(way) for way in ways] for _ in range(ROUNDS)]
            medians = [statistics.median(column) for column in zip(*times)]
            rates = [moved / ms * 1e-6 for ms in medians[:-1]] + ([] if compiled else [float("nan")])
            copy = 2 * out.numel() * out.element_size() / medians[-1] * 1e-6
            print(f"| {name} {name_of_dtype} | {rates[0]:.0f} | {rates[1]:.0f} | {copy:.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
