//===- GgufTesting.h - GGUF files of metadata for tests ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_MODEL_GGUFTESTING_H
#define KF_TEST_RUNTIME_MODEL_GGUFTESTING_H

#include "runtime/io/Gguf.h"
#include "runtime/model/GgufConfig.h"
#include "test/runtime/GgufBuilder.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kf::test {

/// A file of metadata that tests change one by one, and of tensors.
struct FileOf {
  std::string architecture = "llama";
  std::map<std::string, std::pair<GgufValueType, std::string>> entries;
  std::map<std::string, std::vector<int64_t>> tensors;
  std::map<std::string, std::string> data; ///< of tensors that are not zeros

  FileOf &u32(const std::string &key, uint32_t value) {
    entries[key] = {GgufValueType::U32, raw(value)};
    return *this;
  }
  FileOf &f32(const std::string &key, float value) {
    entries[key] = {GgufValueType::F32, raw(value)};
    return *this;
  }
  FileOf &boolean(const std::string &key, bool value) {
    entries[key] = {GgufValueType::Bool, std::string(1, char(value))};
    return *this;
  }
  FileOf &f32s(const std::string &key, const std::vector<float> &values) {
    std::string elements;
    for (float value : values)
      elements += raw(value);
    entries[key] = {
        GgufValueType::Array,
        ggufArray(uint32_t(GgufValueType::F32), values.size(), elements)};
    return *this;
  }
  FileOf &text(const std::string &key, const std::string &value) {
    entries[key] = {GgufValueType::String, ggufString(value)};
    return *this;
  }
  FileOf &i32s(const std::string &key, const std::vector<int32_t> &values) {
    std::string elements;
    for (int32_t value : values)
      elements += raw(value);
    entries[key] = {
        GgufValueType::Array,
        ggufArray(uint32_t(GgufValueType::I32), values.size(), elements)};
    return *this;
  }
  FileOf &flags(const std::string &key, const std::vector<bool> &values) {
    std::string elements;
    for (bool value : values)
      elements += char(value);
    entries[key] = {
        GgufValueType::Array,
        ggufArray(uint32_t(GgufValueType::Bool), values.size(), elements)};
    return *this;
  }
  FileOf &without(const std::string &key) {
    entries.erase(key);
    tensors.erase(key);
    data.erase(key);
    return *this;
  }
  FileOf &tensor(const std::string &name, std::vector<int64_t> shape) {
    tensors[name] = std::move(shape);
    return *this;
  }
  FileOf &vector(const std::string &name, const std::vector<float> &values) {
    data[name].clear();
    for (float value : values)
      data[name] += raw(value);
    return tensor(name, {int64_t(values.size())});
  }

  std::string bytes() const {
    GgufBuilder builder;
    builder.text("general.architecture", architecture);
    for (const auto &[key, entry] : entries)
      builder.entry(key, entry.first, entry.second);
    for (const auto &[name, shape] : tensors) {
      auto bytes = data.find(name);
      builder.tensor(name, shape, DataType::F32,
                     bytes == data.end() ? "" : bytes->second);
    }
    return builder.bytes();
  }
  Result<ModelConfig> config() const {
    const std::string image = bytes();
    auto gguf = Gguf::parse(std::as_bytes(std::span(image)), "test");
    if (!gguf.ok())
      return gguf.status();
    return readGgufConfig(**gguf);
  }
  std::string error() const { return config().message(); }
};

/// The least that a model of this architecture says.
inline FileOf least(const std::string &architecture = "llama") {
  FileOf file;
  file.architecture = architecture;
  const bool hasLayerNorms =
      architecture == "gpt2" || architecture == "starcoder2" ||
      architecture == "stablelm" || architecture == "command-r" ||
      architecture == "cohere2";
  const std::string at = architecture + ".";
  file.u32(at + "block_count", 2)
      .u32(at + "context_length", 128)
      .u32(at + "embedding_length", 64)
      .u32(at + "feed_forward_length", 96)
      .u32(at + "attention.head_count", 4)
      .f32(at + (hasLayerNorms ? "attention.layer_norm_epsilon"
                               : "attention.layer_norm_rms_epsilon"),
           1e-5f)
      .tensor("token_embd.weight", {300, 64});
  return file;
}

} // namespace kf::test

#endif // KF_TEST_RUNTIME_MODEL_GGUFTESTING_H
