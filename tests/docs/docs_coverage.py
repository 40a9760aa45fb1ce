# SPDX-License-Identifier: Apache-2.0
"""docs/coverage.md against the code, for test_docs.py: names exist, what is there has a proof, sums are right."""
import collections
import functools
import re

HEAD = ["Y", "C", "P", "-", "n/a"]
ROWS = 456
STATUSES = ("INVALID_ARGUMENT", "OUT_OF_MEMORY", "UNSUPPORTED", "NOT_FOUND", "NOT_READY", "DEVICE_ERROR", "CAPTURING", "BAD_DATA",
            "PERMISSION", "IO_ERROR", "BUSY", "BUDGET_EXHAUSTED", "INTERNAL")
REFUSAL = rf"ATTUNE_({'|'.join(STATUSES)})\b|refused|not_equal\([^;]*ATTUNE_OK"


def tables(text):
    """Rows of the counts, by topic; and rows of the topics, as (id, status, attune, proof, capability)."""
    counts = re.findall(r"(?m)^\| (\w+) \|[^|]*\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", text)
    rows = re.findall(r"(?m)^\| ([A-Z]+-\d+) \| (.*?) \| (Y|C|P|-|n/a) \| (.*?) \| (.*?) ?\|$", text)
    rows = [(name, status, has, proof, capability) for name, capability, status, has, proof in rows]
    return {c[0]: [int(n) for n in c[1:]] for c in counts}, rows


def check_sums(counts, rows, failures):
    seen = collections.defaultdict(lambda: [0] * (len(HEAD) + 1))
    for name, status, *_ in rows:
        for topic in (name.split("-")[0], "all"):
            seen[topic][HEAD.index(status)] += 1
            seen[topic][-1] += 1
    for topic in sorted(set(seen) | set(counts)):
        if seen.get(topic) != counts.get(topic):
            failures.append(f"docs/coverage.md: {topic} has {seen.get(topic)} rows, the counts say {counts.get(topic)}")
    numbers = [row[0] for row in rows]
    failures += [f"docs/coverage.md: {n} is there twice" for n, count in collections.Counter(numbers).items() if count > 1]
    if len(rows) != ROWS:
        failures.append(f"docs/coverage.md has {len(rows)} rows; should have {ROWS}")


def proofs_of(tree, cell):
    """By name in the cell, which may have several: the text of the test or program, None: there is none."""
    found = {}
    for proof in cell.split(", "):
        wanted = {f"{proof}.c", f"{proof}.sh", f"{proof}.py"}
        paths = [f"examples/{proof}.c"] + [p for p in tree.files() if p.startswith("tests/") and p.split("/")[-1] in wanted]
        found[proof] = next((tree.bare(path) for path in paths if tree.has(path)), None)
    return found


@functools.cache
def statements_of(body):
    return re.split("[;{}]", body)


def only_refused(word, body, text):
    """True if each statement of C that has the function expects a failure, and none that the row tells of."""
    statements = [s for s in statements_of(body) if re.search(rf"\b{word}\b", s)]
    told = "|".join(status for status in STATUSES if re.search(rf"\b{status}\b", text)) or "OK"
    return bool(statements) and all(re.search(REFUSAL, s) and not re.search(rf"ATTUNE_({told})\b", s) for s in statements)


def names_of(text):
    """What a row says attune has: functions, types, constants; fields; and words in backquotes."""
    names = set(re.findall(r"\b(?:attune|ATTUNE)_\w+", re.sub(r"\battune_\w+\.(?=\w)", ".", text)))
    fields = set(re.findall(r"(?<!\w)\.(\w+)", re.sub(r"\battune_\w+\.(?=\w)", ".", text)))
    quoted = {w for span in re.findall(r"`([^`]+)`", text) for w in re.findall(r"-{0,2}[a-z]\w+", span)} - {"attune"}
    return names, fields, quoted


def check_row(tree, functions, headers, row, failures):
    name, status, text, proof, capability = row
    where = f"docs/coverage.md, {name}"
    for word in re.findall(r"\battune_\w+", text):
        if word not in functions and not re.search(rf"\b{word}\b", headers):
            failures.append(f"{where}: {word} is neither exported nor a name of a header")
    if status not in ("Y", "C"):
        return
    proofs = proofs_of(tree, proof)
    failures += [f"{where}: is {status} and names no test or program that there is: \"{p}\"" for p, b in proofs.items() if b is None]
    body = "\n".join(filter(None, proofs.values()))
    names, fields, quoted = names_of(text)
    if status == "C":
        failures += [f"{where}: is C and {p} is no program of examples/interop/" for p in proofs if not p.startswith("interop/")]
        names, fields, quoted = set(re.findall(r"\b(?:cuda[A-Z]|CU)[A-Za-z0-9_]+\b", capability)), set(), set()
    elif not names | fields | quoted:
        failures.append(f"{where}: is Y and names no function, setting or command")
    missing = [n for n in names | quoted if not re.search(rf"(?<!\w){re.escape(n)}(?!\w)", body)]
    missing += [f".{n}" for n in fields if not re.search(rf"(?:\.|->|\"){n}\b", body)]
    if missing:
        failures.append(f"{where}: {proof} has no {', '.join(sorted(missing))}")
    refused = sorted(n for n in names & functions if only_refused(n, body, text))
    if refused:
        failures.append(f"{where}: {proof} sees only failures of {', '.join(refused)}")


def coverage(tree, failures):
    text = tree.read("docs/coverage.md")
    headers = "\n".join(tree.bare(path) for path in tree.sources("include"))
    functions = set(re.findall(r"\bATTUNE_API\b[^;(]*?\b(attune_\w+)\s*\(", headers))
    counts, rows = tables(text)
    check_sums(counts, rows, failures)
    for row in rows:
        check_row(tree, functions, headers, row, failures)
