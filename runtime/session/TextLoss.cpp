//===- TextLoss.cpp - How well a model predicts a text --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/TextLoss.h"

#include "runtime/session/Scores.h"

#include <algorithm>
#include <cmath>

using namespace kf;

double TextLoss::perplexity() const { return std::exp(perToken()); }

double TextLoss::error() const {
  const double count = static_cast<double>(tokens), mean = perToken();
  return std::sqrt(std::max(squares / count - mean * mean, 0.0) / (count - 1));
}

Result<std::vector<int32_t>> kf::encodeForLoss(const Session &session,
                                               std::string_view text,
                                               CancelFlag cancelled) {
  KF_ASSIGN_OR_RETURN(
      std::vector<int32_t> ids,
      session.tokenizer().encode(text, {.cancelled = cancelled}));
  const int64_t size = session.files().config.vocabSize;
  for (int32_t id : ids)
    if (id >= size)
      return Status::error("the tokenizer gives token id " +
                           std::to_string(id) +
                           ", which the model's vocabulary of " +
                           std::to_string(size) + " lacks");
  return ids;
}

Status kf::addLoss(Session &session, std::span<const int32_t> ids, size_t first,
                   TextLoss &loss,
                   const std::function<void(size_t)> &onScored) {
  if (ids.size() <= first)
    return Status();
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Sequence> sequence,
                      session.createSequence());
  const Model &model = session.engine().model();
  return model.explain(
      readLogits(*sequence, ids.first(ids.size() - 1),
                 [&](size_t position, std::span<const float> logits) {
                   const size_t next = position + 1;
                   if (next < first)
                     return Status();
                   KF_RETURN_IF_ERROR(checkLogits(model, position, logits));
                   const float logit = logits[static_cast<size_t>(ids[next])];
                   loss.add(logSumExp(logits) - logit);
                   if (onScored)
                     onScored(next + 1);
                   return Status();
                 }));
}

Status kf::addTextLoss(Session &session, std::string_view text,
                       CancelFlag cancelled, TextLoss &loss,
                       const std::function<void(size_t, size_t)> &onScored) {
  const ModelFiles &model = session.files();
  const std::vector<int32_t> begin = beginIds(model);
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                      encodeForLoss(session, text, cancelled));
  if (!model.config.eosIds.empty())
    ids.push_back(static_cast<int32_t>(model.config.eosIds.front()));
  const size_t context = static_cast<size_t>(session.engine().contextLength());
  if (context < begin.size() + 1)
    return Status::error("a context of " + std::to_string(context) +
                         " is too short to predict anything");
  // The last target is not read, so one more than the rest of the context.
  const size_t window = context - begin.size() + 1;
  for (std::span<const int32_t> rest(ids); !rest.empty();) {
    const std::span<const int32_t> part =
        rest.first(std::min(window, rest.size()));
    const size_t before = ids.size() - rest.size();
    std::vector<int32_t> inputs(begin);
    inputs.insert(inputs.end(), part.begin(), part.end());
    // Nothing predicts the first token of all.
    const size_t first = std::max<size_t>(begin.size(), 1);
    KF_RETURN_IF_ERROR(
        addLoss(session, inputs, first, loss, [&](size_t scored) {
          if (onScored)
            onScored(before + scored - begin.size(), ids.size());
        }));
    rest = rest.subspan(part.size());
  }
  return Status();
}
