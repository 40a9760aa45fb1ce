#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package with PyTorch's tensors on a GPU, and CuPy's if it is there: results, views without copies,
streams, graphs, lifetimes, errors. Usage: test_python_torch.py SOURCE LIBRARY. Exit 77: no PyTorch or no GPU."""
import gc
import os
import signal
import sys
import threading
import traceback
import unittest

sys.dont_write_bytecode = True
SOURCE, LIBRARY = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.join(SOURCE, "bindings", "python"))
try:
    import torch
except ImportError:
    print("skipped: no PyTorch for this Python")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: PyTorch sees no GPU")
    sys.exit(77)
import attune
from attune import _gemm

attune.load(LIBRARY)
torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = False
tuner = attune.Tuner(":memory:", mode="cached")


def normal(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda").to(dtype)


def gemm(*arguments, **named):
    return attune.gemm(*arguments, tuner=tuner, **named)


def elementwise(*arguments, **named):
    return attune.elementwise(*arguments, tuner=tuner, **named)


class Torch(unittest.TestCase):
    def near(self, result, expected, dtype=torch.float32):
        limit = {torch.float64: 1e-10, torch.float32: 1e-3, torch.float16: 5e-2, torch.bfloat16: 3e-1}[dtype]
        torch.cuda.synchronize()
        self.assertEqual(tuple(result.shape), tuple(expected.shape))
        self.assertLess((result.double() - expected).abs().max().item() if result.numel() else 0, limit)

    def refused(self, words, kind, call, *arguments, **named):
        with self.assertRaises(kind) as caught:
            call(*arguments, **named)
        self.assertIn(words, str(caught.exception))

    def test_products(self):
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            a, b, c = normal(70, 64, dtype=dtype), normal(64, 33, dtype=dtype), normal(70, 33, dtype=dtype)
            expected = a.double() @ b.double()
            result = gemm(a, b)
            self.assertEqual((result.dtype, result.device), (dtype, a.device))
            self.near(result, expected, dtype)
            self.near(gemm(a, b, c, alpha=0.5, beta=2), 0.5 * expected + 2 * c.double(), dtype)
            self.near(gemm(a, b, c[0]), expected + c[0].double(), dtype)
            out = torch.full_like(c, float("nan"))
            self.assertIs(gemm(a, b, out=out), out)
            self.near(out, expected, dtype)
        self.assertEqual(gemm(a, b, dtype=torch.float32).dtype, torch.float32)

    def test_views(self):
        """Transposes, columns, sub-matrices and batches without a copy; other strides with one."""
        wide, b = normal(64, 128), normal(48, 24)

        def packs(x, y):
            product = _gemm._Product(x, y, None, 1.0, None, None, None, "strict", False, 0, None)
            return [letter for letter, *_ in product.layout.packs]

        for view, copied in ((wide[:, :48], []), (normal(48, 64).T, []), (wide[::2, 3:51], []),
                             (wide[:, ::2][:, :48], ["a"]),
                             (normal(1, 48).expand(64, 48), ["a"])):
            self.assertEqual(packs(view, b), copied)
            self.near(gemm(view, b), view.double() @ b.double())
        batch = normal(5, 32, 48)
        self.assertEqual(packs(batch, b), [])
        self.near(gemm(batch, b), batch.double() @ b.double())
        turned, spread = batch.transpose(1, 2), normal(32, 8).expand(5, 32, 8)
        self.near(gemm(turned, spread), turned.double() @ spread.double())
        first, second = normal(2, 1, 8, 16), normal(3, 16, 4)
        self.near(gemm(first, second), first.double() @ second.double())
        out = torch.zeros(24, 64, device="cuda").T
        gemm(wide[:, :48], b, out=out)
        self.near(out, wide[:, :48].double() @ b.double())

    def test_expressions(self):
        a, b = normal(64, 256, dtype=torch.bfloat16), normal(256, dtype=torch.bfloat16)
        result = elementwise("relu(a * s + b)", a=a, b=b, s=2.0)
        self.assertEqual(result.dtype, torch.bfloat16)
        self.near(result, torch.relu(a.double() * 2 + b.double()), torch.bfloat16)
        low, less = elementwise("min(a, b), a < b", a=a.T, b=b[:, None])
        self.assertEqual((less.dtype, tuple(less.shape)), (torch.bool, (256, 64)))
        self.assertTrue(torch.equal(low, torch.minimum(a.T, b[:, None])))
        for word, small in (("f8e4m3", torch.float8_e4m3fn), ("f8e5m2", torch.float8_e5m2)):
            eighth = elementwise(f"{word}(x)", x=a)
            self.assertEqual(eighth.dtype, small)
            self.assertTrue(torch.equal(eighth.view(torch.uint8), a.to(small).view(torch.uint8)))
            self.assertTrue(torch.equal(elementwise("f32(q)", q=eighth), eighth.float()))
        x = normal(100)
        kept = x.clone()
        elementwise("x + 1", x=x, out=x)
        self.assertTrue(torch.equal(x, kept + 1))
        self.assertEqual(elementwise("a * 2", a=torch.empty(0, 3, device="cuda")).shape, (0, 3))
        self.near(elementwise("a + b", a=torch.ones(3), b=torch.ones(3)), torch.full((3,), 2.0).double())  # on the host

    def test_current_stream(self):
        """Work follows what the current stream does, late as that may be, and comes before what it does next."""
        side = torch.cuda.Stream()
        for _ in range(5):
            a, b = torch.zeros(256, 256, device="cuda"), torch.zeros(256, 256, device="cuda")
            torch.cuda.synchronize()
            with torch.cuda.stream(side):
                torch.cuda._sleep(50_000_000)
                a.fill_(2), b.fill_(3)
                copies = gemm(a[:, ::2], b[::2])
                product = gemm(a, b)
                total = elementwise("p + c", p=product, c=copies)
                a.zero_(), b.zero_()
            side.synchronize()
            self.assertTrue((total == 256 * 6 + 128 * 6).all().item())

    def test_given_stream(self):
        """A stream that is given waits for the tensors' own one."""
        side = torch.cuda.Stream()
        for stream in (side, side.cuda_stream):
            a = torch.zeros(128, 128, device="cuda")
            torch.cuda._sleep(50_000_000)
            a.fill_(1)
            out = torch.zeros(128, 128, device="cuda")
            gemm(a, a, out=out, stream=stream)
            side.synchronize()
            self.assertTrue((out == 128).all().item())

    def test_temporaries(self):
        """Packed copies of many calls in flight, with tensors that die at once, do not step on each other."""
        results, expected = [], []
        b = normal(64, 64)
        torch.cuda._sleep(100_000_000)
        for i in range(40):
            a = torch.full((64, 128), float(i), device="cuda")
            results.append(gemm(a[:, ::2], b))
            expected.append(i * b.double().sum(0))
            del a
        gc.collect()
        for result, want in zip(results, expected):
            self.near(result[0], want)

    def test_graph(self):
        a, b, out = normal(64, 64), normal(64, 64), torch.zeros(64, 64, device="cuda")
        gemm(a, b, out=out), elementwise("x * 2", x=out, out=out)
        side = torch.cuda.Stream()
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=side):
            gemm(a, b, out=out)
            elementwise("x * 2", x=out, out=out)
        a.copy_(normal(64, 64))
        graph.replay()
        self.near(out, 2 * (a.double() @ b.double()))

    def test_tuning(self):
        a, b = normal(256, 128, dtype=torch.float16), normal(128, 512, dtype=torch.float16)
        problem = attune.gemm_problem(a, b)
        with attune.Tuner(":memory:", budget_ms=150) as mine:
            decision = mine.tune(problem, "cuda:0")
            self.assertEqual((decision.device, decision.source), ("cuda:0", "tuned"))
            self.near(attune.gemm(a, b, tuner=mine), a.double() @ b.double(), torch.float16)
            self.assertEqual(mine.explain(problem, "cuda:0").implementation, decision.implementation)

    def test_threads(self):
        a, b = normal(200, 200), normal(200, 200)
        expected, wrong = a.double() @ b.double(), []
        torch.cuda.synchronize()

        def work(own):
            try:
                with torch.cuda.stream(torch.cuda.Stream() if own else torch.cuda.default_stream()):
                    for _ in range(30):
                        self.near(gemm(a, b), expected)
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_refused(self):
        a, b = normal(8, 8), normal(8, 8)
        self.refused("b is on host, and a on cuda:0", attune.InvalidArgument, gemm, a, b.cpu())
        self.refused("gradient", attune.InvalidArgument, gemm, a.clone().requires_grad_(), b)
        self.refused("gradient", attune.InvalidArgument, gemm, a, b, out=a.clone().requires_grad_())
        self.refused("", attune.Error, gemm, a.to_sparse(), b)
        self.refused("", attune.Error, gemm, torch.empty(8, 8, device="meta"), b)
        self.refused("", attune.Error, gemm, a, b, out=a)
        gaps = torch.zeros(8, 16, device="cuda")[:, ::2]
        self.refused("out has strides", attune.InvalidArgument, gemm, a, b, out=gaps)
        self.refused("should have as many rows", attune.InvalidArgument, gemm, a, normal(4, 4))
        self.refused("dtype", attune.InvalidArgument, gemm, a.to(torch.int32), b.to(torch.int32))
        self.refused("no device cuda:", attune.NotFound, attune.explain, "gemm f32 nn 4x4x4 strict", "cuda:99")
        self.near(gemm(a, b), a.double() @ b.double())  # nothing is left of all that

    def test_fork(self):
        """In a child of a parent that has used CUDA the host works, and calls on the GPU are refused by the library."""
        a = normal(8, 8)
        gemm(a, a)
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(100)  # a child that hangs ends
                host = torch.ones(4, 4)
                self.assertTrue((gemm(host, host) == 4).all())
                self.assertTrue((elementwise("x * 3", x=host) == 3).all())
                self.refused("opened before fork", attune.DeviceError, gemm, a, a)
                self.refused("opened before fork", attune.DeviceError, elementwise, "x", x=a)
                self.refused("opened before fork", attune.DeviceError, gemm, a, a, out=a, stream=1)
                self.assertTrue((gemm(host, host) == 4).all())
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_cupy(self):
        try:
            import cupy
        except ImportError:
            self.skipTest("no CuPy")
        a, b = cupy.random.rand(40, 64, dtype=cupy.float32), cupy.random.rand(64, 24, dtype=cupy.float32)
        with cupy.cuda.Stream(non_blocking=True) as stream:
            result = gemm(a * 1, b * 1)
            self.assertIsInstance(result, cupy.ndarray)
            total = elementwise("r + s", r=result, s=1.0)
            stream.synchronize()
        self.assertLess(float(abs(total - (a @ b + 1)).max()), 1e-3)
        both = gemm(torch.as_tensor(a, device="cuda"), b)
        self.assertLess(float((both - torch.as_tensor(a @ b, device="cuda")).abs().max()), 1e-3)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
