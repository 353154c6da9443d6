//===- DummyModel.cpp - Models by name, without their files ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/DummyModel.h"

#include "runtime/convert/TensorTypes.h"
#include "runtime/core/Quote.h"
#include "runtime/io/ScaledWeights.h"
#include "runtime/model/DummyWeights.h"
#include "runtime/model/NamedConfigs.h"

#include <cassert>
#include <charconv>

using namespace kf;

namespace {

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

std::string kf::knownModelNames() {
  std::string names;
  for (const NamedConfig &config : namedConfigs())
    names += (names.empty() ? "" : ", ") + std::string(config.name);
  return names;
}

Status kf::checkDummy(const DummyChoice &choice, const std::string &name) {
  if (!choice.used()) {
    for (auto [option, given] : {std::pair("--weight-type", &choice.weightType),
                                 std::pair("--tokenizer", &choice.tokenizer)})
      if (!given->empty())
        return Status::error(std::string(option) + " needs --dummy-weights");
    return Status();
  }
  if (!findNamedConfig(name))
    return Status::error("--dummy-weights needs the name of a model, which " +
                         inQuotes(name) + " is not; there are " +
                         knownModelNames());
  KF_RETURN_IF_ERROR(parseSeed(*choice.seed).status());
  return choice.weightType.empty() ? Status()
                                   : weightTypeOf(choice.weightType).status();
}

Result<ModelFiles> kf::openDummyModel(const std::string &name,
                                      bool withTokenizer,
                                      const DummyChoice &choice) {
  assert(choice.used() && "nobody asks for such a model");
  KF_RETURN_IF_ERROR(checkDummy(choice, name));
  const NamedConfig *named = findNamedConfig(name);
  ModelFiles model;
  model.name = std::string(named->name) + " (dummy weights)";
  model.configText = named->json;
  KF_ASSIGN_OR_RETURN(model.config, parseModelConfig(model.configText));
  DataType type = model.config.dtype.value_or(DataType::BF16);
  if (!choice.weightType.empty()) {
    KF_ASSIGN_OR_RETURN(type, weightTypeOf(choice.weightType));
  }
  KF_ASSIGN_OR_RETURN(uint64_t seed, parseSeed(*choice.seed));
  KF_ASSIGN_OR_RETURN(model.weights,
                      DummyWeights::create(model.config, type, seed));
  if (type == DataType::F8E4M3) {
    KF_ASSIGN_OR_RETURN(model.weights,
                        ScaledWeights::create(std::move(model.weights)));
  }
  if (!choice.tokenizer.empty()) {
    KF_RETURN_IF_ERROR(openTokenizer(choice.tokenizer, model));
  } else if (withTokenizer) {
    return Status::error("a model with dummy weights has no tokenizer; name "
                         "one with --tokenizer, or give generate and logits "
                         "--ids");
  }
  return model;
}
