#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares elementwise expressions on cuda:0: attune and PyTorch (eager, torch.compile, jiterator) in one process, on the
same buffers, in turns. jiterator is compared with attune_elementwise_cuda on the same CUDA C.

torch_elementwise.py LIBRARY [--large SIDE] [--small] [--first] [--only NAMES] [--types TYPES]
                     [--markdown FILE]
  LIBRARY       libattune.so
  --large SIDE  GB/s of SIDE x SIDE elements (default: 16384)
  --small       time of a call and of a replayed graph, 2^10 to 2^20 elements
  --first       time of the first call of a new expression, without and with the kernel cache
  --only NAMES  only these expressions of --large and --small: gelu,dropout
  --types TYPES only these types of --large and --small: f32,bf16
"""
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import attune_calls as at
import turns

torch = turns.cuda_torch()

ROUNDS, CALLS = 21, 3
gelu = torch.nn.functional.gelu
HALF = 0.5
# name, attune's expression, PyTorch's function, jiterator's text (None: it has no such thing), how the inputs lie:
# p packed, b a bias along rows, t transposed
CASES = [
    ("add", "a + b", lambda a, b: a + b, "return a + b;", "pp"),
    ("relu", "relu(a)", lambda a: torch.relu(a), "return a > T(0) ? a : T(0);", "p"),
    ("gelu", "gelu(a)", lambda a: gelu(a), "return T(float(a) * 0.5f * erfcf(-float(a) * 0.70710678f));", "p"),
    ("exp", "exp(a)", lambda a: torch.exp(a), "return T(expf(float(a)));", "p"),
    ("gelu(a+b)*b", "gelu(a + b) * b", lambda a, b: gelu(a + b) * b,
     "float x = float(a) + float(b); return T(x * 0.5f * erfcf(-x * 0.70710678f) * float(b));", "pp"),
    ("bias", "a + b", lambda a, b: a + b, "return a + b;", "pb"),
    ("alpha*x*y+x", "s * a * b + a", lambda a, b: HALF * a * b + a, "return T(0.5f * float(a) * float(b) + float(a));",
     "pp"),
    ("transposed add", "a + b", lambda a, b: a + b, "return a + b;", "pt"),
    ("dropout", "rand() < s ? a * 2 : 0", lambda a: torch.nn.functional.dropout(a, 0.5), None, "p"),
]
TYPES = [("f32", torch.float32), ("bf16", torch.bfloat16)]


def attune_here(library):
    return at.Attune(library, "cuda:0", torch.cuda.current_stream().cuda_stream)


def make_inputs(lies, rows, columns, dtype):
    made = []
    for way in lies:
        shape = (columns,) if way == "b" else (columns, rows) if way == "t" else (rows, columns)
        x = torch.randn(*shape, device="cuda").to(dtype)
        made.append(x.t() if way == "t" else x)
    return made


def attune_call(attune, name, text, out, inputs, dtype):
    tensors = [at.tensor(letter, x.data_ptr(), dtype, x.shape, x.stride()) for letter, x in zip("ab", inputs)]
    output = at.tensor(None, out.data_ptr(), dtype, out.shape)
    return at.Call(attune, text, output, tensors, [("s", HALF)] if name in ("alpha*x*y+x", "dropout") else [],
                   "rand" in text)


def raw_call(attune, source, out, inputs, dtype):
    """jiterator's own text through attune_elementwise_cuda."""
    tensors = [at.tensor(None, x.data_ptr(), dtype, x.shape, x.stride()) for x in inputs]
    return at.CudaCall(attune, source, "f", at.tensor(None, out.data_ptr(), dtype, out.shape), tensors)


def ways_of(attune, case, dtype_name, dtype, out, inputs, raw=False):
    """name -> a call without arguments. PyTorch writes to memory of its own, as its users have it."""
    name, text, function, jit, lies = case
    call = attune_call(attune, name, text, out, inputs, dtype_name)
    call.tune()
    call.make_plan()
    call.run()
    ways = {"attune": call.run, "eager": lambda: function(*inputs), "compile": None, "jiterator": None}
    fast = torch.compile(function)
    ways["compile"] = lambda: fast(*inputs)
    if jit:
        arguments = ", ".join(f"T {x}" for x in "ab"[:len(inputs)])
        source = "template <typename T> T f(" + arguments + ") { " + jit + " }"
        kernel = torch.cuda.jiterator._create_jit_fn(source)
        ways["jiterator"] = lambda: kernel(*inputs)
    if jit and raw:
        own = raw_call(attune, source, out, inputs, dtype_name)
        own.run() # a problem has a hash of the source: what is to be tuned was called before
        own.tune()
        own.run()
        ways["raw"] = own.run
    return call, {k: v for k, v in ways.items() if v}


def is_right(name, out, function, inputs):
    """attune rounds once, at the end: compared with PyTorch in f32."""
    if name == "dropout":
        return abs((out != 0).float().mean().item() - HALF) < 0.01
    part = 1024
    expected = function(*[(x if x.dim() == 1 else x[:part]).float() for x in inputs])
    return torch.allclose(out[:part].float(), expected, rtol=1e-2 if out.dtype == torch.bfloat16 else 1e-5, atol=1e-6)


