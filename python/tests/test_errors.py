"""What is wrong is an exception, one line, and nothing else happens."""

import math
import os
import pathlib
import shutil
import tempfile
import unittest

import numpy as np

import kernelforge
from support import MODELS, PROMPT, ModelTest


class Options(ModelTest):
    def test_have_their_ranges(self):
        for name, wrong in {
            "max_tokens": (-2, 2**24 + 1, 2**70, 1.5, "3", True, math.inf),
            "temperature": (-1, "hot", math.nan, math.inf, [], True, 1e7),
            "top_p": (-0.1, 1.1, "x", math.nan),
            "top_k": (-2, 2**40, 1.5),
            "min_p": (-0.1, 1.1),
            "seed": (-(2**63) - 1, 2**64, 1.5, "x"),
            "stop": ("", 3, [3], ["a", ""], ["a"] * 65, "a" * 257, {"a": 1}),
            "stop_token_ids": ([-1], [2**31], [1] * 5000),
            "ignore_eos": (1, "yes"),
            "repetition_penalty": (0, -1, math.nan),
            "presence_penalty": (math.inf, "x"),
            "frequency_penalty": (math.nan,),
            "repeat_last_n": (-2, 0.5),
            "logit_bias": (
                {-1: 1},
                {10**6: 1},
                {1: math.nan},
                {1: math.inf},
                {1: "x"},
                {id: 1 for id in range(5000)},
            ),
        }.items():
            for value in wrong:
                with self.subTest(name, value=str(value)[:40]):
                    with self.assertRaises(ValueError) as caught:
                        self.model.generate(PROMPT, **{name: value})
                    self.assertIsInstance(caught.exception, kernelforge.InvalidError)
                    self.assertNotIn("\n", str(caught.exception))

    def test_have_their_types(self):
        for options in (
            {"logit_bias": [1]},
            {"logit_bias": {"x": 1}},
            {"logit_bias": {1.5: 1}},
            {"logit_bias": {True: 1}},
            {"stop_token_ids": "12"},
            {"stop_token_ids": [1.5]},
            {"stop": b"x"},
            {"temperature": object()},
            {"unknown": 1},
            {"n": 2},
        ):
            with self.subTest(options), self.assertRaises(TypeError):
                self.model.generate(PROMPT, **options)

    def test_are_those_of_every_way(self):
        for call in (
            lambda **options: self.model.stream(PROMPT, **options),
            lambda **options: self.model.batch([PROMPT], **options),
            lambda **options: self.model.chat(
                [{"role": "user", "content": "a"}], **options
            ),
        ):
            with self.assertRaises(kernelforge.InvalidError):
                call(temperature=-1)
            with self.assertRaises(TypeError):
                call(unknown=1)


class Texts(ModelTest):
    def test_prompts(self):
        for wrong in ([], [-1], [1477], [2**31], [2**70], range(5000), "a " * 5000):
            with self.subTest(str(wrong)[:20]):
                with self.assertRaises(kernelforge.InvalidError):
                    self.model.generate(wrong)
        for wrong in (
            None,
            b"a",
            3,
            1.5,
            [1.5],
            ["a"],
            [None],
            [True],
            {1: 2},
            object(),
        ):
            with self.subTest(wrong), self.assertRaises(TypeError):
                self.model.generate(wrong)
        with self.assertRaises(kernelforge.InvalidError):
            self.model.generate("\ud800")
        self.model.generate("\0\x01\uffff\U0010ffff", max_tokens=1)

    def test_messages(self):
        user = {"role": "user", "content": "a"}
        for wrong in (
            [],
            [{}],
            [3],
            ["a"],
            [{"role": "user"}],
            [{"role": "king", "content": "a"}],
            [{"role": 3, "content": "a"}],
            [{"role": "user", "content": 3}],
            [{"role": "user", "content": [{"type": "image_url"}]}],
            [{"role": "user", "content": "\ud800"}],
            [user] * 2000,
        ):
            with self.subTest(str(wrong)[:60]):
                with self.assertRaises(kernelforge.Error):
                    self.model.chat(wrong)
        for wrong in (None, "a", user, 3, [{"role": "user", "content": b"a"}]):
            with self.subTest(wrong), self.assertRaises(TypeError):
                self.model.chat(wrong)
        for wrong in (
            {"messages": []},
            {"tools": 1},
            {"x": 1} | {"add_generation_prompt": 0},
        ):
            with self.assertRaises(kernelforge.InvalidError):
                self.model.chat([user], chat_template_kwargs=wrong)

    def test_templates(self):
        for template, words in {
            "{{ raise_exception('not so') }}": "not so",
            "{% for %}": "template",
            "{% for i in range(10**8) %}{% for j in range(10**8) %}{% endfor %}{% endfor %}": "",
        }.items():
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "template.jinja"
                path.write_text(template)
                with self.assertRaisesRegex(kernelforge.Error, words):
                    with kernelforge.load(chat_template=path) as model:
                        model.chat([{"role": "user", "content": "a"}])

    def test_token_ids(self):
        for wrong in ([-1], [1477], [2**31]):
            with self.assertRaises(kernelforge.InvalidError):
                self.model.detokenize(wrong)
        for wrong in ("12", [1.0], None, [[1]]):
            with self.assertRaises(TypeError):
                self.model.detokenize(wrong)
        self.assertEqual(self.model.detokenize([]), "")
        for wrong in (None, 3, b"a"):
            with self.assertRaises(TypeError):
                self.model.tokenize(wrong)
            with self.assertRaises(TypeError):
                self.model.perplexity(wrong)
        with self.assertRaises(kernelforge.InvalidError):
            self.model.tokenize("\ud800")

    def test_end_nothing_else(self):
        stream = self.model.stream(PROMPT, max_tokens=50)
        for _ in range(20):
            with self.assertRaises(kernelforge.InvalidError):
                self.model.generate([10**6])
        self.assertEqual(
            stream.result().ids, self.model.generate(PROMPT, max_tokens=50).ids
        )


