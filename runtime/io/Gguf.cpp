//===- Gguf.cpp - Checkpoints in the GGUF format --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Gguf.h"

#include "GgufJoiner.h"
#include "GgufParser.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"

#include <algorithm>

using namespace kf;

namespace {

/// Calls `use` with the number of an integer type at `bytes`; nothing for other
/// types.
template <typename Out, typename Use>
std::optional<Out> withInteger(GgufValueType type, const char *bytes, Use use) {
  auto load = [&]<typename T>(T value) -> std::optional<Out> {
    std::memcpy(&value, bytes, sizeof(T));
    return use(value);
  };
  switch (type) {
  case GgufValueType::U8:
    return load(uint8_t());
  case GgufValueType::I8:
    return load(int8_t());
  case GgufValueType::U16:
    return load(uint16_t());
  case GgufValueType::I16:
    return load(int16_t());
  case GgufValueType::U32:
    return load(uint32_t());
  case GgufValueType::I32:
    return load(int32_t());
  case GgufValueType::U64:
    return load(uint64_t());
  case GgufValueType::I64:
    return load(int64_t());
  default:
    return std::nullopt;
  }
}

/// The number of an integer type if an Out holds it.
template <typename Out>
std::optional<Out> loadInteger(GgufValueType type, const char *bytes) {
  return withInteger<Out>(type, bytes, [](auto value) -> std::optional<Out> {
    if (!std::in_range<Out>(value))
      return std::nullopt;
    return static_cast<Out>(value);
  });
}

bool isInteger(GgufValueType type) {
  constexpr uint64_t zero = 0;
  return loadInteger<int64_t>(type, reinterpret_cast<const char *>(&zero))
      .has_value();
}

/// "a string", "an array of u32", for errors.
std::string spell(const GgufValue &value) {
  if (std::optional<int64_t> number = value.toSigned())
    return std::to_string(*number);
  if (value.type() == GgufValueType::Array)
    return "an array of " + std::string(nameOf(value.elementType()));
  if (value.type() == GgufValueType::String)
    return "a string";
  return "of type " + std::string(nameOf(value.type()));
}

} // namespace

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::optional<uint64_t> GgufValue::toUnsigned() const {
  return loadInteger<uint64_t>(kind, payload.data());
}

std::optional<int64_t> GgufValue::toSigned() const {
  return loadInteger<int64_t>(kind, payload.data());
}

std::optional<double> GgufValue::toFloat() const {
  if (kind == GgufValueType::F32) {
    float value;
    std::memcpy(&value, payload.data(), sizeof(value));
    return value;
  }
  if (kind == GgufValueType::F64) {
    double value;
    std::memcpy(&value, payload.data(), sizeof(value));
    return value;
  }
  return std::nullopt;
}

std::optional<bool> GgufValue::toBool() const {
  if (kind != GgufValueType::Bool)
    return std::nullopt;
  return payload[0] != 0;
}

std::optional<std::string_view> GgufValue::toString() const {
  if (kind != GgufValueType::String)
    return std::nullopt;
  return payload;
}

std::vector<GgufValue> GgufValue::elements(uint64_t limit) const {
  std::vector<GgufValue> result;
  if (kind != GgufValueType::Array)
    return result;
  GgufCursor cursor(payload);
  for (uint64_t i = 0; i < std::min(count, limit); ++i) {
    // The parser has been through here: no read fails.
    if (!GgufParser::readValue(cursor, static_cast<uint32_t>(elementKind),
                               result.emplace_back())
             .ok())
      break;
  }
  return result;
}

std::optional<std::vector<std::string_view>> GgufValue::toStrings() const {
  if (kind != GgufValueType::Array || elementKind != GgufValueType::String)
    return std::nullopt;
  std::vector<std::string_view> result(count);
  GgufCursor cursor(payload);
  for (std::string_view &text : result)
    cursor.readString(text);
  return result;
}

std::optional<std::vector<int64_t>> GgufValue::toIntegers() const {
  if (kind != GgufValueType::Array || !isInteger(elementKind))
    return std::nullopt;
  std::vector<int64_t> result(count);
  const char *bytes = payload.data();
  for (int64_t &number : result) {
    std::optional<int64_t> value = loadInteger<int64_t>(elementKind, bytes);
    if (!value)
      return std::nullopt;
    number = *value;
    bytes += sizeOf(elementKind);
  }
  return result;
}

