#!/usr/bin/env python3
"""Translates a kernel in PTX to C for the emulator of CUDA.

  ptx_to_c.py KERNEL.ptx KERNEL.c

The text has one entry and calls no functions. An instruction that is not known
becomes a fault for the thread that comes to it, and a line on stderr now. The C
has one statement per instruction, registers under their names with r_ before
them, and says of each statement with memory or other threads in it the line of
the text."""

import re
import sys

import ptx_arithmetic
import ptx_memory
from ptx_operands import C_TYPE, WIDTH, Operands, Untranslated, split

VARIABLE = re.compile(
    r"(?:\.visible\s+|\.extern\s+|\.weak\s+)*\.(shared|global|const|local)\s+"
    r"(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)\s*((?:\[\d*\])*)\s*(?:=\s*(.*))?",
    re.S,
)
DIRECTIVE = re.compile(r"\.version\s+\S+|\.target\s+[^\n]+|\.address_size\s+\d+")
SPACES = (".shared", ".extern", ".global", ".visible", ".const", ".weak")
STATEMENT = re.compile(
    r"\s*(?:([$\w]+)\s*:(?!:)|(\{)|(\})|((?:@!?[%\w]+\s+)?[.a-z][^;]*);)"
)
EXPORTED = '__attribute__((visibility("default")))'


def label(name):
    return "L_" + re.sub(r"\W", "_", name)


def numbers(text, directive):
    """The three sizes of a directive; zeros first if it is not there."""
    found = re.search(rf"\.{directive}\s+([\d, ]+)", text)
    sizes = [int(x) for x in re.findall(r"\d+", found[1])] if found else [0]
    return sizes + [1] * (3 - len(sizes))


def without_comments(text):
    """The text, whose lines keep their numbers."""
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"/\*.*?\*/", lambda at: "\n" * at[0].count("\n"), text, flags=re.S)


def closing(text, opening):
    """Where the brace at `opening` is closed."""
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return at
    raise Untranslated("a brace that is not closed")


