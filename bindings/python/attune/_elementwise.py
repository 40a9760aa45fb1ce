# SPDX-License-Identifier: Apache-2.0
"""Expressions over elements."""
import ctypes
import functools
import sys

from . import _arrays, _c, _tuner
from ._errors import InvalidArgument

_KINDS = {bool: "bool", int: "i64", float: "f64", complex: "c128"}
_NAMES = {code: name for name, code in _c.DTYPES.items()}


class Generator:
    """A source of random numbers for rand() and randn(): the same ones for the same seed on every device."""

    def __init__(self, seed: int):
        self._handle = None
        out = ctypes.c_void_p()
        _c.call("attune_generator_create", ctypes.byref(out), _c.integer(seed, "seed", 0, 2**64 - 1))
        self._handle = out.value

    def __del__(self):
        if self._handle and not sys.is_finalizing():
            _c.function("attune_generator_destroy")(self._handle)


def _number(value):
    """A Python number of a scalar operand, None for an array."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        value = value.item()
    return value if isinstance(value, (bool, int, float, complex)) else None


def _kind(number):
    return next(word for kind, word in _KINDS.items() if isinstance(number, kind))


def _output_dtypes(expression, inputs, scalars):
    """The expression's own dtypes, asked of the library for one element."""
    words = _c.ElementwiseWords(expression=expression, shape=b"1",
                                inputs=" ".join(f"{n}:{view[0]}:1" for n, view in inputs).encode(),
                                scalars=" ".join(f"{n}:{kind}=1" for n, kind in scalars).encode())
    made = ctypes.c_void_p()
    _c.call("attune_evaluation_create", ctypes.byref(made), ctypes.byref(words))
    try:
        operands = _c.function("attune_evaluation_operands")(made).contents
        return tuple(_NAMES[operands.outputs[i].dtype] for i in range(operands.output_count))
    finally:
        _c.function("attune_evaluation_destroy")(made)


def _array(kind, items):
    return (kind * max(len(items), 1))(*items)


class _Layout:
    """What a call is, without addresses and values: its results' shape and dtypes, and its tensors and scalars, to be
    copied."""

    def __init__(self, expression, inputs, outputs, scalars, dtypes, shape):
        for name in (*(name for name, _ in inputs), *(name for name, _ in scalars)):
            if not name.isidentifier() or not name.isascii():
                raise InvalidArgument(f"{name!r} is no name of an operand; should be letters, digits and _")
        if outputs is None:
            if shape is None:
                shape = _arrays.broadcast([(name, view[1]) for name, view in inputs])
            dtypes = dtypes if dtypes is not None else _output_dtypes(expression, inputs, scalars)
            outputs = tuple((dtype, shape, _arrays.packed(shape)) for dtype in dtypes)
        self.results = [(dtype, size) for dtype, size, _ in outputs]
        self.outputs = _array(_c.Tensor, [_arrays.tensor("out", None, *view) for view in outputs])
        self.inputs = _array(_c.Tensor, [_arrays.tensor(name, None, *view, name.encode()) for name, view in inputs])
        self.scalars = _array(_c.Scalar, [_c.Scalar(name=name.encode(), kind=_c.DTYPES[kind])
                                          for name, kind in scalars])


_layout = functools.lru_cache(maxsize=4096)(_Layout)


def _copied(template, items):
    """The tensors of a layout with the operands' addresses."""
    made = type(template).from_buffer_copy(template)
    for tensor, item in zip(made, items):
        tensor.data = item.data or None
    return made


