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
#include "kf/Pipelines/Registration.h"
#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "runtime/io/Gguf.h"
#include "runtime/io/Safetensors.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/ModelConfig.h"
#include "runtime/model/TiedEmbeddings.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <tuple>

using namespace kf;
using namespace kf::test;

Result<Executable> ModelUnderTest::compileStep(const StepShape &shape) {
  // Tests of one model share its executables.
  using Key = std::tuple<std::string, std::string, std::string, StepShape>;
  static std::map<Key, Executable> compiled;
  auto key = std::tuple(path, target, cpu, shape);
  if (auto found = compiled.find(key); found != compiled.end())
    return found->second;
  mlir::DialectRegistry registry;
  mlir::kf::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  mlir::kf::ImportOptions importOptions;
  importOptions.shape = shape;
  auto module = mlir::kf::importStep(context, config, *weights, importOptions);
  if (!module)
    return Status::error(llvm::toString(module.takeError()));
  mlir::kf::CompileOptions options;
  options.target = *mlir::kf::parseTarget(target);
  options.targetCpu = cpu;
  auto executable = mlir::kf::compile(**module, options);
  if (!executable)
    return Status::error(llvm::toString(executable.takeError()));
  compiled[key] = *executable;
  return std::move(*executable);
}

Status ModelUnderTest::readModel() {
  if (path.ends_with(".gguf")) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Gguf> file, Gguf::open(path));
    KF_ASSIGN_OR_RETURN(config, readGgufConfig(*file));
    weights = std::move(file);
    return Status();
  }
  KF_ASSIGN_OR_RETURN(config, loadModelConfig(path));
  KF_ASSIGN_OR_RETURN(weights, openSafetensors(path));
  return settleTiedEmbeddings(config, *weights);
}

std::unique_ptr<ModelUnderTest> ModelUnderTest::open(const std::string &path,
                                                     const std::string &device,
                                                     unsigned threads,
                                                     const std::string &cpu) {
  auto model = std::make_unique<ModelUnderTest>();
  model->target = device;
  model->path = path;
  model->cpu = cpu;
  if (Status status = model->readModel(); !status.ok()) {
    ADD_FAILURE() << status.message();
    return nullptr;
  }
  if (device == "reference") {
    model->device = createReferenceDevice();
  } else {
    CpuDeviceOptions options;
    options.threads = threads;
    auto created = createCpuDevice(options);
    if (!created.ok()) {
      ADD_FAILURE() << created.message();
      return nullptr;
    }
    model->device = created.take();
  }
  ModelUnderTest *self = model.get();
  auto session = Session::create(
      model->config, *model->device, *model->weights,
      [self](const StepShape &shape) { return self->compileStep(shape); });
  if (!session.ok()) {
    ADD_FAILURE() << session.message();
    return nullptr;
  }
  model->current = session.take();
  return model;
}

HeldOut kf::test::measureHeldOut(Session &session, const Tokenizer &tokenizer,
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
    session.reset();
    Status status =
        session.allLogits(std::span<const int32_t>(ids).first(ids.size() - 1),
                          [&](int64_t position, std::span<const float> logits) {
                            nll +=
                                logSumExp(logits) - logits[ids[position + 1]];
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
