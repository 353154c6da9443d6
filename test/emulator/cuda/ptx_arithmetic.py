"""Instructions of PTX that only registers take part in, as statements of C.
Each function gets the names (Operands), the words of the instruction between its
points, the type (the last word) and the operands."""

import re

from ptx_operands import C_TYPE, TO_FLOAT, WIDTH, Untranslated, elements, integer
from ptx_operands import unsigned

PAIRS = {"f16x2": "f16", "bf16x2": "bf16"}
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|"}
SIGNS |= {"xor": "^", "rem": "%"}
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
COMPARE |= {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
ROUND = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
ONCE = {"f16": "ofF16Once", "bf16": "ofBf16Once"}  # of a double, rounded once


def move(names, words, type_, args):
    into, of = elements(args[0]), elements(args[1])
    if len(into) == len(of) == 1:
        return names.assign(into[0], names.value(of[0]))
    if len(of) > 1:
        part = names.width(into[0]) // len(of)
        return names.assign(
            into[0],
            " | ".join(
                f"((u64)({C_TYPE[part]}){names.value(each)} << {i * part})"
                for i, each in enumerate(of)
            ),
        )
    whole = names.width(of[0]) if of[0].startswith("%") else WIDTH[type_]
    part = whole // len(into)
    stores = (
        names.assign(each, f"({C_TYPE[part]})(x >> {i * part})")
        for i, each in enumerate(into)
    )
    return f"{{ u64 x = {names.value(of[0])}; {''.join(stores)} }}"


def _extreme(words):
    """min, max, and those whose result is a NaN if an operand is one."""
    return f"float{words[0].capitalize()}{'Nan' if 'NaN' in words else ''}"


def _pair(names, words, type_, args):
    one = PAIRS[type_]

    def half(i):
        bits = [f"((u16)((u32){names.value(each)} >> {16 * i}))" for each in args[1:]]
        x = [f"{TO_FLOAT[one]}({each})" for each in bits]
        if words[0] == "fma":
            return f"{ONCE[one]}((double){x[0]} * (double){x[1]} + (double){x[2]})"
        if words[0] == "neg":
            return f"(u16)({bits[0]} ^ 0x8000)"
        if words[0] == "abs":
            return f"(u16)({bits[0]} & 0x7fff)"
        if words[0] in ("min", "max"):
            result = f"{_extreme(words)}({x[0]}, {x[1]})"
        elif words[0] in ("ex2", "tanh"):
            result = f"{'exp2f' if words[0] == 'ex2' else 'tanhf'}({x[0]})"
        elif words[0] in ("add", "sub", "mul"):
            result = f"{x[0]} {SIGNS[words[0]]} {x[1]}"
        else:
            raise Untranslated("operation on pairs")
        return f"of{one.capitalize()}({result})"

    if "relu" in words:
        raise Untranslated("relu")
    return names.assign(args[0], f"(u32){half(0)} | ((u32){half(1)} << 16)")


def floats(names, words, type_, args):
    if type_ in PAIRS:
        return _pair(names, words, type_, args)
    if {"rz", "rm", "rp"} & set(words):
        raise Untranslated("rounding")
    name, top = words[0], WIDTH[type_] - 1
    bits = [names.value(each) for each in args[1:]]
    if name == "neg":
        return names.assign(args[0], f"{bits[0]} ^ ((u64)1 << {top})")
    if name == "abs":
        return names.assign(args[0], f"{bits[0]} & ~((u64)1 << {top})")
    if name == "copysign":
        sign = f"({bits[0]} & 0x80000000u)"
        return names.assign(args[0], f"({bits[1]} & 0x7fffffffu) | {sign}")
    flushed = "ftz" in words and type_ == "f32"
    x = [names.typed(type_, each) for each in args[1:]]
    if flushed:
        x = [f"flush({each})" for each in x]
    if name == "fma" and type_ in ONCE:
        result = f"(double){x[0]} * (double){x[1]} + (double){x[2]}"
        return names.assign(args[0], f"{ONCE[type_]}({result})")
    if name in ("add", "sub", "mul", "div"):
        result = f"{x[0]} {SIGNS[name]} {x[1]}"
    elif name in ("fma", "mad"):
        result = f"{'fmaf' if type_ == 'f32' else 'fma'}({', '.join(x)})"
    elif name in ("min", "max"):
        result = f"{_extreme(words)}({x[0]}, {x[1]})"
    elif type_ == "f64":  # the functions below are those of float
        raise Untranslated("function of double")
    elif name == "rcp":
        result = f"1.0f / {x[0]}"
    elif name == "rsqrt":
        result = f"(float)(1.0 / sqrt((double){x[0]}))"
    else:
        result = f"{ {'ex2': 'exp2', 'lg2': 'log2'}.get(name, name)}f({x[0]})"
    if "sat" in words:
        result = f"floatMin(floatMax({result}, 0.0f), 1.0f)"
    return names.assign(args[0], f"flush({result})" if flushed else result, type_)


def integers(names, words, type_, args):
    name, x = words[0], [names.typed(type_, each) for each in args[1:]]
    if "cc" in words or "sat" in words:
        raise Untranslated("carries and saturation")
    if name in ("add", "sub"):
        x = [f"(({unsigned(type_)}){names.value(each)})" for each in args[1:]]
        result = f"({unsigned(type_)})({x[0]} {SIGNS[name]} {x[1]})"
    elif name in ("rem", "div"):
        result = f"{x[1]} ? {x[0]} {SIGNS[name]} {x[1]} : ~0ull"
    elif name in ("min", "max"):
        result = f"{x[0]} {'<' if name == 'min' else '>'} {x[1]} ? {x[0]} : {x[1]}"
    elif name == "neg":
        result = f"-(u64){names.value(args[1])}"
    else:  # abs
        result = f"{x[0]} < 0 ? -{x[0]} : {x[0]}"
    return names.assign(args[0], result)


def multiply(names, words, type_, args):
    width, plain = WIDTH[type_], unsigned(type_)
    a, b = (names.typed(type_, each) for each in args[1:3])
    if "wide" in words:
        plain = f"u{2 * width}"
        wide = f"{'s' if type_[0] == 's' else 'u'}{2 * width}"
        result = f"({plain})(({wide}){a} * ({wide}){b})"
    elif "hi" in words:
        wide = "__int128" if type_[0] == "s" else "unsigned __int128"
        result = f"({plain})((({wide}){a} * ({wide}){b}) >> {width})"
    else:
        result = f"({plain})((u64){names.value(args[1])} * (u64){names.value(args[2])})"
    if words[0] == "mad":
        result = f"({plain})({result} + ({plain}){names.value(args[3])})"
    return names.assign(args[0], result)


def bits(names, words, type_, args):
    name, x = words[0], [names.value(each) for each in args[1:]]
    width = WIDTH[type_]
    if name in ("and", "or", "xor"):
        result = f"{x[0]} {SIGNS[name]} {x[1]}"
    elif name == "not":
        result = f"!{x[0]}" if type_ == "pred" else f"~(u64){x[0]}"
    elif name == "shl":
        result = f"shiftLeft({x[0]}, {x[1]}, {width})"
    elif name == "shr":
        kind = "Signed" if type_[0] == "s" else "Unsigned"
        result = f"shiftRight{kind}(({integer(type_)}){x[0]}, {x[1]}, {width})"
    elif name == "shf":
        both = f"((u64){x[1]} << 32 | (u32){x[0]})"
        by = f"({x[2]} & 31)" if "wrap" in words else f"({x[2]} > 32 ? 32 : {x[2]})"
        right = f"(u32)({both} >> {by})"
        result = right if "r" in words else f"(u32)(({both} << {by}) >> 32)"
    elif name == "bfe":
        kind = "Signed" if type_[0] == "s" else "Unsigned"
        result = f"extract{kind}(({integer(type_)}){x[0]}, {x[1]}, {x[2]}, {width})"
    elif name == "bfi":
        result = f"insertBits({x[0]}, {x[1]}, {x[2]}, {x[3]}, {width})"
    elif name == "popc":
        result = f"__builtin_popcountll(({unsigned(type_)}){x[0]})"
    elif name == "clz":
        zeros = f"__builtin_clzll((u64)({unsigned(type_)}){x[0]}) - {64 - width}"
        result = f"({x[0]} ? {zeros} : {width})"
    elif name == "brev":
        result = f"__builtin_bitreverse{width}({x[0]})"
    elif name == "lop3":
        result = f"lop3({', '.join(x)})"
    elif name == "prmt" and type_ == "b32":
        result = f"permuteBytes({', '.join(x)})"
    else:
        raise Untranslated("mode")
    return names.assign(args[0], result)


def dot4(names, words, type_, args):
    a, b = ("s8" if each == "s32" else "u8" for each in words[1:3])
    products = " + ".join(
        f"(s32)({a})({names.value(args[1])} >> {8 * i}) * "
        f"(s32)({b})({names.value(args[2])} >> {8 * i})"
        for i in range(4)
    )
    return names.assign(args[0], f"(u32)({products} + (s32){names.value(args[3])})")


def select(names, words, type_, args):
    condition, yes, no = (names.value(args[i]) for i in (3, 1, 2))
    return names.assign(args[0], f"{condition} ? {yes} : {no}")


def compare(names, words, type_, args):
    if type_ in PAIRS:
        raise Untranslated("comparison of pairs")
    how = words[1]
    x, y = names.typed(type_, args[1]), names.typed(type_, args[2])
    nan = f"({x} != {x} || {y} != {y})"
    if how in ("num", "nan"):
        result = f"({'!' if how == 'num' else ''}{nan})"
    elif type_ in TO_FLOAT and how.endswith("u"):
        result = f"({x} {COMPARE[how[:-1]]} {y} || {nan})"
    elif type_ in TO_FLOAT and how == "ne":
        result = f"({x} != {y} && !{nan})"
    else:
        result = f"({x} {COMPARE[how]} {y})"
    into, other = args[0].split("|"), f"!{result}"
    if words[2] in ("and", "or", "xor"):
        sign, third = SIGNS[words[2]], names.value(args[3])
        result, other = f"{result} {sign} {third}", f"({other}) {sign} {third}"
    if len(into) == 1:
        return names.assign(into[0], result)
    stores = names.assign(into[0], "p") + names.assign(into[1], "q")
    return f"{{ u8 p = {result}, q = {other}; {stores} }}"


def convert(names, words, type_, args):
    to, of = words[-2], words[-1]
    if {"rz", "rm", "rp", "relu", "pack"} & set(words):
        raise Untranslated("conversion")
    if to in PAIRS and of == "f32":
        make = f"of{PAIRS[to].capitalize()}"
        low, high = names.typed(of, args[2]), names.typed(of, args[1])
        return names.assign(args[0], f"(u32){make}({low}) | ((u32){make}({high}) << 16)")
    if to == "f16x2" and of in ("e4m3x2", "e5m2x2"):
        return names.assign(args[0], f"pairOf{of.capitalize()}({names.value(args[1])})")
    if to == "tf32":
        return names.assign(args[0], f"roundToTf32({names.value(args[1])})")
    if to in PAIRS or of in PAIRS:
        raise Untranslated("conversion of pairs")
    x = names.typed(of, args[1])
    if "ftz" in words and of == "f32":
        x = f"flush({x})"
    rounded = next((ROUND[each] for each in words if each in ROUND), "")
    if to in TO_FLOAT and of in TO_FLOAT:
        if rounded:
            x = f"{rounded}((double){x})"
        if "sat" in words:
            x = f"floatMin(floatMax({x}, 0.0f), 1.0f)"
        if of == "f64" and to in ONCE:
            return names.assign(args[0], f"{ONCE[to]}({x})")
        return names.assign(args[0], f"(float){x}" if to == "f32" else x, to)
    if to in ONCE:
        return names.assign(args[0], f"{ONCE[to]}((double){x})")
    if to in TO_FLOAT:
        return names.assign(args[0], f"(float){x}" if to == "f32" else x, to)
    signed = "s" if to[0] == "s" else "u"
    register = f"{signed}{names.width(args[0])}"
    if of in TO_FLOAT:
        whole = f"{rounded or 'trunc'}((double){x})"
        return names.assign(args[0], f"({register})toInteger{to.upper()}({whole})")
    if "sat" in words:
        raise Untranslated("saturation")
    return names.assign(args[0], f"({register})({integer(to)}){x}")


FLOAT = re.compile(r"b?f(16|32|64)(x2)?")
BOTH = ("add", "sub", "min", "max", "div", "neg", "abs")  # of floats and integers
HANDLERS = {"mov": move, "cvta": move, "dp4a": dot4, "selp": select}
HANDLERS |= {"setp": compare, "cvt": convert, "rem": integers}
HANDLERS |= dict.fromkeys(
    "fma sqrt rcp rsqrt ex2 lg2 sin cos tanh copysign".split(), floats
)
HANDLERS |= dict.fromkeys(
    "and or xor not shl shr shf bfe bfi popc clz brev lop3 prmt".split(), bits
)


def handler(name, type_):
    if name in BOTH:
        return floats if FLOAT.fullmatch(type_) else integers
    if name in ("mul", "mad"):
        return floats if FLOAT.fullmatch(type_) else multiply
    return HANDLERS.get(name)
