# SPDX-License-Identifier: Apache-2.0
"""attune's elementwise calls for Python programs that measure it beside others: the public C API by ctypes."""
import ctypes
import os
import tempfile

DTYPES = {"f64": 1, "f32": 2, "f16": 3, "bf16": 4}
DIMS = 8


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
                ("configuration", ctypes.c_char * 192), ("rest", ctypes.c_char * 8192)]


class Attune:
    """A tuner with a database of its own, and a stream of the device. `stream`: a native one to be wrapped, or None."""

    def __init__(self, library, device, stream=None):
        self.folder = tempfile.TemporaryDirectory()
        self.lib = ctypes.CDLL(library)
        self.lib.attune_last_message.restype = ctypes.c_char_p
        self.lib.attune_stream_default.restype = ctypes.c_void_p
        self.device, self.tuner, self.stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.generator = ctypes.c_void_p()
        self.check(self.lib.attune_device_get(ctypes.byref(self.device), device.encode()))
        options = Options(os.path.join(self.folder.name, "tuning.db").encode())
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
        a = self.attune
        a.check(a.lib.attune_tune(a.tuner, a.device, self.problem(), ctypes.c_double(budget_ms), 0, None))

    def chosen(self):
        """Implementation and configuration that run now."""
        a, decision = self.attune, Decision()
        a.check(a.lib.attune_explain(a.tuner, a.device, self.problem(), ctypes.byref(decision)))
        return f"{decision.implementation.decode()} {decision.configuration.decode()}"


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
