#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the rate of PyTorch's random numbers on cuda:0, as bench_parts does attune's: 5 calls between two events, median of 21."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import turns

torch = turns.cuda_torch()
ROUNDS, CALLS = 21, 5
KINDS = [
    ("uniform", lambda x: x.uniform_(0, 1)),
    ("normal", lambda x: x.normal_(0, 1)),
    ("Bernoulli", lambda x: x.bernoulli_(0.5)),
    ("exponential", lambda x: x.exponential_(1)),
]
DTYPES = [("f32", torch.float32), ("bf16", torch.bfloat16), ("f16", torch.float16), ("f64", torch.float64)]

report = turns.Report()
count = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 28
report(f"### PyTorch {torch.__version__}: {torch.cuda.get_device_name(0)}, GB/s, median of {ROUNDS}")
report.table("numbers", "count>", "torch>")
for kind, fill in KINDS:
    for name, dtype in DTYPES:
        x = torch.empty(count, dtype=dtype, device="cuda")
        times = turns.take_turns(["torch"], ROUNDS, lambda _: turns.between_events(torch, lambda: fill(x), CALLS))
        report.row(f"{kind} {name}", count, f"{x.numel() * x.element_size() / turns.medians(times)['torch'] * 1e-6:.0f}")
        del x
