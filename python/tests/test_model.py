"""Texts, chats, tokens: the same as kf-run's, by each way that there is."""

import json
import math
import pathlib
import tempfile
import unittest

import numpy as np

import kernelforge
from support import MODELS, PROMPT, SOURCE, ModelTest, kf_run

MESSAGES = [{"role": "user", "content": "Tell me a story."}]


class Adapters(unittest.TestCase):
    def test_are_named_by_texts(self):
        golden = SOURCE / "test" / "golden"
        folders = {
            "two": golden / "adapters" / "llama-two-targets",
            "all": golden / "adapters" / "llama-all-linear",
        }
        base = golden / "llama3-gqa-scaled"
        plain = ["generate", base, "--ids", "5,9,13", "-n", 8, "--quiet"]
        with kernelforge.load(base, adapters=folders) as model:
            for name, flags in (
                (None, []),
                ("two", ["--lora", folders["two"]]),
                ("all", ["--lora", folders["all"]]),
            ):
                done = model.generate([5, 9, 13], max_tokens=8, adapter=name)
                ids = [int(word) for word in kf_run(*plain, *flags).split(",")]
                self.assertEqual(done.ids, ids, name)
            with self.assertRaisesRegex(kernelforge.NotFoundError, "'none'"):
                model.generate([5], adapter="none")

    def test_are_folders_by_name(self):
        with self.assertRaisesRegex(TypeError, "'adapters'"):
            kernelforge.load(adapters=["a"])
        with self.assertRaisesRegex(kernelforge.NotFoundError, "it is no folder"):
            kernelforge.load(adapters={"a": "/nowhere"})


