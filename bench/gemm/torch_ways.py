# SPDX-License-Identifier: Apache-2.0
"""The calls that torch_gemm.py times, captured into graphs, and torch.compile with a time limit."""
import signal
import sys
import time

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
