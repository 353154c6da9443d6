//===- GenerationAnswer.cpp - Texts on their way to a client --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/GenerationAnswer.h"

#include "runtime/serve/ApiError.h"

#include <algorithm>
#include <iterator>
#include <utility>

using namespace kf;

GenerationAnswer::GenerationAnswer(std::vector<Choice> choices,
                                   std::unique_ptr<AnswerForm> form,
                                   Options options)
    : choices(std::move(choices)), form(std::move(form)),
      options(std::move(options)) {}

/// Gives calls their ids, and drops those that are too many.
AnswerPart GenerationAnswer::finishCalls(Choice &choice, AnswerPart part) {
  if (options.oneCall && part.calls.size() > 1)
    part.calls.resize(1);
  for (ToolCall &call : part.calls)
    call.id = options.makeCallId();
  choice.hasCalls |= !part.calls.empty();
  return part;
}

Status GenerationAnswer::advance(size_t number, std::string &events) {
  Choice &choice = choices[number];
  if (choice.end)
    return Status();
  TextPiece piece = choice.handle->take();
  AnswerPart part = choice.text.push(piece.text);
  if (piece.end && piece.end->ok())
    part.add(
        choice.text.finish(finishReasonOf((**piece.end).reason) == "length"));
  part.ids = std::move(piece.ids);
  part.logProbs = std::exchange(choice.waiting, {});
  part.logProbs.insert(part.logProbs.end(),
                       std::make_move_iterator(piece.logProbs.begin()),
                       std::make_move_iterator(piece.logProbs.end()));
  // In a stream, what may be a tag or a call is held back with its tokens.
  const bool hasText =
      !part.content.empty() || !part.reasoning.empty() || !part.calls.empty();
  if (options.stream && !hasText && !piece.end)
    choice.waiting.swap(part.logProbs);
  part = finishCalls(choice, std::move(part));
  if (options.stream) {
    const std::string json = form->part(number, part);
    if (!json.empty())
      events += eventOf(json);
  } else {
    choice.all.add(part);
  }
  if (!piece.end)
    return Status();
  KF_RETURN_IF_ERROR(piece.end->status());
  const GenerationResult &result = **piece.end;
  if (result.reason == StopReason::Cancelled)
    return Status::error("the server is shutting down", StatusCode::Cancelled);
  choice.end =
      ChoiceEnd{.reason = result.reason,
                .hasCalls = choice.hasCalls,
                .prompt = choice.prompt,
                .promptTokens = result.promptTokens,
                .cachedTokens = result.reusedTokens,
                .completionTokens = static_cast<int64_t>(result.ids.size()),
                .promptSeconds = result.prefillSeconds - result.prefillReadying,
                .decodeSeconds = result.decodeSeconds - result.decodeReadying};
  options.onEnd(finishReasonOf(*choice.end));
  if (options.stream)
    events += eventOf(form->end(number, *choice.end));
  return Status();
}

std::vector<ChoiceEnd> GenerationAnswer::ends() const {
  std::vector<ChoiceEnd> ends;
  for (const Choice &choice : choices)
    ends.push_back(*choice.end);
  return ends;
}

HttpAnswer::Piece GenerationAnswer::fail(const Status &status) {
  const ApiError error = ApiError::of(status);
  isDone = true;
  choices.clear();
  Piece piece{.isLast = true};
  if (options.stream) {
    // The head is sent: the error is an event.
    piece.body = eventOf(error.json());
  } else {
    piece.head = error.response();
    piece.body.swap(piece.head->body);
  }
  return piece;
}

HttpAnswer::Piece GenerationAnswer::take() {
  Piece piece;
  if (isDone)
    return piece;
  if (options.stream && !isBegun) {
    piece.head = HttpResponse{.contentType = "text/event-stream",
                              .headers = {{"Cache-Control", "no-cache"},
                                          {"X-Accel-Buffering", "no"}}};
    for (size_t i = 0; i < choices.size(); ++i)
      if (const std::string json = form->begin(i); !json.empty())
        piece.body += eventOf(json);
  }
  isBegun = true;
  for (size_t i = 0; i < choices.size(); ++i)
    if (Status status = advance(i, piece.body); !status.ok()) {
      Piece last = fail(status);
      if (piece.head)
        last.head = std::move(piece.head);
      last.body.insert(0, piece.body);
      return last;
    }
  if (!std::ranges::all_of(
          choices, [](const Choice &choice) { return choice.end.has_value(); }))
    return piece;
  isDone = piece.isLast = true;
  if (options.stream) {
    if (const std::string json = form->usage(ends()); !json.empty())
      piece.body += eventOf(json);
    if (form->endsWithDone())
      piece.body += "data: [DONE]\n\n";
    return piece;
  }
  std::vector<AnswerPart> parts;
  for (Choice &choice : choices)
    parts.push_back(std::move(choice.all));
  piece.head.emplace();
  piece.body = form->whole(parts, ends());
  return piece;
}

std::string_view GenerationAnswer::ping() const {
  return options.stream && isBegun && !isDone ? ": ping\n\n" : "";
}
