//===- LoadingTest.cpp - Opening and running models without memory --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Wherever an allocation fails, the outcome is an error or a success: nothing
// is thrown, nothing ends the process, nothing leaks (with the asan preset).
//
//===----------------------------------------------------------------------===//

#include "FailingAllocations.h"

#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/io/Gguf.h"
#include "runtime/io/Safetensors.h"
#include "runtime/model/ChatConfig.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/reference/ReferenceDevice.h"
#include "runtime/session/Session.h"
#include "runtime/text/Tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>

using namespace kf;
using namespace kf::test;

namespace {

const std::string kGolden = KF_SOURCE_DIR "/test/golden/llama2-mha";
const std::string kGguf =
    KF_SOURCE_DIR "/models/kf-stories-gguf/kf-stories-Q4_0.gguf";
const std::string kTokenizers = KF_SOURCE_DIR "/test/runtime/text/data/";

/// Does `work` again and again, with failures from each of its allocations on:
/// from all of the first hundred, from ever fewer of those behind.
void failEverywhere(const std::function<Status()> &work,
                    std::initializer_list<Failing> kinds = {Failing::One,
                                                            Failing::Rest}) {
  int64_t allocations = 0;
  {
    FailingAllocations none(INT64_MAX, Failing::One);
    Status status = work();
    allocations = none.count();
    ASSERT_EQ(status.message(), "");
  }
  ASSERT_GT(allocations, 0);
  int64_t runs = 0, errors = 0;
  for (Failing which : kinds)
    for (int64_t first = 0; first < allocations; first += 1 + first / 100) {
      Status status;
      bool thrown = false;
      {
        FailingAllocations failing(first, which);
        try {
          status = work();
        } catch (...) {
          thrown = true;
        }
      }
      EXPECT_FALSE(thrown) << "allocation " << first << " of " << allocations;
      EXPECT_TRUE(status.ok() || !status.message().empty());
      ++runs;
      errors += !status.ok();
    }
  // What does without memory here and there is the exception.
  EXPECT_GT(errors, runs / 2) << "of " << runs;
  EXPECT_EQ(work().message(), "") << "after all";
}

TEST(Allocation, OpeningSafetensors) {
  failEverywhere([] {
    KF_ASSIGN_OR_RETURN(ModelConfig config, loadModelConfig(kGolden));
    KF_ASSIGN_OR_RETURN(auto weights, openSafetensors(kGolden));
    (void)weights;
    return Status();
  });
}

TEST(Allocation, OpeningGguf) {
  failEverywhere([] {
    KF_ASSIGN_OR_RETURN(auto gguf, Gguf::open(kGguf));
    KF_ASSIGN_OR_RETURN(ModelConfig config, readGgufConfig(*gguf));
    KF_ASSIGN_OR_RETURN(ChatConfig chat, readChatConfig(*gguf));
    return Status();
  });
}

TEST(Allocation, Tokenizers) {
  for (const char *name : {"gpt2.json", "llama-metaspace.json", "llama.model",
                           "unigram-rules.model", "llama3.gguf"}) {
    SCOPED_TRACE(name);
    failEverywhere([&] {
      KF_ASSIGN_OR_RETURN(Tokenizer tokenizer,
                          Tokenizer::open(kTokenizers + name));
      return tokenizer.encode("Some words, 123 and more.", true).status();
    });
  }
}

/// A step whose one kernel, if it has any, counts workgroups in the arena; its
/// weights are packed, converted and bound as those of a model are.
Executable stepOf(const ModelConfig &model, StepKind kind, int64_t maxTokens,
                  const std::string &target, const std::string &binary) {
  const int64_t rows = maxTokens == 1 ? 1 : -1;
  const TensorSpec ids = {DataType::I32, {rows}};
  const TensorSpec hidden = {DataType::F32, {rows, model.hiddenSize}};
  const TensorSpec logits = {DataType::F32, {rows, model.vocabSize}};
  Executable step;
  step.target = target;
  step.programName = std::string(nameOf(kind));
  step.maxTokens = maxTokens;
  step.arenaBytes = 256;
  step.binary = binary;
  if (target == "cpu") {
    step.kernels = {{"count_runs", 64, {1, 1, 1}}};
    DispatchSpec dispatch;
    dispatch.bindings = {{KF_BINDING_ARENA, 0, 0}};
    dispatch.grid[0] = {-1, 8};
    step.dispatches = {dispatch, dispatch};
  }
  WeightSpec norm, joined;
  norm.names = {"model.norm.weight"};
  norm.shape = {model.hiddenSize};
  const std::string attention = "model.layers.0.self_attn.";
  joined.names = {attention + "q_proj.weight", attention + "k_proj.weight"};
  joined.type = DataType::BF16;
  joined.shape = {2 * model.hiddenSize, model.hiddenSize};
  joined.layout = {WeightLayout::Kind::Panels, 32, 16};
  step.weights = {norm, joined};
  step.inputs = {ids, ids};
  if (kind == StepKind::Head)
    step.inputs = {hidden};
  else
    step.caches = {
        {DataType::F32, model.layers, model.kvHeads, model.headDim, 16}};
  step.outputs = {kind == StepKind::Prefill ? hidden : logits};
  return step;
}

/// Makes a session on `device` and reads a few tokens, on two threads.
Status runSession(Device &device, const ModelConfig &config,
                  const WeightSource &weights, const std::string &binary) {
  auto provider = [&](StepKind kind, int64_t maxTokens) -> Result<Executable> {
    return stepOf(config, kind, maxTokens, device.name(), binary);
  };
  KF_ASSIGN_OR_RETURN(std::unique_ptr<ThreadPool> pool, ThreadPool::create(2));
  KF_ASSIGN_OR_RETURN(
      std::unique_ptr<Session> session,
      Session::create(config, device, weights, provider, {.pool = pool.get()}));
  const int32_t ids[] = {1, 2, 3, 4, 5};
  KF_RETURN_IF_ERROR(session->prefill(ids).status());
  return session->decode(6).status();
}

struct OpenModel {
  ModelConfig config = loadModelConfig(kGolden).take();
  std::unique_ptr<WeightSource> weights = openSafetensors(kGolden).take();
};

TEST(Allocation, SessionOnTheReference) {
  const OpenModel model;
  const std::unique_ptr<Device> device = createReferenceDevice();
  failEverywhere(
      [&] { return runSession(*device, model.config, *model.weights, "[]"); });
}

TEST(Allocation, SessionOnTheCpu) {
  const OpenModel model;
  std::ifstream file(KF_TEST_KERNELS, std::ios::binary);
  std::ostringstream object;
  object << file.rdbuf();
  const std::string binary = object.str();
  // The linker is LLVM's, which does not go on without any memory at all.
  failEverywhere(
      [&] {
        KF_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                            createCpuDevice({.threads = 2}));
        return runSession(*device, model.config, *model.weights, binary);
      },
      {Failing::One});
}

} // namespace
