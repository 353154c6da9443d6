//===- OnnxModel.cpp - Writes small ONNX models ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Protocol buffers: a message is a list of fields, each a tag (the field's
// number and how the value is written) and a value. The numbers are
// onnx.proto's.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/Peers/OnnxModel.h"

#include <cstring>

using namespace kf;
using namespace kf::bench;

namespace {

constexpr int irVersion = 8;

class Message {
public:
  Message &number(int field, uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  Message &real(int field, float value) {
    varint(field << 3 | 5);
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    text.append(bytes, sizeof(value));
    return *this;
  }
  Message &bytes(int field, const std::string &value) {
    varint(field << 3 | 2);
    varint(value.size());
    text += value;
    return *this;
  }
  Message &message(int field, const Message &value) {
    return bytes(field, value.text);
  }
  std::string take() { return std::move(text); }

private:
  void varint(uint64_t value) {
    for (; value > 127; value >>= 7)
      text += static_cast<char>(value | 128);
    text += static_cast<char>(value);
  }

  std::string text;
};

Message valueInfo(const OnnxModel::Value &value) {
  Message shape;
  for (int64_t dim : value.shape)
    shape.message(1, Message().number(1, dim));
  Message tensor;
  tensor.number(1, static_cast<uint64_t>(value.type)).message(2, shape);
  return Message()
      .bytes(1, value.name)
      .message(2, Message().message(1, tensor));
}

Message tensorProto(const OnnxModel::Value &value, const std::string &bytes) {
  Message tensor;
  for (int64_t dim : value.shape)
    tensor.number(1, dim);
  return tensor.number(2, static_cast<uint64_t>(value.type))
      .bytes(8, value.name)
      .bytes(9, bytes);
}

Message attributeProto(const std::string &name,
                       const std::variant<int64_t, float> &value) {
  Message attribute;
  attribute.bytes(1, name);
  if (auto *integer = std::get_if<int64_t>(&value))
    return attribute.number(3, *integer).number(20, 2);
  return attribute.real(2, std::get<float>(value)).number(20, 1);
}

} // namespace

void OnnxModel::addConstant(Value value, std::span<const std::byte> bytes) {
  constants.emplace_back(
      std::move(value),
      std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
}

std::string OnnxModel::serialize() const {
  Message node, graph;
  for (const Value &input : inputs)
    node.bytes(1, input.name);
  for (const auto &entry : constants)
    node.bytes(1, entry.first.name);
  for (const Value &output : outputs)
    node.bytes(2, output.name);
  node.bytes(4, op);
  for (const auto &[name, value] : attributes)
    node.message(5, attributeProto(name, value));
  node.bytes(7, domain);

  graph.message(1, node).bytes(2, "graph");
  for (const auto &[value, bytes] : constants)
    graph.message(5, tensorProto(value, bytes));
  for (const Value &input : inputs)
    graph.message(11, valueInfo(input));
  for (const Value &output : outputs)
    graph.message(12, valueInfo(output));

  Message model;
  model.number(1, irVersion).message(7, graph);
  model.message(8, Message().bytes(1, "").number(2, opset));
  if (!domain.empty())
    model.message(8, Message().bytes(1, domain).number(2, 1));
  return model.take();
}
