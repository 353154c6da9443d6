//===- GgufParser.cpp - Checks a GGUF file --------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GgufParser.h"

#include "runtime/core/Quote.h"

#include <algorithm>
#include <bit>

using namespace kf;

static_assert(std::endian::native == std::endian::little,
              "GGUF files are read as the host's numbers");

namespace {

/// Arrays in arrays in arrays: files of the field have none at all.
constexpr int kMaxArrayDepth = 4;

/// What is set aside at once for entries that a file only claims to have.
constexpr uint64_t kMaxReserved = 4096;

std::string_view textOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

std::string bytesFollow(uint64_t count) {
  return std::to_string(count) +
         (count == 1 ? " byte follows" : " bytes follow");
}

/// `length` is 0 where the bytes end before it.
Status badString(const std::string &what, uint64_t length, uint64_t left) {
  if (length == 0)
    return Status::error("truncated: " + what +
                         " begins with 8 bytes, but only " + bytesFollow(left));
  return Status::error(what + " has " + std::to_string(length) +
                       " bytes, but only " + bytesFollow(left));
}

} // namespace

GgufParser::GgufParser(Gguf &gguf) : gguf(gguf), cursor(textOf(gguf.image)) {}

Status GgufParser::parse() {
  KF_RETURN_IF_ERROR(readHeader());
  gguf.entries.reserve(std::min(entryCount, kMaxReserved));
  for (uint64_t i = 0; i < entryCount; ++i)
    KF_RETURN_IF_ERROR(readEntry(i));
  KF_RETURN_IF_ERROR(readAlignment());
  gguf.infos.reserve(std::min(tensorCount, kMaxReserved));
  for (uint64_t i = 0; i < tensorCount; ++i)
    KF_RETURN_IF_ERROR(readTensor(i));
  gguf.own = gguf.infos.size();
  return placeTensors();
}

Status GgufParser::readHeader() {
  if (!Gguf::recognize(gguf.image))
    return Status::error("not a GGUF file: it does not begin with \"GGUF\"");
  std::string_view magic;
  uint32_t version = 0;
  if (!cursor.read(kGgufMagic.size(), magic) || !cursor.read(version) ||
      !cursor.read(tensorCount) || !cursor.read(entryCount))
    return Status::error("truncated: a GGUF file's header takes 24 bytes, the "
                         "file has " +
                         std::to_string(gguf.image.size()));
  if (version != 0 && (version & 0xffff) == 0)
    return Status::error("a big-endian GGUF file; only little-endian ones are "
                         "supported");
  if (version < kGgufOldestVersion || version > kGgufVersion)
    return Status::error(
        "GGUF version " + std::to_string(version) +
        " is not supported (supported: " + std::to_string(kGgufOldestVersion) +
        ", " + std::to_string(kGgufVersion) + ")");
  gguf.formatVersion = version;
  // In this order: no sum of products can overflow.
  if (entryCount > cursor.left() / kGgufLeastEntryBytes)
    return Status::error("the header claims " + std::to_string(entryCount) +
                         " metadata entries, but only " +
                         bytesFollow(cursor.left()));
  if (tensorCount > cursor.left() / kGgufLeastTensorBytes)
    return Status::error("the header claims " + std::to_string(tensorCount) +
                         " tensors, but only " + bytesFollow(cursor.left()));
  return Status();
}

//===----------------------------------------------------------------------===//
// Metadata
//===----------------------------------------------------------------------===//

Status GgufParser::readValue(GgufCursor &cursor, uint32_t type, GgufValue &out,
                             int depth) {
  if (type >= kGgufValueTypes)
    return Status::error("unknown value type " + std::to_string(type) +
                         " (known: 0 to " +
                         std::to_string(kGgufValueTypes - 1) + ")");
  out = GgufValue();
  out.kind = static_cast<GgufValueType>(type);
  if (out.kind == GgufValueType::Array)
    return readArray(cursor, out, depth);
  if (out.kind == GgufValueType::String) {
    uint64_t length;
    if (!cursor.readString(out.payload, length))
      return badString("a string", length, cursor.left());
    return Status();
  }
  if (!cursor.read(sizeOf(out.kind), out.payload))
    return Status::error("truncated: a value of type " +
                         std::string(nameOf(out.kind)) + " takes " +
                         std::to_string(sizeOf(out.kind)) +
                         " bytes, but only " + bytesFollow(cursor.left()));
  if (out.kind == GgufValueType::Bool && uint8_t(out.payload[0]) > 1)
    return Status::error("a bool is " +
                         std::to_string(uint8_t(out.payload[0])) +
                         ", neither 0 nor 1");
  return Status();
}

