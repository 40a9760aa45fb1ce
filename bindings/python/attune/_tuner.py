# SPDX-License-Identifier: Apache-2.0
"""Tuners, decisions and devices."""
import contextlib
import ctypes
import dataclasses
import os
import threading
import weakref

from . import _c, _streams
from ._errors import Busy, Error, InvalidArgument

_names = {kind: {code: word for word, code in words.items()} for kind, words in
          (("source", _c.SOURCES), ("kind", _c.DEVICE_KINDS))}


def _plain(value):
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


@dataclasses.dataclass(frozen=True)
class Device:
    """A device of this process: "host", "cuda:0" and so on."""

    name: str
    kind: str
    model: str
    memory_bytes: int
    processors: int
    capability: "tuple[int, int]"
    cache_bytes: int
    driver_version: int
    features: str


def devices() -> "list[Device]":
    """The devices of this process: GPUs first, then the host, which is always there."""
    found = []
    for index in range(_c.function("attune_device_count")()):
        handle, p = ctypes.c_void_p(), _c.DeviceProperties()
        _c.call("attune_device_at", ctypes.byref(handle), index)
        _c.call("attune_device_get_properties", handle, ctypes.byref(p))
        found.append(Device(_c.function("attune_device_name")(handle).decode(), _names["kind"].get(p.kind, "unknown"),
                            _plain(p.name), p.memory_bytes, p.processors, (p.capability_major, p.capability_minor),
                            p.cache_bytes, p.driver_version, _plain(p.features)))
    return found


@dataclasses.dataclass(frozen=True)
class Decision:
    """Which candidate runs for a problem, and the evidence. Times are medians of one call in nanoseconds; 0: not
    measured."""

    problem: str
    device: str
    implementation: str
    implementation_version: int
    configuration: str
    source: str
    time_ns: float
    spread: float
    samples: int
    default_implementation: str
    default_time_ns: float
    runner_up: str
    runner_up_configuration: str
    runner_up_time_ns: float
    measure: str
    candidates: int
    rejected: int
    disturbed: int
    max_error: float
    tuning_ms: float
    complete: bool
    tuned_at: int
    note: str
    placement_spread: float
    unsure: bool
    changed: str

    @property
    def speedup(self) -> "float | None":
        """The default's time over the winner's; None where nothing was measured."""
        return self.default_time_ns / self.time_ns if self.time_ns > 0 and self.default_time_ns > 0 else None


@contextlib.contextmanager
def _held():
    """A decision of C, to be filled."""
    handle = ctypes.c_void_p()
    _c.call("attune_decision_create", ctypes.byref(handle), None)
    try:
        yield handle
    finally:
        _c.function("attune_decision_destroy")(handle)


def _decision(handle):
    c = _c.DecisionInfo()
    _c.call("attune_decision_get_info", handle, ctypes.byref(c))
    values = {field.name: _plain(getattr(c, field.name)) for field in dataclasses.fields(Decision)}
    values["source"] = _names["source"].get(c.source, "unknown")
    values["complete"], values["unsure"] = bool(c.complete), bool(c.unsure)
    return Decision(**values)


_tuners: "weakref.WeakSet[Tuner]" = weakref.WeakSet()


class _Use:
    __slots__ = ("tuner", "device")

    def __init__(self, tuner, device):
        self.tuner, self.device = tuner, device

    def __enter__(self):
        tuner = self.tuner
        with tuner._lock:
            if not tuner._handle:
                raise InvalidArgument("the tuner is closed; should be open")
            tuner._users += 1
            if self.device is not None and self.device != "host":
                tuner._devices.add(self.device)
            return tuner._handle

    def __exit__(self, *_):
        with self.tuner._lock:
            self.tuner._users -= 1


def _search(fields):
    """The settings of a search as C has them."""
    options = _c.SearchOptions()
    kinds = dict(_c.SearchOptions._fields_[1:])
    for name, value in fields.items() if isinstance(fields, dict) else [(fields, None)]:
        if name not in kinds:
            raise InvalidArgument(f"search has {name!r}; should be a dict of {', '.join(kinds)}")
        if kinds[name] is ctypes.c_double:
            setattr(options, name, _c.number(value, f"search[{name!r}]"))
        else:
            setattr(options, name, _c.integer(value, f"search[{name!r}]", -2**31, 2**31 - 1))
    return options


