"""check_other_clients.py OPTION...: talks to `kf-run serve`, with the options, by
litellm and langchain-openai, from PyPI."""

import json
import os
import re
import subprocess
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it is downloaded

import litellm  # noqa: E402
import pydantic  # noqa: E402
from langchain_core.messages import ToolMessage  # noqa: E402
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings  # noqa: E402

from calls_template import CALLS_TEMPLATE  # noqa: E402

litellm.suppress_debug_info = True
SECONDS = 240
with open("calls.jinja", "w") as file:
    file.write(CALLS_TEMPLATE)
process = subprocess.Popen(
    ["kf-run", "serve", "--port", "0", "--api-key", "secret", "--alias", "stories",
     "--template", "calls.jinja", *sys.argv[1:]],
    stdout=subprocess.PIPE, text=True)


class Trip(pydantic.BaseModel):
    """Goes somewhere."""

    to: str = pydantic.Field(pattern="^(home|away)$")


TOOL = {"type": "function", "function": {"name": "go", "parameters": {
    "type": "object", "properties": {"to": {"enum": ["home", "away"]}},
    "required": ["to"], "additionalProperties": False}}}
GO = {"type": "function", "function": {"name": "go"}}


def check_litellm(url, text):
    """Every feature by litellm; returns the greedy answer, and a continuation."""
    how = {"temperature": 0, "max_tokens": 10}
    server = {"api_base": url, "api_key": "secret", "num_retries": 0, "timeout": SECONDS}
    chat = {"model": "openai/stories", "messages": [{"role": "user", "content": text}]}
    whole = litellm.completion(**chat, **how, **server)
    expected = whole.choices[0].message.content
    tokens = whole.usage.completion_tokens
    assert expected and 1 < tokens <= 10
    chunks = list(litellm.completion(**chat, **how, **server, stream=True,
                                     stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == expected
    assert chunks[-1].usage.completion_tokens == tokens
    assert litellm.stream_chunk_builder(chunks).choices[0].message.content == expected
    once = litellm.text_completion(model="text-completion-openai/stories", prompt="Once upon",
                                   **how, **server).choices[0].text
    two = litellm.completion(**chat, **server, max_tokens=10, n=2, seed=3, top_p=0.9, stop=["zz"],
                             presence_penalty=0.1, frequency_penalty=0.1, logit_bias={"5": -100})
    assert len({c.message.content for c in two.choices}) == 2
    likely = litellm.completion(**chat, **how, **server, logprobs=True, top_logprobs=2)
    likely = likely.choices[0].logprobs.content
    assert "".join(t.token for t in likely) == expected
    assert all(len(t.top_logprobs) == 2 for t in likely)
    held = litellm.completion(**chat, **server, max_tokens=300, response_format=Trip)
    Trip.model_validate_json(held.choices[0].message.content)
    asked = {**chat, **server, "tools": [TOOL], "tool_choice": GO, "max_tokens": 300}
    called = litellm.completion(**asked).choices[0]
    call, = called.message.tool_calls
    assert called.finish_reason == "tool_calls" and call.id and call.function.name == "go"
    assert json.loads(call.function.arguments)["to"] in ("home", "away")
    built = litellm.stream_chunk_builder(list(litellm.completion(**asked, stream=True)))
    call, = built.choices[0].message.tool_calls
    assert json.loads(call.function.arguments)["to"] in ("home", "away")
    made = litellm.embedding(model="openai/stories", input=["Once", "The cat"], **server)
    assert [e["index"] for e in made.data] == [0, 1]

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
    error(litellm.BadRequestError, response_format={"type": "xml"})
    return expected, once


def check_langchain(url, text, expected, once):
    """Every feature by langchain-openai."""
    how = {"temperature": 0, "max_tokens": 10}
    server = {"base_url": url, "api_key": "secret", "model": "stories", "timeout": SECONDS,
              "max_retries": 0}
    model = ChatOpenAI(**server, **how)
    answer = model.invoke(text)
    assert answer.content == expected and 1 < answer.usage_metadata["output_tokens"] <= 10
    assert "".join(part.content for part in model.stream(text)) == expected
    assert [a.content for a in model.batch([text] * 5)] == [expected] * 5
    assert OpenAI(**server, **how).invoke("Once upon") == once
    assert "".join(OpenAI(**server, **how).stream("Once upon")) == once
    found = model.bind(logprobs=True, top_logprobs=2).invoke(text)
    found = found.response_metadata["logprobs"]["content"]
    assert "".join(token["token"] for token in found) == expected
    drawn = ChatOpenAI(**server, max_tokens=10, seed=3, top_p=0.9, stop=["zz"],
                       presence_penalty=0.1, extra_body={"top_k": 5, "min_p": 0.01})
    assert drawn.invoke([("system", "Be kind."), ("human", text)]).content

    long = ChatOpenAI(**server, temperature=0, max_tokens=300)
    for method in "json_schema", "function_calling":
        typed = long.with_structured_output(Trip, method=method, strict=True)
        assert isinstance(typed.invoke(text), Trip)
    user = long.bind_tools([Trip], tool_choice="required", strict=True,
                           parallel_tool_calls=False)
    asked = user.invoke(text)
    call, = asked.tool_calls
    assert call["name"] == "Trip" and Trip(**call["args"]) and call["id"]
    parts = list(user.stream(text))
    whole = parts[0]
    for part in parts[1:]:
        whole += part
    assert [(c["name"], c["args"]) for c in whole.tool_calls] == [("Trip", call["args"])]
    told = model.bind_tools([Trip]).invoke(
        [("human", text), asked, ToolMessage("there", tool_call_id=call["id"])])
    assert told.content and not told.tool_calls

    # Of texts, as this class would count its tokens by another model's otherwise.
    vectors = OpenAIEmbeddings(
        base_url=url, api_key="secret", model="stories", timeout=SECONDS, max_retries=0,
        check_embedding_ctx_length=False).embed_documents(["Once", "The cat"])
    assert len(vectors) == 2 and vectors[0] != vectors[1]
    assert abs(sum(x * x for x in vectors[0]) - 1) < 1e-5


try:
    url = re.fullmatch(r"listening on (\S+)\n", process.stdout.readline())[1] + "/v1"
    assert process.stdout.readline().startswith("serving ")
    text = "Tell me a story."
    check_langchain(url, text, *check_litellm(url, text))
finally:
    process.terminate()
assert process.wait(SECONDS) == 0
