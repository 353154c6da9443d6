//===- ServedModel.cpp - A model that Python has opened -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ServedModel.h"

#include "runtime/session/ChatPrompts.h"
#include "runtime/session/EmbeddedModel.h"
#include "runtime/session/SamplingChoice.h"
#include "runtime/text/Utf8.h"

#include <chrono>
#include <limits>
#include <utility>

using namespace kf;
using namespace kf::python;

/// Callers wait for their own texts, and want none refused.
static constexpr int64_t kMostQueued = std::numeric_limits<int64_t>::max();

//===----------------------------------------------------------------------===//
// Its life
//===----------------------------------------------------------------------===//

Status ServedModel::open() {
  SessionOptions wanted = options.session;
  wanted.cancelled = &cancelled;
  wanted.observer = &told;
  KF_ASSIGN_OR_RETURN(wanted.withTokenizer, hasTokenizer(wanted.model.path));
  const bool withTokenizer = wanted.withTokenizer;
  KF_ASSIGN_OR_RETURN(session, openSession(std::move(wanted), options.compile,
                                           openEmbeddedModel));
  KF_RETURN_IF_ERROR(session->start({.parallel = options.parallel}));
  const ModelFiles &files = session->files();
  Result<PromptEncoder> made =
      openPromptEncoder(files, {.file = options.templateFile});
  if (made.ok()) {
    encoder.emplace(made.take());
    endOfTurn = encoder->endOfTurnIds();
  } else if (!options.templateFile.empty() ||
             made.status().code() == StatusCode::OutOfMemory) {
    return made.status();
  } else {
    noEncoder = made.status();
  }
  known = {.name = toValidUtf8(files.name),
           .device = session->device().name(),
           .context = session->engine().textLimit(),
           .vocabulary = files.config.vocabSize,
           .hiddenSize = files.config.hiddenSize,
           .eosIds = files.config.eosIds,
           .hasTokenizer = withTokenizer,
           .hasTemplate = encoder.has_value()};
  return Status();
}

void ServedModel::close() {
  isClosing = true;
  cancelled = true;
  if (!process.isThis()) {
    forget(service);
    forget(session);
    return;
  }
  const std::unique_lock alone(lifetime);
  if (!session)
    return;
  runOnOwnThread([this] {
    service.reset();
    encoder.reset();
    session.reset();
  });
}

Status ServedModel::check() const {
  if (isClosing)
    return Status::error("the model is closed", StatusCode::Cancelled);
  return process.check("the model");
}

Result<ServedModel::Use> ServedModel::use() const {
  KF_RETURN_IF_ERROR(check());
  Use held(lifetime);
  KF_RETURN_IF_ERROR(check());
  return held;
}

//===----------------------------------------------------------------------===//
// Text and tokens
//===----------------------------------------------------------------------===//

Result<const Tokenizer *> ServedModel::tokenizer() const {
  if (!known.hasTokenizer)
    return Status::error("the model has no tokenizer: give token ids",
                         StatusCode::Unsupported);
  return &session->tokenizer();
}

Result<std::vector<int32_t>> ServedModel::tokenize(std::string_view text,
                                                   bool addSpecial,
                                                   bool parseSpecial,
                                                   CancelFlag cancelled) const {
  KF_ASSIGN_OR_RETURN(const Use held, use());
  KF_ASSIGN_OR_RETURN(const Tokenizer *encoding, tokenizer());
  return encoding->encode(text, {.addSpecial = addSpecial,
                                 .parseSpecial = parseSpecial,
                                 .cancelled = cancelled});
}

Result<std::string> ServedModel::detokenize(const std::vector<int32_t> &ids,
                                            bool skipSpecial) const {
  KF_ASSIGN_OR_RETURN(const Use held, use());
  KF_ASSIGN_OR_RETURN(const Tokenizer *decoding, tokenizer());
  for (int32_t id : ids)
    if (id < 0 || id >= known.vocabulary)
      return Status::error("token id " + std::to_string(id) +
                           " is outside the vocabulary of " +
                           std::to_string(known.vocabulary));
  return toValidUtf8(decoding->decode(ids, skipSpecial));
}

Result<std::string> ServedModel::render(std::string_view json, bool forAnswer,
                                        CancelFlag cancelled) const {
  KF_ASSIGN_OR_RETURN(const Use held, use());
  if (!encoder)
    return noEncoder;
  KF_ASSIGN_OR_RETURN(GenerationRequest request, parseChatRequest(json));
  request.chat->forAnswer = forAnswer;
  KF_ASSIGN_OR_RETURN(const std::string text,
                      encoder->render(*request.chat, cancelled));
  return toValidUtf8(text);
}

//===----------------------------------------------------------------------===//
// Generating
//===----------------------------------------------------------------------===//

uint64_t ServedModel::drawSeed() {
  const std::scoped_lock lock(serving);
  return random();
}

