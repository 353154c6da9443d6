//===- ModelArgument.cpp - Options that choose a model --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelArgument.h"

#include "Report.h"

#include "runtime/core/Quote.h"

using namespace kf;

void kf::addModelArgument(OptionParser &parser, std::string &model,
                          std::optional<std::string> &named,
                          std::string_view help) {
  parser.positional("MODEL", false, model, help, "model");
  parser.text({"model", 'm', "MODEL"}, named, "the same as MODEL");
  parser.addCheck([&model, &named] {
    if (!named)
      return Status();
    if (!model.empty())
      return Status::error("MODEL is given twice: " + inQuotes(model) +
                           " and --model " + inQuotes(*named));
    model = *named;
    return Status();
  });
}

void DummyFlags::addTo(OptionParser &parser, const std::string &model) {
  parser.optionalText({"dummy-weights", 0, "SEED"}, "0", seed,
                      "MODEL is a name, and its weights are random: " +
                          knownModelNames());
  parser.text({"weight-type", 0, "TYPE"}, weightType,
              "the type of random weights: f32, f16, bf16, f8_e4m3, q8_0, "
              "q4_0, q4_k ...; by default that of the published model");
  parser.text({"tokenizer", 0, "PATH"}, tokenizer,
              "the tokenizer for a model with random weights, which has none: "
              "a folder or a GGUF file, with their chat template, or "
              "tokenizer.json or tokenizer.model without");
  parser.addCheck([this, &model] { return checkDummy(*this, model); });
}

void Float8Flag::addTo(OptionParser &parser) {
  parser.choice({"float8", 0, "TYPE"}, type, {"bf16", "f8"},
                "what weights of F8_E4M3 are multiplied as: bf16, to which "
                "they are rounded when they are loaded, by default; or f8, as "
                "they are stored, in half of the memory");
}

void kf::printModelWarnings(const std::string &path,
                            const ModelConfig &config) {
  for (const std::string &line : modelWarnings(path, config))
    printWarning(line);
}
