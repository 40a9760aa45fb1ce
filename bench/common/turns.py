# SPDX-License-Identifier: Apache-2.0
"""Shared by the Python programs of bench/: timing calls in turns, as turns.c does, and the head and tables of a report, as tool.c."""
import datetime
import math
import os
import platform
import statistics
import sys
import time


def take_turns(ways, rounds, sample, warmups=1):
    """{name: times}: sample(name) of each of the names, round after round; each comes first in turn."""
    names, times = list(ways), {name: [] for name in ways}
    for number in range(-warmups, rounds):
        first = (number + warmups) % len(names)
        for name in names[first:] + names[:first]:
            value = sample(name)
            if number >= 0:
                times[name].append(value)
    return times


def medians(times):
    return {name: statistics.median(values) for name, values in times.items()}


def ratio(times, way, of):
    """The median of the rounds' ratios, so that a drift of the machine cancels."""
    return statistics.median(one / other for one, other in zip(times[way], times[of]))


def geomean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))


def host_ns(call, calls):
    """Nanoseconds of a call, by the host's clock around `calls` of them."""
    start = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return (time.perf_counter_ns() - start) / calls


def cuda_torch():
    """PyTorch with a GPU; where there is none the program says so and ends with 77."""
    program = os.path.basename(sys.argv[0])
    try:
        import torch
    except ImportError:
        print(f"{program}: PyTorch is not installed; nothing was measured", file=sys.stderr)
        sys.exit(77)
    if not torch.cuda.is_available():
        print(f"{program}: no CUDA device; nothing was measured", file=sys.stderr)
        sys.exit(77)
    return torch


def between_events(torch, call, calls):
    """Milliseconds of a call, by events around `calls` of them."""
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(calls):
        call()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / calls


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


class Report:
    """Markdown, to the terminal and in the end to a file."""

    def __init__(self):
        self.lines = []

    def __call__(self, line):
        print(line, flush=True)
        self.lines.append(line)

    def head(self, title, device, libraries, method):
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        self(f"# {title}\n\n- device: {device}\n- libraries: {libraries}\n- command: {' '.join(sys.argv)}\n- date: {date}, load average "
             f"{os.getloadavg()[0]:.1f} at the start\n- method: {method}\n")

    def table(self, *titles):
        """A column whose title ends with > stands at the right."""
        self("| " + " | ".join(title.rstrip(">") for title in titles) + " |")
        self("|" + "|".join("---:" if title.endswith(">") else "---" for title in titles) + "|")

    def row(self, *cells):
        self("| " + " | ".join(str(cell) for cell in cells) + " |")

    def write(self, path):
        if path:
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(self.lines) + "\n")
