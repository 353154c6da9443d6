//===- IdentityLibrary.cpp - Which build a loaded library is --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/ProgramIdentity.h"

#include <algorithm>
#include <cstddef>

/// Writes the library's identity to `bytes`, of which there are `most`, and
/// returns its size; 0: there is none, or no room.
extern "C" size_t identity(char *bytes, size_t most) {
  const kf::Result<std::string> identity = kf::programIdentity();
  if (!identity.ok() || identity->size() > most)
    return 0;
  std::ranges::copy(*identity, bytes);
  return identity->size();
}
