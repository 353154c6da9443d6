//===- ThreadChannel.cpp - Messages within a process ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/RankChannel.h"

#include "runtime/collective/MessageQueue.h"

using namespace kf;

namespace {

using Pipe = MessageQueue<std::string>; // one direction

class ThreadChannel final : public RankChannel {
public:
  ThreadChannel(std::shared_ptr<Pipe> in, std::shared_ptr<Pipe> out)
      : in(std::move(in)), out(std::move(out)) {}
  ~ThreadChannel() override {
    in->close();
    out->close();
  }

  Status send(std::string message) override {
    if (!out->push(std::move(message)))
      return Status::error("the connection is closed", StatusCode::Unavailable);
    return Status();
  }
  Result<std::optional<std::string>> receive() override { return in->pop(); }

private:
  std::shared_ptr<Pipe> in, out;
};

} // namespace

std::pair<std::unique_ptr<RankChannel>, std::unique_ptr<RankChannel>>
kf::createThreadChannel() {
  auto there = std::make_shared<Pipe>(), back = std::make_shared<Pipe>();
  return {std::make_unique<ThreadChannel>(back, there),
          std::make_unique<ThreadChannel>(there, back)};
}
