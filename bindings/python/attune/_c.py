# SPDX-License-Identifier: Apache-2.0
"""The C library as ctypes has it: the structs, enumerations and functions of its public headers that this package
uses, and nowhere else in it. tests/bindings/test_mirrors.py compares all of them with the headers."""
import ctypes
import operator
import os
import re
import threading

from . import _errors
from ._errors import ERRORS, Error, InvalidArgument, LibraryNotFound

VERSION = (0, 1)  # of the headers: a library with another minor version may have other structs
DIMS = 8
PROBLEM_CHARS = 4096
BROADCAST = -1

DTYPES = {"f64": 1, "f32": 2, "f16": 3, "bf16": 4, "i32": 5, "i64": 6, "i8": 7, "i16": 8, "u8": 9, "u16": 10, "u32": 11,
          "u64": 12, "bool": 13, "f8e4m3": 14, "f8e5m2": 15, "c64": 16, "c128": 17}
TRANSPOSES = {"n": 0, "t": 1, "c": 2}
LAYOUTS = {"column_major": 0, "row_major": 1}
ACTIVATIONS = {"none": 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4, "sigmoid": 5, "tanh": 6}
ACCURACIES = {"strict": 0, "equivalent": 1, "reduced": 2}
MODES = {"off": 1, "cached": 2, "record": 3, "tune": 4}
MEASURES = {"auto": 0, "cold_graph": 1, "cold_eager": 2, "hot_graph": 3, "hot_eager": 4}
SOURCES = {"default": 1, "neighbour": 2, "stored": 3, "system": 4, "tuned": 5}
DEVICE_KINDS = {"host": 1, "cuda": 2}
MEMORY_KINDS = {"unknown": 0, "host": 1, "pinned": 2, "managed": 3, "device": 4}

_int, _i64, _size, _double, _pointer, _text = (ctypes.c_int, ctypes.c_int64, ctypes.c_size_t, ctypes.c_double,
                                               ctypes.c_void_p, ctypes.c_char_p)
_char = ctypes.c_char


class Contract(ctypes.Structure):
    _fields_ = [("accuracy", _int), ("deterministic", _int), ("workspace_cap", _size)]


class GemmEpilogue(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint8) for name in (
        "bias", "bias_dtype", "activation", "aux", "gradient", "bias_gradient", "residual", "clamp")]


class GemmScaling(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint8) for name in (
        "dtype_b", "scale_a", "scale_b", "scale_d", "amax_d", "zero_a", "zero_b", "reserved")]


class GemmProblem(ctypes.Structure):
    _fields_ = [("size", _size), ("dtype", _int), ("dtype_out", _int), ("layout", _int), ("trans_a", _int),
                ("trans_b", _int),
                ("m", _i64), ("n", _i64), ("k", _i64), ("batch", _i64),
                ("lda", _i64), ("ldb", _i64), ("ldc", _i64), ("ldd", _i64),
                ("stride_a", _i64), ("stride_b", _i64), ("stride_c", _i64), ("stride_d", _i64), ("contract", Contract),
                ("epilogue", GemmEpilogue), ("scaling", GemmScaling),
                ("pointers", ctypes.c_uint8), ("alignment", ctypes.c_uint8), ("gated", ctypes.c_uint8),
                ("reserved", ctypes.c_uint8 * 5),
                ("ld_aux", _i64), ("ld_residual", _i64), ("stride_aux", _i64), ("stride_residual", _i64)]


class GemmOperands(ctypes.Structure):
    _fields_ = [("size", _size), ("alpha", _double), ("a", _pointer), ("b", _pointer),
                ("beta", _double), ("c", _pointer), ("d", _pointer), ("alpha_imag", _double), ("beta_imag", _double),
                ("bias", _pointer), ("residual", _pointer), ("aux", _pointer), ("bias_gradient", _pointer),
                ("clamp_min", _double), ("clamp_max", _double),
                ("scale_a", _pointer), ("scale_b", _pointer), ("scale_d", _pointer), ("amax_d", _pointer),
                ("zero_a", _pointer), ("zero_b", _pointer)]


