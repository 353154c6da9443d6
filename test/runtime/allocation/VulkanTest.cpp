//===- VulkanTest.cpp - The Vulkan device without memory ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the Vulkan device cannot return an error: in what drivers call, and
// behind work that was accepted. Drivers are not made for the failures that
// this program's tests bring about, so that none is opened.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/VulkanStream.h"
#include "test/runtime/StatusAssertions.h"
#include "test/runtime/allocation/FailingAllocations.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

namespace {

/// Longer than what a string has room for in itself.
constexpr const char *longText =
    "a line of text that takes memory of its own wherever it is kept";

TEST(VulkanWithoutMemory, LostMessagesAreErrors) {
  VulkanMessages messages(nullptr);
  {
    FailingAllocations failing(0, Failing::Rest);
    messages.add(longText);
  }
  EXPECT_TRUE(failsWith(messages.take(), "lost for want of memory"));
  EXPECT_TRUE(succeeds(messages.take()));
}

TEST(VulkanWithoutMemory, LateErrorsAreKept) {
  VulkanCompletions completions;
  int done = 0;
  completions.add([&] {
    ++done;
    return Status();
  });
  completions.assign(1);
  Status error = Status::error(longText);
  {
    FailingAllocations failing(0, Failing::Rest);
    completions.fail(std::move(error));
  }
  EXPECT_TRUE(completions.isFailing());
  completions.add([&] {
    ++done;
    return Status();
  });
  completions.assign(2);
  std::shared_ptr<VulkanMark> mark = completions.mark(2);
  {
    FailingAllocations failing(0, Failing::Rest);
    completions.finish(2);
  }
  EXPECT_EQ(done, 0);
  EXPECT_TRUE(failsWith(mark->reach(), "no memory left"));
  EXPECT_TRUE(failsWith(completions.take(), longText));
  EXPECT_FALSE(completions.isFailing());
}

TEST(VulkanWithoutMemory, DroppedWorkPassesItsMarks) {
  VulkanCompletions completions;
  std::shared_ptr<VulkanMark> mark = completions.mark(1);
  Status error = Status::error(longText);
  {
    FailingAllocations failing(0, Failing::Rest);
    completions.drop(error);
  }
  EXPECT_FALSE(mark->reach().ok());
  EXPECT_FALSE(completions.take().ok());
}

} // namespace