std::optional<std::vector<float>> GgufValue::toFloats() const {
  if (kind != GgufValueType::Array || elementKind != GgufValueType::F32)
    return std::nullopt;
  std::vector<float> result(count);
  if (count)
    std::memcpy(result.data(), payload.data(), payload.size());
  return result;
}

std::string GgufTensor::typeName() const {
  return type ? std::string(type->name) : "type " + std::to_string(typeNumber);
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<Gguf>> Gguf::openIfGguf(const std::string &path) try {
  KF_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::open(path));
  if (!recognize(mapped.bytes()))
    return std::unique_ptr<Gguf>();
  return openMapped(std::move(mapped));
} catch (...) {
  return statusOfException();
}

Result<std::unique_ptr<Gguf>> Gguf::open(const std::string &path) try {
  KF_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::open(path));
  return openMapped(std::move(mapped));
} catch (...) {
  return statusOfException();
}

Result<std::unique_ptr<Gguf>> Gguf::openMapped(MappedFile mapped) {
  std::unique_ptr<Gguf> result(new Gguf());
  result->name = mapped.path();
  result->file = std::move(mapped);
  result->image = result->file->bytes();
  KF_RETURN_IF_ERROR(GgufParser(*result).parse().in(result->name));
  KF_RETURN_IF_ERROR(GgufJoiner(*result).join());
  return result;
}

Result<std::unique_ptr<Gguf>> Gguf::parse(std::span<const std::byte> bytes,
                                          std::string name) try {
  std::unique_ptr<Gguf> result(new Gguf());
  result->name = std::move(name);
  result->image = bytes;
  KF_RETURN_IF_ERROR(GgufParser(*result).parse().in(result->name));
  return result;
} catch (...) {
  return statusOfException();
}

bool Gguf::recognize(std::span<const std::byte> bytes) {
  return bytes.size() >= kGgufMagic.size() &&
         std::memcmp(bytes.data(), kGgufMagic.data(), kGgufMagic.size()) == 0;
}

std::vector<const Gguf *> Gguf::files() const {
  std::vector<const Gguf *> all = {this};
  for (const std::unique_ptr<Gguf> &other : others)
    all.push_back(other.get());
  return all;
}

const GgufValue *Gguf::lookUp(std::string_view key) const {
  auto it = entryIndex.find(key);
  return it == entryIndex.end() ? nullptr : &entries[it->second].value;
}

const GgufTensor *Gguf::lookUpTensor(std::string_view tensor) const {
  auto it = tensorIndex.find(tensor);
  return it == tensorIndex.end() ? nullptr : &infos[it->second];
}

template <typename T, typename Convert>
Result<std::optional<T>> Gguf::findAs(std::string_view key,
                                      const char *expected,
                                      Convert convert) const {
  const GgufValue *value = lookUp(key);
  if (!value)
    return std::optional<T>();
  std::optional<T> converted = convert(*value);
  if (!converted)
    return Status::error(name + ": metadata " + inQuotes(key) + " is " +
                         spell(*value) + " where " + expected + " is expected");
  return converted;
}

template <typename T>
Result<T> Gguf::orFallback(std::string_view key, Result<std::optional<T>> found,
                           std::optional<T> fallback) const {
  if (!found.ok())
    return found.status();
  if (*found)
    return std::move(**found);
  if (fallback)
    return std::move(*fallback);
  return Status::error(name + ": there is no metadata " + inQuotes(key));
}

Result<std::optional<uint64_t>> Gguf::findUnsigned(std::string_view key) const {
  return findAs<uint64_t>(key, "an unsigned integer",
                          [](const GgufValue &v) { return v.toUnsigned(); });
}

Result<std::optional<double>> Gguf::findFloat(std::string_view key) const {
  return findAs<double>(key, "an f32 or f64",
                        [](const GgufValue &v) { return v.toFloat(); });
}

Result<std::optional<bool>> Gguf::findBool(std::string_view key) const {
  return findAs<bool>(key, "a bool",
                      [](const GgufValue &v) { return v.toBool(); });
}

