//===- Safetensors.cpp - Checkpoints in the safetensors format ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Safetensors.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/Quote.h"
#include "runtime/io/PackedWeights.h"
#include "runtime/io/ScaledWeights.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

using namespace kf;
using nlohmann::json;

namespace {

/// An element type that the format defines.
struct ElementType {
  std::string_view name;
  unsigned bits;
  std::optional<DataType> type; ///< what the runtime reads it as
};

constexpr ElementType kElementTypes[] = {
    {"F32", 32, DataType::F32},   {"F16", 16, DataType::F16},
    {"BF16", 16, DataType::BF16}, {"F64", 64, std::nullopt},
    {"I64", 64, std::nullopt},    {"I32", 32, std::nullopt},
    {"I16", 16, std::nullopt},    {"I8", 8, DataType::I8},
    {"U64", 64, std::nullopt},    {"U32", 32, std::nullopt},
    {"U16", 16, std::nullopt},    {"U8", 8, DataType::U8},
    {"BOOL", 8, std::nullopt},    {"F8_E4M3", 8, DataType::F8E4M3},
    {"F8_E5M2", 8, std::nullopt}, {"F8_E8M0", 8, std::nullopt},
    {"C64", 64, std::nullopt},    {"F4", 4, std::nullopt},
    {"F6_E2M3", 6, std::nullopt}, {"F6_E3M2", 6, std::nullopt},
};

const ElementType *findElementType(std::string_view name) {
  for (const ElementType &type : kElementTypes)
    if (type.name == name)
      return &type;
  return nullptr;
}

/// The format's own limit on the header.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

/// Reads a JSON integer that is at least 0 and fits in int64_t.
bool readIndex(const json &value, int64_t &out) {
  if (!value.is_number_unsigned())
    return false;
  uint64_t number = value.get<uint64_t>();
  if (number > static_cast<uint64_t>(INT64_MAX))
    return false;
  out = static_cast<int64_t>(number);
  return true;
}

/// Bytes of a tensor; nothing on overflow or a fraction of a byte.
std::optional<uint64_t> byteCount(std::span<const int64_t> shape,
                                  unsigned bits) {
  Result<int64_t> count = checkedElementCount(shape, bits);
  if (!count.ok())
    return std::nullopt;
  uint64_t total = static_cast<uint64_t>(*count) * bits;
  if (total % 8 != 0)
    return std::nullopt;
  return total / 8;
}

} // namespace

//===----------------------------------------------------------------------===//
// One file
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<Safetensors>>
Safetensors::open(const std::string &path) try {
  KF_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::open(path));
  std::unique_ptr<Safetensors> result(new Safetensors());
  result->source = path;
  result->file = std::move(mapped);
  KF_RETURN_IF_ERROR(result->parse(result->file->bytes()).in(path));
  return result;
} catch (...) {
  return statusOfException();
}

Result<std::unique_ptr<Safetensors>>
Safetensors::fromMemory(std::span<const std::byte> bytes,
                        const std::string &name) try {
  std::unique_ptr<Safetensors> result(new Safetensors());
  result->source = name;
  KF_RETURN_IF_ERROR(result->parse(bytes).in(name));
  return result;
} catch (...) {
  return statusOfException();
}

Status Safetensors::parse(std::span<const std::byte> bytes) {
  if (bytes.size() < 8)
    return Status::error(
        "not a safetensors file: " + std::to_string(bytes.size()) +
        " bytes, shorter than the header's length");
  uint64_t length = 0;
  for (int i = 0; i < 8; ++i)
    length |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  if (length > kMaxHeaderBytes)
    return Status::error("not a safetensors file: a header of " +
                         std::to_string(length) + " bytes");
  if (length > bytes.size() - 8)
    return Status::error("truncated: the header takes " +
                         std::to_string(length) + " bytes, the file has " +
                         std::to_string(bytes.size() - 8) + " left");
  std::string_view header(reinterpret_cast<const char *>(bytes.data()) + 8,
                          length);
  data = bytes.subspan(8 + length);
  if (header.empty() || header.front() != '{')
    return Status::error("not a safetensors file: its header does not start "
                         "with '{'");
  KF_RETURN_IF_ERROR(parseHeader(header));
  return checkCoverage();
}

