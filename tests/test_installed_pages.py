#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installed pages: what README.md and docs/ link to is installed beside them, but for the sources, which README.md says.
Usage: test_installed_pages.py SOURCE PREFIX"""
import glob
import os
import re
import sys

# Folders and files of the sources alone.
SOURCES = r"(include|src|tuning|ops|tests|cmake|scripts|bench|examples|docs)/?$|(scripts|tests|tuning|ops|src|include|bench/workloads)/"


def main():
    source, prefix = sys.argv[1:]
    found = glob.glob(f"{prefix}/**/README.md", recursive=True)
    if not found:
        sys.exit(f"{prefix} has no README.md")
    root = os.path.dirname(found[0])
    seen, failures = 0, []
    for page in glob.glob(f"{root}/**/*.md", recursive=True):
        name = os.path.relpath(page, root)
        if name.startswith("bench") or name == "CONTRIBUTING.md":
            continue
        text = open(page, encoding="utf-8").read()
        for target in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text):
            path = os.path.normpath(os.path.join(os.path.dirname(name), target))
            if re.match(r"[a-z]+:", target) or re.match(SOURCES, path):
                continue
            seen += 1
            if not os.path.exists(os.path.join(root, path)):
                failures.append(f"{name}: {target} is not installed")
            elif not os.path.exists(os.path.join(source, path)):
                failures.append(f"{name}: {target} is installed and gone from the sources")
    if seen < 20:
        failures.append(f"only {seen} links were found")
    print("\n".join(failures) or f"{seen} links")
    return 1 if failures else 0


sys.exit(main())
