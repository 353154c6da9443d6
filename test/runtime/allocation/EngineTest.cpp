//===- EngineTest.cpp - Loading and running models without memory ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As in ReadersTest.cpp, of what runs a model: devices, weights, programs.
//
//===----------------------------------------------------------------------===//

#include "FailingAllocations.h"

#include "runtime/core/Exceptions.h"
#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "runtime/engine/Generation.h"
#include "runtime/io/Safetensors.h"
#include "runtime/weights/WeightPacking.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

using namespace kf;
using namespace kf::test;

namespace {

/// Of the checkpoint that is read.
constexpr int64_t kVocab = 307, kHidden = 64;

/// Code of the reference for a kernel of one op.
std::string referenceCode(const std::string &name,
                          const std::vector<std::string> &operands,
                          const std::string &op, const std::string &result) {
  std::string arguments, numbers;
  for (size_t i = 0; i < operands.size(); ++i) {
    arguments += (i ? ", {" : "{") + operands[i] + "}";
    numbers += (i ? ", " : "") + std::to_string(i);
  }
  return R"([{"name": ")" + name + R"(", "arguments": [)" + arguments +
         R"(], "ops": [{"name": ")" + op + R"(", "operands": [)" + numbers +
         R"(], "results": [{"id": 99, "type": {)" + result +
         R"(}}]}], "results": [99]}])";
}

/// A part of a step of a model without layers: the body looks tokens up, the
/// head multiplies, whatever row is wanted, and the highest logit is chosen. On
/// the CPU its kernel counts workgroups, and tokens are zero.
Executable stepOf(const ModelConfig &model, const StepShape &shape,
                  const std::string &target, const std::string &object) {
  const StepSignature signature = stepSignature(shape, model);
  Executable step;
  step.target = target;
  step.programName = nameOf(shape);
  step.maxTokens = shape.rows;
  step.arenaBytes = 256;
  DispatchSpec dispatch;
  const kf_binding input = {KF_BINDING_INPUT, 0, 0},
                   output = {KF_BINDING_OUTPUT, 0, 0};
  if (target == "cpu") {
    step.binary = object;
    step.kernels = {{"count_runs", 64, {1, 1, 1}}};
    dispatch.bindings = {{KF_BINDING_ARENA, 0, 0}};
    dispatch.grid[0] = {-1, 8};
    step.dispatches = {dispatch, dispatch};
  } else {
    const std::string rows =
        shape.rows == 1 ? "1"
                        : std::to_string(extentOfSlot(KF_SCALAR_N_TOKENS));
    const std::string ids = R"("tensor": "i32", "shape": [)" + rows + "]",
                      hidden =
                          R"("tensor": "f32", "shape": [)" + rows + ", 64]",
                      logits =
                          R"("tensor": "f32", "shape": [)" + rows + ", 307]",
                      table = R"("tensor": "f32", "shape": [307, 64])";
    switch (shape.part) {
    case StepPart::Body:
      step.binary =
          referenceCode(step.programName, {ids, table}, "kf.embedding", hidden);
      dispatch.bindings = {input, {KF_BINDING_WEIGHT, 0, 0}, output};
      break;
    case StepPart::Embed: // nobody asks for it
      break;
    case StepPart::Head:
      step.binary =
          referenceCode(step.programName, {hidden, table}, "kf.matmul", logits);
      dispatch.bindings = {input, {KF_BINDING_WEIGHT, 0, 0}, output};
      break;
    case StepPart::Choose:
      step.binary = referenceCode(step.programName, {logits}, "kf.argmax", ids);
      dispatch.bindings = {input, output};
      break;
    }
    step.kernels = {{step.programName, 0, {1, 1, 1}}};
    step.dispatches = {dispatch};
  }
  // As they lie in the file; joined, converted and packed.
  WeightSpec embedding, head, packed;
  embedding.names = {"model.embed_tokens.weight"};
  head.names = {"lm_head.weight"};
  embedding.shape = head.shape = {kVocab, kHidden};
  const std::string attention = "model.layers.0.self_attn.";
  packed.names = {attention + "q_proj.weight", attention + "k_proj.weight"};
  packed.type = DataType::BF16;
  packed.shape = {2 * kHidden, kHidden};
  packed.layout = {WeightLayout::Kind::Panels, 32, 16};
  if (shape.part == StepPart::Body) {
    step.weights = {embedding, packed};
    step.caches = {
        {DataType::F32, model.layers, model.kvHeads, model.headDim, 16}};
  } else if (shape.part == StepPart::Head) {
    step.weights = {head};
  }
  step.inputs = signature.inputs;
  step.outputs = signature.outputs;
  step.namedSizes = signature.sizes;
  return step;
}

/// A model, and its steps for one target, made beforehand.
struct Decoder {
  explicit Decoder(const std::string &target) {
    std::ifstream file(KF_TEST_KERNELS, std::ios::binary);
    std::ostringstream object;
    object << file.rdbuf();
    for (StepPart part : {StepPart::Body, StepPart::Head, StepPart::Choose})
      for (int64_t rows : {1, 16}) {
        const StepShape shape = {part, rows};
        steps[shape] = stepOf(config, shape, target, object.str());
      }
    provider = [this](const StepShape &shape) -> Result<Executable> {
      return steps.at(shape);
    };
    options.maxTokens = 6;
  }

