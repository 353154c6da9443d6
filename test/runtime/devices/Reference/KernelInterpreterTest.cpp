//===- KernelInterpreterTest.cpp - Kernels as JSON -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/KernelInterpreter.h"

#include "ReferenceTestUtils.h"

namespace kf::reference {
namespace {

using nlohmann::json;

Result<KernelInterpreter> parse(const std::string &text) {
  json kernel = json::parse(text, nullptr, false);
  EXPECT_FALSE(kernel.is_discarded()) << text;
  return KernelInterpreter::parse(kernel);
}

/// A kernel "k" of the arguments a: 2xf32 and b: ?x2xf32, with these ops.
std::string kernelText(const std::string &ops, const std::string &results) {
  return R"({"name": "k", "arguments": [{"tensor": "f32", "shape": [2]},
             {"tensor": "f32", "shape": [-1, 2]}],
             "ops": [)" +
         ops + R"(], "results": [)" + results + "]}";
}

/// Runs a kernel of `kernelText` for two tokens on a = [1, 2] and
/// b = [[3, 4], [5, 6]]; its results are `count` floats in all.
Result<Tensor> runKernel(const std::string &ops, const std::string &results,
                         std::vector<int64_t> shape) {
  KF_ASSIGN_OR_RETURN(KernelInterpreter kernel,
                      parse(kernelText(ops, results)));
  std::vector<float> a = {1, 2}, b = {3, 4, 5, 6};
  KF_ASSIGN_OR_RETURN(Tensor out, Tensor::zeros(DataType::F32, shape));
  BoundMemory memory[] = {{reinterpret_cast<std::byte *>(a.data()), 8},
                          {reinterpret_cast<std::byte *>(b.data()), 16},
                          {out.bytes.data(), out.bytes.size()}};
  const int64_t scalars[KF_SCALAR_COUNT] = {2};
  KF_RETURN_IF_ERROR(kernel.run(memory, scalars));
  return out;
}

const char *kAddOp = R"({"name": "arith.addf", "operands": [1, 1],
  "results": [{"id": 7, "type": {"tensor": "f32", "shape": [-1, 2]}}]})";

TEST(KernelInterpreter, RunsOps) {
  expectFloats(runKernel(kAddOp, "7", {2, 2}), {6, 8, 10, 12});
  // An argument can be a result.
  expectFloats(runKernel("", "0", {2}), {1, 2});
}

TEST(KernelInterpreter, RoundsResultsToTheirTypes) {
  // 1/3 in bf16, widened again by an addition of zero.
  std::string third = R"({"name": "arith.constant", "operands": [],
    "results": [{"id": 2, "type": {"tensor": "bf16", "shape": [2]}}],
    "attributes": {"value": 0.3333333333}},
    {"name": "arith.addf", "operands": [2, 2],
    "results": [{"id": 3, "type": {"tensor": "f32", "shape": [2]}}]})";
  expectFloats(runKernel(third, "3", {2}), {0.66796875f, 0.66796875f});
}

TEST(KernelInterpreter, ReadsConstants) {
  auto constant = [](const std::string &value, const std::string &shape) {
    return R"({"name": "arith.constant", "operands": [], "results": [{"id": 2,
      "type": {"tensor": "f32", "shape": )" +
           shape + R"(}}], "attributes": {"value": )" + value + "}}";
  };
  expectFloats(runKernel(constant("1.5", "[-1, 2]"), "2", {2, 2}),
               {1.5f, 1.5f, 1.5f, 1.5f});
  expectFloats(runKernel(constant("[1, 2.5, -3]", "[3]"), "2", {3}),
               {1, 2.5f, -3});
  expectError(runKernel(constant("[1, 2]", "[3]"), "2", {3}),
              "a constant of type 3xf32 has 2 elements");
  expectError(runKernel(constant("1", "[1099511627776]"), "2", {1}),
              "arith.constant");
  expectError(runKernel(constant("null", "[2]"), "2", {2}), "'value'");
  expectError(runKernel(constant("[[1], [2]]", "[2]"), "2", {2}), "'value'");
}

TEST(KernelInterpreter, ReadsSlicesAndShapes) {
  constexpr const char *slice = R"({"name": "tensor.extract_slice",
    "operands": [1], "results": [{"id": 2,
    "type": {"tensor": "f32", "shape": [-1]}}],
    "attributes": {"static_offsets": [0, 1],
      "static_sizes": [-9223372036854775808, 1], "static_strides": [1, 1]}})";
  expectFloats(runKernel(slice, "2", {2}), {4, 6}); // drops the size of 1
  constexpr const char *expand = R"({"name": "tensor.expand_shape",
    "operands": [1], "results": [{"id": 2,
    "type": {"tensor": "f32", "shape": [-1, 1, 2]}}], "attributes": {}})";
  expectFloats(runKernel(expand, "2", {2, 1, 2}), {3, 4, 5, 6});
  constexpr const char *collapse = R"({"name": "tensor.collapse_shape",
    "operands": [1], "results": [{"id": 2,
    "type": {"tensor": "f32", "shape": [3]}}]})";
  expectError(runKernel(collapse, "2", {3}), "not as many elements");
}

