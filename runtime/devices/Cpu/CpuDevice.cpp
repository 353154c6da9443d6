//===- CpuDevice.cpp - Programs on the host's cores -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cpu/CpuDevice.h"

#include "runtime/Exceptions.h"
#include "runtime/devices/Cpu/CpuProgram.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

namespace kf {
namespace {

class CpuBuffer final : public Buffer {
public:
  /// Memory of its own.
  explicit CpuBuffer(AlignedBuffer owned)
      : Buffer(owned.size()), memory(std::move(owned)), base(memory.data()) {}
  /// The caller's memory.
  CpuBuffer(const void *data, uint64_t bytes)
      : Buffer(bytes), base(const_cast<void *>(data)) {}

  void *hostPointer() override { return base; }
  /// Set for what wrap() made: kernels and write() must leave it alone.
  bool readOnly = false;

private:
  AlignedBuffer memory;
  void *base;
};

/// Checks that [offset, offset + bytes) lies in a buffer of this device.
Result<CpuBuffer *> checkAccess(Buffer &buffer, uint64_t offset,
                                uint64_t bytes) {
  auto *own = dynamic_cast<CpuBuffer *>(&buffer);
  if (!own)
    return Status::error("the buffer belongs to another device");
  if (offset > own->size() || bytes > own->size() - offset)
    return Status::error("bytes " + std::to_string(offset) + " to " +
                         std::to_string(offset) + " + " +
                         std::to_string(bytes) + " are outside a buffer of " +
                         std::to_string(own->size()) + " bytes");
  return own;
}

/// "AMD EPYC 9575F; avx2 fma ..." from the system's description.
std::string describeProcessor() {
  static constexpr std::string_view interesting[] = {
      "avx2",        "fma",         "f16c",     "avx512f",  "avx512bw",
      "avx512vl",    "avx512_vnni", "avx_vnni", "amx_tile", "avx512_bf16",
      "avx512_fp16", "amx_bf16",    "amx_int8", "asimd",    "asimddp",
      "sve",         "bf16",        "i8mm"};
  std::string model = "unknown processor", features;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    size_t colon = line.find(':');
    if (colon == std::string::npos)
      continue;
    std::string value = line.substr(std::min(colon + 2, line.size()));
    if (line.starts_with("model name")) {
      model = value;
    } else if (line.starts_with("flags") || line.starts_with("Features")) {
      std::istringstream words(value);
      for (std::string word; words >> word;)
        if (std::ranges::find(interesting, word) != std::end(interesting))
          features += " " + word;
    }
  }
  return model + ";" + (features.empty() ? " no vector features" : features);
}

class CpuDevice final : public Device {
public:
  explicit CpuDevice(CpuContext context) : context(std::move(context)) {}

  std::string name() const override { return "cpu"; }

  int workers() const override { return context.pool->size(); }
  std::string description() const override {
    int threads = context.pool->size();
    return describeProcessor() + "; " + std::to_string(threads) +
           (threads == 1 ? " thread" : " threads");
  }

  Result<std::unique_ptr<Buffer>> allocate(uint64_t bytes) override try {
    KF_ASSIGN_OR_RETURN(AlignedBuffer memory, AlignedBuffer::allocate(bytes));
    return std::unique_ptr<Buffer>(new CpuBuffer(std::move(memory)));
  } catch (...) {
    return statusOfException();
  }

  Result<std::unique_ptr<Buffer>> wrap(const void *data,
                                       uint64_t bytes) override try {
    if (!data && bytes > 0)
      return Status::error("cannot wrap a null pointer");
    auto buffer = std::make_unique<CpuBuffer>(data, bytes);
    buffer->readOnly = true;
    return std::unique_ptr<Buffer>(std::move(buffer));
  } catch (...) {
    return statusOfException();
  }

  Status write(Buffer &dst, uint64_t offset, const void *src,
               uint64_t bytes) override {
    KF_ASSIGN_OR_RETURN(CpuBuffer * own, checkAccess(dst, offset, bytes));
    if (own->readOnly)
      return Status::error("cannot write to a buffer over the caller's memory");
    if (bytes > 0)
      std::memcpy(static_cast<std::byte *>(own->hostPointer()) + offset, src,
                  bytes);
    return Status();
  }

  Status read(Buffer &src, uint64_t offset, void *dst,
              uint64_t bytes) override {
    KF_ASSIGN_OR_RETURN(CpuBuffer * own, checkAccess(src, offset, bytes));
    if (bytes > 0)
      std::memcpy(dst, static_cast<std::byte *>(own->hostPointer()) + offset,
                  bytes);
    return Status();
  }

  Result<std::unique_ptr<LoadedProgram>>
  load(const Executable &executable) override try {
    if (executable.target != name())
      return Status::error("the program '" + executable.programName +
                           "' was compiled for '" + executable.target +
                           "', not for 'cpu'");
    KF_ASSIGN_OR_RETURN(std::unique_ptr<CpuProgram> program,
                        CpuProgram::load(executable, context));
    return std::unique_ptr<LoadedProgram>(std::move(program));
  } catch (...) {
    return statusOfException();
  }

private:
  CpuContext context;
};

} // namespace

Result<std::unique_ptr<Device>>
createCpuDevice(const CpuDeviceOptions &options) try {
  CpuContext context;
  KF_ASSIGN_OR_RETURN(context.pool, ThreadPool::create(options.threads));
  context.team = std::make_unique<ThreadTeam>(*context.pool);
  KF_ASSIGN_OR_RETURN(context.loader, ObjectLoader::create());
  KF_RETURN_IF_ERROR(context.reserveScratch(0));
  return std::unique_ptr<Device>(new CpuDevice(std::move(context)));
} catch (...) {
  return statusOfException();
}

} // namespace kf
