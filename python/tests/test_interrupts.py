"""Ctrl-C ends what goes on, within a step, with KeyboardInterrupt."""

import signal
import subprocess
import sys
import tempfile
import time
import unittest

from support import program

# Far more than a step, and far less than all, on a busy machine, too.
SECONDS = 20

HEAD = """
def interrupted(work):
    print("begun", flush=True)
    began = time.monotonic()
    try:
        work()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    else:
        print("done", time.monotonic() - began, flush=True)
"""
SLOW = 'model = kernelforge.load(device="reference")\n'
MANY = 'prompts = ["Once upon a time"] * 500\n'
ALL = "max_tokens=-1, ignore_eos=True"
# `text`, which takes a second and more to compile.
LARGE = """
count = 250
names = [f"tensor<{i + 1}x{64 + i}xf32>" for i in range(count)]
text = "func.func @f(" + ", ".join(f"%x{i}: {t}" for i, t in enumerate(names))
text += ") -> (" + ", ".join(names) + ") {\\n"
for i, t in enumerate(names):
    text += f"  %{i} = kf.softmax %x{i} : {t}\\n"
text += "  return " + ", ".join(f"%{i}" for i in range(count))
text += " : " + ", ".join(names) + "\\n}\\n"
"""


class Interrupts(unittest.TestCase):
    def expect(self, text, then="", pause=0.3):
        """Interrupts the program, which has to tell of it and end well, `pause`
        seconds after it began."""
        ran = subprocess.Popen(
            program(HEAD)[:-1] + [program(HEAD)[-1] + text + then],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with ran:
            self.assertEqual(ran.stdout.readline(), "begun\n", ran.args)
            time.sleep(pause)
            ran.send_signal(signal.SIGINT)
            began = time.monotonic()
            self.assertEqual(ran.stdout.readline(), "interrupted\n")
            self.assertLess(time.monotonic() - began, SECONDS)
            out, errors = ran.communicate(timeout=300)
        self.assertEqual(errors, "")
        self.assertEqual(ran.returncode, 0)
        return out

    def test_generate_goes_on_afterwards(self):
        out = self.expect(
            SLOW + f"interrupted(lambda: model.generate('The cat', {ALL}))\n",
            "print(len(model.generate('The cat', max_tokens=5).ids))\n",
        )
        self.assertEqual(out, "5\n")

    def test_batch(self):
        self.expect(
            "model = kernelforge.load()\n"
            + MANY
            + f"interrupted(lambda: model.batch(prompts, {ALL}))\n"
        )

    def test_chat(self):
        self.expect(
            SLOW
            + "messages = [{'role': 'user', 'content': 'Hello'}]\n"
            + f"interrupted(lambda: model.chat(messages, {ALL}))\n"
        )

    def test_stream(self):
        self.expect(
            SLOW + f"interrupted(lambda: list(model.stream('The cat', {ALL})))\n"
        )

    def test_text_that_is_kept(self):
        """It has ended, whoever has it still: by the exception, for one."""
        out = self.expect(
            SLOW + f"stream = model.stream('The cat', {ALL})\n"
            "interrupted(stream.result)\n",
            "try:\n"
            "    stream.result()\n"
            "except kernelforge.CancelledError:\n"
            "    print('ended')\n",
            # An interrupt before the call of C++ ends nothing.
            pause=2,
        )
        self.assertEqual(out, "ended\n")

    def test_perplexity_goes_on_afterwards(self):
        out = self.expect(
            SLOW + "text = 'A cat sat. ' * 5000\n"
            "interrupted(lambda: model.perplexity(text))\n",
            "print(model.perplexity('A cat sat.').tokens > 3)\n"
            "print(len(model.generate('The cat', max_tokens=5).ids))\n",
        )
        self.assertEqual(out, "True\n5\n")

    def test_compile(self):
        self.expect(LARGE + "interrupted(lambda: kernelforge.compile(text))\n")

    def test_others_handlers(self):
        """A handler that raises nothing ends nothing."""
        ran = subprocess.run(
            program("""
                import os, signal, threading
                heard = []
                signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
                model = kernelforge.load(device="reference")
                kill = lambda: os.kill(os.getpid(), signal.SIGUSR1)
                timer = threading.Timer(0.1, kill)
                timer.start()
                done = model.generate("The cat", max_tokens=200, ignore_eos=True)
                timer.join()
                print(len(done.ids), heard)
                """),
            capture_output=True,
            text=True,
        )
        self.assertEqual(ran.stdout, "200 [1]\n", ran.stderr)

    def test_end_of_the_interpreter(self):
        """What goes on, and is open, does not keep a program from its end."""
        ran = subprocess.run(
            program("""
                model = kernelforge.load()
                stream = model.stream("The cat", max_tokens=-1, ignore_eos=True)
                next(stream)
                function = kernelforge.compile("func.func @f() { return }")
                sys.modules["kept"] = stream
                """),
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))

    def test_end_of_the_interpreter_for_daemons(self):
        """Threads that nobody waits for are ended wherever they are."""
        for _ in range(4):
            ran = subprocess.run(
                program("""
                import threading
                model = kernelforge.load(device="reference")
                function = kernelforge.compile("func.func @f() { return }")

                def repeat(work):
                    while True:
                        try:
                            work()
                        except kernelforge.CancelledError:
                            pass

                for work in (
                    lambda: model.generate("The cat", max_tokens=50),
                    lambda: list(model.stream("The cat", max_tokens=50)),
                    lambda: model.perplexity("A cat"),
                    function,
                ):
                    threading.Thread(target=repeat, args=[work], daemon=True).start()
                time.sleep(0.3)
                """),
                capture_output=True,
                text=True,
                timeout=300,
            )
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))

    def expect_ended_daemon(self, text):
        """Runs a program whose daemon, `thread`, begins calls until it hears that it
        was ended: which is before the interpreter is."""
        head = (
            "import atexit\n"
            "atexit.register(lambda: (thread.join(), print('ended')))  # the last one\n"
        )
        command = program(text)
        ran = subprocess.run(
            command[:-1] + [head + command[-1]],
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "ended\n", ""))

    def test_end_of_the_interpreter_for_daemons_that_compile(self):
        self.expect_ended_daemon(
            LARGE
            + """
import threading

def work():
    try:
        while True:
            kernelforge.compile(text)
    except kernelforge.CancelledError:
        pass

thread = threading.Thread(target=work, daemon=True)
thread.start()
time.sleep(0.1)
"""
        )

    def test_end_of_the_interpreter_for_callbacks_that_wait_for_it(self):
        """What the main thread would have to do is not waited for."""
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run(
                program(f"""
                import contextlib, os, queue, threading
                os.chdir({folder!r})
                with open("fox.jsonl", "w") as file:
                    file.write('{{"text": "The fox lived in a tree."}}\\n' * 16)
                steps = queue.Queue(maxsize=1)

                def train():
                    with contextlib.suppress(kernelforge.CancelledError):
                        kernelforge.train(
                            data="fox.jsonl", output="a", lora=4, batch=1,
                            length=16, steps=1000000, on_step=steps.put,
                        )

                threading.Thread(target=train, daemon=True).start()
                steps.get(timeout=200)
                """),
                capture_output=True,
                text=True,
                timeout=300,
            )
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))

    def test_end_of_forks_of_a_process_that_computes(self):
        """Threads of the parent's are not there, nor is their memory."""
        ran = subprocess.run(
            program(
                LARGE + "import os, threading\n"
                "work = lambda: kernelforge.compile(text)\n"
                "worker = threading.Thread(target=work)\n"
                "worker.start()\n"
                "time.sleep(0.1)\n"
                "child = os.fork()\n"
                "if child == 0:\n"
                "    for _ in range(16):\n"
                "        thread = threading.Thread(target=lambda: [0] * 10**6)\n"
                "        thread.start()\n"
                "        thread.join()\n"
                "    sys.exit(0)\n"
                "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
                "worker.join()\n"
            ),
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "0\n", ""))

    def test_end_of_the_interpreter_for_daemons_that_train(self):
        """Also where what they call works, and begins other work."""
        with tempfile.TemporaryDirectory() as folder:
            for output, work in (
                ("a", "pass"),
                ("b", "sum(range(10**6))"),
                ("c", "kernelforge.compile('func.func @f() { return }')"),
            ):
                self.expect_ended_daemon(f"""
                    import os, threading
                    os.chdir({folder!r})
                    with open("fox.jsonl", "w") as file:
                        file.write('{{"text": "The fox lived in a tree."}}\\n' * 16)
                    begun = threading.Event()

                    def on_step(step):
                        begun.set()
                        {work}

                    def train():
                        try:
                            kernelforge.train(
                                data="fox.jsonl", output={output!r}, lora=4, batch=1,
                                length=16, steps=1000000, on_step=on_step,
                            )
                        except kernelforge.CancelledError:
                            pass

                    thread = threading.Thread(target=train, daemon=True)
                    thread.start()
                    begun.wait(200)
                    """)


if __name__ == "__main__":
    unittest.main()