def large(attune, side, put):
    put(f"### {side} x {side} elements: GB/s, medians of {ROUNDS} rounds of {CALLS} calls in turns\n")
    put.table("expression", "attune>", "copy>", "attune / copy>", "eager>", "compile>", "jiterator>", "attune's raw CUDA>",
              "attune / fastest>", "right", "attune runs")
    for dtype_name, dtype in TYPES:
        source, out = (torch.randn(side, side, device="cuda").to(dtype) for _ in range(2))
        for case in CASES:
            inputs = make_inputs(case[4], side, side, dtype)
            call, ways = ways_of(attune, case, dtype_name, dtype, out, inputs, raw=True)
            ways["copy"] = lambda: out.copy_(source)
            ways["attune"]()
            right = is_right(case[0], out, case[2], inputs)
            times = turns.take_turns(ways, ROUNDS, lambda k: turns.between_events(torch, ways[k], CALLS))
            moved = out.numel() * out.element_size() + sum(x.numel() * x.element_size() for x in inputs)
            rate = {k: moved / ms * 1e-6 for k, ms in turns.medians(times).items()}
            rate["copy"] *= 2 * out.numel() * out.element_size() / moved
            best = max(v for k, v in rate.items() if k not in ("attune", "copy", "raw"))
            cells = [f"{rate[k]:.0f}" if k in rate else "-" for k in ("eager", "compile", "jiterator", "raw")]
            put.row(f"{case[0]} {dtype_name}", f"{rate['attune']:.0f}", f"{rate['copy']:.0f}",
                    f"{rate['attune'] / rate['copy']:.3f}", *cells, f"{rate['attune'] / best:.3f}", "yes" if right else "NO",
                    call.chosen())
            del inputs, ways, call
            torch.cuda.empty_cache()


def first_child(library):
    """Milliseconds of the first calls of new expressions, and what an expression that is loaded takes."""
    attune, spent = attune_here(library), []
    x, out = torch.randn(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
    for i in range(9):
        call = attune_call(attune, "", f"gelu(a * {i + 1.5}) * a + {i}", out, [x], "f32")
        torch.cuda.synchronize()
        spent.append(turns.host_ns(call.run, 1) * 1e-6)
    print(" ".join(f"{t:.3f}" for t in spent[1:])) # the first one opens the compiler


def first(library, put):
    put("### First call of a new expression, ms: eight expressions a process, the compiler already opened\n")
    put.table("kernel cache", "least>", "median>", "most>")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("empty", "filled by the process before"):
            done = subprocess.run([sys.executable, __file__, library, "--first-child"], capture_output=True, text=True,
                                  env={**os.environ, "XDG_CACHE_HOME": folder}, check=True)
            spent = [float(t) for t in done.stdout.split()]
            put.row(name, *(f"{f(spent):.2f}" for f in (min, statistics.median, max)))
    put("")


def replayed(graph):
    """Microseconds of one of 50 calls. Replays that are not timed come first: the device does not wait for the host."""
    for _ in range(3):
        graph.replay()
    return turns.between_events(torch, graph.replay, 4) / 50 * 1e3


def small(library, put):
    put("### Small: us of one call in a replayed graph of 50, medians of 21 rounds in turns\n")
    put.table("expression", "elements>", "attune>", "compile>", "eager>", "attune / compile>", "attune runs")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        attune = attune_here(library)
        for dtype_name, dtype in TYPES:
            for case in CASES:
                if case[0] == "dropout":
                    continue # PyTorch registers its generator with the graph; attune's would want its own graph
                for power in (10, 12, 14, 16, 18, 20):
                    rows = 1 << power // 2
                    columns = (1 << power) // rows
                    inputs = make_inputs(case[4], rows, columns, dtype)
                    out = torch.empty(rows, columns, device="cuda", dtype=dtype)
                    call, ways = ways_of(attune, case, dtype_name, dtype, out, inputs)
                    ways.pop("jiterator", None)
                    with torch.cuda.stream(torch.cuda.current_stream()):
                        graphs = {}
                        for k, way in ways.items():
                            way()
                            torch.cuda.synchronize()
                            g = torch.cuda.CUDAGraph()
                            with torch.cuda.graph(g, stream=side):
                                for _ in range(50):
                                    way()
                            graphs[k] = g
                    t = turns.medians(turns.take_turns(graphs, ROUNDS, lambda k: replayed(graphs[k])))
                    put.row(f"{case[0]} {dtype_name}", f"2^{power}", f"{t['attune']:.2f}", f"{t['compile']:.2f}",
                            f"{t['eager']:.2f}", f"{t['attune'] / t['compile']:.3f}", call.chosen())


def main():
    global CASES, TYPES
    arguments = sys.argv[1:]
    if not arguments or arguments[0].startswith("-"):
        print(__doc__)
        return 2
    if "--first-child" in arguments:
        first_child(arguments[0])
        return 0
    if "--only" in arguments:
        names = arguments[arguments.index("--only") + 1].split(",")
        CASES = [case for case in CASES if case[0] in names]
    if "--types" in arguments:
        names = arguments[arguments.index("--types") + 1].split(",")
        TYPES = [kind for kind in TYPES if kind[0] in names]
    put = turns.Report()
    put.head("Elementwise expressions beside PyTorch", torch.cuda.get_device_name(0), f"PyTorch {torch.__version__}",
             "one process, the same buffers, ways in turns; each table says what its figures are")
    if "--large" in arguments:
        at_side = arguments.index("--large") + 1
        side = int(arguments[at_side]) if at_side < len(arguments) and arguments[at_side].isdigit() else 1 << 14
        large(attune_here(arguments[0]), side, put)
    if "--first" in arguments:
        first(arguments[0], put)
    if "--small" in arguments:
        small(arguments[0], put)
    put.write(arguments[arguments.index("--markdown") + 1] if "--markdown" in arguments else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
