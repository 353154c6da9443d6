#!/usr/bin/env python3
"""Checks that the files which documents name exist.

  paths.py SOURCE [DOCUMENT...]

SOURCE is the root of the checkout. Documents are docs/Architecture.md,
docs/DeveloperGuide.md and the first pages of lib/Conversion; what stands between
backticks and ends as a file's name does is a path, and so is what begins with a
folder of SOURCE. A path may leave folders out in front (`KFToGPU/KFToGPU.cpp`),
have braces (`a.{h,cpp}`) and stars. One with <...> is a pattern.

Also: no two files of lib/Conversion have one name, for what two back ends do is
not the same, each folder of KFToGPU has a first page, and nothing in
Conversion and Transforms of lib and include/kf names a target, nor does anything
in Driver compare one with a name: targets answer by TargetAttrInterface.
"""

import fnmatch
import os
import pathlib
import re
import sys

FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
BRACES = re.compile(r"\{([^{}]*)\}")
FILE = re.compile(r"[\w.*/-]+\.(cpp|h|td|md|mlir|py|test|txt|json|cmake)")
PLACEHOLDER = re.compile(r"[A-Z]+(\.[a-z]+)?")
TARGET = re.compile(
    r"\b(?:Cpu|Cuda|Reference|Vulkan)TargetAttr\b"
    r'|"(?:cpu|cuda|reference|vulkan)(?:_target)?"'
)
COMPARED = re.compile(r'[!=]= "(?:cpu|cuda|reference|vulkan)"')
NAMES = {"Conversion": TARGET, "Transforms": TARGET, "Driver": COMPARED}
SHARED = {"CMakeLists.txt", "README.md"}  # names that every folder may have


def tree(source):
    """Paths of all files and folders, but those that are hidden or built."""
    found = []
    for root, folders, files in os.walk(source):
        folders[:] = [f for f in folders if f[0] != "." and f != "build"]
        at = pathlib.Path(root).relative_to(source).as_posix()
        at = "" if at == "." else at + "/"
        found += [at + name for name in folders + files]
    return found


def expand(path):
    braces = BRACES.search(path)
    if not braces:
        return [path]
    head, tail = path[: braces.start()], path[braces.end() :]
    return [p for each in braces[1].split(",") for p in expand(head + each + tail)]


def is_path(text, tops):
    if "<" in text or PLACEHOLDER.fullmatch(text):
        return False
    return bool(FILE.fullmatch(text)) or (
        "/" in text
        and text.split("/")[0] in tops
        and re.fullmatch(r"[\w.*/-]+", text) is not None
    )


def paths_of(text, tops):
    """The paths that a document names, each with its line."""
    text = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    for number, line in enumerate(text.splitlines(), 1):
        for span in SPAN.finditer(line):
            for path in expand(span[1]):
                if is_path(path, tops):
                    yield number, path.rstrip("/")


def exists(path, all_paths):
    return any(
        fnmatch.fnmatchcase(p, path) or fnmatch.fnmatchcase(p, "*/" + path)
        for p in all_paths
    )


def check_document(source, document, all_paths, tops):
    text = (source / document).read_text()
    problems = [
        f"{document}:{number}: there is no '{path}'"
        for number, path in paths_of(text, tops)
        if not exists(path, all_paths)
    ]
    for number, line in enumerate(text.splitlines(), 1):
        for link in LINK.finditer(line):
            if not (source / document).parent.joinpath(link[1]).exists():
                problems.append(f"{document}:{number}: there is no '{link[1]}'")
    return problems


def check_conversion(source):
    problems, names = [], {}
    root = source / "lib/Conversion"
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        at = path.relative_to(source).as_posix()
        if path.name in SHARED:
            continue
        if path.name in names:
            problems.append(f"{at}: {names[path.name]} has that name, too")
        names[path.name] = at
    for folder in sorted(p for p in root.glob("KFToGPU/*") if p.is_dir()):
        if not (folder / "README.md").exists():
            problems.append(f"{folder.relative_to(source)}: it has no README.md")
    return problems


def check_targets(source):
    problems = []
    for root in "lib", "include/kf":
        for folder, name in NAMES.items():
            for path in sorted((source / root / folder).rglob("*.*")):
                for number, line in enumerate(path.read_text().splitlines(), 1):
                    if found := name.search(line):
                        at = f"{path.relative_to(source).as_posix()}:{number}"
                        problems.append(f"{at}: it names a target: {found[0]}")
    return problems


def main():
    source = pathlib.Path(sys.argv[1])
    documents = sys.argv[2:] or [
        "docs/Architecture.md",
        "docs/DeveloperGuide.md",
        *(
            p.relative_to(source).as_posix()
            for p in sorted(source.glob("lib/Conversion/**/README.md"))
        ),
    ]
    all_paths = tree(source)
    tops = {p for p in all_paths if "/" not in p}
    problems = check_conversion(source) + check_targets(source)
    for document in documents:
        problems += check_document(source, document, all_paths, tops)
    print(*problems, f"{len(documents)} documents, {len(problems)} problems", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
