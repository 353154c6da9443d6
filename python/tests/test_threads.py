"""Models that many threads use, and the GIL."""

import os
import threading
import time
import unittest

import kernelforge
from support import PROMPT, ModelTest, run


def at_once(*tasks):
    """Runs the tasks, each on a thread; returns what they return or raise."""
    results = [None] * len(tasks)

    def work(number):
        try:
            results[number] = tasks[number]()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=work, args=[n]) for n in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class Threads(ModelTest):
    PROMPTS = [PROMPT, "The cat", "One day, a dog", "A bird"]

    def test_generate_what_one_does(self):
        singles = [self.model.generate(p, max_tokens=30).ids for p in self.PROMPTS]
        texts = at_once(
            *(
                lambda p=p: self.model.generate(p, max_tokens=30).ids
                for p in self.PROMPTS
            )
        )
        self.assertEqual(texts, singles)

    def test_do_all_at_once(self):
        loss = self.model.perplexity("A cat sat.")
        ids = self.model.tokenize("The cat")
        text = self.model.generate(PROMPT, max_tokens=30).text
        stream = lambda: "".join(map(str, self.model.stream(PROMPT, max_tokens=30)))
        results = at_once(
            *[lambda: self.model.perplexity("A cat sat.")] * 3,
            *[lambda: self.model.tokenize("The cat")] * 3,
            *[stream] * 6,
        )
        self.assertEqual(results, [loss] * 3 + [ids] * 3 + [text] * 6)

    def test_share_a_stream(self):
        text = self.model.generate(PROMPT, max_tokens=60).text
        stream = self.model.stream(PROMPT, max_tokens=60)
        pieces = at_once(*[lambda: list(map(str, stream))] * 3)
        self.assertEqual(sum(map(len, (p for ps in pieces for p in ps))), len(text))
        self.assertEqual(stream.result().text, text)

    def test_run_while_one_generates(self):
        """The GIL is not held: another thread of Python's counts on."""
        is_over = threading.Event()
        counts = [0]

        def count():
            while not is_over.is_set():
                counts[0] += 1

        counter = threading.Thread(target=count)
        with kernelforge.load(device="reference") as model:
            counter.start()
            try:
                before = counts[0]
                model.generate(PROMPT, max_tokens=100, ignore_eos=True)
                generated = counts[0] - before
                before = counts[0]
                model.perplexity("A cat sat. " * 20)
                scored = counts[0] - before
            finally:
                is_over.set()
                counter.join()
        self.assertGreater(generated, 1000)
        self.assertGreater(scored, 1000)


class Close(unittest.TestCase):
    def test_ends_what_goes_on(self):
        model = kernelforge.load(device="reference")
        stream = model.stream(PROMPT, max_tokens=-1, ignore_eos=True)
        next(stream)

        def close():
            time.sleep(0.1)
            model.close()

        results = at_once(
            lambda: model.generate(PROMPT, max_tokens=-1, ignore_eos=True),
            lambda: model.perplexity("A cat sat. " * 5000),
            close,
        )
        self.assertIsInstance(results[0], kernelforge.CancelledError)
        self.assertIsInstance(results[1], kernelforge.CancelledError)
        with self.assertRaises(kernelforge.CancelledError):
            stream.result()
        for call in (
            lambda: model.generate(PROMPT),
            lambda: model.tokenize(PROMPT),
            lambda: model.detokenize([1]),
            lambda: model.perplexity(PROMPT),
            lambda: model.chat([{"role": "user", "content": "a"}]),
            lambda: model.apply_template([{"role": "user", "content": "a"}]),
        ):
            with self.assertRaisesRegex(kernelforge.CancelledError, "is closed"):
                call()
        model.close()  # once more, and nothing happens

    def test_of_a_function(self):
        function = kernelforge.compile("func.func @f() { return }")
        self.assertEqual(function(), ())
        at_once(*[function.close] * 4)
        with self.assertRaisesRegex(kernelforge.CancelledError, "is closed"):
            function()

    def test_frees_memory(self):
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def once():
            with kernelforge.load() as model:
                model.generate(PROMPT, max_tokens=3)
            with kernelforge.compile("func.func @f() { return }") as function:
                function()

        for _ in range(3):
            once()
        before = resident()
        for _ in range(10):
            once()
        self.assertLess(resident() - before, 30e6)


class Fork(unittest.TestCase):
    def test_is_an_error(self):
        ran = run("""
            import os, warnings
            warnings.simplefilter('ignore')  # Python's, of threads and forks
            model = kernelforge.load()
            function = kernelforge.compile("func.func @f() { return }")
            model.generate("a", max_tokens=1)
            child = os.fork()
            for call in (lambda: model.generate("a", max_tokens=1), function):
                try:
                    call()
                except kernelforge.UnavailableError as error:
                    assert child == 0 and "forked" in str(error), error
                else:
                    assert child != 0
            if child:
                assert os.waitpid(child, 0)[1] == 0
            """)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
