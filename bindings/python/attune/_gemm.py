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
    is packed first: (letter, shape, strides, shape and strides of the copy)."""

    def __init__(self, a, b, c, out, dtype, reads_c, accuracy, deterministic, workspace):
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
        if c:
            self._check_c(c)
        if _arrays.count(self.shape):
            self.problem = self._problem(a[0], out)
            self.problem.contract = _c.Contract(accuracy=accuracy, deterministic=deterministic, workspace_cap=workspace)
            if c and reads_c:
                self._place_c(c)

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
        self.shape = (*self.batch, *(() if self.row else (self.m,)), *(() if self.column else (self.n,)))
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

    def _check_c(self, c):
        if c[0] != self.dtype:
            raise InvalidArgument(f"c has dtype {c[0]}; should have {self.dtype}, as out")
        if not _arrays.broadcasts(c[1], self.shape):
            raise InvalidArgument(f"c has shape {c[1]}; should broadcast to out's, {self.shape}")

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

    def _place_c(self, c):
        """C is never transposed, so it may have to be packed for its order; a bias is spread."""
        strides = _arrays.broadcast_strides(c[1], c[2], self.shape)
        x = _Matrix(*self._whole((None, self.shape, strides), self.row, self.column), self.batch)
        if not x.usable(self.row_major):
            x = self._pack("c", x, self.row_major)
        self._place("c", x, self.row_major)

    def _pack(self, letter, x, row_major):
        copy = x.packed(row_major)
        self.packs.append((letter, x.shape, x.strides, copy.shape, copy.strides))
        return copy

    def _place(self, letter, x, row_major):
        setattr(self.problem, "ld" + letter, x.leading(row_major))
        stride = 0 if self.problem.batch == 1 else x.batch_stride or _c.BROADCAST
        setattr(self.problem, "stride_" + letter, stride)


_layout = functools.lru_cache(maxsize=4096)(_Layout)


def _scalar(value, name):
    """A number, as a complex one."""
    return complex(value) if isinstance(value, complex) else complex(_c.number(value, name))


class _Product:
    """All of a call but the tuner."""

    def __init__(self, a, b, c, alpha, beta, out, dtype, accuracy, deterministic, workspace, stream):
        alpha = _scalar(alpha, "alpha")
        beta = _scalar(beta, "beta") if beta is not None else 0j if c is None else 1 + 0j
        if c is None and beta != 0:
            raise InvalidArgument(f"c is missing, and beta is {beta if beta.imag else beta.real}; should be given, or beta be 0")
        named = [("a", a), ("b", b)]
        if c is not None:
            named.append(("c", c))
        if out is not None:
            named.append(("out", out))
        items, self.stream, owner = _arrays.gather(named, stream)
        self.device, self.out = items[0].device, out
        d = items[-1].writable() if out is not None else None
        c_item = items[2] if c is not None else None
        self.layout = _layout(items[0].view, items[1].view, c_item and c_item.view, d and d.view,
                              None if dtype is None else _arrays.dtype_name(dtype), beta != 0,
                              _c.choice(accuracy, _c.ACCURACIES, "accuracy"), _c.flag(deterministic, "deterministic"),
                              _c.integer(workspace, "workspace", 0, 2**63 - 1))
        for name, number in (("alpha", alpha), ("beta", beta)):
            if number.imag != 0 and self.layout.dtype not in ("c64", "c128"):
                raise InvalidArgument(f"{name} is {number}; should be real for arrays of {self.layout.dtype}")
        if d is None:
            self.out = _arrays.empty(items[0], self.layout.shape, self.layout.dtype)
            d = _arrays.made_for(self.out, self.stream, owner)
        self.items = {"a": items[0], "b": items[1], "c": c_item}
        self.operands = _c.GemmOperands(alpha=alpha.real, a=items[0].data or None, b=items[1].data or None,
                                        beta=beta.real, c=c_item and c_item.data or None, d=d.data or None,
                                        alpha_imag=alpha.imag, beta_imag=beta.imag)


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


def gemm(a, b, c=None, *, alpha: complex = 1.0, beta: "complex | None" = None, out=None, dtype=None,
         accuracy: str = "strict", deterministic: bool = False, workspace: int = 0,
         tuner: "_tuner.Tuner | None" = None, stream=None):
    """alpha a @ b + beta c, into `out` or a new array of a's package, which is returned.

    a, b: matrices, vectors or batches of matrices, as in numpy.matmul, of f64, f32, f16 or bf16, on the host also c64 or c128,
    on one device. Rows,
    columns and transposes are used where they lie; other strides are packed first. c: broadcasts to the result; beta
    is 1 if c is given. out: an array whose rows or columns are contiguous; it may be c, and overlaps neither a nor b.
    dtype: of a new result; f16 and bf16 inputs may have f32. accuracy: "strict", "equivalent" or "reduced".
    workspace: the most bytes; 0: the usual.

    On a GPU the call returns before the work is done. The work is in the order of `stream`: a stream of PyTorch or
    CuPy, or the number of a cudaStream_t; None: the current stream of the arrays' package, else the default one. The
    arrays' memory must stay until then, as for any work of that stream. Errors: attune.Error, with the reason.
    """
    product = _Product(a, b, c, alpha, beta, out, dtype, accuracy, deterministic, workspace, stream)
    layout, where, operands = product.layout, product.stream, product.operands
    if layout.problem is None:
        return product.out
    with _tuner.of(tuner)._used(product.device) as handle, where.lock:
        if not layout.packs:
            _c.call("attune_gemm", handle, where.handle, ctypes.byref(layout.problem), ctypes.byref(operands))
            return product.out
        with contextlib.ExitStack() as stack:
            for letter, *lies in layout.packs:
                setattr(operands, letter, _pack(stack, handle, where, product.items[letter], *lies))
            _c.call("attune_gemm", handle, where.handle, ctypes.byref(layout.problem), ctypes.byref(operands))
    return product.out


def gemm_problem(a, b, c=None, *, alpha: complex = 1.0, beta: "complex | None" = None, out=None, dtype=None,
                 accuracy: str = "strict", deterministic: bool = False, workspace: int = 0) -> str:
    """The problem that attune.gemm would run with these arguments, as text for attune.tune and attune.explain."""
    product = _Product(a, b, c, alpha, beta, out, dtype, accuracy, deterministic, workspace, None)
    layout, operands = product.layout, product.operands
    if layout.problem is None:
        raise InvalidArgument(f"out has shape {layout.shape}, without elements; should have some")
    for letter, *_ in layout.packs:
        setattr(operands, letter, _POINTER_OF_COPY)
    text = ctypes.create_string_buffer(_c.PROBLEM_CHARS)
    _c.call("attune_gemm_problem_format", text, len(text), ctypes.byref(layout.problem), ctypes.byref(operands))
    return text.value.decode()
