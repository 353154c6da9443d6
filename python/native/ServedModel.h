//===- ServedModel.h - A model that Python has opened -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing here knows Python: Bindings.cpp has what is between.
//
//===----------------------------------------------------------------------===//

#ifndef KF_PYTHON_NATIVE_SERVEDMODEL_H
#define KF_PYTHON_NATIVE_SERVEDMODEL_H

#include "Messages.h"
#include "OwnProcess.h"

#include "kf/Driver/CompiledSession.h"
#include "runtime/chat/PromptEncoder.h"
#include "runtime/serve/ApiRequest.h"
#include "runtime/serve/Service.h"
#include "runtime/session/TextLoss.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

namespace kf::python {

struct ServedModelOptions {
  SessionOptions session; ///< but for `cancelled` and `observer`
  CompileChoice compile;
  std::string templateFile; ///< empty: the model's own
  int64_t parallel = 8;     ///< texts that are generated at once
};

/// A model, and the service that runs its engine. Any thread, but for open().
/// Errors of a model that was closed are Status::cancelled()'s kind.
class ServedModel {
public:
  explicit ServedModel(ServedModelOptions options)
      : options(std::move(options)) {}
  /// close().
  ~ServedModel() { close(); }
  ServedModel(const ServedModel &) = delete;
  ServedModel &operator=(const ServedModel &) = delete;

  /// Opens it; once, before anything else is called. Ended by cancelFlag().
  Status open();
  /// Ends what goes on, and frees all. Waits for a step to end. In another
  /// process than the model's, it only forgets.
  void close();

  /// An error where it is closed, or of another process.
  Status check() const;
  /// Ends open() and Reservation::loss() where it is set.
  std::atomic<bool> &cancelFlag() { return cancelled; }
  Messages &messages() { return told; }

  // Facts, once it is open.
  struct Facts {
    std::string name; ///< valid UTF-8
    std::string device;
    int64_t context = 0;    ///< positions of a text
    int64_t vocabulary = 0; ///< ids are below it
    int64_t hiddenSize = 0; ///< numbers of an embedding
    std::vector<int64_t> eosIds;
    bool hasTokenizer = false, hasTemplate = false;
  };
  const Facts &facts() const { return known; }

  /// What a request of OpenAI's API, as JSON, asks for: a chat or a completion.
  /// What it leaves open is as kf-run's generate and chat have it; a seed is
  /// drawn.
  Result<TextRequest> readRequest(std::string_view json, bool isChat,
                                  CancelFlag cancelled);
  /// The embedding of a text, or of token ids as they are where there is none.
  /// What is left open is as the model's files say.
  Result<TextRequest> embeddingRequest(const std::optional<std::string> &text,
                                       std::vector<int32_t> ids,
                                       const EmbeddingChoice &choice,
                                       int64_t dimensions,
                                       CancelFlag cancelled) const;
  /// Asks for a text; nothing while it has to wait for a reservation.
  Result<std::optional<std::unique_ptr<TextHandle>>>
  trySubmit(const TextRequest &request);

  Result<std::vector<int32_t>> tokenize(std::string_view text, bool addSpecial,
                                        bool parseSpecial,
                                        CancelFlag cancelled) const;
  Result<std::string> detokenize(const std::vector<int32_t> &ids,
                                 bool skipSpecial) const;
  /// The prompt of a chat, given as a request for one. `forAnswer` adds what
  /// begins an answer.
  Result<std::string> render(std::string_view json, bool forAnswer,
                             CancelFlag cancelled) const;

  /// The engine for the loss of a text alone: from the reservation's beginning
  /// to its end no text is begun, and those that were go on to their end first.
  class Reservation;

private:
  using Use = std::shared_lock<std::shared_mutex>;
  /// What keeps the session until it is destroyed. Errors: check()'s.
  Result<Use> use() const;
  Result<const Tokenizer *> tokenizer() const;
  /// Whether a service of earlier may be forgotten, or there is none.
  bool isServiceOver();
  uint64_t drawSeed();

  const OwnProcess process;
  const ServedModelOptions options;
  std::atomic<bool> cancelled = false, isClosing = false;
  Messages told;
  Facts known;

  /// Held by who uses what follows, alone by who ends it.
  mutable std::shared_mutex lifetime;
  std::unique_ptr<Session> session;
  std::optional<PromptEncoder> encoder;
  Status noEncoder; ///< why there is none
  std::vector<int64_t> endOfTurn;

  std::mutex serving; ///< of what follows
  std::unique_ptr<Service> service;
  int reservations = 0;
  bool isTaken = false; ///< by one of them
  std::mt19937_64 random{std::random_device{}()};
};

/// One thread's; `model` must outlive it.
class ServedModel::Reservation {
public:
  explicit Reservation(ServedModel &model);
  ~Reservation();
  Reservation(const Reservation &) = delete;
  Reservation &operator=(const Reservation &) = delete;

  /// Whether the engine is had by now; ask again otherwise.
  Result<bool> tryTake();
  /// Once it is had. Errors: no tokenizer, no token to predict,
  /// addTextLoss()'s.
  Result<TextLoss> loss(std::string_view text);

private:
  ServedModel &model;
  bool isTaken = false;
};

} // namespace kf::python

#endif // KF_PYTHON_NATIVE_SERVEDMODEL_H
