//===- TileRegisters.cpp - Permission to use AMX --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/TileRegisters.h"

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

using namespace kf;

/// Source: Linux, Documentation/arch/x86/xstate.rst.
static bool askForTiles() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr int requestPermission = 0x1023; // ARCH_REQ_XCOMP_PERM
  constexpr long tileData = 18;             // XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
#else
  return false;
#endif
}

bool kf::mayUseTiles() {
  static const bool may = askForTiles();
  return may;
}
