"""Talks to `kf-run serve` with litellm and langchain-openai, from PyPI."""

import os
import re
import subprocess

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it is downloaded

import litellm  # noqa: E402
from langchain_openai import ChatOpenAI, OpenAI  # noqa: E402

litellm.suppress_debug_info = True
SECONDS = 240
process = subprocess.Popen(
    ["kf-run", "serve", "--port", "0", "--api-key", "secret", "--alias", "stories"],
    stdout=subprocess.PIPE, text=True)
try:
    url = re.fullmatch(r"listening on (\S+)\n", process.stdout.readline())[1] + "/v1"
    assert process.stdout.readline().startswith("serving ")
    text = "Tell me a story."
    how = {"temperature": 0, "max_tokens": 10}

    server = {"api_base": url, "api_key": "secret", "num_retries": 0, "timeout": SECONDS}
    chat = {"model": "openai/stories", "messages": [{"role": "user", "content": text}]}
    whole = litellm.completion(**chat, **how, **server)
    expected = whole.choices[0].message.content
    assert expected and whole.usage.completion_tokens == 10
    chunks = litellm.completion(**chat, **how, **server, stream=True)
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == expected
    once = litellm.text_completion(model="text-completion-openai/stories", prompt="Once upon",
                                   **how, **server).choices[0].text

    def error(kind, **change):
        try:
            litellm.completion(**{**chat, **server, **change})
        except kind:
            return
        raise AssertionError(f"no {kind.__name__}")

    error(litellm.ContextWindowExceededError,
          messages=[{"role": "user", "content": "word " * 5000}])
    error(litellm.AuthenticationError, api_key="wrong")
    error(litellm.NotFoundError, model="openai/another")

    server = {"base_url": url, "api_key": "secret", "model": "stories", "timeout": SECONDS}
    model = ChatOpenAI(**server, **how)
    answer = model.invoke(text)
    assert answer.content == expected and answer.usage_metadata["output_tokens"] == 10
    assert "".join(part.content for part in model.stream(text)) == expected
    assert [a.content for a in model.batch([text] * 5)] == [expected] * 5
    assert OpenAI(**server, **how).invoke("Once upon") == once
finally:
    process.terminate()
assert process.wait(SECONDS) == 0
