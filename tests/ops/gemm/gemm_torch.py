# SPDX-License-Identifier: Apache-2.0
"""Stands in for PyTorch, and for cuBLAS, in test_bench_python.py's test of torch_gemm.py: tensors in the host's memory,
products in plain Python, and a clock on which each call takes as long as MADE_UP says: "eager=10 compile=9
wrong=compile". What may be wrong: a compiled result (compile), the compiler (refuse), eager mode writes nothing (idle), a replay (cublas-graph)."""
import ctypes
import itertools
import os
import random
import sys
import types

SETTINGS = dict(word.split("=") for word in os.environ.get("MADE_UP", "").split())
COSTS = {"attune": 8, "cublas": 12, "eager": 10, "compile": 9, **{k: float(v) for k, v in SETTINGS.items() if k != "wrong"}}
__version__, version = "0.0-test", types.SimpleNamespace(cuda="13.0")
float64, float32, float16, bfloat16, uint8 = "d", "f", "e", "E", "B"
TYPES = {"d": ctypes.c_double, "f": ctypes.c_float, "B": ctypes.c_ubyte}
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=None)))
seen = []  # the calls of the graph that is captured


def set_float32_matmul_precision(_name):
    pass


class Tensor:
    def __init__(self, shape, dtype, memory=None, strides=None):
        self.shape, self.dtype = tuple(shape), dtype
        self.strides = strides or tuple(product_of(shape[i + 1:]) for i in range(len(shape)))
        self.memory = memory if memory is not None else (TYPES[dtype] * product_of(shape))()

    def data_ptr(self):
        return ctypes.addressof(self.memory)

    def transpose(self, _first, _second):
        swap = lambda x: (*x[:-2], x[-1], x[-2])
        return Tensor(swap(self.shape), self.dtype, self.memory, swap(self.strides))

    def at(self, index):
        return sum(i * s for i, s in zip(index, self.strides))

    def indices(self):
        return itertools.product(*(range(size) for size in self.shape))

    def made(self, function):
        out = Tensor(self.shape, "d")
        for index in self.indices():
            out.memory[out.at(index)] = function(index)
        return out

    def fill_(self, value):
        self.memory[:] = [value] * len(self.memory)
        return self

    def uniform_(self, low, high):
        self.memory[:] = [random.uniform(low, high) for _ in self.memory]
        return self

    def to(self, dtype, copy=False):
        if copy:
            assert dtype == float64
            return self.made(lambda index: self.memory[self.at(index)])
        assert dtype == self.dtype
        return self

    def __sub__(self, other):
        return self.made(lambda index: self.memory[self.at(index)] - other.memory[other.at(index)])

    def abs(self):
        return self.made(lambda index: abs(self.memory[self.at(index)]))

    def max(self):
        values = list(self.memory)
        return types.SimpleNamespace(item=lambda: max((x for x in values if x == x), default=0.0) if all(
            x == x for x in values) else float("nan"))


def product_of(sizes):
    return sizes[0] * product_of(sizes[1:]) if sizes else 1


def empty(shape, dtype, device):
    assert device == "cuda"
    return Tensor((shape,) if isinstance(shape, int) else shape, dtype)


def matrix_product(left, right, out):
    for index in out.indices() if not Graph.capturing and SETTINGS.get("wrong") != "idle" else ():
        *lead, i, j = index
        out.memory[out.at(index)] = sum(left.memory[left.at((*lead, i, l))] * right.memory[right.at((*lead, l, j))]
                                        for l in range(left.shape[-1]))
    return out


def mm(left, right, out=None):
    assert len(left.shape) == 2
    seen.append("eager")
    return matrix_product(left, right, out or Tensor((left.shape[0], right.shape[1]), left.dtype))


def bmm(left, right, out=None):
    assert len(left.shape) == 3
    seen.append("eager")
    return matrix_product(left, right, out or Tensor((*left.shape[:2], right.shape[2]), left.dtype))


def compile(function, mode, dynamic):
    if "refuse" in SETTINGS.get("wrong", ""):
        raise ValueError("made up")

    def call(*operands):
        result = function(*operands)
        seen[-1] = "compile"
        if SETTINGS.get("wrong") == "compile":
            result.memory[0] += 1e3
        return result
    return call


