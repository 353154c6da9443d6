//===- OutOfMemory.cpp - An error where there is no memory ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OutOfMemory.h"

#include "Progress.h"
#include "Report.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

using namespace kf;

namespace {

/// What malloc asks the system for at last: where it has failed, this does.
constexpr size_t kProbe = size_t(1) << 20;

struct sigaction previous;
/// The handler's own, for the case that the stack is what cannot grow.
alignas(64) char handlerStack[size_t(32) << 10];

bool isMemoryGone() {
  void *probe = ::mmap(nullptr, kProbe, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED)
    return true;
  ::munmap(probe, kProbe);
  return false;
}

void onFault(int, siginfo_t *info, void *) {
  const bool isFault = info->si_code > 0; // nobody has sent the signal
  if (isFault && isMemoryGone())
    exitOutOfMemory();
  // Where there is memory, a fault comes again as soon as this returns.
  ::sigaction(SIGSEGV, &previous, nullptr);
  if (!isFault)
    ::raise(SIGSEGV);
}

} // namespace

void kf::exitOutOfMemory() {
  constexpr std::string_view line = "error: there is not enough memory\n";
  static std::atomic_flag isTold;
  while (isTold.test_and_set()) // another thread ends the process
    ::pause();
  const std::string_view eraser = progressEraser();
  (void)!::write(STDERR_FILENO, eraser.data(), eraser.size());
  (void)!::write(STDERR_FILENO, line.data(), line.size());
  _exit(ExitFailure);
}

void kf::exitOnFaultsOutOfMemory() {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  return; // it reports faults in its own way
#endif
#endif
  stack_t stack = {};
  stack.ss_sp = handlerStack;
  stack.ss_size = sizeof(handlerStack);
  struct sigaction action = {};
  action.sa_sigaction = onFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  if (::sigaltstack(&stack, nullptr) == 0)
    ::sigaction(SIGSEGV, &action, &previous);
}
