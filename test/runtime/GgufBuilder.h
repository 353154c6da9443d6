//===- GgufBuilder.h - GGUF files byte by byte ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes what it is told, sound or not: the tests of the reader need files
// that no writer would make.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_GGUFBUILDER_H
#define KF_TEST_RUNTIME_GGUFBUILDER_H

#include "runtime/io/GgufFormat.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf::test {

/// The bytes of a number.
template <typename T> std::string raw(T value) {
  return std::string(reinterpret_cast<const char *>(&value), sizeof(T));
}

/// A string as GGUF has it, with its length.
inline std::string ggufString(std::string_view text) {
  return raw<uint64_t>(text.size()) + std::string(text);
}

/// An array's value: element type, number, elements.
inline std::string ggufArray(uint32_t type, uint64_t count,
                             const std::string &elements) {
  return raw(type) + raw(count) + elements;
}

class GgufBuilder {
public:
  uint32_t version = 3;
  /// What the header claims; the true numbers without.
  std::optional<uint64_t> claimedTensors, claimedEntries;
  uint64_t alignment = 32; ///< of the padding before the data, and of tensors

  GgufBuilder &entry(std::string_view key, uint32_t type,
                     const std::string &value) {
    metadata += ggufString(key) + raw(type) + value;
    ++entries;
    return *this;
  }
  GgufBuilder &entry(std::string_view key, GgufValueType type,
                     const std::string &value) {
    return entry(key, static_cast<uint32_t>(type), value);
  }
  GgufBuilder &u32(std::string_view key, uint32_t value) {
    return entry(key, GgufValueType::U32, raw(value));
  }
  GgufBuilder &f32(std::string_view key, float value) {
    return entry(key, GgufValueType::F32, raw(value));
  }
  GgufBuilder &boolean(std::string_view key, bool value) {
    return entry(key, GgufValueType::Bool, std::string(1, char(value)));
  }
  GgufBuilder &text(std::string_view key, std::string_view value) {
    return entry(key, GgufValueType::String, ggufString(value));
  }
  GgufBuilder &strings(std::string_view key,
                       const std::vector<std::string> &values) {
    std::string elements;
    for (const std::string &value : values)
      elements += ggufString(value);
    return entry(
        key, GgufValueType::Array,
        ggufArray(uint32_t(GgufValueType::String), values.size(), elements));
  }
  GgufBuilder &i32s(std::string_view key, const std::vector<int32_t> &values) {
    std::string elements;
    for (int32_t value : values)
      elements += raw(value);
    return entry(
        key, GgufValueType::Array,
        ggufArray(uint32_t(GgufValueType::I32), values.size(), elements));
  }

  /// An entry of a tensor as it is told; `sizes` has the innermost first.
  GgufBuilder &tensorEntry(std::string_view name,
                           const std::vector<uint64_t> &sizes, uint32_t type,
                           uint64_t offset) {
    infos += ggufString(name) + raw<uint32_t>(uint32_t(sizes.size()));
    for (uint64_t size : sizes)
      infos += raw(size);
    infos += raw(type) + raw(offset);
    ++tensors;
    return *this;
  }
  /// A tensor behind those before it; `shape` is row-major. Without `bytes` it
  /// is of zeros.
  GgufBuilder &tensor(std::string_view name, const std::vector<int64_t> &shape,
                      DataType type = DataType::F32, std::string bytes = {}) {
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    tensorEntry(name, std::vector<uint64_t>(shape.rbegin(), shape.rend()),
                findGgmlType(type)->number, data.size());
    if (bytes.empty())
      bytes.resize(size_t(*checkedByteCount(type, shape)));
    data += bytes;
    return *this;
  }
  GgufBuilder &append(std::string_view bytes) {
    data += bytes;
    return *this;
  }

  /// Header, metadata and tensors' entries.
  std::string head() const {
    return std::string(kGgufMagic) + raw(version) +
           raw<uint64_t>(claimedTensors.value_or(tensors)) +
           raw<uint64_t>(claimedEntries.value_or(entries)) + metadata + infos;
  }
  /// The whole file.
  std::string bytes() const {
    std::string result = head();
    result.resize((result.size() + alignment - 1) / alignment * alignment);
    return result + data;
  }

private:
  std::string metadata, infos, data;
  uint64_t entries = 0, tensors = 0;
};

} // namespace kf::test

#endif // KF_TEST_RUNTIME_GGUFBUILDER_H
