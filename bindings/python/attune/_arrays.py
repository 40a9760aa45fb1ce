# SPDX-License-Identifier: Apache-2.0
"""Arrays of other packages as attune sees them: an address, a dtype, a shape, strides, a device. Nothing is copied.
NumPy's are taken by __array_interface__, PyTorch's, JAX's and CuPy's by DLPack, others also by
__cuda_array_interface__."""
import ctypes
import math
import sys

from . import _c, _streams
from ._errors import Error, InvalidArgument, OutOfMemory, Unsupported

_FROM_NUMPY = {"f8": "f64", "f4": "f32", "f2": "f16", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "u8",
               "u2": "u16", "u4": "u32", "u8": "u64", "b1": "bool", "c8": "c64", "c16": "c128"}
_FROM_NAME = {"bfloat16": "bf16", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2", "float16": "f16", "half": "f16",
              "float32": "f32", "float": "f32", "float64": "f64", "double": "f64", "complex64": "c64",
              "complex128": "c128", "bool": "bool", "bool_": "bool",
              **{f"{kind}{bits}": f"{kind[0]}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}}
_FROM_DLPACK = {(2, 64): "f64", (2, 32): "f32", (2, 16): "f16", (4, 16): "bf16", (0, 8): "i8", (0, 16): "i16",
                (0, 32): "i32", (0, 64): "i64", (1, 8): "u8", (1, 16): "u16", (1, 32): "u32", (1, 64): "u64",
                (6, 8): "bool", (10, 8): "f8e4m3", (12, 8): "f8e5m2", (5, 64): "c64", (5, 128): "c128"}
_TO_NAME = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f16": "float16", "f32": "float32",
            "f64": "float64", "c64": "complex64", "c128": "complex128", "bool": "bool",
            **{f"{kind[0]}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}}
ITEM_BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i32": 4, "i64": 8, "i8": 1, "i16": 2, "u8": 1, "u16": 2,
              "u32": 4, "u64": 8, "bool": 1, "f8e4m3": 1, "f8e5m2": 1, "c64": 8, "c128": 16}
_TORCH_BYTES = {"torch.float8_e4m3fn": "f8e4m3", "torch.float8_e5m2": "f8e5m2"}
# Memory that a CPU uses, and memory that a GPU uses, by DLPack's numbers.
_DLPACK_HOST, _DLPACK_CUDA = (1, 3), (2, 13)
_READ_ONLY = 1


class Operand:
    """One array: `strides` are in elements, `device` is "host" or "cuda:N". `keep` lives as long as the address is
    used."""

    __slots__ = ("name", "data", "dtype", "shape", "strides", "device", "read_only", "keep", "package", "stream")

    def __init__(self, name, data, dtype, shape, strides, device, read_only, keep, package, stream=None):
        self.name, self.data, self.dtype = name, data, dtype
        self.shape, self.strides, self.device = tuple(shape), tuple(strides), device
        self.read_only, self.keep, self.package, self.stream = read_only, keep, package, stream

    def writable(self):
        if self.read_only:
            raise InvalidArgument(f"{self.name} is read-only; should be an array that may be written")
        return self

    @property
    def view(self):
        """All of it but where it is."""
        return self.dtype, self.shape, self.strides


def tensor(name, data, dtype, shape, strides, called=None):
    """A tensor of the library, which keeps its strides alive. `called`: its name in an expression."""
    dims = len(shape)
    if dims > _c.DIMS:
        raise InvalidArgument(f"{name} has {dims} dimensions; should have at most {_c.DIMS}")
    steps = (ctypes.c_int64 * max(dims, 1))(*strides)
    sizes = (ctypes.c_int64 * _c.DIMS)(*shape)
    return _c.Tensor(name=called, data=data or None, dtype=_c.DTYPES[dtype], dims=dims, sizes=sizes,
                     strides=ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64)))


def packed(shape):
    """Strides of a row-major array."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def dtype_name(dtype):
    """attune's name of a dtype: "f32", "float32", a dtype of NumPy or PyTorch, or float, say."""
    if isinstance(dtype, str):
        word = dtype
    elif isinstance(dtype, type):
        word = {float: "f64", int: "i64", bool: "bool", complex: "c128"}.get(dtype, dtype.__name__)
    else:
        word = getattr(dtype, "name", None) or str(dtype)
    word = str(word).rsplit(".", 1)[-1]
    name = word if word in _c.DTYPES else _FROM_NAME.get(word)
    if name is None:
        raise InvalidArgument(f"dtype is {dtype!r}; should be one of {', '.join(_c.DTYPES)}")
    return name


