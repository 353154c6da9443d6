//===- Modules.cpp - PTX, translated and loaded ----------------*- C++ -*--===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace emu;

const char *emu::setting(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value ? value : otherwise;
}

int emu::capability() {
  const std::string chip = setting("KF_EMULATOR_CHIP", "sm_90a");
  return atoi(chip.c_str() + chip.find('_') + 1);
}

std::recursive_mutex &emu::lock() {
  static std::recursive_mutex mutex;
  return mutex;
}

static uint64_t hashOf(const std::string &text) {
  uint64_t hash = 1469598103934665603ull; // FNV-1a
  for (const unsigned char each : text)
    hash = (hash ^ each) * 1099511628211ull;
  return hash;
}

/// Runs translate.sh, which says on stderr what went wrong.
static bool translate(const std::string &base) {
  const std::string script =
      std::string(setting("KF_EMULATOR_SOURCES", ".")) + "/translate.sh";
  std::string words[] = {"bash", script, base};
  char *arguments[] = {words[0].data(), words[1].data(), words[2].data(),
                       nullptr};
  pid_t child;
  int status = 1;
  return !posix_spawnp(&child, "bash", nullptr, nullptr, arguments, environ) &&
         waitpid(child, &status, 0) == child && status == 0;
}

Kernel *emu::loadKernel(const std::string &ptx) {
  // A library is made once for a text, what is planted in it, and the sources
  // of this emulator, which KF_EMULATOR_STAMP stands for.
  char name[32];
  snprintf(name, sizeof name, "/%016lx",
           hashOf(ptx + setting("KF_EMULATOR_PLANT", "") +
                  setting("KF_EMULATOR_STAMP", "")));
  const std::string base =
      setting("KF_EMULATOR_CACHE", "/tmp") + std::string(name);
  const std::string library = base + ".so";
  if (access(library.c_str(), R_OK)) {
    std::ofstream(base + ".ptx") << ptx;
    if (!translate(base)) {
      fprintf(stderr, "cuda emulator: error: cannot translate %s.ptx\n",
              base.c_str());
      return nullptr;
    }
  }
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    fprintf(stderr, "cuda emulator: error: %s\n", dlerror());
    return nullptr;
  }
  const auto numbers = [&](const char *symbol) {
    return static_cast<const int *>(dlsym(handle, symbol));
  };
  const int *parameters = numbers("kernelParameters"); // count, bytes of each
  return new Kernel{
      .name = static_cast<const char *>(dlsym(handle, "kernelName")),
      .text = base + ".ptx",
      .library = library,
      .run = reinterpret_cast<void (*)(Thread *)>(dlsym(handle, "kernelRun")),
      .parameters = {parameters + 1, parameters + 1 + *parameters},
      .cluster = numbers("kernelCluster"),
      .threads = numbers("kernelThreads"),
      .staticShared = uint64_t(*numbers("kernelShared"))};
}
