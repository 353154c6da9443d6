#!/usr/bin/env python3
"""Writes text whose size, or that of what the compiler makes of it, is chosen.

usage: make_large.py KIND N > FILE.mlir

KIND is one of
  chain     N elementwise ops, one behind the other
  shared    N additions of a value to itself
  views     N slices of one another
  readers   N additions, each of an argument through 32 slices
  heads     attention of heads of N elements
  kernel    a kernel of N elementwise ops
  slices    a kernel that adds the neighbours of each element, N times
  affine    an affine map of N terms
  minus     an affine map with N signs before a number
  joined    an affine map with N divisions by numbers, without blanks
  doubled   N aliases, each of a list of the one before, twice
  nested    N aliases, each of a tuple of the one before
  places    N aliases of locations, each of the one before
  kernels   N norms, each with an eps of its own and eight exponentials
  rows      N norms of rows, which share one kernel
  values    a constant of N values
  arguments a function of N arguments
  name      a function whose name has N letters
  functions N functions
  copied    N norms that read through one view with a long attribute
  bits      a list of integers of N bits
  shape     a tensor of N dimensions
  digits    a number of N digits
  fraction  a number of N digits, most behind the point
  names     an affine map of N names
"""

import sys


def function(types, body, result):
    arguments = ", ".join(f"%{name}: {type}" for name, type in types.items())
    return (f"func.func @f({arguments}) -> {result} {{\n{body}\n}}\n")


def ops(form, count):
    """`form` for each number, with {a} and {b} for it and the next."""
    return "\n".join("  " + form.format(a=i, b=i + 1) for i in range(count))


def elementwise(form, count):
    type = "tensor<?x4xf32>"
    return function({"0": type},
                    ops(form + " : " + type, count) +
                    f"\n  return %{count} : {type}", type)


def kernel(arguments, results, body):
    """A program of one dispatch of a kernel, both with argument %0."""
    return (f"kf.kernel @k(%0: {arguments}) -> {results} {{\n{body}\n}}\n"
            f"kf.program @f(%0: {arguments}) -> {results} "
            f"attributes {{max_tokens = 8 : i64}} {{\n"
            f"  %1 = kf.dispatch @k(%0) : ({arguments}) -> {results}\n"
            f"  kf.yield %1 : {results}\n}}\n")


def chain(count):
    return elementwise("%{b} = math.sqrt %{a}", count)


def shared(count):
    return elementwise("%{b} = arith.addf %{a}, %{a}", count)


def views(count):
    def type(number):
        return f"tensor<{2 * count - number}xf32>"

    lines = [f"  %{i + 1} = tensor.extract_slice %{i}[1] [{2 * count - i - 1}] "
             f"[1] : {type(i)} to {type(i + 1)}" for i in range(count)]
    lines += [f"  %r = math.exp %{count} : {type(count)}",
              f"  return %r : {type(count)}"]
    return function({"0": type(0)}, "\n".join(lines), type(count))


def readers(count):
    def type(number):
        return f"tensor<{64 - number}xf32>"

    lines = []
    for i in range(count):
        lines += [f"  %v{i}_{j + 1} = tensor.extract_slice %v{i}_{j}[1] [{63 - j}] "
                  f"[1] : {type(j)} to {type(j + 1)}" for j in range(32)]
        lines.append(f"  %{i + 1} = arith.addf %{i}, %v{i}_32 : {type(32)}")
    lines.append(f"  return %{count} : {type(32)}")
    arguments = {"0": type(32), **{f"v{i}_0": type(0) for i in range(count)}}
    return function(arguments, "\n".join(lines), type(32))


def heads(count):
    cache = f"!kf.kv_cache<layers = 1, kv_heads = 1, head_dim = {count}, type = f32>"
    type = f"tensor<?x1x{count}xf32>"
    body = (f"  kf.kv_append %c, %x, %x, %p, %s, %t {{layer = 0 : i64}} "
            f": {cache}, {type}, tensor<?xi32>, tensor<1x4xi32>\n"
            f"  %r = kf.attention %x, %c, %p, %s, %t {{layer = 0 : i64, scale = 1.0 : f32}} "
            f": {type}, {cache}, tensor<?xi32>, tensor<1x4xi32>\n"
            f"  return %r : {type}")
    return function({"x": type, "p": "tensor<?xi32>", "s": "tensor<?xi32>",
                     "t": "tensor<1x4xi32>", "c": cache}, body, type)


def long_kernel(count):
    type = "tensor<?x4xf32>"
    return kernel(type, type, ops("%{b} = math.exp %{a} : " + type, count) +
                  f"\n  kf.yield %{count} : {type}")


