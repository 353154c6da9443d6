"""Text of a function of kf ops, built op by op."""

import math

import numpy as np

TYPES = {"float32": "f32", "float16": "f16", "float64": "f64",
         "bfloat16": "bf16", "bool": "i1", "int8": "i8", "uint8": "i8",
         "int16": "i16", "uint16": "i16", "int32": "i32", "uint32": "i32",
         "int64": "i64", "uint64": "i64"}


class NotExpressible(Exception):
    """The message says why."""


class Value:
    """A tensor of the function: `dtype` is numpy's name of its elements, whose
    sign MLIR's integers lack."""

    def __init__(self, name, shape, dtype):
        self.name, self.shape, self.dtype = name, tuple(shape), dtype

    @property
    def rank(self):
        return len(self.shape)

    @property
    def count(self):
        return math.prod(self.shape)

    @property
    def element(self):
        return element_type(self.dtype)

    @property
    def type(self):
        return type_text(self.shape, self.dtype)

    @property
    def is_float(self):
        return self.element in ("f16", "bf16", "f32", "f64")

    @property
    def is_signed(self):
        return not self.dtype.startswith("uint") and self.dtype != "bool"

    @property
    def bits(self):
        return int(self.element.lstrip("bfi"))


def join(parts):
    """One function that does what `parts` do, and whose each line is."""
    arguments = [(part, f"{a.name}: {a.type}")
                 for part in parts for a in part.arguments]
    results = [r for part in parts for r in part.results]
    lines = [(None, "func.func @f(")]
    lines += [(part, f"    {text}{',' * (number < len(arguments))}")
              for number, (part, text) in enumerate(arguments, 1)]
    lines.append((None, f"  ) -> ({', '.join(r.type for r in results)}) {{"))
    for part in parts:
        lines += [(part, f"  {line}") for line in part.lines]
    lines.append((None, f"  return {', '.join(r.name for r in results)} : "
                        f"{', '.join(r.type for r in results)}"))
    lines.append((None, "}"))
    return "".join(text + "\n" for _, text in lines), [p for p, _ in lines]


def element_type(dtype):
    if str(dtype) not in TYPES:
        raise NotExpressible(f"elements of {dtype}")
    return TYPES[str(dtype)]


def type_text(shape, dtype):
    return "tensor<" + "".join(f"{n}x" for n in shape) + element_type(dtype) + ">"


