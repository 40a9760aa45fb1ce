#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays the traces that `bench_alloc --traces DIR` writes through PyTorch's caching allocator, and times its alloc + free.

  torch_alloc.py DIR [--device N]     DIR has alloc-training.txt and alloc-serving.txt; PYTORCH_CUDA_ALLOC_CONF holds the settings

Prints one Markdown table: the peak of the memory that torch reserved and of that in use."""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import turns

SIZES, ROUNDS, PAIRS = (4096, 1 << 20, 64 << 20), 7, 20000


def read_trace(path):
    operations = []
    with open(path) as file:
        for line in file:
            words = line.split()
            operations.append((int(words[1]), int(words[2]) if words[0] == "a" else 0))
    return operations


def play(torch, operations, device, held):
    """Into `held` what is left at the end; the most that was in use."""
    alloc, delete = torch.cuda.caching_allocator_alloc, torch.cuda.caching_allocator_delete
    now = peak = 0
    for block, size in operations:
        if size:
            held[block] = (alloc(size, device), size)
            now += size
            peak = max(peak, now)
        else:
            pointer, bytes_ = held.pop(block)
            delete(pointer)
            now -= bytes_
    return peak


def replay(torch, operations, device):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    held, peaks = {}, []
    spent_ns = turns.host_ns(lambda: peaks.append(play(torch, operations, device, held)), 1)
    stats = torch.cuda.memory_stats(device)
    for pointer, _ in held.values():
        torch.cuda.caching_allocator_delete(pointer)
    torch.cuda.empty_cache()
    return peaks[0], stats["reserved_bytes.all.peak"], stats["num_device_alloc"], spent_ns / len(operations)


def pairs(torch, device):
    """Nanoseconds of alloc + delete by size, the sizes in turns."""
    alloc, delete = torch.cuda.caching_allocator_alloc, torch.cuda.caching_allocator_delete
    stream = torch.cuda.current_stream(device)
    return turns.take_turns(SIZES, ROUNDS, lambda size: turns.host_ns(lambda: delete(alloc(size, device, stream)), PAIRS))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--device", type=int, default=0)
    arguments = parser.parse_args()
    torch, report = turns.cuda_torch(), turns.Report()
    settings = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
    report(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name(arguments.device)}, settings \"{settings}\"\n")
    report.table("trace", "operations>", "peak in use, MiB>", "reserved, MiB>", "reserved / peak>",
                 "taken from the device, times>", "ns an operation, with Python>")
    for name in ("training", "serving"):
        operations = read_trace(os.path.join(arguments.folder, f"alloc-{name}.txt"))
        peak, reserved, taken, ns = replay(torch, operations, arguments.device)
        report.row(name, len(operations), f"{peak / 2**20:.1f}", f"{reserved / 2**20:.1f}", f"{reserved / peak:.3f}", taken,
                   f"{ns:.0f}")
    report("")
    report.table("caching_allocator_alloc + delete, bytes>", "ns a pair, with Python, least>")
    for size, times in pairs(torch, arguments.device).items():
        report.row(size, f"{min(times):.0f}")


if __name__ == "__main__":
    main()
