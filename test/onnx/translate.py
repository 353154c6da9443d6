"""ONNX ops as functions of kf ops."""

import math

import numpy as np
import onnx

from function import Function, NotExpressible, element_type, type_text

OPS = {}


class Translation:
    """`function` with its inputs' arrays and what its results should be."""

    def __init__(self, function, inputs, expected):
        self.function, self.inputs = function, inputs
        self.expected = expected

    @property
    def as_is(self):
        return self.function.ops <= 1


class Node:
    """A node while it is translated: its attributes, the values of its inputs,
    and those of them that the function takes."""

    def __init__(self, node, opset, values, expected, prefix):
        self.opset, self.values, self.expected = opset, values, expected
        self.outputs = list(node.output)
        self.attributes = {a.name: onnx.helper.get_attribute_value(a)
                           for a in node.attribute}
        self.f, self.inputs, self.taken = Function(prefix), [], {}

    def get(self, name, default=None):
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def has(self, number):
        return number < len(self.values) and self.values[number] is not None

    def x(self, number=0):
        """Input `number` as a tensor of the function."""
        if number not in self.taken:
            array = self.values[number]
            if array is None:
                raise NotExpressible("an input that is left out")
            self.taken[number] = self.f.argument(array.shape, array.dtype)
            self.inputs.append(array)
        return self.taken[number]

    def known(self, number, default=None):
        """Input `number` as numbers that the function is written for."""
        return self.values[number] if self.has(number) else default

    def ints(self, number, name, default=None):
        """Of an input, or in older opsets of an attribute."""
        if self.has(number):
            return [int(v) for v in np.ravel(self.values[number])]
        return self.get(name, default)


def op(*names):
    def register(fn):
        for name in names:
            OPS[name] = fn
        return fn
    return register


def translate(node, opset, values, expected, prefix=""):
    n = Node(node, opset, values, expected, prefix)
    results = OPS[node.op_type](n)
    if not isinstance(results, (list, tuple)):
        results = [results]
    wanted, arrays = [], iter(expected)
    for number, name in enumerate(n.outputs):
        if not name:
            continue
        array = next(arrays)
        if number >= len(results):
            raise NotExpressible("outputs beside the first")
        result = results[number]
        # What .npy files lack.
        if result.element == "bf16":
            result = n.f.cast(result, "float32")
        wanted.append(array)
        n.f.results.append(result)
    return Translation(n.f, n.inputs, wanted)


# Elementwise.


def unary(name, build):
    OPS[name] = lambda n: build(n.f, n.x())


def of_op(kf_name):
    return lambda f, x: f.op(kf_name, x)


for onnx_name, kf_name in {
        "Ceil": "math.ceil", "Floor": "math.floor", "Round": "math.roundeven",
        "Exp": "math.exp", "Log": "math.log", "Sqrt": "math.sqrt",
        "Sin": "math.sin", "Cos": "math.cos", "Tan": "math.tan",
        "Asin": "math.asin", "Acos": "math.acos", "Atan": "math.atan",
        "Sinh": "math.sinh", "Cosh": "math.cosh", "Tanh": "math.tanh",
        "Asinh": "math.asinh", "Acosh": "math.acosh", "Atanh": "math.atanh",
        "Erf": "math.erf"}.items():
    unary(onnx_name, of_op(kf_name))

unary("Abs", lambda f, x: f.op("math.absf" if x.is_float else "math.absi", x))
unary("Neg", lambda f, x: f.op("arith.negf", x) if x.is_float else
      f.op("arith.subi", f.like(0, x), x))
unary("Reciprocal", lambda f, x: f.op("arith.divf", f.like(1, x), x))
unary("Identity", lambda f, x: f.copy(x))
unary("Relu", lambda f, x: f.activation("relu", x)
      if x.element != "f64" else f.op("arith.maximumf", x, f.like(0, x)))
unary("Not", lambda f, x: f.op("arith.xori", x, f.like(1, x)))
unary("BitwiseNot", lambda f, x: f.op("arith.xori", x, f.like(-1, x)))
unary("IsNaN", lambda f, x: f.test("math.isnan", x))
unary("Softplus", lambda f, x: f.op("math.log1p", f.op("math.exp", x)))
unary("Softsign", lambda f, x: f.op(
    "arith.divf", x, f.op("arith.addf", f.op("math.absf", x), f.like(1, x))))
unary("HardSwish", lambda f, x: f.op(
    "arith.mulf", x, clamp(f, f.op("arith.addf", f.op(
        "arith.mulf", x, f.like(1 / 6, x)), f.like(0.5, x)), 0, 1)))
