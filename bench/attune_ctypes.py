# SPDX-License-Identifier: Apache-2.0
"""attune's GEMM and elementwise calls for Python programs that measure it beside others: the public C API by ctypes."""
import ctypes
import os
import tempfile

DTYPES = {"f64": 1, "f32": 2, "f16": 3, "bf16": 4}
DIMS = 8
WAIT = 2  # for the compiler: what runs is the winner
DEFAULT, NEIGHBOUR = 1, 2  # sources of a decision: nothing is known, a guess


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("dims", ctypes.c_int),
                ("sizes", ctypes.c_int64 * DIMS), ("strides", ctypes.POINTER(ctypes.c_int64))]


class Scalar(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_int), ("value", ctypes.c_double),
                ("imaginary", ctypes.c_double), ("integer", ctypes.c_int64)]


class Operands(ctypes.Structure):
    _fields_ = [("outputs", ctypes.POINTER(Tensor)), ("output_count", ctypes.c_int),
                ("inputs", ctypes.POINTER(Tensor)), ("input_count", ctypes.c_int),
                ("scalars", ctypes.POINTER(Scalar)), ("scalar_count", ctypes.c_int),
                ("generator", ctypes.c_void_p), ("accuracy", ctypes.c_int)]


class Options(ctypes.Structure):
    _fields_ = [("database", ctypes.c_char_p), ("system_database", ctypes.c_char_p), ("mode", ctypes.c_int),
                ("budget_ms", ctypes.c_double), ("total_budget_ms", ctypes.c_double), ("measure", ctypes.c_int * 4)]


class Decision(ctypes.Structure):
    """The first members of attune_decision, and room for the rest."""
    _fields_ = [("device", ctypes.c_char * 16), ("implementation", ctypes.c_char * 32), ("version", ctypes.c_int),
                ("configuration", ctypes.c_char * 192), ("source", ctypes.c_int), ("rest", ctypes.c_char * 8192)]

    def __str__(self):
        return f"{self.implementation.decode()} {self.configuration.decode()}".rstrip()


class GemmProblem(ctypes.Structure):
    _fields_ = [*((name, ctypes.c_int) for name in ("dtype", "dtype_out", "layout", "trans_a", "trans_b")),
                *((name, ctypes.c_int64) for name in ("m", "n", "k", "batch", "lda", "ldb", "ldc", "ldd", "stride_a",
                                                      "stride_b", "stride_c", "stride_d")),
                ("accuracy", ctypes.c_int), ("deterministic", ctypes.c_int), ("workspace_cap", ctypes.c_size_t)]


class GemmOperands(ctypes.Structure):
    _fields_ = [("alpha", ctypes.c_double), ("a", ctypes.c_void_p), ("b", ctypes.c_void_p), ("beta", ctypes.c_double),
                ("c", ctypes.c_void_p), ("d", ctypes.c_void_p)]


class Telemetry(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in (
        "busy_percent", "memory_busy_percent", "memory_used_bytes", "memory_total_bytes", "temperature_c",
        "temperature_slow_c", "power_mw", "power_limit_mw", "clock_mhz", "clock_most_mhz", "memory_clock_mhz",
        "memory_clock_most_mhz", "slowdown")]


class Attune:
    """A tuner, and a stream of the device. `stream`: a native one to be wrapped, or None. `database`: a file, or None for
    one of its own."""

    def __init__(self, library, device, stream=None, database=None):
        self.folder = tempfile.TemporaryDirectory()
        self.lib = ctypes.CDLL(library)
        self.lib.attune_last_message.restype = ctypes.c_char_p
        self.lib.attune_stream_default.restype = ctypes.c_void_p
        self.device, self.tuner, self.stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.generator = ctypes.c_void_p()
        self.check(self.lib.attune_device_get(ctypes.byref(self.device), device.encode()))
        options = Options((database or os.path.join(self.folder.name, "tuning.db")).encode())
        self.check(self.lib.attune_tuner_create(ctypes.byref(self.tuner), ctypes.byref(options)))
        self.check(self.lib.attune_generator_create(ctypes.byref(self.generator), ctypes.c_uint64(7)))
        if stream is None:
            self.stream = ctypes.c_void_p(self.lib.attune_stream_default(self.device))
        else:
            self.check(self.lib.attune_stream_wrap(ctypes.byref(self.stream), self.device, ctypes.c_void_p(stream)))

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.attune_last_message().decode())

    def set_mode(self, mode):
        """1 off, 2 cached, 3 record, 4 tune."""
        self.check(self.lib.attune_tuner_set_mode(self.tuner, mode))

    def wait_for_compiler(self):
        """From now on a call whose winner is not compiled waits for it, and does not run the default meanwhile."""
        self.check(self.lib.attune_tuner_set_compile(self.tuner, WAIT))

    def telemetry(self):
        """What the device tells of itself now; a figure that is not known is below 0."""
        out = Telemetry()
        self.check(self.lib.attune_device_get_telemetry(self.device, ctypes.byref(out)))
        return out

    def tune(self, problem, budget_ms=0.0):
        self.check(self.lib.attune_tune(self.tuner, self.device, problem, ctypes.c_double(budget_ms), 0, None))

    def explain(self, problem):
        """The decision for a problem's text: what runs now."""
        decision = Decision()
        self.check(self.lib.attune_explain(self.tuner, self.device, problem, ctypes.byref(decision)))
        return decision


