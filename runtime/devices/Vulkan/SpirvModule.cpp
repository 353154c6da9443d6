//===- SpirvModule.cpp - What the device must know of a module ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/SpirvModule.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace kf;

namespace {

static_assert(std::endian::native == std::endian::little,
              "SPIR-V words and lengths are read in place");

constexpr uint32_t magic = 0x07230203;
constexpr size_t headerWords = 5;
/// SPIR-V's universal limit on result ids; drivers allocate tables of it.
constexpr uint32_t maxIdBound = 0x3fffff;

enum Opcode : uint32_t {
  OpEntryPoint = 15,
  OpExecutionMode = 16,
  OpCapability = 17,
  OpDecorate = 71,
  OpDecorationGroup = 73,
  OpExecutionModeId = 331,
};
enum : uint32_t {
  ExecutionModelGLCompute = 5,
  ExecutionModeLocalSize = 17,
  ExecutionModeLocalSizeId = 38,
  ExecutionModeDenormPreserve = 4459,
  ExecutionModeRoundingModeRTE = 4462,
  DecorationBuiltIn = 11,
  DecorationBinding = 33,
  DecorationDescriptorSet = 34,
  BuiltInWorkgroupSize = 25,
};

/// A SPIR-V string literal: bytes up to a zero within `words`.
Result<std::string> literalString(std::span<const uint32_t> words) {
  std::string_view bytes(reinterpret_cast<const char *>(words.data()),
                         words.size_bytes());
  size_t end = bytes.find('\0');
  if (end == std::string_view::npos)
    return Status::error("SPIR-V entry point's name has no end");
  return std::string(bytes.substr(0, end));
}

/// Reads one instruction; `args` are its words past the first.
Status readInstruction(uint32_t opcode, std::span<const uint32_t> args,
                       SpirvModule &module) {
  switch (opcode) {
  case OpCapability:
    if (args.size() != 1)
      return Status::error("SPIR-V OpCapability of a wrong length");
    module.capabilities.push_back(args[0]);
    return {};
  case OpEntryPoint: {
    if (args.size() < 3)
      return Status::error("SPIR-V OpEntryPoint of a wrong length");
    SpirvEntryPoint entry;
    entry.compute = args[0] == ExecutionModelGLCompute;
    entry.id = args[1];
    KF_ASSIGN_OR_RETURN(entry.name, literalString(args.subspan(2)));
    module.entryPoints.push_back(std::move(entry));
    return {};
  }
  case OpExecutionMode:
    if (args.size() == 5 && args[1] == ExecutionModeLocalSize)
      for (SpirvEntryPoint &entry : module.entryPoints)
        if (entry.id == args[0])
          entry.localSize = {args[2], args[3], args[4]};
    if (args.size() >= 3 && args[1] == ExecutionModeDenormPreserve)
      module.denormPreserve.push_back(args[2]);
    if (args.size() >= 3 && args[1] == ExecutionModeRoundingModeRTE)
      module.roundToNearest.push_back(args[2]);
    return {};
  case OpExecutionModeId:
    if (args.size() >= 2 && args[1] == ExecutionModeLocalSizeId)
      return Status::error("SPIR-V states its workgroup size by LocalSizeId: "
                           "use LocalSize");
    return {};
  case OpDecorationGroup:
    return Status::error(
        "SPIR-V has decoration groups: decorate each variable");
  case OpDecorate:
    if (args.size() < 3)
      return {};
    if (args[1] == DecorationBuiltIn && args[2] == BuiltInWorkgroupSize)
      return Status::error("SPIR-V states its workgroup size by a built-in "
                           "constant: use LocalSize");
    if (args[1] == DecorationBinding)
      module.maxBinding = std::max<int64_t>(module.maxBinding, args[2]);
    if (args[1] == DecorationDescriptorSet)
      module.maxSet = std::max<int64_t>(module.maxSet, args[2]);
    return {};
  default:
    return {};
  }
}

} // namespace

const SpirvEntryPoint *SpirvModule::find(std::string_view name) const {
  auto it = std::find_if(
      entryPoints.begin(), entryPoints.end(),
      [&](const SpirvEntryPoint &entry) { return entry.name == name; });
  return it == entryPoints.end() ? nullptr : &*it;
}

