//===- SpirvModule.h - What the device must know of a module ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Splits an Executable's binary into SPIR-V modules and reads from each what
// has to agree with the device and the program before a driver, which trusts
// its input, sees it. This is not a SPIR-V validator.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_VULKAN_SPIRVMODULE_H
#define KF_RUNTIME_DEVICES_VULKAN_SPIRVMODULE_H

#include "runtime/core/Status.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

struct SpirvEntryPoint {
  uint32_t id = 0;
  std::string name;
  bool compute = false;
  std::array<uint32_t, 3> localSize = {0, 0, 0}; ///< zeros: not stated
};

struct SpirvModule {
  std::vector<uint32_t> words;
  uint32_t minorVersion = 0; ///< of SPIR-V 1.x
  std::vector<uint32_t> capabilities;
  /// Bits of the floats that DenormPreserve is stated for.
  std::vector<uint32_t> denormPreserve;
  /// Bits of the floats that RoundingModeRTE is stated for.
  std::vector<uint32_t> roundToNearest;
  std::vector<SpirvEntryPoint> entryPoints;
  /// The largest binding and descriptor set that any variable has; -1: none.
  int64_t maxBinding = -1, maxSet = -1;

  /// Null if there is none of this name.
  const SpirvEntryPoint *find(std::string_view name) const;
};

/// Reads one module of `bytes`. Errors: not SPIR-V, cut off, broken
/// instruction lengths, features that hide what has to be checked.
Result<SpirvModule> parseSpirv(std::string_view bytes);

/// Splits `binary` into `count` length-prefixed modules and parses them.
Result<std::vector<SpirvModule>> parseSpirvModules(std::string_view binary,
                                                   size_t count);

/// SPIR-V's name of a capability that kernels may use, else its number.
std::string capabilityName(uint32_t capability);

} // namespace kf

#endif // KF_RUNTIME_DEVICES_VULKAN_SPIRVMODULE_H
