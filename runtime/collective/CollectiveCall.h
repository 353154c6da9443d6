//===- CollectiveCall.h - What a rank brings to a collective ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_COLLECTIVE_COLLECTIVECALL_H
#define KF_RUNTIME_COLLECTIVE_COLLECTIVECALL_H

#include "runtime/collective/Group.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace kf {

/// A rank's call of a Group.
struct CollectiveCall {
  CollectiveSpec::Kind kind = CollectiveSpec::Kind::AllReduce;
  DataType type = DataType::F32; ///< of a sum
  uint64_t count = 0;            ///< elements of a sum; bytes
  const std::byte *source = nullptr;

  bool isLike(const CollectiveCall &other) const {
    return kind == other.kind && type == other.type && count == other.count;
  }
  /// "sums up 8 elements of f32".
  std::string describe() const;
  /// Of its source, or of a sum's result.
  uint64_t bytes() const {
    return kind == CollectiveSpec::Kind::AllReduce ? count * sizeOf(type)
                                                   : count;
  }
};

/// A group that makes calls alike, whatever they are for.
class CallingGroup : public Group {
public:
  Status allReduce(DataType type, const void *source, void *target,
                   uint64_t elements) final {
    return call({CollectiveSpec::Kind::AllReduce, type, elements,
                 static_cast<const std::byte *>(source)},
                static_cast<std::byte *>(target));
  }
  Status allGather(const void *source, void *target, uint64_t bytes) final {
    return call({CollectiveSpec::Kind::AllGather, DataType::U8, bytes,
                 static_cast<const std::byte *>(source)},
                static_cast<std::byte *>(target));
  }

protected:
  using Group::Group;
  virtual Status call(const CollectiveCall &own, std::byte *target) = 0;
};

/// Of all ranks' calls, by rank: an error, Internal, that names the first that
/// is another one than rank 0's.
Status checkAlike(std::span<const CollectiveCall> calls);

/// Writes what calls that are alike result in to `target`: the sum in the order
/// of the ranks, in f32 and rounded once, or the sources one behind the other.
Status putTogether(std::span<const CollectiveCall> calls, std::byte *target);

} // namespace kf

#endif // KF_RUNTIME_COLLECTIVE_COLLECTIVECALL_H
