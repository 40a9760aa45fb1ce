#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installed pages: every relative link of every page leads to a file that is installed, and an anchor to a title of it; files that
the manual page and the headers name are there. Usage: test_installed_pages.py SOURCE PREFIX"""
import glob
import os
import re
import sys


def links(text):
    code = re.sub(r"```.*?```", "", text, flags=re.S)
    return re.findall(r"\]\(([^)\s]+)\)", code) + re.findall(r'(?:src|srcset|href)="([^"]+)"', code)


def anchors(text):
    titles = re.findall(r"^#+ (.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def check_page(root, prefix, page):
    """Yields what is wrong, and None for each link that is right."""
    name = os.path.relpath(page, root)
    for target in links(read(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(file):
            yield f"{name}: {target} is not installed"
        elif not file.startswith(prefix + os.sep):
            yield f"{name}: {target} leads out of the installation"
        elif anchor and anchor not in anchors(read(file)):
            yield f"{name}: {target}: no such title"
        else:
            yield None


def check_names(root, include, path):
    """docs/NAME.md and attune/NAME.h in a text that has no links."""
    text = read(path).replace("\\-", "-")
    for name in re.findall(r"\b(?:docs|bench|examples)/[\w./-]*\.(?:md|csv|c)\b", text):
        yield None if os.path.exists(os.path.join(root, name)) else f"{os.path.basename(path)}: {name} is not installed"
    for name in re.findall(r"\battune/\w+\.h\b", text):
        yield None if os.path.exists(os.path.join(include, name)) else f"{os.path.basename(path)}: {name} is not installed"


def main():
    source, prefix = sys.argv[1], os.path.abspath(sys.argv[2])
    found = glob.glob(f"{prefix}/**/README.md", recursive=True)
    manual = glob.glob(f"{prefix}/**/attune.1", recursive=True)
    header = glob.glob(f"{prefix}/**/attune/attune.h", recursive=True)
    if not found or not manual or not header:
        sys.exit(f"{prefix} lacks README.md, attune.1 or attune.h")
    root, include = os.path.dirname(found[0]), os.path.dirname(os.path.dirname(header[0]))
    results, pages = [], sorted(glob.glob(f"{root}/**/*.md", recursive=True))
    for page in pages:
        results += check_page(root, prefix, page)
        if not os.path.exists(os.path.join(source, os.path.relpath(page, root))):
            results.append(f"{page} is installed and gone from the sources")
    for page in ("docs/reference.md", "docs/expressions.md"):
        if not any(target.endswith("include/attune/elementwise_cuda.h") for target in links(read(os.path.join(root, page)))):
            results.append(f"{page} has no link to the installed header elementwise_cuda.h")
    for path in manual + sorted(glob.glob(f"{include}/attune/*.h")):
        results += check_names(root, include, path)
    failures = [result for result in results if result]
    if len(results) < 60 or len(pages) < 12:
        failures.append(f"only {len(results)} links and names were found in {len(pages)} pages")
    print("\n".join(failures) or f"{len(results)} links and names in {len(pages)} pages")
    return 1 if failures else 0


sys.exit(main())