class Function:
    """A function, or the part of one whose values' names begin with `prefix`.
    Counts its ops but constants: with one, an ONNX op has one of ours."""

    def __init__(self, prefix=""):
        self.prefix, self.lines, self.arguments = prefix, [], []
        self.results, self.ops = [], 0

    def argument(self, shape, dtype):
        if 0 in shape:
            raise NotExpressible("a dimension of 0")
        value = Value(f"%{self.prefix}arg{len(self.arguments)}", shape,
                      str(dtype))
        self.arguments.append(value)
        return value

    def emit(self, text, shape, dtype, counts=True):
        if 0 in shape:
            raise NotExpressible("a dimension of 0")
        value = Value(f"%{self.prefix}v{len(self.lines)}", shape, str(dtype))
        self.lines.append(f"{value.name} = {text}")
        self.ops += counts
        return value

    # Constants.

    def constant(self, number, shape, dtype):
        """All elements are `number`."""
        element = element_type(dtype)
        if element == "i1":
            text = "true" if number else "false"
        elif element[0] == "i":
            text = str(int(number))
        else:
            text = float_text(number, element)
        return self.emit(f"arith.constant dense<{text}> : "
                         f"{type_text(shape, dtype)}", shape, dtype, False)

    def like(self, number, x):
        return self.constant(number, x.shape, x.dtype)

    def list(self, numbers, dtype):
        element = element_type(dtype)
        texts = [float_text(n, element) if element[0] != "i" else str(int(n))
                 for n in numbers]
        return self.emit(f"arith.constant dense<[{', '.join(texts)}]> : "
                         f"{type_text((len(texts),), dtype)}", (len(texts),),
                         dtype, False)

    # Elementwise.

    def op(self, name, *operands):
        """An op whose result has the type of its operands."""
        x = operands[0]
        names = ", ".join(o.name for o in operands)
        return self.emit(f"{name} {names} : {x.type}", x.shape, x.dtype)

    def binary(self, of_float, of_int, x, y, of_unsigned=None):
        name = of_float if x.is_float else of_int
        if of_unsigned and not x.is_float and not x.is_signed:
            name = of_unsigned
        return self.op(name, x, y)

    def compare(self, predicate, x, y):
        """`predicate` is eq, ne, lt, le, gt or ge."""
        if x.is_float:
            name = "cmpf " + ("une" if predicate == "ne" else "o" + predicate)
        elif predicate in ("eq", "ne"):
            name = "cmpi " + predicate
        else:
            name = "cmpi " + ("s" if x.is_signed else "u") + predicate
        return self.emit(f"arith.{name}, {x.name}, {y.name} : {x.type}",
                         x.shape, "bool")

    def select(self, condition, x, y):
        return self.emit(f"arith.select {condition.name}, {x.name}, {y.name} : "
                         f"{condition.type}, {x.type}", x.shape, x.dtype)

    def test(self, name, x):
        return self.emit(f"{name} {x.name} : {x.type}", x.shape, "bool")

    def activation(self, kind, x):
        return self.emit(f"kf.activation({kind}) {x.name} : {x.type}", x.shape,
                         x.dtype)

    def cast(self, x, dtype):
        """Numbers of `x` as `dtype`, as ONNX's Cast has them."""
        dtype = str(dtype)
        to = element_type(dtype)
        if to == x.element and (to != "i1" and x.dtype != "bool"):
            return Value(x.name, x.shape, dtype)
        if to == x.element:
            return x
        is_float = to[0] in "fb"
        if to == "i1":
            return self.compare("ne", x, self.like(0, x))
        if is_float and x.is_float:
            width = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
            if width[to] == width[x.element]:
                return self.cast(self.cast(x, "float32"), dtype)
            name = "extf" if width[to] > width[x.element] else "truncf"
        elif is_float:
            name = "sitofp" if x.is_signed else "uitofp"
        elif x.is_float:
            name = "fptoui" if dtype.startswith("uint") else "fptosi"
        elif int(to[1:]) > x.bits:
            name = "extsi" if x.is_signed else "extui"
        else:
            name = "trunci"
        return self.emit(f"arith.{name} {x.name} : {x.type} to "
                         f"{type_text(x.shape, dtype)}", x.shape, dtype)

    # Views.

    def copy(self, x):
        return self.op("kf.copy", x)

    def broadcast(self, x, shape):
        shape = tuple(shape)
        if x.shape == shape:
            return x
        return self.emit(f"kf.broadcast {x.name} : {x.type} to "
                         f"{type_text(shape, x.dtype)}", shape, x.dtype)

    def common(self, *values):
        """Broadcast to the shape that all of them have in common."""
        shape = np.broadcast_shapes(*[v.shape for v in values])
        return [self.broadcast(v, shape) for v in values]

    def transpose(self, x, permutation):
        permutation = list(permutation)
        if permutation == list(range(x.rank)):
            return x
        return self.emit(f"kf.transpose {x.name} permutation = {permutation} : "
                         f"{x.type}", [x.shape[d] for d in permutation], x.dtype)

    def collapse(self, x, shape, groups):
        return self.emit(f"tensor.collapse_shape {x.name} {groups} : {x.type} "
                         f"into {type_text(shape, x.dtype)}", shape, x.dtype)

    def expand(self, x, shape, groups):
        return self.emit(f"tensor.expand_shape {x.name} {groups} output_shape "
                         f"{list(shape)} : {x.type} into "
                         f"{type_text(shape, x.dtype)}", shape, x.dtype)

    def reshape(self, x, shape):
        shape = tuple(int(n) for n in shape)
        if shape == x.shape:
            return x
        if 0 in shape:
            raise NotExpressible("a dimension of 0")
        groups = grouping(x.shape, shape)
        if groups is not None:
            return self.collapse(x, shape, groups)
        groups = grouping(shape, x.shape)
        if groups is not None:
            return self.expand(x, shape, groups)
        flat = self.collapse(x, (x.count,), [list(range(x.rank))])
        return self.expand(flat, shape, [list(range(len(shape)))])

    def slice(self, x, offsets, sizes, strides=None):
        strides = strides or [1] * x.rank
        return self.emit(f"tensor.extract_slice {x.name}{list(offsets)} "
                         f"{list(sizes)} {list(strides)} : {x.type} to "
                         f"{type_text(sizes, x.dtype)}", sizes, x.dtype)

    def part(self, x, dim, offset, size, stride=1):
        offsets, sizes, strides = [0] * x.rank, list(x.shape), [1] * x.rank
        offsets[dim], sizes[dim], strides[dim] = offset, size, stride
        return self.slice(x, offsets, sizes, strides)

    def concat(self, values, dim):
        shape = list(values[0].shape)
        shape[dim] = sum(v.shape[dim] for v in values)
        names = ", ".join(v.name for v in values)
        types = ", ".join(v.type for v in values)
        return self.emit(f"tensor.concat dim({dim}) {names} : ({types}) -> "
                         f"{type_text(shape, values[0].dtype)}", shape,
                         values[0].dtype)

    def iota(self, shape, dim, dtype="int64"):
        return self.emit(f"kf.iota dim = {dim} : {type_text(shape, dtype)}",
                         shape, dtype)

    # Reductions, norms, products.

    def reduce(self, kind, x, dims, keep=True):
        dims = sorted(d % x.rank for d in dims)
        shape = [1 if d in dims else n for d, n in enumerate(x.shape)
                 if keep or d not in dims]
        text = " keep_dims" if keep else ""
        return self.emit(f"kf.reduce({kind}) {x.name} dims = {dims}{text} : "
                         f"{x.type}", shape, x.dtype)

    def softmax(self, x):
        return self.emit(f"kf.softmax {x.name} : {x.type}", x.shape, x.dtype)

    def matmul(self, x, w):
        shape = x.shape[:-1] + (w.shape[-2],)
        return self.emit(f"kf.matmul {x.name}, {w.name} : {x.type}, {w.type}",
                         shape, x.dtype)