class Graph:
    calls = 0  # of every graph
    capturing = False

    def capture_begin(self, capture_error_mode):
        assert capture_error_mode == "thread_local"
        seen.clear()
        Graph.capturing = True

    def capture_end(self):
        Graph.capturing = False
        self.kind = seen[0] if seen else "attune"  # whose calls are not seen here
        Graph.calls = len(seen) or Graph.calls

    def replay(self):
        if SETTINGS.get("wrong") == self.kind + "-graph":
            raise RuntimeError("made up: no replay")
        Event.now += COSTS[self.kind] * Graph.calls * 1e-3


class Event:
    now = 0.0  # milliseconds

    def __init__(self, enable_timing):
        self.at = None

    def record(self):
        self.at = Event.now

    def synchronize(self):
        pass

    def elapsed_time(self, other):
        return other.at - self.at


class Blas:
    """cuBLAS's calls as the C interface has them: matrices in columns, by address."""

    def __getattr__(self, name):
        return lambda *_: 0

    @staticmethod
    def cublasGetVersion_v2(_handle, out):
        out._obj.value = 130000
        return 0

    @staticmethod
    def cublasGemmEx(_handle, ta, tb, m, n, k, one, a, kind, lda, b, _kind_b, ldb, zero, d, _kind_d, ldd, compute, _algorithm):
        seen.append("cublas")
        assert (one._obj.value, zero._obj.value) == (1.0, 0.0) and compute == {0: 68, 1: 70}[kind]
        real = {0: ctypes.c_float, 1: ctypes.c_double}[kind]
        look = lambda address, ld, turned, i, j: real.from_address(
            address.value + ctypes.sizeof(real) * (j + i * ld if turned else i + j * ld)).value
        for i, j in itertools.product(range(m), range(n)) if not Graph.capturing else ():
            real.from_address(d.value + ctypes.sizeof(real) * (i + j * ldd)).value = sum(
                look(a, lda, ta, i, l) * look(b, ldb, tb, l, j) for l in range(k))
        return 0

    @staticmethod
    def cublasGemmStridedBatchedEx(handle, ta, tb, m, n, k, one, a, kind, lda, stride_a, b, kind_b, ldb, stride_b, zero, d,
                                   kind_d, ldd, stride_d, batch, compute, algorithm):
        move = lambda x, stride, i: ctypes.c_void_p(x.value + i * stride.value * {0: 4, 1: 8}[kind])
        for i in range(batch):
            Blas.cublasGemmEx(handle, ta, tb, m, n, k, one, move(a, stride_a, i), kind, lda, move(b, stride_b, i), kind_b, ldb,
                              zero, move(d, stride_d, i), kind_d, ldd, compute, algorithm)
        del seen[len(seen) - batch + 1:]
        return 0


real_library = ctypes.CDLL
ctypes.CDLL = lambda name, *more, **named: Blas() if name.startswith("libcublas") else real_library(name, *more, **named)
ignore = lambda *_: None
tunable = types.SimpleNamespace(enable=ignore, tuning_enable=ignore, set_filename=ignore)
cuda = types.SimpleNamespace(
    is_available=lambda: True, get_device_name=lambda _device=0: "made up", synchronize=ignore, empty_cache=ignore, Event=Event,
    Stream=lambda: types.SimpleNamespace(cuda_stream=None), set_stream=ignore, CUDAGraph=Graph, tunable=tunable,
    get_device_properties=lambda _device: types.SimpleNamespace(L2_cache_size=0))
_dynamo = types.SimpleNamespace(reset=ignore)
_inductor = types.ModuleType("torch._inductor")
_inductor.config = types.ModuleType("torch._inductor.config")
_inductor.config.max_autotune_gemm_backends = ""
_inductor.runtime = types.ModuleType("torch._inductor.runtime")
_inductor.runtime.benchmarking = types.ModuleType("torch._inductor.runtime.benchmarking")
_inductor.runtime.benchmarking.benchmarker = types.SimpleNamespace()
__path__ = []
sys.modules.update({"torch._inductor": _inductor, "torch._inductor.config": _inductor.config, "torch._inductor.runtime": _inductor.runtime,
                    "torch._inductor.runtime.benchmarking": _inductor.runtime.benchmarking})
