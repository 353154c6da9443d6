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
#include "runtime/io/Safetensors.h"
#include "runtime/model/ModelConfig.h"
#include "runtime/reference/ReferenceDevice.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

using namespace kf;
using namespace kf::test;

Result<Executable> ModelUnderTest::compileStep(StepKind kind,
                                               int64_t maxTokens) {
  // Tests of one model share its executables.
  static std::map<std::tuple<std::string, std::string, StepKind, int64_t>,
                  Executable>
      compiled;
  auto key = std::tuple(folder, target, kind, maxTokens);
  if (auto found = compiled.find(key); found != compiled.end())
    return found->second;
  mlir::DialectRegistry registry;
  mlir::kf::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  mlir::kf::ImportOptions importOptions;
  importOptions.kind = kind;
  importOptions.maxTokens = maxTokens;
  auto module = mlir::kf::importStep(context, config, *weights, importOptions);
  if (!module)
    return Status::error(llvm::toString(module.takeError()));
  mlir::kf::CompileOptions options;
  options.target = *mlir::kf::parseTarget(target);
  auto executable = mlir::kf::compile(**module, options);
  if (!executable)
    return Status::error(llvm::toString(executable.takeError()));
  compiled[key] = *executable;
  return std::move(*executable);
}

std::unique_ptr<ModelUnderTest> ModelUnderTest::open(const std::string &folder,
                                                     const std::string &device,
                                                     unsigned threads) {
  auto model = std::make_unique<ModelUnderTest>();
  model->target = device;
  model->folder = folder;
  auto config = loadModelConfig(folder);
  auto weights = openSafetensors(folder);
  if (!config.ok() || !weights.ok()) {
    ADD_FAILURE() << config.message() << weights.message();
    return nullptr;
  }
  model->config = config.take();
  model->weights = weights.take();
  if (device == "reference") {
    model->device = createReferenceDevice();
  } else {
    CpuDeviceOptions options;
    options.threads = threads;
    auto cpu = createCpuDevice(options);
    if (!cpu.ok()) {
      ADD_FAILURE() << cpu.message();
      return nullptr;
    }
    model->device = cpu.take();
  }
  ModelUnderTest *self = model.get();
  auto session = Session::create(model->config, *model->device, *model->weights,
                                 [self](StepKind kind, int64_t maxTokens) {
                                   return self->compileStep(kind, maxTokens);
                                 });
  if (!session.ok()) {
    ADD_FAILURE() << session.message();
    return nullptr;
  }
  model->current = session.take();
  return model;
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
