#!/usr/bin/env python3
"""Runs ONNX's node tests through kf-run exec.

usage: test/onnx/run.py [--kf-run FILE] [--device NAME] [--filter TEXT]
                        [--jobs N] [--batch N] [--list] [--keep FOLDER]
                        [--compile-only] [--target-cpu NAME]

Needs `pip install onnx numpy`. Every test of a single op that translate.py has a
counterpart of becomes a function of kf ops, runs on the device, and is compared
with what ONNX expects. A table of ops follows; the exit code is 1 if a result is
wrong, or if a test that can be written does not run.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import translate
from function import NotExpressible, join, type_text

ROOT = pathlib.Path(__file__).resolve().parents[2]


def to_array(value):
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if value is None or isinstance(value, (list, dict)):
        raise NotExpressible("sequences and optional values")
    return np.asarray(value)


class Result:
    """What became of a test: `state` is pass, wrong, fails or inexpressible."""

    def __init__(self, case):
        self.case, self.op = case.name, case.model.graph.node[0].op_type
        self.state, self.text, self.as_is = "pass", "", True

    def end(self, state, text):
        # The first problem counts.
        if self.state == "pass":
            self.state, self.text = state, text


class DataSet:
    """Inputs and outputs of a test, translated."""

    def __init__(self, case, result, translation):
        self.case, self.result = case, result
        self.translation = translation
        result.as_is &= translation.as_is


def literal(array, path):
    """An --input of the array, whose bytes go to `path`."""
    path.write_bytes(np.ascontiguousarray(array).tobytes())
    element = type_text(array.shape, array.dtype)[len("tensor<"):-1]
    return f"{element}=@{path}"


def tolerance_of(case, dtype):
    """ONNX's. Its results of bf16 are rounded after every step of an op, ours
    once: they may differ by two units in the last place, but casts by none."""
    is_cast = case.model.graph.node[0].op_type in ("Cast", "CastLike")
    if dtype == "bfloat16":
        return 0 if is_cast else max(case.rtol, 2.0**-6)
    return case.rtol


def differs(found, expected, case, dtype):
    """The first difference, or None."""
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    if expected.dtype.kind != "f":
        wrong = found.view(expected.dtype) != expected
    else:
        a, b = found.astype(np.float64), expected.astype(np.float64)
        with np.errstate(all="ignore"):
            wrong = ~np.isclose(a, b, rtol=tolerance_of(case, dtype),
                                atol=case.atol, equal_nan=True)
    if not wrong.any():
        return None
    at = np.argwhere(wrong)[0]
    return (f"{int(wrong.sum())} of {wrong.size} elements differ; at "
            f"{list(map(int, at))} {found[tuple(at)]} instead of "
            f"{expected[tuple(at)]}")


def translate_case(case, result, number):
    """The data sets of a test. Test `number` is this among those that run."""
    node = case.model.graph.node[0]
    opset = next(o.version for o in case.model.opset_import if not o.domain)
    sets = []
    try:
        for at, (inputs, outputs) in enumerate(case.data_sets):
            named = dict.fromkeys(node.input)
            given = map(to_array, inputs)
            for value in case.model.graph.input:
                named[value.name] = next(given, None)
            values = [named[n] if n else None for n in node.input]
            sets.append(DataSet(case, result, translate.translate(
                node, opset, values, list(map(to_array, outputs)),
                f"t{number}_{at}_")))
    except NotExpressible as why:
        result.end("inexpressible", str(why))
        return []
    return sets


def run_batch(batch, options):
    """Runs data sets as one function, since a process for each takes longer
    than what it does. Where it fails, without those that the error is about."""
    while batch:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            if options.keep:
                folder = pathlib.Path(options.keep) / batch[0].case.name
                folder.mkdir(parents=True, exist_ok=True)
            failed = run_function(batch, options, folder)
        if failed is None:
            return
        part, text = failed
        if part is None and len(batch) > 1:
            run_batch(batch[:len(batch) // 2], options)
            run_batch(batch[len(batch) // 2:], options)
            return
        culprit = batch[0]
        for data in batch:
            if data.translation.function is part:
                culprit = data
        culprit.result.end("fails", text)
        batch = [data for data in batch if data.result is not culprit.result]


def run_function(batch, options, folder):
    """Runs, and compares; or (the part that does not compile, or None; why)."""
    text, owners = join([data.translation.function for data in batch])
    source = folder / "test.mlir"
    source.write_text(text)
    if options.compile_only:
        command = [options.kf_run, "emit-mlir", str(source), "--device",
                   options.device, "--compile-to=binary",
                   f"--output={folder}/test.kf"]
        inputs, outputs = [], []
    else:
        command = [options.kf_run, "exec", str(source), "--device",
                   options.device]
        inputs = [i for data in batch for i in data.translation.inputs]
        outputs = [e for data in batch for e in data.translation.expected]
    if options.target_cpu:
        command.append(f"--target-cpu={options.target_cpu}")
    for number, array in enumerate(inputs):
        command.append("--input=" + literal(array, folder / f"in{number}.bin"))
    for number in range(len(outputs)):
        command.append(f"--output=@{folder}/out{number}.npy")
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=300)
    except subprocess.TimeoutExpired as why:
        return None, str(why)
    if done.returncode:
        lines = (done.stderr.strip() or f"exit {done.returncode}").splitlines()
        at = re.search(re.escape(str(source)) + r":(\d+):", lines[-1])
        return (owners[int(at[1]) - 1] if at else None,
                lines[-1].replace(str(source), ""))
    if not options.compile_only:
        compare(batch, folder)
    return None


def compare(batch, folder):
    at = 0
    for data in batch:
        for number, want in enumerate(data.translation.expected):
            found = np.load(folder / f"out{at}.npy")
            at += 1
            dtype = str(want.dtype)
            if dtype == "bfloat16":
                want = want.astype(np.float32)
            problem = differs(found, want, data.case, dtype)
            if problem:
                data.result.end("wrong", f"result {number}: {problem}")


def run_cases(cases, options):
    results = [Result(case) for case in cases]
    sets = []
    for number, (case, result) in enumerate(zip(cases, results)):
        sets += translate_case(case, result, number)
    # Neighbours, which take equally long, run in different batches.
    count = -(-len(sets) // options.batch)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda at: run_batch(sets[at::count], options),
                      range(count)))
    return results


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
    parser.add_argument("--batch", type=int, default=32,
                        help="how many tests one process runs")
    parser.add_argument("--keep", help="a folder for functions and tensors")
    parser.add_argument("--compile-only", action="store_true",
                        help="runs nothing: a test passes that compiles")
    parser.add_argument("--target-cpu", help="what to compile for, as sm_90a")
    parser.add_argument("--list", action="store_true",
                        help="names tests and runs none")
    options = parser.parse_args()
    cases = find_cases(options)
    if options.list:
        for case in cases:
            print(case.name)
        return 0
    results = run_cases(cases, options)
    print_table(results)
    print_reasons(results)
    return any(r.state in ("wrong", "fails") for r in results)


if __name__ == "__main__":
    sys.exit(main())
