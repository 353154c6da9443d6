//===- Group.cpp - Ranks that run a model together ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/Group.h"

#include <algorithm>
#include <array>
#include <cstring>

using namespace kf;

Status kf::runCollective(Group &group, const CollectiveSpec &collective,
                         std::span<const int64_t> scalars,
                         std::span<std::byte *const> memory,
                         std::vector<std::byte> &staging) {
  using enum CollectiveSpec::Kind;
  const std::byte *source = memory.front();
  std::byte *target = memory.back();
  const uint64_t rows = static_cast<uint64_t>(
      resolveShape(std::array{collective.rows}, scalars).front());
  const uint64_t columns = static_cast<uint64_t>(collective.columns);
  if (collective.kind == AllReduce)
    return group.allReduce(collective.type, source, target, rows * columns);
  const uint64_t rowBytes = columns * sizeOf(collective.type);
  if (collective.kind == Send)
    return group.send(source, rows * rowBytes);
  if (collective.kind == Receive)
    return group.receive(target, rows * rowBytes);

  // Rows of each rank, one rank after the other, become columns.
  const uint64_t resultBytes =
      static_cast<uint64_t>(collective.resultColumns) * sizeOf(collective.type);
  const uint64_t ranks = static_cast<uint64_t>(group.size());
  if (rows == 1 && resultBytes == ranks * rowBytes)
    return group.allGather(source, target, rowBytes);
  staging.resize(ranks * rows * rowBytes);
  KF_RETURN_IF_ERROR(group.allGather(source, staging.data(), rows * rowBytes));
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    const uint64_t first = rank * rowBytes;
    const uint64_t bytes = std::min(rowBytes, resultBytes - first);
    for (uint64_t row = 0; row < rows; ++row)
      std::memcpy(target + row * resultBytes + first,
                  staging.data() + (rank * rows + row) * rowBytes, bytes);
  }
  return Status();
}