def _package(array):
    for name, kind in (("numpy", "ndarray"), ("torch", "Tensor"), ("cupy", "ndarray")):
        module = sys.modules.get(name)
        if module is not None and isinstance(array, getattr(module, kind, ())):
            return name
    return type(array).__module__.split(".", 1)[0]


def _check_shape(name, shape, strides):
    """Sizes that the library's 64 bits can hold."""
    most = 2**62
    if any(not isinstance(x, int) for x in (*shape, *strides)) or len(shape) != len(strides):
        raise InvalidArgument(f"{name} has shape {shape} and strides {strides}; should be as many integers each")
    if any(size < 0 or size > most for size in shape) or any(abs(stride) > most for stride in strides):
        raise InvalidArgument(
            f"{name} has shape {shape} and strides {strides}; should be sizes of 0 or more, below 2^62")


def _from_interface(name, interface, device, package, array):
    """What __array_interface__ and __cuda_array_interface__ say; the two are alike."""
    try:
        typestr, shape = interface["typestr"], tuple(int(size) for size in interface["shape"])
        address, read_only = interface["data"]
        address = int(address or 0)
        steps = interface.get("strides")
        steps = None if steps is None else tuple(int(step) for step in steps)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidArgument(f"{name} describes its memory in no way that attune can read; should be an array with "
                              "data, shape and typestr") from None
    dtype = getattr(getattr(array, "dtype", None), "name", None)
    if dtype in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):  # NumPy's own words have none
        dtype = _FROM_NAME[dtype]
    else:
        dtype = _FROM_NUMPY.get(str(typestr)[1:])
    foreign = ">" if sys.byteorder == "little" else "<"
    if dtype is None or (str(typestr)[0] == foreign and ITEM_BYTES[dtype] > 1):
        raise InvalidArgument(f"{name} has elements of type {getattr(array, 'dtype', typestr)}; should be one of "
                              f"{', '.join(_c.DTYPES)}, in this machine's byte order")
    if interface.get("mask") is not None:
        raise InvalidArgument(f"{name} has a mask; should be an array without one")
    bytes_each = ITEM_BYTES[dtype]
    if steps is None:
        strides = packed(shape)
    elif any(step % bytes_each for step, size in zip(steps, shape) if size > 1):
        raise InvalidArgument(f"{name} has strides of {steps} bytes; should be multiples of its elements' {bytes_each}")
    else:
        strides = tuple(step // bytes_each for step in steps)
    _check_shape(name, shape, strides)
    return Operand(name, address, dtype, shape, strides, device, bool(read_only), (array, interface), package,
                   interface.get("stream"))


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _DLVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _DLTensor)]


# Functions of their own: those of ctypes.pythonapi are one for all packages, which set their types as they like.
_is_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))


def _capsule(name, array, stream):
    """A capsule of DLPack. It is not taken over: its own destructor gives it back when it goes."""
    try:
        try:
            return array.__dlpack__(stream=stream, max_version=(1, 0))
        except TypeError:  # from before version 1
            return array.__dlpack__(stream=stream)
    except (BufferError, RuntimeError, ValueError, TypeError) as error:
        raise InvalidArgument(f"{name} cannot be had by DLPack: {error}") from error