def float_text(number, element):
    number = float(number)
    if math.isfinite(number):
        text = repr(number)
        mantissa, _, exponent = text.partition("e")
        if "." not in mantissa:
            mantissa += ".0"
        return mantissa + ("e" + exponent if exponent else "")
    bits = {"f16": ("7C00", "FC00", "7E00"), "bf16": ("7F80", "FF80", "7FC0"),
            "f32": ("7F800000", "FF800000", "7FC00000"),
            "f64": ("7FF0000000000000", "FFF0000000000000",
                    "7FF8000000000000")}[element]
    return "0x" + bits[2 if math.isnan(number) else number < 0]


def grouping(large, small):
    """How dimensions of `large` make up those of `small`, or None."""
    if len(large) <= len(small):
        return None
    if not small:
        return [] if math.prod(large) == 1 else None
    groups, at = [], 0
    for number, extent in enumerate(small):
        group, product = [], 1
        while at < len(large) and (product < extent or not group):
            product *= large[at]
            group.append(at)
            at += 1
        left = len(small) - number - 1
        while (at < len(large) and large[at] == 1 and
               len(large) - at > left):
            if left and small[number + 1] == 1 and len(large) - at <= left:
                break
            group.append(at)
            at += 1
        if product != extent:
            return None
        groups.append(group)
    return groups if at == len(large) else None
