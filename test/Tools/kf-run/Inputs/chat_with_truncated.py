#!/usr/bin/env python3
"""Chats with a model, one file of which is cut off once it is open.

chat_with_truncated.py FILE MODEL: prints what the answer to a message is; the
exit code is that of kf-run.
"""

import os
import subprocess
import sys

file, model = sys.argv[1:]
chat = subprocess.Popen(
    ["kf-run", "chat", "--temp", "0", "-n", "40", model],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
)
# Whoever answers this has opened the model.
chat.stdin.write(b"/stats\n")
chat.stdin.flush()
while not chat.stdout.readline().startswith(b"all: "):
    assert chat.poll() is None
os.truncate(file, 4096)
answer, _ = chat.communicate(b"Once upon a time\n")
sys.stdout.buffer.write(answer)
sys.exit(chat.returncode)
