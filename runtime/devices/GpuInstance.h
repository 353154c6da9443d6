//===- GpuInstance.h - What GPUs ask of a program's runs --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of an Instance that is the same on every GPU: grids within a
// device's limits, and scalars in a buffer of the device, of which kernels read
// the low words and which streams write where a run's differ.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_GPUINSTANCE_H
#define KF_RUNTIME_DEVICES_GPUINSTANCE_H

#include "runtime/devices/Device.h"

#include <optional>

namespace kf {

using GpuGrid = std::array<uint32_t, 3>; // workgroups in x, y and z
using GpuScalars = std::array<int64_t, KF_SCALAR_COUNT>;

struct GpuGridLimits {
  std::array<int64_t, 3> most; ///< below 2^32
  std::string device;          ///< whose limits these are, for errors
};

/// Recordings that an instance keeps, each of a list of grid sizes, the one
/// that was not used for the longest time being replaced. Kernels with a
/// workgroup a row make a list of every number of rows: there are as many as a
/// step of sequences that generate has numbers of rows (Engine.h,
/// kMostChosenPerStep), so that none is made again while sequences come and go.
inline constexpr size_t kKeptRecordings = 256;

class GpuInstance : public Instance {
public:
  /// Whether the scalar buffer has these values behind all that was enqueued.
  bool hasScalars(std::span<const int64_t> scalars) const;
  void setScalars(std::span<const int64_t> scalars);
  /// Its content is not known until setScalars().
  void forgetScalars() { current.reset(); }

protected:
  GpuInstance(const Executable &executable, const BindingTable &table,
              GpuGridLimits limits)
      : Instance(executable, table), limits(std::move(limits)) {}

  /// Errors: scalars that do not fit a word with a sign, grids beyond limits.
  Status doCheck(std::span<const int64_t> scalars) override;
  /// [dispatches]
  Result<std::vector<GpuGrid>>
  evaluateGrids(std::span<const int64_t> scalars) const;

private:
  const GpuGridLimits limits;
  std::optional<GpuScalars> current; ///< none: unknown
};

/// Bytes before `binding` of a verified program in its buffer; the caches have
/// `pages`.
Result<uint64_t> byteOffsetOf(const Executable &program,
                              const kf_binding &binding, int64_t pages);

/// "dispatch 3", for errors.
std::string atDispatch(size_t index);

} // namespace kf

#endif // KF_RUNTIME_DEVICES_GPUINSTANCE_H
