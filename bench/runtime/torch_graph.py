#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a torch.cuda.CUDAGraph of 100 bf16 GEMMs of 64^3, each reading the result of the one before, as bench_graph
times attune's: the time on the device from replay to replay and the host's time per call, medians of 61 rounds of 20
replays. Prints a row for bench_graph's table."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import turns

torch = turns.cuda_torch()
GEMMS, SIDE, ROUNDS, REPLAYS, WARMUPS = 100, 64, 61, 20, 3


def give(a, x, y):
    for i in range(GEMMS):
        torch.mm(a, y if i % 2 else x, out=x if i % 2 else y)


def measure(graph, host_us):
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    graph.replay()
    start.record()
    begin = time.perf_counter()
    for _ in range(REPLAYS):
        graph.replay()
    host_us.append(1e6 * (time.perf_counter() - begin) / REPLAYS)
    stop.record()
    stop.synchronize()
    return 1e3 * start.elapsed_time(stop) / REPLAYS


def main():
    a = torch.full((SIDE, SIDE), 1e-3, dtype=torch.bfloat16, device="cuda")
    x, y = torch.rand_like(a), torch.rand_like(a)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        give(a, x, y)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            give(a, x, y)
        host_us = []
        times = turns.take_turns(["torch"], ROUNDS, lambda _: measure(graph, host_us), WARMUPS)
    device_us, host_us = turns.medians({"device": times["torch"], "host": host_us[WARMUPS:]}).values()
    print(f"| torch.cuda.CUDAGraph {torch.__version__} on {torch.cuda.get_device_name()} | {device_us:.2f} | {host_us:.2f} | |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
