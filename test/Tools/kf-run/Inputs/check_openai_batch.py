"""Runs files of OpenAI's batches and looks at the results.

check_openai_batch.py FOLDER [OPTION...]

Each run of kf-run that computes embeddings has the OPTIONs.
"""
import json
import os
import signal
import subprocess
import sys

from adapter_files import write_adapter

os.chdir(sys.argv[1])


def batch(lines, *options, code):
    with open("requests.jsonl", "w") as file:
        for line in lines:
            file.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
    run = subprocess.run(
        ["kf-run", "batch", "--file", "requests.jsonl", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.returncode == code, run
    return [json.loads(line) for line in run.stdout.splitlines()], run.stderr


def request(id, url, **body):
    return {"custom_id": id, "method": "POST", "url": url, "body": body}


CHAT, TEXT, EMBEDDINGS = "/v1/chat/completions", "/v1/completions", "/v1/embeddings"
SAY = [{"role": "user", "content": "Tell me a story."}]
STORY = request("a", CHAT, model="gpt-x", messages=SAY, max_tokens=6, temperature=0)
PAIR = request("b", TEXT, prompt="Once", max_tokens=3, temperature=0, n=2, logprobs=1)

# Results are in the order of the file, whatever ends first, and what the bodies
# ask for is as the server has it.
lines = [STORY, PAIR, request("c", TEXT, model="other", prompt=[5], max_tokens=1)]
results, said = batch(lines, "--parallel", "2", code=0)
assert "3 requests, 0 failed" in said, said
assert [line["custom_id"] for line in results] == ["a", "b", "c"], results
assert [line["id"] for line in results] == [f"batch_req_{n}" for n in (1, 2, 3)]
for line in results:
    assert set(line) == {"id", "custom_id", "response", "error"}, line
    assert line["error"] is None and line["response"]["status_code"] == 200, line
story, pair, other = (line["response"]["body"] for line in results)
assert story["object"] == "chat.completion" and story["model"] == "gpt-x", story
assert story["choices"][0]["finish_reason"] == "length", story
assert story["usage"]["completion_tokens"] == 6, story
assert len(pair["choices"]) == 2, pair
assert pair["choices"][0]["text"] == pair["choices"][1]["text"], pair
assert len(pair["choices"][0]["logprobs"]["tokens"]) == 3, pair
assert other["model"] == "other", other
own, _ = batch([{"messages": SAY, "n": 6}], "--quiet", code=0)
assert own[0]["text"] == story["choices"][0]["message"]["content"], (own, story)

# To a file, and of options that bodies leave open.
results, said = batch([STORY], "--quiet", "--json", "out.jsonl", code=0)
assert results == [] and said == "", (results, said)
with open("out.jsonl") as file:
    again = json.loads(file.read())["response"]["body"]["choices"]
assert again == story["choices"], again
drawn = request("a", TEXT, prompt="Once", max_tokens=9)
same = [batch([drawn], "--quiet", "--temp", "1.5", "--seed", "3", code=0) for _ in range(2)]
texts = [lines[0]["response"]["body"]["choices"] for lines, _ in same]
assert texts[0] == texts[1], texts

# Adapters: a name is the model's, or one of theirs.
write_adapter("half", 0.5)
named = [request(m, TEXT, model=m, prompt="Once", max_tokens=9, temperature=0)
         for m in ("kf-stories", "hlf", "model", "half", "kf-stories:half")]
own, _ = batch([{"prompt": "Once", "n": 9, "model": "half"}], "--lora", "half", "--quiet",
               code=0)
results, said = batch(named, "--lora", "model=half", "--lora", "half", "--quiet", code=1)
assert said.count("error:") == 1 and "'hlf' here; this one is 'kf-stories'" in said, said
assert results[1]["response"]["status_code"] == 404, results[1]
texts = [line["response"]["body"]["choices"][0]["text"]
         for line in results if line["custom_id"] != "hlf"]
assert texts[1:] == [own[0]["text"]] * 3 and texts[0] != texts[1], texts

# Embeddings, of more texts than are read at once; and how they are made.
words = [f"story {i}" for i in range(300)]
many = [request(f"e{i}", EMBEDDINGS, input=words, model="m", dimensions=2) for i in range(3)]
results, _ = batch([STORY, *many], "--parallel", "2", "--quiet", code=0)
assert results[0]["response"]["body"]["choices"] == story["choices"], results[0]
for result in results[1:]:
    data = result["response"]["body"]["data"]
    assert [entry["index"] for entry in data] == list(range(300)), result
    assert all(len(entry["embedding"]) == 2 for entry in data), result
one = request("e", EMBEDDINGS, input="Once upon a time")
made = []
for how in ([], ["--pooling", "mean", "--normalize", "none"]):
    options = [*how, *sys.argv[2:]]
    results, _ = batch([one], "--quiet", *options, code=0)
    made.append(results[0]["response"]["body"]["data"][0]["embedding"])
    run = subprocess.run(["kf-run", "embed", "-p", "Once upon a time", *options],
                         stdout=subprocess.PIPE, check=True, text=True)
    near = zip(made[-1], json.loads(run.stdout)["embedding"])
    assert all(abs(a - b) < 1e-4 * max(1, abs(b)) for a, b in near), options
assert made[0] != made[1]
_, said = batch([{"prompt": "Once"}], "--pooling", "mean", code=1)
assert "--pooling and --normalize are for embeddings" in said, said

# What is wrong is said by number, and the others are answered.
wrong = [
    (STORY, None),
    (request("b", TEXT, prompt="Once", max_tokens=-7), "'max_tokens' is -7"),
    (request("a", TEXT, prompt="Once"), "'custom_id' is that of line 1"),
    ({"prompt": "Once"}, "'custom_id' and 'body' are missing"),
    ("no JSON", "JSON"),
    (request("d", "/v1/moderations", input="a"), "'url' is \"/v1/moderations\""),
    (request("i", EMBEDDINGS, input=""), "'input'"),
    (request("e", TEXT, prompt="a", stream=True), "'body.stream' is not supported"),
    ({**request("f", TEXT), "body": 7}, "'body' is 7"),
    (request("g", CHAT, messages=SAY, tools=[{"type": "function", "function": {"name": "f"}}]),
     "'tools' is not supported"),
    (request("h", TEXT, prompt=[5] * 5000), "maximum context length"),
    (PAIR, "'custom_id' is that of line 2"),
]
results, said = batch([line for line, _ in wrong], code=1)
assert len(results) == len(wrong), results
errors = [line for line in said.splitlines() if line.startswith("error: ")]
assert f"{len(wrong)} requests, {len(wrong) - 1} failed" in said, said
for number, (result, (_, message)) in enumerate(zip(results, wrong), 1):
    if message is None:
        assert result["response"]["body"]["choices"] == story["choices"], result
        continue
    error = result["error"] or result["response"]["body"]["error"]
    assert message in error["message"], (result, message)
    if result["response"]:
        assert result["response"]["status_code"] == 400, result
    where = f"error: 'requests.jsonl': line {number}: "
    assert any(line.startswith(where) and message in line for line in errors), (where, said)

# Bodies say what options say of requests of the other form.
for options, field in (
    (["-n", "3"], "max_tokens"),
    (["--stop", "a"], "stop"),
    (["--ignore-eos"], "ignore_eos"),
    (["-j", "{}"], "response_format"),
    (["--grammar", 'root ::= "a"'], "grammar"),
):
    results, said = batch([STORY], *options, code=1)
    assert results == [] and f"'{field}' in their bodies says it" in said, said

# An interrupt ends what goes on, and says so of it and of what was not begun.
long = [request(f"l{i}", TEXT, prompt="Once", max_tokens=900, ignore_eos=True, n=8) for i in range(9)]
with open("requests.jsonl", "w") as file:
    for line in [STORY, *long]:
        file.write(json.dumps(line) + "\n")
process = subprocess.Popen(
    ["kf-run", "batch", "--file", "requests.jsonl", "--parallel", "2", "-t", "1"],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
)
first = process.stdout.readline()
process.send_signal(signal.SIGINT)
out, said = process.communicate(timeout=300)
assert process.returncode == 130, (process.returncode, said)
results = [json.loads(line) for line in (first + out).splitlines()]
assert [line["custom_id"] for line in results] == ["a", *(f"l{i}" for i in range(9))]
assert results[0]["response"]["status_code"] == 200, results[0]
ended = [line for line in results if line["error"]]
assert ended and all(line["error"]["code"] == "batch_cancelled" for line in ended), results
assert f"10 requests, 0 failed, {len(ended)} cancelled" in said, said
