#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package on the host, with NumPy: products and expressions beside NumPy's, views without copies, what is
refused and how, streams of a made-up GPU, threads, forks, and random arguments. Usage: test_python.py SOURCE LIBRARY.
Exit 77: no NumPy."""
import contextlib
import ctypes
import gc
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import types
import unittest

sys.dont_write_bytecode = True
SOURCE, LIBRARY = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.join(SOURCE, "bindings", "python"))
try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy for this Python")
    sys.exit(77)
import attune
from attune import _c, _gemm, _streams, _tuner
from python_arrays import Interface, Producer, Recorder, alive

CASES = int(os.environ.get("ATTUNE_TEST_PROBLEMS", 300))
attune.load(LIBRARY)
tuner = attune.Tuner(":memory:", mode="off")
rng = np.random.default_rng(1)


def normal(*shape, dtype="f4"):
    return rng.standard_normal(shape).astype(dtype)


def gemm(*arguments, **named):
    return attune.gemm(*arguments, tuner=tuner, **named)


def elementwise(*arguments, **named):
    return attune.elementwise(*arguments, tuner=tuner, **named)


def near(result, expected, dtype):
    limit = {"f8": 1e-12, "f4": 1e-4, "f2": 3e-2, "c8": 1e-4, "c16": 1e-12}[np.dtype(dtype).str[1:]]
    assert result.shape == expected.shape, (result.shape, expected.shape)
    assert np.allclose(result.astype("c16" if np.iscomplexobj(result) else "f8"), expected, rtol=limit, atol=limit), (result, expected)


class Refused(unittest.TestCase):
    def refused(self, words, kind, call, *arguments, **named):
        with self.assertRaises(attune.Error) as caught:
            call(*arguments, **named)
        self.assertIsInstance(caught.exception, kind, str(caught.exception))
        for word in (words,) if isinstance(words, str) else words:
            self.assertIn(word, str(caught.exception))


class Products(Refused):
    def test_one(self):
        a, b = normal(5, 7), normal(7, 3)
        out = np.full((5, 3), np.nan, "f4")
        self.assertIs(gemm(a, b, out=out), out)
        near(out, a.astype("f8") @ b, "f4")

    def test_random_views(self):
        """Any slice, order, transpose, batch and dtype, beside numpy.matmul."""
        draw = random.Random(2)

        def array(shape, dtype):
            """An array of this shape as a view of another: other order, steps, reversed, in a larger one."""
            order = draw.sample(range(len(shape)), len(shape))
            steps = [draw.choice((1, 1, 1, 2, -1)) for _ in shape]
            extra = [draw.choice((0, 0, 3)) for _ in shape]
            base = normal(*(shape[i] * abs(steps[i]) + extra[i] for i in order), dtype=dtype)
            view = base.transpose([order.index(i) for i in range(len(shape))])
            return view[tuple(slice(None, None, step) for step in steps)][tuple(slice(0, size) for size in shape)]

        for _ in range(CASES):
            m, n, k = (draw.choice((0, 1, 2, 3, 5, 8)) for _ in range(3))
            dtype = draw.choice(("f4", "f8", "f2"))
            batch = draw.choice(((), (), (3,), (1,), (2, 3), (0,)))
            reduced = lambda: tuple(draw.choice((size, 1)) for size in batch)[draw.choice((0, 0, len(batch))):]
            a, b = array((*reduced(), m, k), dtype), array((*reduced(), k, n), dtype)
            full = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), m, n)
            c = draw.choice((None, array(full, dtype), array((n,), dtype), array((m, 1), dtype)))
            alpha, beta = draw.choice((1, 0.5, 0)), draw.choice((1, -2, 0)) if c is not None else 0
            expected = alpha * (a.astype("f8") @ b.astype("f8")) + (beta * c.astype("f8") if c is not None else 0)
            out = None
            if draw.random() < 0.5:
                room = np.full(tuple(size + draw.choice((0, 2)) for size in full), np.nan, dtype)
                if draw.random() < 0.5:  # columns
                    room = np.full((*room.shape[:-2], room.shape[-1], room.shape[-2]), np.nan, dtype).swapaxes(-1, -2)
                out = room[tuple(slice(0, size) for size in full)]
                if len(batch) > 1 and 0 not in full and any(room.shape[i] != full[i] for i in range(len(full) - 1)):
                    out = np.full(full, np.nan, dtype)
            near(gemm(a, b, c, alpha=alpha, beta=beta if c is not None else None, out=out), expected, dtype)

    def test_complex(self):
        for dtype, real in (("c8", "f4"), ("c16", "f8")):
            a, b, c = ((normal(*shape, dtype=real) + 1j * normal(*shape, dtype=real)).astype(dtype)
                       for shape in ((5, 7), (7, 3), (5, 3)))
            wide = a.astype("c16") @ b.astype("c16")
            near(gemm(a, b), wide, dtype)
            near(gemm(a, b, c, alpha=2 - 1j, beta=0.5j), (2 - 1j) * wide + 0.5j * c.astype("c16"), dtype)
            near(gemm(a.T.copy().T, b, alpha=1j), 1j * wide, dtype)
        self.assertIn("gemm c128 nn 3x5x7 strict", attune.gemm_problem(a, b))
        self.refused("alpha is 1j; should be real for arrays of f32", attune.InvalidArgument, gemm, normal(5, 7),
                     normal(7, 3), alpha=1j)

    def test_vectors(self):
        a, x, y = normal(5, 7), normal(7), normal(5)
        near(gemm(a, x), a.astype("f8") @ x, "f4")
        near(gemm(y, a), y.astype("f8") @ a, "f4")
        near(gemm(x, x), np.array(x.astype("f8") @ x), "f4")
        every = normal(14)[::2]
        near(gemm(a, every), a.astype("f8") @ every, "f4")
        out = np.zeros((4, 5), "f4")
        gemm(a, x, out=out[1])
        near(out[1], a.astype("f8") @ x, "f4")
        near(gemm(a, x, y, beta=2), a.astype("f8") @ x + 2 * y.astype("f8"), "f4")

    def test_epilogue(self):
        """Bias along rows and columns, activations, residuals and gated halves, beside NumPy's; strides are packed."""
        functions = {"none": lambda z: z, "relu": lambda z: np.maximum(z, 0), "silu": lambda z: z / (1 + np.exp(-z)),
                     "gelu_tanh": lambda z: 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z ** 3))),
                     "sigmoid": lambda z: 1 / (1 + np.exp(-z)), "tanh": np.tanh}
        for number, (name, function) in enumerate(functions.items()):
            dtype = ("f4", "f8", "f2")[number % 3]
            a, b, c = normal(2, 5, 7, dtype=dtype), normal(7, 6, dtype=dtype), normal(2, 5, 6, dtype=dtype)
            for bias in (None, normal(6, dtype=dtype), normal(5, 1, dtype=dtype), normal(12, dtype=dtype)[::2]):
                for residual in (None, c, normal(6, dtype=dtype), normal(2, 6, 5, dtype=dtype).swapaxes(1, 2)):
                    for gated in (False, True):
                        z = a.astype("f8") @ b.astype("f8") + (0 if bias is None else bias.astype("f8"))
                        y = function(z[..., :3]) * z[..., 3:] if gated else function(z)
                        more = residual[..., :3] if gated and residual is not None else residual
                        room = np.full(y.shape[:-1] + (y.shape[-1] + 2,), 7, dtype)
                        out = room[..., 1:-1]
                        self.assertIs(gemm(a, b, bias=bias, activation=name, residual=more, gated=gated, out=out), out)
                        near(out, y + (0 if more is None else more.astype("f8")), dtype)
                        assert (room[..., 0] == 7).all() and (room[..., -1] == 7).all()
        a, b, x, wide = normal(5, 7, dtype="f2"), normal(7, 4, dtype="f2"), normal(7, dtype="f2"), normal(4)
        near(gemm(a, b, bias=wide, activation="relu"), np.maximum(a.astype("f8") @ b.astype("f8") + wide, 0), "f2")
        column = normal(5, dtype="f2")
        near(gemm(a, x, bias=column), a.astype("f8") @ x.astype("f8") + column, "f2")
        near(gemm(x, b, bias=wide, residual=wide.astype("f2")), x.astype("f8") @ b + wide + wide, "f2")
        near(gemm(a, np.asfortranarray(b), out=np.zeros((4, 5), "f2").T, bias=wide), a.astype("f8") @ b + wide, "f2")
        self.assertIn("gated=m bias=m gelu residual", attune.gemm_problem(a, b, bias=wide.astype("f2"), activation="gelu",
                                                                          residual=np.zeros((5, 2), "f2"), gated=True))
        for words, named in (("bias has shape (3,); should have (4,) or (5, 1)", {"bias": normal(3, dtype="f2")}),
                             ("bias has dtype f64; should have f16", {"bias": normal(4, dtype="f8")}),
                             ("residual has shape (5, 3); should broadcast", {"residual": normal(5, 3, dtype="f2")}),
                             ("residual has dtype f32; should have f16", {"residual": normal(5, 4)}),
                             ("activation is 'gelu_'; should be one of none, relu", {"activation": "gelu_"}),
                             ("activation is None", {"activation": None})):
            self.refused(words, attune.InvalidArgument, gemm, a, b, **named)
        self.refused("two halves", attune.InvalidArgument, gemm, a, normal(7, 3, dtype="f2"), gated=True)
        self.refused("two halves", attune.InvalidArgument, gemm, a, x, gated=True)
        self.refused("beta is not 0", attune.InvalidArgument, gemm, a, b, normal(5, 2, dtype="f2"), gated=True)

    def test_no_copies(self):
        """Rows, columns, transposes, sub-matrices and batches are used where they are; the problem says how."""
        a, b = normal(6, 8), normal(8, 4)
        for view, words in ((a, "gemm f32 nn 4x6x8 strict"), (np.asfortranarray(a), "gemm f32 nt 4x6x8 strict"),
                            (normal(8, 6).T, "gemm f32 nt 4x6x8 strict"), (normal(12, 16)[::2, :8], "ldb=32")):
            product = _gemm._Product(view, b, None, 1.0, None, None, None, "strict", False, 0, None)
            self.assertEqual(product.layout.packs, [])
            self.assertIn(words, attune.gemm_problem(view, b))
        batch = _gemm._Product(normal(3, 6, 8), b, None, 1.0, None, None, None, "strict", False, 0, None)
        self.assertEqual((batch.layout.packs, batch.layout.problem.batch, batch.layout.problem.stride_b), ([], 3, -1))
        odd = _gemm._Product(normal(12, 16)[::2, ::2], b, None, 1.0, None, None, None, "strict", False, 0, None)
        self.assertEqual([pack[0] for pack in odd.layout.packs], ["a"])

    def test_dtypes(self):
        a, b = normal(5, 7, dtype="f2"), normal(7, 3, dtype="f2")
        self.assertEqual(gemm(a, b).dtype, np.float16)
        self.assertEqual(gemm(a, b, dtype="f32").dtype, np.float32)
        self.assertEqual(gemm(a, b, dtype=np.float32).dtype, np.float32)
        self.refused("the dtype of out is f64", attune.InvalidArgument, gemm, a, b, dtype="float64")
        self.refused("a has dtype f16, and b f32", attune.InvalidArgument, gemm, a, b.astype("f4"))
        self.refused("a has dtype i32", attune.InvalidArgument, gemm, np.ones((2, 2), "i4"), np.ones((2, 2), "i4"))
        self.refused("dtype is 'f33'", attune.InvalidArgument, gemm, a, b, dtype="f33")

    def test_refused(self):
        a, b, c = normal(5, 7), normal(7, 3), normal(5, 3)
        out = np.zeros((5, 3), "f4")
        for words, arguments, named in (
                ("as many rows in b as columns in a: 7", (a, a), {}),
                ("out has shape (3, 5); should have (5, 3)", (a, b), {"out": out.T}),
                ("out has strides (6, 2)", (a, b), {"out": np.zeros((5, 6), "f4")[:, ::2]}),
                ("c has shape (3, 5); should broadcast", (a, b, c.T), {}),
                ("c has shape (4,); should broadcast", (a, b, normal(4)), {}),
                ("b does not broadcast: shapes are a (2,), b (3,)", (normal(2, 5, 7), normal(3, 7, 3)), {}),
                ("c has dtype f64; should have f32", (a, b, c.astype("f8")), {}),
                ("c is missing, and beta is 1.0", (a, b), {"beta": 1}),
                ("alpha is 'x'; should be a number", (a, b), {"alpha": "x"}),
                ("accuracy is 'exact'; should be one of strict", (a, b), {"accuracy": "exact"}),
                ("workspace is -1", (a, b), {"workspace": -1}),
                ("a has no dimensions", (np.float32(1), b), {}),
                ("a has no dimensions", (np.array(1, "f4"), b), {}),
                ("a is a list; should be an array", ([[1.0]], b), {}),
                ("b is a NoneType", (a, None), {}),
                ("elements of type object", (a.astype(object), b), {}),
                ("elements of type >f4", (a.astype(">f4"), b), {}),
                ("a is a masked array", (np.ma.array(a), b), {}),
                ("out is read-only", (a, b), {"out": np.broadcast_to(np.float32(1), (5, 3))}),
                ("out is the same memory as a; should not overlap it", (normal(7, 7)[:3, :3],) * 2, None),
                ("the dtype of out is f64 for f32 inputs; should be f32", (a, b), {"out": np.zeros((5, 3), "f8")}),
                ("strides of (40, 5) bytes", (np.ndarray((5, 7), "f4", bytes(400), strides=(40, 5)), b), {}),
                ("not aligned", (np.ndarray((5, 7), "f4", bytes(400), offset=1), b), {}),
                ("stream is given, but the arrays are the host's", (a, b), {"stream": 0}),
                ("tuner is a str", (a, b), {"tuner": "best"})):
            if named is None:
                named = {"out": arguments[0]}
            call = attune.gemm if "tuner" in named else gemm
            self.refused(words, attune.InvalidArgument, call, *arguments, **named)
        self.refused("dimensions", attune.InvalidArgument, gemm, normal(*([1] * 9), 2, 2)[..., ::-1], normal(2, 2))

    def test_messages_have_words_of_python(self):
        """No names of C's structs, functions and pointers: those of the arguments here."""
        room = normal(40)
        for words, call in (
                ("out overlaps a: out is 0x", lambda: gemm(room[:9].reshape(3, 3), normal(3, 3),
                                                           out=room[4:13].reshape(3, 3))),
                ("problem is None; should be given", lambda: attune.explain(None)),
                ("problem is None; should be given", lambda: attune.tune(None)),
                ("expression is None; should be text", lambda: elementwise(None, a=room))):
            with self.assertRaises(attune.InvalidArgument) as caught:
                call()
            self.assertIn(words, str(caught.exception))
            for word in ("operands.", "problem.", "NULL", "attune_"):
                self.assertNotIn(word, str(caught.exception))
        self.assertEqual(_c.reworded("operands.c is NULL; attune_gemm takes it, attune_elementwise_plan_run not"),
                         "c is None; attune.gemm takes it, attune_elementwise_plan_run not")
        self.assertEqual(_c.reworded("operands.generator is missing\n  operands.a is NULL\n  ^"),
                         "generator is missing\n  operands.a is NULL\n  ^")  # the text of an expression stays

    def test_a_copy_of_the_package_alone(self):
        """It needs none of the files around it."""
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(os.path.join(SOURCE, "bindings", "python", "attune"), os.path.join(folder, "attune"),
                            ignore=shutil.ignore_patterns("__pycache__"))
            made = subprocess.run(
                [sys.executable, "-c", "import attune, sys; attune.load(sys.argv[1]); print(attune.version())",
                 LIBRARY], cwd=folder, env={**os.environ, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True, check=False)
            self.assertEqual((made.returncode, made.stdout.strip()), (0, attune.version()), made.stderr)

    def test_out_is_c(self):
        a, b, c = normal(5, 7), normal(7, 3), normal(5, 3)
        expected = a.astype("f8") @ b + 2 * c.astype("f8")
        near(gemm(a, b, c, beta=2, out=c), expected, "f4")


class Expressions(Refused):
    def test_beside_numpy(self):
        a, b, s = normal(4, 6), normal(6), 2.5
        near(elementwise("a * s + b", a=a, b=b, s=s), a.astype("f8") * s + b, "f4")
        near(elementwise("a - b", {"a": a[::2, ::-1], "b": b[None, :]}), a[::2, ::-1].astype("f8") - b, "f4")
        self.assertTrue((elementwise("a < b", a=a, b=b) == (a < b)).all())
        self.assertEqual(elementwise("a + 1j", a=a).dtype, np.complex64)
        self.assertEqual(elementwise("n * 2", n=np.arange(5)).dtype, np.int64)
        self.assertEqual(elementwise("n / 2", n=np.arange(5)).dtype, np.float32)
        self.assertEqual(elementwise("a", a=a, dtype="f64").dtype, np.float64)
        self.assertEqual(elementwise("a + k", a=np.arange(3, dtype="i2"), k=2).dtype, np.int16)
        self.assertEqual(elementwise("a + k", a=np.arange(3, dtype="i2"), k=2.0).dtype, np.float32)
        self.assertEqual(elementwise("a + k", a=a, k=np.float64(2)).dtype, np.float32)
        self.assertEqual(elementwise("a && k", a=a > 0, k=True).tolist(), (a > 0).tolist())
        self.assertEqual(elementwise("a", a=np.array(3.0)).shape, ())
        self.assertEqual(elementwise("a * 2", a=np.zeros((0, 3), "f4")).shape, (0, 3))

    def test_outputs(self):
        a = normal(4, 6)
        low, high = elementwise("min(a, 0), max(a, 0)", a=a)
        self.assertTrue((low + high == a).all())
        self.assertIsInstance(elementwise("a, a", a=a), tuple)
        out = np.zeros((6, 4), "f4").T
        self.assertIs(elementwise("a * 2", a=a, out=out), out)
        self.assertTrue((out == a * 2).all())
        pair = np.zeros_like(a), np.zeros(a.shape, bool)
        self.assertIs(elementwise("a, a > 0", a=a, out=pair)[0], pair[0])
        self.assertTrue((pair[1] == (a > 0)).all())
        kept = a.copy()
        elementwise("a + 1", a=a, out=a)
        self.assertTrue((a == kept + 1).all())
        self.assertEqual(elementwise("rand()", out=np.zeros(5, "f4"), generator=attune.Generator(3)).tolist(),
                         elementwise("rand()", out=np.zeros(5, "f4"), generator=attune.Generator(3)).tolist())

    def test_refused(self):
        a = normal(4, 6)
        for words, arguments, named in (
                (("the expression ends", "a +"), ("a +",), {"a": a}),
                ("b", ("a + b",), {"a": a}),
                ("does not broadcast", ("a + b",), {"a": a, "b": normal(4)}),
                ("given twice", ("a", {"a": a}), {"a": a}),
                ("'1a' is no name", ("a", {"1a": a}), {}),
                ("is no text", ("a", {1: a}), {}),
                ("expression is None", (None,), {"a": a}),
                ("zero byte", ("a\0b",), {"a": a}),
                ("n is 9223372036854775808", ("a + n",), {"a": a, "n": 2**63}),
                ("no arrays, and out is missing", ("1 + 2",), {}),
                ("out, 1 of 1 is read-only", ("a",), {"a": a, "out": np.broadcast_to(np.float32(1), (4, 6))}),
                ("dtype or shape is given", ("a",), {"a": a, "out": a, "dtype": "f32"}),
                ("generator is a int", ("rand()",), {"out": a, "generator": 1}),
                ("generator", ("rand()",), {"out": a}),
                ("dimensions; should have at most 8", ("a",), {"a": np.zeros((1,) * 9, "f4")}),
                ("shape is 'x'", ("a",), {"a": a, "shape": "x"}),
                ("a is a str; should be an array", ("a",), {"a": "text"})):
            self.refused(words, attune.InvalidArgument, elementwise, *arguments, **named)
        self.refused("a result of shape", attune.OutOfMemory, elementwise, "a * 2", a=a[0, :1], shape=2**61)
        for out in (np.zeros((4, 5), "f4"), np.lib.stride_tricks.as_strided(np.zeros(6, "f4"), (4, 6), (0, 4)), ()):
            self.refused("", attune.InvalidArgument, elementwise, "a", a=a, out=out)


class Exchange(Refused):
    """Arrays of other packages."""

    def test_dlpack(self):
        a, b = normal(5, 7), normal(14, 3)[::2]
        for versioned in (True, False):
            left, right, out = (Producer(x, versioned) for x in (a, b, np.zeros((5, 3), "f4")))
            self.assertIs(gemm(left, right, out=out), out)
            near(out.array, a.astype("f8") @ b, "f4")
            self.assertEqual((left.asked, out.asked), ([None], [None]))
            made = gemm(left, right)
            self.assertIsInstance(made, np.ndarray)
            del left, right, out, made
            gc.collect()
            self.assertEqual(alive, {}, "each capsule is given back once")

    def test_dlpack_details(self):
        a = normal(4, 6)
        near(elementwise("a", a=Producer(a, strides=None)), a.astype("f8"), "f4")
        near(elementwise("a", a=Producer(a, data=a.ctypes.data - 64, byte_offset=64)), a.astype("f8"), "f4")
        self.assertEqual(elementwise("a + 1", a=Producer(np.arange(3))).dtype, np.int64)
        self.refused("out, 1 of 1 is read-only", attune.InvalidArgument, elementwise, "a", a=a,
                     out=Producer(a.copy(), flags=1))
        for words, kind, wrong in (
                ("a is of DLPack 2", attune.Unsupported, {"major": 2}),
                ("2 x 32 bits", attune.InvalidArgument, {"lanes": 2}),
                ("1 x 4 bits, DLPack's kind 17", attune.InvalidArgument, {"code": 17, "bits": 4}),
                ("100000 dimensions", attune.InvalidArgument, {"ndim": 100000}),
                ("-1 dimensions", attune.InvalidArgument, {"ndim": -1}),
                ("sizes of 0 or more", attune.InvalidArgument, {"shape": (ctypes.c_int64 * 2)(-4, 6)}),
                ("a", attune.InvalidArgument, {"data": None}),
                ("DLPack's device 10", attune.Unsupported, {"device": (10, 0)}),
                ("no device cuda", attune.NotFound, {"device": (2, 99)}),
                ("should be a pair", attune.InvalidArgument, {"device": 7})):
            self.refused(words, kind, elementwise, "a", a=Producer(a, **wrong))
        self.refused("cannot be had by DLPack: no", attune.InvalidArgument, gemm, raising(BufferError("no")), a)
        self.refused("no capsule of DLPack", attune.InvalidArgument, gemm, raising(None), a)
        gc.collect()
        self.assertEqual(alive, {})

    def test_interfaces(self):
        a = normal(4, 6)
        plain = {"typestr": "<f4", "shape": a.shape, "data": (a.ctypes.data, False), "version": 3}
        near(elementwise("a", a=Interface("__array_interface__", **plain)), a.astype("f8"), "f4")
        for words, change in (("typestr", {"typestr": None}), ("type |O", {"typestr": "|O"}),
                              ("type >f4", {"typestr": ">f4"}),
                              ("no way that attune can read", {"data": None}), ("no way", {"shape": "ab"}),
                              ("mask", {"mask": a}), ("as many integers", {"strides": (4,)}),
                              ("multiples of its elements' 4", {"strides": (24, 3)})):
            self.refused(words if words != "typestr" else "elements of type", attune.InvalidArgument, elementwise, "a",
                         a=Interface("__array_interface__", **{**plain, **change}))
        if not gpu():
            self.refused("no device cuda", attune.NotFound, elementwise, "a",
                         a=Interface("__cuda_array_interface__", **plain))

    def test_one_device(self):
        a = normal(4, 4)
        self.refused("b is on cuda:1, and a on host", attune.InvalidArgument, gemm, a, Producer(a, device=(2, 1)))


def gpu():
    return any(device.kind == "cuda" for device in attune.devices())


def raising(error):
    """A producer that fails, or that gives no capsule."""
    class Odd:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **_):
            if error:
                raise error
            return 5

    return Odd()


