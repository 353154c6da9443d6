//===- FuzzSpirv.cpp - Any bytes as SPIR-V modules ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each input is read as one module, as the length-prefixed modules of an
// executable, and, after a length of its own, as two equal ones.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/SpirvModule.h"

#include <cstdlib>
#include <cstring>

using namespace kf;

namespace {

/// What is accepted is the input, and says of itself what it says.
uint64_t check(const SpirvModule &module, std::string_view bytes) {
  if (module.words.size() * 4 != bytes.size() ||
      std::memcmp(module.words.data(), bytes.data(), bytes.size()) != 0)
    std::abort();
  uint64_t sum = module.minorVersion;
  for (uint32_t capability : module.capabilities)
    sum += capabilityName(capability).size();
  for (const SpirvEntryPoint &entry : module.entryPoints) {
    if (entry.name.find('\0') != std::string::npos ||
        entry.name.size() > bytes.size() || !module.find(entry.name))
      std::abort();
    for (uint32_t size : entry.localSize)
      sum += size;
  }
  for (int64_t number : {module.maxBinding, module.maxSet})
    if (number < -1 || number > int64_t(UINT32_MAX))
      std::abort();
  return sum;
}

std::string lengthPrefixed(std::string_view module) {
  uint64_t length = module.size();
  std::string result(reinterpret_cast<const char *>(&length), sizeof(length));
  return result + std::string(module);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  uint64_t sum = 0;
  Result<SpirvModule> one = parseSpirv(bytes);
  if (one.ok())
    sum += check(*one, bytes);
  std::string twice = lengthPrefixed(bytes) + lengthPrefixed(bytes);
  auto both = parseSpirvModules(twice, 2);
  if (both.ok() != one.ok() || (both.ok() && both->size() != 2))
    std::abort();
  for (size_t count : {0, 1, 2, 3}) {
    auto modules = parseSpirvModules(bytes, count);
    if (modules.ok() && modules->size() != count)
      std::abort();
  }
  return sum == ~uint64_t(0);
}