def _from_dlpack(name, array, stream, package):
    capsule = _capsule(name, array, stream)
    read_only = package in ("jax", "jaxlib")  # immutable, also where its capsule does not say so
    if _is_capsule(capsule, b"dltensor_versioned"):
        managed = _DLVersioned.from_address(_pointer_of(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise Unsupported(f"{name} is of DLPack {managed.major}; should be of version 1")
        tensor, read_only = managed.tensor, read_only or bool(managed.flags & _READ_ONLY)
    elif _is_capsule(capsule, b"dltensor"):
        tensor = _DLTensor.from_address(_pointer_of(capsule, b"dltensor"))
    else:
        raise InvalidArgument(f"{name} gives no capsule of DLPack that is unused; should be an array")
    dtype = _FROM_DLPACK.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise InvalidArgument(f"{name} has elements of {tensor.lanes} x {tensor.bits} bits, DLPack's kind "
                              f"{tensor.code}; should be one of {', '.join(_c.DTYPES)}")
    if not 0 <= tensor.ndim <= 64 or (tensor.ndim and not tensor.shape):
        raise InvalidArgument(f"{name} has {tensor.ndim} dimensions; should have a shape of 0 to {_c.DIMS}")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else packed(shape)
    _check_shape(name, shape, strides)
    data = tensor.data + tensor.byte_offset if tensor.data else 0
    device = _dlpack_device(name, (tensor.device_type, tensor.device_id))
    return Operand(name, data, dtype, shape, strides, device, read_only, (array, capsule), package)


def _dlpack_device(name, pair):
    try:
        kind, number = (int(part) for part in pair)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name} has {pair!r} as its device; should be a pair of DLPack's numbers") from None
    if kind in _DLPACK_HOST:
        return "host"
    if kind in _DLPACK_CUDA:
        return f"cuda:{number}"
    raise Unsupported(f"{name} is memory of DLPack's device {kind}; should be the CPU's (1, 3) or CUDA's (2, 13)")


def _cuda_device(name, address):
    """The GPU whose memory an address is."""
    found = ctypes.c_void_p()
    _c.call("attune_device_get", ctypes.byref(found), b"cuda")  # without any GPU it says so
    info = _c.PointerInfo()
    _c.call("attune_pointer_get_info", ctypes.byref(info), address or None)
    if info.device and info.kind != _c.MEMORY_KINDS["host"]:
        found = info.device
    elif address:
        raise InvalidArgument(f"{name} is at {address:#x}, which is no memory of a GPU; should be")
    return _c.function("attune_device_name")(found).decode()


def _place(name, array):
    """The device of an array that DLPack is for, before its memory is asked for; None: another kind of array."""
    kind = type(array)
    if hasattr(kind, "__dlpack__") and hasattr(kind, "__dlpack_device__") and not hasattr(kind, "__array_interface__"):
        # PyTorch asks CUDA whether memory of the host is pinned, to say so here; in a child of fork that fails.
        if _package(array) == "torch" and getattr(array.device, "type", None) == "cpu":
            return "host"
        try:
            return _dlpack_device(name, array.__dlpack_device__())
        except (BufferError, RuntimeError, ValueError, TypeError) as error:
            if isinstance(error, Error):
                raise
            raise InvalidArgument(f"{name} cannot be had by DLPack: {error}") from error
    return None


def _waiting(stream, current):
    """What a producer of DLPack is given: the stream that must wait for its work; -1: the stream is its own."""
    return None if stream.device == "host" else -1 if current else stream.native or _streams.LEGACY


def made_for(array, stream, owner):
    """What `empty` made, as an operand for work on `stream`: its package may have used the memory before, on a stream
    of its own."""
    place = _place("out", array)
    return operand("out", array, _waiting(stream, owner == _package(array)) if place is not None else None)


def gather(named, stream):
    """Operands of (name, array) pairs, all of one device, the stream that their work is given to, and the package
    that has it as its current one, if one has. A producer of DLPack is asked for its memory when the stream is known:
    it makes the stream wait for its own work where that is another one."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and stream is None and all(type(array) is numpy.ndarray for _, array in named):
        return [_from_numpy(name, array) for name, array in named], _streams.host(), "numpy"
    places, made = [], {}
    for name, array in named:
        place = _place(name, array)
        if place is None:
            made[name] = operand(name, array)
            place = made[name].device
        places.append(place)
        if place != places[0]:
            raise InvalidArgument(f"{name} is on {place}, and {named[0][0]} on {places[0]}; should be on one device")
    chosen, owner = _streams.choose(stream, places[0], [_package(array) for _, array in named])
    for name, array in named:
        if name not in made:
            made[name] = operand(name, array, _waiting(chosen, owner == _package(array)))
        if made[name].stream is not None:
            _streams.follow(chosen, made[name].stream)
    return [made[name] for name, _ in named], chosen, owner


_numpy_dtypes: "dict[object, str]" = {}


def _from_numpy(name, array):
    """The usual case in the shortest way: a plain array of NumPy."""
    dtype = _numpy_dtypes.get(array.dtype)
    if dtype is None:
        dtype = _from_interface(name, array.__array_interface__, "host", "numpy", array).dtype
        _numpy_dtypes[array.dtype] = dtype
    bytes_each, steps = ITEM_BYTES[dtype], array.strides
    address, read_only = array.__array_interface__["data"]
    strides = tuple([step // bytes_each for step in steps])
    if any(step % bytes_each for step in steps):
        return _from_interface(name, array.__array_interface__, "host", "numpy", array)
    return Operand(name, address, dtype, array.shape, strides, "host", read_only, array, "numpy")


def operand(name, array, stream=None):
    """`array` as an operand. `stream`: what its __dlpack__ is given; a number for an array of a GPU, else None."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and type(array) is numpy.ndarray:
        return _from_numpy(name, array)
    package = _package(array)
    if package == "numpy" and isinstance(array, numpy.ma.MaskedArray):
        raise InvalidArgument(f"{name} is a masked array; should be an array without a mask")
    kind = type(array)
    if isinstance(array, type):
        raise InvalidArgument(f"{name} is a class; should be an array")
    interface = getattr(array, "__array_interface__", None)
    if interface is not None:
        return _from_interface(name, interface, "host", package, array)
    if package == "torch" and str(getattr(array, "dtype", "")) in _TORCH_BYTES:  # not every PyTorch hands these out
        made = _from_dlpack(name, array.view(sys.modules["torch"].uint8), stream, package)
        made.dtype, made.keep = _TORCH_BYTES[str(array.dtype)], (array, *made.keep)
        return made
    if hasattr(kind, "__dlpack__") and hasattr(kind, "__dlpack_device__"):
        return _from_dlpack(name, array, stream, package)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        made = _from_interface(name, interface, "cuda", package, array)
        made.device = _cuda_device(name, made.data)
        return made
    raise InvalidArgument(f"{name} is a {kind.__name__}; should be an array of NumPy, PyTorch or CuPy, or another one "
                          "with __dlpack__, __array_interface__ or __cuda_array_interface__")


def empty(like, shape, dtype):
    """A new array of the package and the device of `like`, an operand; row-major."""
    try:
        made = _empty(like, shape, dtype)
    except (MemoryError, ValueError, RuntimeError) as error:
        if isinstance(error, Error):
            raise
        raise OutOfMemory(f"a result of shape {shape} and dtype {dtype} cannot be made: {error}") from error
    if made is None:
        raise InvalidArgument(
            f"out is missing, and attune makes no arrays of {like.package} on {like.device}; should be given")
    return made


def _empty(like, shape, dtype):
    word = _TO_NAME[dtype]
    if like.package == "torch":
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, word), device=like.keep[0].device)
    if like.package == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(int(like.device.split(":")[1])):
            return cupy.empty(shape, dtype=_numpy_dtype(cupy, word))
    numpy = _numpy() if like.device == "host" else None
    return numpy.empty(shape, dtype=_numpy_dtype(numpy, word)) if numpy is not None else None


