# SPDX-License-Identifier: Apache-2.0
"""attune: for every matrix product and every elementwise expression the fastest implementation, chosen by measurement.

    import attune, numpy
    d = attune.gemm(a, b)                               # NumPy, CuPy or PyTorch, on the host or a GPU
    y = attune.elementwise("gelu(a + b) * b", a=a, b=b)
    attune.tune(attune.gemm_problem(a, b), "host")      # measured once, remembered, used from then on
"""
from ._c import load
from ._elementwise import Generator, elementwise, elementwise_problem
from ._errors import (BadData, BudgetExhausted, Busy, Capturing, DeviceError, Error, InternalError, InvalidArgument,
                      IoError, LibraryNotFound, NotFound, NotReady, OutOfMemory, PermissionDenied, Unsupported)
from ._gemm import gemm, gemm_problem
from ._tuner import Decision, Device, Tuner, default_tuner, devices, explain, tune


def version() -> str:
    """The version of the library in use."""
    from ._c import function
    return function("attune_version")().decode()


__all__ = ["BadData", "BudgetExhausted", "Busy", "Capturing", "Decision", "Device", "DeviceError", "Error", "Generator",
           "InternalError", "InvalidArgument", "IoError", "LibraryNotFound", "NotFound", "NotReady", "OutOfMemory",
           "PermissionDenied", "Tuner", "Unsupported", "default_tuner", "devices", "elementwise", "elementwise_problem",
           "explain", "gemm", "gemm_problem", "load", "tune", "version"]
