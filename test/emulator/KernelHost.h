/*===- KernelHost.h - What is said to the emulated program --------*- C -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// KernelHost.c reads commands from stdin and answers each on stdout: with the
// length of an error's text, 0 without one, in 4 bytes, and the text. Both
// processes have the same memory at the same address.
//
//===----------------------------------------------------------------------===*/

#ifndef KF_TEST_EMULATOR_KERNELHOST_H
#define KF_TEST_EMULATOR_KERNELHOST_H

#include <stdint.h>

/* Where the shared memory lies, and its bytes, few of which are ever used. */
#define KF_SHARED_ADDRESS UINT64_C(0x200000000000)
#define KF_SHARED_BYTES (UINT64_C(1) << 32)

enum kf_host_command_kind {
  /* Loads a library, the next from number 0 on: `bytes` bytes of text follow,
     its path and the names of `count` functions, each with a 0 behind it. */
  KF_HOST_LOAD = 1,
  /* Runs all workgroups of function number `count` of a library: addresses of
     its bindings follow, `bytes` bytes of them, and the scalars. */
  KF_HOST_RUN = 2
};

struct kf_host_command {
  uint32_t kind, library, count;
  uint32_t bytes;
  uint64_t workgroups, scratch_bytes; /* of KF_HOST_RUN */
};

#endif /* KF_TEST_EMULATOR_KERNELHOST_H */
