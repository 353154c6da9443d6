//===- ExecutableFile.cpp - The file form of an Executable ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Little-endian, without padding:
//   7 bytes   magic "KFEXEC\0"
//   u8        version of this form
//   u32       KF_ABI_VERSION
//   u64       length of the head
//   ...       head: a JSON object with everything but the binary
//   u64       length of the binary
//   ...       binary
//   u32       CRC-32 (zlib's) of all that precedes
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Executable.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/JsonText.h"
#include "runtime/core/Quote.h"

#include <zlib.h>

#include <limits>
#include <type_traits>

namespace kf {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMagic("KFEXEC\0", 7);

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

template <typename T> void appendInteger(std::string &out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

/// Takes `length` bytes off the front of `rest`.
Result<std::string_view> takeBytes(std::string_view &rest, uint64_t length) {
  if (length > rest.size())
    return Status::error("the file is truncated");
  std::string_view front = rest.substr(0, length);
  rest.remove_prefix(length);
  return front;
}

template <typename T> Result<T> takeInteger(std::string_view &rest) {
  KF_ASSIGN_OR_RETURN(std::string_view bytes, takeBytes(rest, sizeof(T)));
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

uint32_t checksum(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
}

//===----------------------------------------------------------------------===//
// Head: struct to JSON
//===----------------------------------------------------------------------===//

std::string toJson(const SizedCount &count) {
  return jsonObject({{"constant", jsonText(count.constant)},
                     {"per_size", jsonArray(count.perSize)}});
}

std::string toJson(const KeyWork &keys) {
  return jsonObject({{"positions", jsonText(keys.positions)},
                     {"sequences", jsonText(keys.sequences)},
                     {"window", jsonText(keys.window.size)},
                     {"chunked", jsonText(keys.window.chunked)},
                     {"bytes_per_key", jsonText(keys.bytesPerKey)},
                     {"flops_per_key", jsonText(keys.flopsPerKey)},
                     {"in_bf16", jsonText(keys.inBF16)}});
}

std::string toJson(const KernelWork &work) {
  return jsonObject({{"bytes", toJson(work.bytes)},
                     {"flops", toJson(work.flops)},
                     {"int8_ops", toJson(work.int8Ops)},
                     {"bf16_flops", toJson(work.bf16Flops)},
                     {"keys", work.keys ? toJson(*work.keys) : "null"}});
}

std::string toJson(const KernelSpec &kernel) {
  return jsonObject({{"name", jsonText(kernel.name)},
                     {"scratch_bytes", jsonText(kernel.scratchBytes)},
                     {"dynamic_bytes", jsonText(kernel.dynamicBytes)},
                     {"waits", jsonText(kernel.waits)},
                     {"subgroup_threads", jsonText(kernel.subgroupThreads)},
                     {"workgroup_size", jsonArray(kernel.workgroupSize)},
                     {"work", kernel.work ? toJson(*kernel.work) : "null"}});
}

std::string_view nameOf(WeightLayout::Kind kind) {
  switch (kind) {
  case WeightLayout::Kind::RowMajor:
    return "row_major";
  case WeightLayout::Kind::Panels:
    return "panels";
  case WeightLayout::Kind::Fragments:
    return "fragments";
  }
  return "";
}

std::string toJson(const WeightSpec &weight) {
  return jsonObject({{"names", jsonArray(weight.names)},
                     {"stacked", jsonText(weight.stacked)},
                     {"transposed", jsonText(weight.transposed)},
                     {"type", jsonText(nameOf(weight.type))},
                     {"shape", jsonArray(weight.shape)},
                     {"layout", jsonText(nameOf(weight.layout.kind))},
                     {"panel", jsonText(weight.layout.panel)},
                     {"interleave", jsonText(weight.layout.interleave)}});
}

std::string toJson(const CacheSpec &cache) {
  return jsonObject({{"type", jsonText(nameOf(cache.type))},
                     {"layers", jsonText(cache.layers)},
                     {"kv_heads", jsonText(cache.kvHeads)},
                     {"head_dim", jsonText(cache.headDim)},
                     {"key_block", jsonText(cache.keyBlock)},
                     {"page", jsonText(cache.page)},
                     {"slot_pages", jsonText(cache.slotPages)}});
}

std::string toJson(const TensorSpec &tensor) {
  return jsonObject({{"type", jsonText(nameOf(tensor.type))},
                     {"shape", jsonArray(tensor.shape)}});
}

std::string toJson(const SizeRange &range) {
  return jsonObject({{"name", jsonText(range.name)},
                     {"least", jsonText(range.least)},
                     {"most", jsonText(range.most)}});
}

std::string toJson(const kf_binding &binding) {
  return jsonObject({{"kind", jsonText(binding.kind)},
                     {"index", jsonText(binding.index)},
                     {"offset", jsonText(binding.offset)}});
}

std::string toJson(const BindingAccess &access) {
  return jsonObject(
      {{"writes", jsonText(access.writes)}, {"bytes", jsonText(access.bytes)}});
}

std::string toJson(const kf_grid_dim &dim) {
  return jsonObject(
      {{"scalar", jsonText(dim.scalar)}, {"value", jsonText(dim.value)}});
}

std::string toJson(const CollectiveSpec &collective) {
  return jsonObject({{"kind", jsonText(nameOf(collective.kind))},
                     {"type", jsonText(nameOf(collective.type))},
                     {"rows", jsonText(collective.rows)},
                     {"columns", jsonText(collective.columns)},
                     {"result_columns", jsonText(collective.resultColumns)}});
}

std::string toJson(const DispatchSpec &dispatch);

template <typename List> std::string listToJson(const List &list) {
  return jsonArray(list, [](const auto &element) { return toJson(element); });
}

std::string toJson(const DispatchSpec &dispatch) {
  return jsonObject(
      {{"kernel", jsonText(dispatch.kernel)},
       {"bindings", listToJson(dispatch.bindings)},
       {"accesses", listToJson(dispatch.accesses)},
       {"grid", listToJson(dispatch.grid)},
       {"collective",
        dispatch.collective ? toJson(*dispatch.collective) : "null"}});
}

//===----------------------------------------------------------------------===//
// Head: JSON to struct
//===----------------------------------------------------------------------===//

Status read(const Json &json, std::string &out) {
  if (!json.is_string())
    return Status::error("a string is expected");
  out = json.get_ref<const std::string &>();
  return Status();
}

Status read(const Json &json, bool &out) {
  if (!json.is_boolean())
    return Status::error("true or false is expected");
  out = json.get<bool>();
  return Status();
}

template <typename T>
  requires std::is_integral_v<T>
Status read(const Json &json, T &out) {
  if (!json.is_number_integer())
    return Status::error("an integer is expected");
  bool fits;
  if (json.is_number_unsigned())
    fits = json.get<uint64_t>() <=
           static_cast<uint64_t>(std::numeric_limits<T>::max());
  else // negative
    fits = std::is_signed_v<T> &&
           json.get<int64_t>() >=
               static_cast<int64_t>(std::numeric_limits<T>::min());
  if (!fits)
    return Status::error("an integer is out of range");
  out = json.get<T>();
  return Status();
}

Status read(const Json &json, DataType &out) {
  std::string name;
  KF_RETURN_IF_ERROR(read(json, name));
  KF_ASSIGN_OR_RETURN(out, parseDataType(name));
  return Status();
}

Status read(const Json &json, WeightLayout::Kind &out) {
  std::string name;
  KF_RETURN_IF_ERROR(read(json, name));
  for (WeightLayout::Kind kind :
       {WeightLayout::Kind::RowMajor, WeightLayout::Kind::Panels,
        WeightLayout::Kind::Fragments})
    if (name == nameOf(kind)) {
      out = kind;
      return Status();
    }
  return Status::error("unknown weight layout " + inQuotes(name));
}

Status read(const Json &json, CollectiveSpec::Kind &out) {
  std::string name;
  KF_RETURN_IF_ERROR(read(json, name));
  for (CollectiveSpec::Kind kind : CollectiveSpec::kinds)
    if (name == nameOf(kind)) {
      out = kind;
      return Status();
    }
  return Status::error("unknown collective " + inQuotes(name));
}

Status read(const Json &json, SizedCount &out);
Status read(const Json &json, KeyWork &out);
Status read(const Json &json, KernelWork &out);
Status read(const Json &json, KernelSpec &out);
Status read(const Json &json, WeightSpec &out);
Status read(const Json &json, CacheSpec &out);
Status read(const Json &json, TensorSpec &out);
Status read(const Json &json, SizeRange &out);
Status read(const Json &json, kf_binding &out);
Status read(const Json &json, BindingAccess &out);
Status read(const Json &json, kf_grid_dim &out);
Status read(const Json &json, CollectiveSpec &out);
Status read(const Json &json, DispatchSpec &out);

template <typename T> Status read(const Json &json, std::vector<T> &out) {
  if (!json.is_array())
    return Status::error("a list is expected");
  out.resize(json.size());
  for (size_t i = 0; i < out.size(); ++i)
    KF_RETURN_IF_ERROR(read(json[i], out[i]).in(std::to_string(i)));
  return Status();
}

template <typename T, size_t N>
Status read(const Json &json, std::array<T, N> &out) {
  if (!json.is_array() || json.size() != N)
    return Status::error("a list of " + std::to_string(N) + " is expected");
  for (size_t i = 0; i < N; ++i)
    KF_RETURN_IF_ERROR(read(json[i], out[i]).in(std::to_string(i)));
  return Status();
}

template <typename T> Status read(const Json &json, std::optional<T> &out) {
  return json.is_null() ? Status() : read(json, out.emplace());
}

/// Reads the member `key` of the object `json`.
template <typename T> Status field(const Json &json, const char *key, T &out) {
  if (!json.is_object())
    return Status::error("an object is expected");
  auto found = json.find(key);
  if (found == json.end())
    return Status::error(std::string("'") + key + "' is missing");
  return read(*found, out).in(key);
}

Status read(const Json &json, SizedCount &out) {
  KF_RETURN_IF_ERROR(field(json, "constant", out.constant));
  return field(json, "per_size", out.perSize);
}

Status read(const Json &json, KeyWork &out) {
  KF_RETURN_IF_ERROR(field(json, "positions", out.positions));
  KF_RETURN_IF_ERROR(field(json, "sequences", out.sequences));
  KF_RETURN_IF_ERROR(field(json, "window", out.window.size));
  KF_RETURN_IF_ERROR(field(json, "chunked", out.window.chunked));
  KF_RETURN_IF_ERROR(field(json, "bytes_per_key", out.bytesPerKey));
  KF_RETURN_IF_ERROR(field(json, "flops_per_key", out.flopsPerKey));
  return field(json, "in_bf16", out.inBF16);
}

Status read(const Json &json, KernelWork &out) {
  KF_RETURN_IF_ERROR(field(json, "bytes", out.bytes));
  KF_RETURN_IF_ERROR(field(json, "flops", out.flops));
  KF_RETURN_IF_ERROR(field(json, "int8_ops", out.int8Ops));
  KF_RETURN_IF_ERROR(field(json, "bf16_flops", out.bf16Flops));
  return field(json, "keys", out.keys);
}

Status read(const Json &json, KernelSpec &out) {
  KF_RETURN_IF_ERROR(field(json, "name", out.name));
  KF_RETURN_IF_ERROR(field(json, "scratch_bytes", out.scratchBytes));
  KF_RETURN_IF_ERROR(field(json, "dynamic_bytes", out.dynamicBytes));
  KF_RETURN_IF_ERROR(field(json, "waits", out.waits));
  KF_RETURN_IF_ERROR(field(json, "subgroup_threads", out.subgroupThreads));
  KF_RETURN_IF_ERROR(field(json, "workgroup_size", out.workgroupSize));
  return field(json, "work", out.work);
}

Status read(const Json &json, WeightSpec &out) {
  KF_RETURN_IF_ERROR(field(json, "names", out.names));
  KF_RETURN_IF_ERROR(field(json, "stacked", out.stacked));
  KF_RETURN_IF_ERROR(field(json, "transposed", out.transposed));
  KF_RETURN_IF_ERROR(field(json, "type", out.type));
  KF_RETURN_IF_ERROR(field(json, "shape", out.shape));
  KF_RETURN_IF_ERROR(field(json, "layout", out.layout.kind));
  KF_RETURN_IF_ERROR(field(json, "panel", out.layout.panel));
  return field(json, "interleave", out.layout.interleave);
}

Status read(const Json &json, CacheSpec &out) {
  KF_RETURN_IF_ERROR(field(json, "type", out.type));
  KF_RETURN_IF_ERROR(field(json, "layers", out.layers));
  KF_RETURN_IF_ERROR(field(json, "kv_heads", out.kvHeads));
  KF_RETURN_IF_ERROR(field(json, "head_dim", out.headDim));
  KF_RETURN_IF_ERROR(field(json, "key_block", out.keyBlock));
  KF_RETURN_IF_ERROR(field(json, "page", out.page));
  return field(json, "slot_pages", out.slotPages);
}

Status read(const Json &json, TensorSpec &out) {
  KF_RETURN_IF_ERROR(field(json, "type", out.type));
  return field(json, "shape", out.shape);
}

Status read(const Json &json, SizeRange &out) {
  KF_RETURN_IF_ERROR(field(json, "name", out.name));
  KF_RETURN_IF_ERROR(field(json, "least", out.least));
  return field(json, "most", out.most);
}

Status read(const Json &json, kf_binding &out) {
  KF_RETURN_IF_ERROR(field(json, "kind", out.kind));
  KF_RETURN_IF_ERROR(field(json, "index", out.index));
  return field(json, "offset", out.offset);
}

Status read(const Json &json, BindingAccess &out) {
  KF_RETURN_IF_ERROR(field(json, "writes", out.writes));
  return field(json, "bytes", out.bytes);
}

Status read(const Json &json, kf_grid_dim &out) {
  KF_RETURN_IF_ERROR(field(json, "scalar", out.scalar));
  return field(json, "value", out.value);
}

Status read(const Json &json, CollectiveSpec &out) {
  KF_RETURN_IF_ERROR(field(json, "kind", out.kind));
  KF_RETURN_IF_ERROR(field(json, "type", out.type));
  KF_RETURN_IF_ERROR(field(json, "rows", out.rows));
  KF_RETURN_IF_ERROR(field(json, "columns", out.columns));
  return field(json, "result_columns", out.resultColumns);
}

Status read(const Json &json, DispatchSpec &out) {
  KF_RETURN_IF_ERROR(field(json, "kernel", out.kernel));
  KF_RETURN_IF_ERROR(field(json, "bindings", out.bindings));
  KF_RETURN_IF_ERROR(field(json, "accesses", out.accesses));
  KF_RETURN_IF_ERROR(field(json, "grid", out.grid));
  return field(json, "collective", out.collective);
}

Status readHead(std::string_view head, Executable &out) {
  KF_ASSIGN_OR_RETURN(JsonDocument document, parseJson(head));
  const Json &json = *document;
  KF_RETURN_IF_ERROR(field(json, "target", out.target));
  KF_RETURN_IF_ERROR(field(json, "features", out.features));
  KF_RETURN_IF_ERROR(field(json, "model", out.model));
  KF_RETURN_IF_ERROR(field(json, "program", out.programName));
  KF_RETURN_IF_ERROR(field(json, "ranks", out.ranks));
  KF_RETURN_IF_ERROR(field(json, "min_tokens", out.minTokens));
  KF_RETURN_IF_ERROR(field(json, "max_tokens", out.maxTokens));
  KF_RETURN_IF_ERROR(field(json, "sizes", out.namedSizes));
  KF_RETURN_IF_ERROR(field(json, "arena_bytes", out.arenaBytes));
  KF_RETURN_IF_ERROR(field(json, "kernels", out.kernels));
  KF_RETURN_IF_ERROR(field(json, "weights", out.weights));
  KF_RETURN_IF_ERROR(field(json, "caches", out.caches));
  KF_RETURN_IF_ERROR(field(json, "inputs", out.inputs));
  KF_RETURN_IF_ERROR(field(json, "outputs", out.outputs));
  return field(json, "dispatches", out.dispatches);
}

} // namespace

std::string Executable::serialize() const {
  const std::string text = jsonObject({{"target", jsonText(target)},
                                       {"features", jsonArray(features)},
                                       {"model", jsonText(model)},
                                       {"program", jsonText(programName)},
                                       {"ranks", jsonText(ranks)},
                                       {"min_tokens", jsonText(minTokens)},
                                       {"max_tokens", jsonText(maxTokens)},
                                       {"sizes", listToJson(namedSizes)},
                                       {"arena_bytes", jsonText(arenaBytes)},
                                       {"kernels", listToJson(kernels)},
                                       {"weights", listToJson(weights)},
                                       {"caches", listToJson(caches)},
                                       {"inputs", listToJson(inputs)},
                                       {"outputs", listToJson(outputs)},
                                       {"dispatches", listToJson(dispatches)}});
  std::string out(kMagic);
  out.reserve(kMagic.size() + text.size() + binary.size() + 32);
  appendInteger<uint8_t>(out, kFileVersion);
  appendInteger<uint32_t>(out, KF_ABI_VERSION);
  appendInteger<uint64_t>(out, text.size());
  out += text;
  appendInteger<uint64_t>(out, binary.size());
  out += binary;
  appendInteger<uint32_t>(out, checksum(out));
  return out;
}

Result<Executable> Executable::deserialize(std::string_view bytes) try {
  std::string_view rest = bytes;
  KF_ASSIGN_OR_RETURN(std::string_view magic, takeBytes(rest, kMagic.size()));
  if (magic != kMagic)
    return Status::error("this is no KernelForge executable");
  KF_ASSIGN_OR_RETURN(uint8_t form, takeInteger<uint8_t>(rest));
  if (form != kFileVersion)
    return Status::error("the executable's file has version " +
                         std::to_string(form) + "; this is version " +
                         std::to_string(kFileVersion) + ", compile it again");
  KF_ASSIGN_OR_RETURN(uint32_t version, takeInteger<uint32_t>(rest));
  if (version != KF_ABI_VERSION)
    return Status::error("the executable was made for ABI version " +
                         std::to_string(version) + "; this is version " +
                         std::to_string(KF_ABI_VERSION) + ", compile it again");
  KF_ASSIGN_OR_RETURN(uint64_t headLength, takeInteger<uint64_t>(rest));
  KF_ASSIGN_OR_RETURN(std::string_view head, takeBytes(rest, headLength));
  KF_ASSIGN_OR_RETURN(uint64_t binaryLength, takeInteger<uint64_t>(rest));
  KF_ASSIGN_OR_RETURN(std::string_view binary, takeBytes(rest, binaryLength));
  std::string_view covered = bytes.substr(0, bytes.size() - rest.size());
  KF_ASSIGN_OR_RETURN(uint32_t stored, takeInteger<uint32_t>(rest));
  if (!rest.empty())
    return Status::error("the executable is followed by " +
                         std::to_string(rest.size()) + " unknown bytes");
  if (checksum(covered) != stored)
    return Status::error("the executable is damaged (its checksum differs)");

  Executable executable;
  KF_RETURN_IF_ERROR(readHead(head, executable).in("the executable's head"));
  executable.binary = binary;
  KF_RETURN_IF_ERROR(executable.verify());
  return executable;
} catch (...) {
  return statusOfException();
}

} // namespace kf
