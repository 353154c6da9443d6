//===- CoreTypes.cpp - Peers compute for this CPU, not an older one -------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "benchmarks/CoreTypes.h"

#include <cstdlib>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

void kf::bench::forceCoreTypes(char **argv) {
  std::vector<std::pair<const char *, std::string>> wanted = {
      {"OMP_NUM_THREADS", "1"},
      {"OPENBLAS_NUM_THREADS", "1"},
      {"BLIS_NUM_THREADS", "1"}};
#if defined(__x86_64__)
  __builtin_cpu_init();
  // BLIS numbers its kernels: 0 is for Skylake servers, 3 for Haswell.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
    wanted.emplace_back("OPENBLAS_CORETYPE", "SkylakeX");
    wanted.emplace_back("BLIS_ARCH_TYPE", "0");
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    wanted.emplace_back("OPENBLAS_CORETYPE", "Haswell");
    wanted.emplace_back("BLIS_ARCH_TYPE", "3");
  }
#endif
  bool changed = false;
  for (const auto &[name, value] : wanted)
    if (!std::getenv(name))
      changed |= ::setenv(name, value.c_str(), 1) == 0;
  // Where this fails, the context that is printed shows what the libraries use.
  if (changed)
    ::execv("/proc/self/exe", argv);
}
