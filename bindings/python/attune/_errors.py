# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each status of the library, all of them attune.Error, and where Python has a class of the
same meaning, that too."""

OK, INVALID_ARGUMENT, OUT_OF_MEMORY, UNSUPPORTED, NOT_FOUND, NOT_READY, DEVICE_ERROR = range(7)
CAPTURING, BAD_DATA, PERMISSION, IO_ERROR, BUSY, BUDGET_EXHAUSTED, INTERNAL = range(7, 14)


class Error(Exception):
    """A failed call. str() is the library's message: what was wrong, and what would be right. `status` is its
    number."""

    status: int = INTERNAL

    def __init__(self, message: str, status: "int | None" = None):
        super().__init__(message)
        if status is not None:
            self.status = status


class InvalidArgument(Error, ValueError):
    """An argument is wrong: a dtype, a shape, strides, a text."""

    status = INVALID_ARGUMENT


class OutOfMemory(Error, MemoryError):
    """Memory of the device or of the host is short."""

    status = OUT_OF_MEMORY


class Unsupported(Error, NotImplementedError):
    """Valid, but this device or this build of attune cannot do it."""

    status = UNSUPPORTED


class NotFound(Error, LookupError):
    """There is no such device, file or winner here."""

    status = NOT_FOUND


class LibraryNotFound(NotFound, ImportError):
    """libattune itself is not here, or is of another version."""


class NotReady(Error):
    """Work is still in flight."""

    status = NOT_READY


class DeviceError(Error):
    """The device or its driver failed."""

    status = DEVICE_ERROR


class Capturing(Error):
    """Not allowed while the stream is being captured."""

    status = CAPTURING


class BadData(Error, ValueError):
    """A file is damaged or foreign."""

    status = BAD_DATA


class PermissionDenied(Error, PermissionError):
    """The system refuses a file or a folder."""

    status = PERMISSION


class IoError(Error, OSError):
    """A file could not be read or written."""

    status = IO_ERROR


class Busy(Error):
    """Another thread or process uses it."""

    status = BUSY


class BudgetExhausted(Error):
    """The tuning budget was spent before the work could start."""

    status = BUDGET_EXHAUSTED


class InternalError(Error):
    """A mistake in attune; please report the message."""

    status = INTERNAL


ERRORS = {kind.status: kind for kind in (InvalidArgument, OutOfMemory, Unsupported, NotFound, NotReady, DeviceError,
                                         Capturing, BadData, PermissionDenied, IoError, Busy, BudgetExhausted,
                                         InternalError)}
