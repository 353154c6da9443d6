//===- DummyModel.cpp - Models by name, without their files ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DummyModel.h"

#include "Model.h"

#include "runtime/convert/TensorTypes.h"
#include "runtime/core/Quote.h"
#include "runtime/io/ScaledWeights.h"
#include "runtime/model/DummyWeights.h"
#include "runtime/model/NamedConfigs.h"

#include <charconv>

using namespace kf;

namespace {

std::string knownNames() {
  std::string names;
  for (const NamedConfig &config : namedConfigs())
    names += (names.empty() ? "" : ", ") + std::string(config.name);
  return names;
}

Result<uint64_t> parseSeed(std::string_view text) {
  uint64_t seed = 0;
  auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), seed);
  if (code != std::errc() || end != text.data() + text.size())
    return Status::error("--dummy-weights takes a number without a sign, not " +
                         inQuotes(text));
  return seed;
}

Result<DataType> weightTypeOf(const std::string &text) {
  Result<DataType> type = parseWeightType(text);
  return type.ok() ? std::move(type)
                   : Result<DataType>(type.status().in("--weight-type"));
}

} // namespace

void DummyOptions::addTo(OptionParser &parser, const std::string &model) {
  parser.optionalText({"dummy-weights", 0, "SEED"}, "0", seed,
                      "MODEL is a name, and its weights are random: " +
                          knownNames());
  parser.text({"weight-type", 0, "TYPE"}, weightType,
              "the type of random weights: f32, f16, bf16, f8_e4m3, q8_0, "
              "q4_0, q4_k ...; by default that of the published model");
  parser.text({"tokenizer", 0, "PATH"}, tokenizer,
              "the tokenizer for a model with random weights, which has none: "
              "a folder or a GGUF file, with their chat template, or "
              "tokenizer.json or tokenizer.model without");
  parser.addCheck([this, &model] { return check(model); });
}

Status DummyOptions::check(const std::string &model) const {
  if (!used()) {
    for (auto [name, given] : {std::pair("--weight-type", &weightType),
                               std::pair("--tokenizer", &tokenizer)})
      if (!given->empty())
        return Status::error(std::string(name) + " needs --dummy-weights");
    return Status();
  }
  if (!findNamedConfig(model))
    return Status::error("--dummy-weights needs the name of a model, which " +
                         inQuotes(model) + " is not; there are " +
                         knownNames());
  KF_RETURN_IF_ERROR(parseSeed(*seed).status());
  return weightType.empty() ? Status() : weightTypeOf(weightType).status();
}

Result<ModelFiles> kf::openModel(const std::string &path, bool withTokenizer,
                                 const DummyOptions &dummy) {
  if (!dummy.used())
    return openModel(path, withTokenizer);
  const NamedConfig *named = findNamedConfig(path);
  if (!named)
    return Status::error("there is no model called " + inQuotes(path));
  ModelFiles model;
  model.name = std::string(named->name) + " (dummy weights)";
  model.configText = named->json;
  KF_ASSIGN_OR_RETURN(model.config, parseModelConfig(model.configText));
  DataType type = model.config.dtype.value_or(DataType::BF16);
  if (!dummy.weightType.empty()) {
    KF_ASSIGN_OR_RETURN(type, weightTypeOf(dummy.weightType));
  }
  KF_ASSIGN_OR_RETURN(uint64_t seed, parseSeed(*dummy.seed));
  KF_ASSIGN_OR_RETURN(model.weights,
                      DummyWeights::create(model.config, type, seed));
  if (type == DataType::F8E4M3) {
    KF_ASSIGN_OR_RETURN(model.weights,
                        ScaledWeights::create(std::move(model.weights)));
  }
  if (!dummy.tokenizer.empty()) {
    KF_RETURN_IF_ERROR(openTokenizer(dummy.tokenizer, model));
  } else if (withTokenizer) {
    return Status::error("a model with dummy weights has no tokenizer; name "
                         "one with --tokenizer, or give generate and logits "
                         "--ids");
  }
  return model;
}
