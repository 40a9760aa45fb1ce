# SPDX-License-Identifier: Apache-2.0
"""Made-up arrays for the tests of the Python package: producers of DLPack and of __cuda_array_interface__, right and
wrong, and a stand-in for a GPU that writes down which functions of the library are called."""
import ctypes

_function = lambda name, *types: ctypes.PYFUNCTYPE(*types)((name, ctypes.pythonapi))
_new = _function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
# In a destructor the capsule must not be counted again: it is an address there.
_pointer = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_is_valid = _function("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
NAMES = (b"dltensor", b"dltensor_versioned")
KINDS = {"f8": (2, 64), "f4": (2, 32), "f2": (2, 16), "i4": (0, 32), "i8": (0, 64), "u1": (1, 8), "b1": (6, 8)}


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


alive = {}  # by the address of what a capsule has: what keeps it there; a capsule's end takes it out


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _capsule_ends(capsule):
    for name in NAMES:
        if _is_valid(capsule, name):
            del alive[_pointer(capsule, name)]


class Producer:
    """An array of NumPy as another package would hand it out. What is given by name overrides what is true."""

    def __init__(self, array, versioned=True, flags=0, major=1, device=(1, 0), **wrong):
        self.array, self.versioned, self.flags, self.major = array, versioned, flags, major
        self.device, self.wrong = device, wrong
        self.asked = []  # the streams that it was asked to make its memory ready for

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        if not self.versioned and "max_version" in options:
            raise TypeError("an old producer has no max_version")
        self.asked.append(options["stream"])
        array = self.array
        made = Versioned(self.major, 0, None, None, self.flags) if self.versioned else Managed()
        tensor = made.tensor
        code, bits = KINDS[array.dtype.str[1:]]
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        strides = (ctypes.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
        given = {"data": array.ctypes.data, "device_type": self.device[0], "device_id": self.device[1],
                 "ndim": array.ndim, "code": code, "bits": bits, "lanes": 1, "shape": shape, "strides": strides,
                 "byte_offset": 0, **self.wrong}
        for name, value in given.items():
            if name in ("shape", "strides"):
                value = ctypes.cast(value, ctypes.POINTER(ctypes.c_int64)) if value else None
            setattr(tensor, name, value)
        alive[ctypes.addressof(made)] = made, shape, strides, array
        return _new(ctypes.addressof(made), NAMES[self.versioned], ctypes.cast(_capsule_ends, ctypes.c_void_p))


class Interface:
    """An object with __cuda_array_interface__ alone, or with __array_interface__ alone."""

    def __init__(self, which, **values):
        setattr(self, which, values)


class Recorder:
    """The library's functions with a GPU, "cuda:0", that is none: it writes calls down and does nothing. The memory
    of the arrays is the host's."""

    DEVICE, TUNER, COPY = 0xC0DA, 0x7, 0x100000

    def __init__(self, real):
        self.real, self.calls, self.streams, self.copies = real, [], {}, 0

    def __getitem__(self, name):
        return lambda *arguments: self.call(name, *arguments)

    @staticmethod
    def _value(x):
        return getattr(x, "value", x)

    def call(self, name, *arguments):
        out = getattr(arguments[0], "_obj", None) if arguments else None
        if name == "attune_device_get":
            out.value = self.DEVICE
        elif name == "attune_device_name":
            return b"cuda:0"
        elif name == "attune_stream_default":
            return 0x5000
        elif name == "attune_stream_wrap":
            out.value = 0x5000 + arguments[2]
        elif name == "attune_alloc":
            self.copies += 1
            out.value = self.COPY * self.copies
            self.calls.append(("alloc", self.copies, arguments[1]))
        elif name == "attune_free":
            self.calls.append(("free", arguments[0] // self.COPY, arguments[1]))
        elif name == "attune_tensor_copy":
            self.calls.append(("copy", arguments[2]._obj.data // self.COPY, arguments[1]))
        elif name == "attune_stream_wait_stream":
            self.calls.append(("wait", *arguments))
        elif name in ("attune_gemm", "attune_elementwise"):
            self.calls.append((name[7:], arguments[1]))
        elif name == "attune_pointer_get_info":
            out.kind, out.device = 4, self.DEVICE
        elif name == "attune_device_memory_info":
            self.calls.append(("memory", arguments[0]))
        elif name == "attune_device_synchronize":
            self.calls.append(("synchronize", arguments[0]))
        else:
            return self.real[name](*arguments)
        return 0
