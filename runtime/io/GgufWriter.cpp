//===- GgufWriter.cpp - Writing GGUF files --------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/GgufWriter.h"

#include "runtime/io/Quote.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

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
  std::unique_ptr<GgufWriter> writer(new GgufWriter);
  writer->name = path;
  KF_RETURN_IF_ERROR(writer->open(replace));
  KF_RETURN_IF_ERROR(writer->start(metadata, tensors));
  return writer;
}

Status GgufWriter::failed(int reason) const {
  return Status::error("cannot write '" + name + "': " + std::strerror(reason));
}

Status GgufWriter::open(bool replace) {
  mayReplace = replace;
  // A symbolic link stays, and what it leads to is replaced.
  std::error_code code;
  target = std::filesystem::weakly_canonical(name, code).string();
  if (code)
    return Status::error("cannot write '" + name + "': " + code.message());
  struct stat info;
  if (::stat(target.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode))
      return Status::error("cannot write '" + name +
                           "': it is not a regular file");
    if (!replace)
      return Status::error("'" + name + "' exists already");
  }
  for (int attempt = 0; descriptor < 0; ++attempt) {
    temporary = target + "." + std::to_string(::getpid()) + "-" +
                std::to_string(attempt) + ".tmp";
    descriptor = ::open(temporary.c_str(),
                        O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0)
      break;
    const int reason = errno;
    temporary.clear();
    if (reason != EEXIST || attempt == 100)
      return failed(reason);
  }
  return Status();
}

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
  // Asking for all of it now finds a full disk before the work is done. Not
  // every file system can.
  if (::fallocate(descriptor, 0, 0, static_cast<off_t>(totalBytes)) != 0 &&
      (errno == ENOSPC || errno == EFBIG || errno == EDQUOT))
    return failed(errno);
  return put(head);
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

Status GgufWriter::put(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return failed(errno);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return Status();
}

Status GgufWriter::append(std::span<const std::byte> bytes) {
  // Tensors without elements have no bytes to wait for.
  while (current < sizes.size() && sizes[current] == 0)
    ++current;
  if (bytes.empty())
    return Status();
  if (current == sizes.size() || bytes.size() > sizes[current] - written)
    return Status::error("cannot write '" + name +
                         "': a tensor has more bytes than its shape");
  KF_RETURN_IF_ERROR(
      put({reinterpret_cast<const char *>(bytes.data()), bytes.size()}));
  written += bytes.size();
  if (written < sizes[current])
    return Status();
  const std::string zeros(paddingOf(sizes[current]), '\0');
  ++current;
  written = 0;
  return put(zeros);
}

Status GgufWriter::finish() {
  KF_RETURN_IF_ERROR(append({}));
  if (current < sizes.size())
    return Status::error("cannot write '" + name +
                         "': tensors lack some of their bytes");
  if (::fsync(descriptor) != 0)
    return failed(errno);
  const int closed = ::close(descriptor);
  descriptor = -1;
  if (closed != 0)
    return failed(errno);
  int renamed = -1;
  if (!mayReplace) {
    renamed = ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(),
                          RENAME_NOREPLACE);
    if (renamed != 0 && errno == EEXIST)
      return Status::error("'" + name + "' exists already");
  }
  // Not every file system can tell whether it replaces.
  if (renamed != 0 && ::rename(temporary.c_str(), target.c_str()) != 0)
    return failed(errno);
  temporary.clear();
  return Status();
}

GgufWriter::~GgufWriter() {
  if (descriptor >= 0)
    ::close(descriptor);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}
