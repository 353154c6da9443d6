//===- MpiPlugin.h - What a plugin of an MPI gives --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implementations of MPI differ in their binary interface, and a program that
// links one cannot start without it. So what is called of MPI is compiled once
// for each, as a library that is opened when a launcher of that MPI has started
// this process. This header is all that the two sides share: C, no MPI.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_COLLECTIVE_MPIPLUGIN_H
#define KF_RUNTIME_COLLECTIVE_MPIPLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KF_MPI_PLUGIN_VERSION 3

/// Functions return 0, or an error of MPI's. One thread at a time calls them,
/// and one operation at a time is under way: its memory has to stay until
/// test() says that it is done.
struct KfMpiPlugin {
  uint32_t version; ///< KF_MPI_PLUGIN_VERSION
  /// "Open MPI v4.1.4"; static.
  const char *(*library)(void);
  /// Begins, once for the process, with this process' number and how many there
  /// are.
  int (*start)(int *rank, int *size);
  /// target[i] becomes the sum over all ranks of source[i].
  int (*beginSum)(const float *source, float *target, int count);
  /// `target` gets the `bytes` bytes of each rank's `source`, by rank.
  int (*beginGather)(const void *source, void *target, int bytes);
  /// Rank `rank` gets `source` by its next beginReceive() of this one.
  int (*beginSend)(const void *source, int bytes, int rank);
  /// Whether something of rank `rank`'s is there for beginReceive(); waits for
  /// nothing.
  int (*arrived)(int rank, int *isThere);
  /// `target` gets what rank `rank` has sent, `bytes` bytes at most.
  int (*beginReceive)(void *target, int bytes, int rank);
  /// How many bytes the last one got, once it is done.
  int (*received)(int *bytes);
  /// Goes on with what has begun, and says whether it is done; waits for
  /// nothing.
  int (*test)(int *isDone);
  /// Ends MPI, when all ranks do.
  int (*end)(void);
  /// Writes an error's text; `length` bytes with its end at most.
  void (*describe)(int error, char *text, int length);
};

/// The name of the one function of a plugin.
#define KF_MPI_PLUGIN_SYMBOL "kfMpiPlugin"
typedef const struct KfMpiPlugin *(*KfMpiPluginFunction)(void);

#ifdef __cplusplus
}
#endif

#endif // KF_RUNTIME_COLLECTIVE_MPIPLUGIN_H
