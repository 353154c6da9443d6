"""Operands of PTX as expressions of C. Every register is an unsigned integer of
its width; typed() gives it the meaning that an instruction's type says."""

import re

WIDTH = {"pred": 1, "b8": 8, "u8": 8, "s8": 8, "e4m3x2": 16, "e5m2x2": 16, "tf32": 32}
WIDTH |= {f"{kind}{bits}": bits for kind in "bus" for bits in (16, 32, 64)}
WIDTH |= {"f16": 16, "bf16": 16, "f32": 32, "f16x2": 32, "bf16x2": 32, "f64": 64}
C_TYPE = {1: "u8", 8: "u8", 16: "u16", 32: "u32", 64: "u64"}

# Functions of KernelRuntime.h that make floats of bits, and bits of floats.
TO_FLOAT = {"f32": "toF32", "f64": "toF64", "f16": "toF16", "bf16": "toBf16"}
FROM_FLOAT = {"f32": "ofF32", "f64": "ofF64", "f16": "ofF16", "bf16": "ofBf16"}

VECTORS = {  # special registers with x, y and z
    "%tid": "t->tid",
    "%ntid": "t->ntid",
    "%ctaid": "t->ctaid",
    "%nctaid": "t->nctaid",
    "%cluster_ctaid": "t->clusterCtaid",
    "%cluster_nctaid": "t->clusterNctaid",
    "%clusterid": "t->clusterid",
    "%nclusterid": "t->nclusterid",
}
SPECIAL = {
    "%laneid": "t->lane",
    "%warpid": "t->warp",
    "%cluster_ctarank": "t->clusterRank",
    "%cluster_nctarank": "t->clusterSize",
    "%lanemask_lt": "((1u << t->lane) - 1)",
    "%globaltimer": "0ull",  # time stands still
    "%clock64": "0ull",
}


class Untranslated(Exception):
    """What this translator does not know."""


def split(text):
    """Operands between commas, of which those in brackets do not count."""
    found, depth, current = [], 0, ""
    for char in text:
        depth += (char in "{[(") - (char in "}])")
        if char == "," and depth == 0:
            found.append(current.strip())
            current = ""
        else:
            current += char
    return found + [current.strip()] if current.strip() else found


def elements(operand):
    """{a, b} as a list, a as a list of one."""
    operand = operand.strip()
    if not operand.startswith("{"):
        return [operand]
    return [each.strip() for each in operand[1:-1].split(",")]


def unsigned(type_):
    return f"u{WIDTH[type_]}"


def integer(type_):
    """The C type of an integer, signed where PTX says so."""
    return ("s" if type_[0] == "s" else "u") + str(WIDTH[type_])


class Operands:
    """What names stand for: registers by scope, variables by space."""

    def __init__(self):
        self.scopes = [{}]
        self.shared = {}  # name -> offset from the workgroup's memory
        self.dynamic = None  # the name of dynamic shared memory
        self.variables = set()  # global, const and local ones
        self.parameters = []  # (name, bytes)

    def width(self, register):
        for scope in reversed(self.scopes):
            if register in scope:
                return scope[register]
            numbered = re.fullmatch(r"(%[A-Za-z_]+)\d+", register)
            if numbered and numbered[1] + "*" in scope:
                return scope[numbered[1] + "*"]
        raise Untranslated(f"unknown register {register}")

    @staticmethod
    def name(register):
        return "r_" + register.lstrip("%").replace("$", "_")

    def value(self, operand):
        """The bits of a register or a constant, or an address."""
        operand = operand.strip()
        if found := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", operand):
            return f"0x{found[1]}u"
        if found := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", operand):
            return f"0x{found[1]}ull"
        if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)U?", operand):
            number = int(operand.rstrip("U"), 0)
            if abs(number) > 0x7FFFFFFF:
                return f"({number & 0xFFFFFFFFFFFFFFFF}ull)"
            return f"({number})"
        if operand.startswith("!"):
            return f"(!{self.value(operand[1:])})"
        if found := re.fullmatch(r"(%\w+)\.([xyz])", operand):
            return f"{VECTORS[found[1]]}[{'xyz'.index(found[2])}]"
        if operand in SPECIAL:
            return SPECIAL[operand]
        if operand.startswith("%") or any(operand in scope for scope in self.scopes):
            self.width(operand)  # it has to be declared
            return self.name(operand)
        if operand == self.dynamic:
            return "(t->shared)"
        if operand in self.shared:
            return f"(t->shared + {self.shared[operand]})"
        if operand in self.variables:
            return f"((u64)v_{operand})"
        raise Untranslated(f"unknown operand {operand}")

    def address(self, operand):
        """[register or variable + offset]"""
        found = re.fullmatch(
            r"\[\s*([^\]+\-]+?)\s*([+-]\s*-?\w+)?\s*\]", operand.strip()
        )
        if not found:
            raise Untranslated(f"address {operand}")
        offset = (found[2] or "").replace(" ", "").replace("+-", "-")
        if re.fullmatch(r"\d+", found[1]):
            return f"((u64){found[1]})"
        return f"((u64){self.value(found[1])}{offset})"

    def typed(self, type_, operand):
        value = self.value(operand)
        if type_ in TO_FLOAT:
            return f"{TO_FLOAT[type_]}({value})"
        return value if type_ == "pred" else f"(({integer(type_)}){value})"

    def assign(self, register, expression, type_=None):
        """A statement; a float type says that the expression is a float."""
        if register == "_":
            return f"(void)({expression});"
        if type_ in FROM_FLOAT:
            expression = f"{FROM_FLOAT[type_]}({expression})"
        width = self.width(register)
        if width == 1:
            return f"{self.name(register)} = ({expression}) != 0;"
        return f"{self.name(register)} = ({C_TYPE[width]})({expression});"

    def assign_all(self, registers, array):
        return "".join(
            self.assign(each, f"{array}[{i}]") for i, each in enumerate(registers)
        )
