//===- FuzzRanks.cpp - Any bytes as what one rank tells another -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank that has the fake model's programs bound is told whatever the input
// says. Programs are not started: what they make of their inputs is not what is
// looked for here, and the fake's trust them.
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/RankFollower.h"
#include "test/runtime/engine/FakeModel.h"

#include <cstdlib>

using namespace kf;
using namespace kf::test;

namespace {

/// One message, whose answers nobody reads.
class OneMessage final : public RankChannel {
public:
  explicit OneMessage(std::string message) : message(std::move(message)) {}
  Status send(std::string answer) override {
    if (!decodeAnswer(answer).ok())
      std::abort();
    return Status();
  }
  Result<std::optional<std::string>> receive() override {
    return std::exchange(message, std::nullopt);
  }

private:
  std::optional<std::string> message;
};

/// Whether a command costs no more than a test should.
bool isCheap(const RankCommand &command) {
  const auto *cache = std::get_if<OpenCache>(&command);
  return !std::holds_alternative<StartProgram>(command) &&
         !(cache && cache->pages > 64);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view input(reinterpret_cast<const char *>(data), size);
  (void)decodeAnswer(input);
  const Result<std::vector<RankCommand>> commands = decodeCommands(input);
  if (!commands.ok())
    return 0;
  std::string again, message;
  for (const StepShape &shape :
       {StepShape{StepPart::Body, 16}, StepShape{StepPart::Head, 1},
        StepShape{StepPart::Choose, 1}}) {
    encode(LoadProgram{shape, fakeStep(shape).serialize()}, message);
    if (shape.part == StepPart::Body)
      encode(OpenCache{4, 16}, message);
    encode(BindProgram{shape}, message);
  }
  for (const RankCommand &command : *commands) {
    encode(command, again);
    if (isCheap(command))
      encode(command, message);
  }
  if (again != input) // what is accepted survives a round trip
    std::abort();
  FakeModelDevice device;
  FakeSource source;
  RankFollower follower(fakeConfig(), device, source, {});
  OneMessage leader(std::move(message));
  (void)follower.follow(leader);
  return 0;
}
