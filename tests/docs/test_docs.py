#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_docs.py ROOT: what the pages say of the code is what the code has, and back: columns of the database, commands and
options, files, names; and every link leads somewhere. test_docs_caught.py shows that each check finds what it is for. Lists
that the code has are compared with the pages by programs: environment variables, keys of ATTUNE_ALLOC and columns of a
workload in test_documented_lists.c, implementations and their keys in test_conformance_pages.c, fields of JSON in
test_profile_report.c and test_gate_report.c."""
import os
import re
import sys

sys.dont_write_bytecode = True
from docs_coverage import coverage

CODE = (".c", ".h", ".cu", ".cuh", ".def", ".txt", ".cmake", ".map", ".sql", ".py", ".sh", ".f90")

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


class Tree:
    """The repository; `changes` are texts by path, in place of what the files hold."""

    def __init__(self, root):
        self.root, self.changes, self.kept, self.found, self.asked = root, {}, {}, {}, set()
        self.paths = set()
        for path, folders, names in os.walk(root):
            folders[:] = [f for f in folders if not (f.startswith(".") and f != ".ci") and not f.startswith("build")]
            self.paths.update(os.path.relpath(os.path.join(path, name), root) for name in names)
        self.folders = {p[:i] for p in self.paths for i, letter in enumerate(p) if letter == "/"}

    def read(self, path):
        self.asked.add(path)
        if path in self.changes:
            return self.changes[path]
        if path not in self.kept:
            with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as file:
                self.kept[path] = file.read()
        return self.kept[path]

    def files(self):
        return sorted(self.paths | set(self.changes))

    def sources(self, *folders, ends=(".c", ".h", ".cu")):
        return [p for p in self.files() if p.endswith(ends) and p.split("/")[0] in folders]

    def pages(self):
        return [p for p in self.files() if p.endswith(".md") and not p.startswith("bench/results/")]

    def has(self, path):
        return path in self.paths or path in self.changes or path.rstrip("/") in self.folders

    def bare(self, path):
        """C without comments."""
        self.asked.add(path)
        if path in self.changes:
            return COMMENT.sub(" ", self.changes[path])
        if path not in self.found:
            self.found[path] = COMMENT.sub(" ", self.read(path))
        return self.found[path]

    def findall(self, pattern, path):
        """re.findall in a file, kept."""
        self.asked.add(path)
        if path in self.changes:
            return re.findall(pattern, self.changes[path])
        if (pattern, path) not in self.found:
            self.found[pattern, path] = re.findall(pattern, self.read(path))
        return self.found[pattern, path]


def compare(what, page, code, failures):
    failures += [f"{what}: the code has {name}, the page does not" for name in sorted(code - page)]
    failures += [f"{what}: the page has {name}, the code does not" for name in sorted(page - code)]
    if not code:
        failures.append(f"{what}: found nothing in the code; has its form changed?")


def part(text, heading):
    """What stands under `heading`, up to the next one of any level."""
    return re.split(r"(?m)^#+ (?=\w)", text.split(heading + "\n", 1)[1])[0] if heading + "\n" in text else ""


def rows(text):
    """The words in backquotes in the first cells of tables."""
    names = set()
    for line in text.splitlines():
        if line.startswith("| `"):
            names.update(re.findall(r"`([^`]+)`", line.split("|")[1]))
    return names


def environment(tree, failures):
    """test_documented_lists.c compares the first page with the code; the rest follows it."""
    for path in tree.sources("src", "tuning", "ops", "tools"):
        if path != "src/base/settings.c" and not path.startswith("tools/cli/"):
            if re.search(r"\b(secure_)?getenv\(", tree.bare(path)):
                failures.append(f"{path} reads the environment; only src/base/settings.c does")
    page = tree.read("docs/environment.md")
    own = {name for name in rows(part(page, "# Environment variables")) if name.startswith("ATTUNE_")}
    compare("tests/CMakeLists.txt, unset", set(re.findall(r'"(ATTUNE_\w+)=unset:"', tree.read("tests/CMakeLists.txt"))),
            own, failures)
    tests = set()
    for path in tree.sources("tests", "bench"):
        tests |= set(re.findall(r'"(ATTUNE_TEST_[A-Z0-9_]+)"', tree.bare(path)))
    compare("docs/environment.md, tests", rows(part(page, "## Tests")), tests, failures)


def database(tree, failures):
    text = tree.read("docs/formats.md")
    tables = dict(re.findall(r"CREATE TABLE (\w+) \((.*?)\n\) STRICT", tree.read("tuning/store/schema.sql"), re.S))
    columns = set(re.findall(r"(?m)^  (\w+) (?:TEXT|REAL|INTEGER|BLOB)", tables.get("winner", "")))
    first, _, second = part(text, "## Tuning database").partition("The columns of `winner`:")
    compare("docs/formats.md, tables", rows(first), set(tables), failures)
    compare("docs/formats.md, winner", rows(second), columns, failures)
    results = set(re.findall(r"CREATE TABLE (\w+) \(", tree.read("tools/compare/results/results.sql")))
    compare("docs/formats.md, result tables", rows(part(text, "## Result file")), results, failures)


def commands(tree, failures):
    """Commands and options that pages name are in the manual's marked part, which `attune --manual` prints."""
    manual = tree.read("docs/attune.1").replace("\\-", "-")
    made = manual[manual.index("attune --manual: begin"):manual.index("attune --manual: end")]
    names = set(re.findall(r"(?m)^\.B attune (\w+)$", made))
    options = set(re.findall(r"--([a-z][a-z-]+)", made))
    options |= {"help", "usage", "version", "manual"}
    texts = [("docs/attune.1", manual)]
    for page in tree.pages():
        text = tree.read(page)
        blocks = "\n".join(re.findall(r"(?ms)^```[^\n]*\n(.*?)^```", text))
        spans = re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^```.*?^```", "", text))
        texts.append((page, "\n".join(spans) + "\n" + blocks))
    for page, text in texts:
        for line in re.findall(r"(?m)^(?:[A-Z_]+=\S+ )*attune ([^#\n]*)", text):
            words = line.split()
            if words and re.fullmatch(r"[a-z]+", words[0]) and words[0] not in names:
                failures.append(f"{page}: attune has no command {words[0]}")
            for option in re.findall(r"(?:^|\s)--([a-z][a-z-]+)", line):
                if option not in options:
                    failures.append(f"{page}: attune has no option --{option}")
    for option in re.findall(r"(?<![\w-])--([a-z][a-z-]+)", manual):
        if option not in options:
            failures.append(f"docs/attune.1: attune has no option --{option}")


