#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bytes a second of PyTorch's random numbers on cuda:0, as bench_parts does attune's: 5 calls between two events, median of 21."""
import statistics
import sys

try:
    import torch
except ImportError:
    print("torch_random.py: PyTorch is not installed; nothing was measured", file=sys.stderr)
    sys.exit(77)

ROUNDS, CALLS = 21, 5
KINDS = [
    ("uniform", lambda x: x.uniform_(0, 1)),
    ("normal", lambda x: x.normal_(0, 1)),
    ("Bernoulli", lambda x: x.bernoulli_(0.5)),
    ("exponential", lambda x: x.exponential_(1)),
]
DTYPES = [("f32", torch.float32), ("bf16", torch.bfloat16), ("f16", torch.float16), ("f64", torch.float64)]


def gigabytes_per_s(fill, x):
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    fill(x)
    times = []
    for _ in range(ROUNDS):
        start.record()
        for _ in range(CALLS):
            fill(x)
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) / CALLS)
    return x.numel() * x.element_size() / statistics.median(times) * 1e-6


def main():
    if not torch.cuda.is_available():
        print("torch_random.py: no CUDA device; nothing was measured", file=sys.stderr)
        return 77
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 28
    print(f"### PyTorch {torch.__version__}: {torch.cuda.get_device_name(0)}, GB/s, median of {ROUNDS}")
    print("| numbers | count | torch |\n|---|---|---|")
    for kind, fill in KINDS:
        for name, dtype in DTYPES:
            x = torch.empty(count, dtype=dtype, device="cuda")
            print(f"| {kind} {name} | {count} | {gigabytes_per_s(fill, x):.0f} |", flush=True)
            del x
    return 0


if __name__ == "__main__":
    sys.exit(main())