Result<SpirvModule> kf::parseSpirv(std::string_view bytes) {
  if (bytes.size() % 4 != 0 || bytes.size() < headerWords * 4)
    return Status::error("SPIR-V module of " + std::to_string(bytes.size()) +
                         " bytes: not a multiple of 4, or less than a header");
  SpirvModule module;
  module.words.resize(bytes.size() / 4);
  std::memcpy(module.words.data(), bytes.data(), bytes.size());
  std::span<const uint32_t> words(module.words);
  if (words[0] != magic)
    return Status::error("not a SPIR-V module: wrong magic number");
  if ((words[1] & 0xff0000ffu) != 0 || words[1] >> 16 != 1)
    return Status::error("SPIR-V module of an unknown version");
  module.minorVersion = (words[1] >> 8) & 0xff;
  if (words[3] == 0 || words[3] > maxIdBound)
    return Status::error("SPIR-V id bound " + std::to_string(words[3]) +
                         " is not within 1.." + std::to_string(maxIdBound));

  for (size_t at = headerWords; at < words.size();) {
    size_t length = words[at] >> 16;
    if (length == 0 || length > words.size() - at)
      return Status::error("SPIR-V instruction at word " + std::to_string(at) +
                           " has a length of " + std::to_string(length) +
                           " words: cut off or damaged");
    KF_RETURN_IF_ERROR(readInstruction(
        words[at] & 0xffff, words.subspan(at + 1, length - 1), module));
    at += length;
  }
  return module;
}

Result<std::vector<SpirvModule>> kf::parseSpirvModules(std::string_view binary,
                                                       size_t count) {
  std::vector<SpirvModule> modules;
  for (size_t i = 0; i < count; ++i) {
    std::string where = "SPIR-V module " + std::to_string(i);
    uint64_t length = 0;
    if (binary.size() < sizeof(length))
      return Status::error(where + ": the binary ends before it");
    std::memcpy(&length, binary.data(), sizeof(length));
    binary.remove_prefix(sizeof(length));
    if (length > binary.size())
      return Status::error(where + ": states " + std::to_string(length) +
                           " bytes, but only " + std::to_string(binary.size()) +
                           " follow");
    Result<SpirvModule> module = parseSpirv(binary.substr(0, length));
    if (!module)
      return module.status().in(where);
    modules.push_back(module.take());
    binary.remove_prefix(length);
  }
  if (!binary.empty())
    return Status::error(std::to_string(binary.size()) +
                         " bytes follow the last of " + std::to_string(count) +
                         " SPIR-V modules");
  return modules;
}

std::string kf::capabilityName(uint32_t capability) {
  switch (capability) {
  case 9:
    return "Float16";
  case 10:
    return "Float64";
  case 11:
    return "Int64";
  case 22:
    return "Int16";
  case 39:
    return "Int8";
  case 61:
    return "GroupNonUniform";
  case 62:
    return "GroupNonUniformVote";
  case 63:
    return "GroupNonUniformArithmetic";
  case 64:
    return "GroupNonUniformBallot";
  case 65:
    return "GroupNonUniformShuffle";
  case 66:
    return "GroupNonUniformShuffleRelative";
  case 67:
    return "GroupNonUniformClustered";
  case 68:
    return "GroupNonUniformQuad";
  case 4433:
    return "StorageBuffer16BitAccess";
  case 4434:
    return "UniformAndStorageBuffer16BitAccess";
  case 4448:
    return "StorageBuffer8BitAccess";
  case 4449:
    return "UniformAndStorageBuffer8BitAccess";
  case 4464:
    return "DenormPreserve";
  case 4467:
    return "RoundingModeRTE";
  case 5116:
    return "BFloat16TypeKHR";
  case 5118:
    return "BFloat16CooperativeMatrixKHR";
  case 5345:
    return "VulkanMemoryModel";
  case 5346:
    return "VulkanMemoryModelDeviceScope";
  case 6016:
    return "DotProductInputAll";
  case 6017:
    return "DotProductInput4x8Bit";
  case 6018:
    return "DotProductInput4x8BitPacked";
  case 6019:
    return "DotProduct";
  case 6022:
    return "CooperativeMatrixKHR";
  default:
    return std::to_string(capability);
  }
}