Status GgufParser::readArray(GgufCursor &cursor, GgufValue &out, int depth) {
  if (depth >= kMaxArrayDepth)
    return Status::error("arrays are nested more than " +
                         std::to_string(kMaxArrayDepth) + " deep");
  uint32_t type;
  if (!cursor.read(type) || !cursor.read(out.count))
    return Status::error("truncated: an array begins with 12 bytes");
  if (type >= kGgufValueTypes)
    return Status::error("an array has elements of an unknown type " +
                         std::to_string(type) + " (known: 0 to " +
                         std::to_string(kGgufValueTypes - 1) + ")");
  out.elementKind = static_cast<GgufValueType>(type);
  const bool isString = out.elementKind == GgufValueType::String;
  const bool isArray = out.elementKind == GgufValueType::Array;
  const uint64_t least = isString ? 8 : isArray ? 12 : sizeOf(out.elementKind);
  if (out.count > cursor.left() / least)
    return Status::error("an array claims " + std::to_string(out.count) +
                         " elements of type " +
                         std::string(nameOf(out.elementKind)) + ", but only " +
                         bytesFollow(cursor.left()));
  const uint64_t begin = cursor.position();
  if (isString) {
    std::string_view text;
    uint64_t length;
    for (uint64_t i = 0; i < out.count; ++i)
      if (!cursor.readString(text, length))
        return badString("string " + std::to_string(i) + " of an array", length,
                         cursor.left());
  } else if (isArray) {
    GgufValue element;
    for (uint64_t i = 0; i < out.count; ++i) {
      element = GgufValue();
      KF_RETURN_IF_ERROR(readArray(cursor, element, depth + 1));
    }
  } else if (cursor.read(out.count * least, out.payload) &&
             out.elementKind == GgufValueType::Bool) {
    for (char element : out.payload)
      if (uint8_t(element) > 1)
        return Status::error("a bool in an array is " +
                             std::to_string(uint8_t(element)) +
                             ", neither 0 nor 1");
  }
  out.payload = cursor.since(begin);
  return Status();
}

Status GgufParser::readEntry(uint64_t index) {
  GgufEntry entry;
  uint64_t length;
  if (!cursor.readString(entry.key, length))
    return badString("the name of metadata entry " + std::to_string(index),
                     length, cursor.left());
  const std::string what = "metadata " + inQuotes(entry.key);
  uint32_t type;
  if (!cursor.read(type))
    return Status::error(what + ": truncated: no value type");
  KF_RETURN_IF_ERROR(readValue(cursor, type, entry.value).in(what));
  if (!gguf.entryIndex.emplace(entry.key, gguf.entries.size()).second)
    return Status::error(what + " is there twice");
  gguf.entries.push_back(entry);
  return Status();
}

