//===- MpiLibrary.h - An MPI that is opened at run time ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_COLLECTIVE_MPILIBRARY_H
#define KF_RUNTIME_COLLECTIVE_MPILIBRARY_H

#include "runtime/collective/Launcher.h"
#include "runtime/collective/MpiPlugin.h"
#include "runtime/core/Status.h"

#include <cstdint>
#include <functional>
#include <string>

namespace kf {

/// Collectives of all processes that a launcher of MPI has started. One at a
/// time: any thread. It is never closed, and lives as long as the process.
class MpiLibrary {
public:
  /// Asked again and again while a call waits; an error ends the call, with it.
  /// What was begun is then still under way, and its memory is not to be
  /// touched, nor MPI called, again.
  using Poll = std::function<Status()>;

  /// Opens the plugin for `kind`, from the folder `folder`. Error: it is not
  /// there, or its MPI is not.
  static Result<MpiLibrary> open(MpiKind kind, const std::string &folder);
  /// Where plugins are: beside the folder of the running program, in
  /// lib/kernelforge.
  static std::string pluginFolder();

  /// Begins as `launched` says, which the library has to say, too: it does not
  /// where it is not that of the launcher.
  Status start(const LaunchedRank &launched);

  /// target[i] becomes the sum over all ranks of source[i]. Waits for the
  /// others spinning for a while, then lets other threads run between two
  /// looks; `isCrowded`: at once.
  Status sum(const float *source, float *target, uint64_t count, bool isCrowded,
             const Poll &poll);
  /// `target` gets the `bytes` bytes, less than 2 GiB, of each rank's `source`.
  Status gather(const void *source, void *target, uint64_t bytes,
                bool isCrowded, const Poll &poll);

  /// Rank `rank` gets the `bytes` bytes of `source` by its receive() of this
  /// one, which is waited for where they are many.
  Status send(const void *source, uint64_t bytes, int64_t rank, bool isCrowded,
              const Poll &poll);
  /// `target` gets what rank `rank` sends. Waits as sum() does until something
  /// has come, and sleeps in between where that takes long: who sends may
  /// compute until then, and have need of the core. Error: fewer or more than
  /// `bytes` bytes.
  Status receive(void *target, uint64_t bytes, int64_t rank, bool isCrowded,
                 const Poll &poll);

  /// Ends MPI, which waits for all ranks to do so.
  void end();

  /// "Open MPI v4.1.4".
  std::string name() const;

private:
  explicit MpiLibrary(const KfMpiPlugin *plugin) : plugin(plugin) {}
  Status check(int error, const char *what) const;
  Status finish(bool isCrowded, const Poll &poll);
  Status await(int rank, bool isCrowded, const Poll &poll);
  static Result<int> countOf(uint64_t bytes, const char *what);

  const KfMpiPlugin *plugin;
};

} // namespace kf

#endif // KF_RUNTIME_COLLECTIVE_MPILIBRARY_H
