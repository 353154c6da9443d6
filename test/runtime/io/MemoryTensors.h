//===- MemoryTensors.h - Tensors that a test writes down --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_IO_MEMORYTENSORS_H
#define KF_TEST_RUNTIME_IO_MEMORYTENSORS_H

#include "runtime/weights/WeightSource.h"

#include <map>
#include <string>
#include <vector>

namespace kf::test {

/// What is released: "name", or "name first bytes" of a part.
using Releases = std::vector<std::string>;

/// Tensors that a test writes down, by name.
class MemoryTensors : public WeightSource {
public:
  /// Writes down in `releases`, unless it is null, what is released.
  explicit MemoryTensors(Releases *releases = nullptr) : releases(releases) {}

  void add(const std::string &name, DataType type, std::vector<int64_t> shape,
           std::string bytes) {
    contents[name] = {type, std::move(shape), std::move(bytes)};
  }
  void add(const std::string &name, std::vector<int64_t> shape,
           const std::vector<float> &values) {
    add(name, DataType::F32, std::move(shape),
        std::string(reinterpret_cast<const char *>(values.data()),
                    values.size() * sizeof(float)));
  }

  Result<TensorView> find(const std::string &name) const override {
    auto it = contents.find(name);
    if (it == contents.end())
      return Status::error("no tensor '" + name + "'");
    const Content &content = it->second;
    return TensorView{content.type, content.shape, content.bytes.data(),
                      content.bytes.size()};
  }
  void release(const std::string &name) const override {
    if (releases)
      releases->push_back(name);
  }
  void releasePart(const std::string &name, uint64_t first,
                   uint64_t bytes) const override {
    if (releases)
      releases->push_back(name + " " + std::to_string(first) + " " +
                          std::to_string(bytes));
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto &[name, content] : contents)
      result.push_back(name);
    return result;
  }

private:
  struct Content {
    DataType type;
    std::vector<int64_t> shape;
    std::string bytes;
  };
  std::map<std::string, Content> contents;
  Releases *releases;
};

} // namespace kf::test

#endif // KF_TEST_RUNTIME_IO_MEMORYTENSORS_H