class Gemm:
    """One problem by its text, for calls of attune_gemm with operands of their own."""

    def __init__(self, attune, text):
        self.attune, self.text, self.problem = attune, text.encode(), GemmProblem()
        attune.check(attune.lib.attune_gemm_problem_parse(ctypes.byref(self.problem), self.text))
        self.reference = ctypes.byref(self.problem)

    def run(self, a, b, d):
        """D = op(A) op(B), by address."""
        at = self.attune
        at.check(at.lib.attune_gemm(at.tuner, at.stream, self.reference, ctypes.byref(GemmOperands(1.0, a, b, 0.0, None, d))))


def tensor(name, pointer, dtype, sizes, strides=None):
    t = Tensor(name.encode() if name else None, pointer, DTYPES[dtype], len(sizes), (ctypes.c_int64 * DIMS)(*sizes))
    if strides is not None:
        t.kept = (ctypes.c_int64 * DIMS)(*strides)
        t.strides = ctypes.cast(t.kept, ctypes.POINTER(ctypes.c_int64))
    return t


class Call:
    """One expression with its operands, ready to be run by attune_elementwise or by a plan."""

    def __init__(self, attune, expression, output, inputs, scalars=(), draws=False):
        self.attune, self.expression = attune, expression.encode()
        self.output, self.inputs = (Tensor * 1)(output), (Tensor * max(1, len(inputs)))(*inputs)
        self.scalars = (Scalar * max(1, len(scalars)))(*[Scalar(n.encode(), 0, v, 0, 0) for n, v in scalars])
        self.kept = [output, *inputs]
        self.operands = Operands(self.output, 1, self.inputs, len(inputs), self.scalars, len(scalars),
                                 attune.generator if draws else None, 0)
        self.reference = ctypes.byref(self.operands)
        self.plan = ctypes.c_void_p()

    def run(self):
        a = self.attune
        a.check(a.lib.attune_elementwise(a.tuner, a.stream, self.expression, self.reference))

    def make_plan(self):
        a = self.attune
        a.check(a.lib.attune_elementwise_plan_create(ctypes.byref(self.plan), a.tuner, a.stream, self.expression,
                                                     self.reference))

    def run_plan(self):
        a = self.attune
        a.check(a.lib.attune_elementwise_plan_run(self.plan, a.stream, self.reference))

    def problem(self):
        text = ctypes.create_string_buffer(4096)
        a = self.attune
        a.check(a.lib.attune_elementwise_problem_format(text, ctypes.c_size_t(4096), self.expression, self.reference))
        return text.value

    def tune(self, budget_ms=0.0):
        self.attune.tune(self.problem(), budget_ms)

    def chosen(self):
        """Implementation and configuration that run now."""
        return str(self.attune.explain(self.problem()))


class CudaCall(Call):
    """The same with a function in CUDA C in place of the expression, its tensors without names."""

    def __init__(self, attune, source, name, output, inputs):
        super().__init__(attune, source, output, inputs)
        self.name = name.encode()

    def run(self):
        a = self.attune
        a.check(a.lib.attune_elementwise_cuda(a.tuner, a.stream, self.expression, self.name, self.reference))

    def make_plan(self):
        a = self.attune
        a.check(a.lib.attune_elementwise_cuda_plan_create(ctypes.byref(self.plan), a.tuner, a.stream, self.expression,
                                                          self.name, self.reference))

    def problem(self):
        text = ctypes.create_string_buffer(4096)
        a = self.attune
        a.check(a.lib.attune_elementwise_cuda_problem_format(text, ctypes.c_size_t(4096), self.expression, self.name,
                                                             self.reference))
        return text.value