class _Call:
    """The operands of a call, with what must live as long."""

    def __init__(self, expression, operands, named, out, dtype, shape, generator, accuracy, stream):
        if not isinstance(expression, str):
            raise InvalidArgument(f"expression is {expression!r}; should be text")
        self.expression = _c.text(expression, "expression")
        arrays, scalars = self._sort(operands, named)
        outputs = list(out) if isinstance(out, (tuple, list)) else [] if out is None else [out]
        if not arrays and not outputs:
            raise InvalidArgument("the expression has no arrays, and out is missing; should be given")
        items, self.stream, owner = _arrays.gather(arrays + [(f"out, {i + 1} of {len(outputs)}", array)
                                                      for i, array in enumerate(outputs)], stream)
        self.device, inputs, results = items[0].device, items[:len(arrays)], items[len(arrays):]
        if out is not None and (dtype is not None or shape is not None):
            raise InvalidArgument("dtype or shape is given, and out too; should be out's own")
        self.layout = _layout(self.expression, tuple((item.name, item.view) for item in inputs),
                              None if out is None else tuple(item.writable().view for item in results),
                              tuple((name, _kind(value)) for name, value in scalars), _dtypes(dtype), _shape(shape))
        if out is None:
            outputs = [_arrays.empty(inputs[0], size, word) for word, size in self.layout.results]
            results = [_arrays.made_for(array, self.stream, owner) for array in outputs]
        self.results = outputs[0] if len(outputs) == 1 and not isinstance(out, (tuple, list)) else tuple(outputs)
        self._fill(inputs, results, scalars, generator, accuracy)

    @staticmethod
    def _sort(operands, named):
        """Arrays and numbers, by name."""
        arrays, scalars = [], []
        for values in (operands or {}, named):
            for name, value in values.items():
                if not isinstance(name, str) or (values is named and operands and name in operands):
                    raise InvalidArgument(f"{name!r} is given twice, or is no text; should be the name of one operand")
                number = _number(value)
                if number is None:
                    arrays.append((name, value))
                else:
                    scalars.append((name, number))
        return arrays, scalars

    def _fill(self, inputs, results, scalars, generator, accuracy):
        if generator is not None and not isinstance(generator, Generator):
            raise InvalidArgument(f"generator is a {type(generator).__name__}; should be an attune.Generator")
        layout = self.layout
        numbers = type(layout.scalars).from_buffer_copy(layout.scalars)
        for made, (name, value) in zip(numbers, scalars):
            if isinstance(value, int):
                made.integer = _c.integer(value, name, -2**63, 2**63 - 1)
            else:
                made.value, made.imaginary = value.real, value.imag
        self.keep = inputs, results, generator
        self.operands = _c.ElementwiseOperands(
            outputs=_copied(layout.outputs, results), output_count=len(results), inputs=_copied(layout.inputs, inputs),
            input_count=len(inputs), scalars=numbers, scalar_count=len(scalars),
            generator=generator._handle if generator is not None else None,
            accuracy=_c.choice(accuracy, _c.ACCURACIES, "accuracy"))


def _dtypes(dtype):
    if dtype is None:
        return None
    return tuple(_arrays.dtype_name(one) for one in (dtype if isinstance(dtype, (tuple, list)) else (dtype,)))


def _shape(shape):
    if shape is None:
        return None
    sizes = (shape,) if hasattr(shape, "__index__") else tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(_c.integer(size, "shape", 0, 2**62) for size in sizes)


def elementwise(expression: str, operands: "dict | None" = None, *, out=None, dtype=None, shape=None,
                generator: "Generator | None" = None, accuracy: str = "strict", tuner: "_tuner.Tuner | None" = None,
                stream=None, **named):
    """The value of an expression over elements, "gelu(a + b) * b", into `out` or a new array, which is returned.

    Operands are given by name, as keywords or in a mapping: arrays of one device, which broadcast as in NumPy and may
    have any strides, and numbers. out: an array, or a tuple of them for an expression of several outputs; it may be
    an operand's own memory. dtype, shape: of new results; the expression's own dtype (torch's rules) and the
    operands' common shape if they are left out. generator: for rand() and randn(). The language: docs/expressions.md.
    accuracy, tuner, stream, errors and what must stay until the work is done: as in attune.gemm.
    """
    made = _Call(expression, operands, named, out, dtype, shape, generator, accuracy, stream)
    with _tuner.of(tuner)._used(made.device) as handle, made.stream.lock:
        _c.call("attune_elementwise", handle, made.stream.handle, made.expression, ctypes.byref(made.operands))
    return made.results


def elementwise_problem(expression: str, operands: "dict | None" = None, *, out=None, dtype=None, shape=None,
                        generator: "Generator | None" = None, accuracy: str = "strict", **named) -> str:
    """The problem that attune.elementwise would run with these arguments, as text for attune.tune and
    attune.explain."""
    made = _Call(expression, operands, named, out, dtype, shape, generator, accuracy, None)
    text = ctypes.create_string_buffer(_c.PROBLEM_CHARS)
    _c.call("attune_elementwise_problem_format", text, len(text), made.expression, ctypes.byref(made.operands))
    return text.value.decode()
