"""Holds texts of `kf-run generate` and `batch` to schemas and grammars.

check_grammar.py OPTIONS...: those of batch, with which each gets what it gets alone
"""

import json
import subprocess
import sys

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 12},
        "age": {"type": "integer", "minimum": 1, "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["kind", "brave"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}


def run(*words, stdin="", code=0):
    done = subprocess.run(
        ["kf-run", *words], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == code, done
    return done


def check(text):
    value = json.loads(text)
    assert list(value) == ["name", "age", "tags"], value
    assert 1 <= len(value["name"]) <= 12, value
    assert isinstance(value["age"], int) and 1 <= value["age"] <= 120, value
    assert set(value["tags"]) <= {"kind", "brave"} and len(value["tags"]) <= 3, value


# From a file or not, the likeliest tokens or drawn ones, with penalties.
with open("person.json", "w") as file:
    json.dump(SCHEMA, file)
prompt = ("generate", "-p", "Once upon a time", "-n", "200", "--quiet")
likeliest = run(*prompt, "--json-schema", "person.json").stdout
check(likeliest)
assert run(*prompt, "-j", json.dumps(SCHEMA)).stdout == likeliest
drawn = {
    run(*prompt, "-j", "person.json", "--temp", "1.5", "--seed", seed, "--repeat-penalty",
        "1.2").stdout
    for seed in "1234"
}
assert len(drawn) > 1
for text in drawn:
    check(text)

# A batch, in which each says what it has to be, or the options do.
FORMAT = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}
requests = (
    [{"prompt": "Once", "response_format": FORMAT, "temp": 1, "seed": i} for i in range(8)]
    + [{"messages": [{"role": "user", "content": "Who?"}], "json_schema": SCHEMA}]
    + [{"prompt": "Once", "grammar": 'root ::= "a" | "b"'}]
    + [{"prompt": "Once", "response_format": {"type": "text"}, "n": 5}]
)
lines = "".join(json.dumps(r) + "\n" for r in requests)
results = [json.loads(line) for line in run(
    "batch", *sys.argv[1:], "--file", "-", "--quiet", "-n", "200", "--parallel", "4", stdin=lines
).stdout.splitlines()]
assert len(results) == len(requests)
for result in results[:9]:
    assert result["finish_reason"] == "stop", result
    check(result["text"])
assert len({r["text"] for r in results[:8]}) > 1
assert results[9]["text"] in ("a", "b") and results[9]["finish_reason"] == "stop"
assert results[10]["finish_reason"] == "length"
# Each gets what it gets alone, held beside others or not.
alone = [json.loads(line) for line in run(
    "batch", *sys.argv[1:], "--file", "-", "--quiet", "-n", "200", "--parallel", "1", stdin=lines
).stdout.splitlines()]
assert [r["text"] for r in alone] == [r["text"] for r in results]
both = [json.loads(line) for line in run(
    "batch", "--file", "-", "--quiet", "-n", "200", "-j", "person.json",
    stdin='{"prompt": "Once"}\n{"prompt": "Once", "grammar": "root ::= [ab]"}\n',
).stdout.splitlines()]
check(both[0]["text"])
assert both[1]["text"] in ("a", "b")

# One that is wrong is its line's error, and the others go on.
wrong = run(
    "batch", "--file", "-", "--quiet", "-n", "5", code=1,
    stdin='{"prompt": "a", "json_schema": {"typ": 1}}\n{"prompt": "a"}\n'
    '{"prompt": "a", "response_format": {"type": "xml"}}\n',
)
assert "line 1: 'json_schema': /typ: there is no such keyword" in wrong.stderr, wrong
assert "line 3: 'response_format.type' is \"xml\"" in wrong.stderr, wrong
assert [json.loads(line)["finish_reason"] for line in wrong.stdout.splitlines()] == [
    "error", "length", "error"]

# Biases may exclude all that is allowed.
ids = json.loads(run("tokenize", "-p", "q", "--json", "-").stdout)["ids"]
bias = [f"--logit-bias={id}-inf" for id in ids]
none = run("generate", "-p", "a", "--grammar", 'root ::= "q"', *bias, code=1)
assert "no token can be chosen" in none.stderr and "grammar allows" in none.stderr, none