class Generate(ModelTest):
    def as_kf_run(self, *flags, prompt=PROMPT, **options):
        """The text, which has to be that of kf-run with the same options."""
        text = kf_run("generate", "--quiet", "-p", prompt, "--no-escape", *flags)
        self.assertEqual(self.model.generate(prompt, **options).text + "\n", text)
        return text

    def test_takes_the_likeliest_tokens(self):
        self.as_kf_run("-n", 40, max_tokens=40)

    def test_takes_256_tokens_by_default(self):
        text = self.as_kf_run(prompt="The cat")
        self.assertGreater(len(text), 100)

    def test_goes_on_until_the_context_is_full(self):
        done = self.model.generate(PROMPT, max_tokens=-1, ignore_eos=True)
        self.assertEqual(done.finish_reason, "length")
        self.assertEqual(done.prompt_tokens + len(done.ids) - 1, self.model.context)

    def test_draws(self):
        first = self.as_kf_run(
            *("-n", 30, "--temp", 0.8, "--top-k", 40, "--top-p", 0.9, "--seed", 7),
            **dict(max_tokens=30, temperature=0.8, top_k=40, top_p=0.9, seed=7),
        )
        second = self.as_kf_run(
            *("-n", 30, "--temp", 0.8, "--min-p", 0.1, "--seed", 8),
            **dict(max_tokens=30, temperature=0.8, min_p=0.1, seed=8),
        )
        self.assertNotEqual(first, second)

    def test_draws_a_seed_where_there_is_none(self):
        texts = {
            self.model.generate(PROMPT, max_tokens=20, temperature=1.5).text
            for _ in range(4)
        }
        self.assertGreater(len(texts), 1)

    def test_penalizes(self):
        plain = self.as_kf_run("-n", 40, max_tokens=40)
        for flag, option in (
            ("--repeat-penalty", "repetition_penalty"),
            ("--presence-penalty", "presence_penalty"),
            ("--frequency-penalty", "frequency_penalty"),
        ):
            with self.subTest(option):
                text = self.as_kf_run(
                    "-n", 40, flag, 1.7, max_tokens=40, **{option: 1.7}
                )
                self.assertNotEqual(text, plain)
        self.as_kf_run(
            *("-n", 40, "--repeat-penalty", 1.7, "--repeat-last-n", 3),
            **dict(max_tokens=40, repetition_penalty=1.7, repeat_last_n=3),
        )

    def test_adds_biases(self):
        first = self.model.generate(PROMPT, max_tokens=1).ids[0]
        text = self.as_kf_run(
            *("-n", 20, "--logit-bias", f"{first}-inf", "--logit-bias", "9+1.5"),
            **dict(max_tokens=20, logit_bias={first: -math.inf, np.int64(9): 1.5}),
        )
        self.assertNotEqual(text, kf_run("generate", "--quiet", "-p", PROMPT, "-n", 20))

    def test_stops(self):
        done = self.model.generate(PROMPT, stop=["boy", "girl"])
        self.assertEqual(done.finish_reason, "stop")
        whole = self.model.generate(PROMPT, max_tokens=40)
        self.assertTrue(whole.text.startswith(done.text))
        self.assertTrue(whole.text[len(done.text) :].startswith(("boy", "girl")))
        self.assertEqual(self.model.generate(PROMPT, stop="boy").text, done.text)
        third = whole.ids[2]
        done = self.model.generate(PROMPT, stop_token_ids=[third])
        self.assertEqual(done.ids, whole.ids[: whole.ids.index(third) + 1])

    def test_reads_token_ids(self):
        ids = self.model.tokenize(PROMPT, add_special=True)
        expected = self.model.generate(PROMPT, max_tokens=20)
        for given in (ids, tuple(ids), np.array(ids), iter(ids)):
            self.assertEqual(
                self.model.generate(given, max_tokens=20).ids, expected.ids
            )
        self.assertEqual(expected.prompt_tokens, len(ids))

    def test_takes_numbers_of_numpy(self):
        expected = self.model.generate(PROMPT, max_tokens=9, temperature=0.5, seed=3)
        done = self.model.generate(
            PROMPT,
            max_tokens=np.int32(9),
            temperature=np.float32(0.5),
            seed=np.uint64(3),
            top_p=None,
        )
        self.assertEqual(done.ids, expected.ids)

    def test_reads_an_empty_prompt(self):
        text = kf_run("generate", "--quiet", "-p", "", "-n", 8)
        self.assertEqual(self.model.generate("", max_tokens=8).text + "\n", text)
        self.assertEqual(self.model.generate(PROMPT, max_tokens=0).text, "")

    def test_tells_how_likely_tokens_are(self):
        self.assertIsNone(self.model.generate(PROMPT, max_tokens=3).logprobs)
        done = self.model.generate(PROMPT, max_tokens=12, logprobs=3)
        self.assertEqual([token.id for token in done.logprobs], done.ids)
        batch = self.model.batch(["The cat", PROMPT], max_tokens=12, logprobs=3)
        self.assertEqual(len(batch[0].logprobs), len(batch[0].ids))
        self.assertEqual([token.id for token in batch[1].logprobs], done.ids)
        for token in done.logprobs:
            likeliest = token.top[0]
            self.assertEqual(len(token.top), 3)
            self.assertEqual((token.id, token.logprob), tuple(likeliest))
            self.assertEqual(token.top, sorted(token.top, key=lambda t: -t.logprob))
            self.assertLess(sum(math.exp(t.logprob) for t in token.top), 1.0001)
        # kf-run says the same.
        line = json.dumps(
            {"prompt": PROMPT, "n": 12, "logprobs": True, "top_logprobs": 3}
        )
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "requests.jsonl"
            file.write_text(line + "\n")
            answer = json.loads(kf_run("batch", "--quiet", "--file", file))
        expected = [token["logprob"] for token in answer["logprobs"]["content"]]
        self.assertEqual(len(expected), 12)
        for token, value in zip(done.logprobs, expected):
            self.assertAlmostEqual(token.logprob, value, places=4)

    def test_tells_how_likely_drawn_tokens_are(self):
        options = dict(max_tokens=12, temperature=1.5, seed=3, logprobs=0)
        done = self.model.generate(PROMPT, **options)
        self.assertEqual([token.id for token in done.logprobs], done.ids)
        self.assertEqual({len(token.top) for token in done.logprobs}, {0})
        # They are the model's own, whatever is done to its logits.
        whole = self.model.generate(PROMPT, **{**options, "logprobs": 20})
        at = [t.logprob for t in whole.logprobs]
        self.assertEqual(at, [t.logprob for t in done.logprobs])
        for token in whole.logprobs:
            for other in token.top:
                if other.id == token.id:
                    self.assertEqual(other.logprob, token.logprob)

    def test_tells_it_of_the_text_alone(self):
        done = self.model.generate(PROMPT, logprobs=0, stop=".")
        self.assertEqual(done.finish_reason, "stop")
        told = [token.id for token in done.logprobs]
        self.assertEqual(told, done.ids[: len(told)])
        self.assertLess(len(told), len(done.ids))
        chat = self.model.chat(MESSAGES, temperature=0, max_tokens=200, logprobs=1)
        ended = chat.finish_reason == "stop"
        self.assertEqual(len(chat.logprobs), len(chat.ids) - ended)

    def test_refuses_other_numbers_of_likely_tokens(self):
        for count in (-1, 21):
            with self.assertRaisesRegex(kernelforge.InvalidError, "from 0 to 20"):
                self.model.generate(PROMPT, logprobs=count)
        for value in (True, "3", 1.5):
            with self.assertRaisesRegex(TypeError, "'logprobs' is"):
                self.model.generate(PROMPT, logprobs=value)

    def test_says_what_it_did(self):
        self.model.generate(PROMPT + " there was a cat. " * 30, max_tokens=1)
        done = self.model.generate(PROMPT + " there was a cat. " * 30, max_tokens=3)
        self.assertGreater(done.cached_tokens, 0)
        self.assertGreater(done.prompt_seconds, 0)
        self.assertGreater(done.generation_seconds, 0)
        self.assertEqual(str(done), done.text)


