//===- Interrupt.cpp - Ctrl-C ---------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interrupt.h"

#include <csignal>

using namespace kf;

static std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free,
              "a signal handler may set it");

static void setFlagOn(int number, int flags) {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = flags;
  sigaction(number, &action, nullptr);
}

std::atomic<bool> &kf::interruptFlag() { return interrupted; }

// Text on its way to a pipe that is full is written on.
void kf::catchFirstInterrupt() {
  setFlagOn(SIGINT, static_cast<int>(SA_RESETHAND | SA_RESTART));
}

void kf::catchEveryInterrupt(std::initializer_list<int> others) {
  setFlagOn(SIGINT, 0);
  for (int number : others)
    setFlagOn(number, 0);
}
