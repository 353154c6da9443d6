//===- CpuDevice.cpp - Programs on the host's cores -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cpu/CpuDevice.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/TileRegisters.h"
#include "runtime/devices/Cpu/CpuProgram.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace kf {
namespace {

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
        if (std::ranges::find(interesting, word) != std::end(interesting) &&
            (!word.starts_with("amx") || mayUseTiles()))
          features += " " + word;
    }
  }
  return model + ";" + (features.empty() ? " no vector features" : features);
}

class CpuDevice final : public HostDevice {
public:
  explicit CpuDevice(CpuContext context) : context(std::move(context)) {}

  std::string name() const override { return "cpu"; }
  int workers() const override { return context.pool->size(); }
  int readyWorkers() const override { return context.team->readySize(); }
  std::string description() const override {
    int threads = context.pool->size();
    return describeProcessor() + "; " + std::to_string(threads) +
           (threads == 1 ? " thread" : " threads");
  }

private:
  Result<std::unique_ptr<LoadedProgram>>
  doLoad(const Executable &executable) override {
    return CpuProgram::load(executable, context);
  }

  CpuContext context;
};

} // namespace

Result<std::unique_ptr<Device>>
createCpuDevice(const CpuDeviceOptions &options) try {
  // Kernels may hold tiles; asked for before there are threads that do.
  mayUseTiles();
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
