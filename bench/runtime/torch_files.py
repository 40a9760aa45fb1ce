#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch_files.py LIBATTUNE [MARKDOWN] [MIB]: loads a cached file into memory of cuda:0: torch's UntypedStorage.from_file and a copy, compared
with attune_file_load into the same memory, in turns."""
import ctypes
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import turns

torch = turns.cuda_torch()
if len(sys.argv) < 2:
    print("torch_files.py: no LIBATTUNE; should be the path of libattune.so", file=sys.stderr)
    sys.exit(2)
ROUNDS, BYTES = 11, (int(sys.argv[3]) if len(sys.argv) > 3 else 2048) << 20
lib = ctypes.CDLL(sys.argv[1])
lib.attune_last_message.restype = ctypes.c_char_p


def check(status):
    if status:
        raise RuntimeError(lib.attune_last_message().decode())


memory = torch.empty(BYTES, dtype=torch.uint8, device="cuda:0")
device, stream, file = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
check(lib.attune_device_get(ctypes.byref(device), b"cuda:0"))
check(lib.attune_stream_wrap(ctypes.byref(stream), device, ctypes.c_void_p(torch.cuda.current_stream(0).cuda_stream)))
with tempfile.NamedTemporaryFile() as made:
    block = os.urandom(1 << 20)
    for _ in range(BYTES >> 20):
        made.write(block)
    made.flush()
    check(lib.attune_file_open(ctypes.byref(file), made.name.encode(), None))

    def by_torch():
        memory.untyped_storage().copy_(torch.UntypedStorage.from_file(made.name, False, BYTES))

    def by_attune():
        check(lib.attune_file_load(file, stream, ctypes.c_void_p(memory.data_ptr()), ctypes.c_size_t(BYTES), ctypes.c_uint64(0), None))

    ways = {"torch": by_torch, "attune": by_attune}

    def sample(way):
        def whole():
            ways[way]()
            torch.cuda.synchronize()

        return turns.host_ns(whole, 1)

    times = turns.take_turns(ways, ROUNDS, sample)
    lib.attune_file_close(file)
middle = turns.medians(times)
report = turns.Report()
report.head("A file to a GPU, PyTorch and attune", torch.cuda.get_device_name(0), f"PyTorch {torch.__version__}",
            f"{BYTES >> 20} MiB in the system's cache; the two take turns, medians of {ROUNDS} rounds")
report.table("way", "GB/s>")
for name in ways:
    report.row(name, f"{BYTES / middle[name]:.2f}")
report(f"\ntorch / attune: {turns.ratio(times, 'torch', 'attune'):.3f}")
report.write(sys.argv[2] if len(sys.argv) > 2 else None)