TEST(KernelInterpreter, ReadsSegmentsOfMlp) {
  // x, up, down and up_bias.
  auto mlp = [](const std::string &operands, const std::string &segments) {
    return R"({"name": "arith.constant", "operands": [], "results": [{"id": 2,
        "type": {"tensor": "f32", "shape": [2, 2]}}],
        "attributes": {"value": [1, 0, 0, 1]}},
      {"name": "kf.mlp", "operands": )" +
           operands + R"(, "results": [{"id": 3,
        "type": {"tensor": "f32", "shape": [-1, 2]}}], "attributes":
        {"activation": "relu", "operandSegmentSizes": )" +
           segments + "}}";
  };
  expectFloats(
      runKernel(mlp("[1, 2, 2, 0]", "[1, 0, 1, 1, 0, 1, 0]"), "3", {2, 2}),
      {4, 6, 6, 8});
  expectError(runKernel(mlp("[1, 2, 2]", "[1, 0, 1, 1, 0, 1, 0]"), "3", {1}),
              "counts 4 operands of 3");
  expectError(runKernel(mlp("[1, 2, 2]", "[1, 1, 0, 1, 0, 0, 0]"), "3", {1}),
              "operandSegmentSizes");
  expectError(runKernel(mlp("[1, 2, 2]", "[1, 0, 1, 1]"), "3", {1}),
              "an array of 7");
}

TEST(KernelInterpreter, NamesUnknownOps) {
  expectError(parse(kernelText(R"({"name": "linalg.matmul"})", "")),
              "reference device: no reference for op 'linalg.matmul'");
}

