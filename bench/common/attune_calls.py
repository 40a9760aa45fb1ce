# SPDX-License-Identifier: Apache-2.0
"""attune's calls for Python programs that compare them with others. Tuner, structs and typed functions come from the Python
package (bindings/python); this module adds prepared calls without the package's checks of arrays, and functions that only
measurements need."""
import ctypes
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bindings", "python"))
import attune
from attune import _c

WAIT = 2  # for the compiler: what runs is the winner
TUNING_MOST = 3
GUESSES = ("default", "neighbour")  # sources of a decision that nothing was measured for


class Telemetry(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in (
        "size", "busy_percent", "memory_busy_percent", "memory_used_bytes", "memory_total_bytes", "temperature_c",
        "temperature_slow_c", "power_mw", "power_limit_mw", "clock_mhz", "clock_most_mhz", "memory_clock_mhz",
        "memory_clock_most_mhz", "slowdown")]


class Attune:
    """A tuner, and a stream of the device. `stream`: a native one to be wrapped, or None. `database`: a file, or None for
    one of its own."""

    def __init__(self, library, device, stream=None, database=None):
        _c.load(library)
        self.folder, self.name, self.lib = tempfile.TemporaryDirectory(), device, ctypes.CDLL(library)
        self.device, self.stream, self.generator = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        _c.call("attune_device_get", ctypes.byref(self.device), device.encode())
        self.chooser = attune.Tuner(database or os.path.join(self.folder.name, "tuning.db"))
        with self.chooser._used(device) as handle:
            self.tuner = ctypes.c_void_p(handle)
        _c.call("attune_generator_create", ctypes.byref(self.generator), 7)
        if stream is None:
            self.stream = ctypes.c_void_p(_c.function("attune_stream_default")(self.device))
        else:
            _c.call("attune_stream_wrap", ctypes.byref(self.stream), self.device, stream)

    def wait_for_compiler(self):
        """From now on a call whose winner is not compiled waits for it, and does not run the default until then."""
        _c.check(self.lib.attune_tuner_set_compile(self.tuner, WAIT))

    def telemetry(self):
        """The device's figures of now; one that is not known is below 0."""
        out = Telemetry()
        _c.check(self.lib.attune_device_get_telemetry(self.device, ctypes.byref(out)))
        return out

    def tune(self, problem, budget_ms=0.0):
        self.chooser.tune(problem, self.name, budget_ms=budget_ms)

    def tune_well(self, problem):
        """Tunes again what is not complete, for kernels that were not compiled in time, or not sure."""
        for _ in range(TUNING_MOST):
            self.tune(problem)

    def explain(self, problem):
        """The decision for a problem's text: what runs now."""
        return self.chooser.explain(problem, self.name)


def candidate(decision):
    return f"{decision.implementation} {decision.configuration}".rstrip()


def doubts(decision):
    """For the end of a row: that nothing was measured, or why the choice is not final."""
    if decision.source in GUESSES:
        return " (not tuned)"
    return "" if decision.complete and not decision.unsure else f" ({decision.candidates} measured: {decision.note})"


class Gemm:
    """One problem by its text, for calls of attune_gemm with operands of their own."""

    def __init__(self, attune, text):
        self.attune, self.problem, self.gemm = attune, _c.GemmProblem(), _c.function("attune_gemm")
        _c.check(attune.lib.attune_gemm_problem_parse(ctypes.byref(self.problem), text.encode()))
        self.reference = ctypes.byref(self.problem)

    def run(self, a, b, d, scale_a=None, scale_b=None, bias=None):
        """D = op(A) op(B), by address."""
        at = self.attune
        operands = _c.GemmOperands(alpha=1.0, a=a, b=b, d=d, scale_a=scale_a, scale_b=scale_b, bias=bias)
        _c.check(self.gemm(at.tuner, at.stream, self.reference, ctypes.byref(operands)))


def tensor(name, pointer, dtype, sizes, strides=None):
    t = _c.Tensor(name.encode() if name else None, pointer, _c.DTYPES[dtype], len(sizes), (ctypes.c_int64 * _c.DIMS)(*sizes))
    if strides is not None:
        t.kept = (ctypes.c_int64 * _c.DIMS)(*strides)
        t.strides = ctypes.cast(t.kept, ctypes.POINTER(ctypes.c_int64))
    return t


class Call:
    """One expression with its operands, ready to be run by attune_elementwise or by a plan."""
    FAMILY = "attune_elementwise"

    def __init__(self, attune, expression, output, inputs, scalars=(), draws=False):
        self.attune, self.what = attune, (expression.encode(),)
        self.kept = [output, *inputs]
        words = (_c.Scalar * max(1, len(scalars)))(*[_c.Scalar(n.encode(), 0, v, 0, 0) for n, v in scalars])
        self.operands = _c.ElementwiseOperands(0, (_c.Tensor * 1)(output), 1,
                                               (_c.Tensor * max(1, len(inputs)))(*inputs), len(inputs), words,
                                               len(scalars), attune.generator if draws else None, 0)
        self.reference = ctypes.byref(self.operands)
        self.plan = ctypes.c_void_p()

    def function(self, end):
        return getattr(self.attune.lib, self.FAMILY + end)

    def run(self):
        at = self.attune
        _c.check(self.function("")(at.tuner, at.stream, *self.what, self.reference))

    def make_plan(self):
        at = self.attune
        _c.check(self.function("_plan_create")(ctypes.byref(self.plan), at.tuner, at.stream, *self.what, self.reference))

    def run_plan(self):
        at = self.attune
        _c.check(at.lib.attune_elementwise_plan_run(self.plan, at.stream, self.reference))

    def problem(self):
        text = ctypes.create_string_buffer(_c.PROBLEM_CHARS)
        _c.check(self.function("_problem_format")(text, ctypes.c_size_t(len(text)), *self.what, self.reference))
        return text.value.decode()

    def tune(self, budget_ms=0.0):
        self.attune.tune(self.problem(), budget_ms)

    def chosen(self):
        """Implementation and configuration that run now."""
        return candidate(self.attune.explain(self.problem()))


class CudaCall(Call):
    """A function in CUDA C in place of the expression, its tensors without names."""
    FAMILY = "attune_elementwise_cuda"

    def __init__(self, attune, source, name, output, inputs):
        super().__init__(attune, source, output, inputs)
        self.what = (source.encode(), name.encode())