Status Safetensors::parseHeader(std::string_view header) {
  Result<JsonDocument> parsed = parseJson(header);
  if (!parsed.ok())
    return parsed.status().in("header");
  // Without parse errors, text that starts with '{' is an object.
  for (const auto &[name, value] : (*parsed)->items()) {
    if (name == "__metadata__") {
      if (!value.is_object())
        return Status::error("header: __metadata__ is not an object");
      for (const auto &[key, note] : value.items()) {
        if (!note.is_string())
          return Status::error("header: __metadata__ entry " + inQuotes(key) +
                               " is not a string");
        notes.emplace(key, note.get<std::string>());
      }
      continue;
    }

    Status malformed = Status::error(
        "header: tensor " + inQuotes(name) +
        " is not {dtype: string, shape: [sizes], data_offsets: [begin, end]}");
    if (!value.is_object() || value.size() != 3)
      return malformed;
    auto dtype = value.find("dtype"), shape = value.find("shape"),
         offsets = value.find("data_offsets");
    if (dtype == value.end() || shape == value.end() ||
        offsets == value.end() || !dtype->is_string() || !shape->is_array() ||
        !offsets->is_array() || offsets->size() != 2)
      return malformed;

    Entry entry;
    entry.dtype = dtype->get<std::string>();
    for (const json &dim : *shape)
      if (!readIndex(dim, entry.shape.emplace_back()))
        return malformed;
    int64_t begin, end;
    if (!readIndex((*offsets)[0], begin) || !readIndex((*offsets)[1], end))
      return malformed;
    entry.begin = static_cast<uint64_t>(begin);
    entry.end = static_cast<uint64_t>(end);

    const ElementType *type = findElementType(entry.dtype);
    if (!type)
      return Status::error("tensor " + inQuotes(name) +
                           " has an unknown element type " +
                           inQuotes(entry.dtype));
    if (entry.begin > entry.end)
      return Status::error("tensor " + inQuotes(name) + " ends at offset " +
                           std::to_string(entry.end) + ", before its start " +
                           std::to_string(entry.begin));
    if (entry.end > data.size())
      return Status::error("truncated: tensor " + inQuotes(name) +
                           " ends at offset " + std::to_string(entry.end) +
                           ", the file's data at " +
                           std::to_string(data.size()));
    std::optional<uint64_t> bytes = byteCount(entry.shape, type->bits);
    if (!bytes || *bytes != entry.end - entry.begin)
      return Status::error("tensor " + inQuotes(name) + ": its shape and " +
                           entry.dtype + " do not make the " +
                           std::to_string(entry.end - entry.begin) +
                           " bytes that its offsets span");
    tensors.emplace(name, std::move(entry));
  }
  return Status();
}

/// The format wants the tensors to tile the data: no overlap, no hole.
Status Safetensors::checkCoverage() const {
  std::vector<std::pair<const std::string *, const Entry *>> order;
  order.reserve(tensors.size());
  for (const auto &[name, entry] : tensors)
    order.emplace_back(&name, &entry);
  std::sort(order.begin(), order.end(), [](const auto &a, const auto &b) {
    return std::pair(a.second->begin, a.second->end) <
           std::pair(b.second->begin, b.second->end);
  });
  uint64_t next = 0;
  for (const auto &[name, entry] : order) {
    if (entry->begin != next)
      return Status::error("tensor " + inQuotes(*name) + " starts at offset " +
                           std::to_string(entry->begin) +
                           (entry->begin < next
                                ? ", inside the tensor before it, which ends "
                                : ", after a hole that starts ") +
                           "at " + std::to_string(next));
    next = entry->end;
  }
  if (next != data.size())
    return Status::error("the file has " + std::to_string(data.size() - next) +
                         " bytes after its last tensor");
  return Status();
}

Result<TensorView> Safetensors::find(const std::string &name) const try {
  auto it = tensors.find(name);
  if (it == tensors.end())
    return Status::error(source + ": no tensor " + inQuotes(name),
                         StatusCode::NotFound);
  const Entry &entry = it->second;
  const ElementType *type = findElementType(entry.dtype);
  if (!type->type)
    return Status::error(source + ": tensor " + inQuotes(name) + " has type " +
                         entry.dtype +
                         "; supported element types are F32, F16, BF16, "
                         "F8_E4M3, I8 and U8");
  TensorView view;
  view.type = *type->type;
  view.shape = entry.shape;
  view.data = data.data() + entry.begin;
  view.bytes = entry.end - entry.begin;
  return view;
} catch (...) {
  return statusOfException();
}

void Safetensors::release(const std::string &name) const {
  auto it = tensors.find(name);
  if (file && it != tensors.end())
    file->release(
        data.subspan(it->second.begin, it->second.end - it->second.begin));
}

void Safetensors::releasePart(const std::string &name, uint64_t first,
                              uint64_t bytes) const {
  auto it = tensors.find(name);
  if (!file || it == tensors.end())
    return;
  const uint64_t all = it->second.end - it->second.begin;
  if (first <= all && bytes <= all - first)
    file->release(data.subspan(it->second.begin + first, bytes));
}

std::vector<FileIdentity> Safetensors::mappedFiles() const {
  if (!file)
    return {};
  return {file->identity()};
}

