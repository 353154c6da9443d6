"""Embeddings: the same as kf-run's, and as the server's options have them."""

import json
import threading
import unittest

import numpy as np

import kernelforge
from support import PROMPT, ModelTest, kf_run

# Where a CPU multiplies pairs of bf16, programs for many rows round these, and
# those for few do not, and a step has as many rows as the time that steps take
# allows: an element's share of the whole embedding's length. The largest of those
# by which embeddings that are pooled otherwise differ is more than 0.02.
ROUNDED = 5e-3
TEXTS = [PROMPT, "The cat", PROMPT + " there was a dog. " * 20]


class Embed(ModelTest):
    def as_kf_run(self, *flags, rounded=ROUNDED, **options):
        """The embeddings, which have to be those of kf-run, to a share of their
        length."""
        lines = kf_run("embed", "-f", "-", *flags, stdin="\n".join(TEXTS))
        expected = np.array([json.loads(line)["embedding"] for line in lines.splitlines()])
        found = self.model.embed(TEXTS, **options)
        self.assertEqual(found.dtype, np.float32)
        lengths = np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(
            found / lengths, expected / lengths, rtol=0, atol=rounded
        )
        return found

    def test_are_those_of_kf_run(self):
        last = self.as_kf_run()
        self.assertEqual(last.shape, (3, self.model.embedding_size))
        np.testing.assert_allclose(np.linalg.norm(last, axis=1), 1, atol=1e-6)
        mean = self.as_kf_run("--pooling", "mean", pooling="mean")
        self.assertGreater(np.abs(mean - last).max(), 4 * ROUNDED)
        self.as_kf_run("--pooling", "cls", pooling="cls")
        plain = self.as_kf_run("--normalize", "none", normalize=False)
        np.testing.assert_allclose(
            plain / np.linalg.norm(plain, axis=1, keepdims=True), last, atol=ROUNDED
        )
        kept = np.linalg.norm(last[:, :8], axis=1).min()
        self.assertGreater(kept, 0.1)
        few = self.as_kf_run("--dimensions", 8, rounded=ROUNDED / kept, dimensions=8)
        self.assertEqual(few.shape, (3, 8))

    def test_takes_one_text_or_several(self):
        several = self.model.embed(TEXTS)
        one = self.model.embed(TEXTS[1])
        self.assertEqual(one.shape, (self.model.embedding_size,))
        np.testing.assert_allclose(one, several[1], atol=ROUNDED)
        self.assertEqual(self.model.embed([TEXTS[1]]).shape, (1, one.size))
        self.assertEqual(self.model.embed([]).shape, (0, one.size))
        self.assertEqual(self.model.embed([], dimensions=5).shape, (0, 5))
        np.testing.assert_allclose(self.model.embed(iter(TEXTS)), several, atol=ROUNDED)

    def test_reads_token_ids(self):
        ids = self.model.tokenize(TEXTS[1], add_special=True)
        one = self.model.embed(TEXTS[1])
        for given in (ids, tuple(ids), np.array(ids)):
            np.testing.assert_allclose(self.model.embed([given])[0], one, atol=ROUNDED)
        mixed = self.model.embed([ids, TEXTS[1]])
        np.testing.assert_allclose(mixed[0], mixed[1], atol=ROUNDED)

    def test_shares_the_model_with_texts(self):
        alone = self.model.generate(PROMPT, max_tokens=60).text
        expected = self.model.embed(TEXTS)
        texts = []
        thread = threading.Thread(
            target=lambda: texts.append(self.model.generate(PROMPT, max_tokens=60).text)
        )
        thread.start()
        for _ in range(5):
            np.testing.assert_allclose(self.model.embed(TEXTS), expected, atol=ROUNDED)
        thread.join()
        self.assertEqual(texts, [alone])

    def test_many_wait_for_their_turn(self):
        found = self.model.embed(["The cat"] * 50)
        np.testing.assert_allclose(found, np.repeat(found[:1], 50, 0), atol=ROUNDED)

    def test_wrong_ones_are_errors(self):
        for texts in (3, b"text", None, {"a": 1}, [3], [b"a"], [None], [["a"]]):
            with self.subTest(texts), self.assertRaises(TypeError):
                self.model.embed(texts)
        for texts in ("", ["a", ""], [[]], [[-1]], [[self.model.vocabulary_size]]):
            with self.subTest(texts), self.assertRaises(kernelforge.InvalidError):
                self.model.embed(texts)
        for options in (
            {"pooling": "max"},
            {"dimensions": 0},
            {"dimensions": self.model.embedding_size + 1},
        ):
            with self.subTest(options), self.assertRaises(kernelforge.InvalidError):
                self.model.embed("a", **options)
        with self.assertRaises(kernelforge.InvalidError):
            self.model.embed("word " * (self.model.context + 1))

    def test_ends_with_the_model(self):
        with kernelforge.load() as model:
            model.embed("a")
        with self.assertRaises(kernelforge.CancelledError):
            model.embed("a")


if __name__ == "__main__":
    unittest.main()
