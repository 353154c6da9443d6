//===- Fidelity.cpp - How near a device's logits are ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fidelity.h"

#include "Documents.h"
#include "Interrupt.h"
#include "Progress.h"
#include "Report.h"

#include "runtime/session/Scores.h"

#include <algorithm>
#include <cmath>
#include <random>

using namespace kf;

namespace {

/// Ids that both devices read before their logits are compared: those of so
/// many rows are in memory at once.
constexpr size_t kChunk = 128;

/// What there is to read where nobody names a text.
constexpr std::string_view kDefaultText =
    "The mill stood where the river bent, and for a hundred years it had made "
    "flour for three villages. When the wheel stopped one morning, people "
    "first thought of ice; but it was May, and the water ran high and brown. "
    "The miller's daughter climbed down the slippery steps with a lamp and a "
    "rope around her waist. Behind the sluice she found a branch as thick as "
    "her arm, and caught in it a small wooden boat that someone had carved "
    "with great care. There was a name on its side, half washed away, and a "
    "date: 1874. She cut the branch loose, and the wheel began to turn again, "
    "slowly at first. She kept the boat. Later, when she had learned to read "
    "the old church books, she looked for the name. It belonged to a boy who "
    "had moved to the coast with his parents and become a builder of ships. "
    "\"So it got here before him,\" she told her father, \"and waited.\" He "
    "laughed, but he set the boat on the shelf above the door, where it still "
    "stands, between a jar of nails and a clock that has not been wound for "
    "years.";

/// One model on one device, and the sequence that reads a text there.
struct Reader {
  std::unique_ptr<Session> run;
  std::unique_ptr<Sequence> sequence;

  Status begin() {
    KF_ASSIGN_OR_RETURN(sequence, run->engine().createSequence());
    return Status();
  }
  /// Reads on; `onLogits` gets each row's.
  Status read(std::span<const int32_t> ids, const LogitsCallback &onLogits) {
    const Model &model = run->engine().model();
    return model.explain(readLogits(
        *sequence, ids, [&](size_t index, std::span<const float> logits) {
          KF_RETURN_IF_ERROR(checkLogits(model, index, logits));
          return onLogits(index, logits);
        }));
  }
};

Result<Reader> openReader(const ModelFlags &options, int64_t tokens) {
  Reader reader;
  KF_ASSIGN_OR_RETURN(reader.run, openSession(options, false));
  KF_RETURN_IF_ERROR(reader.run->start({.tokens = tokens}));
  return reader;
}

/// Sums over the positions so far.
struct Sums {
  int64_t positions = 0, agreeing = 0, targets = 0;
  double kl = 0, klMax = 0, nllDevice = 0, nllReference = 0;

  void add(std::span<const float> reference, std::span<const float> device,
           std::optional<int32_t> next) {
    const double divergence = klDivergence(reference, device);
    kl += divergence;
    klMax = std::max(klMax, divergence);
    ++positions;
    agreeing += argmax(reference) == argmax(device);
    if (!next)
      return;
    const size_t id = static_cast<size_t>(*next);
    nllReference += logSumExp(reference) - reference[id];
    nllDevice += logSumExp(device) - device[id];
    ++targets;
  }

  FidelityResult result() const {
    FidelityResult result;
    result.tokens = positions;
    result.klMean = kl / static_cast<double>(positions);
    result.klMax = klMax;
    result.top1Agreement =
        static_cast<double>(agreeing) / static_cast<double>(positions);
    if (targets) {
      result.nllDevice = nllDevice / static_cast<double>(targets);
      result.nllReference = nllReference / static_cast<double>(targets);
    }
    return result;
  }
};

} // namespace

double kf::klDivergence(std::span<const float> reference,
                        std::span<const float> device) {
  const double normReference = logSumExp(reference);
  const double normDevice = logSumExp(device);
  double sum = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double logP = reference[i] - normReference;
    sum += std::exp(logP) * (logP - (device[i] - normDevice));
  }
  // Of equal rows, what rounding leaves.
  return std::max(sum, 0.0);
}