def headers(tree, failures):
    """Each public header is in the table of docs/reference.md, and all but tools.h are in attune.h."""
    code = {os.path.basename(p) for p in tree.files() if re.fullmatch(r"include/attune/\w+\.h", p)} - {"attune.h"}
    named = set(re.findall(r"#include <attune/(\w+\.h)>", tree.read("include/attune/attune.h")))
    compare("include/attune/attune.h", named, code - {"tools.h"}, failures)
    cells = [line.split("|")[1] for line in tree.read("docs/reference.md").splitlines() if line.startswith("| ")]
    compare("docs/reference.md", set(re.findall(r"\w+\.h", " ".join(cells))), code, failures)


def clients(tree, failures):
    """Each public function is called by an example, a benchmark, the command or a binding: else it is of no use, or a user
    has to guess its use."""
    called = set()
    for path in tree.files():
        if path.split("/")[0] in ("examples", "bench", "tools", "bindings") and path.endswith((".c", ".h", ".py", ".f90")):
            called |= set(re.findall(r"\battune_\w+", tree.bare(path)))
    for path in tree.sources("include"):
        for name in re.findall(r"\bATTUNE_API\b[^;(]*?\b(attune_\w+)\s*\(", tree.bare(path)):
            if name not in called:
                failures.append(f"{path}: {name} is called by no example, benchmark, command or binding")


def anchors(text):
    headings = re.findall(r"(?m)^#+ (.*)$", text)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(tree, failures):
    for page in [p for p in tree.files() if p.endswith(".md")]:
        text = tree.read(page)
        for target in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not tree.has(file):
                failures.append(f"{page}: there is no {target}")
            elif anchor and anchor not in anchors(tree.read(file)):
                failures.append(f"{page}: {file} has no heading #{anchor}")


def files(tree, failures):
    """Files that pages name in text or code: with a folder of the repository, or the name of a source."""
    tops = {p.split("/")[0] for p in tree.files() if "/" in p}
    bases = {os.path.basename(p) for p in tree.files()}
    for page in tree.pages():
        text = re.sub(r"<\w+\.h>", "", tree.read(page))
        if page == "docs/tutorial.md":
            text = text.replace("hello.c", "")  # which its reader writes
        for name in re.findall(r"(?<![\w/.~$-])([\w.-]+(?:/[\w.-]+)*/?)", text):
            name = name.rstrip(".")
            if re.search(r"NAME|YYYY", name) or name.startswith("build/"):
                continue
            top = name.split("/")[0]
            if "/" in name and (top in tops or top == "attune") and not name.endswith(".db"):
                here = [name, os.path.join(os.path.dirname(page), name), os.path.join("include", name)]
                if not any(tree.has(os.path.normpath(p)) for p in here) and "." in os.path.basename(name):
                    failures.append(f"{page}: there is no {name}")
            elif "/" not in name and re.search(r"\w\.(c|h|cu|def|sql|map|cmake|awk)$", name) and name not in bases:
                failures.append(f"{page}: there is no file {name}")


def names(tree, failures):
    """Functions, types and macros that pages name."""
    code = set()
    for path in tree.files():
        if path.endswith(CODE) and not path.startswith(("bench/results/", "tests/docs/test_docs")):
            code |= set(tree.findall(r"\b(?:at|attune|AT|ATTUNE)_\w+", path))
    code |= {name + "_" for name in code}
    stems = "\n".join(sorted(code))
    for page in tree.pages():
        if page == "CHANGELOG.md":
            continue  # it tells of what is gone
        for name in sorted(set(re.findall(r"(?<![\w/-])(?:at|attune|AT|ATTUNE)_\w+", tree.read(page)))):
            if re.search(r"[A-Z]{2}", name) and name.startswith(("at_", "attune_")):
                continue  # attune_NAME: a pattern
            if name not in code and not (name.endswith("_") and "\n" + name in stems):
                failures.append(f"{page}: the code has no {name}")


CHECKS = (environment, database, commands, headers, clients, links, files, names, coverage)


def failures_of(tree):
    failures = []
    for check in CHECKS:
        check(tree, failures)
    return failures


if __name__ == "__main__":
    found = failures_of(Tree(sys.argv[1]))
    for failure in found:
        print(failure)
    print(f"{len(found)} differences" if found else "the pages say what the code has")
    sys.exit(1 if found else 0)