unary("Mish", lambda f, x: f.op("arith.mulf", x, f.op("math.tanh", f.op(
    "math.log1p", f.op("math.exp", x)))))


def clamp(f, x, low, high):
    return f.op("arith.minimumf", f.op("arith.maximumf", x, f.like(low, x)),
                f.like(high, x))


def sigmoid(f, x):
    exp = f.op("math.exp", f.op("arith.negf", x))
    return f.op("arith.divf", f.like(1, x), f.op("arith.addf", f.like(1, x), exp))


unary("Sigmoid", sigmoid)


def swish(f, x, alpha):
    if alpha == 1 and x.element != "f64":
        return f.activation("silu", x)
    return f.op("arith.mulf", x, sigmoid(f, f.op("arith.mulf", x,
                                                 f.like(alpha, x))))


@op("Swish")
def translate_swish(n):
    return swish(n.f, n.x(), n.get("alpha", 1.0))


@op("SwiGLU")
def translate_swiglu(n):
    return n.f.op("arith.mulf", swish(n.f, n.x(0), n.get("alpha", 1.0)), n.x(1))


@op("Sign")
def sign(n):
    f, x = n.f, n.x()
    one, zero, minus = f.like(1, x), f.like(0, x), f.like(-1, x)
    if not x.is_float and not x.is_signed:
        return f.select(f.compare("ne", x, zero), one, zero)
    negative = f.select(f.compare("lt", x, zero), minus,
                        x if x.is_float else zero)
    return f.select(f.compare("gt", x, zero), one, negative)


@op("Gelu")
def gelu(n):
    tanh = n.get("approximate", "none") == "tanh"
    return n.f.activation("gelu_tanh" if tanh else "gelu", n.x())


@op("IsInf")
def isinf(n):
    f, x = n.f, n.x()
    if n.get("detect_negative", 1) and n.get("detect_positive", 1):
        return f.test("math.isinf", x)
    sign = 1 if n.get("detect_positive", 1) else -1
    return f.compare("eq", x, f.like(sign * math.inf, x))


def exponential_unit(f, x, alpha, gamma=1.0, scale=1.0):
    """gamma * (x where it is positive, else alpha * (exp(x / scale) - 1))"""
    inner = x if scale == 1 else f.op("arith.mulf", x, f.like(1 / scale, x))
    low = f.op("arith.mulf", f.op("math.expm1", inner), f.like(alpha, x))
    result = f.select(f.compare("gt", x, f.like(0, x)), x, low)
    return result if gamma == 1 else f.op("arith.mulf", result,
                                          f.like(gamma, x))


@op("Elu")
def elu(n):
    return exponential_unit(n.f, n.x(), n.get("alpha", 1.0))


@op("Celu")
def celu(n):
    alpha = n.get("alpha", 1.0)
    return exponential_unit(n.f, n.x(), alpha, 1.0, alpha)


@op("Selu")
def selu(n):
    return exponential_unit(n.f, n.x(), n.get("alpha", 1.67326319217681884765625),
                            n.get("gamma", 1.05070102214813232421875))


@op("LeakyRelu", "PRelu")
def leaky_relu(n):
    f, x = n.f, n.x()
    if n.has(1):
        slope = f.broadcast(n.x(1), x.shape)
    else:
        slope = f.like(n.get("alpha", 0.01), x)
    zero = f.like(0, x)
    return f.select(f.compare("lt", x, zero),
                    f.binary("arith.mulf", "arith.muli", x, slope), x)


@op("ThresholdedRelu")
def thresholded_relu(n):
    f, x = n.f, n.x()
    above = f.compare("gt", x, f.like(n.get("alpha", 1.0), x))
    return f.select(above, x, f.like(0, x))


@op("HardSigmoid")
def hard_sigmoid(n):
    f, x = n.f, n.x()
    line = f.op("arith.addf", f.op("arith.mulf", x,
                                   f.like(n.get("alpha", 0.2), x)),
                f.like(n.get("beta", 0.5), x))
    return clamp(f, line, 0, 1)


@op("Shrink")
def shrink(n):
    f, x = n.f, n.x()
    limit, bias = n.get("lambd", 0.5), n.get("bias", 0.0)
    if not x.is_float:
        raise NotExpressible("Shrink of integers")
    low = f.op("arith.addf", x, f.like(bias, x))
    high = f.op("arith.subf", x, f.like(bias, x))
    inner = f.select(f.compare("gt", x, f.like(limit, x)), high, f.like(0, x))
    return f.select(f.compare("lt", x, f.like(-limit, x)), low, inner)


