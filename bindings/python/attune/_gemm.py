# SPDX-License-Identifier: Apache-2.0
"""Matrix products. What lies in memory as rows, columns or transposed is multiplied where it is; other strides are
packed first, in memory of the library, in stream order. A view is (dtype, shape, strides in elements): all that a
layout depends on."""
import contextlib
import ctypes
import functools

from . import _arrays, _c, _tuner
from ._errors import InvalidArgument

_DTYPES = {name: _c.DTYPES[name] for name in ("f64", "f32", "f16", "bf16", "c64", "c128")}
_POINTER_OF_COPY = 256  # stands for the address of a copy: as well aligned


def _collapse(sizes, strides):
    """The dimensions of a batch as one: its stride, 0 where there is one matrix for all; None if they are not one."""
    stride, span = None, 1
    for size, step in zip(reversed(sizes), reversed(strides)):
        if size != 1:
            if stride is None:
                stride = step
            elif step != stride * span:
                return None
            span *= size
    return stride or 0


class _Matrix:
    """A view of (*own batch, rows, columns), as a batch of matrices that broadcasts to `batch`."""

    def __init__(self, shape, strides, batch):
        self.shape, self.strides, self.batch = shape, strides, batch
        wide = _arrays.broadcast_strides(shape[:-2], strides[:-2], batch)
        self.batch_stride = _collapse(batch, wide)

    def leading(self, row_major):
        """The leading dimension, if the elements of a row (row_major) or of a column lie side by side; else None."""
        (outer, inner), (run, step) = self.shape[-2:], self.strides[-2:]
        if not row_major:
            outer, inner, run, step = inner, outer, step, run
        if inner > 1 and step != 1:
            return None
        least = max(inner, 1)
        return least if outer <= 1 else run if run >= least else None

    def usable(self, *orders):
        """Can a product read it where it is, in one of these orders?"""
        return (self.batch_stride is not None and self.batch_stride >= 0 and
                any(self.leading(order) is not None for order in orders))

    def packed(self, row_major):
        """How a copy of it lies that a product can read."""
        for shape in (self.shape, (*self.batch, *self.shape[-2:])):
            made = _Matrix(shape, _order(shape, row_major), self.batch)
            if made.usable(row_major):
                return made
        raise AssertionError("a packed matrix can be read")


def _order(shape, row_major):
    """Packed strides of matrices, of rows or of columns."""
    if row_major:
        return _arrays.packed(shape)
    return (*_arrays.packed((*shape[:-2], shape[-1], shape[-2]))[:-2], 1, max(shape[-2], 1))


