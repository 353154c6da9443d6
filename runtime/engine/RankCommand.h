//===- RankCommand.h - What ranks tell one another --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One rank of a model leads: it has the engine and decides everything. Others
// have the same programs, and are told what it does with its own, so that they
// do the same with theirs.
//
// A message of the leader's is some commands, one behind the other; numbers are
// little-endian. To each message that ends with a command that isAnswered(),
// and to none else, a rank answers with one of its own. Whatever is not so is
// an error of whoever reads it.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_RANKCOMMAND_H
#define KF_RUNTIME_ENGINE_RANKCOMMAND_H

#include "runtime/engine/PagePool.h"
#include "runtime/model/Step.h"
#include "runtime/program/abi.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kf {

/// Loads a program, in its file form. Answered.
struct LoadProgram {
  StepShape shape;
  std::string executable;
};

/// Begins with an empty cache of `pages` pages, which hold `positions`
/// positions in all (KVCache), and with no program bound; bodies that will be
/// have `mostRows` rows at most.
struct OpenCache {
  int64_t pages = 0, mostRows = 0, positions = 0;
};

/// Binds a loaded program to its buffers, with its weights packed. Answered.
struct BindProgram {
  StepShape shape;
};

/// ProgramRunner::write().
struct WriteInput {
  StepShape shape;
  uint32_t input = 0;
  uint64_t offset = 0;
  std::span<const std::byte> bytes; ///< of a decoded one: in the message
};

/// ProgramRunner::copyInput(), of output number 0 of `from`.
struct CopyInput {
  StepShape shape;
  uint32_t input = 0;
  uint64_t offset = 0;
  StepShape from;
  uint64_t outputOffset = 0, bytes = 0;
};

/// KVCache::copyPages().
struct CopyPages {
  std::vector<PageCopy> copies;
};

/// ProgramRunner::start().
struct StartProgram {
  StepShape shape;
  std::array<int64_t, KF_SCALAR_COUNT> scalars = {};
};

/// Has the runs of programs measured that have the next cache.
struct BeginProfile {};

/// Asks for a table of all runs that were measured. Answered.
struct ShowProfile {};

using RankCommand =
    std::variant<LoadProgram, OpenCache, BindProgram, WriteInput, CopyInput,
                 CopyPages, StartProgram, BeginProfile, ShowProfile>;

/// Whether the leader waits for what comes of it.
bool isAnswered(const RankCommand &command);

/// Appends `command` to a message.
void encode(const RankCommand &command, std::string &message);
/// The commands of a message, which they refer to. Checks their form alone:
/// numbers may be any. Errors: bytes that are no commands.
Result<std::vector<RankCommand>> decodeCommands(std::string_view message);

/// What a rank says to the leader.
struct RankAnswer {
  Status status;
  /// Of the first one, the key of its model; of ShowProfile's, the table.
  std::string text;
};
std::string encode(const RankAnswer &answer);
Result<RankAnswer> decodeAnswer(std::string_view message);

} // namespace kf

#endif // KF_RUNTIME_ENGINE_RANKCOMMAND_H
