#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares attune's elementwise calls on the host with NumPy and numexpr: in one process, on the same f32 (or f64) arrays, in turns.

numpy_elementwise.py LIBATTUNE NUMPY_LOOPS [--sizes N,N...] [--expressions E;E...] [--rounds N]
                     [--dtype f64] [--markdown FILE]

LIBATTUNE is libattune.so.0, NUMPY_LOOPS the library bench_numpy_loops of the same build. Needs NumPy; uses numexpr and SciPy
(for erf) if they are installed. Each size and expression is tuned first. Times are medians of the rounds; ratios are medians
of the ratios within a round, so that drift of the machine cancels."""
import argparse
import ctypes
import os
import re
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import attune_calls
import turns

try:
    import numexpr
except ImportError:
    numexpr = None
try:
    import scipy
    from scipy.special import erf
except ImportError:
    erf = None

HALF, ONE, ROOT, SLOPE, BEND = 0.5, 1.0, 0.5**0.5, (2 / np.pi) ** 0.5, 0.044715 # take the type of the array beside them
DTYPES = {"f32": np.float32, "f64": np.float64}
NUMEXPR_TANH = "(0.5 * {0} * (1 + tanh(0.7978846 * ({0} + 0.044715 * {0} * {0} * {0}))))"
SAMPLE_NS = 200e3  # a sample is about so long, or one call


def takes_b(expression):
    return re.search(r"\bb\b", expression) is not None


def numpy_gelu(x, b, out):
    np.multiply(HALF * x * (ONE + erf(x * ROOT)), ONE if b is None else b, out=out)


def numpy_gelu_tanh(x, out):
    np.multiply(HALF * x, ONE + np.tanh(SLOPE * (x + BEND * x * x * x)), out=out)


def numpy_ways(a, b, out):
    """By expression: a call of Python's, and the ufunc if it is one alone."""
    ways = {
        "a + b": (lambda: np.add(a, b, out=out), np.add),
        "exp(a)": (lambda: np.exp(a, out=out), np.exp),
        "sin(a)": (lambda: np.sin(a, out=out), np.sin),
        "gelu_tanh(a)": (lambda: numpy_gelu_tanh(a, out), None),
        "log1p(abs(a))": (lambda: np.log1p(np.abs(a, out=out), out=out), None),
        "log2(abs(a))": (lambda: np.log2(np.abs(a, out=out), out=out), None),
        "tan(a)": (lambda: np.tan(a, out=out), np.tan),
        "atan2(a, b)": (lambda: np.arctan2(a, b, out=out), np.arctan2),
        "abs(a) ** b": (lambda: np.power(np.abs(a, out=out), b, out=out), None),
        "sinh(a)": (lambda: np.sinh(a, out=out), np.sinh),
    }
    if erf is not None:
        ways["gelu(a)"] = (lambda: numpy_gelu(a, None, out), None)
        ways["gelu(a + b) * b"] = (lambda: numpy_gelu(a + b, b, out), None)
    return ways


def numexpr_text(expression):
    """numexpr has no erf: gelu is its tanh form there, which is less work."""
    return {"gelu(a)": NUMEXPR_TANH.format("a"), "gelu_tanh(a)": NUMEXPR_TANH.format("a"),
            "gelu(a + b) * b": NUMEXPR_TANH.format("(a + b)") + " * b", "log2(abs(a))": "log(abs(a)) * 1.442695",
            "atan2(a, b)": "arctan2(a, b)"}.get(expression, expression)


class Ufunc(ctypes.Structure):
    """The first members of NumPy's PyUFuncObject."""
    _fields_ = [("object", ctypes.c_char * object.__basicsize__), ("nin", ctypes.c_int), ("nout", ctypes.c_int),
                ("nargs", ctypes.c_int), ("identity", ctypes.c_int), ("functions", ctypes.POINTER(ctypes.c_void_p)),
                ("data", ctypes.POINTER(ctypes.c_void_p)), ("ntypes", ctypes.c_int), ("reserved", ctypes.c_int),
                ("name", ctypes.c_char_p), ("types", ctypes.POINTER(ctypes.c_char))]


def inner_loop(ufunc, dtype):
    """The C loop of a ufunc for the dtype, and its data."""
    u = Ufunc.from_address(id(ufunc))
    assert u.nargs == ufunc.nargs and u.ntypes == ufunc.ntypes and u.name.decode() == ufunc.__name__
    types = bytes([dtype.num]) * u.nargs
    for i in range(u.ntypes):
        if u.types[i * u.nargs : (i + 1) * u.nargs] == types:
            return u.functions[i], u.data[i] if u.data else None
    return None