def _numpy():
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _numpy_dtype(module, word):
    if word in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        try:
            import ml_dtypes
        except ImportError:
            raise InvalidArgument(f"out is missing, and NumPy has no {word} without the package ml_dtypes; "
                                  "should be given") from None
        return module.dtype(getattr(ml_dtypes, word))
    return module.dtype(word)


def broadcast(named):
    """The common shape of (name, shape) pairs, by NumPy's rule."""
    shape = ()
    for name, other in named:
        if len(other) > len(shape):
            shape, other = other, shape
        padded = (1,) * (len(shape) - len(other)) + tuple(other)
        if any(a != b and a != 1 and b != 1 for a, b in zip(shape, padded)):
            raise InvalidArgument(f"{name} does not broadcast: shapes are " +
                                  ", ".join(f"{n} {tuple(s)}" for n, s in named))
        shape = tuple(b if a == 1 else a for a, b in zip(shape, padded))
    return shape


def broadcasts(own, shape):
    """Does an array of shape `own` broadcast to `shape`?"""
    missing = len(shape) - len(own)
    return missing >= 0 and all(size in (1, want) for size, want in zip(own, shape[missing:]))


def broadcast_strides(own, strides, shape):
    """The strides of an array of shape `own` in a shape that it broadcasts to."""
    missing = len(shape) - len(own)
    return (0,) * missing + tuple(0 if size == 1 and want != 1 else stride
                                  for size, stride, want in zip(own, strides, shape[missing:]))


def count(shape):
    return math.prod(shape)