@op("Clip")
def clip(n):
    f, x = n.f, n.x()
    bounds = {1: ("arith.maximumf", "arith.maxsi", "arith.maxui"),
              2: ("arith.minimumf", "arith.minsi", "arith.minui")}
    result = x
    for number, names in bounds.items():
        if n.has(number):
            bound = f.broadcast(n.x(number), x.shape)
        elif n.get(("min", "max")[number - 1]) is not None:
            bound = f.like(n.get(("min", "max")[number - 1]), x)
        else:
            continue
        result = f.binary(names[0], names[1], result, bound, names[2])
    return f.copy(x) if result is x else result


def binary(name, of_float, of_int, of_unsigned=None):
    OPS[name] = lambda n: n.f.binary(of_float, of_int, *n.f.common(n.x(0), n.x(1)),
                                     of_unsigned)


binary("Add", "arith.addf", "arith.addi")
binary("Sub", "arith.subf", "arith.subi")
binary("Mul", "arith.mulf", "arith.muli")
binary("Div", "arith.divf", "arith.divsi", "arith.divui")
for logic in ("And", "Or", "Xor"):
    for prefix in ("", "Bitwise"):
        binary(prefix + logic, None, f"arith.{logic.lower()}i")


@op("BitShift")
def bit_shift(n):
    name = "arith.shrsi" if n.x().is_signed else "arith.shrui"
    if n.get("direction") == "LEFT":
        name = "arith.shli"
    return n.f.op(name, *n.f.common(n.x(0), n.x(1)))


@op("Mod")
def mod(n):
    f = n.f
    x, y = f.common(n.x(0), n.x(1))
    if x.is_float and not n.get("fmod", 0):
        raise NotExpressible("ONNX has no such Mod of floats")
    if n.get("fmod", 0) or not x.is_signed:
        return f.binary("arith.remf", "arith.remsi", x, y, "arith.remui")
    floor = f.op("arith.floordivsi", x, y)
    return f.op("arith.subi", x, f.op("arith.muli", floor, y))


@op("Pow")
def power(n):
    f = n.f
    x, y = f.common(n.x(0), n.x(1))
    if x.is_float:
        return f.op("math.powf", x, f.cast(y, x.dtype))
    wide = "float64" if x.bits == 64 else "float32"
    result = f.op("math.powf", f.cast(x, wide), f.cast(y, wide))
    if not y.is_float:
        result = f.op("math.roundeven", result)
    return f.cast(result, x.dtype)


def chain(n, *names):
    f = n.f
    values = f.common(*[n.x(i) for i in range(len(n.values))])
    result = values[0]
    for value in values[1:]:
        result = f.binary(names[0], names[1], result, value, names[2])
    return result if len(values) > 1 else f.copy(result)


OPS["Sum"] = lambda n: chain(n, "arith.addf", "arith.addi", None)
OPS["Max"] = lambda n: chain(n, "arith.maximumf", "arith.maxsi", "arith.maxui")
OPS["Min"] = lambda n: chain(n, "arith.minimumf", "arith.minsi", "arith.minui")


@op("Mean")
def mean(n):
    total = chain(n, "arith.addf", "arith.addi", None)
    count = len(n.values)
    return total if count == 1 else n.f.op("arith.mulf", total,
                                           n.f.like(1 / count, total))


def comparison(name, predicate):
    OPS[name] = lambda n: n.f.compare(predicate, *n.f.common(n.x(0), n.x(1)))


for name, predicate in {"Equal": "eq", "Less": "lt", "LessOrEqual": "le",
                        "Greater": "gt", "GreaterOrEqual": "ge"}.items():
    comparison(name, predicate)


@op("Where")
def where(n):
    return n.f.select(*n.f.common(n.x(0), n.x(1), n.x(2)))


@op("Cast", "CastLike")
def cast(n):
    target = str(n.expected[0].dtype)
    result = n.f.cast(n.x(), target)
    return n.f.copy(result) if n.f.ops == 0 else result


@op("BitCast")
def bitcast(n):
    f, x, dtype = n.f, n.x(), str(n.expected[0].dtype)
    if "i1" in (x.element, element_type(dtype)) and dtype != x.dtype:
        raise NotExpressible("bytes of bool, which has a bit")
    if x.element == element_type(dtype):
        result = f.copy(x)
        result.dtype = dtype
        return result
    return f.emit(f"arith.bitcast {x.name} : {x.type} to "
                  f"{type_text(x.shape, dtype)}", x.shape, dtype)


# Reductions.