class Tensor(ctypes.Structure):
    _fields_ = [("name", _text), ("data", _pointer), ("dtype", _int), ("dims", _int), ("sizes", _i64 * DIMS),
                ("strides", ctypes.POINTER(_i64))]


class Scalar(ctypes.Structure):
    _fields_ = [("name", _text), ("kind", _int), ("value", _double), ("imaginary", _double), ("integer", _i64)]


class ElementwiseOperands(ctypes.Structure):
    _fields_ = [("size", _size), ("outputs", ctypes.POINTER(Tensor)), ("output_count", _int),
                ("inputs", ctypes.POINTER(Tensor)), ("input_count", _int),
                ("scalars", ctypes.POINTER(Scalar)), ("scalar_count", _int),
                ("generator", _pointer), ("accuracy", _int)]


class ElementwiseWords(ctypes.Structure):
    _fields_ = [("expression", _text), ("shape", _text), ("dtype", _text), ("inputs", _text), ("outputs", _text),
                ("scalars", _text), ("accuracy", _int)]


class TunerOptions(ctypes.Structure):
    _fields_ = [("size", _size), ("database", _text), ("system_database", _text), ("mode", _int),
                ("budget_ms", _double), ("total_budget_ms", _double), ("measure", _int)]


class DecisionInfo(ctypes.Structure):
    _fields_ = [("size", _size), ("device", _text), ("implementation", _text), ("implementation_version", _int),
                ("source", _int), ("configuration", _text), ("time_ns", _double), ("spread", _double),
                ("default_implementation", _text), ("default_time_ns", _double), ("runner_up", _text),
                ("runner_up_configuration", _text), ("runner_up_time_ns", _double), ("measure", _text),
                ("samples", _int), ("candidates", _int), ("rejected", _int), ("disturbed", _int),
                ("max_error", _double), ("tuning_ms", _double), ("tuned_at", _i64), ("complete", _int),
                ("unsure", _int), ("note", _text), ("placement_spread", _double), ("changed", _text),
                ("problem", _text)]


class SearchOptions(ctypes.Structure):
    _fields_ = [("size", _size), ("rounds", _int), ("warmups", _int), ("warmup_ms", _double), ("candidate_ms", _double),
                ("configurations", _int), ("rotate_mb", _int), ("tolerance", _double), ("no_guess", _int)]


class TuneOptions(ctypes.Structure):
    _fields_ = [("size", _size), ("budget_ms", _double), ("most_ms", _double), ("force", _int), ("no_wait", _int)]


class DeviceProperties(ctypes.Structure):
    _fields_ = [("size", _size), ("kind", _int), ("name", _char * 128), ("memory_bytes", ctypes.c_uint64),
                ("processors", _int),
                ("capability_major", _int), ("capability_minor", _int), ("cache_bytes", ctypes.c_uint64),
                ("driver_version", _int), ("features", _char * 128)]


class PointerInfo(ctypes.Structure):
    _fields_ = [("size", _size), ("kind", _int), ("device", _pointer), ("base", _pointer), ("bytes", _size),
                ("held", _int)]


STRUCTS = {"attune_contract": Contract, "attune_gemm_epilogue": GemmEpilogue,
           "attune_gemm_scaling": GemmScaling, "attune_gemm_problem": GemmProblem, "attune_gemm_operands": GemmOperands,
           "attune_tensor": Tensor, "attune_scalar": Scalar, "attune_elementwise_operands": ElementwiseOperands,
           "attune_elementwise_words": ElementwiseWords, "attune_tuner_options": TunerOptions,
           "attune_tune_options": TuneOptions, "attune_decision_info": DecisionInfo,
           "attune_search_options": SearchOptions,
           "attune_device_properties": DeviceProperties,
           "attune_pointer_info": PointerInfo}
STATUSES = {word: getattr(_errors, word.upper()) for word in
            ("ok", "invalid_argument", "out_of_memory", "unsupported", "not_found", "not_ready", "device_error",
             "capturing", "bad_data", "permission", "io_error", "busy", "budget_exhausted", "internal")}
