//===- RunTemplates.cpp - What templates from a pipe take -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// run_templates writes templates to this program's stdin, each behind a line
// with its number of bytes, and reads for each a line "SECONDS KIB": the time
// of the CPU, and the most memory that the process had meanwhile. A template
// that takes more than the seconds in the first argument ends the process with
// SIGXCPU, as a crash would with its signal: the one without a line is it. The
// second argument limits the addresses, in MiB, where no sanitizer has its own
// limit.
//
//===----------------------------------------------------------------------===//

#include "TemplateUse.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <sys/resource.h>

using namespace kf;

namespace {

/// Ends the process with SIGXCPU once it has used `seconds` more of the CPU. A
/// limit by setrlimit() counts clock ticks, which is off by more than that in a
/// process that renders thousands on a busy machine.
bool limitSeconds(long seconds) {
  static timer_t timer;
  static const bool isMade = [] {
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGXCPU;
    return ::timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) == 0;
  }();
  itimerspec limit = {};
  limit.it_value.tv_sec = seconds;
  return isMade && ::timer_settime(timer, 0, &limit, nullptr) == 0;
}

void limitAddresses([[maybe_unused]] long mib) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  return; // its own memory has addresses without end
#endif
#endif
  rlimit limit = {};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = static_cast<rlim_t>(mib) << 20;
  setrlimit(RLIMIT_AS, &limit);
}

/// Lets the most memory begin with what there is now.
void forgetPeak() {
  if (std::FILE *file = std::fopen("/proc/self/clear_refs", "we")) {
    std::fputs("5", file);
    std::fclose(file);
  }
}

unsigned long peakKib() {
  std::FILE *file = std::fopen("/proc/self/status", "re");
  if (!file)
    return 0;
  unsigned long kib = 0;
  char line[256];
  while (std::fgets(line, sizeof(line), file))
    if (std::strncmp(line, "VmHWM:", 6) == 0)
      kib = std::strtoul(line + 6, nullptr, 10);
  std::fclose(file);
  return kib;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fputs("usage: kf_run_templates SECONDS MIB; see "
               "test/fuzz/run_templates\n",
               stderr);
    return 2;
  }
  limitAddresses(std::atol(argv[2]));
  const long seconds = std::atol(argv[1]);
  // Long enough for what goes through a message, and of all kinds.
  std::string content;
  while (content.size() < 4096)
    content += " It's <|im_end|> {{ x }} \xff\u00e9\u03a3\u2003\n";
  size_t size = 0;
  std::string source;
  while (std::scanf("%zu", &size) == 1 && std::getchar() == '\n') {
    source.resize(size);
    if (std::fread(source.data(), 1, size, stdin) != size)
      return 1;
    forgetPeak();
    if (!limitSeconds(seconds)) {
      std::perror("kf_run_templates: no timer of the CPU's time");
      return 1;
    }
    const double taken =
        useTemplate(source, content, ChatRenderOptions::kMaxSteps);
    std::printf("%.3f %lu\n", taken, peakKib());
    std::fflush(stdout);
  }
  return 0;
}
