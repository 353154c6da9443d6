"""Chats with `kf-run serve` on its page, in Chromium without a window.

Chromium is told what to do through a pipe (--remote-debugging-pipe): messages
of its DevTools protocol, with a NUL behind each.
"""

import itertools
import json
import os
import re
import subprocess
import sys
import time
import urllib.request

SECONDS = 300


class Browser:
    def __init__(self, program, profile):
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()

        def take_pipes():
            # Its ends are 3 and 4.
            read, write = os.dup(to_read), os.dup(from_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--user-data-dir=" + profile,
             "--remote-debugging-pipe"],
            close_fds=False, preexec_fn=take_pipes,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.to, self.answers = to_write, os.fdopen(from_read, "rb")
        self.numbers, self.rest, self.session = itertools.count(1), b"", None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        self.call("Page.enable")

    def call(self, method, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                part = self.answers.read1(1 << 16)
                assert part, "the browser is gone"
                self.rest += part
            text, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def run(self, script):
        """The value of a script in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, script):
        end = time.monotonic() + SECONDS
        while not self.run(script):
            assert time.monotonic() < end, script
            time.sleep(0.02)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def type(self, text):
        self.run("document.getElementById('text').focus()")
        self.call("Input.insertText", text=text)

    def press_enter(self):
        for kind in "keyDown", "keyUp":
            self.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter",
                      windowsVirtualKeyCode=13, **({"text": "\r"} if kind == "keyDown" else {}))


def serve(*options):
    process = subprocess.Popen(["kf-run", "serve", "--port", "0", *options],
                               stdout=subprocess.PIPE, text=True)
    url = re.fullmatch(r"listening on (\S+)\n", process.stdout.readline())[1]
    assert process.stdout.readline().startswith("serving ")
    return process, url


def cancelled(url):
    """How many texts were cancelled."""
    with urllib.request.urlopen(url + "/metrics", timeout=SECONDS) as answer:
        text = answer.read().decode()
    return float(re.search(r"^kernelforge:requests_cancelled_total\{.*\} (\S+)$", text, re.M)[1])


COUNT = "document.querySelectorAll('.message.%s').length"
LAST = "[...document.querySelectorAll('.message.assistant .content')].at(-1)?.textContent ?? ''"
IDLE = "document.getElementById('send').textContent === 'Send'"

browser, server = Browser(sys.argv[1], os.path.abspath("profile")), None
try:
    server, url = serve("--temp", "0", "-t", "1")
    browser.open(url + "/")
    browser.wait("document.title === 'kf-stories'")
    # Typing, and reading the answer as it comes.
    browser.type("Tell me a <b>story</b>.")
    browser.press_enter()
    browser.wait(LAST + " !== ''")
    browser.wait(IDLE)
    first = browser.run(LAST)
    assert len(first) > 50, first
    # What people and models write is no markup.
    assert browser.run("document.querySelector('.message.user .content').innerHTML") \
        == "Tell me a &lt;b&gt;story&lt;/b&gt;."
    assert not browser.run("document.querySelector('.message b') !== null")
    # It goes on with what was said, and stops when it is told to.
    browser.run("const f = document.querySelector('[name=system]'); f.value = 'Go on.'; "
                "f.dispatchEvent(new Event('input'))")
    browser.type("More.")
    browser.run("""new Promise(done => {
        const log = document.getElementById('log');
        new MutationObserver((_, observer) => {
          if (document.querySelectorAll('.message.assistant').length < 2) return;
          observer.disconnect();
          document.getElementById('send').click();
          done(true);
        }).observe(log, { childList: true, subtree: true, characterData: true });
        document.getElementById('form').requestSubmit();
      })""")
    browser.wait(IDLE)
    assert browser.run(COUNT % "error") == 0
    end = time.monotonic() + SECONDS
    while cancelled(url) != 1:
        assert time.monotonic() < end, "the server goes on"
        time.sleep(0.02)
    # All of it is there again.
    browser.open("about:blank")
    browser.open(url + "/")
    browser.wait(COUNT % "assistant" + " === 2")
    assert browser.run("document.querySelector('.message.assistant .content').textContent") == first
    assert browser.run("document.querySelector('[name=system]').value") == "Go on."
    # Until a new one is begun.
    browser.run("document.getElementById('clear').click()")
    assert browser.run(COUNT % "user") == 0
    # An error is said, and what was typed stays.
    browser.run("const t = document.querySelector('[name=top_p]'); t.value = '7'; "
                "t.dispatchEvent(new Event('input'))")
    browser.type("Wrong.")
    browser.press_enter()
    browser.wait(COUNT % "error" + " === 1")
    browser.wait(IDLE)
    assert "top_p" in browser.run("document.querySelector('.message.error').textContent")
    assert browser.run("document.getElementById('text').value") == "Wrong."
    # Where nothing can be kept, and what is kept is broken, it chats all the same.
    browser.run("document.querySelector('[name=top_p]').value = ''; "
                "Storage.prototype.setItem = () => { throw new Error('full') }")
    browser.press_enter()
    browser.wait(COUNT % "assistant" + " === 1")
    browser.wait(IDLE)
    for broken in "{", "1", "[null]", '[{"role": "user"}]':
        browser.open("about:blank")
        browser.open(url + "/health")
        browser.run(f"localStorage.setItem('kf-messages', '{broken}')")
        browser.open(url + "/")
        browser.wait("document.title === 'kf-stories'")
        assert browser.run(COUNT % "user") == 0
    # Nothing came from elsewhere, and nothing was refused by the page's own policy.
    names = browser.run("performance.getEntriesByType('resource').map(e => e.name)")
    assert names and all(name.startswith(url + "/") for name in names), names
    server.terminate()
    server.wait(SECONDS)

    # Thoughts are folded.
    with open("thinks.jinja", "w") as file:
        file.write("{% for m in messages %}{{ m.content }}{% endfor %}<think>{# </think> #}")
    server, url = serve("--temp", "0", "-n", "20", "--template", "thinks.jinja")
    browser.open(url + "/")
    browser.type("Once upon")
    browser.press_enter()
    browser.wait("[...document.querySelectorAll('.thoughts div')].at(-1)?.textContent")
    browser.wait(IDLE)
    # The user's message has none, and shows no place for them.
    assert browser.run("[...document.querySelectorAll('.thoughts')].map(t => [t.hidden, t.open])") \
        == [[True, False], [False, False]]
finally:
    browser.process.kill()
    browser.process.wait()
    if server:
        server.kill()
        server.wait()
