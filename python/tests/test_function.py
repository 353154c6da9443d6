"""Functions of kf ops on arrays."""

import gc
import threading
import unittest

import numpy as np

import kernelforge
from support import MODELS

TWO = """
func.func @two(%a: tensor<?x2xf32>, %b: tensor<?x2xf32>)
    -> (tensor<?x2xf32>, tensor<?xi32>) {
  %0 = arith.addf %a, %b : tensor<?x2xf32>
  %1 = kf.argmax %b : tensor<?x2xf32>
  return %0, %1 : tensor<?x2xf32>, tensor<?xi32>
}
"""
SOFTMAX = """
func.func @softmax(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = kf.softmax %x : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
"""
SAME = "func.func @f(%x: tensor<{0}>) -> tensor<{0}> {{ return %x : tensor<{0}> }}"
# What rounds to bf16 and back.
ROUND = """
func.func @round(%x: tensor<2x3xf32>) -> tensor<2x3xbf16> {
  %0 = arith.truncf %x : tensor<2x3xf32> to tensor<2x3xbf16>
  return %0 : tensor<2x3xbf16>
}
"""
MATMUL = """
func.func @matmul(%x: tensor<2x3xf32>, %w: tensor<2x3xbf16>) -> tensor<2x2xf32> {
  %0 = kf.matmul %x, %w : tensor<2x3xf32>, tensor<2x3xbf16>
  return %0 : tensor<2x2xf32>
}
"""
NORM = """
func.func @norm(%x: tensor<1x256xf32>) -> tensor<1x256xf32> {
  %w = kf.weight ["model.norm.weight"] : tensor<256xbf16>
  %0 = kf.rms_norm %x, %w eps(0.0) : tensor<1x256xf32>, tensor<256xbf16>
  return %0 : tensor<1x256xf32>
}
"""