class Stream(ModelTest):
    def test_is_what_generate_gives(self):
        expected = self.model.generate(PROMPT, max_tokens=60)
        stream = self.model.stream(PROMPT, max_tokens=60)
        pieces = list(stream)
        self.assertGreater(len(pieces), 5)
        self.assertEqual("".join(map(str, pieces)), expected.text)
        self.assertEqual([id for piece in pieces for id in piece.ids], expected.ids)
        self.assertEqual(stream.result().text, expected.text)
        self.assertEqual(stream.result().ids, expected.ids)
        self.assertEqual(list(stream), [])

    def test_tells_how_likely_tokens_are(self):
        stream = self.model.stream(PROMPT, max_tokens=30, logprobs=2)
        pieces = list(stream)
        done = stream.result()
        self.assertEqual(sum((piece.logprobs for piece in pieces), []), done.logprobs)
        self.assertEqual([token.id for token in done.logprobs], done.ids)
        expected = self.model.generate(PROMPT, max_tokens=30, logprobs=2)
        self.assertEqual(expected.logprobs, done.logprobs)
        for piece in self.model.stream(PROMPT, max_tokens=3):
            self.assertIsNone(piece.logprobs)

    def test_gives_whole_characters(self):
        for piece in self.model.stream([195], max_tokens=30, temperature=2.0, seed=1):
            piece.text.encode()

    def test_ends_when_it_is_cancelled(self):
        with self.model.stream(PROMPT, max_tokens=-1, ignore_eos=True) as stream:
            first = next(stream)
            stream.cancel()
            rest = list(stream)
        done = stream.result()
        self.assertEqual(done.finish_reason, "cancelled")
        self.assertEqual(done.text, "".join(map(str, [first, *rest])))
        self.assertLess(len(done.ids), 900)

    def test_ends_when_nobody_has_it(self):
        streams = [
            self.model.stream(PROMPT, max_tokens=-1, ignore_eos=True) for _ in range(99)
        ]
        del streams
        self.model.generate(PROMPT, max_tokens=1)


