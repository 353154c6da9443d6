//===- SamplerFlags.cpp - Options of commands that choose tokens ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SamplerFlags.h"

#include "Report.h"

#include "runtime/core/Quote.h"
#include "runtime/text/Utf8.h"

#include <charconv>
#include <limits>
#include <memory>

using namespace kf;

namespace {

/// Reads "15+0.5", "15-2" or "15-inf".
std::optional<LogitBias> parseLogitBias(std::string_view text) {
  const char *last = text.data() + text.size();
  LogitBias entry;
  auto [sign, idError] = std::from_chars(text.data(), last, entry.id);
  if (idError != std::errc() || entry.id < 0 ||
      entry.id > std::numeric_limits<int32_t>::max() || sign == last ||
      (*sign != '+' && *sign != '-'))
    return std::nullopt;
  const char *number = *sign == '+' ? sign + 1 : sign;
  if (number + (*sign == '-') == last || number[*sign == '-'] == '-')
    return std::nullopt;
  auto [end, error] = std::from_chars(number, last, entry.bias);
  if (error != std::errc() || end != last ||
      !(entry.bias < std::numeric_limits<double>::infinity()))
    return std::nullopt;
  return entry;
}

} // namespace

std::string kf::recommendedFlags(const ChosenSampling &sampling) {
  std::string flags;
  auto add = [&](const char *flag, const auto &value) {
    if (value)
      flags += std::string(flags.empty() ? "" : " ") + flag + " " +
               spellNumber(static_cast<double>(*value));
  };
  const PartialSamplerOptions &model = sampling.recommended;
  add("--temp", model.temperature);
  add("--top-k", model.topK);
  add("--top-p", model.topP);
  add("--min-p", model.minP);
  add("--repeat-penalty", model.repetitionPenalty);
  add("--repeat-last-n", model.penaltyWindow);
  return flags;
}

void kf::noteRecommended(const std::string &flags) {
  if (!flags.empty())
    printNote("as the model recommends: " + flags);
}

void kf::addSamplerFlags(OptionParser &parser, PartialSamplerOptions &out,
                         ModelSampling unsaid, const std::string &temperature) {
  const std::string model =
      "what the model recommends (generation_config.json, or a GGUF file's "
      "general.sampling)";
  parser.real({"temp", 0, "X"}, out.temperature, 0, kMostTemperature,
              "temperature; 0 takes the most likely token. " +
                  (unsaid == ModelSampling::Always
                       ? "What this option and the next ones leave open is " +
                             model + "; without that, " + temperature
                       : "0 by default; where it or one of the next three "
                         "asks to draw, what they leave open is " +
                             model));
  parser.integer({"top-k", 0, "N"}, out.topK, 0, kMostTokens,
                 "draws from the N most likely tokens; 0, the default: all");
  parser.real({"top-p", 0, "X"}, out.topP, 0, 1,
              "draws from the most likely tokens that sum up to X; 1 by "
              "default");
  parser.real({"min-p", 0, "X"}, out.minP, 0, 1,
              "leaves out tokens less likely than X times the most likely "
              "one; 0 by default");
  parser.real({"repeat-penalty", 0, "X"}, out.repetitionPenalty, 0,
              kMostPenalty,
              "divides the logits of tokens that were seen, which makes them "
              "less likely; 1, the default, does not");
  parser.real({"presence-penalty", 0, "X"}, out.presencePenalty, -kMostPenalty,
              kMostPenalty,
              "subtracts X from the logits of tokens that were seen; 0 by "
              "default");
  parser.real({"frequency-penalty", 0, "X"}, out.frequencyPenalty,
              -kMostPenalty, kMostPenalty,
              "subtracts X from a token's logit for each time that it was "
              "seen; 0 by default");
  parser.integer({"repeat-last-n", 0, "N"}, out.penaltyWindow, -1, kMostTokens,
                 "how many of the last tokens count as seen for the three "
                 "penalties; -1, the default: all");
  auto biases = std::make_shared<std::vector<std::string>>();
  parser.texts({"logit-bias", 0, "ID+X"}, *biases,
               "adds X to the logit of token ID, or subtracts it with ID-X; "
               "ID-inf excludes the token. May be given more than once");
  parser.addCheck([biases, &out] {
    for (const std::string &text : *biases) {
      std::optional<LogitBias> entry = parseLogitBias(text);
      if (!entry)
        return Status::error("--logit-bias takes a token's id and a number to "
                             "add or to subtract, as in 15+0.5 or 15-inf, "
                             "not " +
                             inQuotes(text));
      if (!out.logitBias)
        out.logitBias.emplace();
      out.logitBias->push_back(*entry);
    }
    return Status();
  });
  parser.seed({"seed", 's', "N"}, out.seed,
              unsaid == ModelSampling::Always
                  ? "the same seed gives the same answers; -1, the default, "
                    "takes one by the clock"
                  : "the same seed gives the same text; 0 by default, -1 takes "
                    "one by the clock");
}

void kf::addStopFlag(OptionParser &parser, std::vector<std::string> &out) {
  parser.texts({"stop", 0, "TEXT"}, out,
               "ends where TEXT would begin. May be given more than once");
  parser.addCheck([&out] {
    for (const std::string &stop : out)
      if (toValidUtf8(stop) != stop)
        return Status::error("--stop takes a text in UTF-8");
    return Status();
  });
}