def reduced(n):
    """(dimensions, whether they are kept), or None where none is reduced"""
    axes = n.ints(1, "axes")
    rank = n.x().rank
    if not axes:
        if n.get("noop_with_empty_axes", 0) or rank == 0:
            return None
        axes = list(range(rank))
    return axes, bool(n.get("keepdims", 1))


def reduction(name, kind, before=None, after=None):
    def build(n):
        f, x = n.f, n.x()
        value = before(f, x) if before else x
        how = reduced(n)
        if how:
            value = f.reduce(kind, value, *how)
        elif not before and not after:
            return f.copy(x)
        return after(f, value) if after else value
    OPS[name] = build


square = lambda f, x: f.binary("arith.mulf", "arith.muli", x, x)
magnitude = lambda f, x: f.op("math.absf" if x.is_float else "math.absi", x)
reduction("ReduceSum", "sum")
reduction("ReduceMean", "mean")
reduction("ReduceMax", "max")
reduction("ReduceMin", "min")
reduction("ReduceProd", "prod")
reduction("ReduceL1", "sum", magnitude)
reduction("ReduceSumSquare", "sum", square)
reduction("ReduceL2", "sum", square, of_op("math.sqrt"))
reduction("ReduceLogSum", "sum", None, of_op("math.log"))


@op("ReduceLogSumExp")
def log_sum_exp(n):
    f, x, how = n.f, n.x(), reduced(n)
    if not how:
        return f.copy(x)
    axes, keep = how
    top = f.reduce("max", x, axes)
    exp = f.op("math.exp", f.op("arith.subf", x, f.broadcast(top, x.shape)))
    total = f.op("math.log", f.reduce("sum", exp, axes))
    result = f.op("arith.addf", top, total)
    if keep:
        return result
    dims = [a % x.rank for a in axes]
    return f.reshape(result, [s for d, s in enumerate(x.shape) if d not in dims])


OPS["GlobalAveragePool"] = lambda n: n.f.reduce("mean", n.x(),
                                                range(2, n.x().rank))
OPS["GlobalMaxPool"] = lambda n: n.f.reduce("max", n.x(), range(2, n.x().rank))


def arg_extreme(name, kind):
    def build(n):
        f, x = n.f, n.x()
        axis = n.get("axis", 0) % x.rank
        best = f.broadcast(f.reduce(kind, x, [axis]), x.shape)
        index = f.iota(x.shape, axis)
        last = n.get("select_last_index", 0)
        other = f.like(-1 if last else x.shape[axis], index)
        hits = f.select(f.compare("eq", x, best), index, other)
        return f.reduce("max" if last else "min", hits, [axis],
                        bool(n.get("keepdims", 1)))
    OPS[name] = build


arg_extreme("ArgMax", "max")
arg_extreme("ArgMin", "min")


# Norms.


def last_axis(n, x, axis):
    """`x` with dimension `axis` last, and the way back."""
    axis %= x.rank
    order = [d for d in range(x.rank) if d != axis] + [axis]
    back = [order.index(d) for d in range(x.rank)]
    return n.f.transpose(x, order), lambda y: n.f.transpose(y, back)


def softmax_rows(n, build):
    f, x = n.f, n.x()
    axis = n.get("axis", -1 if n.opset >= 13 else 1)
    if n.opset < 13:
        axis %= x.rank
        flat = f.reshape(x, (math.prod(x.shape[:axis]),
                             math.prod(x.shape[axis:])))
        return f.reshape(build(f, flat), x.shape)
    rows, back = last_axis(n, x, axis)
    return back(build(f, rows))


OPS["Softmax"] = lambda n: softmax_rows(n, lambda f, x: f.softmax(x))


def log_softmax(f, x):
    top = f.broadcast(f.reduce("max", x, [-1]), x.shape)
    centered = f.op("arith.subf", x, top)
    total = f.reduce("sum", f.op("math.exp", centered), [-1])
    return f.op("arith.subf", centered,
                f.broadcast(f.op("math.log", total), x.shape))


OPS["LogSoftmax"] = lambda n: softmax_rows(n, log_softmax)


@op("Hardmax")
def hardmax(n):
    f, x = n.f, n.x()
    axis = n.get("axis", -1) % x.rank
    index = f.iota(x.shape, axis)
    best = f.broadcast(f.reduce("max", x, [axis]), x.shape)
    hits = f.select(f.compare("eq", x, best), index,
                    f.like(x.shape[axis], index))
    first = f.broadcast(f.reduce("min", hits, [axis]), x.shape)
    return f.cast(f.compare("eq", index, first), x.dtype)


