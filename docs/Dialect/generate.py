#!/usr/bin/env python3
"""Writes KFDialect.md and Passes.md from the ODS files, or checks them.

usage: generate.py [--check] [--tblgen mlir-tblgen] [--mlir-include DIR]

`ninja kf-docs` runs it. With --check nothing is written, and the exit code is
1 if a file is out of date.
"""

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
include = os.path.join(here, "..", "..", "include")
banner = "<!-- Generated from the .td files by `ninja kf-docs`; edit those. -->\n\n"

# Attributes of everything that is a function.
plumbing = {"sym_name", "function_type", "sym_visibility", "arg_attrs",
            "res_attrs"}

dialect_td = "kf/Dialect/KF/IR/KFOps.td"
# In the order in which the pipelines run them.
pass_folders = [
    ("Phases", "kf/Pipelines/Passes.td"),
    ("Transforms", "kf/Transforms/Passes.td"),
    ("Conversions", "kf/Conversion/Passes.td"),
    ("CPU target", "kf/Target/LLVMCPU/Passes.td"),
    ("NVVM target", "kf/Target/NVVM/Passes.td"),
    ("SPIR-V target", "kf/Target/SPIRV/Passes.td"),
]


def sections(text, level):
    """The text before the first heading of `level`, and (heading, body)s."""
    parts = re.split(rf"^{'#' * level} (.*)\n", text, flags=re.MULTILINE)
    return parts[0], list(zip(parts[1::2], parts[2::2]))


def attribute_table(match):
    rows = re.findall(r"<td><code>(.*?)</code></td><td>.*?</td><td>(.*?)</td>",
                      match.group(0))
    lines = ["| Attribute | |", "| --- | --- |"]
    lines += [f"| `{name}` | {what} |" for name, what in rows
              if name not in plumbing]
    return "\n".join(lines) + "\n"


def clean(text):
    """Drops what the constraints or the assembly say better."""
    text = re.sub(r"^(Traits|Interfaces|Effects): .*\n\n?", "", text,
                  flags=re.MULTILINE)
    text = re.sub(r"^#### (Operands|Results|Parameters):\n\n(\|.*\n)+\n*", "",
                  text, flags=re.MULTILINE)
    text = re.sub(r"<table>.*?</table>\n", attribute_table, text,
                  flags=re.DOTALL)
    text = re.sub(r"^Syntax:\n\n```\noperation ::= (.*?\n```)",
                  lambda m: "```\n" + re.sub(r"(?m)^ +", "  ", m[1]), text,
                  flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^Syntax:\n\n```\n[#!].*?\n```\n\n", "", text,
                  flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^Syntax: `[#!].*?`\n\n", "", text, flags=re.MULTILINE)
    # What the format's directives mean to a reader.
    text = text.replace(" `` ", " ")
    text = re.sub(r"custom<Activation>\(([^)]*)\)", r"`(` \1 `)`", text)
    text = text.replace("^ `)`", " `)`").replace("`^)?", "`)?")
    text = re.sub(r"^#### (\w+):$", r"\1:", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def source_order(items, names, key):
    """Sorts what tblgen sorted by name as it stands in the source."""
    return sorted(items, key=lambda item: names.index(key(item)))


def read(path):
    """What is in a file, with the files of ops that it includes in their places."""
    with open(os.path.join(include, path), encoding="utf-8") as file:
        return re.sub(r'^include "(kf/Dialect/KF/IR/KF\w+Ops\.td)"$',
                      lambda found: read(found[1]), file.read(), flags=re.MULTILINE)


def dialect_page(tblgen):
    text = tblgen("-gen-dialect-doc", "-dialect=kf", dialect_td)
    head, parts = sections(text, 2)
    head = head.replace("# 'kf' Dialect", "# The kf dialect")
    head = head.replace("[TOC]\n", "").split("-->", 1)[1]
    order = re.findall(r'KF_(?:Loop|Row|Tensor|BatchAttention)?Op<"(\w+)"', read(dialect_td))
    page = clean(head)
    for title, body in parts:
        _, entries = sections(body, 3)
        if title == "Operations":
            entries = source_order(
                entries, order, lambda e: re.match(r"`kf\.(\w+)`", e[0])[1])
        contents, pages = [], []
        for heading, entry in entries:
            name = heading.split(" (")[0]
            mnemonic = re.search(
                r"(?:```(?:mlir)?\n|Syntax: `)([#!]kf\.\w+)", entry)
            if mnemonic:
                name = f"`{mnemonic[1]}`"
            anchor = re.sub(r"[^\w -]", "", name).lower().replace(" ", "-")
            contents.append(f"[{name}](#{anchor})")
            pages.append(f"### {name}\n\n{clean(entry)}")
        page += f"\n## {title}\n\n" + ",\n".join(contents) + ".\n\n"
        page += "\n".join(pages)
    return banner + page


def passes_page(tblgen):
    page = ("# Passes\n\nEach can be run alone with `kf-opt`; the phases run the "
            "others for the module's\n`kf.target` (lib/Pipelines/Pipelines.cpp).\n")
    for title, path in pass_folders:
        order = re.findall(r'Pass<"([\w-]+)"', read(path))
        _, entries = sections(tblgen("-gen-pass-doc", path), 3)
        page += f"\n## {title}\n"
        for heading, body in source_order(entries, order,
                                          lambda e: e[0].strip("`-")):
            page += f"\n### `{heading.strip('`-')}`\n\n{clean(body)}"
    return banner + page


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--tblgen", default="mlir-tblgen")
    parser.add_argument("--mlir-include")
    options = parser.parse_args()
    program = shutil.which(options.tblgen)
    if not program:
        sys.exit(f"error: there is no {options.tblgen}; --tblgen says where")
    mlir = options.mlir_include or os.path.join(
        os.path.dirname(os.path.realpath(program)), "..", "include")

    def tblgen(*arguments):
        return subprocess.run(
            [program, "-I", include, "-I", mlir, *arguments[:-1],
             os.path.join(include, arguments[-1])],
            check=True, stdout=subprocess.PIPE, text=True).stdout

    stale = False
    for name, text in [("KFDialect.md", dialect_page(tblgen)),
                       ("Passes.md", passes_page(tblgen))]:
        path = os.path.join(here, name)
        if not options.check:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            continue
        with open(path, encoding="utf-8") as file:
            old = file.read()
        if old != text:
            stale = True
            print(f"error: docs/Dialect/{name} is out of date; run ninja kf-docs")
            sys.stdout.writelines(difflib.unified_diff(
                old.splitlines(True), text.splitlines(True), name, "from ODS"))
    sys.exit(1 if stale else 0)


if __name__ == "__main__":
    main()
