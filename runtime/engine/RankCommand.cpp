//===- RankCommand.cpp - What ranks tell one another ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/RankCommand.h"

#include "runtime/collective/MessageBytes.h"
#include "runtime/core/Exceptions.h"

#include <algorithm>
#include <optional>
#include <type_traits>

using namespace kf;

namespace {

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

class Writer : public MessageWriter {
public:
  using MessageWriter::MessageWriter;
  using MessageWriter::put;

  void put(const StepShape &shape) {
    put(static_cast<uint8_t>(shape.part));
    put(shape.rows);
  }
  void put(const std::vector<PageCopy> &copies) {
    put(static_cast<uint64_t>(copies.size()));
    for (const PageCopy &copy : copies) {
      put(copy.from);
      put(copy.to);
    }
  }
};

class Reader : public MessageReader {
public:
  using MessageReader::get;
  using MessageReader::MessageReader;

  void get(StepShape &shape) {
    uint8_t part = 0;
    get(part);
    get(shape.rows);
    if (std::ranges::find(kStepParts, static_cast<StepPart>(part)) ==
        std::end(kStepParts))
      fail();
    shape.part = failed() ? StepPart::Body : static_cast<StepPart>(part);
  }
  void get(std::vector<PageCopy> &copies) {
    uint64_t count = 0;
    get(count);
    for (uint64_t i = 0; i < count && !failed(); ++i) {
      PageCopy copy;
      get(copy.from);
      get(copy.to);
      copies.push_back(copy);
    }
  }
};

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

/// Calls `field` with each field of a command, in their order: to write them,
/// or, of one that is not const, to read them.
template <typename Command, typename Field>
void forEachField(Command &command, Field field) {
  using T = std::remove_const_t<Command>;
  if constexpr (std::is_same_v<T, OpenCache>) {
    field(command.pages);
    field(command.mostRows);
    field(command.positions);
  } else if constexpr (std::is_same_v<T, CopyPages>) {
    field(command.copies);
  } else if constexpr (!std::is_same_v<T, BeginProfile> &&
                       !std::is_same_v<T, ShowProfile>) {
    field(command.shape);
    if constexpr (std::is_same_v<T, LoadProgram>) {
      field(command.executable);
    } else if constexpr (std::is_same_v<T, WriteInput>) {
      field(command.input);
      field(command.offset);
      field(command.bytes);
    } else if constexpr (std::is_same_v<T, CopyInput>) {
      field(command.input);
      field(command.offset);
      field(command.from);
      field(command.outputOffset);
      field(command.bytes);
    } else if constexpr (std::is_same_v<T, StartProgram>) {
      for (auto &scalar : command.scalars)
        field(scalar);
    } else {
      static_assert(std::is_same_v<T, BindProgram>);
    }
  }
}

/// Reads a command of the kind that is number `kind` of RankCommand; nothing:
/// there is none.
template <size_t N = 0>
std::optional<RankCommand> readCommand(Reader &reader, size_t kind) {
  if constexpr (N == std::variant_size_v<RankCommand>) {
    return std::nullopt;
  } else {
    if (kind != N)
      return readCommand<N + 1>(reader, kind);
    std::variant_alternative_t<N, RankCommand> command;
    forEachField(command, [&](auto &field) { reader.get(field); });
    return command;
  }
}

Status malformed(const char *what) {
  return Status::error(std::string("a message of another rank that is no ") +
                       what);
}

} // namespace

bool kf::isAnswered(const RankCommand &command) {
  return std::holds_alternative<LoadProgram>(command) ||
         std::holds_alternative<BindProgram>(command) ||
         std::holds_alternative<ShowProfile>(command);
}

void kf::encode(const RankCommand &command, std::string &message) {
  Writer writer(message);
  writer.put(static_cast<uint8_t>(command.index()));
  std::visit(
      [&](const auto &held) {
        forEachField(held, [&](const auto &field) { writer.put(field); });
      },
      command);
}

Result<std::vector<RankCommand>>
kf::decodeCommands(std::string_view message) try {
  std::vector<RankCommand> commands;
  for (Reader reader(message); !reader.atEnd();) {
    uint8_t kind = 0;
    reader.get(kind);
    std::optional<RankCommand> command = readCommand(reader, kind);
    if (!command || reader.failed())
      return malformed("list of commands");
    commands.push_back(std::move(*command));
  }
  return commands;
} catch (...) {
  return statusOfException();
}

std::string kf::encode(const RankAnswer &answer) {
  std::string message;
  Writer writer(message);
  writer.put(static_cast<uint8_t>(answer.status.code()));
  writer.put(answer.status.message());
  writer.put(answer.text);
  return message;
}

Result<RankAnswer> kf::decodeAnswer(std::string_view message) try {
  Reader reader(message);
  uint8_t code = 0;
  RankAnswer answer;
  std::string error;
  reader.get(code);
  reader.get(error);
  reader.get(answer.text);
  if (reader.failed() || !reader.atEnd() ||
      code > static_cast<uint8_t>(StatusCode::Unavailable))
    return malformed("answer");
  if (const StatusCode kind = static_cast<StatusCode>(code);
      kind != StatusCode::Ok)
    answer.status = Status::error(std::move(error), kind);
  return answer;
} catch (...) {
  return statusOfException();
}