@op("LayerNormalization")
def layer_norm(n):
    f, x = n.f, n.x()
    axis = n.get("axis", -1) % x.rank
    eps = n.get("epsilon", 1e-5)
    rows = flatten_from(f, x, axis)
    columns = rows.shape[-1]
    weight = f.reshape(n.x(1), (columns,))
    bias = f.reshape(n.x(2), (columns,)) if n.has(2) else None
    names = f"{rows.name}, {weight.name}"
    types = f"{rows.type}, {weight.type}"
    if bias:
        names, types = f"{names} bias({bias.name})", f"{types}, {bias.type}"
    y = f.emit(f"kf.layer_norm {names} eps({eps:e}) : {types}", rows.shape,
               rows.dtype)
    results = [f.reshape(y, x.shape)]
    if len(n.outputs) > 1:
        dims = range(axis, x.rank)
        center = f.reduce("mean", x, dims)
        shifted = f.op("arith.subf", x, f.broadcast(center, x.shape))
        variance = f.reduce("mean", square(f, shifted), dims)
        root = f.op("math.rsqrt", f.op("arith.addf", variance,
                                       f.like(eps, variance)))
        results += [center, root]
    return results


def flatten_from(f, x, axis):
    """All dimensions from `axis` on as one."""
    if axis == x.rank - 1:
        return x
    return f.reshape(x, x.shape[:axis] + (math.prod(x.shape[axis:]),))


@op("RMSNormalization")
def rms_norm(n):
    f, x = n.f, n.x()
    rows = flatten_from(f, x, n.get("axis", -1) % x.rank)
    weight = f.reshape(n.x(1), (rows.shape[-1],))
    y = f.emit(f"kf.rms_norm {rows.name}, {weight.name} "
               f"eps({n.get('epsilon', 1e-5):e}) : {rows.type}, {weight.type}",
               rows.shape, rows.dtype)
    return f.reshape(y, x.shape)


def normalize(f, x, dims, eps):
    center = f.broadcast(f.reduce("mean", x, dims), x.shape)
    shifted = f.op("arith.subf", x, center)
    variance = f.reduce("mean", square(f, shifted), dims)
    root = f.op("math.rsqrt", f.op("arith.addf", variance,
                                   f.like(eps, variance)))
    return f.op("arith.mulf", shifted, f.broadcast(root, x.shape))


def per_channel(f, value, x):
    return f.broadcast(f.reshape(value, value.shape + (1,) * (x.rank - 2)),
                       x.shape)


def scale_and_shift(n, y, x):
    f = n.f
    return f.op("arith.addf", f.op("arith.mulf", y, per_channel(f, n.x(1), x)),
                per_channel(f, n.x(2), x))


@op("InstanceNormalization")
def instance_norm(n):
    x = n.x()
    y = normalize(n.f, x, range(2, x.rank), n.get("epsilon", 1e-5))
    return scale_and_shift(n, y, x)


