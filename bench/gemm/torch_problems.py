# SPDX-License-Identifier: Apache-2.0
"""The problems of a GEMM workload for PyTorch: tensors that are views of the memory passed to attune and cuBLAS, and the
number of such sets that a measurement needs."""
import csv
import math

TARGET_S = 1.5e-3
MAX_SETS = 4096
NEEDED = ("dtype", "m", "n", "k")
KNOWN = {"op", "name", "count", "contract", "transa", "transb", "batch", *NEEDED}
ELEMENT = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2}


def read_workload(path):
    """The rows of a workload's file; what is not meant here ends the program."""
    def refuse(what):
        raise SystemExit(f"torch_gemm.py: {path}: {what}")
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(line for line in file if line.strip() and not line.startswith("#")))
    except OSError as error:
        refuse(error.strerror)
    for row in rows:
        missing = [column for column in NEEDED if not row.get(column)]
        more = sorted(column for column, value in row.items() if value and column not in KNOWN)
        if missing or more:
            refuse(f"column {missing[0]} is missing" if missing else f"column {more[0]} is not supported here")
        problem = {key: int(row.get(key) or 1) for key in ("m", "n", "k", "batch")}
        problem.update(dtype=row["dtype"], contract=row.get("contract") or "strict", transa=row.get("transa") or "n",
                       transb=row.get("transb") or "n")
        if problem["dtype"] not in ELEMENT:
            refuse(f"dtype {problem['dtype']} should be one of {', '.join(ELEMENT)}")
        problem["text"] = problem_text(problem)
        problem["name"] = row.get("name") or problem["text"]
        yield problem


def problem_text(p):
    """As attune writes it."""
    batch = f"x{p['batch']}" if p["batch"] > 1 else ""
    return f"gemm {p['dtype']} {p['transa']}{p['transb']} {p['m']}x{p['n']}x{p['k']}{batch} {p['contract']}"


class Operands:
    """One set. Column-major D = op(A) op(B) is row-major D' = op(B)' op(A)': what is stored as k x m in columns is an (m, k)
    tensor, and so on. `left` and `right` are views of B and A, `out` is D, and `addresses` are those of A, B and D."""

    def __init__(self, torch, p):
        dtype, m, n, k = dtype_of(torch, p), p["m"], p["n"], p["k"]
        lead = (p["batch"],) if p["batch"] > 1 else ()
        a = uniform(torch, lead + ((k, m) if p["transa"] == "n" else (m, k)), dtype)
        b = uniform(torch, lead + ((n, k) if p["transb"] == "n" else (k, n)), dtype)
        self.right = a if p["transa"] == "n" else a.transpose(-1, -2)
        self.left = b if p["transb"] == "n" else b.transpose(-1, -2)
        self.out = torch.empty(lead + (n, m), dtype=dtype, device="cuda").fill_(math.nan)
        self.addresses = (a.data_ptr(), b.data_ptr(), self.out.data_ptr())


def dtype_of(torch, p):
    return {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[p["dtype"]]


def uniform(torch, shape, dtype):
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    return torch.empty(shape, dtype=wide, device="cuda").uniform_(-1, 1).to(dtype)


def set_precision(torch, contract):
    """The contract's arithmetic: TF32 and reduced-precision reductions only where it says reduced."""
    reduced = contract == "reduced"
    torch.set_float32_matmul_precision("high" if reduced else "highest")
    matmul = torch.backends.cuda.matmul
    matmul.allow_tf32 = reduced
    matmul.allow_bf16_reduced_precision_reduction = matmul.allow_fp16_reduced_precision_reduction = reduced


def plan_calls(p, call_s, rotate_bytes):
    """Calls in a graph, and sets of operands: all sets are used before one comes again, as in bench_gemm."""
    each = p["batch"] * ELEMENT[p["dtype"]] * (p["m"] * p["k"] + p["k"] * p["n"] + p["m"] * p["n"])
    calls = max(4, min(40, math.ceil(TARGET_S / call_s)))
    sets = min(rotate_bytes // each + 2, MAX_SETS)
    if sets <= calls:
        return (calls + sets - 1) // sets * sets, sets
    return calls, (sets + calls - 1) // calls * calls
