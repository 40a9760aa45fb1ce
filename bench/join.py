#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Joins the CSV files of bench_gemm and torch_gemm.py by problem name into one markdown table: microseconds a call of
every way, and the best peer over attune. Files are runs of their own, so a few per cent between them mean nothing."""
import argparse
import csv
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import turns


def read(paths):
    names, ways, cells = [], [], {}
    for path in paths:
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                try:
                    value = float(row["us"])
                except (KeyError, TypeError, ValueError):
                    raise SystemExit(f"join.py: {path} is no CSV of bench_gemm or torch_gemm.py: no number in us")
                if row["name"] not in names:
                    names.append(row["name"])
                if row["way"] not in ways:
                    ways.append(row["way"])
                cells[row["name"], row["way"]] = value
    return names, ways, cells


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", metavar="CSV")
    parser.add_argument("--title", default="GEMM: attune beside all peers")
    options = parser.parse_args()
    names, ways, cells = read(options.files)
    if "attune" not in ways:
        raise SystemExit("join.py: no file has the way attune; give bench_gemm's CSV too")
    peers = [way for way in ways if way != "attune"]
    report = turns.Report()
    report(f"# {options.title}\n\nMicroseconds a call; the best of each row is bold. "
           "Ways of different files were measured in different runs.\n")
    report.table("name", *(f"{way}>" for way in ways), "best peer / attune>")
    best = []
    for name in names:
        row = [cells.get((name, way)) for way in ways]
        least = min(value for value in row if value is not None)
        texts = [f"**{number(value)}**" if value == least else number(value) for value in row]
        rivals = [cells[name, way] for way in peers if (name, way) in cells]
        mine = cells.get((name, "attune"))
        ratio = min(rivals) / mine if rivals and mine else None
        if ratio:
            best.append(ratio)
        report.row(name, *texts, f"{ratio:.3f}" if ratio else "-")
    report("")
    for way in peers:
        both = [name for name in names if (name, way) in cells and (name, "attune") in cells]
        ratios = [cells[name, way] / cells[name, "attune"] for name in both]
        if ratios:
            report(f"- {way} / attune: geomean {turns.geomean(ratios):.4f} over {len(ratios)}, least {min(ratios):.3f}")
    if best:
        report(f"- best peer of each shape / attune: geomean {turns.geomean(best):.4f}, least {min(best):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
