//===- CollectiveCall.cpp - What a rank brings to a collective ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/CollectiveCall.h"

#include <algorithm>
#include <cstring>

using namespace kf;

std::string CollectiveCall::describe() const {
  if (kind == CollectiveSpec::Kind::AllReduce)
    return "sums up " + std::to_string(count) + " elements of " +
           std::string(nameOf(type));
  return (kind == CollectiveSpec::Kind::Send ? "sends " : "gathers ") +
         std::to_string(count) + " bytes";
}

Status kf::checkAlike(std::span<const CollectiveCall> calls) {
  for (size_t i = 1; i < calls.size(); ++i)
    if (!calls[i].isLike(calls[0]))
      return Status::error("rank " + std::to_string(i) + " " +
                               calls[i].describe() + " where rank 0 " +
                               calls[0].describe(),
                           StatusCode::Internal);
  return Status();
}

/// Adds up the elements of all sources, in the order of the ranks.
static Status addUp(std::span<const CollectiveCall> calls, std::byte *target) {
  constexpr uint64_t most = 1024;
  float sum[most], addend[most];
  const DataType type = calls[0].type;
  const uint64_t size = sizeOf(type), count = calls[0].count;
  for (uint64_t begin = 0; begin < count; begin += most) {
    const int64_t length = static_cast<int64_t>(std::min(most, count - begin));
    for (size_t rank = 0; rank < calls.size(); ++rank) {
      float *to = rank == 0 ? sum : addend;
      KF_RETURN_IF_ERROR(
          convertToFloat(type, calls[rank].source + begin * size, length, to));
      for (int64_t i = 0; rank > 0 && i < length; ++i)
        sum[i] += addend[i];
    }
    KF_RETURN_IF_ERROR(
        convertFromFloat(type, sum, length, target + begin * size));
  }
  return Status();
}

Status kf::putTogether(std::span<const CollectiveCall> calls,
                       std::byte *target) {
  if (calls[0].kind == CollectiveSpec::Kind::AllReduce)
    return addUp(calls, target);
  if (calls[0].count == 0)
    return Status();
  for (const CollectiveCall &call : calls) {
    std::memcpy(target, call.source, call.count);
    target += call.count;
  }
  return Status();
}