class Load(unittest.TestCase):
    def test_paths(self):
        with tempfile.TemporaryDirectory() as folder:
            missing = pathlib.Path(folder) / "missing"
            for wrong in (missing, str(missing), "org/name", "llama-3-8b", folder):
                with self.subTest(wrong):
                    with self.assertRaises(FileNotFoundError) as caught:
                        kernelforge.load(wrong)
                    self.assertEqual(caught.exception.code, "not_found")
            (pathlib.Path(folder) / "a.gguf").write_bytes(b"GGUF" + b"\xff" * 100)
            (pathlib.Path(folder) / "config.json").write_text("{")
            for wrong in (folder, folder + "/a.gguf", folder + "/config.json"):
                with self.subTest(wrong), self.assertRaises(kernelforge.InvalidError):
                    kernelforge.load(wrong)
            with self.assertRaises(FileNotFoundError):
                kernelforge.load(chat_template=missing)
            with self.assertRaises(FileNotFoundError):
                kernelforge.load(b"/not \xff utf-8".decode("utf-8", "surrogateescape"))
        for wrong in ("a\0b", ""):
            with self.subTest(wrong), self.assertRaises(kernelforge.InvalidError):
                kernelforge.load(wrong)
        for wrong in (3, 1.5, [], object()):
            with self.subTest(wrong), self.assertRaises(TypeError):
                kernelforge.load(wrong)

    def test_options(self):
        for options in (
            {"device": "tpu"},
            {"device": ""},
            {"device": "\0"},
            {"device": "reference", "threads": 3},
            {"threads": 0},
            {"threads": -1},
            {"threads": 10**6},
            {"threads": 2**70},
            {"context": -1},
            {"context": 5000},
            {"context": 2**40},
            {"cache_type": "f3"},
            {"cache_type": "q4_0"},
            {"activation_type": "q8_0"},
            {"cache_memory": 0},
            {"cache_memory": 1},
            {"parallel": 0},
            {"parallel": 2**30},
        ):
            with self.subTest(options), self.assertRaises(kernelforge.Error) as caught:
                kernelforge.load(**options)
            self.assertNotIn("\n", str(caught.exception))
            self.assertNotRegex(str(caught.exception), r"(^|\s)--?[a-z]")
        for options in (
            {"device": 3},
            {"device": None},
            {"threads": 1.5},
            {"threads": "2"},
            {"threads": True},
            {"context": np.float32(3)},
            {"parallel": [1]},
            {"unknown": 1},
        ):
            with self.subTest(options), self.assertRaises(TypeError):
                kernelforge.load(**options)


class Names(unittest.TestCase):
    """What is no text is a name, too."""

    def test_of_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.fsencode(folder) + b"/a \xff"
            shutil.copytree(os.fsencode(MODELS / "kf-stories"), path)
            with open(path + b"/generation_config.json", "w") as file:
                file.write('{"typical_p": 0.5}')  # which is warned of
            with self.assertLogs("kernelforge", "WARNING"):
                with kernelforge.load(os.fsdecode(path)) as model:
                    self.assertIn("\ufffd", repr(model))
                    self.assertTrue(model.generate(PROMPT, max_tokens=2).text)

    def test_of_functions(self):
        function = kernelforge.compile('func.func @"a\\FF"() { return }')
        self.assertIn("\ufffd", repr(function))


class Kinds(unittest.TestCase):
    def test_are_pythons_own(self):
        for kind, own in (
            (kernelforge.InvalidError, ValueError),
            (kernelforge.NotFoundError, FileNotFoundError),
            (kernelforge.OutOfMemoryError, MemoryError),
            (kernelforge.UnsupportedError, NotImplementedError),
            (kernelforge.InternalError, RuntimeError),
            (kernelforge.UnavailableError, RuntimeError),
        ):
            error = kind("what and why")
            self.assertIsInstance(error, own)
            self.assertIsInstance(error, kernelforge.Error)
            self.assertEqual(str(error), "what and why")
            self.assertEqual(kind.__module__, "kernelforge")

    def test_of_want_of_memory(self):
        with self.assertRaises(MemoryError):
            with kernelforge.load(parallel=2**24, context=1024) as model:
                model.generate(PROMPT, max_tokens=1)


if __name__ == "__main__":
    unittest.main()