def slices(count):
    def type(number):
        return f"tensor<8x{2 * count - number}xf32>"

    lines = []
    for i in range(count):
        for name, offset in (("a", 0), ("b", 1)):
            lines.append(f"  %{name}{i} = tensor.extract_slice %{i}[0, {offset}] "
                         f"[8, {2 * count - i - 1}] [1, 1] "
                         f": {type(i)} to {type(i + 1)}")
        lines.append(f"  %{i + 1} = arith.addf %a{i}, %b{i} : {type(i + 1)}")
    lines.append(f"  kf.yield %{count} : {type(count)}")
    return kernel(type(0), type(count), "\n".join(lines))


def kernels(count):
    type = "tensor<?x4xf32>"
    form = "%n{b} = kf.rms_norm %{a}, %w eps({b}.0e-5) : " + type + ", tensor<4xf32>"
    names = ["n{b}", *(f"e{i}_{{b}}" for i in range(7)), "{b}"]
    for source, result in zip(names, names[1:]):
        form += f"\n  %{result} = math.exp %{source} : {type}"
    return function({"0": type, "w": "tensor<4xf32>"},
                    ops(form, count) + f"\n  return %{count} : {type}", type)


def rows(count):
    return elementwise("%{b} = kf.softmax %{a}", count)


def values(count):
    type = f"tensor<{count}xf32>"
    numbers = ", ".join(f"{i}.0" for i in range(count))
    return function({"0": type}, f"  %1 = arith.constant dense<[{numbers}]> : {type}\n"
                    f"  return %1 : {type}", type)


def arguments(count):
    type = "tensor<4xf32>"
    return function({str(i): type for i in range(count)}, f"  return %0 : {type}",
                    type)


def name(count):
    return function({"0": "tensor<4xf32>"}, "  return %0 : tensor<4xf32>",
                    "tensor<4xf32>").replace("@f", "@" + "f" * count)


def attribute(value):
    return with_aliases([f"#a = {value}"])


def bits(count):
    return attribute(f"dense<[{', '.join('1' * 1000)}]> : tensor<1000xi{count}>")


def shape(count):
    return attribute(f"dense<1> : tensor<{'1x' * count}i8>")


def digits(count):
    return attribute(f"{'9' * count} : f32")


def fraction(count):
    return attribute(f"1.{'3' * (count - 1)} : f32")


def names(count):
    dims = ", ".join(f"d{i}" for i in range(count))
    return attribute(f"affine_map<({dims}) -> (d0)>")


def functions(count):
    return "".join(f"func.func private @f{i}()\n" for i in range(count))


def copied(count):
    type = "tensor<?x4xf32>"
    view = (f'  %v = tensor.collapse_shape %w [[0, 1]] {{note = "{"x" * 1000000}"}} '
            ": tensor<1x4xf32> into tensor<4xf32>\n")
    form = "%{b} = kf.rms_norm %{a}, %v eps(1.0e-5) : " + type + ", tensor<4xf32>"
    return function({"0": type, "w": "tensor<1x4xf32>"},
                    view + ops(form, count) + f"\n  return %{count} : {type}", type)


def with_aliases(lines):
    """`lines`, and a function that has the last alias as an attribute."""
    name = lines[-1].split()[0]
    type = "tensor<4xf32>"
    where, what = ("", f" {{x = {name}}}")
    if name.startswith("#loc"):
        where, what = (f" loc({name})", "")
    return "\n".join(lines) + "\n" + function(
        {"0": type}, f"  %1 = math.exp %0{what} : {type}{where}\n"
        f"  return %1 : {type}", type)


def affine(count):
    return with_aliases([f"#m = affine_map<(d0) -> ({' + '.join(['d0'] * count)})>"])


def minus(count):
    return with_aliases([f"#m = affine_map<(d0) -> ({'-' * count}d0)>"])


def joined(count):
    return with_aliases([f"#m = affine_map<(d0) -> (d0 floordiv "
                         f"{'3floordiv ' * (count - 1)}3)>"])


def doubled(count):
    return with_aliases(["#a0 = 7 : i32"] + [
        f"#a{i + 1} = [#a{i}, #a{i}]" for i in range(count)])


def nested(count):
    return with_aliases(["!t0 = tuple<i32>"] + [
        f"!t{i + 1} = tuple<!t{i}>" for i in range(count)])


def places(count):
    return with_aliases(['#loc0 = loc("x")'] + [
        f"#loc{i + 1} = loc(callsite(#loc{i} at #loc0))" for i in range(count)])


KINDS = {"chain": chain, "shared": shared, "views": views,
         "readers": readers, "heads": heads,
         "kernel": long_kernel, "slices": slices,
         "affine": affine, "minus": minus, "joined": joined,
         "doubled": doubled, "nested": nested, "places": places, "kernels": kernels,
         "rows": rows, "values": values, "arguments": arguments, "name": name,
         "functions": functions, "copied": copied, "bits": bits, "shape": shape,
         "digits": digits, "fraction": fraction, "names": names}

if __name__ == "__main__":
    sys.stdout.write(KINDS[sys.argv[1]](int(sys.argv[2])))