@op("GroupNormalization")
def group_norm(n):
    f, x = n.f, n.x()
    groups = n.get("num_groups")
    split = f.reshape(x, (x.shape[0], groups, x.shape[1] // groups) + x.shape[2:])
    y = normalize(f, split, range(2, split.rank), n.get("epsilon", 1e-5))
    return scale_and_shift(n, f.reshape(y, x.shape), x)


@op("BatchNormalization")
def batch_norm(n):
    f, x = n.f, n.x()
    if n.get("training_mode", 0):
        raise NotExpressible("training")
    mean, variance = n.x(3), n.x(4)
    root = f.op("math.rsqrt", f.op("arith.addf", variance,
                                   f.like(n.get("epsilon", 1e-5), variance)))
    shifted = f.op("arith.subf", x, per_channel(f, mean, x))
    y = f.op("arith.mulf", shifted, per_channel(f, root, x))
    return scale_and_shift(n, y, x)


@op("LpNormalization")
def lp_norm(n):
    f, x = n.f, n.x()
    axis, p = n.get("axis", -1) % x.rank, n.get("p", 2)
    if p == 1:
        norm = f.reduce("sum", magnitude(f, x), [axis])
    else:
        norm = f.op("math.sqrt", f.reduce("sum", square(f, x), [axis]))
    isZero = f.compare("eq", norm, f.like(0, norm))
    safe = f.select(isZero, f.like(1, norm), norm)
    return f.op("arith.divf", x, f.broadcast(safe, x.shape))


@op("MeanVarianceNormalization")
def mean_variance(n):
    f, x = n.f, n.x()
    return normalize(f, x, n.get("axes", [0, 2, 3]), 1e-18)


# Shapes.


@op("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def reshape(n):
    result = n.f.reshape(n.x(), n.expected[0].shape)
    return n.f.copy(result) if n.f.ops == 0 else result


@op("Transpose")
def transpose(n):
    x = n.x()
    result = n.f.transpose(x, n.get("perm", list(range(x.rank))[::-1]))
    return n.f.copy(result) if n.f.ops == 0 else result


@op("Concat")
def concat(n):
    values = [n.x(i) for i in range(len(n.values))]
    return n.f.concat(values, n.get("axis") % values[0].rank)


@op("Expand")
def expand(n):
    f, x = n.f, n.x()
    shape = np.broadcast_shapes(x.shape, tuple(int(v) for v in n.known(1)))
    return f.broadcast(x, shape) if shape != x.shape else f.copy(x)


@op("Tile")
def tile(n):
    f, x = n.f, n.x()
    repeats = [int(v) for v in n.known(1)]
    inner = [v for pair in zip([1] * x.rank, x.shape) for v in pair]
    outer = [v for pair in zip(repeats, x.shape) for v in pair]
    return f.reshape(f.broadcast(f.reshape(x, inner), outer),
                     [r * s for r, s in zip(repeats, x.shape)])


@op("Slice")
def slice_of(n):
    f, x = n.f, n.x()
    starts, ends = n.ints(1, "starts"), n.ints(2, "ends")
    axes = n.ints(3, "axes") or list(range(len(starts)))
    steps = n.ints(4, "steps") or [1] * len(starts)
    offsets, sizes, strides = [0] * x.rank, list(x.shape), [1] * x.rank
    for start, end, axis, step in zip(starts, ends, axes, steps):
        axis %= x.rank
        if step < 0:
            raise NotExpressible("a slice backwards; strides are positive")
        picked = range(x.shape[axis])[start:end:step]
        offsets[axis], sizes[axis] = picked.start, len(picked)
        strides[axis] = step
    if 0 in sizes:
        raise NotExpressible("a dimension of 0")
    return f.slice(x, offsets, sizes, strides)


@op("Split")
def split(n):
    f, x = n.f, n.x()
    axis, at, parts = n.get("axis", 0) % x.rank, 0, []
    for array in n.expected:
        size = array.shape[axis]
        parts.append(f.part(x, axis, at, size))
        at += size
    return parts


@op("DepthToSpace", "SpaceToDepth")
def depth_to_space(n):
    f, x, b = n.f, n.x(), n.get("blocksize")
    batch, c, h, w = x.shape
    result = n.expected[0].shape
    if result[1] < c:
        if n.get("mode", "DCR") == "DCR":
            y = f.reshape(x, (batch, b, b, c // (b * b), h, w))
            order = [0, 3, 4, 1, 5, 2]
        else:
            y = f.reshape(x, (batch, c // (b * b), b, b, h, w))
            order = [0, 1, 4, 2, 5, 3]
    else:
        y = f.reshape(x, (batch, c, h // b, b, w // b, b))
        order = [0, 3, 5, 1, 2, 4]
        if n.get("mode", "DCR") == "CRD":
            order = [0, 1, 3, 5, 2, 4]
    return f.reshape(f.transpose(y, order), result)


@op("Trilu")
def trilu(n):
    f, x = n.f, n.x()
    k = int(n.known(1, np.int64(0)))
    row, column = f.iota(x.shape, x.rank - 2), f.iota(x.shape, x.rank - 1)
    diagonal = f.op("arith.subi", column, row)
    upper = n.get("upper", 1)
    inside = f.compare("ge" if upper else "le", diagonal, f.like(k, diagonal))
    return f.select(inside, x, f.like(0, x))


@op("Dropout")
def dropout(n):
    training = n.known(2)
    ratio = float(n.known(1, n.get("ratio", 0.5)))
    if training is not None and bool(training) and ratio > 0:
        raise NotExpressible("training")
    f, x = n.f, n.x()
    results = [f.copy(x)]
    if len(n.outputs) > 1:
        results.append(f.copy(f.constant(1, x.shape, "bool")))
    return results


@op("EyeLike")
def eye_like(n):
    f, x = n.f, n.x()
    row, column = f.iota(x.shape, 0), f.iota(x.shape, 1)
    diagonal = f.op("arith.addi", row, f.like(n.get("k", 0), row))
    return f.cast(f.compare("eq", column, diagonal), n.expected[0].dtype)


# Products and attention.


def transposed(f, x):
    return f.transpose(x, list(range(x.rank - 2)) + [x.rank - 1, x.rank - 2])


@op("MatMul")
def matmul(n):
    f, x, y = n.f, n.x(0), n.x(1)
    if not x.is_float or x.element == "f64":
        raise NotExpressible(f"a product of {x.dtype}")
    if x.rank == 1:
        x = f.reshape(x, (1,) * (max(y.rank, 2) - 1) + x.shape)
    if y.rank == 1:
        y = f.reshape(y, y.shape + (1,))
    batches = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x = f.broadcast(x, batches + x.shape[-2:])
    if y.rank != 2:
        y = f.broadcast(y, batches + y.shape[-2:])
    return f.reshape(f.matmul(x, transposed(f, y)), n.expected[0].shape)


@op("Gemm")
def gemm(n):
    f, x, y = n.f, n.x(0), n.x(1)
    if not x.is_float or x.element == "f64":
        raise NotExpressible(f"a product of {x.dtype}")
    if n.get("transA", 0):
        x = transposed(f, x)
    w = y if n.get("transB", 0) else transposed(f, y)
    result = f.matmul(x, w)
    if n.get("alpha", 1.0) != 1:
        result = f.op("arith.mulf", result, f.like(n.get("alpha"), result))
    if n.has(2):
        c = f.broadcast(n.x(2), result.shape)
        if n.get("beta", 1.0) != 1:
            c = f.op("arith.mulf", c, f.like(n.get("beta"), c))
        result = f.op("arith.addf", result, c)
    return result


class Heads:
    """Attention's operands as [batch, heads, rows, columns]."""

    def __init__(self, n):
        self.n, f = n, n.f
        self.is_flat = n.x(0).rank == 3

        def apart(x, heads):
            if not self.is_flat:
                return x
            y = f.reshape(x, x.shape[:2] + (heads, x.shape[2] // heads))
            return f.transpose(y, [0, 2, 1, 3])
        self.q = apart(n.x(0), n.get("q_num_heads"))
        self.k = apart(n.x(1), n.get("kv_num_heads"))
        self.v = apart(n.x(2), n.get("kv_num_heads"))
        self.offset = 0
        if n.has(4):
            self.offset = n.x(4).shape[2]
            self.k = f.concat([n.x(4), self.k], 2)
            self.v = f.concat([n.x(5), self.v], 2)
        self.shape = self.q.shape[:3] + (self.k.shape[2],)
        self.causal = bool(n.get("is_causal", 0))
        self.left = n.get("left_window_size", -1)
        self.right = n.get("right_window_size", -1)
        scale = n.get("scale")
        self.scale = self.q.shape[3] ** -0.5 if scale is None else scale
        self.softcap = n.get("softcap", 0.0)
        self.mask = padded_mask(n, self.shape[3]) if n.has(3) else None

    def joined(self, y):
        if not self.is_flat:
            return y
        y = self.n.f.transpose(y, [0, 2, 1, 3])
        return self.n.f.reshape(y, y.shape[:2] + (y.shape[2] * y.shape[3],))


def padded_mask(n, keys):
    """The mask, with keys that it lacks hidden."""
    f, mask = n.f, n.x(3)
    missing = keys - mask.shape[-1]
    if missing == 0:
        return mask
    filler = 0 if mask.dtype == "bool" else -math.inf
    rest = f.constant(filler, mask.shape[:-1] + (missing,), mask.dtype)
    return f.concat([mask, rest], mask.rank - 1)


def hide_keys(h):
    """One mask of all that hides keys, for what the op has no attribute of."""
    n, f, shape = h.n, h.n.f, h.shape
    key = f.iota(shape, 3)
    ahead = f.op("arith.subi", key, f.iota(shape, 2))
    offset = f.like(h.offset, ahead)
    seen = []
    if n.has(6):
        lengths = f.cast(n.x(6), "int64")
        lengths = f.broadcast(f.reshape(lengths, (shape[0], 1, 1, 1)), shape)
        seen.append(f.compare("lt", key, lengths))
        offset = f.op("arith.subi", lengths, f.like(shape[2], key))
    if h.causal:
        seen.append(f.compare("le", ahead, offset))
    for size, by, predicate in ((h.left, -h.left, "ge"),
                                (h.right, h.right, "le")):
        if size >= 0:
            limit = f.op("arith.addi", offset, f.like(by, offset))
            seen.append(f.compare(predicate, ahead, limit))
    bias = None
    if h.mask is not None:
        mask = f.broadcast(h.mask, shape)
        if mask.dtype == "bool":
            seen.append(mask)
        else:
            bias = mask
    allowed = None
    for one in seen:
        allowed = one if allowed is None else f.op("arith.andi", allowed, one)
    if bias is None or allowed is None:
        return bias if allowed is None else allowed
    return f.select(allowed, bias, f.like(-math.inf, bias))


def scores_of(h, mask, mode):
    """Attention's scores as ONNX's fourth output has them."""
    f, q = h.n.f, h.q
    k, group = h.k, q.shape[1] // h.k.shape[1]
    if group > 1:
        k = f.reshape(k, k.shape[:2] + (1,) + k.shape[2:])
        k = f.broadcast(k, k.shape[:2] + (group,) + k.shape[3:])
        k = f.reshape(k, q.shape[:2] + k.shape[3:])
    scores = f.cast(f.matmul(q, k), "float32")
    scores = f.op("arith.mulf", scores, f.like(h.scale, scores))
    if h.softcap:
        tanh = f.op("math.tanh", f.op("arith.mulf", scores,
                                      f.like(1 / h.softcap, scores)))
        scores = f.op("arith.mulf", tanh, f.like(h.softcap, scores))
    if mode >= 2 and mask is not None:
        hidden = f.like(-math.inf, scores)
        if mask.dtype == "bool":
            scores = f.select(f.broadcast(mask, scores.shape), scores, hidden)
        else:
            bias = f.cast(f.broadcast(mask, scores.shape), "float32")
            scores = f.op("arith.addf", scores, bias)
    if mode == 3:
        rows = f.softmax(f.op("arith.maximumf", scores, f.like(-3e38, scores)))
        hidden = f.compare("eq", scores, f.like(-math.inf, scores))
        scores = f.select(hidden, f.like(0, rows), rows)
    return f.cast(scores, q.dtype)


@op("Attention")
def attention(n):
    h, f, attributes = Heads(n), n.f, []
    wants_scores = len(n.outputs) > 3 and n.outputs[3]
    has_own = h.causal and h.right < 0 and not n.has(6) and not wants_scores
    mask = h.mask
    if h.causal and not has_own or n.has(6) or \
            not h.causal and max(h.left, h.right) >= 0:
        mask = hide_keys(h)
    elif h.causal:
        attributes.append("causal")
        if h.offset:
            attributes.append(f"offset = {h.offset} : i64")
        if h.left >= 0:
            attributes.append(f"window = {h.left + 1} : i64")
    attributes.append(f"scale = {h.scale:e} : f32")
    if h.softcap:
        attributes.append(f"softcap = {h.softcap:e} : f32")
    q, k, v = h.q, h.k, h.v
    names = f"{q.name}, {k.name}, {v.name}"
    types = f"{q.type}, {k.type}, {v.type}"
    if mask is not None:
        names, types = f"{names} mask({mask.name})", f"{types}, {mask.type}"
    y = f.emit(f"kf.scaled_dot_product_attention {names} "
               f"{{{', '.join(attributes)}}} : {types}",
               q.shape[:3] + (v.shape[3],), q.dtype)
    results = [h.joined(y), k, v]
    if wants_scores:
        results.append(scores_of(h, mask, n.get("qk_matmul_output_mode", 0)))
    return results[:len(n.outputs)]


@op("RotaryEmbedding")
def rotary(n):
    f, x = n.f, n.x()
    is_flat = x.rank == 3
    y = x
    if is_flat:
        heads = n.get("num_heads")
        y = f.reshape(x, x.shape[:2] + (heads, x.shape[2] // heads))
    else:
        y = f.transpose(x, [0, 2, 1, 3])
    cos, sin = n.x(1), n.x(2)
    if n.has(3):
        ids = f.cast(n.x(3), "int32")
        flat = f.reshape(ids, (ids.count,))

        def rows(table):
            picked = f.emit(f"kf.embedding {flat.name}, {table.name} : "
                            f"{flat.type}, {table.type}",
                            (ids.count, table.shape[1]), "float32")
            return f.reshape(picked, ids.shape + (table.shape[1],))
        cos, sin = rows(cos), rows(sin)
    rotated = n.get("rotary_embedding_dim", 0) or y.shape[3]
    if cos.shape[-1] > rotated // 2:
        cos = f.part(cos, cos.rank - 1, 0, rotated // 2)
        sin = f.part(sin, sin.rank - 1, 0, rotated // 2)
    shape = cos.shape[:2] + (1, cos.shape[2])
    cos, sin = f.reshape(cos, shape), f.reshape(sin, shape)
    style = ""
    if n.get("interleaved", 0):
        style = " {style = #kf.rope_style<interleaved>}"
    y = f.emit(f"kf.rotary_embedding {y.name}, {cos.name}, {sin.name}{style} : "
               f"{y.type}, {cos.type}", y.shape, y.dtype)
    if is_flat:
        return f.reshape(y, x.shape)
    return f.transpose(y, [0, 2, 1, 3])