class Calls:
    def __init__(self, library, loops, dtype):
        self.dtype = dtype
        self.attune = attune_calls.Attune(library, "host")
        self.loops = ctypes.CDLL(loops)
        for name in ("bench_plan", "bench_call", "bench_ufunc", "bench_add", "bench_copy"):
            getattr(self.loops, name).restype = ctypes.c_double

    def prepare(self, expression, count, arrays):
        a, b, out = arrays
        inputs = [attune_calls.tensor("a", a.ctypes.data, self.dtype, [count])]
        if takes_b(expression):
            inputs.append(attune_calls.tensor("b", b.ctypes.data, self.dtype, [count]))
        call = attune_calls.Call(self.attune, expression,
                                 attune_calls.tensor(None, out.ctypes.data, self.dtype, [count]), inputs)
        call.tune(2000.0)
        call.make_plan()
        return call

    def ways(self, expression, count, arrays):
        """By name: a function of a number of calls, which gives ns of one."""
        a, b, out = arrays
        lib, loops, at, none = self.attune.lib, self.loops, self.attune, ctypes.c_void_p
        call = self.prepare(expression, count, arrays)
        self.chosen = call.chosen()
        tensors = (none * 3)(*[x.ctypes.data for x in ((a, b, out) if takes_b(expression) else (a, out))])
        ways = {
            "plan": lambda n: loops.bench_plan(lib.attune_elementwise_plan_run, call.plan, at.stream, call.reference, n),
            "call": lambda n: loops.bench_call(lib.attune_elementwise, at.tuner, at.stream, *call.what, call.reference,
                                               n),
        }

        def python(function):
            return lambda n: turns.host_ns(function, n)

        beside = numpy_ways(a, b, out).get(expression)
        if beside:
            ways["numpy"] = python(beside[0])
            loop = inner_loop(beside[1], a.dtype) if beside[1] else None
            if loop:
                ways["numpy loop"] = lambda n: loops.bench_ufunc(none(loop[0]), none(loop[1]), tensors,
                                                                 beside[1].nargs, ctypes.c_int64(count), a.itemsize, n)
        if numexpr:
            values = {"a": a, "b": b} if takes_b(expression) else {"a": a}
            numexpr.evaluate(numexpr_text(expression), values, out=out, casting="same_kind")
            text = numexpr_text(expression)
            ways["numexpr"] = python(lambda: numexpr.evaluate(text, values, out=out, casting="same_kind"))
        if expression == "a + b" and self.dtype == "f32":
            ways["C loop"] = lambda n: loops.bench_add(none(out.ctypes.data), none(a.ctypes.data), none(b.ctypes.data),
                                                       ctypes.c_int64(count), n)
        threads = os.cpu_count() if count >= 1 << 20 else 1
        ways["copy"] = lambda n: loops.bench_copy(none(out.ctypes.data), none(a.ctypes.data),
                                                  ctypes.c_size_t(a.nbytes), threads, n)
        self.kept = call
        return ways


def measure(ways, rounds):
    calls = {name: max(1, int(SAMPLE_NS / min(way(1), way(3)))) for name, way in ways.items()}
    return turns.take_turns(ways, rounds, lambda name: ways[name](calls[name]))


def nanoseconds(value):
    return f"{value:.0f}" if value < 1e5 else f"{value:.4g}"


def row(expression, count, times, chosen):
    middle = turns.medians(times)

    def over(peer, factor=1.0):
        return f"{factor * turns.ratio(times, peer, 'plan'):.2f}" if peer in times else "-"

    moved = 3 / 2 if takes_b(expression) else 1.0
    return [f"`{expression}`", count,
            *(nanoseconds(middle[n]) if n in times else "-"
              for n in ("plan", "call", "C loop", "numpy loop", "numpy", "numexpr")),
            *map(over, ("C loop", "numpy loop", "numpy", "numexpr")), over("copy", moved),
            chosen.replace("host_interpreter ", "")]


def head(report, dtype):
    versions = [f"NumPy {np.__version__}"]
    if numexpr:
        versions.append(f"numexpr {numexpr.__version__}, {numexpr.get_num_threads()} threads")
    if erf is not None:
        versions.append(f"SciPy {scipy.__version__} (erf)")
    report.head("Elementwise on the host beside NumPy and numexpr", f"{turns.processor()}, {os.cpu_count()} processors",
                ", ".join(versions),
                f"one process, the same {dtype} arrays, all ways in turns; a plan, a call and the C loops are called from C, "
                "NumPy and numexpr from Python with `out=`. NumPy's loop is the loop of that type of its ufunc, called directly. Medians of "
                "the rounds in ns; ratios above 1: the plan is faster. Last: its GB/s as a share of memcpy's, by all "
                "processors from 2^20 elements on, by one below. Of attune's ways the first, the plan, comes after others' work, so it "
                "wakes attune's threads where there are several. gelu is exact (erf) in attune and NumPy with SciPy, and the tanh "
                "form in numexpr, which has no erf")
    report.table("expression", "elements>", "attune plan>", "attune call>",
                 "C loop>", "NumPy's loop>", "NumPy>", "numexpr>",
                 "C loop / plan>", "NumPy's loop / plan>", "NumPy / plan>", "numexpr / plan>", "of copy>", "attune runs")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("libattune")
    parser.add_argument("loops")
    parser.add_argument("--sizes", default=f"10,100,1000,100000,{1 << 24}")
    parser.add_argument("--expressions", default="a + b;exp(a);sin(a);gelu(a);gelu_tanh(a);gelu(a + b) * b;log1p(abs(a));"
                        "log2(abs(a));tan(a);atan2(a, b);abs(a) ** b;sinh(a)")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("--markdown")
    options = parser.parse_args()
    report = turns.Report()
    head(report, options.dtype)
    calls = Calls(options.libattune, options.loops, options.dtype)
    dtype = DTYPES[options.dtype]
    for count in map(int, options.sizes.split(",")):
        arrays = [(np.arange(count) % 2003).astype(dtype) / 200 - 5,
                  (np.arange(count) % 1009).astype(dtype) / 100 - 5, np.zeros(count, dtype)]
        for expression in options.expressions.split(";"):
            times = measure(calls.ways(expression, count, arrays), options.rounds)
            report.row(*row(expression, count, times, calls.chosen))
    report.write(options.markdown)


main()
