#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rows of bench_elementwise_host by NumPy and numexpr, each beside a copy in the same run, in turns.

numpy_elementwise.py [ELEMENTS [BENCH_ELEMENTWISE_HOST]]. With that program's path it runs in turns with the others, and its
rows are there too, each the better of its two ways to write. numexpr and that program use all CPUs, NumPy one. GB/s that the operands amount to, and their share of the copy's. numexpr has no erf, so
gelu is its tanh form there; NumPy's is exact if SciPy is present."""
import re
import statistics
import subprocess
import sys
import time

import numpy as np

try:
    import numexpr
except ImportError:
    numexpr = None
try:
    from scipy.special import erf
except ImportError:
    erf = None

ROUNDS = 11


def ours(program, count, rates):
    """One run of attune's program: GB/s by row."""
    text = subprocess.run([program, str(count)], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        found = re.findall(r"([0-9.]+) GB/s", line)
        if found:
            name = "attune " + line.split("  ")[0].strip().replace("attune ", "")
            rates.setdefault(name, []).append(max(map(float, found)))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 24
    a = (np.arange(count) % 2003).astype(np.float32) / 200 - 5
    b = (np.arange(count) % 1009).astype(np.float32) / 100 - 5
    out, half, one, root = np.zeros_like(a), np.float32(0.5), np.float32(1), np.float32(0.5**0.5)
    rows = {
        "numpy a + b": (3, lambda: np.add(a, b, out=out)),
        "numpy exp(a)": (2, lambda: np.exp(a, out=out)),
    }
    if erf is not None:
        rows["numpy gelu(a)"] = (2, lambda: np.multiply(half * a, one + erf(a * root), out=out))

        def fused():
            s = a + b
            np.multiply(half * s * (one + erf(s * root)), b, out=out)

        rows["numpy gelu(a+b)*b"] = (3, fused)
    if numexpr is not None:
        gelu = "(0.5 * {0} * (1 + tanh(0.7978846 * {0} * (1 + 0.044715 * {0} * {0}))))"
        values = {"a": a, "b": b}
        for name, operands, text in (
            ("a + b", 3, "a + b"),
            ("exp(a)", 2, "exp(a)"),
            ("gelu_tanh(a)", 2, gelu.format("a")),
            ("gelu_tanh(a+b)*b", 3, gelu.format("(a + b)") + " * b"),
        ):
            rows["numexpr " + name] = (operands, lambda text=text: numexpr.evaluate(text, values, out=out, casting="same_kind"))
    repeat = (1 << 22) // count + 1
    rows = {"numpy copy": (2, lambda: np.copyto(out, a)), **rows}
    times = {name: [] for name in rows}
    beside, rates = sys.argv[2] if len(sys.argv) > 2 else None, {}
    for round_number in range(ROUNDS):
        if beside and round_number % 4 == 0:
            ours(beside, count, rates)
        for name, (_, call) in rows.items():
            start = time.perf_counter()
            for _ in range(repeat):
                call()
            times[name].append((time.perf_counter() - start) / repeat)
    copied = None
    for name, (operands, _) in rows.items():
        rate = operands * a.nbytes / statistics.median(times[name]) / 1e9
        copied = copied or rate
        print(f"{name:24s} {rate:8.2f} GB/s  {rate / copied:5.2f} of the copy")
    for name, values in rates.items():
        rate = statistics.median(values)
        print(f"{name:24s} {rate:8.2f} GB/s  {rate / copied:5.2f} of the copy")


main()
