#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch_collectives.py LIBATTUNE [MARKDOWN]: compares reduce_add, broadcast, scatter and gather of torch.cuda.comm on all GPUs with attune's, in one
process with one NCCL, PyTorch's. Both work on PyTorch's memory and current streams; a sample is several calls and a wait for all GPUs.
PyTorch's calls allocate their outputs, attune's calls are passed them."""
import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import turns

torch = turns.cuda_torch()
import torch.cuda.comm as comm

GPUS = torch.cuda.device_count()
if len(sys.argv) < 2 or GPUS < 2:
    print(f"torch_collectives.py: needs LIBATTUNE and two GPUs; this machine has {GPUS}", file=sys.stderr)
    sys.exit(2 if len(sys.argv) < 2 else 77)
F32, SUM, ROUNDS = 2, 0, 15


class Data(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("count", ctypes.c_size_t), ("inputs", ctypes.c_void_p), ("outputs", ctypes.c_void_p)]


class Split(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("outer", ctypes.c_size_t), ("size", ctypes.c_size_t), ("inner", ctypes.c_size_t),
                ("chunks", ctypes.c_void_p), ("whole", ctypes.c_void_p), ("pieces", ctypes.c_void_p)]


lib = ctypes.CDLL(sys.argv[1])
lib.attune_last_message.restype = lib.attune_comm_describe.restype = ctypes.c_char_p


def check(status):
    if status:
        raise RuntimeError(lib.attune_last_message().decode())


def pointers(tensors):
    return (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])


def wait():
    for gpu in range(GPUS):
        torch.cuda.synchronize(gpu)


devices, streams = (ctypes.c_void_p * GPUS)(), (ctypes.c_void_p * GPUS)()
handle = ctypes.c_void_p()
for gpu in range(GPUS):
    with torch.cuda.device(gpu):
        torch.zeros(1, device=f"cuda:{gpu}")
    found, stream = ctypes.c_void_p(), ctypes.c_void_p()
    check(lib.attune_device_get(ctypes.byref(found), f"cuda:{gpu}".encode()))
    check(lib.attune_stream_wrap(ctypes.byref(stream), found, ctypes.c_void_p(torch.cuda.current_stream(gpu).cuda_stream)))
    devices[gpu], streams[gpu] = found.value, stream.value
comm.reduce_add([torch.ones(4, device=f"cuda:{gpu}") for gpu in range(GPUS)])  # PyTorch's NCCL is loaded now
check(lib.attune_comm_create(ctypes.byref(handle), devices, GPUS, 0))

report = turns.Report()
report.head(f"torch.cuda.comm and attune, {GPUS} GPUs", torch.cuda.get_device_name(0),
            f"PyTorch {torch.__version__}, attune with {lib.attune_comm_describe(handle).decode()}",
            f"f32; the two take turns, medians of {ROUNDS} rounds; calls in a row, then a wait for all GPUs; the ratio is above 1 where attune is faster")
report.table("call", "bytes>", "torch us>", "attune us>", "torch / attune>")
for size in (1024, 1 << 20, 16 << 20, 256 << 20):
    count = size // 4
    inputs = [torch.ones(count, device=f"cuda:{gpu}") for gpu in range(GPUS)]
    outputs = [torch.empty(count, device=f"cuda:{gpu}") for gpu in range(GPUS)]
    pieces = list(comm.scatter(inputs[0], range(GPUS)))
    ins, outs, parts = pointers(inputs), pointers(outputs), pointers(pieces)
    others, views = pointers(outputs), pointers(pieces)  # as torch has it: what is the first GPU's stays where it is
    others[0], views[0] = None, outputs[0].data_ptr()
    data = Data(F32, count, ctypes.addressof(ins), ctypes.addressof(outs))
    spread = Data(F32, count, ctypes.addressof(ins), ctypes.addressof(others))
    split = Split(F32, 1, count, 1, None, outputs[0].data_ptr(), ctypes.addressof(parts))
    cut = Split(F32, 1, count, 1, None, outputs[0].data_ptr(), ctypes.addressof(views))
    cases = [
        ("reduce_add", lambda: comm.reduce_add(inputs, 0), lambda: check(lib.attune_comm_reduce(handle, 0, SUM, streams, ctypes.byref(data)))),
        ("broadcast", lambda: comm.broadcast(inputs[0], range(GPUS)),
         lambda: check(lib.attune_comm_broadcast(handle, 0, streams, ctypes.byref(spread)))),
        ("scatter", lambda: comm.scatter(inputs[0], range(GPUS)), lambda: check(lib.attune_comm_scatter(handle, 0, streams, ctypes.byref(cut)))),
        ("gather", lambda: comm.gather(pieces, 0, 0), lambda: check(lib.attune_comm_gather(handle, 0, streams, ctypes.byref(split)))),
    ]
    calls = max(4, min(50, (1 << 28) // size))
    for name, by_torch, by_attune in cases:
        ways = {"torch": by_torch, "attune": by_attune}

        def sample(way):
            ways[way]()
            wait()

            def in_a_row():
                for _ in range(calls):
                    ways[way]()
                wait()

            return turns.host_ns(in_a_row, 1) / calls

        times = turns.take_turns(ways, ROUNDS, sample)
        middle = turns.medians(times)
        report.row(name, size, f"{middle['torch'] / 1e3:.1f}", f"{middle['attune'] / 1e3:.1f}", f"{turns.ratio(times, 'torch', 'attune'):.3f}")
    del inputs, outputs, pieces
report.write(sys.argv[2] if len(sys.argv) > 2 else None)
