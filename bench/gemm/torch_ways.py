# SPDX-License-Identifier: Apache-2.0
"""The calls that the programs here time, captured into graphs, and torch.compile with a time limit."""
import math
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import turns

FLUSH_BYTES = 256 << 20


class Way:
    """One way to do the problem, captured into a graph for each window of sets. `call` takes a set, and returns the result
    if that is not the set's own."""

    def __init__(self, name, call, around=lambda on: None):
        self.name, self.call, self.around = name, call, around
        self.graphs, self.kept = [], []

    def capture(self, torch, sets, calls):
        self.around(True)
        try:
            for operands in sets[:3]:
                self.call(operands)
            torch.cuda.synchronize()
            for first in range(0, max(1, len(sets) // calls) * calls, calls):
                self.graphs.append(self.window(torch, [sets[(first + i) % len(sets)] for i in range(calls)]))
        finally:
            self.around(False)

    def window(self, torch, sets):
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            # Results made inside the graph are kept, so that each call writes memory of its own.
            self.kept.append([self.call(operands) for operands in sets])
        finally:
            graph.capture_end()
        return graph


def plan_calls(torch, call, first):
    """Calls in a graph, about a millisecond of them, and the number of sets, which fill FLUSH_BYTES unless they are many."""
    torch.cuda.synchronize()
    begin = time.monotonic()
    for _ in range(4):
        call(first)
    torch.cuda.synchronize()
    calls = max(4, min(40, int(1e-3 / max((time.monotonic() - begin) / 4, 1e-6))))
    count = max(1, min(256, math.ceil(FLUSH_BYTES / first.bytes)))
    return calls, min(max(calls, count // calls * calls), 2 * calls)


def measure(torch, ways, calls, rounds, during=lambda: None):
    """{name: microseconds a call} by rounds. `during` runs while the GPU works."""
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    named, turn = {way.name: way for way in ways}, iter(range(1 << 30))

    def sample(name):
        graphs = named[name].graphs
        # The first replay keeps the device busy while the timed one is queued.
        graphs[next(turn) % len(graphs)].replay()
        start.record()
        graphs[next(turn) % len(graphs)].replay()
        stop.record()
        during()
        stop.synchronize()
        return start.elapsed_time(stop) * 1e3 / calls

    return turns.take_turns(named, rounds, sample)


class Ratios:
    """Times of the peers, and of the best peer, divided by attune's, for the summary."""

    def __init__(self, mine, floor):
        self.mine, self.floor, self.by_way, self.best = mine, floor, {}, {}

    def add(self, title, times):
        """The best peer and its ratio, for a cell."""
        found = {way: turns.ratio(times, way, self.mine) for way in times if way != self.mine}
        for way, value in found.items():
            self.by_way.setdefault(way, {})[title] = value
        if not found:
            return "no peer"
        peer = min(found, key=found.get)
        self.best[title] = found[peer]
        return f"{found[peer]:.3f} ({peer})"

    def put(self, put):
        put("")
        for way, values in [*self.by_way.items(), ("best peer of each problem", self.best)] if self.best else []:
            least = min(values, key=values.get)
            below = sum(value < self.floor for value in values.values())
            put(f"- {way} / attune: geomean {turns.geomean(values.values()):.4f} over {len(values)} problems, least "
                f"{values[least]:.3f} ({least}), {below} below {self.floor}")


class OutOfTime(BaseException):
    """Not an Exception: the compiler takes those for a candidate that failed, and goes on."""


class Compiler:
    """torch.compile in `mode`, at most `cap` seconds a problem and `limit` in all."""

    def __init__(self, torch, mode, cap, limit):
        self.torch, self.mode, self.cap, self.limit, self.spent = torch, mode, cap, limit, 0.0
        settle_compiler()

    def product(self, name, product, operands):
        """The product compiled for these operands; None when it cannot be, or takes too long."""
        cap = min(self.cap, self.limit - self.spent)
        if cap <= 0:
            print(f"torch_gemm.py: {name}: not compiled: --compile-limit was reached", file=sys.stderr)
            return None

        def expired(_signal, _frame):
            raise OutOfTime
        previous = signal.signal(signal.SIGALRM, expired)
        signal.setitimer(signal.ITIMER_REAL, cap)
        begin = time.monotonic()
        try:
            self.torch._dynamo.reset()
            call = self.torch.compile(lambda left, right: product(left, right), mode=self.mode, dynamic=False)
            call(operands.left, operands.right)
            self.torch.cuda.synchronize()
            return call
        except (OutOfTime, Exception) as error:  # whatever stops the compiler leaves the other ways
            why = "over the cap" if isinstance(error, OutOfTime) else f"{type(error).__name__} {error}".splitlines()[0]
            print(f"torch_gemm.py: {name}: not compiled after {time.monotonic() - begin:.1f} s: {why}", file=sys.stderr)
            return None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
            self.spent += time.monotonic() - begin


def settle_compiler():
    """max-autotune over Triton's and ATen's kernels, in this process. compile_threads 1: the kernels to choose from are compiled
    by threads, one a CPU, and not by other processes, after which they were compiled here again one by one. The cache to be
    flushed before a run is said to be larger than it is: flushing the real one takes less time than launching a kernel of
    Triton's, whose times then are those of the launches, and small kernels cannot be told from each other."""
    import torch._inductor.config as inductor
    from torch._inductor.runtime.benchmarking import benchmarker
    for name, value in (("max_autotune_gemm_backends", "TRITON,ATEN"), ("autotune_in_subproc", False), ("compile_threads", 1)):
        if hasattr(inductor, name):
            setattr(inductor, name, value)
    benchmarker.L2_cache_size = FLUSH_BYTES
