#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_docs.py ROOT: what the pages say of the code is what the code has: environment variables, columns of the database,
columns of a workload, implementations and their keys, fields of the profile; and every link leads to a file."""
import os
import re
import sys

ROOT = sys.argv[1]
failures = []


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def sources(*folders):
    for folder in folders:
        for path, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".cu", ".txt")):
                    yield os.path.relpath(os.path.join(path, name), ROOT)


def compare(what, page, code):
    for name in sorted(code - page):
        failures.append(f"{what}: the code has {name}, the page does not")
    for name in sorted(page - code):
        failures.append(f"{what}: the page has {name}, the code does not")
    if not code:
        failures.append(f"{what}: found nothing in the code; has its form changed?")


def rows(text, heading):
    """The first cells' words in backquotes of the tables under `heading`, up to the next heading."""
    part = re.split(r"(?m)^#+ (?=[A-Z])", text.split(heading, 1)[1])[0] if heading in text else ""
    names = set()
    for line in part.splitlines():
        if line.startswith("| `"):
            names.update(re.findall(r"`([^`]+)`", line.split("|")[1]))
    return names


def environment():
    page = rows(read("docs/environment.md"), "# Environment variables")
    page |= rows(read("docs/environment.md"), "## Tests")
    code = set()
    for path in sources("src", "tuning", "ops"):
        code |= set(re.findall(r'(?:variable|getenv|read_path)\([^;]*?"(ATTUNE_[A-Z_]+)"', read(path)))
    for path in sources("tests"):
        code |= set(re.findall(r'(?:getenv|scale)\("(ATTUNE_TEST_[A-Z_]+)"', read(path)))
    compare("docs/environment.md", {name for name in page if name.startswith("ATTUNE_")}, code)


def database():
    text = read("docs/formats.md")
    tables = dict(re.findall(r"CREATE TABLE (\w+) \((.*?)\n\) STRICT", read("tuning/schema.sql"), re.S))
    columns = set(re.findall(r"(?m)^  (\w+) (?:TEXT|REAL|INTEGER|BLOB)", tables.get("winner", "")))
    part = text.split("The columns of `winner`:", 1)
    compare("docs/formats.md, tables", rows(part[0], "## Tuning database"), set(tables))
    compare("docs/formats.md, winner", rows("# x\n" + part[1], "# x"), columns)


def workload():
    code = {"name", "op", "count", "problem"}
    for path in sources("ops", "tuning"):
        for part in re.findall(r'strcmp\(field->name, "(\w+)"\)|\{"(\w+)", &p->', read(path)):
            code |= {name for name in part if name}
    compare("docs/formats.md, workload", rows(read("docs/formats.md"), "## Workload CSV"), code)


def profile():
    text = read("tuning/profile_report.c")
    body = text[text.index("static void put_entry"):text.index("/* ---- the table ---- */")]
    code = set(re.findall(r'\\"(\w+)\\": ', body)) | set(re.findall(r'put_(?:time|named)\(out, "(\w+)"', body))
    compare("docs/formats.md, profile", rows(read("docs/formats.md"), "## Profile JSON"), code)


def configurations():
    text = read("docs/configurations.md")
    names, keys = set(), set()
    for path in sources("ops"):
        names |= set(re.findall(r'\.name = "((?:host|cublas)\w*)",\n\s*\.version', read(path)))
        keys |= set(re.findall(r'at_configuration_put(?:_text)?\(&?\w+, "(\w+)"', read(path)))
    keys |= set(re.findall(r'\[AT_LT_\w+\] = \{"(\w+)"', read("ops/gemm/cublaslt_algorithm.c")))
    compare("docs/configurations.md, implementations", set(re.findall(r"(?m)^## (\w+)$", text)), names)
    page = set()
    for line in text.splitlines():
        if line.startswith("| `"):
            page.update(re.findall(r"`([^`]+)`", line.split("|")[1]))
    compare("docs/configurations.md, keys", page, keys)


def links():
    pages = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md"]
    pages += ["docs/" + name for name in sorted(os.listdir(os.path.join(ROOT, "docs"))) if name.endswith(".md")]
    for page in pages:
        text = read(page)
        for target in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(os.path.join(ROOT, file)):
                failures.append(f"{page}: there is no {target}")
            elif anchor and anchor not in anchors(read(file)):
                failures.append(f"{page}: {file} has no heading #{anchor}")


def anchors(text):
    headings = re.findall(r"(?m)^#+ (.*)$", text)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


for check in (environment, database, workload, profile, configurations, links):
    check()
for failure in failures:
    print(failure)
print(f"{len(failures)} differences" if failures else "the pages say what the code has")
sys.exit(1 if failures else 0)
