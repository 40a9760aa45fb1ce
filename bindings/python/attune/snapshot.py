# SPDX-License-Identifier: Apache-2.0
"""A snapshot that attune_memory_snapshot_save wrote, as the file that PyTorch's visualiser of memory opens
(https://pytorch.org/memory_viz):

    python3 -m attune.snapshot SNAPSHOT.json OUT.pickle
"""
import argparse
import json
import pickle
import sys


def convert(text: str) -> bytes:
    """The pickle of a snapshot's JSON, with what torch.cuda.memory._snapshot() has: pool ids are tuples there."""
    root = json.loads(text)
    if not isinstance(root, dict) or not {"segments", "device_traces"} <= root.keys():
        raise ValueError("is no snapshot of attune_memory_snapshot_save: it has no segments and device_traces")
    for segment in root["segments"]:
        segment["segment_pool_id"] = tuple(segment["segment_pool_id"])
    return pickle.dumps(root, protocol=4)  # as torch.cuda.memory._dump_snapshot writes


def main() -> None:
    parser = argparse.ArgumentParser(prog="attune.snapshot", description=__doc__.split(":")[0] + ".")
    parser.add_argument("snapshot", metavar="SNAPSHOT.json")
    parser.add_argument("out", metavar="OUT.pickle")
    options = parser.parse_args()
    try:
        with open(options.snapshot, encoding="utf-8") as file:
            made = convert(file.read())
        with open(options.out, "wb") as file:
            file.write(made)
    except OSError as error:
        sys.exit(f"attune.snapshot: {error.filename}: {error.strerror}")
    except ValueError as error:  # also of what is no JSON, or no UTF-8
        sys.exit(f"attune.snapshot: {options.snapshot}: {error}")


if __name__ == "__main__":
    main()