Status GgufParser::readAlignment() {
  const GgufValue *value = gguf.lookUp(kGgufAlignmentKey);
  if (!value)
    return Status();
  const uint64_t align = value->toUnsigned().value_or(0);
  if (!std::has_single_bit(align) || align < kGgufLeastAlignment ||
      align > kGgufMostAlignment) {
    const bool number = value->toUnsigned().has_value();
    return Status::error(
        "metadata 'general.alignment' is " +
        (number ? std::to_string(align)
                : "of type " + std::string(nameOf(value->type()))) +
        ", but a power of two from " + std::to_string(kGgufLeastAlignment) +
        " to " + std::to_string(kGgufMostAlignment) + " is expected");
  }
  gguf.align = align;
  return Status();
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Status GgufParser::readTensor(uint64_t index) {
  GgufTensor tensor;
  uint64_t length;
  if (!cursor.readString(tensor.name, length))
    return badString("the name of tensor " + std::to_string(index), length,
                     cursor.left());
  const std::string what = "tensor " + inQuotes(tensor.name);
  const Status truncated =
      Status::error(what + ": truncated: the file ends in its entry");
  uint32_t rank;
  if (!cursor.read(rank))
    return truncated;
  if (rank < 1 || rank > kGgufMaxRank)
    return Status::error(what + " has " + std::to_string(rank) +
                         " dimensions; 1 to " + std::to_string(kGgufMaxRank) +
                         " are possible");
  tensor.shape.resize(rank);
  for (uint32_t i = 0; i < rank; ++i) {
    uint64_t size;
    if (!cursor.read(size))
      return truncated;
    if (size > static_cast<uint64_t>(INT64_MAX))
      return Status::error(what + " has a dimension of " +
                           std::to_string(size) +
                           ", which 63 bits cannot hold");
    tensor.shape[rank - 1 - i] = static_cast<int64_t>(size);
  }
  if (!cursor.read(tensor.typeNumber) || !cursor.read(tensor.offset))
    return truncated;
  KF_RETURN_IF_ERROR(checkTensor(tensor).in(what));
  if (!gguf.tensorIndex.emplace(tensor.name, gguf.infos.size()).second)
    return Status::error(what + " is there twice");
  gguf.infos.push_back(std::move(tensor));
  return Status();
}

/// Sets the type and the bytes of `tensor`.
Status GgufParser::checkTensor(GgufTensor &tensor) {
  KF_RETURN_IF_ERROR(checkedElementCount(tensor.shape).status());
  if (tensor.offset % gguf.align != 0)
    return Status::error("its offset " + std::to_string(tensor.offset) +
                         " is not a multiple of the alignment " +
                         std::to_string(gguf.align));
  tensor.type = findGgmlType(tensor.typeNumber);
  if (!tensor.type)
    return Status();
  const int64_t elements = tensor.type->elements;
  if (tensor.shape.back() % elements != 0)
    return Status::error("rows of " + std::string(tensor.type->name) +
                         " come in blocks of " + std::to_string(elements) +
                         " elements, but have " +
                         std::to_string(tensor.shape.back()));
  std::vector<int64_t> blocks = tensor.shape;
  blocks.back() /= elements;
  const size_t size = static_cast<size_t>(tensor.type->bytes);
  KF_ASSIGN_OR_RETURN(int64_t count, checkedElementCount(blocks, size));
  tensor.bytes = static_cast<uint64_t>(count) * size;
  return Status();
}

/// Finds the data, and checks that tensors lie in it as they are written: one
/// behind the other in the order of their entries, each padded to the
/// alignment. A type or shape that is not the one that was written shows by
/// that.
Status GgufParser::placeTensors() {
  auto padded = [&](uint64_t bytes) {
    return (bytes + gguf.align - 1) / gguf.align * gguf.align;
  };
  // A file without tensors may end without the padding.
  if (const uint64_t begin = padded(cursor.position());
      begin <= gguf.image.size())
    gguf.data = gguf.image.subspan(begin);
  uint64_t end = 0;
  const GgufTensor *previous = nullptr;
  for (const GgufTensor &tensor : gguf.infos) {
    if (tensor.offset > gguf.data.size() ||
        tensor.bytes > gguf.data.size() - tensor.offset)
      return Status::error("truncated: tensor " + inQuotes(tensor.name) +
                           " takes " + std::to_string(tensor.bytes) +
                           " bytes at offset " + std::to_string(tensor.offset) +
                           " of the data, which has " +
                           std::to_string(gguf.data.size()));
    // Nothing says where a tensor of an unknown type ends.
    const bool known = !previous || previous->type;
    if (known ? tensor.offset != end : tensor.offset < end)
      return Status::error(
          "tensor " + inQuotes(tensor.name) + " starts at offset " +
          std::to_string(tensor.offset) + " of the data, but " +
          (known ? "" : "at least ") + std::to_string(end) + " is expected" +
          (previous ? ", behind tensor " + inQuotes(previous->name)
                    : std::string()) +
          ": a type, a shape or an offset is wrong");
    end = padded(tensor.offset + tensor.bytes);
    previous = &tensor;
  }
  if (!previous || previous->type)
    gguf.behind = gguf.data.subspan(std::min<uint64_t>(end, gguf.data.size()));
  return Status();
}
