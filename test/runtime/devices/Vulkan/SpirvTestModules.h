//===- SpirvTestModules.h - Assembled kernels of the tests ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_DEVICES_VULKAN_SPIRVTESTMODULES_H
#define KF_TEST_RUNTIME_DEVICES_VULKAN_SPIRVTESTMODULES_H

#include "test/runtime/TestFiles.h"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

namespace kf {

/// The bytes of `name`.spvasm, assembled; empty if the file is missing.
inline std::string readSpirv(const std::string &name) {
  std::ifstream file(
      test::testFile(std::string(KF_SPIRV_DIR) + "/" + name + ".spv"),
      std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// Overwrites the 32-bit word number `index`.
inline void setWord(std::string &module, size_t index, uint32_t word) {
  for (unsigned i = 0; i < 4; ++i)
    module[index * 4 + i] = static_cast<char>((word >> (8 * i)) & 0xff);
}

} // namespace kf

#endif // KF_TEST_RUNTIME_DEVICES_VULKAN_SPIRVTESTMODULES_H
