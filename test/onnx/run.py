#!/usr/bin/env python3
"""Runs ONNX's node tests through kf-run exec.

usage: test/onnx/run.py [--kf-run FILE] [--device NAME] [--filter TEXT]
                        [--jobs N] [--list] [--keep FOLDER]

Needs `pip install onnx numpy`. Every test of a single op that translate.py has a
counterpart of becomes a function of kf ops, runs on the device, and is compared
with what ONNX expects. A table of ops follows; the exit code is 1 if a result is
wrong, or if a test that can be written does not run.
"""

import argparse
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import translate
from function import NotExpressible, type_text

ROOT = pathlib.Path(__file__).resolve().parents[2]


def to_array(value):
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if value is None or isinstance(value, (list, dict)):
        raise NotExpressible("sequences and optional values")
    return np.asarray(value)


class Result:
    """What became of a test: `state` is pass, wrong, fails or inexpressible."""

    def __init__(self, case, op, state, text="", as_is=False):
        self.case, self.op, self.state = case, op, state
        self.text, self.as_is = text, as_is


def literal(array, path):
    """An --input of the array, whose bytes go to `path`."""
    path.write_bytes(np.ascontiguousarray(array).tobytes())
    element = type_text(array.shape, array.dtype)[len("tensor<"):-1]
    return f"{element}=@{path}"


def differs(found, expected, case, dtype):
    """The first difference, or None. ONNX rounds bf16 after every op, so that
    its results differ from those of f32 by some units in the last place."""
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    if expected.dtype.kind not in "fV" and str(expected.dtype) != "bfloat16":
        wrong = found.view(expected.dtype) != expected
    else:
        a, b = found.astype(np.float64), expected.astype(np.float64)
        with np.errstate(all="ignore"):
            rtol = max(case.rtol, 2.0**-6 if dtype == "bfloat16" else 0)
            wrong = ~np.isclose(a, b, rtol=rtol, atol=case.atol,
                                equal_nan=True)
    if not wrong.any():
        return None
    at = np.argwhere(wrong)[0]
    return (f"{int(wrong.sum())} of {wrong.size} elements differ; at "
            f"{list(map(int, at))} {found[tuple(at)]} instead of "
            f"{expected[tuple(at)]}")


def run_data(case, node, opset, inputs, expected, options, folder):
    """(whether it is as it is, what is wrong or None)"""
    named = dict(zip([n for n in node.input], [None] * len(node.input)))
    given = iter(inputs)
    for value in case.model.graph.input:
        named[value.name] = next(given, None)
    values = [named[n] if n else None for n in node.input]
    translation = translate.translate(node, opset, values, expected)
    source = folder / "test.mlir"
    source.write_text(translation.text)
    command = [options.kf_run, "exec", str(source), "--device", options.device]
    for number, array in enumerate(translation.inputs):
        command.append("--input=" + literal(array, folder / f"in{number}.bin"))
    for number in range(len(translation.results)):
        command.append(f"--output=@{folder}/out{number}.npy")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        lines = (done.stderr.strip() or f"exit {done.returncode}").splitlines()
        raise RuntimeError(lines[-1].removeprefix(str(source)))
    for number, want in translation.results:
        found = np.load(folder / f"out{number}.npy")
        dtype = str(want.dtype)
        if dtype == "bfloat16":
            want = want.astype(np.float32)
        problem = differs(found, want, case, dtype)
        if problem:
            return translation.as_is, f"result {number}: {problem}"
    return translation.as_is, None


def run_case(case, options):
    node = case.model.graph.node[0]
    opset = next(o.version for o in case.model.opset_import if not o.domain)
    as_is = True
    try:
        for number, (inputs, outputs) in enumerate(case.data_sets):
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                if options.keep:
                    folder = pathlib.Path(options.keep) / case.name
                    folder.mkdir(parents=True, exist_ok=True)
                one, problem = run_data(case, node, opset,
                                        [to_array(i) for i in inputs],
                                        [to_array(o) for o in outputs],
                                        options, folder)
            as_is &= one
            if problem:
                return Result(case.name, node.op_type, "wrong", problem, as_is)
    except NotExpressible as why:
        return Result(case.name, node.op_type, "inexpressible", str(why))
    except (RuntimeError, subprocess.TimeoutExpired) as why:
        return Result(case.name, node.op_type, "fails", str(why), as_is)
    return Result(case.name, node.op_type, "pass", "", as_is)


def find_cases(options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    found = []
    for case in cases:
        model = case.model
        if model is None or len(model.graph.node) != 1:
            continue
        node = model.graph.node[0]
        if node.domain or node.op_type not in translate.OPS:
            continue
        if options.filter in case.name and not any(
                a.type == onnx.AttributeProto.GRAPH for a in node.attribute):
            found.append(case)
    return sorted(found, key=lambda c: c.name)


def print_table(results):
    print(f"{'op':24}{'cases':>7}{'pass':>6}{'as is':>7}{'rewritten':>11}"
          f"{'not expressible':>17}{'failed':>8}")
    totals = [0] * 6
    for op in sorted({r.op for r in results}):
        mine = [r for r in results if r.op == op]
        passed = [r for r in mine if r.state == "pass"]
        row = [len(mine), len(passed), sum(r.as_is for r in passed),
               sum(not r.as_is for r in passed),
               sum(r.state == "inexpressible" for r in mine),
               sum(r.state in ("wrong", "fails") for r in mine)]
        totals = [a + b for a, b in zip(totals, row)]
        print(f"{op:24}{row[0]:7}{row[1]:6}{row[2]:7}{row[3]:11}{row[4]:17}"
              f"{row[5]:8}")
    print(f"{'all':24}{totals[0]:7}{totals[1]:6}{totals[2]:7}{totals[3]:11}"
          f"{totals[4]:17}{totals[5]:8}")


def print_reasons(results):
    for state, title in (("inexpressible", "not expressible"),
                         ("fails", "does not run"), ("wrong", "wrong")):
        mine = [r for r in results if r.state == state]
        if mine:
            print(f"\n{title}:")
        for result in mine:
            print(f"  {result.case}: {result.text}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kf-run", default=str(ROOT / "build/dev/bin/kf-run"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--filter", default="", help="part of a test's name")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", help="a folder for functions and tensors")
    parser.add_argument("--list", action="store_true",
                        help="names tests and runs none")
    options = parser.parse_args()
    cases = find_cases(options)
    if options.list:
        for case in cases:
            print(case.name)
        return 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda c: run_case(c, options), cases))
    print_table(results)
    print_reasons(results)
    return any(r.state in ("wrong", "fails") for r in results)


if __name__ == "__main__":
    sys.exit(main())
