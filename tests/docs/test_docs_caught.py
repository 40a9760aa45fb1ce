#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_docs_caught.py ROOT: test_docs.py finds what it is for. Each change to a page or to the code, by itself, gives the
difference that is named here."""
import sys

sys.dont_write_bytecode = True
import test_docs

NEW_FILE = None  # in place of the words to replace: the file is new, with this text

# file, words, what stands in their place, and the difference that must be told
CHANGES = (
    ("docs/environment.md", "| `ATTUNE_MODE` |", "| `ATTUNE_MODUS` |", "unset: the code has ATTUNE_MODUS"),
    ("docs/environment.md", "| `ATTUNE_TEST_KIND` |", "| `ATTUNE_TEST_KINDS` |", "the code has ATTUNE_TEST_KIND, the page"),
    ("tests/CMakeLists.txt", '"ATTUNE_THREADS=unset:"', "", "unset: the code has ATTUNE_THREADS"),
    ("src/process/log.c", NEW_FILE, 'char *s = getenv("ATTUNE_OTHER");', "src/process/log.c reads the environment"),
    ("ops/gemm/new.c", NEW_FILE, 'x = secure_getenv(\n "ATTUNE_OTHER");', "ops/gemm/new.c reads the environment"),
    ("tuning/store/schema.sql", "  note TEXT", "  remark TEXT", "the code has remark, the page does not"),
    ("docs/formats.md", "| `lease` |", "| `loan` |", "tables: the page has loan"),
    ("docs/attune.1", ".SH NOTES\n", ".SH NOTES\nWith \\-\\-quick it is faster.\n", "attune has no option --quick"),
    ("docs/reference.md", "attune show --db", "attune list --db", "docs/reference.md: attune has no command list"),
    ("docs/tutorial.md", "attune tune ", "attune tune --quickly ", "docs/tutorial.md: attune has no option --quickly"),
    ("include/attune/scan.h", NEW_FILE, "int x;", "include/attune/attune.h: the code has scan.h"),
    ("examples/workload.c", "attune_tuner_profile_write(", "do_nothing(", "profile.h: attune_tuner_profile_write is called by no"),
    ("docs/reference.md", "| plan.h |", "| plans.h |", "docs/reference.md: the code has plan.h"),
    ("README.md", "(docs/tutorial.md)", "(docs/tutor.md)", "README.md: there is no docs/tutor.md"),
    ("bench/results/h200-gemm.md", "# ", "# [x](nowhere.md) ", "h200-gemm.md: there is no nowhere.md"),
    ("CONTRIBUTING.md", "environment.md#tests", "environment.md#test", "has no heading #test"),
    ("CONTRIBUTING.md", "`tuning/store/store_fields.h`", "`tuning/texts.h`", "CONTRIBUTING.md: there is no tuning/texts.h"),
    ("CONTRIBUTING.md", "`tuning/store/store_connect.c`", "`plan_last.h`", "CONTRIBUTING.md: there is no file plan_last.h"),
    ("CONTRIBUTING.md", "`at_op_check`", "`at_op_looks`", "CONTRIBUTING.md: the code has no at_op_looks"),
    ("docs/tutorial.md", "attune_tuner_create", "attune_tuner_make", "the code has no attune_tuner_make"),
    ("docs/coverage.md", "| attune_set_race_check | test_race |", "| attune_set_race_checks | test_race |", "neither exported"),
    ("docs/coverage.md", "| attune_trace_mark | test_trace |", "| attune_trace_mark | test_trac |", "names no test or program"),
    ("docs/coverage.md", "| attune_trace_mark | test_trace |", "| attune_trace_mark | test_race |", "test_race has no attune_trace_mark"),
    ("docs/coverage.md", "attune_event_wrap | test_cuda_stream |", "attune_event_wrap | test_stream |", "sees only failures of"),
    ("docs/coverage.md", "| attune_trace_mark | test_trace |", "| marks | test_trace |", "names no function, setting or command"),
    ("docs/coverage.md", "| n/a | attune has no FFT", "| - | attune has no FFT", "the counts say"),
    ("docs/coverage.md", "interop/driver_entry |", "interop/textures |", "has no cudaGetDriverEntryPoint"),
)


def main():
    tree = test_docs.Tree(sys.argv[1])
    wrong, before, asked = [], [], {}
    for check in test_docs.CHECKS:
        tree.asked = asked[check] = set()
        check(tree, before)  # test_docs reports those failures
    for path, words, instead, told in CHANGES:
        text = instead if words is NEW_FILE else tree.read(path)
        if words is not NEW_FILE and words not in text:
            wrong.append(f"{path} has no {words!r} any more: name other words here")
            continue
        tree.changes = {path: text if words is NEW_FILE else text.replace(words, instead)}
        found = []
        for check in [c for c in test_docs.CHECKS if words is NEW_FILE or path in asked[c]]:
            check(tree, found)
            if any(told in failure for failure in found if failure not in before):
                break
        else:
            wrong.append(f"{path}, {words!r} -> {instead!r}: not found, {told!r}; told: {found}")
        tree.changes = {}
    for line in wrong:
        print(line)
    print(f"{len(CHANGES)} changes, {len(wrong)} wrong")
    return 1 if wrong else 0


sys.exit(main())
