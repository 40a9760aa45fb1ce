# SPDX-License-Identifier: Apache-2.0
"""cublasGemmEx and cublasLtMatmul for Python programs that compare it with others, called as cublas.c does: with the compute type and math mode
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


F8 = {"f8e4m3": 28, "f8e5m2": 29}  # CUDA_R_8F_E4M3, ...
SCALE_MODES = {"tensor": 0, "vector": 3, "1x128": 4, "128x128": 5}  # cublasLtMatmulMatrixScale_t
TRANSA, A_SCALE, B_SCALE, FAST, A_MODE, B_MODE = 3, 17, 18, 25, 31, 32  # cublasLtMatmulDescAttributes_t
PREFERENCE_WORKSPACE = 1


class Heuristic(ctypes.Structure):
    _fields_ = [("algorithm", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("status", ctypes.c_int),
                ("waves", ctypes.c_float), ("reserved", ctypes.c_int * 4)]


class CublasLt:
    """cublasLt's own choice: the first algorithm of its heuristic, with `workspace` of WORKSPACE_BYTES."""

    def __init__(self, major, stream, workspace):
        self.lib, self.handle = ctypes.CDLL(f"libcublasLt.so.{major}"), ctypes.c_void_p()
        self.stream, self.workspace = ctypes.c_void_p(stream), ctypes.c_void_p(workspace)
        self.ok(self.lib.cublasLtCreate(ctypes.byref(self.handle)), "cublasLtCreate")

    ok = staticmethod(Cublas.check)

    def describe(self, scale_a, scale_b, modes, fast):
        description = ctypes.c_void_p()
        self.ok(self.lib.cublasLtMatmulDescCreate(ctypes.byref(description), COMPUTE_32F, 0), "cublasLtMatmulDescCreate")
        for attribute, value in ((TRANSA, ctypes.c_int32(1)), (FAST, ctypes.c_int8(fast)), (A_MODE, ctypes.c_int32(modes[0])),
                                 (B_MODE, ctypes.c_int32(modes[1])), (A_SCALE, ctypes.c_void_p(scale_a)),
                                 (B_SCALE, ctypes.c_void_p(scale_b))):
            self.ok(self.lib.cublasLtMatmulDescSetAttribute(description, attribute, ctypes.byref(value),
                                                            ctypes.c_size_t(ctypes.sizeof(value))), f"attribute {attribute}")
        return description

    def layout(self, kind, rows, columns):
        out = ctypes.c_void_p()
        self.ok(self.lib.cublasLtMatrixLayoutCreate(ctypes.byref(out), kind, ctypes.c_uint64(rows), ctypes.c_uint64(columns),
                                                    ctypes.c_int64(rows)), "cublasLtMatrixLayoutCreate")
        return out

    def scaled(self, m, n, k, kinds, modes, fast):
        """A call of D = A^T B of `kinds` (f8 of A and B, type of D) by addresses, all in columns and packed, with scales of
        `modes` in device memory."""
        a, b, d = self.layout(F8[kinds[0]], k, m), self.layout(F8[kinds[1]], k, n), self.layout(TYPES[kinds[2]], m, n)
        modes = [SCALE_MODES[mode] for mode in modes]
        one, zero, preference, found = ctypes.c_float(1), ctypes.c_float(0), ctypes.c_void_p(), ctypes.c_int()
        bytes_, best = ctypes.c_size_t(WORKSPACE_BYTES), Heuristic()
        self.ok(self.lib.cublasLtMatmulPreferenceCreate(ctypes.byref(preference)), "cublasLtMatmulPreferenceCreate")
        self.ok(self.lib.cublasLtMatmulPreferenceSetAttribute(preference, PREFERENCE_WORKSPACE, ctypes.byref(bytes_),
                                                              ctypes.c_size_t(8)), "cublasLtMatmulPreferenceSetAttribute")
        self.ok(self.lib.cublasLtMatmulAlgoGetHeuristic(self.handle, self.describe(4096, 4096, modes, fast), a, b, d, d,
                                                        preference, 1, ctypes.byref(best), ctypes.byref(found)),
                "cublasLtMatmulAlgoGetHeuristic")

        def run(at_a, at_b, at_d, scale_a, scale_b):
            self.ok(self.lib.cublasLtMatmul(self.handle, self.describe(scale_a, scale_b, modes, fast), ctypes.byref(one),
                                            ctypes.c_void_p(at_a), a, ctypes.c_void_p(at_b), b, ctypes.byref(zero),
                                            ctypes.c_void_p(at_d), d, ctypes.c_void_p(at_d), d, ctypes.byref(best),
                                            self.workspace, ctypes.c_size_t(best.workspace), self.stream), "cublasLtMatmul")

        return run
