"""Instructions of PTX that memory or other threads take part in, as statements of
C; functions as in ptx_arithmetic.py. Each sets the thread's line first, which is
what a fault and a meeting of lanes are known by."""

import re

from ptx_operands import C_TYPE, FROM_FLOAT, TO_FLOAT, WIDTH, Untranslated, elements
from ptx_operands import integer

OPERATIONS = ("add", "max", "min", "and", "or", "xor", "exch", "cas", "inc", "dec")
MATRIX_TYPES = ("f16", "bf16", "tf32")


def _space(words):
    if "shared::cluster" in words:
        return "InCluster"
    if "shared" in words or "shared::cta" in words:
        return "InShared"
    return "InOwn" if {"local", "const", "param"} & set(words) else "InGlobal"


def _count(words):
    return next((int(each[1]) for each in words if each in ("v2", "v4", "v8")), 1)


def _inputs(names, operands, kind="u32"):
    return ", ".join(f"({kind}){names.value(each)}" for each in operands)


def load_parameter(names, type_, args):
    found = re.fullmatch(r"\[(\w+)(?:\+(\d+))?\]", args[1].replace(" ", ""))
    parameters = [name for name, _ in names.parameters]
    if not found or found[1] not in parameters:
        raise Untranslated(f"parameter {args[1]}")
    size = WIDTH[type_] // 8
    at = f"(char *)t->parameters[{parameters.index(found[1])}] + {int(found[2] or 0)}"
    return "".join(
        f"{{ {C_TYPE[8 * size]} x; memcpy(&x, {at} + {i * size}, {size}); "
        f"{names.assign(each, 'x')} }}"
        for i, each in enumerate(elements(args[0]))
    )


def load(names, words, type_, args):
    if "param" in words:
        return load_parameter(names, type_, args)
    size, count, into = WIDTH[type_] // 8, _count(words), elements(args[0])
    if len(into) != count:
        raise Untranslated("load of another number of registers")
    at = f"emuAt(t, {names.address(args[1])}, {size * count}, {_space(words)}, 0)"
    waits = {"acquire", "volatile", "relaxed"} & set(words)
    stores = "".join(
        names.assign(each, f"({_signed(names, each, type_)})x[{i}]")
        for i, each in enumerate(into)
    )
    return (
        f"{{ {'emuYield(t); ' if waits else ''}{integer(type_)} x[{count}]; "
        f"memcpy(x, {at}, {size * count}); {stores} }}"
    )


def _signed(names, register, type_):
    """A signed number fills what its register is wider."""
    if register == "_" or type_[0] != "s":
        return integer(type_)
    return f"s{names.width(register)}"


def store(names, words, type_, args):
    size, of = WIDTH[type_] // 8, elements(args[1])
    if len(of) != _count(words):
        raise Untranslated("store of another number of registers")
    bytes_ = size * len(of)
    at = f"emuAt(t, {names.address(args[0])}, {bytes_}, {_space(words)}, 1)"
    kind = C_TYPE[8 * size]
    return (
        f"{{ {kind} x[] = {{{_inputs(names, of, kind)}}}; memcpy({at}, x, {bytes_}); }}"
    )


def atomic(names, words, type_, args):
    if type_ in ("f16x2", "bf16x2"):
        raise Untranslated("pairs")
    at, size = (0 if words[0] == "red" else 1), WIDTH[type_] // 8
    kind = C_TYPE[8 * size]
    operation = next(each for each in words if each in OPERATIONS)
    meaning = type_ if type_[0] != "b" or type_ in TO_FLOAT else "u" + type_[1:]
    by = names.typed(meaning, args[at + 1])
    old = f"{TO_FLOAT[type_]}(o)" if type_ in TO_FLOAT else f"(({integer(type_)})o)"
    if operation == "cas":
        new = f"(o == ({kind}){by} ? ({kind}){names.value(args[at + 2])} : o)"
    else:
        new = {
            "add": f"{old} + {by}",
            "max": f"({old} > {by} ? {old} : {by})",
            "min": f"({old} < {by} ? {old} : {by})",
            "and": f"o & {by}",
            "or": f"o | {by}",
            "xor": f"o ^ {by}",
            "exch": by,
            "inc": f"(o >= {by} ? 0 : o + 1)",
            "dec": f"(o == 0 || o > {by} ? {by} : o - 1)",
        }[operation]
    if type_ in FROM_FLOAT:
        new = f"{FROM_FLOAT[type_]}({new})"
    place = f"emuAt(t, {names.address(args[at])}, {size}, {_space(words)}, 1)"
    result = names.assign(args[0], "o") if words[0] == "atom" else ""
    return (
        f"{{ emuYield(t); {kind} *p = ({kind} *){place}; {kind} o = *p; "
        f"*p = ({kind})({new}); {result} }}"
    )


