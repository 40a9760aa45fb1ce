# SPDX-License-Identifier: Apache-2.0
"""A snapshot that attune_memory_snapshot_save wrote, as the file that PyTorch's visualiser of memory opens
(https://pytorch.org/memory_viz):

    python3 -m attune.snapshot SNAPSHOT.json OUT.pickle
"""
import argparse
import json
import os
import pickle
import sys


def convert(text: str) -> bytes:
    """The pickle of a snapshot's JSON, with what torch.cuda.memory._snapshot() has: pool ids are tuples there."""
    root = json.loads(text)
    if not isinstance(root, dict) or not {"segments", "device_traces"} <= root.keys():
        raise ValueError("is not a snapshot of attune_memory_snapshot_save: it has no segments and device_traces")
    try:
        for segment in root["segments"]:
            segment["segment_pool_id"] = tuple(segment["segment_pool_id"])
        return pickle.dumps(root, protocol=4)  # as torch.cuda.memory._dump_snapshot writes
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError("is not a snapshot of attune_memory_snapshot_save: its segments are not as that "
                         "writes them") from error


def main() -> None:
    parser = argparse.ArgumentParser(prog="attune.snapshot", description="Turns a snapshot of attune_memory_snapshot_save into "
                                     "the file that PyTorch's visualiser of memory opens.")
    parser.add_argument("snapshot", metavar="SNAPSHOT.json")
    parser.add_argument("out", metavar="OUT.pickle")
    options = parser.parse_args()
    try:
        if os.path.exists(options.out) and os.path.samefile(options.snapshot, options.out):
            parser.error("SNAPSHOT.json and OUT.pickle are one file; should be two")
        with open(options.snapshot, encoding="utf-8") as file:
            made = convert(file.read())
        with open(options.out, "wb") as file:
            file.write(made)
    except OSError as error:
        sys.exit(f"attune.snapshot: {error.filename or options.out}: {error.strerror}")
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        sys.exit(f"attune.snapshot: {options.snapshot}: should be JSON, as attune_memory_snapshot_save writes it "
                 f"({error})")
    except ValueError as error:
        sys.exit(f"attune.snapshot: {options.snapshot}: {error}")


if __name__ == "__main__":
    main()
