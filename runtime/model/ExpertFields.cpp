//===- ExpertFields.cpp - What config.json says of experts ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/ExpertFields.h"

#include "runtime/model/ConfigLimits.h"

#include <algorithm>
#include <cmath>
#include <vector>

using namespace kf;
using nlohmann::json;

namespace {

std::optional<int64_t> unlessZero(int64_t value) {
  return value ? std::optional(value) : std::nullopt;
}

/// The field that has the number of experts; an error where both have one, and
/// they disagree.
Result<const char *> nameOfCount(const ConfigReader &reader,
                                 const ExpertFields &fields) {
  if (!fields.otherCount)
    return fields.count;
  const json *value = reader.find(fields.count);
  const json *other = reader.find(fields.otherCount);
  if (value && other && *value != *other)
    return Status::error(reader.quoted(fields.count) + ", but " +
                         reader.quoted(fields.otherCount));
  return value || !other ? fields.count : fields.otherCount;
}

/// Sets `have` to `value` for the layers in the list `name`, if there is one.
Status markLayers(const ConfigReader &reader, const char *name, bool value,
                  std::vector<bool> &have) {
  const json *list = name ? reader.find(name) : nullptr;
  if (!list)
    return Status();
  const size_t layers = have.size();
  const std::string expected =
      "a list of layers, 0 to " + std::to_string(layers - 1) + ",";
  if (!list->is_array())
    return reader.unexpected(name, expected);
  for (const json &layer : *list) {
    if (!layer.is_number_integer() || layer < 0 || layer >= layers)
      return reader.unexpected(name, expected);
    have[layer.get<size_t>()] = value;
  }
  return Status();
}

/// "'name' is <value>", the default's where the field is absent.
std::string spelled(const ConfigReader &reader, const char *name,
                    int64_t value) {
  return reader.find(name) ? reader.quoted(name)
                           : "'" + std::string(name) + "' is " +
                                 std::to_string(value) + " by default";
}

/// Groups of experts, and how many are kept; one group is none. `count` names
/// the number of experts.
Status readGroups(const ConfigReader &reader, const ExpertFields &fields,
                  const char *count, ExpertsConfig &experts) {
  KF_ASSIGN_OR_RETURN(
      const int64_t groups,
      reader.integer(fields.groups, 1, kMaxExperts, fields.defaultGroups));
  KF_ASSIGN_OR_RETURN(const int64_t kept,
                      reader.integer(fields.keptGroups, 1, kMaxExperts,
                                     fields.defaultKeptGroups));
  if (kept > groups)
    return Status::error(spelled(reader, fields.keptGroups, kept) + ", but " +
                         spelled(reader, fields.groups, groups) +
                         ": no more groups can be kept than there are");
  if (groups == 1)
    return Status();
  if (experts.count % groups != 0 || experts.count / groups < 2)
    return Status::error(spelled(reader, fields.groups, groups) + ", but '" +
                         count + "' " + std::to_string(experts.count) +
                         " make no such groups of two or more");
  if (kept * (experts.count / groups) < experts.chosen)
    return Status::error(spelled(reader, fields.keptGroups, kept) +
                         ", but as many groups have " +
                         std::to_string(kept * (experts.count / groups)) +
                         " experts, fewer than '" + fields.chosen + "' " +
                         std::to_string(experts.chosen));
  experts.groups = groups;
  experts.keptGroups = kept;
  return Status();
}

/// Which layers have experts.
Result<std::vector<bool>> readLayersWithExperts(const ConfigReader &reader,
                                                const ExpertFields &fields,
                                                int64_t layers) {
  std::vector<bool> have(layers, true);
  if (fields.step) {
    KF_ASSIGN_OR_RETURN(const int64_t step,
                        reader.integer(fields.step, 1, kMaxLayers, 1));
    for (int64_t i = 0; i < layers; ++i)
      have[i] = (i + 1) % step == 0;
  }
  if (fields.layers && reader.find(fields.layers))
    have.assign(layers, false);
  KF_RETURN_IF_ERROR(markLayers(reader, fields.layers, true, have));
  KF_RETURN_IF_ERROR(markLayers(reader, fields.plainLayers, false, have));
  if (fields.firstPlain) {
    KF_ASSIGN_OR_RETURN(const int64_t first,
                        reader.integer(fields.firstPlain, 0, kMaxLayers,
                                       fields.defaultFirstPlain));
    std::fill_n(have.begin(), std::min(first, layers), false);
  }
  return have;
}

} // namespace

