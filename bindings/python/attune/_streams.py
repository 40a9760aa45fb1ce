# SPDX-License-Identifier: Apache-2.0
"""The stream that a call's work is given to: the caller's own, else the current one of the arrays' package, else the
device's default stream. The library's handles for streams are kept: to release one would wait for its work."""
import contextlib
import ctypes
import os
import sys
import threading

from . import _c
from ._errors import InvalidArgument

LEGACY, PER_THREAD = 1, 2  # as DLPack and __cuda_array_interface__ number CUDA's two default streams


class Stream:
    """The library's handle for one stream of one device. One thread at a time gives work to it, but the host's
    default stream takes any number."""

    __slots__ = ("handle", "native", "device", "lock", "owner")

    def __init__(self, handle, native, device, owner):
        self.handle, self.native, self.device, self.owner = handle, native, device, owner
        self.lock = contextlib.nullcontext() if device == "host" else threading.RLock()


_lock = threading.Lock()
_devices: "dict[bytes | None, int]" = {}
_streams: "dict[tuple[str, int, int], Stream]" = {}


_forked = False
_sound: "set[str]" = set()  # GPUs that this child of fork has found in order


def _after_fork():
    """In a child another thread of the parent may hold a lock for ever; the handles are for the parent's streams,
    which the library refuses in its own words."""
    global _lock, _forked
    _lock, _forked = threading.Lock(), True
    _sound.clear()
    for stream in _streams.values():
        if stream.device != "host":
            stream.lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def device(name):
    """The library's handle of "host", "cuda:N" or "best" (None); it lives for ever."""
    encoded = _c.text(name, "device")
    found = _devices.get(encoded)
    if found is None:
        out = ctypes.c_void_p()
        _c.call("attune_device_get", ctypes.byref(out), encoded)
        found = _devices[encoded] = out.value
    return found


def _check_fork(device_name):
    """In a child of fork a GPU may be the parent's alone: the library says so, before a package fails in its own
    words."""
    if _forked and device_name not in _sound:
        free, total = ctypes.c_uint64(), ctypes.c_uint64()
        _c.call("attune_device_memory_info", device(device_name), ctypes.byref(free), ctypes.byref(total))
        _sound.add(device_name)


def _number(value, what="stream"):
    """A cudaStream_t as a number, of what stands for one in PyTorch, CuPy, Numba and CUDA's own package."""
    for attribute in ("cuda_stream", "ptr"):
        found = getattr(value, attribute, None)
        if isinstance(found, int):
            value = found
            break
    else:
        protocol = getattr(type(value), "__cuda_stream__", None)
        if protocol is not None:
            value = value.__cuda_stream__()[1]
        elif isinstance(getattr(value, "handle", None), ctypes.c_void_p):
            value = value.handle.value or 0
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise InvalidArgument(
            f"{what} is {value!r}; should be a stream of PyTorch or CuPy, or the number of a cudaStream_t")
    return _c.integer(value, what, 0, 2**64 - 1)


def _current(device_name, packages):
    """The package that made the arrays, its current stream and what keeps that alive; None: it has no streams."""
    number = int(device_name.split(":")[1])
    if "torch" in packages:
        current = sys.modules["torch"].cuda.current_stream(number)
        return "torch", current.cuda_stream, current
    if "cupy" in packages:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(number):
            current = cupy.cuda.get_current_stream()
        return "cupy", current.ptr, current
    return None


def _handle(device_name, number, owner):
    if device_name == "host" or number in (0, LEGACY):
        native, key = 0, (device_name, 0, 0)
    else:
        native, key = number, (device_name, number, threading.get_ident() if number == PER_THREAD else 0)
    found = _streams.get(key)
    if found is not None:
        return found
    home = device(device_name)
    with _lock:
        if key not in _streams:
            if native == 0:
                handle = _c.function("attune_stream_default")(home)
            else:
                out = ctypes.c_void_p()
                _c.call("attune_stream_wrap", ctypes.byref(out), home, native)
                handle = out.value
            _streams[key] = Stream(handle, native, device_name, owner)
        return _streams[key]


def host():
    """The host's default stream: work is done when its call returns."""
    return _handle("host", 0, None)


def choose(stream, device_name, packages):
    """The stream for work on a device, and the package whose current stream that is, if it is one's."""
    if device_name == "host":
        if stream is not None:
            raise InvalidArgument("stream is given, but the arrays are the host's; should be None: the host's work is "
                                  "done when the call returns")
        return host(), None
    _check_fork(device_name)
    if stream is not None:
        return _handle(device_name, _number(stream), stream), None
    current = _current(device_name, packages)
    if current is None:
        return _handle(device_name, 0, None), None
    return _handle(device_name, current[1], current[2]), current[0]


def follow(stream, other):
    """Work given to `stream` from now on waits for that of the stream numbered `other` in a
    __cuda_array_interface__."""
    number = _number(other, "an array's stream")
    before = _handle(stream.device, number, None)
    if before is not stream:
        _c.call("attune_stream_wait_stream", stream.handle, before.handle)
