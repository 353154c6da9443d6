//===- GpuInstance.cpp - What GPUs ask of a program's runs ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/GpuInstance.h"

#include <algorithm>
#include <limits>

using namespace kf;

std::string kf::atDispatch(size_t index) {
  return "dispatch " + std::to_string(index);
}

bool GpuInstance::hasScalars(std::span<const int64_t> scalars) const {
  return current && std::ranges::equal(scalars, *current);
}

void GpuInstance::setScalars(std::span<const int64_t> scalars) {
  std::ranges::copy(scalars, current.emplace().begin());
}

Status GpuInstance::doCheck(std::span<const int64_t> scalars) {
  for (size_t i = 0; i < scalars.size(); ++i)
    if (scalars[i] < 0 || scalars[i] > std::numeric_limits<int32_t>::max())
      return Status::error("scalar " + std::to_string(i) + " is " +
                           std::to_string(scalars[i]) +
                           ": not within 0..2147483647");
  return evaluateGrids(scalars).status();
}

Result<std::vector<GpuGrid>>
GpuInstance::evaluateGrids(std::span<const int64_t> scalars) const {
  std::vector<GpuGrid> result;
  for (size_t i = 0; i < program().dispatches.size(); ++i) {
    auto counts = gridOf(program().dispatches[i], scalars);
    if (!counts)
      return counts.status().in(atDispatch(i));
    GpuGrid grid{};
    for (size_t d = 0; d < grid.size(); ++d) {
      if ((*counts)[d] > limits.most[d])
        return Status::error(
            atDispatch(i) + ": " + std::to_string((*counts)[d]) +
            " workgroups along " + "xyz"[d] + ", " + limits.device +
            " allows " + std::to_string(limits.most[d]) +
            "; use larger tiles or fewer tokens");
      grid[d] = static_cast<uint32_t>((*counts)[d]);
    }
    result.push_back(grid);
  }
  return result;
}

Result<uint64_t> kf::byteOffsetOf(const Executable &program,
                                  const kf_binding &binding, int64_t pages) {
  if (binding.kind != KF_BINDING_CACHE)
    return binding.offset; // 0 but in the arena
  const CacheSpec &cache = program.caches[binding.index];
  KF_ASSIGN_OR_RETURN(int64_t bytes, cache.bytes(pages));
  // Layers are equal, so that this is within `bytes`.
  return static_cast<uint64_t>(bytes / cache.layers) * binding.offset;
}
