//===- StatusAssertions.h - Expectations of a Status ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_STATUSASSERTIONS_H
#define KF_TEST_RUNTIME_STATUSASSERTIONS_H

#include "runtime/core/Status.h"

#include <gtest/gtest.h>

#include <string>

namespace kf::test {

inline testing::AssertionResult succeeds(const Status &status) {
  if (status.ok())
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.message();
}

/// An error of one line that has `text` in it.
inline testing::AssertionResult failsWith(const Status &status,
                                          const std::string &text) {
  if (status.ok())
    return testing::AssertionFailure() << "succeeded";
  if (status.message().find(text) == std::string::npos ||
      status.message().find('\n') != std::string::npos)
    return testing::AssertionFailure() << status.message();
  return testing::AssertionSuccess();
}

} // namespace kf::test

#endif // KF_TEST_RUNTIME_STATUSASSERTIONS_H
