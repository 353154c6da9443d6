//===- LayerSizeFields.cpp - Layers of sizes of their own -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/LayerSizeFields.h"

#include "runtime/core/Json.h"
#include "runtime/core/Quote.h"
#include "runtime/model/ConfigLimits.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

using namespace kf;
using nlohmann::json;

namespace {

class LayerSizeReader {
public:
  LayerSizeReader(const ConfigReader &reader, const LayerSizeFields &fields,
                  const std::vector<bool> &slides, ModelConfig &config)
      : reader(reader), fields(fields), slides(slides), config(config) {}

  Status read();

private:
  Status readFullLayers();
  Status readByLayer(const json &object);
  Status readSharing();
  Status readWidths(const json &list);
  Status checkHeads(size_t layer) const;
  Status checkKinds() const;
  void dropModelSizes();

  const ConfigReader &reader;
  const LayerSizeFields &fields;
  const std::vector<bool> &slides;
  ModelConfig &config;
};

std::string layerText(size_t layer) { return "layer " + std::to_string(layer); }

/// The layer that `text` is the number of, as numbers are written; nothing
/// where it is none.
std::optional<size_t> parseLayer(std::string_view text, size_t layers) {
  size_t layer = 0;
  const std::errc error =
      std::from_chars(text.data(), text.data() + text.size(), layer).ec;
  if (error != std::errc() || text != std::to_string(layer) || layer >= layers)
    return std::nullopt;
  return layer;
}

/// What those without a window have, where no field tells single layers.
Status LayerSizeReader::readFullLayers() {
  KF_ASSIGN_OR_RETURN(const int64_t headDim,
                      reader.integer(fields.fullHeadDim, 1, kMaxHeadDim,
                                     fields.defaultFullHeadDim));
  KF_ASSIGN_OR_RETURN(bool ofKeys, reader.boolean(fields.valuesAreKeys, false));
  int64_t kvHeads = config.kvHeads;
  if (ofKeys) {
    KF_ASSIGN_OR_RETURN(kvHeads, reader.integer(fields.fullKvHeads, 1, kMaxSize,
                                                config.kvHeads));
  }
  for (size_t i = 0; i < slides.size(); ++i)
    if (!slides[i]) {
      config.layerConfigs[i].headDim = headDim;
      config.layerConfigs[i].kvHeads = kvHeads;
    }
  return Status();
}

Status LayerSizeReader::readByLayer(const json &object) {
  const std::string name = fields.byLayer;
  if (!object.is_object())
    return reader.unexpected(name, "an object of layers by number");
  for (const auto &[key, value] : object.items()) {
    const std::optional<size_t> layer = parseLayer(key, slides.size());
    if (!layer)
      return Status::error("'" + name + "' has a layer " + inQuotes(key) +
                           ", but the model has layers 0 to " +
                           std::to_string(slides.size() - 1));
    const std::string place = name + "." + key;
    if (!value.is_object())
      return Status::error("'" + place + "' is " + shortDump(value) +
                           ", but an object is expected");
    const ConfigReader sizes(value, place + ".");
    for (const auto &[field, unused] : value.items())
      if (field != "head_dim" && field != "num_key_value_heads")
        return Status::error("'" + place + "' has a field " + inQuotes(field) +
                                 ", which is not supported (supported: "
                                 "head_dim, num_key_value_heads)",
                             StatusCode::Unsupported);
    LayerConfig &own = config.layerConfigs[*layer];
    KF_ASSIGN_OR_RETURN(
        own.headDim, sizes.integer("head_dim", 1, kMaxHeadDim, config.headDim));
    KF_ASSIGN_OR_RETURN(own.kvHeads, sizes.integer("num_key_value_heads", 1,
                                                   kMaxSize, config.kvHeads));
  }
  return Status();
}

/// An error unless queries share the KV heads that a layer has of its own, and
/// can be turned.
Status LayerSizeReader::checkHeads(size_t layer) const {
  const LayerConfig &stated = config.layerConfigs[layer];
  if (stated.headDim == 0 && stated.kvHeads == 0)
    return Status();
  const LayerConfig own = config.layer(static_cast<int64_t>(layer));
  if (config.heads % own.kvHeads != 0)
    return Status::error(layerText(layer) + " has " +
                         std::to_string(own.kvHeads) +
                         " KV heads, of which 'num_attention_heads' " +
                         std::to_string(config.heads) + " is no multiple");
  if (own.headDim % 2 != 0)
    return Status::error(layerText(layer) + " has a head dimension of " +
                         std::to_string(own.headDim) +
                         ", which is odd; rotary embedding needs an even one");
  if (config.heads * own.headDim > kMaxSize)
    return Status::error(
        layerText(layer) + " has 'num_attention_heads' times " + "heads of " +
        std::to_string(own.headDim) + ", which is " +
        std::to_string(config.heads * own.headDim) + "; at most " +
        std::to_string(kMaxSize) + " is possible");
  return Status();
}

/// RoPE is one for all layers with a window, and one for all others.
Status LayerSizeReader::checkKinds() const {
  for (size_t i = 0; i < slides.size(); ++i) {
    const size_t first = static_cast<size_t>(
        std::ranges::find(slides, slides[i]) - slides.begin());
    const int64_t own = config.layer(static_cast<int64_t>(i)).headDim;
    const int64_t other = config.layer(static_cast<int64_t>(first)).headDim;
    if (own != other)
      return Status::error(
          layerText(i) + " has heads of " + std::to_string(own) +
              " elements, but " + layerText(first) + " of " +
              std::to_string(other) + ", and both have " +
              (slides[i] ? "a" : "no") + " window; this is not supported",
          StatusCode::Unsupported);
  }
  return Status();
}

Status LayerSizeReader::readSharing() {
  const auto layers = static_cast<int64_t>(slides.size());
  const int64_t otherwise =
      layers > fields.defaultSharing ? fields.defaultSharing : 0;
  KF_ASSIGN_OR_RETURN(const int64_t sharing,
                      reader.integer(fields.sharing, 0, layers - 1, otherwise));
  bool isDouble = false;
  if (fields.doubleWidth) {
    KF_ASSIGN_OR_RETURN(isDouble, reader.boolean(fields.doubleWidth, false));
    if (isDouble && sharing > 0 && 2 * config.intermediateSize > kMaxSize)
      return Status::error(
          "'intermediate_size' is " + std::to_string(config.intermediateSize) +
          " and " + reader.quoted(fields.doubleWidth) +
          ", but blocks of twice the width have " +
          std::to_string(2 * config.intermediateSize) + " columns; at most " +
          std::to_string(kMaxSize) + " is possible");
  }
  KF_RETURN_IF_ERROR(shareKeys("'" + std::string(fields.sharing) + "' " +
                                   std::to_string(sharing) + " has ",
                               sharing, slides, config));
  for (LayerConfig &layer : config.layerConfigs)
    if (isDouble && layer.keysOf)
      layer.intermediateSize = 2 * config.intermediateSize;
  return Status();
}

Status LayerSizeReader::readWidths(const json &list) {
  const char *name = "intermediate_size";
  const std::string expected = "a number from 1 to " +
                               std::to_string(kMaxSize) +
                               ", or a list of one for each layer,";
  if (list.size() != slides.size())
    return reader.unexpected(name, expected);
  for (size_t i = 0; i < slides.size(); ++i) {
    const json &width = list[i];
    if (!width.is_number_integer() || width < 1 || width > kMaxSize)
      return reader.unexpected(name, expected);
    config.layerConfigs[i].intermediateSize = width.get<int64_t>();
  }
  return Status();
}

/// Sizes that are the model's are no layer's own: where ranks share the model,
/// they change with it.
void LayerSizeReader::dropModelSizes() {
  for (LayerConfig &layer : config.layerConfigs)
    for (auto [own, size] :
         {std::pair(&layer.headDim, config.headDim),
          std::pair(&layer.kvHeads, config.kvHeads),
          std::pair(&layer.intermediateSize, config.intermediateSize)})
      if (*own == size)
        *own = 0;
}

Status LayerSizeReader::read() {
  if (const json *width = reader.find("intermediate_size");
      fields.listsWidths && width && width->is_array())
    KF_RETURN_IF_ERROR(readWidths(*width));
  if (const json *object =
          fields.byLayer ? reader.find(fields.byLayer) : nullptr)
    KF_RETURN_IF_ERROR(readByLayer(*object));
  else if (fields.fullHeadDim)
    KF_RETURN_IF_ERROR(readFullLayers());
  for (size_t i = 0; i < slides.size(); ++i)
    KF_RETURN_IF_ERROR(checkHeads(i));
  KF_RETURN_IF_ERROR(checkKinds());
  if (fields.sharing)
    KF_RETURN_IF_ERROR(readSharing());
  if (fields.valuesAreKeys) {
    KF_ASSIGN_OR_RETURN(const bool ofKeys,
                        reader.boolean(fields.valuesAreKeys, false));
    for (size_t i = 0; i < slides.size(); ++i)
      config.layerConfigs[i].valuesAreKeys = ofKeys && !slides[i];
  }
  dropModelSizes();
  return Status();
}

} // namespace

Status kf::shareKeys(const std::string &says, int64_t sharing,
                     const std::vector<bool> &slides, ModelConfig &config) {
  const auto first = slides.size() - static_cast<size_t>(sharing);
  for (size_t i = first; i < slides.size(); ++i) {
    size_t from = first;
    while (from > 0 && slides[from - 1] != slides[i])
      --from;
    if (from == 0)
      return Status::error(
          says + layerText(i) + " attend to the keys of an earlier layer " +
          (slides[i] ? "with a" : "without") + " window, and there is none");
    const auto source = static_cast<int64_t>(from - 1);
    const LayerConfig own = config.layer(static_cast<int64_t>(i)),
                      other = config.layer(source);
    if (own.kvHeads != other.kvHeads || own.headDim != other.headDim)
      return Status::error(says + layerText(i) + " attend to the keys of " +
                           layerText(from - 1) + ", which have other sizes");
    config.layerConfigs[i].keysOf = source;
  }
  return Status();
}

Status kf::readLayerSizes(const ConfigReader &reader, const Family &family,
                          const std::vector<bool> &slides,
                          ModelConfig &config) {
  return LayerSizeReader(reader, family.sizes, slides, config).read();
}
