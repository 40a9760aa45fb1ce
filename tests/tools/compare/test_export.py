#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_export.py ATTUNE WORKER: what `attune bench --export', `attune compare --export' and `attune export' write is what the readers of these
formats ask for, by their published descriptions; what Google Benchmark and Criterion.rs write becomes a run, alone and of several processes, and is
judged as far as it can be. The worker's times are made up."""
import csv
import json
import os
import subprocess
import sys
import tempfile

ATTUNE, WORKER = sys.argv[1], sys.argv[2]
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "verbosity=0") + ":detect_leaks=0")


def run(code, *words):
    done = subprocess.run([ATTUNE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, check=False)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, f"{words}: exit code {done.returncode}, should be {code}\n{out}{err}"
    return out, err


def says(text, *parts):
    for part in parts:
        assert part in text, f"no \"{part}\" in:\n{text}"


def bench(*words, code=0, cases="a=time:1500 'b,\"\u00e4=time:2500000'", rounds="8"):
    return run(code, "bench", "--program", f"{WORKER} {cases}", "--rounds", rounds, "--samples", "2", *words)


# --- exports ---

def bmf(text, names):
    """An object a benchmark, in it an object a measure: value, and both bounds or none."""
    whole = json.loads(text)
    assert list(whole) == names, list(whole)
    for measures in whole.values():
        assert list(measures) == ["latency"]
        numbers = measures["latency"]
        assert set(numbers) in ({"value"}, {"value", "lower_value", "upper_value"}), numbers
        assert all(isinstance(n, (int, float)) for n in numbers.values())
        assert numbers.get("lower_value", 0) <= numbers["value"] <= numbers.get("upper_value", 1e300)
    return whole


def github(text, names):
    """A list of objects with name, unit and value, range and extra as text."""
    whole = json.loads(text)
    assert [entry["name"] for entry in whole] == names
    for entry in whole:
        assert entry["unit"] == "ns" and isinstance(entry["value"], (int, float))
        assert isinstance(entry.get("range", ""), str) and isinstance(entry["extra"], str)
    return whole


def google(text, names):
    """context and benchmarks; what tools/compare.py and other readers look at is there."""
    whole = json.loads(text)
    for name, kind in {"date": str, "host_name": str, "executable": str, "num_cpus": int, "mhz_per_cpu": int, "cpu_scaling_enabled": bool,
                       "caches": list, "load_avg": list, "library_build_type": str}.items():
        assert isinstance(whole["context"][name], kind), name
    assert list(dict.fromkeys(entry["run_name"] for entry in whole["benchmarks"])) == names
    for entry in whole["benchmarks"]:
        for name, kind in {"name": str, "run_type": str, "repetitions": int, "threads": int, "iterations": int, "real_time": (int, float),
                           "cpu_time": (int, float), "time_unit": str, "family_index": int, "per_family_instance_index": int}.items():
            assert isinstance(entry[name], kind), (name, entry)
        assert entry["time_unit"] == "ns"
        if entry["run_type"] == "aggregate":
            assert entry["name"] == entry["run_name"] + "_" + entry["aggregate_name"] and entry["aggregate_unit"] == "time"
        else:
            assert entry["run_type"] == "iteration" and isinstance(entry["repetition_index"], int)
    return whole


def otava(text, names):
    """Equal rows, a number in every cell of a case."""
    rows = list(csv.reader(text.splitlines()))
    assert rows[0] == ["time", "commit", "run", *names], rows[0]
    assert all(len(row) == len(rows[0]) for row in rows)
    assert all(float(cell) > 0 for row in rows[1:] for cell in row[3:])
    assert [row[0] for row in rows[1:]] == sorted(row[0] for row in rows[1:]) and all(row[0].endswith(" +0000") for row in rows[1:])
    return rows


FORMATS = {"bmf": bmf, "github": github, "google": google, "otava": otava}
NAMES = ["a", "b,\"\u00e4"]


def exports(folder):
    results = f"{folder}/r.db"
    files = {name: f"{folder}/{name}" for name in FORMATS}
    words = [word for name, path in files.items() for word in ("--export", f"{name}={path}")]
    out, err = bench("--save", results, "--label", "one", *words)
    says(out, "2 cases; 8 rounds")
    assert err == "", err
    read = {name: open(path, encoding="utf-8").read() for name, path in files.items()}
    made = {name: FORMATS[name](text, NAMES) for name, text in read.items()}
    assert made["bmf"]["a"]["latency"] == {"value": 1500, "lower_value": 1500, "upper_value": 1500}
    assert made["github"][1]["extra"].startswith("processes: 8\n")
    assert made["github"][1]["value"] == 2500000 and made["github"][1]["range"] == "\u00b1 0"
    repetitions = [e for e in made["google"]["benchmarks"] if e["run_type"] == "iteration" and e["name"] == "a"]
    assert [e["repetition_index"] for e in repetitions] == list(range(8)) and all(e["real_time"] == 1500 for e in repetitions)
    assert all(e["bytes_per_second"] == 100 / 1500e-9 or abs(e["bytes_per_second"] * 1.5e-8 - 1) < 1e-9 for e in repetitions)
    assert {e["aggregate_name"]: e["real_time"] for e in made["google"]["benchmarks"] if e["run_name"] == "a" and "aggregate_name" in e} == \
        {"mean": 1500, "median": 1500, "stddev": 0}
    assert len(made["otava"]) == 2
    for name, check in FORMATS.items():  # the stored run says the same
        check(run(0, "export", results, "--format", name)[0], NAMES)
        assert run(0, "export", f"{results}:one", "--format", name)[0] == read[name], name
    # Later runs are rows; a run that lacks a case is none, nor is the base of a pair.
    bench("--save", results, cases="a=time:1501")
    bench("--save", results, cases="a=time:1502 'b,\"\u00e4=time:2500001' c=time:7")
    assert [row[2:] for row in otava(run(0, "export", results, "--format", "otava")[0], NAMES + ["c"])[1:]] == [["3", "1502", "2500000", "7"]]
    rows = otava(run(0, "export", results, "--format", "otava", "--filter", "a")[0], ["a"])
    assert [row[2:] for row in rows[1:]] == [["1", "1500"], ["2", "1501"], ["3", "1502"]]
    rows = otava(run(0, "export", f"{results}:2", "--format", "otava")[0], ["a"])
    assert [row[2] for row in rows[1:]] == ["1", "2"]
    # A case that failed has no number, and that is said; modes and devices stay apart.
    out, err = bench("--export", "bmf=-", code=1, cases="a=time:1 bad=failed")
    bmf(out, ["a"])
    says(err, "1 case failed or had no time, so the export leaves them out")
    out, err = bench("--export", "google=-", code=1, cases="bad=failed", rounds="1")
    assert google(out, ["bad"])["benchmarks"][0]["error_message"] == "no set-up"
    out, _ = run(0, "bench", "--command", "time=/bin/true", "--command", "branch=/bin/true", "--rounds", "1", "--samples", "1", "--export", "otava=-")
    otava(out, ["time [process]", "branch [process]"])
    out, _ = bench("--export", "otava=-", cases="time=time:5 commit=time:6 branch=time:7 run=time:8", rounds="1")
    otava(out, ["case time", "case commit", "case branch", "case run"])


def exports_of_pairs(folder):
    for side, time in (("new", 1200), ("old", 1000)):
        os.mkdir(f"{folder}/{side}")
        with open(f"{folder}/{side}/run", "w", encoding="utf-8") as script:
            script.write(f"#!/bin/sh\nexec {WORKER} a=time:{time} \"$@\"\n")
        os.chmod(f"{folder}/{side}/run", 0o755)
    pair = ["bench", "--program", "{build}/run", "--build", f"{folder}/new", "--against", f"{folder}/old", "--rounds", "12", "--samples", "1"]
    out, _ = run(1, *pair, "--save", f"{folder}/p.db", "--export", "bmf=-")
    assert bmf(out, ["a"])["a"]["latency"]["value"] == 1200  # the head's
    out, _ = run(1, "compare", f"{folder}/p.db", "--export", "github=-")
    assert github(out, ["a"])[0]["value"] == 1200
    rows = otava(run(0, "export", f"{folder}/p.db", "--format", "otava")[0], ["a"])
    assert [row[2:] for row in rows[1:]] == [["2", "1200"]]


def a_factor_in_a_table(folder):
    for side, time in (("new", 50000), ("old", 5)):
        os.mkdir(f"{folder}/{side}")
        with open(f"{folder}/{side}/run", "w", encoding="utf-8") as script:
            script.write(f"#!/bin/sh\nexec {WORKER} a=time:{time} \"$@\"\n")
        os.chmod(f"{folder}/{side}/run", 0o755)
    out, _ = run(1, "bench", "--program", "{build}/run", "--build", f"{folder}/new", "--against", f"{folder}/old", "--rounds", "12", "--samples", "1")
    says(out, " 10000x ", "slower")


def wrong_usage(folder):
    results = f"{folder}/r.db"
    for words, text in ((("bench", "--program", "x", "--export", "bmf"), "--export is \"bmf\"; should be FORMAT=FILE, where FORMAT is bmf, github"),
                        (("bench", "--program", "x", "--export", "csv=x"), "--export is \"csv=x\""),
                        (("bench", "--program", "x", "--export", "bmf=-", "--json"), "2 reports would go to standard output"),
                        (("bench", "--program", WORKER + " a=time:1", "--export", f"bmf={results}"), "is a database, which the report would overwrite"),
                        (("bench", "--program", WORKER + " a=time:1", "--export", "bmf=/no/such/folder/x"), "cannot write /no/such/folder/x"),
                        (("export", results), "no --format; should be bmf, github, google or otava"),
                        (("export", results, "--format", "xml"), "--format is \"xml\""),
                        (("export", f"{results}:none", "--format", "bmf"), "has no run \"none\""),
                        (("export", results, "--format", "bmf", "--filter", "zzz"), "has no case whose name contains \"zzz\""),
                        (("import", results), "no --save"), (("import", "--save", "x"), "no FILE"),
                        (("import", f"{folder}/none.json", "--save", f"{folder}/i.db"), "none.json cannot be read: No such file")):
        says(run(2, *words)[1], text)


# --- imports ---

def google_json(folder, name, times, aggregates=True, build="release", error=False, **more):
    """As Google Benchmark writes it, with a counter that is NaN, which is no JSON."""
    def entry(bench_name, value, i):
        return dict(name=bench_name, run_name=bench_name, run_type="iteration", repetitions=len(times), repetition_index=i, threads=1, iterations=1000,
                    real_time=value, cpu_time=value, time_unit="us", bytes_per_second=1e9, **more)
    entries = [entry("BM_x/8", value, i) for i, value in enumerate(times)] + [entry("BM_same", 3.0 + 0.001 * (i % 3), i) for i in range(len(times))]
    if aggregates:
        entries += [dict(entry("BM_x/8", 1.0, 0), name="BM_x/8_mean", run_type="aggregate", aggregate_name="mean")]
    if error:
        entries += [dict(name="BM_bad", run_name="BM_bad", run_type="iteration", error_occurred=True, error_message="no\n  file", time_unit="ns")]
    text = json.dumps({"context": {"date": "2026-01-31T12:00:00+01:00", "host_name": "h", "num_cpus": 4, "mhz_per_cpu": 3000,
                                   "cpu_scaling_enabled": False, "library_build_type": build}, "benchmarks": entries})
    with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
        file.write(text.replace("\"threads\": 1", "\"threads\": 1, \"rate\": NaN"))
    return f"{folder}/{name}"


def criterion_lines(folder, name, factor, samples=20, unit="ns"):
    """As cargo criterion --message-format=json writes it."""
    counts = [10 * (i + 1) for i in range(samples)]
    message = {"reason": "benchmark-complete", "id": "group/f", "iteration_count": counts,
               "measured_values": [factor * 100 * n * (1 + 0.001 * (i % 5)) for i, n in enumerate(counts)], "unit": unit,
               "throughput": [{"per_iteration": 1024, "unit": "bytes"}], "typical": {"estimate": 100 * factor, "unit": unit}}
    with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
        file.write(json.dumps(message) + "\n" + json.dumps({"reason": "group-complete", "group_name": "group"}) + "\n")
    return f"{folder}/{name}"


def near(number, other):
    assert abs(number / other - 1) < 1e-9, (number, other)


def one_process(folder):
    noise = [1 + 0.004 * ((i * 7) % 5 - 2) for i in range(20)]
    base = google_json(folder, "base.json", [10 * n for n in noise])
    slower = google_json(folder, "slower.json", [12.5 * n for n in noise])
    little = google_json(folder, "little.json", [10.5 * n for n in noise])
    out, _ = run(1, "compare", base, slower)
    says(out, "BM_x/8", "+25.0 %", "slower", "BM_same", "same", "slower.json is from one process", "changes from 10 % count")
    assert "_mean" not in out and "\\x0a" not in out
    out, _ = run(0, "compare", base, little)  # as much as another process of one build may take
    says(out, "+5.0 %", "2 same")
    says(run(1, "compare", base, little, "--threshold", "1")[0], "slower")  # the user's word
    short, long = google_json(folder, "short.json", [0.005 * n for n in noise]), google_json(folder, "long.json", [50 * n for n in noise])
    says(run(1, "compare", short, long)[0], " 10000x ", "x to 1", "slower")  # no percentage of six digits
    says(run(0, "compare", long, short)[0], " 0.0001x ", "faster")
    says(run(1, "compare", short, long, "--junit", "-")[0], "message=\"10000x, ")
    out, err = run(0, "compare", base, little, "--threshold", "same=50")  # of some cases: the others keep theirs
    says(out, "+5.0 %", "2 same", "changes from 10 % count, except for cases with a threshold of their own")
    assert err == "", err
    report = json.loads(run(0, "compare", base, slower, "--threshold", "x/8=50", "--json")[0])
    assert {row["case"]: row["floor"] for row in report["rows"]} == {"BM_x/8": 0.5, "BM_same": 0.1}
    says(run(1, "compare", base, slower, "--threshold", "BM_y=50")[1], "--threshold BM_y=50 applies to no case: no name contains \"BM_y\"")
    for option in ("--markdown", "--html"):
        says(run(0, "compare", base, little, "--threshold", "same=50", option, "-")[0], "except for cases with a threshold of their own")
    report = json.loads(run(1, "compare", base, slower, "--json")[0])
    row = report["rows"][0]
    assert report["rule"]["floor"] == 0.1 and row["regression"] and len(row["head"]["visits"]) == 20 and not row["paired"]
    assert report["head"]["started"] == 1769857200 and row["case"] == "BM_x/8"
    near(row["base"]["ns"], 10000)
    out, _ = run(1, "compare", base, slower, "--markdown", "-")
    says(out, "is from one process")
    says(run(1, "compare", base, slower, "--junit", "-")[0], "20 and 20 repetitions</failure>")
    assert github(run(0, "export", base, "--format", "github")[0], ["BM_x/8", "BM_same"])[0]["extra"].startswith("repetitions: 20\n")
    run(1, "compare", base, slower, "--html", f"{folder}/page.html")
    says(open(f"{folder}/page.html", encoding="utf-8").read(), '"counted":{"base":"repetitions","head":"repetitions"}')
    says(open(f"{folder}/page.html", encoding="utf-8").read(), "is from one process")


def no_repetitions(folder):
    out, _ = run(0, "compare", google_json(folder, "one.json", [10.0]), google_json(folder, "two.json", [20.0]))
    says(out, "+100 %", "unsure", "two.json has one time per case and no spread", "--benchmark_repetitions=20")
    only = {"context": {}, "benchmarks": [{"name": f"BM_y_{k}", "run_name": "BM_y", "run_type": "aggregate", "aggregate_name": k, "real_time": v,
                                           "cpu_time": v, "time_unit": "ms"} for k, v in (("mean", 3.0), ("median", 2.0), ("stddev", 1.0))]}
    with open(f"{folder}/only.json", "w", encoding="utf-8") as file:
        json.dump(only, file)
    report = json.loads(run(0, "compare", f"{folder}/only.json", f"{folder}/only.json", "--json")[0])
    assert [row["head"]["ns"] for row in report["rows"]] == [2e6]


def intervals(folder):
    """value is the median, and the bounds are the times of the ranks that the sign test gives, however skewed the times are."""
    for count, outside in ((5, None), (6, 0), (8, 0), (9, 1), (12, 2), (20, 5), (30, 9)):
        for power in (1, 2, 6, -6):
            times = [(10 + (i * 7) % 31) ** power * 31 ** -min(power, 0) for i in range(count)]
            measure = bmf(run(0, "export", google_json(folder, "skewed.json", times), "--format", "bmf")[0], ["BM_x/8", "BM_same"])["BM_x/8"]["latency"]
            times.sort()
            near(measure["value"], 1000 * (times[(count - 1) // 2] + times[count // 2]) / 2)
            assert ("lower_value" in measure) == (outside is not None), (count, measure)
            if outside is not None:
                near(measure["lower_value"], 1000 * times[outside])
                near(measure["upper_value"], 1000 * times[count - 1 - outside])
    # Of a process: the mean of the faster half of its samples.
    files = [google_json(folder, f"samples{i}.json", [5.0 + i, 1.0 + i, 90.0, 3.0 + i, 80.0]) for i in range(6)]
    run(0, "import", *files, "--save", f"{folder}/samples.db")
    measure = bmf(run(0, "export", f"{folder}/samples.db", "--format", "bmf")[0], ["BM_x/8", "BM_same"])["BM_x/8"]["latency"]
    near(measure["value"], 5500)
    near(measure["lower_value"], 3000)
    near(measure["upper_value"], 8000)


def failures(folder):
    good, bad = google_json(folder, "good.json", [1.0] * 9), google_json(folder, "bad.json", [1.0] * 9, error=True)
    out, _ = run(1, "compare", good, bad)
    says(out, "failed", "no; file")
    says(run(2, "compare", good, google_json(folder, "debug.json", [1.0] * 9, build="debug"))[1], "build: release, now debug")
    for text, words in (("", "wrong.json is empty; should be JSON"), (" \n", "wrong.json is empty"), ("{\"benchmarks\": [", "should be JSON of Google Benchmark or of Criterion"), ("{}", "neither Google Benchmark's"),
                        ("[1]", "neither Google Benchmark's nor Criterion's"), ("{\"benchmarks\": []}", "has no benchmark with a time"),
                        ("{\"reason\": \"group-complete\"}", "has no message \"benchmark-complete\"")):
        with open(f"{folder}/wrong.json", "w", encoding="utf-8") as file:
            file.write(text)
        says(run(2, "import", f"{folder}/wrong.json", "--save", f"{folder}/i.db")[1], words)
        if text.strip():
            says(run(2, "compare", good, f"{folder}/wrong.json")[1], words)
    says(run(2, "compare", good)[1], "is JSON of one run; name a second file")
    says(run(2, "compare", good + ":1", good)[1], "should be named without \":1\"")


def criterion(folder):
    base, slower = criterion_lines(folder, "c1.json", 1.0), criterion_lines(folder, "c2.json", 1.3)
    out, _ = run(1, "compare", base, slower)
    says(out, "group/f", "+30.0 %", "slower", "is from one process")
    run(0, "compare", base, base)
    says(run(2, "compare", base, criterion_lines(folder, "c3.json", 1.0, unit="cycles"))[1], "measures something other than time")
    kept = f"{folder}/target/criterion/sum/1024/new"
    os.makedirs(kept)
    with open(f"{kept}/sample.json", "w", encoding="utf-8") as file:
        json.dump({"sampling_mode": "Linear", "iters": [10.0 * (i + 1) for i in range(12)], "times": [500.0 * (i + 1) for i in range(12)]}, file)
    with open(f"{kept}/estimates.json", "w", encoding="utf-8") as file:
        json.dump({"mean": {"point_estimate": 51.0}, "median": {"point_estimate": 50.0}, "slope": None}, file)
    for name in ("sample.json", "estimates.json"):
        report = json.loads(run(0, "compare", f"{kept}/{name}", f"{kept}/{name}", "--json")[0])
        assert report["rows"][0]["case"] == "sum/1024" and report["rows"][0]["head"]["ns"] == 50
    os.unlink(f"{kept}/sample.json")
    report = json.loads(run(0, "compare", f"{kept}/estimates.json", f"{kept}/estimates.json", "--json")[0])
    assert report["rows"][0]["head"]["ns"] == 51 and len(report["rows"][0]["head"]["visits"]) == 1


def slower_alone(folder):
    return google_json(folder, "alone.json", [15.0 + 0.01 * i for i in range(20)])


def several_processes(folder):
    results = f"{folder}/i.db"
    for label, factor in (("base", 1.0), ("head", 1.03 * 1.03)):
        files = [google_json(folder, f"{label}{i}.json", [factor * 10 * (1 + 0.002 * (i % 3))] * 3) for i in range(9)]
        out, _ = run(0, "import", *files, "--save", results, "--label", label)
        says(out, "2 cases; saved in ", " as run ")
    out, _ = run(1, "compare", f"{results}:base", f"{results}:head")  # judged by processes: 1 % counts
    says(out, "+6.1 %", "slower")
    says(run(1, "compare", f"{results}:base", f"{results}:head", "--junit", "-")[0], "9 and 9 processes</failure>")
    out, _ = run(1, "compare", f"{results}:base", slower_alone(folder), "--allow-different", "--junit", "-")
    says(out, "9 processes and 20 repetitions</failure>")
    out, _ = run(1, "compare", f"{results}:base", f"{results}:head")
    assert "from one process" not in out
    report = json.loads(run(1, "compare", f"{results}:base", f"{results}:head", "--json")[0])
    row = next(row for row in report["rows"] if row["case"] == "BM_x/8")
    assert report["rule"]["floor"] == 0.01 and [len(v["ns"]) for v in row["head"]["visits"]] == [3] * 9
    note = json.loads(run(0, "import", f"{folder}/base0.json", "--save", results, "--json")[0])
    assert note["run"] == 3 and note["cases"] == 2 and "from one process" in note["note"]
    says(run(2, "import", f"{folder}/base0.json", google_json(folder, "d.json", [1.0], build="debug"), "--save", results)[1],
         "should be files of one program on one machine")
    says(run(2, "compare", f"{results}:base", f"{results}:3")[1], "repetitions: unknown, now of one process")
    bmf(run(0, "export", f"{folder}/base0.json", "--format", "bmf")[0], ["BM_x/8", "BM_same"])  # straight through
    out = run(0, "export", f"{results}:head", "--format", "google")[0]
    google(out, ["BM_x/8", "BM_same"])
    with open(f"{folder}/back.json", "w", encoding="utf-8") as file:
        file.write(out)
    report = json.loads(run(0, "compare", f"{folder}/back.json", f"{folder}/back.json", "--json")[0])
    near(report["rows"][0]["head"]["ns"], row["head"]["ns"])


for test in (exports, exports_of_pairs, a_factor_in_a_table, wrong_usage, one_process, no_repetitions, intervals, failures, criterion, several_processes):
    with tempfile.TemporaryDirectory() as place:
        if test is wrong_usage:
            bench("--save", f"{place}/r.db", rounds="1")
        test(place)
        print(f"{test.__name__}: well")
