//===- RankLeader.cpp - The rank that others follow -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/RankLeader.h"

#include "runtime/core/Exceptions.h"

#include <algorithm>
#include <cassert>
#include <utility>

using namespace kf;

std::string RankLeader::nameOfRank(size_t index) const {
  return names.empty() ? "rank " + std::to_string(index + 1) : names[index];
}

Status RankLeader::hasEnded(size_t index) const {
  return Status::error(nameOfRank(index) + " has ended",
                       StatusCode::Unavailable);
}

/// What a rank says next; an error names it.
Result<RankAnswer> RankLeader::receive(size_t index) {
  const Result<std::optional<std::string>> message = channels[index]->receive();
  if (!message.ok())
    return message.status();
  if (!*message)
    return hasEnded(index);
  Result<RankAnswer> answer = decodeAnswer(**message);
  if (!answer.ok())
    return answer.status().in(nameOfRank(index));
  return answer;
}

/// Sets `end` to the last that was heard of a rank whose connection is closed.
void RankLeader::findEnd(size_t index) {
  while (end.ok()) {
    const Result<RankAnswer> answer = receive(index);
    end = answer.ok() ? answer->status.in(nameOfRank(index)) : answer.status();
  }
}

Status RankLeader::awaitReady(std::span<const std::string> models) try {
  assert(models.size() == channels.size() && "a key for each rank");
  for (size_t i = 0; i < channels.size(); ++i) {
    KF_ASSIGN_OR_RETURN(const RankAnswer answer, receive(i));
    KF_RETURN_IF_ERROR(answer.status.in(nameOfRank(i)));
    if (answer.text != models[i])
      return Status::error(nameOfRank(i) + " has another model than rank 0; "
                                           "all have to open the same files");
  }
  return Status();
} catch (...) {
  return statusOfException();
}

/// Where ranks may have got different commands, or answers are left that nobody
/// has read, none of them is told anything again.
Status RankLeader::endOfException() {
  const Status status = statusOfException();
  if (end.ok())
    end = status;
  return status;
}

Status RankLeader::tell(const RankCommand &command) try {
  assert(!isAnswered(command) && "nobody would read the answer");
  encode(command, told);
  return Status();
} catch (...) {
  return endOfException();
}

/// Sends what all were told, and behind it what `commands` has for each; one is
/// for all.
Status RankLeader::sendTold(std::span<const RankCommand> commands) {
  const std::string before = std::exchange(told, {});
  for (size_t i = 0; i < channels.size() && end.ok(); ++i) {
    std::string message = before;
    if (!commands.empty())
      encode(commands[commands.size() == 1 ? 0 : i], message);
    if (!channels[i]->send(std::move(message)).ok())
      findEnd(i);
  }
  return end;
}

Status RankLeader::flush() try { return sendTold({}); } catch (...) {
  return endOfException();
}

/// What all ranks answer when this one has done `own`, too.
Result<std::vector<std::string>>
RankLeader::answersTo(std::span<const RankCommand> commands,
                      const std::function<Status()> &own) {
  assert((commands.size() == 1 || commands.size() == channels.size()) &&
         std::ranges::all_of(commands, isAnswered) && "no rank would answer");
  KF_RETURN_IF_ERROR(sendTold(commands));
  Status first = catchExceptions(own);
  std::vector<std::string> texts;
  for (size_t i = 0; i < channels.size(); ++i) {
    Result<RankAnswer> answer = receive(i);
    if (!answer.ok() && end.ok())
      end = answer.status();
    const Status status =
        answer.ok() ? answer->status.in(nameOfRank(i)) : answer.status();
    if (first.ok())
      first = status;
    if (answer.ok())
      texts.push_back(std::move(answer->text));
  }
  if (!first.ok())
    return first;
  return texts;
}

Status RankLeader::together(std::span<const RankCommand> commands,
                            const std::function<Status()> &own) try {
  return answersTo(commands, own).status();
} catch (...) {
  return endOfException();
}

Result<std::vector<std::string>>
RankLeader::ask(const RankCommand &command) try {
  return answersTo(std::span(&command, 1), [] { return Status(); });
} catch (...) {
  return endOfException();
}
