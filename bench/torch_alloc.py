#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays the traces that `bench_alloc --traces DIR` writes through PyTorch's caching allocator, and times its alloc + free.

  torch_alloc.py DIR [--device N]     DIR has alloc-training.txt and alloc-serving.txt; set PYTORCH_CUDA_ALLOC_CONF as wanted

Prints one markdown table: what torch reserved at most against the most that was in use."""
import argparse
import os
import sys
import time


def read_trace(path):
    operations = []
    with open(path) as file:
        for line in file:
            words = line.split()
            operations.append((int(words[1]), int(words[2]) if words[0] == "a" else 0))
    return operations


def replay(torch, operations, device):
    alloc = torch.cuda.caching_allocator_alloc
    delete = torch.cuda.caching_allocator_delete
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    held, now, peak = {}, 0, 0
    start = time.perf_counter()
    for block, size in operations:
        if size:
            held[block] = (alloc(size, device), size)
            now += size
            peak = max(peak, now)
        else:
            pointer, bytes_ = held.pop(block)
            delete(pointer)
            now -= bytes_
    seconds = time.perf_counter() - start
    stats = torch.cuda.memory_stats(device)
    for pointer, _ in held.values():
        delete(pointer)
    torch.cuda.empty_cache()
    return peak, stats["reserved_bytes.all.peak"], stats["num_device_alloc"], seconds / len(operations) * 1e9


def pair_ns(torch, size, device, rounds=20000):
    alloc, delete = torch.cuda.caching_allocator_alloc, torch.cuda.caching_allocator_delete
    stream = torch.cuda.current_stream(device)
    for _ in range(100):
        delete(alloc(size, device, stream))
    best = float("inf")
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(rounds):
            delete(alloc(size, device, stream))
        best = min(best, (time.perf_counter() - start) / rounds * 1e9)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--device", type=int, default=0)
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("PyTorch is not installed")
    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no CUDA device")
    settings = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name(arguments.device)}, settings \"{settings}\"\n")
    print("| trace | operations | peak in use, MiB | reserved, MiB | reserved / peak | taken from the device, times | ns an operation, with Python |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in ("training", "serving"):
        operations = read_trace(os.path.join(arguments.folder, f"alloc-{name}.txt"))
        peak, reserved, taken, ns = replay(torch, operations, arguments.device)
        print(f"| {name} | {len(operations)} | {peak / 2**20:.1f} | {reserved / 2**20:.1f} | {reserved / peak:.3f} | {taken} | {ns:.0f} |")
    print("\n| caching_allocator_alloc + delete, bytes | ns a pair, with Python, least |")
    print("|---:|---:|")
    for size in (4096, 1 << 20, 64 << 20):
        print(f"| {size} | {pair_ns(torch, size, arguments.device):.0f} |")


if __name__ == "__main__":
    main()