class Streams(Refused):
    """Which stream work is given to, and in which order: on a GPU that only writes down what it is asked."""

    def setUp(self):
        self.kept = _c._loaded, dict(_streams._devices), dict(_streams._streams)
        self.recorder = Recorder(_c._loaded[0])
        _c._loaded = self.recorder, LIBRARY
        _streams._devices.clear(), _streams._streams.clear()
        self.a, self.b, self.out = (Producer(x, device=(2, 0))
                                    for x in (normal(5, 7), normal(7, 3), np.zeros((5, 3), "f4")))

    def tearDown(self):
        _c._loaded = self.kept[0]
        for now, before in ((_streams._devices, self.kept[1]), (_streams._streams, self.kept[2])):
            now.clear(), now.update(before)
        sys.modules.pop("torch", None)
        tuner._devices.clear()

    def test_default(self):
        gemm(self.a, self.b, out=self.out)
        self.assertEqual(self.recorder.calls, [("gemm", 0x5000)])
        self.assertEqual(self.a.asked, [1])  # DLPack's number of the legacy default stream
        self.refused("makes no arrays of python_arrays on cuda:0", attune.InvalidArgument, gemm, self.a, self.b)

    def test_given(self):
        class Torch:
            cuda_stream = 0x20

        class Cuda:
            def __cuda_stream__(self):
                return 0, 0x30

        for stream, number in ((0x10, 0x10), (Torch(), 0x20), (Cuda(), 0x30), (types.SimpleNamespace(ptr=0x40), 0x40)):
            self.recorder.calls.clear()
            gemm(self.a, self.b, out=self.out, stream=stream)
            self.assertEqual(self.recorder.calls, [("gemm", 0x5000 + number)])
            self.assertEqual(self.b.asked[-1], number)
        for wrong in ("x", -1, 2**64, True, 1.5, object()):
            self.refused("stream is", attune.InvalidArgument, gemm, self.a, self.b, out=self.out, stream=wrong)

    def test_current(self):
        """PyTorch's current stream is taken, its producers need not wait for it, and results are PyTorch's."""
        made = []

        class Tensor(Producer):
            device_of_torch = "cuda:0"

        def empty(shape, dtype, device):
            made.append((shape, dtype, device))
            return Tensor(np.zeros(shape, "f4"), device=(2, 0))

        current = types.SimpleNamespace(cuda_stream=0x60)
        torch = types.SimpleNamespace(Tensor=Tensor, empty=empty, float32="torch.float32",
                                      cuda=types.SimpleNamespace(current_stream=lambda number: current))
        sys.modules["torch"] = torch
        a = Tensor(normal(5, 7), device=(2, 0))
        result = gemm(a, self.b)
        self.assertIsInstance(result, Tensor)
        self.assertEqual(made, [((5, 3), "torch.float32", (2, 0))])
        self.assertEqual((a.asked, result.asked, self.b.asked), ([-1], [-1], [0x60]))
        elementwise("a * 2", a=a, out=result)
        self.assertEqual(self.recorder.calls, [("gemm", 0x5060), ("elementwise", 0x5060)])
        # Memory of a new result may still be in use on PyTorch's stream: a stream that is given waits for that.
        self.assertEqual(gemm(a, self.b, stream=0x10).asked, [0x10])
        self.assertEqual(elementwise("a", a=a, dtype="f32", stream=0x10).asked, [0x10])
        self.assertIs(_streams._streams["cuda:0", 0x60, 0].owner, current)

    def test_interface_stream(self):
        """Work waits for the stream that an array names."""
        def array(x, **more):
            return Interface("__cuda_array_interface__", typestr="<f4", shape=x.shape,
                             data=(x.ctypes.data, False), **more)

        a, b, out = normal(5, 7), normal(7, 3), np.zeros((5, 3), "f4")
        gemm(array(a, stream=0x70), array(b, stream=None), out=array(out, stream=1))
        self.assertEqual(self.recorder.calls, [("wait", 0x5000, 0x5070), ("gemm", 0x5000)])

    def test_copies_in_stream_order(self):
        """A copy is made, used and freed by the same stream, and freed also when the product fails."""
        a = Producer(normal(10, 14)[::2, ::2], device=(2, 0))
        gemm(a, self.b, out=self.out, stream=0x10)
        order = [("alloc", 1, 0x5010), ("copy", 1, 0x5010), ("gemm", 0x5010), ("free", 1, 0x5010)]
        self.assertEqual(self.recorder.calls, order)
        real = self.recorder.call
        self.recorder.call = lambda name, *rest: 1 if name == "attune_gemm" else real(name, *rest)
        with self.assertRaises(attune.InvalidArgument):
            gemm(a, self.b, out=self.out, stream=0x10)
        self.assertEqual(self.recorder.calls[-1], ("free", 2, 0x5010))

    def test_child_of_fork(self):
        """A child whose CUDA is the parent's is told so by the library, not by what PyTorch says of its streams."""
        def current_stream(number):
            raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")

        class Tensor(Producer):
            pass

        sys.modules["torch"] = types.SimpleNamespace(Tensor=Tensor, cuda=types.SimpleNamespace(
            current_stream=current_stream))
        a = Tensor(normal(5, 7), device=(2, 0))
        child = os.fork()
        if child == 0:
            try:
                real = self.recorder.call
                self.recorder.call = lambda name, *rest: 6 if name.endswith("memory_info") else real(name, *rest)
                for call in (lambda: gemm(a, self.b, out=self.out), lambda: elementwise("a * 2", a=a, out=self.a),
                             lambda: gemm(a, self.b, out=self.out, stream=0x10)):
                    with self.assertRaises(attune.DeviceError):
                        call()
                self.recorder.call = real
                sys.modules.pop("torch")
                self.recorder.calls.clear()
                for _ in range(2):  # a child that has CUDA of its own; asked for once
                    gemm(a, self.b, out=self.out)
                assert self.recorder.calls == [("memory", 0xC0DA), ("gemm", 0x5000), ("gemm", 0x5000)]
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_host_tensors_do_not_ask_cuda(self):
        """PyTorch asks CUDA whether the host's memory is pinned when it is asked for DLPack's device, which fails in a
        child of fork."""
        class Place(tuple):
            type, index = "cpu", None

        class Tensor(Producer):
            def __dlpack_device__(self):
                raise RuntimeError("CUDA error: initialization error")

        def empty(shape, dtype, device):
            return Tensor(np.zeros(shape, "f4"), device=Place((1, 0)))

        sys.modules["torch"] = types.SimpleNamespace(Tensor=Tensor, empty=empty, float32="torch.float32")
        _c._loaded = self.kept[0]  # on the host
        a, b = (Tensor(normal(*shape), device=Place((1, 0))) for shape in ((5, 7), (7, 3)))
        near(gemm(a, b).array, a.array.astype("f8") @ b.array, "f4")
        near(elementwise("a * 2", a=a, dtype="f32").array, 2 * a.array.astype("f8"), "f4")

    def test_close_waits(self):
        with attune.Tuner(":memory:") as mine:
            attune.gemm(self.a, self.b, out=self.out, tuner=mine)
        self.assertEqual(self.recorder.calls[-1], ("synchronize", Recorder.DEVICE))