class DlpackAlone:
    """An array that has nothing but __dlpack__."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class Call(unittest.TestCase):
    def test_computes(self):
        for device in ("cpu", "reference"):
            with kernelforge.compile(TWO, device=device) as two:
                self.assertEqual(two.device, device)
                a = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
                b = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
                total, largest = two(a, b)
                np.testing.assert_array_equal(total, a + b)
                np.testing.assert_array_equal(largest, [0, 1, 0])
                self.assertEqual(largest.dtype, np.int32)

    def test_computes_on_a_gpu(self):
        x = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
        expected = kernelforge.compile(SOFTMAX)(x)
        for device in ("vulkan", "cuda"):
            with self.subTest(device):
                try:
                    softmax = kernelforge.compile(SOFTMAX, device=device)
                except kernelforge.UnavailableError as error:
                    self.skipTest(str(error))
                with softmax:
                    self.assertEqual(softmax.device, device)
                    np.testing.assert_allclose(softmax(x), expected, rtol=1e-5)

    def test_takes_rows_as_they_come(self):
        softmax = kernelforge.compile(SOFTMAX, max_tokens=1000)
        for rows in (1, 7, 1000):
            x = np.random.default_rng(rows).normal(size=(rows, 4)).astype(np.float32)
            e = np.exp(x - x.max(axis=1, keepdims=True))
            np.testing.assert_allclose(
                softmax(x), e / e.sum(axis=1, keepdims=True), rtol=1e-5
            )

    def test_says_its_types(self):
        two = kernelforge.compile(TWO)
        self.assertEqual(two.name, "two")
        self.assertEqual([str(t) for t in two.inputs], ["?x2xf32", "?x2xf32"])
        self.assertEqual(two.outputs[1].dtype, "i32")
        self.assertEqual(two.outputs[1].shape, (None,))
        self.assertEqual(
            repr(two),
            "<kernelforge.Function two(?x2xf32, ?x2xf32) -> (?x2xf32, ?xi32)>",
        )

    def test_chooses_a_function(self):
        both = TWO + SOFTMAX
        self.assertEqual(kernelforge.compile(both, function="softmax").name, "softmax")
        for options, words in (({}, "two, softmax"), ({"function": "x"}, "'x'")):
            with self.assertRaisesRegex(kernelforge.InvalidError, words):
                kernelforge.compile(both, **options)

    def test_reads_weights(self):
        file = MODELS / "kf-stories" / "model.safetensors"
        norm = kernelforge.compile(NORM, weights=file)
        self.assertEqual(norm(np.ones((1, 256), np.float32)).shape, (1, 256))
        with self.assertRaisesRegex(kernelforge.InvalidError, "weights"):
            kernelforge.compile(NORM)
        with self.assertRaises(FileNotFoundError):
            kernelforge.compile(NORM, weights="/nowhere")

    def test_keeps_nothing(self):
        softmax = kernelforge.compile(SOFTMAX)
        first = softmax(np.zeros((1, 4), np.float32))
        second = softmax(np.array([[9, 0, 0, 0]], np.float32))
        self.assertEqual(first[0, 0], 0.25)
        self.assertGreater(second[0, 0], 0.9)
        softmax.close()
        del softmax
        gc.collect()
        self.assertEqual(first[0, 0], 0.25)
        first += 1  # its memory is its own

    def test_from_many_threads(self):
        softmax = kernelforge.compile(SOFTMAX)
        wrong = []

        def work(number):
            x = np.zeros((number + 1, 4), np.float32)
            for _ in range(200):
                if not np.array_equal(softmax(x), x + 0.25):
                    wrong.append(number)

        threads = [threading.Thread(target=work, args=[n]) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Arrays(unittest.TestCase):
    def test_have_any_strides(self):
        softmax = kernelforge.compile(SOFTMAX)
        x = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
        for view in (x.T[:, ::-1], x.T[::2], np.asfortranarray(x.T), x[::-1].T):
            np.testing.assert_array_equal(
                softmax(view), softmax(np.ascontiguousarray(view))
            )
        self.assertEqual(
            kernelforge.compile(SAME.format("f32"))(np.float32(3).reshape(())), 3
        )

    def test_come_by_dlpack(self):
        softmax = kernelforge.compile(SOFTMAX)
        x = np.ones((2, 4), np.float32)
        result = softmax(DlpackAlone(x))
        np.testing.assert_array_equal(np.from_dlpack(result), x / 4)
        np.testing.assert_array_equal(softmax(softmax(x)), x / 4)

    def test_may_be_read_only(self):
        x = np.ones((2, 4), np.float32)
        x.flags.writeable = False
        self.assertEqual(kernelforge.compile(SOFTMAX)(x)[0, 0], 0.25)

    def test_of_types_that_numpy_lacks(self):
        rounded = kernelforge.compile(ROUND)(
            np.array([[1, 0, 0], [0, 1, 1]], np.float32)
        )
        self.assertEqual(rounded.__dlpack_device__(), (1, 0))
        x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
        product = kernelforge.compile(MATMUL)(x, rounded)
        np.testing.assert_array_equal(product, [[1, 5], [4, 11]])
        with self.assertRaisesRegex(kernelforge.InvalidError, "2x3xbf16"):
            kernelforge.compile(MATMUL)(x, x)

    def test_are_not_converted(self):
        softmax = kernelforge.compile(SOFTMAX)
        right = np.ones((2, 4), np.float32)
        for wrong in (
            right.astype(np.float64),
            right.astype(np.float16),
            right.astype(np.int32),
            right[:, :3],
            right[0],
            right[None],
            np.ones((0, 4), np.float32),
            np.ones((513, 4), np.float32),
            right.astype(np.complex64),
            np.ones((2, 4), ">f4"),
        ):
            with self.subTest(wrong.dtype), self.assertRaises((ValueError, TypeError)):
                softmax(wrong)
        for wrong in ([[1.0] * 4], 1.0, None, "text", object()):
            with self.assertRaisesRegex(TypeError, "input 0"):
                softmax(wrong)
        for wrong in ((), (right, right)):
            with self.assertRaisesRegex(kernelforge.InvalidError, "inputs are given"):
                softmax(*wrong)
        np.testing.assert_array_equal(softmax(right), right / 4)


class Text(unittest.TestCase):
    def test_errors_say_where(self):
        with self.assertRaisesRegex(
            kernelforge.InvalidError, r"^<mlir>:\d+:\d+: error: "
        ):
            kernelforge.compile("func.func @f(%x: tensor<?x4xf32>) {\n  kf.what\n}")
        for text in ("", "\0", "// nothing", "{" * 100000, "func.func"):
            with self.assertRaises(kernelforge.InvalidError):
                kernelforge.compile(text)
        for text in (None, 3, b"func.func"):
            with self.assertRaises(TypeError):
                kernelforge.compile(text)
        with self.assertRaises(ValueError):
            kernelforge.compile("// \ud800")

    def test_has_no_cache(self):
        text = """
func.func @f(%k: tensor<1x2x16xf32>, %v: tensor<1x2x16xf32>,
             %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x1xi32>,
             %c: !kf.cache<1 x 2 x 16 x f32, page = 64>) -> tensor<1x2x16xf32> {
  kf.kv_append %k, %v, %p, %s, %t, %c
  return %k : tensor<1x2x16xf32>
}
"""
        with self.assertRaises(kernelforge.Error):
            kernelforge.compile(text)

    def test_options(self):
        for options in (
            {"device": "foo"},
            {"threads": 0},
            {"max_tokens": 0},
            {"max_tokens": 2**40},
            {"weights": "a\0b"},
        ):
            with self.subTest(options), self.assertRaises(ValueError):
                kernelforge.compile(SOFTMAX, **options)
        with self.assertRaises(TypeError):
            kernelforge.compile(SOFTMAX, threads=1.5)


if __name__ == "__main__":
    unittest.main()
