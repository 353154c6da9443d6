//===- ConvertTesting.h - Models to be written as GGUF files ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_CONVERT_CONVERTTESTING_H
#define KF_TEST_RUNTIME_CONVERT_CONVERTTESTING_H

#include "runtime/convert/WriteGguf.h"
#include "runtime/io/Safetensors.h"
#include "runtime/model/StoredTensors.h"
#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kf::test {

inline const std::string kModels = KF_SOURCE_DIR "/models/";
inline const std::string kGolden = KF_SOURCE_DIR "/test/golden/";

/// Weights that lie in a map.
class MapWeights : public WeightSource {
public:
  void add(const std::string &name, std::vector<int64_t> shape,
           const std::vector<float> &values) {
    HostTensor &tensor = tensors[name];
    tensor = *HostTensor::zeros(DataType::F32, std::move(shape));
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  }
  Result<TensorView> find(const std::string &name) const override {
    auto found = tensors.find(name);
    if (found == tensors.end())
      return Status::error("no tensor " + name);
    const HostTensor &tensor = found->second;
    return TensorView{tensor.type, tensor.shape, tensor.bytes.data(),
                      tensor.bytes.size()};
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto &[name, tensor] : tensors)
      result.push_back(name);
    return result;
  }
  std::map<std::string, HostTensor> tensors;
};

struct Source {
  ModelConfig config;
  std::unique_ptr<WeightSource> weights;
};

inline Source openSource(const std::string &folder) {
  Source source;
  Result<ModelConfig> config = loadModelConfig(folder);
  EXPECT_TRUE(config.ok()) << config.message();
  source.config = config.take();
  auto weights = openSafetensors(folder);
  EXPECT_TRUE(weights.ok()) << weights.message();
  source.weights = weights.take();
  EXPECT_TRUE(adaptStoredTensors(source.config, source.weights).ok());
  return source;
}

/// The golden model `name`, as files of its architecture can say it: what gates
/// of gpt-oss' experts are clamped by goes without saying there.
inline std::string writableGolden(const TempFolder &folder,
                                  const std::string &name) {
  const std::string original = kGolden + name;
  if (!name.starts_with("gpt-oss"))
    return original;
  std::ifstream file(original + "/config.json");
  std::string config((std::istreambuf_iterator<char>(file)), {});
  const std::string limit = "\"swiglu_limit\": ";
  const size_t at = config.find(limit);
  EXPECT_NE(at, std::string::npos);
  if (at != std::string::npos) {
    const size_t begin = at + limit.size();
    config.replace(begin, config.find_first_of(",\n}", begin) - begin, "7.0");
  }
  std::filesystem::create_directory(folder.path(name));
  folder.write(name + "/config.json", config);
  std::filesystem::copy_file(original + "/model.safetensors",
                             folder.path(name + "/model.safetensors"),
                             std::filesystem::copy_options::overwrite_existing);
  return folder.path(name);
}

inline std::unique_ptr<ThreadPool> makePool() {
  return ThreadPool::create(3).take();
}

/// Writes the plan and opens the file.
inline std::unique_ptr<Gguf> writeAndOpen(const TempFolder &folder,
                                          const GgufPlan &plan,
                                          const WeightSource &weights) {
  const std::string path = folder.path("out.gguf");
  auto pool = makePool();
  Result<WriteSummary> summary =
      writeGguf(plan, weights, path, *pool, {.replace = true, .progress = {}});
  EXPECT_TRUE(summary.ok()) << summary.message();
  auto gguf = Gguf::open(path);
  EXPECT_TRUE(gguf.ok()) << gguf.message();
  return gguf.ok() ? gguf.take() : nullptr;
}

inline std::unique_ptr<Gguf> convertFolder(const TempFolder &folder,
                                           const std::string &model,
                                           DataType type) {
  Source source = openSource(model);
  Result<GgufPlan> plan =
      planFromModel(source.config, *source.weights, {}, "x", type);
  EXPECT_TRUE(plan.ok()) << plan.message();
  return plan.ok() ? writeAndOpen(folder, *plan, *source.weights) : nullptr;
}

inline std::vector<float> valuesOf(const WeightSource &source,
                                   const std::string &name) {
  Result<TensorView> view = source.find(name);
  EXPECT_TRUE(view.ok()) << view.message();
  if (!view.ok())
    return {};
  int64_t count = 1;
  for (int64_t size : view->shape)
    count *= size;
  std::vector<float> values(static_cast<size_t>(count));
  EXPECT_TRUE(
      convertToFloat(view->type, view->data, count, values.data()).ok());
  return values;
}

inline bool sameBytes(const TensorView &a, const TensorView &b) {
  return a.type == b.type && a.shape == b.shape && a.bytes == b.bytes &&
         std::memcmp(a.data, b.data, a.bytes) == 0;
}

} // namespace kf::test

#endif // KF_TEST_RUNTIME_CONVERT_CONVERTTESTING_H
