#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch_random_check.py PROGRAM: attune's mode torch against PyTorch itself, on the same GPU.

PROGRAM is random_numbers. Seeds, offsets, sizes below, at and above one wave of threads, and every distribution and type that both have: uniform, integers
and Bernoulli bit for bit, the others within a rounding; the generator's state after each call, always. Exit 77 without PyTorch or a GPU."""
import os
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError:
    print("skipped: no PyTorch")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: no CUDA device for PyTorch")
    sys.exit(77)

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i32": torch.int32, "i64": torch.int64}
FLOATS = ["f64", "f32", "f16", "bf16"]
COUNTS = [1, 255, 1000, 65537, 1 << 20, (1 << 22) - 5, 1 << 22]

# kind, types, A, B, fill, and whether it is the same bits
CASES = [
    ("uniform", FLOATS, 0, 1, lambda x, a, b: x.uniform_(a, b), True),
    ("uniform", FLOATS, -1.5, 2.25, lambda x, a, b: x.uniform_(a, b), True),
    ("integers", list(DTYPES), -100, 150, lambda x, a, b: x.random_(a, b), True),
    ("integers", ["i64", "f64"], -5000000000, 9000000000, lambda x, a, b: x.random_(a, b), True),
    ("integers", ["i32", "i64"], 0, 1 << 28, lambda x, a, b: x.random_(a, b), True),
    ("integers", ["i32", "i64"], 0, (1 << 28) - 1, lambda x, a, b: x.random_(a, b), True),
    ("bernoulli", list(DTYPES), 0.3, 0, lambda x, a, b: x.bernoulli_(a), True),
    ("normal", FLOATS, 0, 1, lambda x, a, b: x.normal_(a, b), False),
    ("normal", FLOATS, 0.5, 1.25, lambda x, a, b: x.normal_(a, b), False),
    ("log_normal", FLOATS, 0.25, 0.5, lambda x, a, b: x.log_normal_(a, b), False),
    ("exponential", FLOATS, 3.0, 0, lambda x, a, b: x.exponential_(a), False),
]


def ours(program, path, seed, offset, kind, dtype, count, a, b):
    words = [program, path, seed, offset, kind, dtype, count, a, b]
    done = subprocess.run([str(w) for w in words], check=False)
    if done.returncode == 77:
        print("skipped: no CUDA device")
        sys.exit(77)
    if done.returncode:
        sys.exit(f"{' '.join(str(w) for w in words)}: exit {done.returncode}")
    with open(path, "rb") as file:
        data = bytearray(file.read())
    return torch.frombuffer(data[:-16], dtype=DTYPES[dtype]), bytes(data[-16:])


def theirs(seed, offset, fill, dtype, count, a, b):
    generator = torch.cuda.default_generators[0]
    generator.set_state(torch.tensor(list(seed.to_bytes(8, "little") + offset.to_bytes(8, "little")), dtype=torch.uint8))
    x = torch.empty(count, dtype=DTYPES[dtype], device="cuda")
    fill(x, a, b)
    return x.cpu(), bytes(generator.get_state().tolist())


def units_apart(x, y):
    """The largest distance in values of the type."""
    bits = {8: torch.int64, 4: torch.int32, 2: torch.int16}[x.element_size()]
    low = {8: -(2**63), 4: -(2**31), 2: -(2**15)}[x.element_size()]

    def order(v):
        w = v.contiguous().view(bits).to(torch.int64)
        return torch.where(w < 0, low - w, w)

    return int((order(x) - order(y)).abs().max()) if x.numel() else 0


def main():
    program, failed, checked, inexact = sys.argv[1], 0, 0, {}
    print(torch.__version__, torch.cuda.get_device_name(0))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "numbers")
        for kind, dtypes, a, b, fill, same in CASES:
            for dtype in dtypes:
                for index, count in enumerate(COUNTS):
                    seed, offset = [0, 42, 0x123456789ABCDEF, 2**63 + 11][index % 4], [0, 4, 4096][index % 3]
                    x, state = ours(program, path, seed, offset, kind, dtype, count, a, b)
                    y, torch_state = theirs(seed, offset, fill, dtype, count, a, b)
                    apart = 0 if torch.equal(x, y) else units_apart(x, y)
                    checked += 1
                    if not same:
                        worst = inexact.setdefault((kind, dtype), 0)
                        inexact[kind, dtype] = max(worst, apart)
                    if apart > (0 if same else 1) or state != torch_state:
                        failed += 1
                        print(f"FAILED {kind} {dtype} {count} [{a}, {b}] seed {seed} offset {offset}: {apart} units apart, state "
                              f"{'same' if state == torch_state else f'{state.hex()} for {torch_state.hex()}'}")
    for (kind, dtype), apart in inexact.items():
        print(f"{kind} {dtype}: at most {apart} units in the last place")
    print(f"{checked} comparisons of up to 2^22 numbers, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
