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
#include <cstring>
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

/// `module` with the execution mode `number` for floats of `width` bits, of its
/// one entry point, which has to state its LocalSize.
inline std::string withFloatMode(const std::string &module, uint32_t number,
                                 uint32_t width) {
  constexpr uint32_t opExecutionMode = 16;
  for (size_t at = 5; at * 4 < module.size();) {
    uint32_t words[2];
    std::memcpy(words, module.data() + at * 4, sizeof(words));
    if ((words[0] & 0xffff) == opExecutionMode) {
      std::string mode(16, '\0');
      setWord(mode, 0, 4u << 16 | opExecutionMode);
      setWord(mode, 1, words[1]); // the entry point
      setWord(mode, 2, number);
      setWord(mode, 3, width);
      return std::string(module).insert(at * 4, mode);
    }
    at += words[0] >> 16;
  }
  return {};
}

inline std::string withDenormPreserve(const std::string &module,
                                      uint32_t width) {
  return withFloatMode(module, 4459, width);
}

inline std::string withRoundingModeRTE(const std::string &module,
                                       uint32_t width) {
  return withFloatMode(module, 4462, width);
}

} // namespace kf

#endif // KF_TEST_RUNTIME_DEVICES_VULKAN_SPIRVTESTMODULES_H