std::vector<std::string> Safetensors::names() const {
  std::vector<std::string> result;
  result.reserve(tensors.size());
  for (const auto &[name, entry] : tensors)
    result.push_back(name);
  return result;
}

//===----------------------------------------------------------------------===//
// Several files
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<ShardedSafetensors>>
ShardedSafetensors::open(const std::string &indexPath) try {
  KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(indexPath));
  Result<JsonDocument> parsed = parseJson(file.text());
  if (!parsed.ok())
    return parsed.status().in(indexPath);
  const json &index = **parsed;
  if (!index.is_object() || !index.contains("weight_map") ||
      !index["weight_map"].is_object())
    return Status::error(indexPath + ": no object 'weight_map'");

  std::unique_ptr<ShardedSafetensors> result(new ShardedSafetensors());
  result->source = indexPath;
  std::filesystem::path folder = std::filesystem::path(indexPath).parent_path();
  for (const auto &[tensor, shard] : index["weight_map"].items()) {
    if (!shard.is_string())
      return Status::error(indexPath + ": the file of tensor " +
                           inQuotes(tensor) + " is not a string");
    std::string name = shard.get<std::string>();
    // An index may only lead to its own folder.
    if (name.empty() || name == "." || name == ".." ||
        name.find('/') != std::string::npos)
      return Status::error(indexPath + ": " + inQuotes(name) +
                           " is not a plain file name");
    std::unique_ptr<Safetensors> &opened = result->shards[name];
    if (!opened) {
      KF_ASSIGN_OR_RETURN(opened, Safetensors::open((folder / name).string()));
    }
    if (!opened->contains(tensor))
      return Status::error(indexPath + ": tensor " + inQuotes(tensor) +
                           " is not in " + inQuotes(name));
    result->where.emplace(tensor, opened.get());
  }
  for (const auto &[shard, file] : result->shards)
    for (const std::string &tensor : file->names()) {
      auto [it, isNew] = result->where.emplace(tensor, file.get());
      if (!isNew && it->second != file.get())
        return Status::error(indexPath + ": tensor " + inQuotes(tensor) +
                             " is in two files, one of them " +
                             inQuotes(shard));
    }
  return result;
} catch (...) {
  return statusOfException();
}

Result<TensorView> ShardedSafetensors::find(const std::string &name) const try {
  auto it = where.find(name);
  if (it == where.end())
    return Status::error(source + ": no tensor " + inQuotes(name),
                         StatusCode::NotFound);
  return it->second->find(name);
} catch (...) {
  return statusOfException();
}

void ShardedSafetensors::release(const std::string &name) const {
  auto it = where.find(name);
  if (it != where.end())
    it->second->release(name);
}

void ShardedSafetensors::releasePart(const std::string &name, uint64_t first,
                                     uint64_t bytes) const {
  auto it = where.find(name);
  if (it != where.end())
    it->second->releasePart(name, first, bytes);
}

std::vector<FileIdentity> ShardedSafetensors::mappedFiles() const {
  std::vector<FileIdentity> result;
  for (const auto &[name, shard] : shards)
    std::ranges::copy(shard->mappedFiles(), std::back_inserter(result));
  return result;
}

std::vector<std::string> ShardedSafetensors::names() const {
  std::vector<std::string> result;
  result.reserve(where.size());
  for (const auto &[name, shard] : where)
    result.push_back(name);
  return result;
}

Result<std::unique_ptr<WeightSource>>
kf::openSafetensors(const std::string &path,
                    std::vector<std::string> *notes) try {
  std::string file = path;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    std::filesystem::path folder(path);
    file = (folder / "model.safetensors").string();
    std::string index = file + ".index.json";
    if (!std::filesystem::exists(file, ignored)) {
      if (!std::filesystem::exists(index, ignored))
        return Status::error(inQuotes(path) +
                             " has neither model.safetensors "
                             "nor model.safetensors.index.json");
      file = index;
    }
  }
  std::unique_ptr<WeightSource> source;
  if (std::string_view(file).ends_with(".json")) {
    KF_ASSIGN_OR_RETURN(source, ShardedSafetensors::open(file));
  } else {
    KF_ASSIGN_OR_RETURN(source, Safetensors::open(file));
  }
  if (PackedWeights::isNeeded(*source)) {
    Result<std::unique_ptr<PackedWeights>> packed =
        PackedWeights::create(std::move(source));
    if (!packed.ok())
      return packed.status().in(file);
    if (notes)
      notes->push_back((*packed)->note());
    source = packed.take();
  }
  if (!ScaledWeights::isNeeded(*source))
    return source;
  Result<std::unique_ptr<ScaledWeights>> scaled =
      ScaledWeights::create(std::move(source));
  if (!scaled.ok())
    return scaled.status().in(file);
  return std::unique_ptr<WeightSource>(scaled.take());
} catch (...) {
  return statusOfException();
}