TEST(KernelInterpreter, RejectsMalformedKernels) {
  auto op = [](const std::string &name, const std::string &members) {
    return kernelText("{\"name\": \"" + name + "\", " + members + "}", "");
  };
  const std::string result =
      R"("results": [{"id": 9, "type": {"tensor": "f32", "shape": [2]}}])";
  struct Case {
    std::string text, message;
  } cases[] = {
      {"[]", "a JSON object is expected"},
      {"7", "a JSON object is expected"},
      {"{}", "'name'"},
      {R"({"name": 1})", "'name'"},
      {R"({"name": "k"})", "'arguments'"},
      {R"({"name": "k", "arguments": {}})", "'arguments'"},
      {R"({"name": "k", "arguments": [3]})", "argument 0: a type is not"},
      {R"({"name": "k", "arguments": [{"tensor": "f31", "shape": []}]})",
       "unknown element type 'f31'"},
      {R"({"name": "k", "arguments": [{"tensor": "f32"}]})", "'shape'"},
      {R"({"name": "k", "arguments": [{"tensor": "f32", "shape": [1.5]}]})",
       "'shape'"},
      {R"({"name": "k", "arguments": [{"tensor": "f32", "shape": [0]}]})",
       "dimension 0"},
      {R"({"name": "k", "arguments": [{"tensor": "f32", "shape": [2, -1]}]})",
       "dimension -1"},
      {R"({"name": "k", "arguments": [{"tensor": "q8_0", "shape": [31]}]})",
       "blocks of 32"},
      {R"({"name": "k", "arguments": [{"tensor": "f32",
           "shape": [4611686018427387904, 4611686018427387904]}]})",
       "63 bits"},
      {R"({"name": "k", "arguments": [{"tensor": "f32",
           "shape": [18446744073709551615]}]})",
       "'shape'"},
      {R"({"name": "k", "arguments": [{"cache": 1}]})", "'cache'"},
      {R"({"name": "k", "arguments": [{"cache": {"layers": 1}}]})",
       "'kv_heads'"},
      {R"({"name": "k", "arguments": [{"cache": {"layers": 1, "kv_heads": 0,
           "head_dim": 4, "type": "f32"}}]})",
       "below 1"},
      {R"({"name": "k", "arguments": [{"cache": {"layers": 1, "kv_heads": 1,
           "head_dim": 4, "type": "i32"}}]})",
       "cache of i32"},
      {R"({"name": "k", "arguments": [{"states": {"layers": 1, "heads": 1,
           "elements": 4, "slot_pages": 0}}]})",
       "a positive number of pages, not 0"},
      {R"({"name": "k", "arguments": [{"states": {"layers": 1, "heads": 1,
           "elements": 4, "slot_pages": 9223372036854775807}}]})",
       "not 9223372036854775807"},
      {R"({"name": "k", "arguments": []})", "'ops'"},
      {R"({"name": "k", "arguments": [], "ops": []})", "'results'"},
      {R"({"name": "k", "arguments": [], "ops": [], "results": [0]})",
       "uses value 0"},
      {R"({"name": "k", "arguments": [], "ops": [], "results": ["a"]})",
       "'results'"},
      {R"({"name": "k", "arguments": [{"cache": {"layers": 1, "kv_heads": 1,
           "head_dim": 4, "type": "f32"}}], "ops": [], "results": [0]})",
       "a result is a cache"},
      {kernelText("3", ""), "op 0: a JSON object is expected"},
      {op("kf.softmax", result), "'operands'"},
      {op("kf.softmax", R"("operands": [5], )" + result), "uses value 5"},
      {op("kf.softmax", R"("operands": [-1], )" + result), "uses value -1"},
      {op("kf.softmax", R"("operands": [9], )" + result), "uses value 9"},
      {op("kf.softmax", R"("operands": [], )" + result), "1 are expected"},
      {op("kf.matmul", R"("operands": [1], )" + result), "2 to 7 are expected"},
      {op("kf.kv_append", R"("operands": [0, 0, 0, 0, 0, 0], "results": [])"),
       "operand 0 is not a cache"},
      {op("kf.softmax", R"("operands": [0])"), "'results'"},
      {op("kf.softmax", R"("operands": [0], "results": [])"), "1 is expected"},
      {op("kf.softmax", R"("operands": [0], "results": [2])"), "no type"},
      {op("kf.softmax", R"("operands": [0], "results": [{"type": 1}])"),
       "'id'"},
      {op("kf.softmax", R"("operands": [0], "results": [{"id": 0,
           "type": {"tensor": "f32", "shape": [2]}}])"),
       "value 0 is defined twice"},
      {op("kf.softmax", R"("operands": [0], "results": [{"id": 2,
           "type": {"cache": {"layers": 1, "kv_heads": 1, "head_dim": 4,
           "type": "f32"}}}])"),
       "its result is a cache"},
      {op("kf.softmax", R"("operands": [0], "attributes": [], )" + result),
       "'attributes'"},
      {op("kf.rms_norm", R"("operands": [1, 0], )" + result),
       "'eps' is missing"},
      {op("kf.rms_norm",
          R"("operands": [1, 0], "attributes": {"eps": "x"}, )" + result),
       "'eps' is not a finite number"},
      {op("kf.activation",
          R"("operands": [0], "attributes": {"kind": "swish"}, )" + result),
       "known are identity, silu, gelu, gelu_tanh, relu"},
      {op("kf.rope", R"("operands": [0, 0], "attributes": {"theta": 1e4,
          "rotary_dim": 2, "style": "whole"}, )" +
                         result),
       "known are half, interleaved"},
      {op("kf.rope", R"("operands": [0, 0], "attributes": {"theta": 1e4,
          "rotary_dim": 2, "scaling": {"kind": "yarn"}}, )" +
                         result),
       "attribute 'scaling': attribute 'kind' is 'yarn'"},
      {op("kf.rope", R"("operands": [0, 0], "attributes": {"theta": 1e4,
          "rotary_dim": 2, "scaling": {"kind": "linear", "factor": 0}}, )" +
                         result),
       "'factor' is not positive"},
      {op("kf.quantize",
          R"("operands": [0], "attributes": {"format": "q9_k"}, )" + result),
       "unknown block format 'q9_k'"},
      {op("kf.quantize",
          R"("operands": [0], "attributes": {"format": "f16"}, )" + result),
       "unknown block format 'f16'"},
      {op("tensor.extract_slice", R"("operands": [0], "attributes":
          {"static_offsets": [-9223372036854775808], "static_sizes": [1],
           "static_strides": [1]}, )" +
                                      result),
       "not constant"},
      {op("kf.scaled_dot_product_attention",
          R"("operands": [0, 0, 0], "attributes":
          {"offset": -9223372036854775808}, )" +
              result),
       "'offset' is not a number of keys"},
      {op("kf.scaled_dot_product_attention",
          R"("operands": [0, 0, 0], "attributes": {"window": 0}, )" + result),
       "'window' is not a positive number of keys"},
  };
  for (const Case &c : cases)
    expectError(parse(c.text), c.message);
}

TEST(KernelInterpreter, ChecksShapesWhileRunning) {
  std::string wrong = R"({"name": "kf.softmax", "operands": [1],
    "results": [{"id": 2, "type": {"tensor": "f32", "shape": [2]}}]})";
  expectError(
      runKernel(wrong, "2", {2}),
      "kernel 'k': op 0 (kf.softmax): its result is 2x2xf32, not 2xf32");
  std::string norm = R"({"name": "kf.rms_norm", "operands": [0, 1],
    "attributes": {"eps": 0},
    "results": [{"id": 2, "type": {"tensor": "f32", "shape": [2]}}]})";
  expectError(runKernel(norm, "2", {2}), "kf.rms_norm C2");
  std::string typed = R"({"name": "kf.argmax", "operands": [1],
    "results": [{"id": 2, "type": {"tensor": "f32", "shape": [-1]}}]})";
  expectError(runKernel(typed, "2", {2}), "i32 does not convert to f32");
  expectError(runKernel(kAddOp, "7", {1, 2}),
              "result 0: its memory has 8 of 16");
  expectError(runKernel("", "", {1}), "3 bindings for 2 arguments");
}

} // namespace
} // namespace kf::reference