ENUMS = {"attune_status": STATUSES, "attune_dtype": DTYPES, "attune_transpose": TRANSPOSES, "attune_layout": LAYOUTS,
         "attune_activation": ACTIVATIONS, "attune_accuracy": ACCURACIES, "attune_mode": MODES,
         "attune_measure": MEASURES, "attune_source": SOURCES,
         "attune_device_kind": DEVICE_KINDS, "attune_memory_kind": MEMORY_KINDS}

_at = ctypes.POINTER
STATUS = object()  # as a result: an attune_status, which `call` checks
FUNCTIONS = {
    "attune_version": (_text, []),
    "attune_last_message": (_text, []),
    "attune_device_count": (_int, []),
    "attune_device_at": (STATUS, [_at(_pointer), _int]),
    "attune_device_get": (STATUS, [_at(_pointer), _text]),
    "attune_device_name": (_text, [_pointer]),
    "attune_device_get_properties": (STATUS, [_pointer, _at(DeviceProperties)]),
    "attune_device_memory_info": (STATUS, [_pointer, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64)]),
    "attune_device_synchronize": (STATUS, [_pointer]),
    "attune_pointer_get_info": (STATUS, [_at(PointerInfo), _pointer]),
    "attune_stream_default": (_pointer, [_pointer]),
    "attune_stream_wrap": (STATUS, [_at(_pointer), _pointer, _pointer]),
    "attune_stream_wait_stream": (STATUS, [_pointer, _pointer]),
    "attune_tuner_create": (STATUS, [_at(_pointer), _at(TunerOptions)]),
    "attune_tuner_destroy": (None, [_pointer]),
    "attune_tuner_database_status": (STATUS, [_pointer]),
    "attune_tuner_set_mode": (STATUS, [_pointer, _int]),
    "attune_tuner_set_search": (STATUS, [_pointer, _at(SearchOptions)]),
    "attune_tune": (STATUS, [_pointer, _pointer, _text, _at(TuneOptions), _pointer]),
    "attune_explain": (STATUS, [_pointer, _pointer, _text, _pointer]),
    "attune_decision_create": (STATUS, [_at(_pointer), _pointer]),
    "attune_decision_get_info": (STATUS, [_pointer, _at(DecisionInfo)]),
    "attune_decision_destroy": (None, [_pointer]),
    "attune_alloc": (STATUS, [_at(_pointer), _pointer, _size]),
    "attune_free": (STATUS, [_pointer, _pointer]),
    "attune_tensor_copy": (STATUS, [_pointer, _pointer, _at(Tensor), _at(Tensor)]),
    "attune_gemm": (STATUS, [_pointer, _pointer, _at(GemmProblem), _at(GemmOperands)]),
    "attune_gemm_problem_format": (STATUS, [_text, _size, _at(GemmProblem), _at(GemmOperands)]),
    "attune_elementwise": (STATUS, [_pointer, _pointer, _text, _at(ElementwiseOperands)]),
    "attune_elementwise_problem_format": (STATUS, [_text, _size, _text, _at(ElementwiseOperands)]),
    "attune_evaluation_create": (STATUS, [_at(_pointer), _at(ElementwiseWords)]),
    "attune_evaluation_operands": (_at(ElementwiseOperands), [_pointer]),
    "attune_evaluation_destroy": (None, [_pointer]),
    "attune_generator_create": (STATUS, [_at(_pointer), ctypes.c_uint64]),
    "attune_generator_destroy": (None, [_pointer]),
}

_lock = threading.Lock()


def _after_fork():
    """The child's: another thread of the parent may have held the parent's."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
_loaded = None
_last_message = None


def _open(path):
    """The library at `path`; None: the one in this package, else the system's."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libattune.so.0")
    names = [os.fspath(path)] if path is not None else [here, "libattune.so.0", "libattune.so"]
    failures = []
    for name in names:
        if name == here and not os.path.exists(here):
            continue
        try:
            return ctypes.CDLL(name), name
        except OSError as error:
            failures.append(str(error))
    raise LibraryNotFound(f"libattune cannot be loaded ({'; '.join(failures)}); should be in this package, found by "
                          "the dynamic loader (LD_LIBRARY_PATH, ldconfig), or named with attune.load(path)")


