//===- SafetensorsWriter.cpp - Writing safetensors files ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/SafetensorsWriter.h"

#include "runtime/core/JsonText.h"
#include "runtime/core/Quote.h"

#include <set>

using namespace kf;

namespace {

constexpr std::string_view kMetadata = "__metadata__";
/// What the header's length is a multiple of, so that elements of tensors lie
/// where processors like them.
constexpr size_t kAlignment = 8;

/// `"name":value`, behind what `object` has so far.
void addMember(std::string &object, std::string_view name,
               const std::string &value) {
  object += object.size() > 1 ? "," : "";
  object += jsonText(name) + ":" + value;
}

/// The header's length, as the file begins.
std::string lengthBytes(uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += static_cast<char>(length >> (8 * i) & 0xff);
  return bytes;
}

} // namespace

std::string_view kf::safetensorsType(DataType type) {
  switch (type) {
  case DataType::F32:
    return "F32";
  case DataType::F16:
    return "F16";
  case DataType::BF16:
    return "BF16";
  case DataType::F8E4M3:
    return "F8_E4M3";
  case DataType::I8:
    return "I8";
  case DataType::U8:
    return "U8";
  default:
    return {};
  }
}

Result<std::unique_ptr<SafetensorsWriter>>
SafetensorsWriter::create(const std::string &path,
                          std::span<const SafetensorsInfo> tensors,
                          const Options &options) {
  KF_ASSIGN_OR_RETURN(AtomicFile file,
                      AtomicFile::create(path, {.replace = options.replace}));
  std::unique_ptr<SafetensorsWriter> writer(
      new SafetensorsWriter(path, std::move(file)));
  KF_RETURN_IF_ERROR(writer->start(tensors, options));
  return writer;
}

Status SafetensorsWriter::start(std::span<const SafetensorsInfo> tensors,
                                const Options &options) {
  std::string header = "{";
  if (!options.metadata.empty()) {
    std::string notes = "{";
    for (const auto &[key, value] : options.metadata)
      addMember(notes, key, jsonText(value));
    addMember(header, kMetadata, notes + "}");
  }
  constexpr uint64_t most = uint64_t(1) << 62;
  std::set<std::string_view> names = {kMetadata};
  for (const SafetensorsInfo &tensor : tensors) {
    const std::string_view type = safetensorsType(tensor.type);
    if (type.empty())
      return Status::error("tensor " + inQuotes(tensor.name) + " has type " +
                           std::string(kf::nameOf(tensor.type)) +
                           ", which is not written to safetensors files");
    if (!names.insert(tensor.name).second)
      return Status::error("tensor " + inQuotes(tensor.name) +
                           " is there twice");
    const Result<int64_t> size = checkedByteCount(tensor.type, tensor.shape);
    if (!size.ok())
      return size.status().in("tensor " + inQuotes(tensor.name));
    const auto bytes = static_cast<uint64_t>(*size);
    if (bytes > most - left)
      return Status::error("the tensors have more bytes than a file can");
    const uint64_t place[] = {left, left + bytes};
    addMember(header, tensor.name,
              jsonObject({{"dtype", jsonText(type)},
                          {"shape", jsonArray(tensor.shape)},
                          {"data_offsets", jsonArray(std::span(place))}}));
    left += bytes;
  }
  header += "}";
  header.append((kAlignment - header.size() % kAlignment) % kAlignment, ' ');
  // Asking for all of it now finds a full disk before the work is done.
  KF_RETURN_IF_ERROR(file.reserve(sizeof(uint64_t) + header.size() + left));
  return file.append(lengthBytes(header.size()) + header);
}

Status SafetensorsWriter::append(std::span<const std::byte> bytes) {
  if (bytes.size() > left)
    return Status::error("cannot write '" + name +
                         "': a tensor has more bytes than its shape");
  left -= bytes.size();
  return file.append(
      {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
}

Status SafetensorsWriter::finish() {
  if (left > 0)
    return Status::error("cannot write '" + name +
                         "': tensors lack some of their bytes");
  return file.finish();
}

Status kf::writeSafetensors(const std::string &path,
                            const std::map<std::string, HostTensor> &tensors,
                            const SafetensorsWriter::Options &options) {
  std::vector<SafetensorsInfo> infos;
  for (const auto &[name, tensor] : tensors)
    infos.push_back({name, tensor.shape, tensor.type});
  KF_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsWriter> writer,
                      SafetensorsWriter::create(path, infos, options));
  for (const auto &[name, tensor] : tensors)
    KF_RETURN_IF_ERROR(writer->append(tensor.bytes));
  return writer->finish();
}
