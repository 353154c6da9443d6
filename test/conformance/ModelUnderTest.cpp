//===- ModelUnderTest.cpp - A model compiled for one device ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelUnderTest.h"

#include "kf/Import/Import.h"
#include "kf/Pipelines/Compiler.h"
#include "kf/Pipelines/KernelCodes.h"
#include "kf/Pipelines/Registration.h"
#include "runtime/adapter/AdapterWeights.h"
#include "runtime/engine/ModelFiles.h"
#include "runtime/io/Gguf.h"
#include "runtime/model/DummyWeights.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/ModelConfig.h"
#include "runtime/model/RopeFactors.h"
#include "runtime/model/Sharding.h"
#include "runtime/model/TensorList.h"
#include "runtime/model/TiedEmbeddings.h"
#include "test/runtime/io/MemoryTensors.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

using namespace kf;
using namespace kf::test;

void kf::test::widen(std::unique_ptr<WeightSource> &weights) {
  auto wide = std::make_unique<MemoryTensors>();
  for (const std::string &name : weights->names()) {
    auto view = weights->find(name);
    ASSERT_TRUE(view.ok()) << view.message();
    auto count = checkedElementCount(view->shape);
    ASSERT_TRUE(count.ok()) << count.message();
    std::vector<float> values(static_cast<size_t>(*count));
    const Status status =
        convertToFloat(view->type, view->data, *count, values.data());
    ASSERT_TRUE(status.ok()) << status.message();
    wide->add(name, view->shape, values);
  }
  weights = std::move(wide);
}

Result<Executable> kf::test::compileOnce(const std::string &model,
                                         const std::string &target,
                                         const ModelConfig &config,
                                         const WeightSource &weights,
                                         const StepShape &shape) {
  // Ranks, stages and positions by themselves: a part of two is not a stage of
  // two.
  using Key = std::tuple<std::string, std::string, int64_t, int64_t, int64_t,
                         int64_t, StepShape>;
  static std::map<Key, std::shared_ptr<const Executable>> compiled;
  // By target and text: many models have the same choices, and some heads.
  static std::map<std::pair<std::string, std::string>,
                  std::shared_ptr<const Executable>>
      ofTexts;
  // Models share kernels, and so do the parts of one that ranks have.
  static mlir::kf::KernelCodes kernelCodes;
  static std::mutex compiling;
  std::lock_guard<std::mutex> lock(compiling);
  auto key = std::tuple(model, target, config.ranks, config.stage.count,
                        config.stage.number, config.contextRanks, shape);
  if (auto found = compiled.find(key); found != compiled.end())
    return *found->second;
  mlir::DialectRegistry registry;
  mlir::kf::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  mlir::kf::ImportOptions importOptions;
  importOptions.shape = shape;
  auto module = mlir::kf::importStep(context, config, weights, importOptions);
  if (!module)
    return Status::error(llvm::toString(module.takeError()));
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*module)->print(stream);
  auto &known = ofTexts[{target, text}];
  if (!known) {
    mlir::kf::CompileOptions options;
    options.target = target;
    options.kernelCodes = &kernelCodes;
    auto executable = mlir::kf::compile(**module, options);
    if (!executable)
      return Status::error(llvm::toString(executable.takeError()));
    known = std::make_shared<const Executable>(std::move(*executable));
  }
  compiled[key] = known;
  return *known;
}

Status ModelUnderTest::readModel() {
  if (path.ends_with(".gguf")) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Gguf> file, Gguf::open(path));
    KF_ASSIGN_OR_RETURN(modelConfig, readGgufConfig(*file));
    weights = std::move(file);
    return Status();
  }
  KF_ASSIGN_OR_RETURN(modelConfig, loadModelConfig(path));
  KF_ASSIGN_OR_RETURN(weights, openModelWeights(path, modelConfig));
  KF_RETURN_IF_ERROR(settleTiedEmbeddings(modelConfig, *weights));
  return keepFloat8(modelConfig, *weights).status();
}