  /// Makes an engine, reads prompts and generates; packs on two threads.
  Status run(Device &device) const {
    ModelConfig config;
    StepProvider steps;
    GenerationOptions options;
    KF_RETURN_IF_ERROR(catchExceptions([&] { // the arguments' copies
      config = this->config;
      steps = provider;
      options = this->options;
      return Status();
    }));
    KF_ASSIGN_OR_RETURN(std::unique_ptr<ThreadPool> pool,
                        ThreadPool::create(2));
    kf::Model model(std::move(config), device, *weights, std::move(steps),
                    {.pool = pool.get()});
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::create(model));
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Sequence> sequence,
                        engine->createSequence());
    const int32_t prompt[] = {1, 2, 3, 4, 5};
    KF_ASSIGN_OR_RETURN(Sampler sampler, Sampler::create({}));
    KF_ASSIGN_OR_RETURN(
        GenerationResult generation,
        generate(*sequence, sampler, nullptr, prompt, std::move(options)));
    return generation.ids.size() == 6 ? Status()
                                      : Status::error("too few tokens");
  }

  ModelConfig config = loadModelConfig(folder).take();
  std::unique_ptr<WeightSource> weights = openSafetensors(folder).take();
  std::map<StepShape, Executable> steps;
  StepProvider provider;
  GenerationOptions options;

  static inline const std::string folder =
      KF_SOURCE_DIR "/test/golden/llama2-mha";
};

TEST(Allocation, ThreadPools) {
  failEverywhere([] { return ThreadPool::create(0).status(); });
  failEverywhere([] { return ThreadPool::create(3).status(); });
}

TEST(Allocation, PackedWeights) {
  const auto weights = openSafetensors(Decoder::folder).take();
  const auto pool = ThreadPool::create(2).take();
  WeightSpec spec;
  spec.names = {"model.embed_tokens.weight"};
  spec.type = DataType::BF16;
  spec.shape = {kVocab, kHidden};
  spec.layout = {WeightLayout::Kind::Panels, 32, 16};
  failEverywhere([&] {
    return packWeight(spec, *weights, {.pool = pool.get()}).status();
  });
}

TEST(Allocation, EngineOnTheReference) {
  const Decoder model("reference");
  const std::unique_ptr<Device> device = createReferenceDevice();
  failEverywhere([&] { return model.run(*device); });
}

TEST(Allocation, EngineOnTheCpu) {
  const Decoder model("cpu");
  // The linker is LLVM's, which does not go on without any memory at all.
  failEverywhere(
      [&] {
        KF_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                            createCpuDevice({.threads = 2}));
        return model.run(*device);
      },
      {Failing::One});
}

} // namespace