Status kf::readExperts(const ConfigReader &reader, const Family &family,
                       ModelConfig &config) {
  const ExpertFields &fields = family.experts;
  if (!fields.count)
    return Status();
  if (fields.enabled) {
    KF_ASSIGN_OR_RETURN(const bool enabled,
                        reader.boolean(fields.enabled, false));
    if (!enabled)
      return Status();
  }
  ExpertsConfig &experts = config.experts;
  KF_ASSIGN_OR_RETURN(const char *count, nameOfCount(reader, fields));
  KF_ASSIGN_OR_RETURN(
      experts.count,
      reader.integer(count, 1, kMaxExperts, unlessZero(fields.defaultCount)));
  if (experts.count * config.layers > kMaxModelExperts)
    return Status::error(
        "'" + std::string(count) + "' " + std::to_string(experts.count) +
        " times '" + family.layers + "' " + std::to_string(config.layers) +
        " is " + std::to_string(experts.count * config.layers) + "; at most " +
        std::to_string(kMaxModelExperts) + " experts are possible");
  KF_ASSIGN_OR_RETURN(experts.chosen,
                      reader.integer(fields.chosen, 1, kMaxExperts,
                                     unlessZero(fields.defaultChosen)));
  if (experts.chosen > experts.count)
    return Status::error("'" + std::string(fields.chosen) + "' " +
                         std::to_string(experts.chosen) + " is more than '" +
                         count + "' " + std::to_string(experts.count));
  KF_ASSIGN_OR_RETURN(experts.width,
                      reader.integer(fields.width, 1, kMaxSize,
                                     unlessZero(fields.defaultWidth)));
  experts.sigmoid = fields.sigmoid;
  experts.weighsInputs = fields.weighsInputs;
  experts.normalized = !fields.sigmoid;
  if (fields.normalized) {
    KF_ASSIGN_OR_RETURN(
        experts.normalized,
        reader.boolean(fields.normalized, fields.defaultNormalized));
  }
  if (fields.sharedWidth) {
    KF_ASSIGN_OR_RETURN(experts.sharedWidth,
                        reader.integer(fields.sharedWidth, 1, kMaxSize,
                                       unlessZero(fields.defaultSharedWidth)));
    experts.sharedGate = fields.sharedGate;
  }
  if (fields.sharedCount) {
    KF_ASSIGN_OR_RETURN(const int64_t shared,
                        reader.integer(fields.sharedCount, 0, kMaxExperts,
                                       reader.isNull(fields.sharedCount)
                                           ? 0
                                           : fields.defaultSharedCount));
    experts.sharedWidth = shared * experts.width;
    if (experts.sharedWidth > kMaxSize)
      return Status::error(reader.quoted(fields.sharedCount) +
                           ", which times '" + fields.width + "' " +
                           std::to_string(experts.width) + " is " +
                           std::to_string(experts.sharedWidth) + "; at most " +
                           std::to_string(kMaxSize) + " is possible");
  }
  experts.choiceBias = fields.choiceBias;
  if (fields.groups)
    KF_RETURN_IF_ERROR(readGroups(reader, fields, count, experts));
  if (fields.scale) {
    KF_ASSIGN_OR_RETURN(experts.scale,
                        reader.positive(fields.scale, fields.defaultScale));
    if (!std::isnormal(static_cast<float>(experts.scale)))
      return reader.unexpected(fields.scale, "a normal f32");
  }
  experts.bias = fields.bias;
  experts.besideBlock = fields.besideBlock;
  experts.routerNorm = fields.routerNorm;
  experts.scales = fields.scales;
  if (fields.clampLimit) {
    GateClamp &clamp = experts.clamp.emplace();
    KF_ASSIGN_OR_RETURN(clamp.limit, reader.positive(fields.clampLimit,
                                                     fields.defaultClampLimit));
    KF_ASSIGN_OR_RETURN(clamp.alpha, reader.positive(fields.clampAlpha,
                                                     fields.defaultClampAlpha));
  }
  KF_ASSIGN_OR_RETURN(const std::vector<bool> have,
                      readLayersWithExperts(reader, fields, config.layers));
  for (int64_t i = 0; i < config.layers; ++i)
    config.layerConfigs[i].hasExperts = have[i];
  return Status();
}