/// Becomes a rank's part of the model that was read.
Status ModelUnderTest::becomeRank(const Group &group) {
  KF_ASSIGN_OR_RETURN(
      ModelShard shard,
      shardModel(modelConfig, std::move(weights), group.rank(), group.size()));
  modelConfig = std::move(shard.config);
  weights = std::move(shard.weights);
  return Status();
}

std::unique_ptr<ModelUnderTest> ModelUnderTest::open(
    const std::string &path, const std::string &device, unsigned threads,
    const std::string &cpu, const EngineOptions &options,
    const std::function<void(std::unique_ptr<WeightSource> &)> &change,
    Group *group) {
  auto model = std::make_unique<ModelUnderTest>();
  model->path = path;
  if (Status status = model->readModel(); !status.ok()) {
    ADD_FAILURE() << status.message();
    return nullptr;
  }
  settleContext(model->modelConfig, options.contextLength
                                        ? options.contextLength
                                        : model->modelConfig.maxPositions);
  if (change)
    change(model->weights);
  return start(std::move(model),
               cpu != "native" ? cpu
               : threads == 2  ? device + "2"
                               : device,
               options, group);
}

std::unique_ptr<ModelUnderTest> ModelUnderTest::openAdapted(
    const std::string &path, const std::vector<std::string> &adapters,
    const std::string &device, unsigned threads,
    const std::function<void(std::unique_ptr<WeightSource> &)> &change,
    const std::string &changed) {
  auto model = std::make_unique<ModelUnderTest>();
  model->path = path;
  const Status status = [&]() -> Status {
    KF_RETURN_IF_ERROR(model->readModel());
    if (change)
      change(model->weights);
    std::vector<PeftAdapter> opened;
    for (const std::string &adapter : adapters) {
      KF_ASSIGN_OR_RETURN(PeftAdapter own,
                          PeftAdapter::open(adapter, model->modelConfig));
      opened.push_back(std::move(own));
      model->path += " " + adapter;
    }
    KF_ASSIGN_OR_RETURN(model->weights,
                        AdapterWeights::create(model->modelConfig,
                                               std::move(model->weights),
                                               std::move(opened)));
    return Status();
  }();
  if (!status.ok()) {
    ADD_FAILURE() << status.message();
    return nullptr;
  }
  model->path += " " + changed;
  return start(std::move(model), threads == 2 ? device + "2" : device,
               {.parallel = 4, .reusesPrefixes = false}, /*group=*/nullptr);
}

std::unique_ptr<ModelUnderTest>
ModelUnderTest::openRandom(const ModelConfig &config, DataType type,
                           const std::string &device,
                           const EngineOptions &options, Group *group) {
  auto model = std::make_unique<ModelUnderTest>();
  model->path = "random " + std::string(nameOf(config.architecture)) + " " +
                std::string(nameOf(type)) + " of " +
                std::to_string(config.maxPositions);
  model->modelConfig = config;
  auto weights = DummyWeights::create(config, type, /*seed=*/3);
  if (!weights.ok()) {
    ADD_FAILURE() << weights.message();
    return nullptr;
  }
  model->weights = weights.take();
  return start(std::move(model), device, options, group);
}

std::unique_ptr<ModelUnderTest>
ModelUnderTest::start(std::unique_ptr<ModelUnderTest> model,
                      const std::string &name, const EngineOptions &options,
                      Group *group) {
  if (group)
    if (Status status = model->becomeRank(*group); !status.ok()) {
      ADD_FAILURE() << status.message();
      return nullptr;
    }
  model->device = openTestDevice(
      group && name == "cuda" ? "cuda:" + std::to_string(group->rank()) : name);
  if (!model->device)
    return nullptr;
  if (group)
    EXPECT_EQ(model->device->join(*group).message(), "");
  model->target = targetFor(*model->device, name);
  ModelUnderTest *self = model.get();
  model->model = std::make_unique<Model>(
      model->modelConfig, *model->device, *model->weights,
      [self](const StepShape &shape) { return self->compileStep(shape); },
      ModelOptions{model->path, nullptr, nullptr});
  auto engine = Engine::create(*model->model, options);
  if (!engine.ok()) {
    ADD_FAILURE() << engine.message();
    return nullptr;
  }
  model->running = engine.take();
  return model;
}

