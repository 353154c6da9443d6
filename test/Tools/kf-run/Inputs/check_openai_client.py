"""check_openai_client.py OPTION...: talks to `kf-run serve`, with the options, by
the client library of OpenAI, from PyPI."""

import json
import re
import subprocess
import sys
from typing import Literal

import openai
import pydantic

from calls_template import CALLS_TEMPLATE

SECONDS = 240
with open("calls.jinja", "w") as file:
    file.write(CALLS_TEMPLATE)
process = subprocess.Popen(
    ["kf-run", "serve", "--port", "0", "--parallel", "2", "--queue", "4", "-c", "500",
     "--api-key", "secret", "--alias", "stories", "--template", "calls.jinja",
     *sys.argv[1:]],
    stdout=subprocess.PIPE, text=True)
try:
    url = re.fullmatch(r"listening on (\S+)\n", process.stdout.readline())[1]
    assert process.stdout.readline().startswith("serving ")
    client = openai.OpenAI(base_url=url + "/v1", api_key="secret", max_retries=0,
                           timeout=SECONDS)
    say = [{"role": "system", "content": "Be kind."},
           {"role": "user", "content": [{"type": "text", "text": "Tell me a story."}]}]

    assert [m.id for m in client.models.list()] == ["stories"]
    assert client.models.retrieve("stories").object == "model"

    whole = client.chat.completions.create(
        model="stories", messages=say, temperature=0, max_completion_tokens=40,
        user="somebody", extra_body={"top_k": 5, "chat_template_kwargs": {"a": 1}})
    text = whole.choices[0].message.content
    assert whole.choices[0].finish_reason == "length" and text
    assert whole.usage.completion_tokens == 40
    assert whole.choices[0].message.tool_calls is None

    streamed, usage = "", None
    for chunk in client.chat.completions.create(
            model="stories", messages=say, temperature=0, max_tokens=40, stream=True,
            stream_options={"include_usage": True}):
        if chunk.choices:
            streamed += chunk.choices[0].delta.content or ""
        usage = chunk.usage or usage
    assert streamed == text, (streamed, text)
    assert usage.completion_tokens == 40 and usage.prompt_tokens_details.cached_tokens > 0

    # What the library puts together by itself.
    with client.chat.completions.stream(
            model="stories", messages=say, temperature=0, stop=".") as stream:
        for event in stream:
            pass
        final = stream.get_final_completion()
    assert final.choices[0].message.content == text.split(".")[0]
    raw = client.chat.completions.with_raw_response.create(
        model="stories", messages=say, max_tokens=1)
    assert raw.status_code == 200 and raw.parse().choices

    # As base64, which the library asks for where nobody says otherwise.
    made = client.embeddings.create(model="stories", input=["Once", "The cat"])
    plain = client.embeddings.create(
        model="stories", input=["Once", "The cat"], encoding_format="float")
    assert [e.index for e in made.data] == [0, 1] and made.usage.total_tokens > 2
    for a, b in zip(made.data, plain.data):
        assert max(abs(x - y) for x, y in zip(a.embedding, b.embedding)) < 1e-4
        assert abs(sum(x * x for x in a.embedding) - 1) < 1e-5
    assert len(client.embeddings.create(
        model="stories", input=[1, 2, 3], dimensions=16).data[0].embedding) == 16

    two = client.completions.create(
        model="stories", prompt=["Once", "The"], max_tokens=5, temperature=0, seed=1,
        stop=["zzz"], logit_bias={"5": -100}, presence_penalty=0.1, frequency_penalty=0.1)
    assert [c.index for c in two.choices] == [0, 1]
    assert all(c.text for c in two.choices)
    parts = client.completions.create(
        model="stories", prompt="Once", max_tokens=5, temperature=0, stream=True)
    assert "".join(p.choices[0].text for p in parts)

    likely = client.chat.completions.create(
        model="stories", messages=say, temperature=0, max_tokens=10, logprobs=True,
        top_logprobs=3).choices[0]
    assert len(likely.logprobs.content) == 10
    assert "".join(t.token for t in likely.logprobs.content) == likely.message.content
    assert all(len(t.top_logprobs) == 3 and t.top_logprobs[0].logprob == t.logprob <= 0
               for t in likely.logprobs.content)
    streamed = [t.token for chunk in client.chat.completions.create(
        model="stories", messages=say, temperature=0, max_tokens=10, logprobs=True,
        stream=True) if chunk.choices and chunk.choices[0].logprobs
        for t in chunk.choices[0].logprobs.content]
    assert streamed == [t.token for t in likely.logprobs.content]
    with client.chat.completions.stream(
            model="stories", messages=say, temperature=0, stop=".", logprobs=True,
            top_logprobs=3) as stream:
        for event in stream:
            pass
        final = stream.get_final_completion().choices[0]
    assert "".join(t.token for t in final.logprobs.content) == final.message.content
    old = client.completions.create(
        model="stories", prompt="Once", temperature=0, max_tokens=5, logprobs=2).choices[0]
    assert "".join(old.logprobs.tokens) == old.text
    assert old.logprobs.text_offset[0] == 0 and len(old.logprobs.top_logprobs[0]) == 2

    def error(kind, make):
        try:
            make()
        except kind as raised:
            return raised
        raise AssertionError(f"no {kind.__name__}")

    wrong = error(openai.BadRequestError, lambda: client.chat.completions.create(
        model="stories", messages=[{"role": "user", "content": "word " * 300}]))
    assert wrong.code == "context_length_exceeded" and wrong.type == "invalid_request_error"
    held = client.chat.completions.create(
        model="stories", messages=say, max_tokens=100, response_format={
            "type": "json_schema", "json_schema": {"name": "tale", "strict": True, "schema": {
                "type": "object", "properties": {"good": {"type": "boolean"}},
                "required": ["good"], "additionalProperties": False}}})
    assert held.choices[0].finish_reason == "stop"
    assert json.loads(held.choices[0].message.content)["good"] in (True, False)
    wrong = error(openai.BadRequestError, lambda: client.chat.completions.create(
        model="stories", messages=say, response_format={"type": "xml"}))
    assert wrong.param == "response_format.type"
    wrong = error(openai.BadRequestError, lambda: client.embeddings.create(
        model="stories", input="word " * 300))
    assert wrong.code == "context_length_exceeded"
    error(openai.NotFoundError, lambda: client.chat.completions.create(
        model="gpt-4", messages=say))
    error(openai.AuthenticationError, lambda: client.with_options(
        api_key="wrong").models.list())

    # What the library makes of a class, and gives back as one.
    class Tale(pydantic.BaseModel):
        good: bool
        who: Literal["Lily", "Tom"]

    tale = client.chat.completions.parse(
        model="stories", messages=say, max_tokens=250, response_format=Tale)
    assert isinstance(tale.choices[0].message.parsed, Tale)

    # Calls of tools: one that has to be, whole and in pieces, and one that may be.
    tools = [{"type": "function", "function": {"name": "go", "parameters": {
        "type": "object", "properties": {"to": {"enum": ["home", "away"]}},
        "required": ["to"], "additionalProperties": False}}},
        {"type": "function", "function": {"name": "stay"}}]
    ask = {"model": "stories", "messages": say, "tools": tools, "temperature": 0,
           "max_tokens": 250, "parallel_tool_calls": False}
    for choice, names in (("required", {"go", "stay"}),
                          ({"type": "function", "function": {"name": "go"}}, {"go"})):
        called = client.chat.completions.create(**ask, tool_choice=choice).choices[0]
        assert called.finish_reason == "tool_calls", called
        call, = called.message.tool_calls
        assert call.id and call.type == "function" and call.function.name in names
        assert isinstance(json.loads(call.function.arguments), dict)
        with client.chat.completions.stream(**ask, tool_choice=choice) as stream:
            for event in stream:
                pass
            last = stream.get_final_completion().choices[0]
        streamed, = last.message.tool_calls
        assert last.finish_reason == "tool_calls" and streamed.id
        assert streamed.function.name == call.function.name
        assert json.loads(streamed.function.arguments) == json.loads(call.function.arguments)
    told = say + [called.message.model_dump(exclude_none=True),
                  {"role": "tool", "tool_call_id": call.id, "content": "there"},
                  {"role": "developer", "content": "Say where."}]
    after = client.chat.completions.create(**{**ask, "messages": told}, tool_choice="auto")
    assert after.choices[0].message.content and not after.choices[0].message.tool_calls

    # As many as the queue takes, and one more.
    with client.completions.create(
            model="stories", prompt="Once", n=6, max_tokens=150, stream=True,
            extra_body={"ignore_eos": True}) as full:
        next(iter(full))
        late = error(openai.RateLimitError, lambda: client.completions.create(
            model="stories", prompt="Once"))
        assert int(late.response.headers["Retry-After"]) > 0
    wrong = error(openai.BadRequestError, lambda: client.completions.create(
        model="stories", prompt="Once", n=7))
    assert wrong.param == "n"

    # One that is left in the middle; the next one goes on.
    for chunk in client.completions.create(
            model="stories", prompt="Once", max_tokens=150, stream=True):
        break
    assert client.completions.create(model="stories", prompt="Once").choices
finally:
    process.terminate()
assert process.wait(SECONDS) == 0