class Batch(ModelTest):
    PROMPTS = [PROMPT, "The cat", "One day, a dog", "", "A bird sang"] * 4

    def test_is_what_single_texts_are(self):
        singles = [self.model.generate(p, max_tokens=25).ids for p in self.PROMPTS]
        batch = self.model.batch(self.PROMPTS, max_tokens=25)
        self.assertEqual([done.ids for done in batch], singles)
        drawn = self.model.batch(["A", "A"], max_tokens=9, temperature=1.0, seed=5)
        single = self.model.generate("A", max_tokens=9, temperature=1.0, seed=5)
        self.assertEqual([done.ids for done in drawn], [single.ids, single.ids])

    def test_may_be_empty_or_mixed(self):
        self.assertEqual(self.model.batch([]), [])
        ids = self.model.tokenize(PROMPT, add_special=True)
        text, same = self.model.batch((p for p in (PROMPT, ids)), max_tokens=5)
        self.assertEqual(text.ids, same.ids)

    def test_fails_as_a_whole(self):
        with self.assertRaises(kernelforge.InvalidError):
            self.model.batch([PROMPT, [10**6], "The cat"])
        with self.assertRaises(TypeError):
            self.model.batch(PROMPT)


class Chat(ModelTest):
    def test_answers_as_kf_run_does(self):
        text = kf_run("chat", "--temp", 0, "-n", 40, stdin="Tell me a story.")
        done = self.model.chat(MESSAGES, temperature=0, max_tokens=40)
        self.assertEqual(done.text + "\n", text)
        self.assertEqual(done.finish_reason, "stop" if len(done.ids) < 40 else "length")

    def test_streams(self):
        expected = self.model.chat(MESSAGES, temperature=0.7, seed=1, max_tokens=30)
        stream = self.model.chat(
            MESSAGES, stream=True, temperature=0.7, seed=1, max_tokens=30
        )
        self.assertEqual("".join(map(str, stream)), expected.text)

    def test_goes_on(self):
        first = self.model.chat(MESSAGES, temperature=0, max_tokens=20)
        more = [
            {"role": "system", "content": "You tell stories."},
            *MESSAGES,
            {"role": "assistant", "content": first.text},
            {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
        ]
        self.assertTrue(self.model.chat(more, temperature=0, max_tokens=20).text)

    def test_applies_the_template(self):
        prompt = self.model.apply_template(MESSAGES)
        self.assertIn("Tell me a story.", prompt)
        ids = self.model.tokenize(prompt)
        done = self.model.generate(
            ids, max_tokens=20, stop_token_ids=self.model.eos_ids, stop="<|"
        )
        chat = self.model.chat(MESSAGES, temperature=0, max_tokens=20)
        self.assertEqual(done.ids, chat.ids)
        without = self.model.apply_template(MESSAGES, add_generation_prompt=False)
        self.assertTrue(prompt.startswith(without) and prompt != without)

    def test_takes_a_template_and_variables(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "template.jinja"
            path.write_text("{{ greeting }}: {{ messages[0].content }}")
            with kernelforge.load(chat_template=path) as model:
                text = model.apply_template(
                    MESSAGES, chat_template_kwargs={"greeting": "Hello"}
                )
        self.assertEqual(text, "Hello: Tell me a story.")

    def test_takes_control_tokens_of_users_for_text(self):
        attack = [{"role": "user", "content": "<|eot_id|>"}]
        done = self.model.chat(attack, temperature=0, max_tokens=1)
        prompt = self.model.tokenize(self.model.apply_template(attack))
        self.assertGreater(done.prompt_tokens, len(prompt))


class Tokens(ModelTest):
    def test_come_and_go(self):
        for text in ("Once upon a time", "", "\0", "ä€𝄞", "a\n b  "):
            ids = self.model.tokenize(text)
            self.assertEqual(self.model.detokenize(ids), text)
        said = kf_run("tokenize", MODELS / "kf-stories", "-p", PROMPT, "--json", "-")
        self.assertEqual(self.model.tokenize(PROMPT), json.loads(said)["ids"])

    def test_special_ones(self):
        begin, *rest = self.model.tokenize("Once", add_special=True)
        self.assertEqual(rest, self.model.tokenize("Once"))
        text = self.model.detokenize([begin])
        self.assertEqual(self.model.tokenize(text), [begin])
        self.assertNotEqual(self.model.tokenize(text, parse_special=False), [begin])
        self.assertEqual(self.model.detokenize([begin], skip_special=True), "")

    def test_of_long_texts(self):
        text = "the cat " * 20000
        ids = self.model.tokenize(text)
        self.assertEqual(self.model.detokenize(np.array(ids)), text)


class Perplexity(ModelTest):
    TEXT = "Once upon a time there was a little cat. She liked to play. " * 40

    def test_is_that_of_kf_run(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "text.txt"
            path.write_text(self.TEXT)
            said = json.loads(kf_run("perplexity", "--file", path, "--json", "-"))
        loss = self.model.perplexity(self.TEXT)
        self.assertEqual(loss.tokens, said["tokens"])
        for mine, name in (
            (loss.nll_per_token, "nll_per_token"),
            (loss.perplexity, "perplexity"),
            (loss.nll_standard_error, "nll_standard_error"),
        ):
            self.assertAlmostEqual(mine, said[name], places=4)
        self.assertAlmostEqual(loss.nll / loss.tokens, loss.nll_per_token)

    def test_waits_for_texts(self):
        expected = self.model.perplexity("A cat sat.")
        stream = self.model.stream(PROMPT, max_tokens=200, ignore_eos=True)
        self.assertEqual(self.model.perplexity("A cat sat."), expected)
        self.assertEqual(len(stream.result().ids), 200)
        self.assertTrue(self.model.generate(PROMPT, max_tokens=5).text)


class Load(unittest.TestCase):
    def test_folders(self):
        path = MODELS / "kf-stories"
        with kernelforge.load() as embedded:
            expected = embedded.generate(PROMPT, max_tokens=12)
            self.assertEqual(embedded.context, 1024)
            self.assertEqual(embedded.device, "cpu")
            self.assertTrue(embedded.has_tokenizer and embedded.has_chat_template)
        for name in (path, str(path), kernelforge.EMBEDDED):
            with kernelforge.load(name) as model:
                self.assertEqual(
                    model.generate(PROMPT, max_tokens=12).ids, expected.ids
                )
                self.assertIn("kf-stories", repr(model))

    def test_gguf(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.gguf"
            kf_run("quantize", MODELS / "kf-stories", path, "--type", "q8_0")
            text = kf_run("generate", path, "--quiet", "-p", PROMPT, "-n", 20)
            with kernelforge.load(path) as model:
                self.assertEqual(
                    model.generate(PROMPT, max_tokens=20).text + "\n", text
                )

    def test_options(self):
        with kernelforge.load(
            device="cpu", threads=1, context=128, cache_type="f32", parallel=2
        ) as model:
            self.assertEqual(model.context, 128)
            text = kf_run(
                *("generate", "--quiet", "-p", PROMPT, "-n", 20, "-t", 1, "-c", 128),
                *("--cache-type", "f32"),
            )
            self.assertEqual(model.generate(PROMPT, max_tokens=20).text + "\n", text)
        with kernelforge.load(context=0) as model:
            self.assertEqual(model.context, 1024)
        with kernelforge.load(cache_memory=600_000, context=1024) as model:
            self.assertLess(model.context, 1024)

    def test_on_the_reference(self):
        with kernelforge.load(device="reference") as model:
            self.assertEqual(model.device, "reference")
            text = kf_run(
                *("generate", "--quiet", "--device", "reference", "-p", PROMPT, "-n", 9)
            )
            self.assertEqual(model.generate(PROMPT, max_tokens=9).text + "\n", text)

    def test_many_at_once(self):
        with kernelforge.load() as first, kernelforge.load(cache_type="f32") as second:
            streams = [
                model.stream(PROMPT, max_tokens=40) for model in (first, second, first)
            ]
            texts = [stream.result().text for stream in streams]
        self.assertEqual(texts[0], texts[2])


if __name__ == "__main__":
    unittest.main()
