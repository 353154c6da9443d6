//===- Main.cpp - What main() of a command does
//----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Main.h"

#include "OutOfMemory.h"
#include "Report.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/ReadFaults.h"

#include <csignal>
#include <new>

int kf::runMain(int argc, char **argv,
                int (*command)(std::span<const char *const>)) {
  exitOnReadFaults();
  exitOnFaultsOutOfMemory();
  // A limit on the size of files is an error like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const Result<int> code = catchExceptions([&]() -> Result<int> {
      return command(
          std::span<const char *const>(argv, static_cast<size_t>(argc))
              .subspan(1));
    });
    return code.ok() ? *code : report(code.status());
  } catch (const std::bad_alloc &) { // of the error's line
    exitOutOfMemory();
  }
}