Result<TextRequest> ServedModel::readRequest(std::string_view json, bool isChat,
                                             CancelFlag cancelled) {
  KF_ASSIGN_OR_RETURN(const Use held, use());
  KF_ASSIGN_OR_RETURN(const GenerationRequest request,
                      isChat ? parseChatRequest(json)
                             : parseCompletionRequest(json));
  const ModelFiles &files = session->files();
  TextRequest text;
  KF_ASSIGN_OR_RETURN(text.adapter, findAdapter(files, request.model));
  if (isChat) {
    if (!encoder)
      return noEncoder;
    KF_ASSIGN_OR_RETURN(text.prompt, encoder->encode(*request.chat, cancelled));
  } else if (const auto *ids =
                 std::get_if<std::vector<int32_t>>(&request.prompts.front())) {
    text.prompt = *ids;
  } else {
    KF_RETURN_IF_ERROR(tokenizer().status());
    KF_ASSIGN_OR_RETURN(
        text.prompt,
        encodePrompt(files, std::get<std::string>(request.prompts.front()),
                     cancelled));
  }
  if (!known.hasTokenizer && !request.stops.empty())
    return Status::error("'stop' is found in text, and the model has no "
                         "tokenizer; leave it out");
  text.sampling = chooseSampling(request.sampling, files.config.sampling,
                                 isChat ? ModelSampling::Always
                                        : ModelSampling::WhenDrawing)
                      .options;
  if (!request.sampling.seed)
    text.sampling.seed = drawSeed();
  const int64_t unsaid =
      isChat ? files.config.sampling.maxNewTokens.value_or(-1) : 256;
  text.maxTokens = request.maxTokens.value_or(unsaid);
  if (text.maxTokens == -1)
    text.maxTokens = known.context;
  if (!request.ignoreEos) {
    text.stopIds = files.config.eosIds;
    if (isChat)
      text.stopIds.insert(text.stopIds.end(), endOfTurn.begin(),
                          endOfTurn.end());
  }
  text.stopIds.insert(text.stopIds.end(), request.stopIds.begin(),
                      request.stopIds.end());
  text.stopTexts = request.stops;
  text.topLogProbs = request.topLogProbs;
  return text;
}

Result<TextRequest>
ServedModel::embeddingRequest(const std::optional<std::string> &text,
                              std::vector<int32_t> ids,
                              const EmbeddingChoice &choice, int64_t dimensions,
                              CancelFlag cancelled) const {
  KF_ASSIGN_OR_RETURN(const Use held, use());
  const ModelFiles &files = session->files();
  TextRequest request;
  request.prompt = std::move(ids);
  if (text) {
    KF_RETURN_IF_ERROR(tokenizer().status());
    KF_ASSIGN_OR_RETURN(request.prompt, encodeText(files, *text, cancelled));
  }
  KF_ASSIGN_OR_RETURN(request.embedding,
                      chooseEmbedding(choice, files.pooling));
  request.embedding->dimensions = dimensions;
  return request;
}

bool ServedModel::isServiceOver() {
  if (service && service->state() == ServiceState::Stopped)
    service.reset();
  return !service;
}

Result<std::optional<std::unique_ptr<TextHandle>>>
ServedModel::trySubmit(const TextRequest &request) {
  using Submitted = std::optional<std::unique_ptr<TextHandle>>;
  KF_ASSIGN_OR_RETURN(const Use held, use());
  const std::scoped_lock lock(serving);
  if (reservations > 0)
    return Submitted();
  if (service && service->state() == ServiceState::Stopping)
    return Submitted(); // for a reservation that was given up
  if (isServiceOver()) {
    // Programs are made when a text needs them.
    KF_ASSIGN_OR_RETURN(
        service, Service::create(
                     session->engine(),
                     known.hasTokenizer ? &session->tokenizer() : nullptr,
                     {.mostQueued = kMostQueued, .preparesPrograms = false}));
  }
  KF_ASSIGN_OR_RETURN(std::unique_ptr<TextHandle> handle,
                      service->submit(request));
  return Submitted(std::move(handle));
}

//===----------------------------------------------------------------------===//
// The loss of a text
//===----------------------------------------------------------------------===//

ServedModel::Reservation::Reservation(ServedModel &model) : model(model) {
  const std::scoped_lock lock(model.serving);
  ++model.reservations;
}

ServedModel::Reservation::~Reservation() {
  // What has ended a loss must not end the texts that come.
  if (isTaken)
    model.cancelled = model.isClosing.load();
  const std::scoped_lock lock(model.serving);
  --model.reservations;
  if (isTaken)
    model.isTaken = false;
}

Result<bool> ServedModel::Reservation::tryTake() {
  KF_ASSIGN_OR_RETURN(const Use held, model.use());
  const std::scoped_lock lock(model.serving);
  if (model.service)
    model.service->stop(std::chrono::steady_clock::time_point::max());
  if (model.isTaken || !model.isServiceOver())
    return false;
  model.isTaken = isTaken = true;
  return true;
}

Result<TextLoss> ServedModel::Reservation::loss(std::string_view text) {
  KF_ASSIGN_OR_RETURN(const Use held, model.use());
  KF_RETURN_IF_ERROR(model.tokenizer().status());
  TextLoss sum;
  KF_RETURN_IF_ERROR(addTextLoss(*model.session, text, &model.cancelled, sum));
  if (sum.tokens == 0)
    return Status::error("the text has no token to predict");
  return sum;
}
