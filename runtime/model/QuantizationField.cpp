//===- QuantizationField.cpp - How a checkpoint was quantized -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/QuantizationField.h"

#include "runtime/core/Json.h"
#include "runtime/core/Quote.h"
#include "runtime/model/UnsupportedFields.h"

using namespace kf;
using nlohmann::json;

namespace {

constexpr const char *kField = "quantization_config";
constexpr const char *kModelOptField = "quantization";
constexpr const char *kNvfp4Format = "nvfp4-pack-quantized";

/// The field `name` of `object`; null if it is absent or JSON's null.
const json *fieldOf(const json &object, const char *name) {
  auto it = object.find(name);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

/// Whether the field is absent, null, or `value`.
bool isAbsentOr(const json &object, const char *name, bool value) {
  const json *found = fieldOf(object, name);
  return !found || *found == value;
}

/// Whether `value` is a list of one size of blocks, in rows and columns.
bool isBlockOf(const json &value, int64_t size) {
  return value.is_array() && value.size() == 2 && value[0] == size &&
         value[1] == size;
}

Status unsupported(const std::string &what, const char *field = kField) {
  return Status::error("'" + std::string(field) + "' " + what,
                       StatusCode::Unsupported);
}

/// `weights` of a group of compressed-tensors in the format of NVFP4.
Status checkNvfp4Weights(const json &weights) {
  const std::pair<const char *, json> fields[] = {{"num_bits", 4},
                                                  {"type", "float"},
                                                  {"group_size", 16},
                                                  {"strategy", "tensor_group"},
                                                  {"symmetric", true}};
  for (const auto &[name, value] : fields)
    if (const json *found = fieldOf(weights, name); found && *found != value)
      return unsupported("has weights of nvfp4-pack-quantized whose '" +
                         std::string(name) + "' is " + shortDump(*found) +
                         " (supported: " + value.dump() + ")");
  return Status();
}

/// `weights` of a group of compressed-tensors in another format.
Status checkWeights(const json &weights) {
  const json *bits = fieldOf(weights, "num_bits");
  if (!bits || *bits != 8)
    return unsupported("has weights of " + (bits ? shortDump(*bits) : "?") +
                       " bits; 8 are supported");
  if (!isAbsentOr(weights, "symmetric", true))
    return unsupported("has weights with zero points; only symmetric ones are "
                       "supported");
  if (!isAbsentOr(weights, "actorder", false))
    return unsupported("has reordered weights (actorder), which are not "
                       "supported");
  const json *strategy = fieldOf(weights, "strategy");
  for (const char *known : {"tensor", "channel", "group", "block"})
    if (!strategy || isText(*strategy, known))
      return Status();
  return unsupported("has weights of strategy " + shortDump(*strategy) +
                     ", which is not supported (supported: tensor, channel, "
                     "group, block)");
}

Status checkCompressedTensors(const json &object) {
  const json *format = fieldOf(object, "format");
  bool known = false;
  for (const char *name :
       {"float-quantized", "int-quantized", "naive-quantized", kNvfp4Format})
    known |= format && isText(*format, name);
  if (!known)
    return unsupported("has the format " +
                       (format ? shortDump(*format) : "null") +
                       ", which is not supported (supported: float-quantized, "
                       "int-quantized, naive-quantized, nvfp4-pack-quantized)");
  if (const json *sparsity = fieldOf(object, "sparsity_config")) {
    const json *kind =
        sparsity->is_object() ? fieldOf(*sparsity, "format") : nullptr;
    if (!sparsity->is_object() || (kind && !isText(*kind, "dense")))
      return unsupported("has a 'sparsity_config', which is not supported");
  }
  const json *transforms = fieldOf(object, "transform_config");
  if (transforms && !transforms->empty())
    return unsupported("has a 'transform_config', which is not supported");
  const json *groups = fieldOf(object, "config_groups");
  if (!groups || !groups->is_object())
    return unsupported("has no object 'config_groups'");
  for (const json &group : *groups) {
    const json *weights =
        group.is_object() ? fieldOf(group, "weights") : nullptr;
    if (!weights || !weights->is_object())
      return unsupported("has a group without 'weights', which is not "
                         "supported");
    KF_RETURN_IF_ERROR(isText(*format, kNvfp4Format)
                           ? checkNvfp4Weights(*weights)
                           : checkWeights(*weights));
  }
  return Status();
}

Status checkBitsAndBytes(const json &object) {
  if (!isAbsentOr(object, "load_in_8bit", false))
    return unsupported("of bitsandbytes has weights of 8 bits (load_in_8bit); "
                       "4 bits (load_in_4bit) are supported");
  const json *is4Bit = fieldOf(object, "load_in_4bit");
  if (!is4Bit || *is4Bit != true)
    return unsupported("of bitsandbytes has no 'load_in_4bit'");
  const json *storage = fieldOf(object, "bnb_4bit_quant_storage");
  if (storage && !isText(*storage, "uint8"))
    return unsupported("has 'bnb_4bit_quant_storage' " + shortDump(*storage) +
                       ", which is not supported (supported: uint8)");
  return Status();
}

/// Without an algorithm, no weights are quantized: the KV cache alone may be.
Status checkModelOpt(const json &object, const char *field = kField) {
  const json *algorithm = fieldOf(object, "quant_algo");
  if (!algorithm)
    return Status();
  for (const char *known : {"FP8", "FP8_PER_CHANNEL_PER_TOKEN", "NVFP4"})
    if (isText(*algorithm, known))
      return Status();
  return unsupported("of modelopt has 'quant_algo' " + shortDump(*algorithm) +
                         ", which is not supported (supported: FP8, "
                         "FP8_PER_CHANNEL_PER_TOKEN, NVFP4)",
                     field);
}

/// readCacheScales() of what the field `field` of `file` says.
Result<bool> readCacheScalesOf(const json &object, const char *file,
                               const char *field,
                               std::vector<std::string> &warnings) {
  const json *scheme = fieldOf(object, "kv_cache_scheme");
  const json *algorithm = fieldOf(object, "kv_cache_quant_algo");
  if (scheme && !scheme->is_object())
    return unsupported("has 'kv_cache_scheme' " + shortDump(*scheme) +
                           " where an object is expected",
                       field);
  if (algorithm && !algorithm->is_string())
    return unsupported("has 'kv_cache_quant_algo' " + shortDump(*algorithm) +
                           " where a text is expected",
                       field);
  if (!scheme && !algorithm)
    return false;
  warnings.push_back(
      std::string(file) + ": '" + field + "' has '" +
      (scheme ? "kv_cache_scheme" : "kv_cache_quant_algo") +
      "', a rounding of the KV cache that is not done here: its scales "
      "(k_scale and v_scale) are not read, and --cache-type says what the "
      "cache is of");
  return true;
}

} // namespace

Status kf::checkQuantization(const ConfigReader &reader) {
  const json *value = reader.find(kField);
  if (!value || !value->is_object())
    return checkNeutral(reader, kField, NeutralValue::Off);
  const json *method = fieldOf(*value, "quant_method");
  if (method && isText(*method, "compressed-tensors"))
    return checkCompressedTensors(*value);
  if (method && isText(*method, "bitsandbytes"))
    return checkBitsAndBytes(*value);
  if (method && isText(*method, "modelopt"))
    return checkModelOpt(*value);
  for (const char *name : {"fbgemm_fp8", "mxfp4"})
    if (method && isText(*method, name))
      return Status();
  if (method && isText(*method, "fp8")) {
    const json *block = fieldOf(*value, "weight_block_size");
    if (!block || isBlockOf(*block, 128))
      return Status();
    return unsupported("has blocks of " + shortDump(*block) +
                       "; [128,128] is supported");
  }
  // AWQ, GPTQ and others have layouts of their own.
  if (method && method->is_string())
    return Status::error(
        "'" + std::string(kField) + "' is of the method " +
        inQuotes(method->get_ref<const std::string &>()) +
        ", whose weights are not read; take the model as it was before, of "
        "f16 or bf16, which 'kf-run quantize' makes smaller, or a GGUF file of "
        "it");
  return checkNeutral(reader, kField, NeutralValue::Off);
}

Result<bool> kf::readCacheScales(const ConfigReader &reader,
                                 std::vector<std::string> &warnings) {
  const json *value = reader.find(kField);
  if (!value || !value->is_object())
    return false;
  const json *method = fieldOf(*value, "quant_method");
  if (!method ||
      (!isText(*method, "modelopt") && !isText(*method, "compressed-tensors")))
    return false;
  return readCacheScalesOf(*value, "config.json", kField, warnings);
}

Result<bool> kf::readModelOptFile(const json &file,
                                  std::vector<std::string> &warnings) {
  const json *value =
      file.is_object() ? fieldOf(file, kModelOptField) : nullptr;
  if (!value || !value->is_object())
    return Status::error("there is no object '" + std::string(kModelOptField) +
                         "'");
  KF_RETURN_IF_ERROR(checkModelOpt(*value, kModelOptField));
  return readCacheScalesOf(*value, "hf_quant_config.json", kModelOptField,
                           warnings);
}
