//===- ListDevices.cpp - kf-run devices -----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Interrupt.h"
#include "JsonDocument.h"
#include "MeasuredCeilings.h"
#include "OptionParser.h"
#include "Progress.h"
#include "Report.h"
#include "TerminalObserver.h"
#include "TextTable.h"

#include "kf/Driver/MeasuredCosts.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/core/UsableThreads.h"
#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/devices/Cuda/CudaDevice.h"
#include "runtime/devices/OpenDevice.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "runtime/devices/Vulkan/VulkanDevice.h"

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace kf;
using nlohmann::ordered_json;

namespace {

struct ListedDevice {
  std::string kind;
  std::string name; ///< for --device; empty where it cannot be had
  std::string text; ///< its description, or why it cannot be had
  /// "measured on NVIDIA H200" or "estimated": those by which schedules are
  /// chosen; empty: none are.
  std::string costs = {};
  std::vector<MachineRates> rates = {};
};

/// Of code for `target`; empty: nothing is chosen for it.
std::string costsFor(const std::string &target) {
  if (target.empty())
    return "";
  const Result<std::string> machine = measuredMachineOf(target);
  if (!machine.ok()) // there is no code for it, as commands say that run some
    return "";
  return machine->empty() ? "estimated" : "measured on " + *machine;
}

std::vector<ListedDevice> listDevices() {
  std::vector<ListedDevice> devices;
  auto add = [&](const std::string &kind, const std::string &name,
                 const std::string &text, const std::string &target = "") {
    devices.push_back({kind, name, text, costsFor(target)});
  };
  auto addMissing = [&](const std::string &kind, const std::string &why) {
    devices.push_back({kind, "", oneLine(why)});
  };
  // What it has is told by the open device.
  auto addVulkan = [&](size_t i, const VulkanDeviceInfo &info) {
    VulkanDeviceOptions options;
    options.device = std::to_string(i);
    Result<std::unique_ptr<Device>> device = createVulkanDevice(options);
    if (device.ok())
      add("vulkan", "vulkan:" + options.device, (*device)->description(),
          "vulkan");
    else
      addMissing("vulkan", info.description + ": " + device.message());
  };
  add("reference", "reference", createReferenceDevice()->description());
  Result<std::unique_ptr<Device>> cpu = createCpuDevice({});
  if (cpu.ok())
    add("cpu", "cpu", (*cpu)->description(), (*cpu)->target());
  else
    addMissing("cpu", cpu.message());
  Result<std::vector<CudaDeviceInfo>> cuda = listCudaDevices();
  if (!cuda.ok())
    addMissing("cuda", cuda.message());
  else
    for (size_t i = 0; i < cuda->size(); ++i)
      add("cuda", "cuda:" + std::to_string(i), (*cuda)[i].description,
          (*cuda)[i].target);
  Result<std::vector<VulkanDeviceInfo>> vulkan = listVulkanDevices();
  if (!vulkan.ok())
    addMissing("vulkan", vulkan.message());
  else if (vulkan->empty())
    addMissing("vulkan", "there is no such device");
  else
    for (size_t i = 0; i < vulkan->size(); ++i)
      addVulkan(i, (*vulkan)[i]);
  return devices;
}

/// Leaves those that `name` stands for: a kind, or one of it.
Status selectDevices(std::vector<ListedDevice> &devices,
                     const std::string &name) {
  auto isMeant = [&](const ListedDevice &device) {
    return name == device.kind ||
           (!device.name.empty() &&
            (name == device.name || name == device.name + ":0"));
  };
  std::string names;
  for (const ListedDevice &device : devices)
    names += (names.empty() ? "" : ", ") +
             (device.name.empty() ? device.kind : device.name);
  std::erase_if(devices,
                [&](const ListedDevice &device) { return !isMeant(device); });
  return devices.empty()
             ? Status::error("there is no device " + inQuotes(name) +
                             "; there are " + names)
             : Status();
}

bool isMeasured(const ListedDevice &device) {
  return !device.name.empty() && device.kind != "reference";
}

/// Measures what can be had but the reference, which no rate of a machine
/// bounds. A device that fails is a warning. Error: an interrupt.
Status measure(std::vector<ListedDevice> &devices,
               const std::vector<int64_t> &threads) {
  CeilingOptions options;
  options.seconds = 0.25;
  options.cancelled = &interruptFlag();
  for (ListedDevice &device : devices) {
    if (!isMeasured(device))
      continue;
    const Progress progress("measuring " + device.name);
    const bool hasThreads = device.kind == "cpu";
    for (int64_t count : hasThreads ? threads : std::vector<int64_t>{0}) {
      const Result<MachineRates> rates =
          catchExceptions([&]() -> Result<MachineRates> {
            DeviceChoice which;
            which.device = device.name;
            which.threads = count;
            KF_ASSIGN_OR_RETURN(std::unique_ptr<Device> opened,
                                openDevice(which, &terminal()));
            return measureCeilings(*opened, options);
          });
      if (rates.status().isCancelled())
        return rates.status();
      if (rates.ok())
        device.rates.push_back(*rates);
      else
        printWarning(device.name + " was not measured: " + rates.message());
    }
  }
  return Status();
}

std::string textOf(const std::vector<ListedDevice> &devices) {
  std::string out;
  for (const ListedDevice &device : devices)
    out += device.kind + std::string(12 - device.kind.size(), ' ') +
           (device.name.empty() ? "unavailable: " : "") + device.text +
           (device.costs.empty() ? "" : " (costs: " + device.costs + ")") +
           "\n";
  return out;
}

std::string ratesOf(const std::vector<ListedDevice> &devices) {
  TextTable table(/*right=*/true);
  table.add({"device", "threads", "memory", "f32", "int8", "bf16"});
  bool copies = false;
  for (const ListedDevice &device : devices)
    for (const MachineRates &rates : device.rates) {
      copies |= rates.threads == 0;
      table.add(
          {device.name, rates.threads ? std::to_string(rates.threads) : "-",
           rateText(rates.readBytesPerSecond, "B/s"),
           rateText(rates.f32FlopsPerSecond, "FLOP/s"),
           rateText(std::max(rates.i8OpsPerSecond, rates.i8TileOpsPerSecond),
                    "OP/s"),
           rateText(rates.bf16FlopsPerSecond, "FLOP/s")});
    }
  std::string out =
      "\nThe most that was reached: bytes read from memory, and multiply-adds "
      "(two\noperations each) in registers.\n" +
      table.text();
  if (copies)
    out += "Without threads: what copies within the device's memory read and "
           "write, or a kernel\nthat copies, whichever is faster.\n";
  return out;
}

std::string jsonOf(const std::vector<ListedDevice> &devices) {
  auto known = [](double rate) {
    return rate > 0 ? ordered_json(rate) : ordered_json(nullptr);
  };
  ordered_json list = ordered_json::array();
  for (const ListedDevice &device : devices) {
    ordered_json entry = {{"kind", device.kind}};
    entry["device"] =
        device.name.empty() ? ordered_json(nullptr) : ordered_json(device.name);
    entry[device.name.empty() ? "unavailable" : "description"] = device.text;
    if (!device.costs.empty())
      entry["costs"] = device.costs;
    if (!device.rates.empty())
      entry["rates"] = ordered_json::array();
    for (const MachineRates &rates : device.rates)
      entry["rates"].push_back(
          {{"threads", rates.threads},
           {"memory_bytes_per_second", known(rates.readBytesPerSecond)},
           {"f32_flops_per_second", known(rates.f32FlopsPerSecond)},
           {"int8_ops_per_second", known(rates.i8OpsPerSecond)},
           {"int8_tile_ops_per_second", known(rates.i8TileOpsPerSecond)},
           {"bf16_flops_per_second", known(rates.bf16FlopsPerSecond)}});
    list.push_back(std::move(entry));
  }
  return documentText(list) + "\n";
}

} // namespace

