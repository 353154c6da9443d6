//===- Training.cpp - The programs that train a decoder -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/Training.h"

#include "runtime/core/JsonText.h"
#include "runtime/core/Quote.h"
#include "runtime/model/TensorList.h"

#include <cmath>
#include <locale>
#include <sstream>

using namespace kf;

static std::string_view partName(TrainingPart part) {
  switch (part) {
  case TrainingPart::Gradient:
    return "gradient";
  case TrainingPart::Loss:
    return "loss";
  case TrainingPart::Update:
    return "update";
  }
  return "";
}

std::string kf::nameOf(const TrainingShape &shape) {
  std::string name(partName(shape.part));
  if (shape.part != TrainingPart::Update)
    name +=
        "_" + std::to_string(shape.rows) + "x" + std::to_string(shape.length);
  return name;
}

std::string kf::describe(const TrainingShape &shape) {
  std::ostringstream text;
  text.imbue(std::locale::classic()); // whatever the program's own is
  text.precision(17);
  text << nameOf(shape);
  if (shape.lora) {
    text << " lora " << shape.lora->rank << " " << shape.lora->scale();
    for (const std::string &target : shape.lora->targets)
      text << " " << target;
    if (shape.dropsOut())
      text << " dropout " << shape.lora->dropout;
  }
  if (shape.part == TrainingPart::Gradient &&
      shape.recompute == Recompute::Layers)
    text << " recompute layers";
  if (shape.part == TrainingPart::Update) {
    const OptimizerOptions &own = shape.optimizer;
    text << " optimizer " << static_cast<int>(own.kind) << " " << own.beta1
         << " " << own.beta2 << " " << own.epsilon << " " << own.momentum << " "
         << own.weightDecay << " " << own.decaysAll << " " << own.clipNorm;
  }
  return text.str();
}

Status OptimizerOptions::validate() const {
  struct Number {
    const char *name;
    double value;
    bool isGood;
    const char *expected;
  };
  auto isBelow = [](double value, float limit) {
    return value >= 0 && static_cast<float>(value) < limit;
  };
  const char *below1 = "from 0 to below 1";
  const bool isAdamW = kind == Kind::AdamW;
  for (const auto &[name, value, isGood, expected] :
       {Number{"--beta1", beta1, !isAdamW || isBelow(beta1, 1), below1},
        Number{"--beta2", beta2, !isAdamW || isBelow(beta2, 1), below1},
        Number{"--epsilon", epsilon,
               !isAdamW || (static_cast<float>(epsilon) > 0 &&
                            isBelow(epsilon, INFINITY)),
               "above 0"},
        Number{"--momentum", momentum,
               isAdamW || (momentum >= 0 && momentum <= 1), "from 0 to 1"},
        Number{"--weight-decay", weightDecay, isBelow(weightDecay, INFINITY),
               "of at least 0"},
        Number{"--clip", clipNorm, isBelow(clipNorm, INFINITY),
               "of at least 0"}})
    if (!isGood)
      return Status::error(std::string(name) + " is " + spellNumber(value) +
                           "; a number " + expected + " is expected");
  return Status();
}

Status TrainingShape::validate() const {
  int64_t all = 0;
  if (rows < 1 || length < 1 || __builtin_mul_overflow(rows, length, &all) ||
      all > INT32_MAX)
    return Status::error(
        "batches of " + std::to_string(rows) + " rows of " +
        std::to_string(length) + " tokens; 1 or more of both, and " +
        std::to_string(INT32_MAX) + " tokens in all at most, are possible");
  return optimizer.validate();
}

Status kf::checkDropout(double dropout) {
  if (dropout >= 0 && static_cast<float>(dropout) < 1)
    return Status();
  const bool isRounded = dropout >= 0 && dropout < 1;
  return Status::error("--lora-dropout is " +
                       (isRounded ? jsonText(dropout) + ", which is 1 as f32"
                                  : spellNumber(dropout)) +
                       "; a number from 0 to below 1 is expected");
}

static Result<std::vector<TrainedTensor>>
listAdapters(const ModelConfig &config, const LoraConfig &lora) {
  if (lora.rank < 1 || lora.rank > config.hiddenSize)
    return Status::error("an adapter of rank " + std::to_string(lora.rank) +
                         " cannot be trained; 1 to " +
                         std::to_string(config.hiddenSize) +
                         ", the hidden size, are possible");
  KF_RETURN_IF_ERROR(checkDropout(lora.dropout));
  KF_ASSIGN_OR_RETURN(const std::vector<LoraModule> modules,
                      findLoraModules(config, lora.targets));
  std::vector<TrainedTensor> trained;
  for (const LoraModule &module : modules) {
    trained.push_back(
        {module.nameOfA(), "", {lora.rank, module.in}, /*decays=*/true});
    trained.push_back(
        {module.nameOfB(), "", {module.out, lora.rank}, /*decays=*/true});
  }
  return trained;
}

Result<std::vector<TrainedTensor>> kf::listTrained(const ModelConfig &config,
                                                   const TrainingShape &shape) {
  KF_RETURN_IF_ERROR(shape.validate());
  if (shape.lora)
    return listAdapters(config, *shape.lora);
  std::vector<TrainedTensor> trained;
  for (const ListedTensor &listed : listTensors(config)) {
    using Role = ListedTensor::Role;
    if (listed.role == Role::RopeFactors)
      continue;
    const bool isPlain =
        listed.role == Role::NormWeight || listed.role == Role::Bias;
    trained.push_back({listed.name, listed.key, listed.shape, !isPlain});
  }
  return trained;
}

Status kf::checkTrains(const ModelConfig &config) {
  struct Feature {
    bool has;
    const char *what;
  };
  const Feature features[] = {
      {config.ranks > 1, "a model that several ranks share (--ranks)"},
      {config.experts.count > 0,
       "a model with experts (num_experts, num_local_experts or "
       "n_routed_experts)"},
      {config.hasStates(),
       "a model with linear attention (layer_types has linear_attention)"},
      {config.latent.width > 0, "a model with latent attention (kv_lora_rank)"},
      {config.streams.count > 1,
       "a model with several streams (altup_num_inputs)"},
      {config.tokenInputWidth > 0, "a model whose layers have inputs of tokens "
                                   "(hidden_size_per_layer_input)"},
      {config.attentionSinks, "a model with attention sinks (sinks)"},
  };
  for (const Feature &feature : features)
    if (feature.has)
      return Status::error(std::string(feature.what) +
                           " cannot be trained: its layers have no derivative "
                           "yet");
  return Status();
}

Status kf::checkSaves(const ModelConfig &config) {
  if (config.naming != TensorNaming::HuggingFace)
    return Status::error("all weights of a GGUF file cannot be trained: it is "
                         "not written with new ones; give a folder, or train "
                         "an adapter with --lora");
  return Status();
}