Result<FidelityResult>
kf::measureFidelity(const ModelFlags &options,
                    std::span<const std::vector<int32_t>> texts) {
  size_t all = 0, longest = 0;
  for (const std::vector<int32_t> &ids : texts) {
    all += ids.size();
    longest = std::max(longest, ids.size());
  }
  ModelFlags onReference = options;
  onReference.device = DeviceFlags();
  onReference.device.device = "reference";
  onReference.targetCpu = "native";
  // What is asked for is what is judged: the reference rounds nothing.
  onReference.cacheType = "f32";
  onReference.activationType = "f32";
  onReference.float8 = {.type = "f8", .needsSome = false};
  onReference.profile = ProfileFlags();
  KF_ASSIGN_OR_RETURN(Reader device,
                      openReader(options, static_cast<int64_t>(longest)));
  KF_ASSIGN_OR_RETURN(Reader reference,
                      openReader(onReference, static_cast<int64_t>(longest)));
  Sums sums;
  std::optional<Progress> progress("comparing logits");
  for (const std::vector<int32_t> &ids : texts) {
    KF_RETURN_IF_ERROR(device.run->checkFits(ids));
    KF_RETURN_IF_ERROR(device.begin());
    KF_RETURN_IF_ERROR(reference.begin());
    for (size_t at = 0; at < ids.size(); at += kChunk) {
      const auto chunk =
          std::span(ids).subspan(at).first(std::min(kChunk, ids.size() - at));
      std::vector<std::vector<float>> rows;
      KF_RETURN_IF_ERROR(
          reference.read(chunk, [&](size_t, std::span<const float> logits) {
            rows.emplace_back(logits.begin(), logits.end());
            return Status();
          }));
      KF_RETURN_IF_ERROR(device.read(chunk, [&](size_t index,
                                                std::span<const float> logits) {
        const size_t next = at + index + 1;
        sums.add(rows[index], logits,
                 next < ids.size() ? std::optional(ids[next]) : std::nullopt);
        progress->update(static_cast<double>(sums.positions) /
                         static_cast<double>(all));
        return Status();
      }));
    }
  }
  progress.reset();
  KF_RETURN_IF_ERROR(showProfile(options, *device.run));
  return sums.result();
}

Result<std::vector<std::vector<int32_t>>>
kf::fidelityTexts(const ModelFlags &options, const std::string &file,
                  int64_t count) {
  bool withTokenizer =
      options.dummy.used() ? !options.dummy.tokenizer.empty() : true;
  if (!options.dummy.used()) {
    KF_ASSIGN_OR_RETURN(withTokenizer, hasTokenizer(options.model));
  }
  KF_ASSIGN_OR_RETURN(const ModelFiles model,
                      openModel({.path = options.model, .dummy = options.dummy},
                                withTokenizer));
  int64_t rest = std::min(count, model.config.maxPositions);
  if (options.context)
    rest = std::min(rest, options.context);
  if (!withTokenizer) {
    if (!file.empty())
      return Status::error("--file is text, and the model has no tokenizer");
    std::mt19937 random(1);
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < rest; ++i)
      ids.push_back(static_cast<int32_t>(
          random() % static_cast<uint64_t>(model.config.vocabSize)));
    return std::vector<std::vector<int32_t>>{ids};
  }
  std::vector<std::string> documents = {std::string(kDefaultText)};
  if (!file.empty()) {
    KF_ASSIGN_OR_RETURN(documents, readDocuments(file));
  }
  std::vector<std::vector<int32_t>> texts;
  for (const std::string &document : documents) {
    if (rest == 0)
      break;
    // A model may begin every text with a token: there is nothing to predict.
    if (document.empty())
      continue;
    const Progress progress("reading the prompt's tokens");
    KF_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                        encodePrompt(model, document, &interruptFlag()));
    ids.resize(std::min(ids.size(), static_cast<size_t>(rest)));
    rest -= static_cast<int64_t>(ids.size());
    if (!ids.empty())
      texts.push_back(std::move(ids));
  }
  if (texts.empty())
    return Status::error("--file: " + quotePath(file) +
                         " has no text to compare logits over");
  return texts;
}
