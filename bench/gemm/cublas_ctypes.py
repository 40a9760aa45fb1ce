# SPDX-License-Identifier: Apache-2.0
"""cublasGemmEx for Python programs that compare it with others, called as cublas.c does: with the compute type and math mode
of the contract and a workspace of 64 MiB. Uses the library that the process has already loaded."""
import ctypes

WORKSPACE_BYTES = 64 << 20  # ATTUNE_WORKSPACE_DEFAULT
DEFAULT, AUTOTUNE = -1, 999  # CUBLAS_GEMM_DEFAULT, CUBLAS_GEMM_AUTOTUNE
TYPES = {"f64": 1, "f32": 0, "f16": 2, "bf16": 14}  # CUDA_R_64F, ...
COMPUTE_32F, COMPUTE_64F, COMPUTE_FAST_TF32 = 68, 70, 77
DEFAULT_MATH, NO_REDUCED_SUMS = 0, 16
AUTOTUNE_SINCE = 130000  # the version that has it


class Cublas:
    """A handle on `stream`, with `workspace`: the address of WORKSPACE_BYTES of the device's memory."""

    def __init__(self, major, stream, workspace):
        self.lib, self.handle, version = ctypes.CDLL(f"libcublas.so.{major}"), ctypes.c_void_p(), ctypes.c_int()
        self.check(self.lib.cublasCreate_v2(ctypes.byref(self.handle)), "cublasCreate")
        self.check(self.lib.cublasSetStream_v2(self.handle, ctypes.c_void_p(stream)), "cublasSetStream")
        self.check(self.lib.cublasSetWorkspace_v2(self.handle, ctypes.c_void_p(workspace), ctypes.c_size_t(WORKSPACE_BYTES)),
                   "cublasSetWorkspace")
        self.check(self.lib.cublasGetVersion_v2(self.handle, ctypes.byref(version)), "cublasGetVersion")
        self.version = version.value

    @staticmethod
    def check(status, what):
        if status:
            raise RuntimeError(f"{what}: status {status}")

    def call(self, p, algorithm):
        """A call of a problem's product by addresses, D = op(A) op(B), all in columns and packed."""
        m, n, k, batch = p["m"], p["n"], p["k"], p["batch"]
        real = ctypes.c_double if p["dtype"] == "f64" else ctypes.c_float
        one, zero, kind = real(1.0), real(0.0), TYPES[p["dtype"]]
        reduced = p["contract"] == "reduced"
        compute = COMPUTE_64F if p["dtype"] == "f64" else COMPUTE_32F
        if p["dtype"] == "f32" and reduced:
            compute = COMPUTE_FAST_TF32
        lda, ldb = (m if p["transa"] == "n" else k), (k if p["transb"] == "n" else n)
        shape = [int(p["transa"] == "t"), int(p["transb"] == "t"), m, n, k, ctypes.byref(one)]
        strides = [[ctypes.c_longlong(x)] if batch > 1 else [] for x in (m * k, k * n, m * n)]
        count = [batch] if batch > 1 else []
        function = self.lib.cublasGemmStridedBatchedEx if batch > 1 else self.lib.cublasGemmEx

        def run(a, b, d):
            self.check(function(self.handle, *shape, ctypes.c_void_p(a), kind, lda, *strides[0], ctypes.c_void_p(b), kind, ldb,
                                *strides[1], ctypes.byref(zero), ctypes.c_void_p(d), kind, m, *strides[2], *count, compute,
                                algorithm), "cublasGemmEx")

        self.check(self.lib.cublasSetMathMode(self.handle, DEFAULT_MATH if reduced else NO_REDUCED_SUMS), "cublasSetMathMode")
        return run
