//===- TestFiles.h - Files that tests read -------------------- -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_TESTFILES_H
#define KF_TEST_RUNTIME_TESTFILES_H

#include <cstdlib>
#include <string>
#include <string_view>

namespace kf::test {

/// `path`, which the build knew, where it is now: with KF_TEST_ROOT in the
/// environment, what is below the checkout is below that folder.
inline std::string testFile(const std::string &path) {
  constexpr std::string_view built = KF_SOURCE_DIR;
  const char *root = std::getenv("KF_TEST_ROOT");
  if (!root || !path.starts_with(built))
    return path;
  return root + path.substr(built.size());
}

} // namespace kf::test

#endif // KF_TEST_RUNTIME_TESTFILES_H
