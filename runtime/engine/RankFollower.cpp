//===- RankFollower.cpp - A rank that does as it is told ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/RankFollower.h"

#include "runtime/core/Exceptions.h"
#include "runtime/engine/PagePool.h"

#include <algorithm>
#include <utility>

using namespace kf;

/// The error of a leader that is wrong, or is none.
static Status wrong(const std::string &what) {
  return Status::error("the leading rank asks for " + what,
                       StatusCode::Internal);
}

RankFollower::RankFollower(ModelConfig part, Device &device,
                           const WeightSource &weights, ModelOptions options)
    : model(
          std::move(part), device, weights,
          [this](const StepShape &shape) -> Result<Executable> {
            if (!given)
              return wrong(nameOf(shape) + ", which it has not sent");
            return *std::exchange(given, std::nullopt);
          },
          std::move(options)) {}

Status RankFollower::follow(RankChannel &leader) {
  const Status status = catchExceptions([&] { return followAll(leader); });
  if (!status.ok() && model.device().group())
    model.device().group()->abort(status.message());
  return status;
}

Status RankFollower::followAll(RankChannel &leader) {
  for (;;) {
    KF_ASSIGN_OR_RETURN(const std::optional<std::string> message,
                        leader.receive());
    if (!message)
      return Status();
    KF_ASSIGN_OR_RETURN(const std::vector<RankCommand> commands,
                        decodeCommands(*message));
    for (const RankCommand &command : commands) {
      std::string text;
      Status status = catchExceptions([&] {
        Status obeyed =
            std::visit([&](const auto &held) { return obey(held); }, command);
        if (obeyed.ok())
          text = textFor(command);
        return obeyed;
      });
      if (!isAnswered(command))
        KF_RETURN_IF_ERROR(status);
      else if (!leader.send(encode(RankAnswer{status, text})).ok())
        return Status(); // nobody waits for it any more
    }
  }
}

/// What the answer to a command that was obeyed says.
std::string RankFollower::textFor(const RankCommand &command) const {
  return std::holds_alternative<ShowProfile>(command) && profile
             ? profile->table(MachineRates())
             : std::string();
}

/// A program that is there already was not loaded by all: its successor may be
/// another one.
Status RankFollower::obey(const LoadProgram &command) {
  if (programs && programs->find(command.shape))
    return wrong(nameOf(command.shape) + " again, which is bound");
  model.dropProgram(command.shape);
  KF_ASSIGN_OR_RETURN(given, Executable::deserialize(command.executable));
  const Status status = model.program(command.shape).status();
  given.reset();
  return status;
}

Status RankFollower::obey(const OpenCache &command) {
  const ModelConfig &config = model.config();
  // Where all layers have windows, texts have more positions than pages.
  const int64_t pages =
      std::clamp<int64_t>(command.pages, 0, PagePool::kMostPages);
  const int64_t most =
      std::max(pages * pagePositionsOf(config),
               positionsOf(config, pages, config.maxPositions));
  if (command.pages < 1 || command.pages > PagePool::kMostPages ||
      command.mostRows < 1 || command.mostRows > mostStepRows(config) ||
      command.positions < 0 || command.positions > most)
    return wrong("a cache of " + std::to_string(command.pages) + " pages for " +
                 std::to_string(command.positions) +
                 " positions and steps of " + std::to_string(command.mostRows) +
                 " rows");
  programs.reset();
  cache.emplace(model.device(), command.pages, command.positions);
  programs.emplace(model, *cache, command.mostRows);
  programs->setProfile(profile ? &*profile : nullptr);
  return Status();
}

Status RankFollower::obey(const BindProgram &command) {
  if (!programs)
    return wrong(nameOf(command.shape) + " without a cache");
  return programs->bind(command.shape);
}

/// The program of `shape`, which is bound.
Result<ProgramRunner *> RankFollower::find(const StepShape &shape) const {
  ProgramRunner *const program = programs ? programs->find(shape) : nullptr;
  if (!program)
    return wrong(nameOf(shape) + ", which is not bound");
  return program;
}

static Status checkInput(const ProgramRunner &program, uint32_t input) {
  if (input < program.program().inputs.size())
    return Status();
  return wrong("input " + std::to_string(input) + " of " +
               program.program().programName);
}

Status RankFollower::obey(const WriteInput &command) {
  KF_ASSIGN_OR_RETURN(ProgramRunner *const program, find(command.shape));
  KF_RETURN_IF_ERROR(checkInput(*program, command.input));
  return program->write(command.input, command.offset, command.bytes.data(),
                        command.bytes.size());
}

Status RankFollower::obey(const CopyInput &command) {
  KF_ASSIGN_OR_RETURN(ProgramRunner *const program, find(command.shape));
  KF_ASSIGN_OR_RETURN(const ProgramRunner *const from, find(command.from));
  KF_RETURN_IF_ERROR(checkInput(*program, command.input));
  return program->copyInput(command.input, command.offset, *from, 0,
                            command.outputOffset, command.bytes);
}

Status RankFollower::obey(const CopyPages &command) {
  if (!programs)
    return wrong("copies of pages without a cache");
  auto exists = [&](int32_t page) {
    return page >= 0 && page < cache->pages();
  };
  for (const PageCopy &copy : command.copies)
    if (!exists(copy.from) || !exists(copy.to) || copy.from == copy.to)
      return wrong("a copy of page " + std::to_string(copy.from) + " to " +
                   std::to_string(copy.to));
  KF_ASSIGN_OR_RETURN(Stream *const stream, programs->stream());
  const Status status = cache->copyPages(*stream, command.copies);
  const Status done = stream->synchronize();
  return status.ok() ? done : status;
}

/// A device that works while nobody waits is not waited for: its errors are
/// those of the collectives that others are in.
Status RankFollower::obey(const StartProgram &command) {
  KF_ASSIGN_OR_RETURN(ProgramRunner *const program, find(command.shape));
  if (profile) // who measures waits
    return program->execute(StepSizes(command.scalars));
  KF_RETURN_IF_ERROR(program->start(StepSizes(command.scalars)));
  if (model.device().runsAlone())
    return Status();
  KF_ASSIGN_OR_RETURN(Stream *const stream, programs->stream());
  return stream->synchronize();
}

Status RankFollower::obey(const BeginProfile &) {
  if (!profile)
    profile.emplace();
  return Status();
}

Status RankFollower::obey(const ShowProfile &) {
  return profile ? Status() : wrong("a profile of runs that are not measured");
}