def _bind(library, name):
    """A library whose functions have types; those that return a status raise."""
    functions = {}
    for function, (result, arguments) in FUNCTIONS.items():
        try:
            c = getattr(library, function)
        except AttributeError:
            raise LibraryNotFound(f"{name} has no {function}; should be libattune {VERSION[0]}.{VERSION[1]}") from None
        c.argtypes, c.restype = arguments, _int if result is STATUS else result
        functions[function] = c
    version = functions["attune_version"]().decode()
    if tuple(int(part) for part in version.split(".")[:2]) != VERSION:
        raise LibraryNotFound(f"{name} is libattune {version}; this package is for {VERSION[0]}.{VERSION[1]}")
    return functions


def load(path=None):
    """Loads libattune from `path`, or finds it: in this package, else by the dynamic loader. Any call does that where
    it was not done before. A second library is refused: its handles would not fit the first one's."""
    global _loaded, _last_message
    with _lock:
        if _loaded is None:
            library, name = _open(path)
            functions = _bind(library, name)
            _last_message = functions["attune_last_message"]
            _loaded = functions, name
        elif path is not None and os.path.realpath(os.fspath(path)) != os.path.realpath(_loaded[1]):
            raise InvalidArgument(f"{os.fspath(path)} cannot be loaded: {_loaded[1]} is in use; should be named before "
                                  "attune's first call")
        return _loaded[0]


def function(name):
    """The function of the library, with its types; the library is loaded if it is not."""
    return (_loaded[0] if _loaded else load())[name]


_WORDS = [(re.compile(pattern), word) for pattern, word in (
    (r"\boperands\.(?:d|outputs)\b", "out"),
    (r"\bproblem\.dtype_out is\b", "the dtype of out is"),
    (r"\b(?:operands|problem)\.(\w+)", r"\1"),
    (r": D is (0x\w+ to 0x\w+), ([ABC]) (?=0x)", lambda found: f": out is {found[1]}, {found[2].lower()} "),
    (r"\bis NULL\b", "is None"),
    (r"\battune_(gemm|elementwise|tune|explain)\b", r"attune.\1"))]


def reworded(message):
    """The library's message with the names of this package's arguments and functions instead of C's. The lines below
    the first one are a user's text and a place in it, and stay."""
    first, newline, rest = message.partition("\n")
    for pattern, word in _WORDS:
        first = pattern.sub(word, first)
    return first + newline + rest


def check(status):
    """Raises the exception of a status, with the message of this thread's latest failure."""
    if status:
        raise ERRORS.get(status, Error)(reworded(_last_message().decode("utf-8", "replace")), status)


def call(name, *arguments):
    """Calls a function that returns a status. The interpreter's lock is not held meanwhile."""
    status = function(name)(*arguments)
    if status:
        check(status)


def text(value, what):
    """A str as C has it: UTF-8 without a zero byte; None stays."""
    if value is None:
        return None
    try:
        encoded = os.fsencode(value) if isinstance(value, os.PathLike) else value.encode()
    except (AttributeError, UnicodeEncodeError):
        raise InvalidArgument(f"{what} is {value!r}; should be text") from None
    if b"\0" in encoded:
        raise InvalidArgument(f"{what} has a zero byte; should be text without one")
    return encoded


def choice(value, choices, what):
    """The number of a word of `choices`."""
    if isinstance(value, str) and value in choices:
        return choices[value]
    raise InvalidArgument(f"{what} is {value!r}; should be one of {', '.join(choices)}")


def number(value, what):
    """A float; what is no real number is refused."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(f"{what} is {value!r}; should be a number") from None


def integer(value, what, least, most):
    """An integer within bounds: ctypes itself would cut it."""
    try:
        index = operator.index(value)
    except TypeError:
        raise InvalidArgument(f"{what} is {value!r}; should be an integer") from None
    if not least <= index <= most:
        raise InvalidArgument(f"{what} is {index}; should be from {least} to {most}")
    return index


def flag(value, what):
    """1 or 0, as C has truth."""
    try:
        return int(bool(value))
    except (TypeError, ValueError):
        raise InvalidArgument(f"{what} is a {type(value).__name__}; should be True or False") from None
