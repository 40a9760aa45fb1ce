#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_bench_python.py ROOT [LIBATTUNE]: the Python programs of bench/ compile, have one loop and one table writer, turns.py's; torch_alloc.py replays
traces, and torch_gemm.py compares products of the library on the host, through what stands in for PyTorch here; workloads/broad.csv is broad."""
import contextlib
import glob
import io
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

WORKLOAD = """# columns as in bench/workloads
name,dtype,contract,transa,transb,m,n,k,batch
nn,f32,strict,n,n,3,5,4,1
tn,f64,strict,t,n,5,2,3,1
tt,f64,reduced,t,t,4,3,2,1
batch,f32,strict,n,t,2,3,4,3
"""

# Of made-up times: attune 8 us, cuBLAS 12, eager 10, compiled 9. The last column tells what runs on this host.
ROWS = """| name | problem | attune | GemmEx default | GemmEx AUTOTUNE | torch eager | torch.compile | default / attune | best peer / attune | W | MHz | attune runs |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|
| nn | f32 nn 3x5x4 strict | 8.00 | 12.00 | 12.00 | 10.00 | 9.00 | 1.500 | 1.125 (torch.compile) |
| tn | f64 tn 5x2x3 strict | 8.00 | 12.00 | 12.00 | 10.00 | 9.00 | 1.500 | 1.125 (torch.compile) |
| tt | f64 tt 4x3x2 reduced | 8.00 | 12.00 | 12.00 | 10.00 | 9.00 | 1.500 | 1.125 (torch.compile) |
| batch | f32 nt 2x3x4x3 strict | 8.00 | 12.00 | 12.00 | 10.00 | 9.00 | 1.500 | 1.125 (torch.compile) |
- GemmEx default / attune: geomean 1.5000 over 4 problems, least 1.500 (nn), 0 below 0.99
- torch.compile / attune: geomean 1.1250 over 4 problems, least 1.125 (nn), 0 below 0.99
- best peer of each problem / attune: geomean 1.1250 over 4 problems, least 1.125 (nn), 0 below 0.99
""".splitlines()


def run(root, folder, *words, made_up=""):
    env = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1", "PYTORCH_CUDA_ALLOC_CONF": "made:up", "MADE_UP": made_up}
    return subprocess.run([sys.executable, glob.glob(os.path.join(root, "bench", "*", words[0]))[0], *words[1:]], capture_output=True, text=True, env=env)


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)
    return os.path.join(folder, name)


def one_loop_and_one_table(root):
    for path in sorted(glob.glob(os.path.join(root, "bench", "*", "*.py"))):
        name = os.path.basename(path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        try:
            compile(text, name, "exec")
        except SyntaxError as error:
            yield f"{name}: {error}"
        if name not in OWN_CLOCK and "perf_counter" in text:
            yield f"{name} times by a loop of its own; turns.py has take_turns, host_ns and between_events"
        if name != "turns.py" and re.search(r"\|:?---", text):
            yield f"{name} writes a table of its own; turns.py has Report"


def lacks(done, code, *texts):
    """What a run of torch_gemm.py should have said and did not."""
    if done.returncode != code:
        yield f"torch_gemm.py ended with {done.returncode}, should be {code}: {done.stdout} {done.stderr}"
    for text in texts:
        if text not in done.stdout + done.stderr:
            yield f"torch_gemm.py lacks {text!r}: {done.stdout} {done.stderr}"


def refused(root, words):
    """The exit code and what was said, in this process: nothing is looked for before the arguments are right."""
    sys.path.insert(0, os.path.join(root, "bench", "gemm"))
    import torch_gemm
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            sys.argv = ["torch_gemm.py", *words]
            torch_gemm.arguments()
    except SystemExit as end:
        return (end.code, said.getvalue()) if isinstance(end.code, int) else (1, str(end.code))
    return None, said.getvalue()


def refuses(root, folder):
    good, bad = write(folder, "good.csv", WORKLOAD), write(folder, "bad.csv", "name,dtype,m,n,k,lda\na,f32,2,2,2,8\n")
    wrong, short = write(folder, "wrong.csv", "dtype,m,n,k\nf8,2,2,2\n"), write(folder, "short.csv", "dtype,m,n\nf32,2,2\n")
    cases = [((), 2, "required: library, workload"), (("x", good, "--round", "no"), 2, "invalid int value"), (("x", good, "--rounds", "2"), 2, "3 at least"),
             (("x", good, "--only", "nobody"), 2, "no problem whose name contains"), (("x", folder + "/none.csv"), 1, "none.csv: No such file"),
             (("x", bad), 1, "bad.csv: column lda is not supported"), (("x", wrong), 1, "wrong.csv: dtype f8 should be one of f64"),
             (("x", short), 1, "short.csv: column k is missing"), (("--help",), 0, "--skip-compile")]
    for words, code, text in cases:
        got, said = refused(root, words)
        if got != code or text not in said:
            yield f"torch_gemm.py {words}: {got}, should be {code}, {said!r} lacks {text!r}"


def compares(root, folder, library):
    """attune's own products, on the host, beside those of the stand-ins for PyTorch and cuBLAS, which take the same memory in their own ways."""
    with open(os.path.join(root, "tests", "ops", "gemm", "gemm_torch.py"), encoding="utf-8") as file:
        write(folder, "torch.py", file.read())
    words = [library, write(folder, "w.csv", WORKLOAD), "--device", "host", "--db", os.path.join(folder, "none.db"), "--rotate", "0"]
    out = os.path.join(folder, "out.md")
    done = run(root, folder, "torch_gemm.py", *words, "--markdown", out)
    yield from lacks(done, 0, *ROWS, "(not tuned) |", "0 failed, 0 with results that differ")
    with open(out, encoding="utf-8") as file:
        if file.read() not in done.stdout:
            yield "torch_gemm.py --markdown differs from what it prints"
    one = [*words, "--only", "tt"]
    got = [line.split()[1] for line in run(root, folder, "torch_gemm.py", *words, "--small-first", "--skip-compile").stdout.splitlines() if " strict |" in
           line or " reduced |" in line]
    if got != ["tt", "tn", "nn", "batch"]:
        yield f"torch_gemm.py --small-first: {got}"
    for made_up, more, code, texts in [
            ("compile=4", (), 0, ["0.500 (torch.compile)", "least 0.500 (tt), 1 below 0.99: tt 0.500"]),
            ("eager=6", ("--skip-compile", "--tunable"), 0, ["| torch eager | TunableOp | default", "| 6.00 | 6.00 | 1.500 | 0.750 (torch eager) |"]),
            ("wrong=compile", (), 1, ["tt: the result of torch.compile differs", "1 with results that differ"]),
            ("wrong=idle", ("--skip-compile",), 1, ["tt: the result of torch eager differs"]),
            ("wrong=refuse", (), 0, ["tt: not compiled after", "ValueError made up", "| 10.00 | - | 1.500 | 1.250 (torch eager) |"]),
            ("wrong=cublas-graph", ("--compile-limit", "0"), 1, ["tt: not compiled: --compile-limit was reached", "tt: made up: no replay", "1 failed, 0 with"]),
            ("", ("--time-limit", "-1"), 0, ["1 problems left out by the time limit"])]:
        yield from lacks(run(root, folder, "torch_gemm.py", *one, *more, made_up=made_up), code, *texts)


def is_broad(root):
    """The shapes that say what attune gains where nobody looked are many, and no others'."""
    sys.path.insert(0, os.path.join(root, "bench", "gemm"))
    import torch_problems
    seen = {}
    for name in ("gemm-h200", "llama3-8b", "published", "skinny-tiny", "broad"):
        count = 0
        for problem in torch_problems.read_workload(os.path.join(root, "bench", "workloads", name + ".csv")):
            count += 1
            if name == "broad" and problem["text"] in seen:
                yield f"broad.csv: {problem['name']} is also in {seen[problem['text']]}.csv"
            seen[problem["text"]] = name
    if count < 150:
        yield f"broad.csv has {count} problems, should have 150 at least"


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
    sys.dont_write_bytecode = True
    root, library = sys.argv[1], "".join(sys.argv[2:])
    failures = [*one_loop_and_one_table(root), *is_broad(root)]
    with tempfile.TemporaryDirectory() as folder:
        failures += [*refuses(root, folder), *replays(root, folder), *(compares(root, folder, library) if library else ())]
    print("\n".join(failures) or "bench/*/*.py: one loop, one table writer")
    return 1 if failures else 0


sys.exit(main())