class Tuners(Refused):
    def test_tune_and_explain(self):
        a, b = normal(24, 16), normal(16, 8)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tuning.db")
            problem = attune.gemm_problem(a, b)
            with attune.Tuner(path, budget_ms=40) as first:
                decision = first.tune(problem, "host")
                self.assertEqual(decision.source, "tuned")
                self.assertGreater(decision.time_ns, 0)
                self.assertGreater(decision.speedup, 0)
                first.check_database()
            with attune.Tuner(path) as second:
                again = attune.explain(problem, "host", tuner=second)
                self.assertEqual((again.source, again.implementation), ("stored", decision.implementation))
                text = attune.elementwise_problem("gelu(a) * 2", a=a)
                self.assertIn("elementwise", text)
                self.assertEqual(second.explain(text, "host").source, "default")
        self.refused("", attune.InvalidArgument, tuner.tune, "gemm f32 nn 4x4", "host")
        self.refused("", attune.InvalidArgument, tuner.explain, "gemm f32 nn 4x4x4 strict", "gpu")
        self.refused("problem is 5", attune.InvalidArgument, tuner.tune, 5)
        if not gpu():
            self.refused("no device cuda", attune.NotFound, tuner.explain, "gemm f32 nn 4x4x4 strict", "cuda:0")

    def test_options(self):
        for words, named in (("mode is 'on'", {"mode": "on"}), ("budget_ms is 'x'", {"budget_ms": "x"}),
                             ("measure is 'hot'", {"measure": "hot"}), ("database is 5", {"database": 5}),
                             ("zero byte", {"database": "a\0b"}), ("search", {"search": "rounds:5"}),
                             ("rounds", {"search": {"rounds": 2}})):
            self.refused(words, attune.InvalidArgument, attune.Tuner, **named)
        attune.Tuner(":memory:", search={"rounds": 5, "tolerance": 0.5}, measure="hot_eager").set_mode("cached")

    def test_close(self):
        mine = attune.Tuner(":memory:")
        with mine._used():
            self.refused("in use by 1 calls", attune.Busy, mine.close)
        mine.close()
        mine.close()
        self.refused("the tuner is closed", attune.InvalidArgument, attune.gemm, normal(2, 2), normal(2, 2), tuner=mine)

    def test_devices(self):
        host = attune.devices()[-1]
        self.assertEqual((host.name, host.kind), ("host", "host"))
        self.assertGreater(host.processors, 0)

    def test_library(self):
        self.assertEqual(attune.load(LIBRARY), _c._loaded[0])
        self.refused("is in use", attune.InvalidArgument, attune.load, "/nowhere/libattune.so")
        with self.assertRaises(ImportError) as caught:
            _c._open("/nowhere/libattune.so")
        self.assertIn("attune.load(path)", str(caught.exception))
        self.refused("has no attune_version", attune.NotFound, _c._bind, ctypes.CDLL(None), "another library")

    def test_lock_of_the_interpreter(self):
        """ctypes gives it up in calls of functions without this flag."""
        python_api = 0x4
        for function in _c._loaded[0].values():
            self.assertFalse(function._flags_ & python_api)