std::unique_ptr<Sequence> ModelUnderTest::sequence(int64_t adapter) {
  return running->createSequence(adapter).take();
}

std::vector<int32_t>
ModelUnderTest::continueGreedily(std::span<const int32_t> prompt, size_t count,
                                 std::vector<int64_t> stops) {
  auto own = sequence();
  Sampler sampler = Sampler::create({}).take();
  GenerationOptions options;
  options.maxTokens = static_cast<int64_t>(count);
  options.stopIds = std::move(stops);
  auto generated = generate(*own, sampler, nullptr, prompt, options);
  EXPECT_TRUE(generated.ok()) << generated.message();
  return generated.ok() ? generated->ids : std::vector<int32_t>();
}

std::vector<ModelCase>
kf::test::casesOf(std::initializer_list<const char *> models,
                  std::initializer_list<const char *> cpus) {
  std::vector<ModelCase> list;
  for (const char *model : models) {
    list.push_back({model, "reference", 1});
    list.push_back({model, "cpu", 1});
    list.push_back({model, "cpu", 2});
    for (const char *cpu : cpus)
      list.push_back({model, cpu, 1});
    for (const char *gpu : gpuDevices)
      list.push_back({model, gpu, 1});
  }
  return list;
}

std::string kf::test::caseName(const testing::TestParamInfo<ModelCase> &info) {
  std::string name = info.param.model + "_" + info.param.device;
  if (info.param.threads != 1)
    name += std::to_string(info.param.threads);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

Result<std::vector<float>> kf::test::lastLogits(Sequence &sequence,
                                                std::span<const int32_t> ids) {
  Reading reading;
  reading.ids.assign(ids.begin(), ids.end());
  reading.firstLogits = ids.size() - 1;
  std::vector<float> last;
  reading.onLogits = [&](size_t, std::span<const float> logits) {
    last.assign(logits.begin(), logits.end());
    return Status();
  };
  KF_RETURN_IF_ERROR(readAlone(sequence, std::move(reading)).status());
  return last;
}

HeldOut kf::test::measureHeldOut(ModelUnderTest &model,
                                 const Tokenizer &tokenizer,
                                 const std::string &path) {
  constexpr int32_t beginToken = 1472, endToken = 1473; // of kf-stories
  std::ifstream file(path);
  double nll = 0;
  HeldOut result;
  for (const auto &story : nlohmann::json::parse(file)) {
    auto text = tokenizer.encode(story.get<std::string>(), false);
    EXPECT_TRUE(text.ok()) << text.message();
    std::vector<int32_t> ids = {beginToken};
    ids.insert(ids.end(), text->begin(), text->end());
    ids.push_back(endToken);
    auto sequence = model.sequence();
    Status status = readLogits(
        *sequence, std::span<const int32_t>(ids).first(ids.size() - 1),
        [&](size_t index, std::span<const float> logits) {
          nll += logSumExp(logits) - logits[ids[index + 1]];
          ++result.tokens;
          return Status();
        });
    EXPECT_TRUE(status.ok()) << status.message();
  }
  result.nllPerToken = nll / static_cast<double>(result.tokens);
  return result;
}

int32_t kf::test::argmax(std::span<const float> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

double kf::test::logSumExp(std::span<const float> logits) {
  double largest = *std::max_element(logits.begin(), logits.end()), sum = 0;
  for (float logit : logits)
    sum += std::exp(logit - largest);
  return largest + std::log(sum);
}
