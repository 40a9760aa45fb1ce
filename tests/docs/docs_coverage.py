# SPDX-License-Identifier: Apache-2.0
"""docs/coverage.md against the code, for test_docs.py: names exist, what is there has a proof, sums are right."""
import collections
import re

HEAD = ["Y", "C", "P", "-", "n/a"]
ROWS = 455


def tables(text):
    """Rows of the counts, by topic; and rows of the topics, as (id, status, attune, proof)."""
    counts = re.findall(r"(?m)^\| (\w+) \|[^|]*\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", text)
    rows = re.findall(r"(?m)^\| ([A-Z]+-\d+) \| .*? \| (Y|C|P|-|n/a) \| (.*?) \| (.*?) ?\|$", text)
    return {c[0]: [int(n) for n in c[1:]] for c in counts}, rows


def check_sums(counts, rows, failures):
    seen = collections.defaultdict(lambda: [0] * (len(HEAD) + 1))
    for name, status, _, _ in rows:
        for topic in (name.split("-")[0], "all"):
            seen[topic][HEAD.index(status)] += 1
            seen[topic][-1] += 1
    for topic in sorted(set(seen) | set(counts)):
        if seen.get(topic) != counts.get(topic):
            failures.append(f"docs/coverage.md: {topic} has {seen.get(topic)} rows, the counts say {counts.get(topic)}")
    numbers = [name for name, _, _, _ in rows]
    failures += [f"docs/coverage.md: {n} is there twice" for n, count in collections.Counter(numbers).items() if count > 1]
    if len(rows) != ROWS:
        failures.append(f"docs/coverage.md has {len(rows)} rows; should have {ROWS}")


def proof_of(tree, proof):
    """The text of the test or program, None: there is none."""
    if tree.has(f"examples/{proof}.c"):
        return tree.read(f"examples/{proof}.c")
    wanted = {f"{proof}.c", f"{proof}.sh", f"{proof}.py"}
    return next((tree.read(path) for path in tree.files() if path.startswith("tests/") and path.split("/")[-1] in wanted), None)


def check_row(tree, functions, headers, row, failures):
    name, status, text, proof = row
    names = re.findall(r"\battune_\w+", text)
    for word in names:
        if word not in functions and not re.search(rf"\b{word}\b", headers):
            failures.append(f"docs/coverage.md, {name}: {word} is neither exported nor a name of a header")
    if status not in ("Y", "C"):
        return
    body = proof_of(tree, proof)
    if body is None:
        failures.append(f"docs/coverage.md, {name}: is {status} and names no test or program that there is: \"{proof}\"")
        return
    calls = [word for word in names if word in functions]
    if status == "Y" and not names and not re.search(r"ATTUNE_\w+|`attune ", text):
        failures.append(f"docs/coverage.md, {name}: is Y and names no function, setting or command")
    if status == "Y" and calls and not any(re.search(rf"\b{word}\b", body) for word in names):
        failures.append(f"docs/coverage.md, {name}: {proof} has none of {', '.join(names)}")
    if status == "C" and not proof.startswith("interop/"):
        failures.append(f"docs/coverage.md, {name}: is C and its proof is no program of examples/interop/")


def check_calls(tree, text, failures):
    """What a row C says of CUDA's functions is in the program: one of those that the row names."""
    for line in re.findall(r"(?m)^\| [A-Z]+-\d+ \|.*\| C \|.*$", text):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        calls, body = re.findall(r"\bcuda[A-Za-z0-9]+\b(?!_t)", cells[1]), proof_of(tree, cells[-1])
        if body is not None and calls and not any(call in body for call in calls):
            failures.append(f"docs/coverage.md, {cells[0]}: {cells[-1]} has none of {', '.join(calls)}")


def coverage(tree, failures):
    text = tree.read("docs/coverage.md")
    headers = "\n".join(tree.bare(path) for path in tree.sources("include"))
    functions = set(re.findall(r"\bATTUNE_API\b[^;(]*?\b(attune_\w+)\s*\(", headers))
    counts, rows = tables(text)
    check_sums(counts, rows, failures)
    for row in rows:
        check_row(tree, functions, headers, row, failures)
    check_calls(tree, text, failures)