class Processes(unittest.TestCase):
    def test_threads(self):
        a, b = normal(64, 64), normal(64, 64)
        expected, wrong = a.astype("f8") @ b, []

        def work():
            try:
                for _ in range(50):
                    near(gemm(a, b), expected, "f4")
                    near(elementwise("a * 2", a=a[:, ::2]), a[:, ::2].astype("f8") * 2, "f4")
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_fork(self):
        """A child computes with the parent's tuner, also when other threads of the parent held its locks."""
        a = normal(8, 8)
        gemm(a, a)
        for lock in (tuner._lock, _streams._lock, _c._lock, _tuner._default_lock, None):
            held, done = threading.Event(), threading.Event()

            def hold():
                with lock or contextlib.nullcontext():
                    held.set()
                    done.wait()

            thread = threading.Thread(target=hold)
            thread.start()
            held.wait()
            child = os.fork()
            if child == 0:
                try:
                    signal.alarm(60)  # a child that hangs ends
                    _streams._streams.clear()
                    _tuner._default = None
                    attune.load()
                    near(gemm(a, a), a.astype("f8") @ a, "f4")
                    near(attune.gemm(a, a), a.astype("f8") @ a, "f4")
                    tuner.close()
                    os._exit(0)
                except BaseException:
                    traceback.print_exc()
                    sys.stderr.flush()
                finally:
                    os._exit(1)
            done.set()
            thread.join()
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)


