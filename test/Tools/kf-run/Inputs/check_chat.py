"""Compares the turns of a chat with chats that compute them anew.

check_chat.py FOLDER, with two.out: two answers, each followed by /stats.
"""
import json
import os
import re
import subprocess
import sys

folder = sys.argv[1]


def chat(lines):
    """What the terminal shows of a chat in which `lines` are typed."""
    typed = os.path.join(folder, "typed.txt")
    with open(typed, "w") as file:
        file.writelines(line + "\n" for line in lines)
    terminal = os.path.join(os.path.dirname(__file__), "terminal.py")
    return subprocess.run(
        [sys.executable, terminal, typed, "kf-run", "chat", "-n", "20", "--seed", "0"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def counts(text):
    return [
        tuple(map(int, match))
        for match in re.findall(
            r"^last: prompt (\d+) tokens, (\d+) reused, (\d+) computed", text, re.M
        )
    ]


out = open(os.path.join(folder, "two.out")).read()
first, second = counts(out)
assert first[1] == 0 and first[2] == first[0], first
assert second[1] + second[2] == second[0], second
# The prompt, and the answer but for where its text tokenizes otherwise.
assert second[1] >= first[0] and second[2] < second[0] // 2, (first, second)

# The same conversation, of which nothing is in the cache.
saved = os.path.join(folder, "anew.json")
chat(["Once upon a time", "/save " + saved])
messages = json.load(open(saved))["messages"]
messages.append({"role": "user", "content": "And then?"})
json.dump({"messages": messages}, open(saved, "w"))
answered = os.path.join(folder, "answered.json")
anew = chat(["/load " + saved, "/stats", "/save " + answered])
assert counts(anew)[0][1] == 0, anew
answer = json.load(open(answered))["messages"][-1]
assert answer["role"] == "assistant" and answer["content"], answer
assert answer["content"] in out, (answer, out)