class _Layout:
    """How a product runs, without addresses: shape and dtype of the result, the problem (None: no elements), and what
    is packed first: (name, shape, strides, shape and strides of the copy)."""

    def __init__(self, a, b, c, out, dtype, reads_c, accuracy, deterministic, workspace, bias=None, activation=0,
                 residual=None, gated=False):
        self.gated = gated
        self._check(a, b)
        self.dtype = out[0] if out else dtype or a[0]
        if dtype not in (None, self.dtype):
            raise InvalidArgument(f"out has dtype {self.dtype}, and dtype is {dtype}; should be the same")
        if self.dtype not in _DTYPES or a[0] not in _DTYPES:
            name, wrong = ("a", a[0]) if a[0] not in _DTYPES else ("out", self.dtype)
            raise InvalidArgument(f"{name} has dtype {wrong}; should be one of {', '.join(_DTYPES)}")
        self.packs, self.problem = [], None
        if out and out[1] != self.shape:
            raise InvalidArgument(f"out has shape {out[1]}; should have {self.shape}")
        for name, x in (("c", c), ("residual", residual)):
            if x:
                self._check_added(name, x)
        if bias:
            self._check_bias(bias)
        if _arrays.count(self.shape):
            self.problem = self._problem(a[0], out)
            self.problem.contract = _c.Contract(accuracy=accuracy, deterministic=deterministic, workspace_cap=workspace)
            if c and reads_c:
                self._place_added("c", c)
            self._follow(bias, activation, residual)

    def _check(self, a, b):
        for name, (_, shape, _) in (("a", a), ("b", b)):
            if not shape:
                raise InvalidArgument(f"{name} has no dimensions; should be a matrix or a vector")
        if a[0] != b[0]:
            raise InvalidArgument(f"a has dtype {a[0]}, and b {b[0]}; should have the same")
        self.row, self.column = len(a[1]) == 1, len(b[1]) == 1
        (*batch_a, self.m, self.k), strides_a = self._whole(a, self.row, False)
        (*batch_b, k, self.n), strides_b = self._whole(b, False, self.column)
        if k != self.k:
            raise InvalidArgument(
                f"a has shape {a[1]}, and b {b[1]}; should have as many rows in b as columns in a: {self.k}")
        self.batch = _arrays.broadcast([("a", batch_a), ("b", batch_b)])
        if self.gated and (self.column or self.n % 2):
            raise InvalidArgument(f"b has shape {b[1]}; should have columns in two halves of the same size, as gated is True")
        columns = self.n // 2 if self.gated else self.n
        self.shape = (*self.batch, *(() if self.row else (self.m,)), *(() if self.column else (columns,)))
        self.a = _Matrix((*batch_a, self.m, self.k), strides_a, self.batch)
        self.b = _Matrix((*batch_b, self.k, self.n), strides_b, self.batch)

    @staticmethod
    def _whole(view, row, column):
        """Shape and strides with the dimensions that vectors lack: of one row, of one column."""
        _, shape, strides = view
        if column:
            shape, strides = (*shape, 1), (*strides, 1)
        if row:
            shape = (*shape[:-1], 1, shape[-1])
            strides = (*strides[:-1], max(shape[-1], 1), strides[-1])
        return shape, strides

    def _check_added(self, name, x):
        if x[0] != self.dtype:
            raise InvalidArgument(f"{name} has dtype {x[0]}; should have {self.dtype}, as out")
        if not _arrays.broadcasts(x[1], self.shape):
            raise InvalidArgument(f"{name} has shape {x[1]}; should broadcast to out's, {self.shape}")

    def _check_bias(self, bias):
        """Of the result's last dimension, as one of NumPy's operands; or a column, which is added to columns."""
        last = self.m if self.column else self.n
        shapes = [(last,)] if self.row or self.column else [(last,), (self.m, 1)]
        if bias[1] not in shapes:
            raise InvalidArgument(f"bias has shape {bias[1]}; should have {' or '.join(map(str, shapes))}")
        if bias[0] != self.dtype and (bias[0] != "f32" or self.dtype not in ("f16", "bf16")):
            raise InvalidArgument(f"bias has dtype {bias[0]}; should have {self.dtype}, as out"
                                  + (" or f32" if self.dtype in ("f16", "bf16") else ""))

    def _follow(self, bias, activation, residual):
        """The epilogue."""
        e = self.problem.epilogue
        e.activation, self.problem.gated = activation, 2 if self.gated else 0
        if bias:
            _, shape, strides = bias
            e.bias, e.bias_dtype = 1 if self.column or len(shape) == 2 else 2, _DTYPES[bias[0]]
            if _arrays.count(shape) > 1 and strides[0] != 1:
                self.packs.append(("bias", shape, strides, shape, _arrays.packed(shape)))
        if residual:
            e.residual = 1
            self._place_added("residual", residual)

    def _problem(self, dtype, out):
        _, shape, strides = out or (None, self.shape, _arrays.packed(self.shape))
        d = _Matrix(*self._whole((None, shape, strides), self.row, self.column), self.batch)
        self.row_major, count = d.usable(True), _arrays.count(self.batch)
        if not d.usable(True, False) or (count > 1 and d.batch_stride == 0):
            raise InvalidArgument(f"out has strides {strides}, in elements, for shape {shape}; should have rows or "
                                  "columns whose elements lie side by side, and matrices of a batch at equal distances")
        p = self.problem = _c.GemmProblem(dtype=_DTYPES[dtype], dtype_out=_DTYPES[self.dtype],
                                          layout=int(self.row_major), m=self.m, n=self.n, k=self.k, batch=count)
        p.ldd, p.stride_d = d.leading(self.row_major), 0 if count == 1 else d.batch_stride
        for letter, x in (("a", self.a), ("b", self.b)):
            if not x.usable(True, False):
                x = self._pack(letter, x, True)
            same = x.leading(self.row_major) is not None
            setattr(p, "trans_" + letter, 0 if same else 1)
            self._place(letter, x, self.row_major == same)
        return p

    def _place_added(self, name, added):
        """C and a residual are never transposed, so they may have to be packed for their order; a vector is spread."""
        strides = _arrays.broadcast_strides(added[1], added[2], self.shape)
        x = _Matrix(*self._whole((None, self.shape, strides), self.row, self.column), self.batch)
        if not x.usable(self.row_major):
            x = self._pack(name, x, self.row_major)
        self._place(name, x, self.row_major)

    def _pack(self, name, x, row_major):
        copy = x.packed(row_major)
        self.packs.append((name, x.shape, x.strides, copy.shape, copy.strides))
        return copy

    def _place(self, name, x, row_major):
        setattr(self.problem, "ld" + name if len(name) == 1 else "ld_" + name, x.leading(row_major))
        stride = 0 if self.problem.batch == 1 else x.batch_stride or _c.BROADCAST
        setattr(self.problem, "stride_" + name, stride)