class Random(unittest.TestCase):
    def test_any_argument(self):
        """Whatever is given, the call does what it should or raises attune.Error; it never ends the process."""
        draw = random.Random(4)
        a = normal(4, 4)
        odd = [None, 0, 1, -1, 2**63, 2**70, 1.5, float("nan"), float("inf"), "", "x", b"y", (), [], {}, object(), type,
               np, np.float32(2), np.bool_(True), np.array(1.0), np.array(1, object), np.zeros((0, 4), "f4"),
               np.zeros((4, 0), "f4"),
               np.zeros((2, 0, 4), "f4"), a, a.T, a[::2], a[:, ::2], a[::-1], a[:2, :2], a.astype("f8"), a.astype("f2"),
               a.astype("i4"), a.astype("c8"), a.astype(bool), a.astype(">f4"), a.astype("U4"), np.zeros(4, "M8[s]"),
               np.zeros((4, 4), [("x", "f4")]), np.zeros((4, 4), "V8"), np.broadcast_to(np.float32(1), (4, 4)),
               normal(3, 4, 4), normal(2, 1, 4, 4), normal(4), np.zeros((1,) * 9, "f4"), np.ma.array(a),
               np.ndarray((4, 4), "f4", bytes(99), offset=3), Producer(a), Producer(a, data=None), Producer(a, lanes=0),
               Producer(a, device=(2, 99)), Producer(a, device=(99, -1)), Producer(a, shape=None),
               raising(ValueError("v")),
               raising(None), Interface("__array_interface__"), Interface("__cuda_array_interface__", typestr="<f4"),
               Interface("__array_interface__", typestr="", shape=(2,), data=(0, 0)),
               Interface("__array_interface__", typestr="<f4", shape=(2**70, 2), data=(64, 0)),
               Interface("__array_interface__", typestr="<f4", shape=(2**61, 2**61, 2**61), data=(64, 0)),
               Interface("__array_interface__", typestr="<f4", shape=(4, 4), data=(0, 0)),
               Interface("__array_interface__", typestr="<f4", shape=4, data=(a.ctypes.data, 0)),
               Interface("__array_interface__", typestr="<f4", shape=(-1, 4), data=(a.ctypes.data, 0))]
        texts = ["a", "a + b", "a +", "gelu(a) * b", "a, b", "rand()", "index(9)",
                 "", "\0", "é", "((((", "a ? b : 1", 5, None, "f99(a)"]
        done = failed = 0
        for _ in range(20 * CASES):
            given = {name: draw.choice(odd) for name in ("alpha", "beta", "out", "dtype", "accuracy", "deterministic",
                                                         "workspace", "stream") if draw.random() < 0.15}
            if isinstance(given.get("out"), np.ndarray) and given["out"].flags.writeable:
                given["out"] = given["out"].copy()
            two = [draw.choice(odd) if draw.random() < 0.5 else a for _ in range(3)]
            try:
                way = draw.randrange(5)
                if way == 0:
                    gemm(*two[:2], **given)
                elif way == 1:
                    gemm(*two, **given)
                elif way == 2:
                    for name in ("alpha", "beta", "deterministic", "workspace"):
                        given.pop(name, None)
                    elementwise(draw.choice(texts), {"a": two[0], "b": two[1]},
                                shape=draw.choice((None, None, two[2])), **given)
                elif way == 3:
                    call = draw.choice((tuner.explain, tuner.tune))
                    call(draw.choice((two[0], "gemm", "gemm f32")), draw.choice(odd))
                else:
                    attune.gemm_problem(*two[:2])
                done += 1
            except attune.Error as error:
                failed += 1
                self.assertTrue(str(error), type(error))
        self.assertGreater(done, CASES / 10)
        self.assertGreater(failed, CASES)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
