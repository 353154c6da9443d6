/*===- KernelHost.c - Runs kernels of another architecture ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Needs the C library alone, so that no C++ library of that architecture has
// to be there.
//
//===----------------------------------------------------------------------===*/

#define _GNU_SOURCE
#include "test/emulator/KernelHost.h"

#include "runtime/program/abi.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct library {
  uint32_t count;
  kf_kernel_fn *functions;
};

static struct library *libraries;
static uint32_t library_count;

/* Kernels call functions of the mathematical library, which is linked for the
   sake of this one. */
double (*volatile kf_keep_libm)(double) = asinh;

static void answer(const char *error) {
  uint32_t length = error ? (uint32_t)strlen(error) : 0;
  fwrite(&length, sizeof(length), 1, stdout);
  fwrite(error, 1, length, stdout);
  fflush(stdout);
}

static void *allocate(size_t bytes) {
  void *memory = aligned_alloc(KF_BUFFER_ALIGNMENT,
                               (bytes + KF_BUFFER_ALIGNMENT) &
                                   ~(size_t)(KF_BUFFER_ALIGNMENT - 1));
  if (!memory) {
    answer("the emulated program is out of memory");
    exit(1);
  }
  return memory;
}

static void load(const char *text, uint32_t count) {
  void *handle = dlopen(text, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    answer(dlerror());
    return;
  }
  struct library *grown =
      realloc(libraries, (library_count + 1) * sizeof(*libraries));
  if (!grown)
    exit(1);
  libraries = grown;
  struct library *library = &libraries[library_count];
  library->count = count;
  library->functions = allocate(count * sizeof(kf_kernel_fn));
  const char *name = text;
  for (uint32_t i = 0; i < count; ++i) {
    name += strlen(name) + 1;
    library->functions[i] = (kf_kernel_fn)dlsym(handle, name);
    if (!library->functions[i]) {
      answer(dlerror());
      return;
    }
  }
  ++library_count;
  answer(NULL);
}

static void run(const struct kf_host_command *command, void *const *bindings,
                const int64_t *scalars) {
  if (command->library >= library_count ||
      command->count >= libraries[command->library].count) {
    answer("the emulated program has no such function");
    return;
  }
  void *scratch = allocate(command->scratch_bytes);
  kf_kernel_fn function = libraries[command->library].functions[command->count];
  for (uint64_t i = 0; i < command->workgroups; ++i)
    function(bindings, scalars, scratch, (int64_t)i);
  free(scratch);
  answer(NULL);
}

/* The number of the shared memory's descriptor is the argument. */
int main(int argc, char **argv) {
  void *wanted = (void *)KF_SHARED_ADDRESS;
  if (argc != 2 ||
      mmap(wanted, KF_SHARED_BYTES, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_FIXED_NOREPLACE, atoi(argv[1]), 0) != wanted) {
    answer("the emulated program cannot map the shared memory");
    return 1;
  }
  answer(NULL);
  struct kf_host_command command;
  while (fread(&command, sizeof(command), 1, stdin) == 1) {
    char *data = allocate(command.bytes + 1);
    int64_t scalars[KF_SCALAR_COUNT] = {0};
    if (fread(data, 1, command.bytes, stdin) != command.bytes)
      return 1;
    data[command.bytes] = 0;
    if (command.kind == KF_HOST_LOAD) {
      load(data, command.count);
    } else {
      if (fread(scalars, sizeof(scalars), 1, stdin) != 1)
        return 1;
      run(&command, (void *const *)data, scalars);
    }
    free(data);
  }
  return 0;
}