_layout = functools.lru_cache(maxsize=4096)(_Layout)


def _scalar(value, name):
    """A number, as a complex one."""
    return complex(value) if isinstance(value, complex) else complex(_c.number(value, name))


class _Product:
    """All of a call but the tuner."""

    def __init__(self, a, b, c, alpha, beta, out, dtype, accuracy, deterministic, workspace, stream, bias=None,
                 activation="none", residual=None, gated=False):
        alpha = _scalar(alpha, "alpha")
        beta = _scalar(beta, "beta") if beta is not None else 0j if c is None else 1 + 0j
        if c is None and beta != 0:
            raise InvalidArgument(f"c is missing, and beta is {beta if beta.imag else beta.real}; should be given, or beta be 0")
        named = [("a", a), ("b", b)]
        for name, array in (("c", c), ("bias", bias), ("residual", residual), ("out", out)):
            if array is not None:
                named.append((name, array))
        items, self.stream, owner = _arrays.gather(named, stream)
        self.device, self.out = items[0].device, out
        d = items[-1].writable() if out is not None else None
        self.items = {name: item for (name, _), item in zip(named, items)}
        c_item, bias_item, more = (self.items.get(name) for name in ("c", "bias", "residual"))
        self.layout = _layout(items[0].view, items[1].view, c_item and c_item.view, d and d.view,
                              None if dtype is None else _arrays.dtype_name(dtype), beta != 0,
                              _c.choice(accuracy, _c.ACCURACIES, "accuracy"), _c.flag(deterministic, "deterministic"),
                              _c.integer(workspace, "workspace", 0, 2**63 - 1), bias_item and bias_item.view,
                              _c.choice(activation, _c.ACTIVATIONS, "activation"), more and more.view,
                              _c.flag(gated, "gated"))
        for name, number in (("alpha", alpha), ("beta", beta)):
            if number.imag != 0 and self.layout.dtype not in ("c64", "c128"):
                raise InvalidArgument(f"{name} is {number}; should be real for arrays of {self.layout.dtype}")
        if d is None:
            self.out = _arrays.empty(items[0], self.layout.shape, self.layout.dtype)
            d = _arrays.made_for(self.out, self.stream, owner)
        self.operands = _c.GemmOperands(alpha=alpha.real, a=items[0].data or None, b=items[1].data or None,
                                        beta=beta.real, c=c_item and c_item.data or None, d=d.data or None,
                                        alpha_imag=alpha.imag, beta_imag=beta.imag,
                                        bias=bias_item and bias_item.data or None,
                                        residual=more and more.data or None)


