//===- ListDevices.cpp - kf-run devices -----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "OptionParser.h"
#include "Report.h"

#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/devices/Cuda/CudaDevice.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "runtime/devices/Vulkan/VulkanDevice.h"

using namespace kf;

static std::string line(const std::string &name, const std::string &text) {
  return name + std::string(12 - name.size(), ' ') + text + "\n";
}

int kf::runDevices(Arguments arguments) {
  OptionParser parser("devices", "Lists the devices of this machine, and why "
                                 "others cannot be had.");
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  std::string out = line("reference", createReferenceDevice()->description());
  Result<std::unique_ptr<Device>> cpu = createCpuDevice({});
  out += line("cpu", cpu.ok() ? (*cpu)->description()
                              : "unavailable: " + cpu.message());
  Result<std::vector<std::string>> cuda = listCudaDevices();
  if (!cuda.ok())
    out += line("cuda", "unavailable: " + oneLine(cuda.message()));
  else
    for (const std::string &device : *cuda)
      out += line("cuda", device);
  Result<std::vector<VulkanDeviceInfo>> vulkan = listVulkanDevices();
  if (!vulkan.ok())
    out += line("vulkan", "unavailable: " + oneLine(vulkan.message()));
  else if (vulkan->empty())
    out += line("vulkan", "unavailable: there is no such device");
  else
    for (const VulkanDeviceInfo &device : *vulkan)
      out += line("vulkan", device.description);
  return report(writeStdout(out));
}
