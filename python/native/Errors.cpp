//===- Errors.cpp - Errors of the runtime as exceptions -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Errors.h"

#include "runtime/text/Utf8.h"

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace nb = nanobind;
using namespace kf;

namespace {

/// The names of kernelforge's exceptions, one for each code.
const char *nameOf(StatusCode code) {
  switch (code) {
  case StatusCode::Invalid:
    return "InvalidError";
  case StatusCode::NotFound:
    return "NotFoundError";
  case StatusCode::OutOfMemory:
    return "OutOfMemoryError";
  case StatusCode::Cancelled:
    return "CancelledError";
  case StatusCode::Unsupported:
    return "UnsupportedError";
  case StatusCode::Unavailable:
    return "UnavailableError";
  case StatusCode::Ok:
  case StatusCode::Internal:
    break;
  }
  return "InternalError";
}

struct OptionName {
  std::string_view option, argument;
};
/// The runtime's errors name options as kf-run spells them.
constexpr OptionName kOptions[] = {
    {"--accumulate", "accumulate"},
    {"--activation-type", "activation_type"},
    {"--batch", "batch"},
    {"--beta1", "beta1"},
    {"--beta2", "beta2"},
    {"--cache-memory", "cache_memory"},
    {"--cache-type", "cache_type"},
    {"--clip", "clip"},
    {"--context", "context"},
    {"--data", "data"},
    {"--device", "device"},
    {"--epochs", "epochs"},
    {"--epsilon", "epsilon"},
    {"--eval-data", "eval_data"},
    {"--eval-every", "eval_every"},
    {"--eval-split", "eval_split"},
    {"--force", "force"},
    {"--full", "full"},
    {"--function", "function"},
    {"--learning-rate", "learning_rate"},
    {"--length", "length"},
    {"--long", "long"},
    {"--lora", "lora"},
    {"--lora-alpha", "lora_alpha"},
    {"--lora-dropout", "lora_dropout"},
    {"--lora-targets", "lora_targets"},
    {"--min-learning-rate", "min_learning_rate"},
    {"--momentum", "momentum"},
    {"--no-pack", "pack"},
    {"--no-shuffle", "shuffle"},
    {"--optimizer", "optimizer"},
    {"--output", "output"},
    {"--pooling", "pooling"},
    {"--resume", "resume"},
    {"--rslora", "rslora"},
    {"--schedule", "schedule"},
    {"--seed", "seed"},
    {"--steps", "steps"},
    {"--template", "chat_template"},
    {"--threads", "threads"},
    {"--train-on-prompt", "train_on_prompt"},
    {"--warmup", "warmup"},
    {"--weight-decay", "weight_decay"},
    {"--weights", "weights"},
    {"-t", "threads"},
};

bool isPartOfWord(char c) {
  return c == '-' || c == '_' || (c >= '0' && c <= '9') ||
         (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// `message` with what Python calls options, in place of them.
std::string nameArguments(std::string_view message) {
  std::string named;
  for (size_t at = 0; at < message.size();) {
    size_t end = at;
    while (end < message.size() && isPartOfWord(message[end]))
      ++end;
    std::string_view word = message.substr(at, end - at);
    for (const OptionName &name : kOptions)
      if (word == name.option)
        word = name.argument;
    named += word;
    if (end < message.size())
      named += message[end++];
    at = end;
  }
  return named;
}

} // namespace

void python::raise(const Status &status) {
  // A message may quote bytes of a file.
  const std::string message = toValidUtf8(nameArguments(status.message()));
  // Of C's code alone, so that it is whole or not there when the interpreter
  // ends meanwhile.
  const nb::object type =
      nb::module_::import_("kernelforge._errors").attr(nameOf(status.code()));
  PyErr_SetObject(type.ptr(), nb::str(message.data(), message.size()).ptr());
  throw nb::python_error();
}