class Kernel:
    def __init__(self, text):
        text = without_comments(text)
        entries = re.findall(r"\.entry\b", text)
        entry = re.search(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)", text)
        if len(entries) != 1 or not entry:
            raise Untranslated(f"{len(entries)} entries, not one")
        if re.search(r"\.func\b", text):
            raise Untranslated("functions")
        self.text, self.names, self.name = text, Operands(), entry[1]
        self.static_bytes = 0
        self.globals, self.code, self.unknown = [], [], []
        for each in filter(None, map(str.strip, entry[2].split(","))):
            self.add_parameter(each)
        self.threads = numbers(text, "reqntid")
        self.cluster = numbers(text, "reqnctapercluster")
        for each in text[: entry.start()].split(";"):
            each = DIRECTIVE.sub("", each).strip()
            if each.startswith(SPACES) and each not in (".visible", ".weak"):
                self.add_variable(each)
        opening = text.index("{", entry.end())
        self.translate(opening + 1, closing(text, opening))

    def add_parameter(self, text):
        type_ = re.search(r"\.([busf]\d+)\b", text.replace(".param", ""))
        name = re.search(r"(\w+)\s*(?:\[(\d+)\])?$", text)
        size = WIDTH[type_[1]] // 8 * int(name[2] or 1)
        self.names.parameters.append((name[1], size))

    def add_variable(self, text):
        """A declaration; returns that of C for local memory, else nothing."""
        found = VARIABLE.fullmatch(text)
        if not found:
            raise Untranslated(f"declaration {text[:80]}")
        space, align, type_, name, sizes, value = found.groups()
        align = int(align or WIDTH[type_] // 8)
        count = 1
        for size in re.findall(r"\[(\d*)\]", sizes):
            count *= int(size or 0)
        if space == "shared":
            if ".extern" in text:
                self.names.dynamic = name
                return ""
            self.static_bytes = (self.static_bytes + align - 1) // align * align
            self.names.shared[name] = self.static_bytes
            self.static_bytes += count * WIDTH[type_] // 8
            return ""
        value = re.sub(r"0[fF]([0-9A-Fa-f]{8})", r"0x\1", (value or "").strip())
        if value:
            value = f" = {value}" if value.startswith("{") else f" = {{{value}}}"
        declared = (
            f"{C_TYPE[WIDTH[type_]]} v_{name}[{max(count, 1)}] "
            f"__attribute__((aligned({max(align, 1)}))){value};"
        )
        self.names.variables.add(name)
        if space == "local":
            return declared
        self.globals.append(f"static {declared}")
        return ""

    def translate(self, at, end):
        scopes = self.names.scopes
        while found := STATEMENT.match(self.text, at, end):
            at = found.end()
            name, opens, closes, statement = found.groups()
            if name:
                self.code.append(f"{label(name)}:;")
            elif opens:
                self.code.append("{")
                scopes.append({})
            elif closes:
                self.code.append("}")
                scopes.pop()
            elif statement.startswith(".reg"):
                self.add_registers(statement)
            elif not statement.startswith((".pragma", ".loc", ".file")):
                line = self.text.count("\n", 0, found.start(4)) + 1
                self.code.append(self.statement(" ".join(statement.split()), line))
        if self.text[at:end].strip():
            raise Untranslated(f"text {self.text[at:end].strip()[:80]}")

    def add_registers(self, text):
        type_, listed = re.fullmatch(r"\.reg\s+\.(\w+)\s+(.*)", text, re.S).groups()
        width, scope, names = WIDTH[type_], self.names.scopes[-1], []
        for each in map(str.strip, listed.split(",")):
            if many := re.fullmatch(r"(%?\w+)<(\d+)>", each):
                scope[many[1] + "*"] = width
                names += [f"{many[1]}{i}" for i in range(int(many[2]))]
            else:
                scope[each] = width
                names.append(each)
        zeros = ", ".join(f"{self.names.name(each)} = 0" for each in names)
        self.code.append(f"{C_TYPE[width]} {zeros};")

    def statement(self, text, line):
        if text.startswith("."):
            return self.add_variable(text)
        condition = ""
        try:
            if guard := re.match(r"@(!?)(%?\w+)\s+", text):
                condition = f"if ({guard[1]}{self.names.value(guard[2])}) "
                text = text[guard.end() :]
            words, args = re.fullmatch(r"([a-z][\w.:]*)\s*(.*)", text).groups()
            return f"{condition}{{ {self.instruction(words.split('.'), args, line)} }}"
        except (Untranslated, KeyError, ValueError, IndexError, StopIteration) as why:
            self.unknown.append(f"line {line}: cannot translate '{text[:100]}': {why}")
            what = re.sub(r'[^ -~]|["\\?]', " ", text)[:80]
            fault = f'emuFail(t, "cannot run {what}, line", {line}, 0);'
            return f"{condition}{{ {fault} }}"

    def instruction(self, words, args, line):
        name, type_, args = words[0], words[-1], split(args)
        if name in ("ret", "exit"):
            return "return;"
        if name == "trap":
            return f't->line = {line}; emuFail(t, "trap", 0, 0);'
        if name == "bra":
            return f"goto {label(args[0])};"
        if together := ptx_memory.HANDLERS.get(name):
            return f"t->line = {line}; {together(self.names, words, type_, args)}"
        if alone := ptx_arithmetic.handler(name, type_):
            return alone(self.names, words, type_, args)
        raise Untranslated("unknown instruction")

    def print(self, out):
        def array(name, values):
            listed = ", ".join(map(str, values))
            print(f"{EXPORTED} const int {name}[] = {{{listed}}};", file=out)

        print('#include "KernelRuntime.h"', *self.globals, sep="\n", file=out)
        print(f'{EXPORTED} const char kernelName[] = "{self.name}";', file=out)
        sizes = [size for _, size in self.names.parameters]
        array("kernelParameters", [len(sizes), *sizes])
        array("kernelCluster", self.cluster)
        array("kernelThreads", self.threads)
        array("kernelShared", [self.static_bytes])
        print(f"{EXPORTED} void kernelRun(Thread *t) {{", file=out)
        print(*self.code, "}", sep="\n", file=out)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: ptx_to_c.py KERNEL.ptx KERNEL.c")
    try:
        with open(sys.argv[1]) as text:
            kernel = Kernel(text.read())
        with open(sys.argv[2], "w") as out:
            kernel.print(out)
    except (OSError, Untranslated) as why:
        sys.exit(f"ptx_to_c: error: {sys.argv[1]}: {why}")
    for each in kernel.unknown:
        print(f"ptx_to_c: {sys.argv[1]}: {each}", file=sys.stderr)


if __name__ == "__main__":
    main()