class Tuner:
    """Databases, mode and budget for the calls of the operations. What is left out is the environment's value, then
    the default, as in C: ATTUNE_DB, ATTUNE_MODE, ATTUNE_BUDGET_MS.

    database: the user database, read and written; ":memory:" for none. mode: "off", "cached", "record" or "tune".
    budget_ms: at most for one problem; total_budget_ms: in the tuner's life. measure: "cold_graph", "hot_eager" and
    so on. search: fields of attune_search_options, {"rounds": 9, "no_guess": True}. Any number of threads may use a
    tuner. `close`, or the end of a `with`, writes what it recorded.
    """

    def __init__(self, database=None, *, system_database=None, mode=None, budget_ms=0.0, total_budget_ms=0.0,
                 measure="auto", search=None):
        self._handle, self._users, self._devices = None, 0, set()
        self._lock, self._process = threading.Lock(), os.getpid()
        options = _c.TunerOptions(database=_c.text(database, "database"),
                                  system_database=_c.text(system_database, "system_database"),
                                  mode=_c.choice(mode, _c.MODES, "mode") if mode is not None else 0,
                                  budget_ms=_c.number(budget_ms, "budget_ms"),
                                  total_budget_ms=_c.number(total_budget_ms, "total_budget_ms"),
                                  measure=_c.choice(measure, _c.MEASURES, "measure"))
        out = ctypes.c_void_p()
        _c.call("attune_tuner_create", ctypes.byref(out), ctypes.byref(options))
        self._handle = out.value
        _tuners.add(self)
        if search is not None:
            with self._used() as handle:
                _c.call("attune_tuner_set_search", handle, ctypes.byref(_search(search)))

    def _used(self, device=None):
        """For a `with`, which gives the handle: no thread destroys it within. `device` gets work."""
        return _Use(self, device)

    def close(self) -> None:
        """Waits for the work given to GPUs, writes what was recorded, and releases the tuner. Twice does nothing."""
        with self._lock:
            if self._users:
                raise Busy(f"the tuner is in use by {self._users} calls; should be closed when they are done")
            handle, self._handle = self._handle, None
        if handle:
            try:
                for device in self._devices if self._process == os.getpid() else ():
                    _c.call("attune_device_synchronize", _streams.device(device))
            except Error:
                self._handle = handle
                raise
            _c.function("attune_tuner_destroy")(handle)

    def __enter__(self) -> "Tuner":
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        with contextlib.suppress(Exception):  # a tuner that cannot be closed is left to the process's end
            if self._handle:
                self.close()

    def set_mode(self, mode: str) -> None:
        """What happens to a problem without a winner, from now on: "off", "cached", "record" or "tune"."""
        with self._used() as handle:
            _c.call("attune_tuner_set_mode", handle, _c.choice(mode, _c.MODES, "mode"))

    def check_database(self) -> None:
        """Raises the reason why the database is not in use, if it is not."""
        with self._used() as handle:
            _c.call("attune_tuner_database_status", handle)

    def tune(self, problem: str, device: "str | None" = None, *, budget_ms: float = 0.0,
             force: bool = False) -> Decision:
        """Tunes a problem now, whatever the mode, stores the winner and returns the decision. See attune.tune."""
        options = _c.TuneOptions(budget_ms=_c.number(budget_ms, "budget_ms"), force=_c.flag(force, "force"))
        with self._used() as handle, _held() as decision:
            _c.call("attune_tune", handle, _streams.device(device), _c.text(problem, "problem"), ctypes.byref(options),
                    decision)
            return _decision(decision)

    def explain(self, problem: str, device: "str | None" = None) -> Decision:
        """Which candidate runs for a problem, since when, and by what margin. Measures nothing."""
        with self._used() as handle, _held() as decision:
            _c.call("attune_explain", handle, _streams.device(device), _c.text(problem, "problem"), decision)
            return _decision(decision)


_default = None
_default_lock = threading.Lock()


def default_tuner() -> Tuner:
    """The tuner of calls that name none: database and mode from the environment. Made at its first use."""
    global _default
    if _default is None or not _default._handle:
        with _default_lock:
            if _default is None or not _default._handle:
                _default = Tuner()
    return _default


def of(tuner):
    """A Tuner: the given one, else the default."""
    if tuner is None:
        return default_tuner()
    if not isinstance(tuner, Tuner):
        raise InvalidArgument(f"tuner is a {type(tuner).__name__}; should be an attune.Tuner")
    return tuner


def _after_fork():
    """Calls of the parent's other threads are not the child's."""
    global _default_lock
    _default_lock = threading.Lock()
    for tuner in list(_tuners):
        tuner._lock, tuner._users = threading.Lock(), 0


os.register_at_fork(after_in_child=_after_fork)


def tune(problem: str, device: "str | None" = None, *, budget_ms: float = 0.0, force: bool = False,
         tuner: "Tuner | None" = None) -> Decision:
    """Tunes a problem now and stores the winner. `problem` is a text as attune.gemm_problem and
    attune.elementwise_problem give it, "gemm f32 nn 512x512x512 strict"; `device` is "host", "cuda:0" or the best
    (None). A stored winner that holds is returned without measuring, unless `force`."""
    return of(tuner).tune(problem, device, budget_ms=budget_ms, force=force)


def explain(problem: str, device: "str | None" = None, *, tuner: "Tuner | None" = None) -> Decision:
    """Which candidate runs for a problem, and why. Measures nothing."""
    return of(tuner).explain(problem, device)