def copy(names, words, type_, args):
    if words[1] == "async" and words[2] in ("ca", "cg"):
        size = names.value(args[2])
        of = names.value(args[3]) if len(args) > 3 else size
        to, from_ = names.address(args[0]), names.address(args[1])
        return f"emuCopy(t, {to}, {from_}, {size}, {of});"
    if words[2] == "commit_group":
        return "emuCommitCopies(t);"
    if words[2] in ("wait_group", "wait_all"):
        left = names.value(args[0]) if words[2] == "wait_group" else 0
        return f"emuAwaitCopies(t, {left});"
    raise Untranslated("copy")


def map_shared(names, words, type_, args):
    offset = f"{names.value(args[1])} - t->shared"
    start = f"t->cluster + t->stride * (u64){names.value(args[2])}"
    return names.assign(args[0], f"{offset} + {start}")


def barrier(names, words, type_, args):
    if "warp" in words:
        return f"emuWarpSync(t, (u32){names.value(args[0])});"
    if "cluster" in words:
        return f"emuCluster{'Arrive' if 'arrive' in words else 'Wait'}(t);"
    if "sync" not in words:
        raise Untranslated("barrier")
    threads = names.value(args[1]) if len(args) > 1 else 0
    return f"emuBarrier(t, {names.value(args[0])}, {threads});"


def shuffle(names, words, type_, args):
    into, mode = args[0].split("|"), ("idx", "up", "down", "bfly").index(words[2])
    call = f"emuShuffle(t, {mode}, {_inputs(names, args[1:5])}, &p)"
    other = names.assign(into[1], "p") if len(into) > 1 else ""
    return f"{{ u8 p; {names.assign(into[0], call)}{other} }}"


def vote(names, words, type_, args):
    mode = ("ballot", "any", "all", "uni").index(words[2])
    return names.assign(args[0], f"emuVote(t, {mode}, {_inputs(names, args[1:3])})")


def reduce(names, words, type_, args):
    mode = ("add", "min", "max", "and", "or", "xor").index(words[2])
    signed = int(type_ == "s32")
    inputs = _inputs(names, args[1:3])
    return names.assign(args[0], f"emuReduce(t, {mode}, {signed}, {inputs})")


def mma(names, words, type_, args):
    shape, of = re.fullmatch(r"m16n8k(\d+)", words[3]), words[-3]
    if not shape or of not in MATRIX_TYPES or words[-1] != "f32" or words[-4] != "f32":
        raise Untranslated("shape or types of mma")
    into, *inputs = (elements(each) for each in args)
    listed = _inputs(names, sum(inputs, []))
    kind = MATRIX_TYPES.index(of)
    return (
        f"{{ u32 x[] = {{{listed}}}, d[4]; emuMma(t, {shape[1]}, {kind}, x, d); "
        f"{names.assign_all(into, 'd')} }}"
    )


def ldmatrix(names, words, type_, args):
    if "m8n8" not in words or type_ != "b16":
        raise Untranslated("shape or type of ldmatrix")
    count = next(int(each[1]) for each in words if re.fullmatch(r"x[124]", each))
    call = f"emuLdmatrix(t, {count}, {int('trans' in words)}, "
    into = names.assign_all(elements(args[0]), "d")
    return f"{{ u32 d[4]; {call}{names.address(args[1])}, d); {into} }}"


def wgmma(names, words, type_, args):
    if words[1] != "mma_async":  # fences and waits: products are done at once
        return ";"
    shape, of = re.fullmatch(r"m64n(\d+)k16", words[4]), words[6]
    if not shape or words[5] != "f32" or of not in MATRIX_TYPES[:2]:
        raise Untranslated("shape or types of wgmma")
    into, a, rest = elements(args[0]), elements(args[1]), args[3:]
    if rest[1].strip() != "1" or rest[2].strip() != "1":
        raise Untranslated("signs of wgmma")
    if len(a) == 4:  # in registers
        given, at, turned = f"u32 a[] = {{{_inputs(names, a)}}};", "a, 0", ["0"]
    else:
        given, at, turned = "", f"0, {names.value(a[0])}", []
    turned = ", ".join(turned + (rest[3:] or ["0"]))
    kind = MATRIX_TYPES.index(of)
    return (
        f"{{ {given} u32 d[] = {{{_inputs(names, into)}}}; "
        f"emuWgmma(t, {shape[1]}, {kind}, {at}, {names.value(args[2])}, "
        f"{names.value(rest[0])}, {turned}, d); {names.assign_all(into, 'd')} }}"
    )


def nothing(names, words, type_, args):
    """Hints, and orders of memory: threads take turns, so all is in order."""
    return ";"


def sleep(names, words, type_, args):
    return "emuYield(t);"


HANDLERS = {"ld": load, "ldu": load, "st": store, "atom": atomic, "red": atomic}
HANDLERS |= {"cp": copy, "mapa": map_shared, "bar": barrier, "barrier": barrier}
HANDLERS |= {"shfl": shuffle, "vote": vote, "redux": reduce, "mma": mma}
HANDLERS |= {"ldmatrix": ldmatrix, "wgmma": wgmma, "nanosleep": sleep}
HANDLERS |= dict.fromkeys(
    "griddepcontrol fence membar prefetch discard applypriority createpolicy "
    "setmaxnreg".split(),
    nothing,
)
