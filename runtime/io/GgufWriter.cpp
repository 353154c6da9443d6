//===- GgufWriter.cpp - Writing GGUF files --------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/GgufWriter.h"

#include "runtime/core/Quote.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

using namespace kf;

static_assert(std::endian::native == std::endian::little,
              "numbers are written as they lie in memory");

namespace {

template <typename T> void putNumber(std::string &out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

uint64_t paddingOf(uint64_t size) {
  return (kGgufDefaultAlignment - size % kGgufDefaultAlignment) %
         kGgufDefaultAlignment;
}

} // namespace

//===----------------------------------------------------------------------===//
// Metadata
//===----------------------------------------------------------------------===//

bool GgufMetadata::begin(std::string_view key, GgufValueType type) {
  if (!keys.emplace(key).second)
    return false;
  putText(key);
  putNumber(encoded, static_cast<uint32_t>(type));
  return true;
}

void GgufMetadata::beginArray(GgufValueType type, uint64_t count) {
  putNumber(encoded, static_cast<uint32_t>(type));
  putNumber(encoded, count);
}

void GgufMetadata::putText(std::string_view text) {
  putNumber<uint64_t>(encoded, text.size());
  encoded += text;
}

void GgufMetadata::addU32(std::string_view key, uint32_t value) {
  if (begin(key, GgufValueType::U32))
    putNumber(encoded, value);
}

void GgufMetadata::addI32(std::string_view key, int32_t value) {
  if (begin(key, GgufValueType::I32))
    putNumber(encoded, value);
}

void GgufMetadata::addF32(std::string_view key, float value) {
  if (begin(key, GgufValueType::F32))
    putNumber(encoded, value);
}

void GgufMetadata::addBool(std::string_view key, bool value) {
  if (begin(key, GgufValueType::Bool))
    putNumber<uint8_t>(encoded, value);
}

void GgufMetadata::addText(std::string_view key, std::string_view value) {
  if (begin(key, GgufValueType::String))
    putText(value);
}

void GgufMetadata::addTexts(std::string_view key,
                            std::span<const std::string> values) {
  if (!begin(key, GgufValueType::Array))
    return;
  beginArray(GgufValueType::String, values.size());
  for (const std::string &value : values)
    putText(value);
}

void GgufMetadata::addBools(std::string_view key,
                            const std::vector<bool> &values) {
  if (!begin(key, GgufValueType::Array))
    return;
  beginArray(GgufValueType::Bool, values.size());
  for (bool value : values)
    putNumber<uint8_t>(encoded, value);
}

void GgufMetadata::addI32s(std::string_view key,
                           std::span<const int32_t> values) {
  if (!begin(key, GgufValueType::Array))
    return;
  beginArray(GgufValueType::I32, values.size());
  for (int32_t value : values)
    putNumber(encoded, value);
}

void GgufMetadata::addF32s(std::string_view key,
                           std::span<const float> values) {
  if (!begin(key, GgufValueType::Array))
    return;
  beginArray(GgufValueType::F32, values.size());
  for (float value : values)
    putNumber(encoded, value);
}

void GgufMetadata::addCopy(const GgufEntry &entry) {
  const GgufValue &value = entry.value;
  if (!begin(entry.key, value.type()))
    return;
  if (value.type() == GgufValueType::Array)
    beginArray(value.elementType(), value.size());
  if (value.type() == GgufValueType::String)
    putText(value.bytes());
  else
    encoded += value.bytes();
}

//===----------------------------------------------------------------------===//
// Header
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<GgufWriter>>
GgufWriter::create(const std::string &path, const GgufMetadata &metadata,
                   std::span<const GgufTensorInfo> tensors, bool replace) {
  KF_ASSIGN_OR_RETURN(AtomicFile file,
                      AtomicFile::create(path, {.replace = replace}));
  std::unique_ptr<GgufWriter> writer(new GgufWriter(path, std::move(file)));
  KF_RETURN_IF_ERROR(writer->start(metadata, tensors));
  return writer;
}

GgufWriter::GgufWriter(std::string path, AtomicFile file)
    : name(std::move(path)), file(std::move(file)) {}

Status GgufWriter::start(const GgufMetadata &metadata,
                         std::span<const GgufTensorInfo> tensors) {
  std::string head(kGgufMagic);
  putNumber(head, kGgufVersion);
  putNumber<uint64_t>(head, tensors.size());
  putNumber<uint64_t>(head, metadata.size());
  head += metadata.bytes();
  uint64_t offset = 0;
  std::set<std::string_view> names;
  for (const GgufTensorInfo &tensor : tensors) {
    const GgmlType *type = findGgmlType(tensor.type);
    Result<int64_t> size = checkedByteCount(tensor.type, tensor.shape);
    if (!size.ok())
      return size.status().in("tensor " + inQuotes(tensor.name));
    if (!type || tensor.shape.empty() || tensor.shape.size() > kGgufMaxRank)
      return Status::error("tensor " + inQuotes(tensor.name) +
                           " has a type or rank that GGUF lacks");
    if (!names.insert(tensor.name).second)
      return Status::error("tensor " + inQuotes(tensor.name) +
                           " is there twice");
    putNumber<uint64_t>(head, tensor.name.size());
    head += tensor.name;
    putNumber(head, static_cast<uint32_t>(tensor.shape.size()));
    for (size_t i = tensor.shape.size(); i-- > 0;)
      putNumber<uint64_t>(head, static_cast<uint64_t>(tensor.shape[i]));
    putNumber(head, type->number);
    putNumber(head, offset);
    const uint64_t bytes = static_cast<uint64_t>(*size);
    sizes.push_back(bytes);
    const uint64_t padded = bytes + paddingOf(bytes);
    constexpr uint64_t most = uint64_t(1) << 62;
    if (padded > most - std::min(offset, most))
      return Status::error("the tensors have more bytes than a file can");
    offset += padded;
  }
  head.append(paddingOf(head.size()), '\0');
  totalBytes = head.size() + offset;
  // Asking for all of it now finds a full disk before the work is done.
  KF_RETURN_IF_ERROR(file.reserve(totalBytes));
  return file.append(head);
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

Status GgufWriter::append(std::span<const std::byte> bytes) {
  // Tensors without elements have no bytes to wait for.
  while (current < sizes.size() && sizes[current] == 0)
    ++current;
  if (bytes.empty())
    return Status();
  if (current == sizes.size() || bytes.size() > sizes[current] - written)
    return Status::error("cannot write '" + name +
                         "': a tensor has more bytes than its shape");
  KF_RETURN_IF_ERROR(file.append(
      {reinterpret_cast<const char *>(bytes.data()), bytes.size()}));
  written += bytes.size();
  if (written < sizes[current])
    return Status();
  const std::string zeros(paddingOf(sizes[current]), '\0');
  ++current;
  written = 0;
  return file.append(zeros);
}

Status GgufWriter::finish() {
  KF_RETURN_IF_ERROR(append({}));
  if (current < sizes.size())
    return Status::error("cannot write '" + name +
                         "': tensors lack some of their bytes");
  return file.finish();
}