int kf::runDevices(Arguments arguments) {
  bool measures = false;
  std::string name;
  std::vector<int64_t> threads;
  std::string json;
  OptionParser parser(
      "devices [options]",
      "Lists the devices of this machine, and why others cannot be had; with "
      "--measure, what they can do at most.");
  parser.flag({"measure"}, measures,
              "measures how fast each reads memory and multiplies, which "
              "takes some seconds");
  parser.text({"device", 0, "NAME[:N]"}, name,
              "this device alone, or all of a kind: cpu, reference, cuda or "
              "vulkan, or one of several, as in vulkan:1");
  parser.integers(
      {"threads", 't', "N,..."}, threads, 0, ThreadPool::maxThreads,
      "threads to measure the CPU with, 0 for all; 1 and all by default");
  parser.json(json, "each device with what was measured of it");
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  if (!threads.empty() && !measures)
    return parser.usageError("--threads needs --measure");
  if (threads.empty()) {
    threads = {1};
    if (const int all = std::min(usableThreads(), ThreadPool::maxThreads);
        all > 1)
      threads.push_back(all);
  }
  std::vector<ListedDevice> devices = listDevices();
  if (!name.empty())
    if (Status status = selectDevices(devices, name); !status.ok())
      return parser.usageError("--device: " + status.message());
  // For those who wait for the rest.
  if (json.empty())
    if (Status status = writeStdout(textOf(devices)); !status.ok())
      return report(status);
  if (measures && std::ranges::none_of(devices, isMeasured))
    return report(Status::error(
        "--measure: there is nothing to measure; the reference and devices "
        "that are unavailable have no rates"));
  if (measures) {
    catchFirstInterrupt();
    if (Status status = measure(devices, threads); status.isCancelled())
      return reportInterrupt("not all devices were measured");
  }
  if (!json.empty())
    return report(writeOutput(json, jsonOf(devices)));
  return measures ? report(writeStdout(ratesOf(devices))) : ExitSuccess;
}
