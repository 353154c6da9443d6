#!/usr/bin/env python3
"""The fields of requests that the server refuses, as the table in docs/Server.md.

usage: test/Docs/refused_fields.py [--write | --check]

Reads the tables of runtime/serve/ApiRequest.cpp. --write puts the table between the
two comments "refused" of docs/Server.md, and --check fails where another one stands
there; otherwise it is printed.
"""

import json
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SOURCE = os.path.join(ROOT, "runtime", "serve", "ApiRequest.cpp")
PAGE = os.path.join(ROOT, "docs", "Server.md")
PLACE = re.compile(r"(<!-- refused: .*? -->\n).*?(<!-- /refused -->)", re.DOTALL)

STRING = r'"(?:[^"\\]|\\.)*"'
STRINGS = rf"{STRING}(?:\s*{STRING})*"
RAW = r'R"\((.*?)\)"'
ENTRY = re.compile(
    rf'\{{"(\w+)",\s*\{{((?:\s*,?\s*(?:{RAW}|{STRING}))*)\}},\s*({STRINGS}|k\w+)\}}',
    re.DOTALL,
)
# The tables, and of which requests each is.
TABLES = {
    "kUnsupported": "",
    "kOfChats": "completions: ",
    "kOfLlama": "OpenAI's: ",
    "kOfOpenAi": "`/completion`: ",
    "kOfCompletions": "chats: ",
}


def value_of(literals):
    return "".join(json.loads(text) for text in re.findall(STRING, literals))


def rows(source):
    constants = {
        name: value_of(text)
        for name, text in re.findall(
            rf"const char \*const (k\w+) =\s*({STRINGS});", source
        )
    }
    for table, of in TABLES.items():
        body = re.search(rf"const Unsupported {table}\[\] = \{{(.*?)\n\}};", source, re.DOTALL)[1]
        entries = ENTRY.findall(body)
        if len(entries) != body.count("\n    {"):
            sys.exit(f"refused_fields: error: {table} has entries of another form")
        for name, values, _, advice in entries:
            neutral = [
                raw or json.loads(text)
                for raw, text in re.findall(rf"{RAW}|({STRING})", values)
            ]
            # 1 and 1.0 are the same to who reads.
            neutral = [v for v in neutral if not (v.endswith(".0") and v[:-2] in neutral)]
            yield (
                f"{of}`{name}`",
                ", ".join(f"`{value}`" for value in neutral),
                constants[advice] if advice in constants else value_of(advice),
            )


def main():
    with open(SOURCE, encoding="utf-8") as file:
        found = rows(file.read())
        table = "| field | asks for nothing | because |\n| --- | --- | --- |\n" + "".join(
            f"| {' | '.join(row)} |\n".replace("|  |", "| |") for row in found
        )
    if sys.argv[1:] not in (["--write"], ["--check"]):
        print(table, end="")
        return
    with open(PAGE, encoding="utf-8") as file:
        before = file.read()
    after, count = PLACE.subn(lambda place: place[1] + table + place[2], before)
    if count != 1:
        sys.exit("refused_fields: error: docs/Server.md has no place for the table")
    if sys.argv[1] == "--write":
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(after)
    elif before != after:
        sys.exit("refused_fields: error: docs/Server.md has another table than the code; "
                 "run test/Docs/refused_fields.py --write")


main()