Result<std::optional<std::string_view>>
Gguf::findString(std::string_view key) const {
  return findAs<std::string_view>(
      key, "a string", [](const GgufValue &v) { return v.toString(); });
}

Result<uint64_t> Gguf::getUnsigned(std::string_view key,
                                   std::optional<uint64_t> fallback) const {
  return orFallback(key, findUnsigned(key), fallback);
}

Result<double> Gguf::getFloat(std::string_view key,
                              std::optional<double> fallback) const {
  return orFallback(key, findFloat(key), fallback);
}

Result<bool> Gguf::getBool(std::string_view key,
                           std::optional<bool> fallback) const {
  return orFallback(key, findBool(key), fallback);
}

Result<std::string_view>
Gguf::getString(std::string_view key,
                std::optional<std::string_view> fallback) const {
  return orFallback(key, findString(key), fallback);
}

Result<std::vector<std::string_view>>
Gguf::getStrings(std::string_view key) const try {
  using Strings = std::vector<std::string_view>;
  return orFallback<Strings>(
      key,
      findAs<Strings>(key, "an array of strings",
                      [](const GgufValue &v) { return v.toStrings(); }),
      {});
} catch (...) {
  return statusOfException();
}

Result<std::vector<int64_t>> Gguf::getIntegers(std::string_view key) const try {
  using Integers = std::vector<int64_t>;
  return orFallback<Integers>(
      key,
      findAs<Integers>(key, "an array of integers",
                       [](const GgufValue &v) { return v.toIntegers(); }),
      {});
} catch (...) {
  return statusOfException();
}

Result<std::vector<float>> Gguf::getFloats(std::string_view key) const try {
  using Floats = std::vector<float>;
  return orFallback<Floats>(
      key,
      findAs<Floats>(key, "an array of f32",
                     [](const GgufValue &v) { return v.toFloats(); }),
      {});
} catch (...) {
  return statusOfException();
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Result<TensorView> Gguf::find(const std::string &tensor) const try {
  const GgufTensor *info = lookUpTensor(tensor);
  if (!info)
    return Status::error(name + ": no tensor " + inQuotes(tensor),
                         StatusCode::NotFound);
  if (info->file > 0)
    return others[info->file - 1]->find(tensor);
  if (!info->type || !info->type->type) {
    std::string supported;
    for (const GgmlType &type : kGgmlTypes)
      if (type.type)
        supported += (supported.empty() ? "" : ", ") + std::string(type.name);
    return Status::error(name + ": tensor " + inQuotes(tensor) + " has " +
                         (info->type ? "type " : "the unknown ") +
                         info->typeName() + "; supported types are " +
                         supported);
  }
  TensorView view;
  view.type = *info->type->type;
  view.shape = info->shape;
  view.data = data.data() + info->offset;
  view.bytes = info->bytes;
  return view;
} catch (...) {
  return statusOfException();
}

std::span<const std::byte> Gguf::bytesOf(const std::string &tensor) const {
  const GgufTensor *info = lookUpTensor(tensor);
  if (!info)
    return {};
  return info->file > 0 ? others[info->file - 1]->bytesOf(tensor)
                        : data.subspan(info->offset, info->bytes);
}

void Gguf::release(const std::string &tensor) const {
  const GgufTensor *info = lookUpTensor(tensor);
  if (info && info->file > 0)
    others[info->file - 1]->release(tensor);
  else if (file && info)
    file->release(data.subspan(info->offset, info->bytes));
}

void Gguf::releasePart(const std::string &tensor, uint64_t first,
                       uint64_t bytes) const {
  const GgufTensor *info = lookUpTensor(tensor);
  if (info && info->file > 0)
    others[info->file - 1]->releasePart(tensor, first, bytes);
  else if (file && info && first <= info->bytes && bytes <= info->bytes - first)
    file->release(data.subspan(info->offset + first, bytes));
}

std::vector<FileIdentity> Gguf::mappedFiles() const {
  std::vector<FileIdentity> result;
  for (const Gguf *each : files()) {
    if (!each->file)
      return {};
    result.push_back(each->file->identity());
  }
  return result;
}

std::vector<std::string> Gguf::names() const {
  std::vector<std::string> result;
  result.reserve(infos.size());
  for (const GgufTensor &info : infos)
    result.emplace_back(info.name);
  std::ranges::sort(result);
  return result;
}