def _pack(stack, tuner, stream, item, shape, strides, copy_shape, copy_strides):
    """The address of a packed copy: memory in stream order, which `stack` frees in stream order too."""
    out = ctypes.c_void_p()
    _c.call("attune_alloc", ctypes.byref(out), stream.handle,
            _arrays.count(copy_shape) * _arrays.ITEM_BYTES[item.dtype])
    stack.callback(_c.call, "attune_free", out.value, stream.handle)
    source = _arrays.tensor(item.name, item.data, item.dtype, shape, strides)
    target = _arrays.tensor(item.name, out.value, item.dtype, copy_shape, copy_strides)
    _c.call("attune_tensor_copy", tuner, stream.handle, ctypes.byref(target), ctypes.byref(source))
    return out.value


def gemm(a, b, c=None, *, alpha: complex = 1.0, beta: "complex | None" = None, bias=None, activation: str = "none",
         residual=None, gated: bool = False, out=None, dtype=None, accuracy: str = "strict", deterministic: bool = False,
         workspace: int = 0, tuner: "_tuner.Tuner | None" = None, stream=None):
    """activation(alpha a @ b + beta c + bias) + residual, into `out` or a new array of a's package, which is returned.

    a, b: matrices, vectors or batches of matrices, as in numpy.matmul, of f64, f32, f16, bf16, c64 or c128, on one device.
    Rows, columns and transposes are used where they lie; other strides are packed first. c: broadcasts to the result;
    beta is 1 if c is given. out: an array whose rows or columns are contiguous; it may be c, and overlaps neither a nor b.
    bias: a vector, added to each row of a @ b, or a column of shape (rows, 1), added to each of its columns; of f32, too,
    where out is f16 or bf16. activation: "none", "relu", "gelu", "gelu_tanh", "silu", "sigmoid" or "tanh". residual:
    broadcasts to the result. gated: with z = alpha a @ b + bias, whose number of columns is even, the result has half of
    them: activation(first half) * second half + residual, without c.
    dtype: of a new result; f16 and bf16 inputs may have f32. accuracy: "strict", "equivalent" or "reduced".
    workspace: the most bytes; 0: the usual.

    On a GPU the call returns before the work is done. The work is in the order of `stream`: a stream of PyTorch or
    CuPy, or the number of a cudaStream_t; None: the current stream of the arrays' package, else the default one. The
    arrays' memory must stay until then, as for any work of that stream. Errors: attune.Error, with the reason.
    """
    product = _Product(a, b, c, alpha, beta, out, dtype, accuracy, deterministic, workspace, stream, bias, activation,
                       residual, gated)
    layout, where, operands = product.layout, product.stream, product.operands
    if layout.problem is None:
        return product.out
    with _tuner.of(tuner)._used(product.device) as handle, where.lock:
        if not layout.packs:
            _c.call("attune_gemm", handle, where.handle, ctypes.byref(layout.problem), ctypes.byref(operands))
            return product.out
        with contextlib.ExitStack() as stack:
            for name, *lies in layout.packs:
                setattr(operands, name, _pack(stack, handle, where, product.items[name], *lies))
            _c.call("attune_gemm", handle, where.handle, ctypes.byref(layout.problem), ctypes.byref(operands))
    return product.out


def gemm_problem(a, b, c=None, *, alpha: complex = 1.0, beta: "complex | None" = None, bias=None,
                 activation: str = "none", residual=None, gated: bool = False, out=None, dtype=None,
                 accuracy: str = "strict", deterministic: bool = False, workspace: int = 0) -> str:
    """The problem that attune.gemm would run with these arguments, as text for attune.tune and attune.explain."""
    product = _Product(a, b, c, alpha, beta, out, dtype, accuracy, deterministic, workspace, None, bias, activation,
                       residual, gated)
    layout, operands = product.layout, product.operands
    if layout.problem is None:
        raise InvalidArgument(f"out has shape {layout.shape}, without elements; should have some")
    for name, *_ in layout.packs:
        setattr(operands, name, _POINTER_OF_COPY)
    text = ctypes.create_string_buffer(_c.PROBLEM_CHARS)
    _c.call("attune_gemm_problem_format", text, len(text), ctypes.byref(layout.problem), ctypes.byref(operands))
    return text.value.decode()
