//===- PipelineCacheFile.cpp - Compiled pipelines on disk -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/PipelineCacheFile.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/PrivateFolder.h"
#include "runtime/core/WriteFile.h"
#include "runtime/program/ExecutableCache.h"

#include <algorithm>
#include <cstring>
#include <optional>

using namespace kf;

namespace {

/// A file is this, the hash of the data, a line break, and the data.
constexpr std::string_view head = "KernelForge pipelines ";
constexpr size_t hashDigits = 32;

std::string headOf(std::string_view data) {
  return std::string(head) + hashKey({data}) + "\n";
}

} // namespace

PipelineCacheFile::PipelineCacheFile(std::string folder,
                                     const VkPhysicalDeviceProperties &device,
                                     Warning warn)
    : folder(std::move(folder)), device(device), warn(std::move(warn)) {
  auto bytesOf = [](const auto &value) {
    return std::string_view(reinterpret_cast<const char *>(&value),
                            sizeof(value));
  };
  name = hashKey({bytesOf(device.vendorID), bytesOf(device.deviceID),
                  bytesOf(device.driverVersion),
                  bytesOf(device.pipelineCacheUUID)}) +
         ".kfpipelines";
}

void PipelineCacheFile::warning(const Status &status) const {
  if (warn && !status.ok())
    warn(status.message());
}

/// Whether `data` begin as the device's own do.
Status PipelineCacheFile::checkData(std::string_view data) const {
  VkPipelineCacheHeaderVersionOne header;
  if (data.size() < sizeof(header))
    return Status::error("its data end within their header");
  std::memcpy(&header, data.data(), sizeof(header));
  if (header.headerSize != sizeof(header) ||
      header.headerVersion != VK_PIPELINE_CACHE_HEADER_VERSION_ONE)
    return Status::error("its data have an unknown header");
  if (header.vendorID != device.vendorID ||
      header.deviceID != device.deviceID ||
      !std::ranges::equal(header.pipelineCacheUUID, device.pipelineCacheUUID))
    return Status::error("its data are another device's");
  return {};
}

Result<std::string> PipelineCacheFile::read() const {
  const std::string where = "the pipeline cache " + path();
  KF_ASSIGN_OR_RETURN(std::optional<PrivateFolder> opened,
                      PrivateFolder::open(folder));
  if (!opened)
    return std::string();
  KF_RETURN_IF_ERROR(opened->checkPrivate());
  using State = PrivateFolder::Reading::State;
  PrivateFolder::Reading reading = opened->read(name, maxBytes);
  if (reading.state == State::Missing)
    return std::string();
  if (reading.state == State::Failed)
    return Status::error("cannot read " + where + ": " + reading.why);
  Status usable =
      reading.state == State::Refused ? Status::error(reading.why) : Status();
  std::string_view data(reading.bytes);
  data.remove_prefix(std::min(data.size(), head.size() + hashDigits + 1));
  if (usable && reading.bytes != headOf(data) + std::string(data))
    usable = Status::error("it is damaged");
  if (usable)
    usable = checkData(data);
  if (usable)
    return std::string(data);
  Status removed = opened->remove(name);
  return Status::error((removed ? "removed " : "cannot remove ") + where +
                       ": " + usable.message());
}

std::string PipelineCacheFile::load() const {
  if (folder.empty())
    return "";
  Result<std::string> data = catchExceptions([&] { return read(); });
  warning(data.status());
  return data ? data.take() : std::string();
}

Status PipelineCacheFile::write(std::string_view data) const {
  KF_ASSIGN_OR_RETURN(PrivateFolder opened, PrivateFolder::make(folder));
  KF_RETURN_IF_ERROR(opened.checkPrivate());
  // What is replaced hands on its owner and its mode.
  if (opened.read(name, maxBytes).state ==
      PrivateFolder::Reading::State::Refused)
    KF_RETURN_IF_ERROR(opened.remove(name).in(path()));
  KF_ASSIGN_OR_RETURN(AtomicFile file,
                      AtomicFile::create(path(), {.mode = 0600}));
  KF_RETURN_IF_ERROR(file.append(headOf(data)));
  KF_RETURN_IF_ERROR(file.append(data));
  return file.finish();
}

void PipelineCacheFile::store(std::string_view data) const {
  // The file's head comes on top.
  if (folder.empty() || data.size() > maxBytes - 1024)
    return;
  Status status = catchExceptions([&] { return write(data); });
  warning(status.in("could not keep the compiled pipelines"));
}
