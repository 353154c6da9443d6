//===- OnnxModel.h - Writes small ONNX models -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_BENCHMARKS_PEERS_ONNXMODEL_H
#define KF_BENCHMARKS_PEERS_ONNXMODEL_H

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kf::bench {

/// ONNX's TensorProto.DataType.
enum class OnnxType { Float = 1, UInt8 = 2 };

/// A model of one node. Its inputs are the graph's inputs and then its
/// constants, in the order in which they were added.
class OnnxModel {
public:
  /// `domain` is empty for ONNX's own operators, of version `opset`.
  OnnxModel(std::string op, std::string domain, int opset)
      : op(std::move(op)), domain(std::move(domain)), opset(opset) {}

  struct Value {
    std::string name;
    OnnxType type = OnnxType::Float;
    std::vector<int64_t> shape;
  };
  void addInput(Value value) { inputs.push_back(std::move(value)); }
  void addOutput(Value value) { outputs.push_back(std::move(value)); }
  /// `bytes` are copied.
  void addConstant(Value value, std::span<const std::byte> bytes);
  void addAttribute(std::string name, std::variant<int64_t, float> value) {
    attributes.emplace_back(std::move(name), value);
  }

  const std::vector<Value> &inputValues() const { return inputs; }
  const std::vector<Value> &outputValues() const { return outputs; }

  /// A serialized ModelProto.
  std::string serialize() const;

private:
  std::string op, domain;
  int opset;
  std::vector<Value> inputs, outputs;
  std::vector<std::pair<Value, std::string>> constants;
  std::vector<std::pair<std::string, std::variant<int64_t, float>>> attributes;
};

} // namespace kf::bench

#endif // KF_BENCHMARKS_PEERS_ONNXMODEL_H
