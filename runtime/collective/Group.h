//===- Group.h - Ranks that run a model together ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What stands between a program's collectives and whatever connects the devices
// that run it. A Group is one rank's end of that connection; how ranks are
// started and found is not its matter. It knows buffers in the host's memory
// and no programs, but for runCollective(), which devices of the host call.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_COLLECTIVE_GROUP_H
#define KF_RUNTIME_COLLECTIVE_GROUP_H

#include "runtime/program/Executable.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace kf {

/// One rank of several. All make the same sums and gathers in the same order,
/// and each returns when all have made it. What a rank sends, the one behind it
/// gets, rank 0 being behind the last. Each sends as often as rank 0 receives.
///
/// Threads: one at a time makes the calls; any may abort(). Failure: a rank
/// that aborts, or ends, makes those calls of the others fail that it has not
/// made itself, with its name, and every later one. Nothing waits for a rank
/// that is gone. The code is Unavailable.
class Group {
public:
  virtual ~Group() = default;
  Group(const Group &) = delete;
  Group &operator=(const Group &) = delete;

  int64_t rank() const { return number; } ///< 0 to size() - 1
  int64_t size() const { return count; }  ///< 2 or more
  int64_t next() const { return (number + 1) % count; }
  int64_t previous() const { return (number + count - 1) % count; }

  /// target[i] becomes the sum over all ranks of their source[i], `elements` of
  /// `type` (f32, f16, bf16): summed in f32, rounded once, with equal bits on
  /// all ranks. `source` and `target` do not overlap.
  virtual Status allReduce(DataType type, const void *source, void *target,
                           uint64_t elements) = 0;
  /// target [size()][bytes] gets the `bytes` bytes of each rank's `source`.
  /// They do not overlap.
  virtual Status allGather(const void *source, void *target,
                           uint64_t bytes) = 0;
  /// Hands `source` on to rank next(), in order. May wait for its receive(), or
  /// that of rank 0, by which messages go where ranks have no other way: those
  /// in a ring that all send first wait for ever. An error ends the group.
  virtual Status send(const void *source, uint64_t bytes) = 0;
  /// Waits for what rank previous() sends, and writes it to `target`. Errors,
  /// another number of bytes than `bytes` among them, end the group.
  virtual Status receive(void *target, uint64_t bytes) = 0;
  /// Ends the group for all ranks; `reason` is what this one says of it. The
  /// first one counts.
  virtual void abort(std::string_view reason) = 0;
  /// Why calls fail from now on; OK while the group goes on. Any thread.
  virtual Status failure() const = 0;

protected:
  Group(int64_t rank, int64_t size) : number(rank), count(size) {}

private:
  int64_t number, count;
};

/// Runs a collective of a step with the sizes `scalars` on `memory`, that of
/// its dispatch's bindings: what this rank has, the result, or one of both.
/// `staging` is scratch that calls may share. Errors: the group's.
Status runCollective(Group &group, const CollectiveSpec &collective,
                     std::span<const int64_t> scalars,
                     std::span<std::byte *const> memory,
                     std::vector<std::byte> &staging);

} // namespace kf

#endif // KF_RUNTIME_COLLECTIVE_GROUP_H
