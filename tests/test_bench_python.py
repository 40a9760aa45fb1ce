#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_bench_python.py ROOT: the Python programs of bench/ have one loop and one table writer, turns.py's; join.py joins; torch_alloc.py
replays traces through what stands in for PyTorch here."""
import glob
import os
import re
import subprocess
import sys
import tempfile

# torch_graph.py takes the device's time and the host's from the same replays.
OWN_CLOCK = {"turns.py", "torch_graph.py"}

# An allocator that gives each request a segment of its own, and keeps what is freed.
TORCH = """
__version__ = "0.0-test"
class cuda:
    held, free, taken, reserved, peak = {}, [], 0, 0, 0
    is_available = staticmethod(lambda: True)
    get_device_name = staticmethod(lambda device=0: "made up")
    current_stream = staticmethod(lambda device=0: 0)
    @staticmethod
    def caching_allocator_alloc(size, device=0, stream=0):
        if size in cuda.free: cuda.free.remove(size)
        else:
            cuda.taken += 1
            cuda.reserved += size
            cuda.peak = max(cuda.peak, cuda.reserved)
        pointer = len(cuda.held) + 1000
        while pointer in cuda.held: pointer += 1
        cuda.held[pointer] = size
        return pointer
    @staticmethod
    def caching_allocator_delete(pointer): cuda.free.append(cuda.held.pop(pointer))
    @staticmethod
    def empty_cache():
        cuda.reserved -= sum(cuda.free)
        cuda.free.clear()
    @staticmethod
    def reset_peak_memory_stats(device=0): cuda.peak = cuda.reserved
    @staticmethod
    def memory_stats(device=0): return {"reserved_bytes.all.peak": cuda.peak, "num_device_alloc": cuda.taken}
"""

JOINED = """| name | attune | peer | torch | best peer / attune |
|---|---:|---:|---:|---:|
| a | 10.50 | 12.00 | **9.00** | 0.857 |
| b | 1234 | **1000** | - | 0.810 |
| c | - | - | **3.12** | - |

- peer / attune: geomean 0.9622 over 2, least 0.810
- torch / attune: geomean 0.8571 over 1, least 0.857
- best peer of each shape / attune: geomean 0.8333, least 0.810
"""


def run(root, folder, *words):
    env = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1", "PYTORCH_CUDA_ALLOC_CONF": "made:up"}
    return subprocess.run([sys.executable, os.path.join(root, "bench", words[0]), *words[1:]], capture_output=True, text=True, env=env)


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)
    return os.path.join(folder, name)


def one_loop_and_one_table(root):
    for path in sorted(glob.glob(os.path.join(root, "bench", "*.py"))):
        name = os.path.basename(path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if name not in OWN_CLOCK and "perf_counter" in text:
            yield f"{name} times by a loop of its own; turns.py has take_turns, host_ns and between_events"
        if name != "turns.py" and re.search(r"\|:?---", text):
            yield f"{name} writes a table of its own; turns.py has Report"


def joins(root, folder):
    head = "name,problem,way,us,spread,note\n"
    first = write(folder, "1.csv", head + "a,p,attune,10.5,0,\na,p,peer,12,0,\nb,p,attune,1234.4,0,\nb,p,peer,1000,0,\n")
    second = write(folder, "2.csv", head + "a,p,torch,9,0,\nc,p,torch,3.125,0,x\n")
    done = run(root, folder, "join.py", first, second, "--title", "Made up")
    if done.returncode != 0 or not done.stdout.startswith("# Made up\n") or not done.stdout.endswith(JOINED):
        yield f"join.py: {done.returncode} {done.stdout} {done.stderr}"
    done = run(root, folder, "join.py", second)
    if done.returncode != 1 or "no file has the way attune" not in done.stderr:
        yield f"join.py without attune: {done.returncode} {done.stderr}"


def replays(root, folder):
    write(folder, "torch.py", TORCH)
    mib = 1 << 20
    write(folder, "alloc-training.txt", f"a 1 {4 * mib}\na 2 {2 * mib}\nf 1\na 3 {4 * mib}\nf 2\nf 3\n")
    write(folder, "alloc-serving.txt", f"a 1 {mib}\nf 1\na 2 {3 * mib}\n")
    done = run(root, folder, "torch_alloc.py", folder)
    rows = ["PyTorch 0.0-test, made up, settings \"made:up\"", "| training | 6 | 6.0 | 6.0 | 1.000 | 2 |",
            "| serving | 3 | 3.0 | 4.0 | 1.333 | 4 |", "\n|---:|---:|\n| 4096 | ", "\n| 1048576 | ", "\n| 67108864 | "]
    for row in rows:
        if done.returncode != 0 or row not in done.stdout:
            yield f"torch_alloc.py lacks {row!r}: {done.returncode} {done.stdout} {done.stderr}"


def main():
    failures = list(one_loop_and_one_table(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        failures += [*joins(sys.argv[1], folder), *replays(sys.argv[1], folder)]
    print("\n".join(failures) or "bench/*.py: one loop, one table writer")
    return 1 if failures else 0


sys.exit(main())
