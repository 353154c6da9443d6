//===- MlirBatch.cpp - Texts through the CPU pipeline, each in a process --===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// usage: kf_mlir_batch < NAMES
//
// Compiles each of the files that stdin names, one a line, in a child of a
// process that has started MLIR and LLVM already, and prints a line for it:
//
//   CLASS<tab>CPU milliseconds<tab>peak MiB<tab>NAME<tab>what it said
//
// CLASS is `ran`, `compiled` (and not run), `refused` (with an error), or one
// of the findings: `silent` (no error says why), `fatal` (LLVM ended the
// process), `crash`, `timeout` (10 s of CPU time) and `memory` (4 GiB of
// address space, or an abort for want of memory). test/fuzz/run_mlir makes the
// files.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/MlirText.h"

#include "runtime/core/MappedFile.h"

#include "llvm/Support/ErrorHandling.h"

#include <csignal>
#include <cstdio>
#include <iostream>
#include <new>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kf;

namespace {

constexpr rlim_t cpuSeconds = 10, addressSpace = rlim_t(4) << 30;
#if defined(KF_SANITIZERS)
constexpr bool isSanitized = true; // its shadow takes address space
#else
constexpr bool isSanitized = false;
#endif
enum ExitCode { Ran, Compiled, Refused, Silent, Fatal, NoMemory, CodeCount };
constexpr const char *classes[CodeCount] = {"ran",    "compiled", "refused",
                                            "silent", "fatal",    "memory"};

void limit(int resource, rlim_t soft, rlim_t hard) {
  const struct rlimit value = {soft, hard};
  if (::setrlimit(resource, &value) != 0)
    _exit(Fatal);
}

void say(std::string_view text) {
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

[[noreturn]] void endWithoutMemory() { _exit(NoMemory); }

[[noreturn]] void endOnFatalError(void *, const char *reason, bool) {
  say(reason);
  _exit(Fatal);
}

/// In the child: what becomes of one text. What it says goes to stderr.
[[noreturn]] void useAndExit(TextCompiler &compiler, const std::string &path) {
  limit(RLIMIT_CPU, cpuSeconds, cpuSeconds + 1);
  if (!isSanitized)
    limit(RLIMIT_AS, addressSpace, addressSpace);
  limit(RLIMIT_CORE, 0, 0);
  auto file = MappedFile::open(path);
  if (!file.ok()) {
    say(file.message());
    _exit(Fatal);
  }
  const std::string text(file->text());
  const Outcome outcome = compiler.use(text);
  say(outcome.error);
  if (outcome.stage == Stage::Ran)
    _exit(Ran);
  if (outcome.error.empty() || outcome.error == "compilation failed" ||
      outcome.error.ends_with("it cannot be parsed"))
    _exit(Silent);
  _exit(outcome.stage == Stage::Compiled ? Compiled : Refused);
}

/// The class of how a child ended.
std::string classify(int status) {
  if (WIFEXITED(status))
    return WEXITSTATUS(status) < CodeCount ? classes[WEXITSTATUS(status)]
                                           : "crash";
  return WTERMSIG(status) == SIGXCPU ? "timeout" : "crash";
}

double milliseconds(const timeval &time) {
  return static_cast<double>(time.tv_sec) * 1e3 +
         static_cast<double>(time.tv_usec) * 1e-3;
}

} // namespace

int main() {
  TextCompiler compiler;
  // What LLVM and MLIR make once is made before the first child.
  const Outcome first = compiler.use(
      "func.func @f(%x: tensor<?x4xf32>, %w: tensor<8x4xf32>) -> "
      "tensor<?x8xf32> {\n %0 = kf.matmul %x, %w : tensor<?x4xf32>, "
      "tensor<8x4xf32>\n return %0 : tensor<?x8xf32>\n}\n");
  if (first.stage != Stage::Ran) {
    std::fprintf(stderr, "error: %s\n", first.error.c_str());
    return 1;
  }
  llvm::install_fatal_error_handler(endOnFatalError);
  llvm::install_bad_alloc_error_handler(
      [](void *, const char *, bool) { endWithoutMemory(); });
  std::set_new_handler(endWithoutMemory);

  for (std::string path; std::getline(std::cin, path);) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return 1;
    const pid_t child = ::fork();
    if (child < 0)
      return 1;
    if (child == 0) {
      ::dup2(ends[1], STDERR_FILENO);
      useAndExit(compiler, path);
    }
    ::close(ends[1]);
    std::string said;
    char buffer[4096];
    for (ssize_t count; (count = ::read(ends[0], buffer, sizeof(buffer))) > 0;)
      if (said.size() < sizeof(buffer))
        said.append(buffer, count);
    ::close(ends[0]);
    int status = 0;
    struct rusage usage = {};
    if (::wait4(child, &status, 0, &usage) != child)
      return 1;
    for (char &c : said)
      c = c == '\n' || c == '\t' ? ' ' : c;
    std::printf("%s\t%.0f\t%ld\t%s\t%.600s\n", classify(status).c_str(),
                milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime),
                usage.ru_maxrss >> 10, path.c_str(), said.c_str());
    std::fflush(stdout);
  }
  return 0;
}
