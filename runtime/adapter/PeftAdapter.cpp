//===- PeftAdapter.cpp - Adapters in PEFT's format ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/adapter/PeftAdapter.h"

#include "runtime/adapter/ModulePattern.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/JsonText.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Quote.h"
#include "runtime/core/ShapeText.h"
#include "runtime/core/WriteFile.h"
#include "runtime/io/SafetensorsWriter.h"
#include "runtime/model/ConfigReader.h"
#include "runtime/model/UnsupportedFields.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>

using namespace kf;
using nlohmann::json;

namespace {

constexpr std::string_view kConfigFile = "adapter_config.json";
constexpr std::string_view kTensorsFile = "adapter_model.safetensors";

/// More lines than a matrix of any model has.
constexpr int64_t kMostRank = 1 << 16;

/// Factors are of f32.
constexpr double kMostAlpha = std::numeric_limits<float>::max();

/// Fields that would change the result, unless they do nothing.
constexpr const char *kUnsupported[] = {"alora_invocation_tokens",
                                        "arrow_config",
                                        "kasa_config",
                                        "layer_replication",
                                        "layers_pattern",
                                        "monteclora_config",
                                        "layers_to_transform",
                                        "lora_bias",
                                        "megatron_config",
                                        "modules_to_save",
                                        "target_parameters",
                                        "trainable_token_indices",
                                        "use_bdlora",
                                        "use_dora",
                                        "use_qalora"};

/// How A and B may have begun; other ways change the model's own weights.
constexpr std::string_view kInitializers[] = {"gaussian", "eva", "orthogonal"};

/// Reads one adapter_config.json.
class ConfigParser {
public:
  ConfigParser(const json &config, const ModelConfig &model)
      : reader(config), model(model) {}

  Result<std::vector<AdaptedModule>> parse() {
    KF_RETURN_IF_ERROR(checkFields());
    KF_ASSIGN_OR_RETURN(const int64_t rank, reader.integer("r", 1, kMostRank));
    KF_ASSIGN_OR_RETURN(const double alpha,
                        reader.number("lora_alpha", 0, kMostAlpha));
    KF_ASSIGN_OR_RETURN(const bool isStabilized,
                        reader.boolean("use_rslora", false));
    KF_ASSIGN_OR_RETURN(const auto targets, patternsOf("target_modules"));
    if (!targets)
      return Status::error("'target_modules' is missing: a list of names or a "
                           "regular expression is expected");
    KF_ASSIGN_OR_RETURN(const auto others, patternsOf("exclude_modules"));
    KF_RETURN_IF_ERROR(readPatterns("rank_pattern", ranks));
    KF_RETURN_IF_ERROR(readPatterns("alpha_pattern", alphas));

    std::vector<AdaptedModule> result;
    for (LoraModule &module : loraModules(model)) {
      KF_ASSIGN_OR_RETURN(const bool isTarget, targets->matches(module.name));
      if (!isTarget)
        continue;
      if (others) {
        KF_ASSIGN_OR_RETURN(const bool isOther, others->matches(module.name));
        if (isOther)
          continue;
      }
      KF_ASSIGN_OR_RETURN(const double own, valueOf("rank_pattern", ranks,
                                                    module.name, double(rank)));
      LoraConfig config;
      config.rank = static_cast<int64_t>(own);
      config.rankStabilized = isStabilized;
      KF_ASSIGN_OR_RETURN(config.alpha,
                          valueOf("alpha_pattern", alphas, module.name, alpha));
      result.push_back({std::move(module), config.rank, config.scale()});
    }
    if (result.empty())
      return Status::error(
          reader.quoted("target_modules") +
          ", which names no module of this model that adapters "
          "may add to");
    return result;
  }

private:
  Status checkFields() const {
    KF_ASSIGN_OR_RETURN(const std::string type, reader.text("peft_type"));
    if (type != "LORA")
      return reader.unexpected("peft_type", "\"LORA\"");
    KF_ASSIGN_OR_RETURN(const std::string bias, reader.text("bias", "none"));
    if (bias != "none")
      return reader.unexpected("bias", "\"none\"");
    for (const char *name : kUnsupported)
      KF_RETURN_IF_ERROR(checkNeutral(reader, name, NeutralValue::Off));
    if (const json *init = reader.find("init_lora_weights");
        init && !init->is_boolean() &&
        std::ranges::none_of(kInitializers, [&](std::string_view name) {
          return isText(*init, name);
        }))
      return reader.unexpected(
          "init_lora_weights",
          "true, false or \"gaussian\", which leave the model's own weights as "
          "they are,");
    KF_ASSIGN_OR_RETURN(const bool isTransposed,
                        reader.boolean("fan_in_fan_out", false));
    const std::vector<LoraModule> modules = loraModules(model);
    if (isTransposed && !modules.empty() && !modules.front().transposed)
      return reader.unexpected("fan_in_fan_out",
                               "false for this model, whose matrices are [out, "
                               "in],");
    return Status();
  }

  /// The modules that a field names; none where it is absent.
  Result<std::optional<ModulePatterns>> patternsOf(const char *field) const {
    const json *value = reader.find(field);
    if (!value)
      return std::optional<ModulePatterns>();
    if (value->is_string()) {
      Result<ModulePatterns> patterns =
          ModulePatterns::ofExpression(value->get_ref<const std::string &>());
      if (!patterns.ok())
        return patterns.status().in(reader.quoted(field));
      return std::optional(patterns.take());
    }
    std::vector<std::string> names;
    const bool isList =
        value->is_array() && std::ranges::all_of(*value, [&](const json &name) {
          if (name.is_string())
            names.push_back(name.get_ref<const std::string &>());
          return name.is_string();
        });
    if (!isList)
      return reader.unexpected(field,
                               "a list of names or a regular expression");
    return std::optional(ModulePatterns::ofNames(std::move(names)));
  }

  struct Pattern {
    std::string key;
    ModulePatterns modules;
    double value;
  };
  using Patterns = std::vector<Pattern>;

  /// An object of regular expressions with numbers.
  Status readPatterns(const char *field, Patterns &patterns) const {
    const json *value = reader.find(field);
    if (!value)
      return Status();
    if (!value->is_object())
      return reader.unexpected(field, "an object of names with numbers");
    const ConfigReader own(*value, std::string(field) + ".");
    for (const auto &[name, number] : value->items()) {
      double read = 0;
      if (&patterns == &ranks) {
        KF_ASSIGN_OR_RETURN(const int64_t rank,
                            own.integer(name, 1, kMostRank));
        read = static_cast<double>(rank);
      } else {
        KF_ASSIGN_OR_RETURN(read, own.number(name, 0, kMostAlpha));
      }
      Result<ModulePatterns> pattern = ModulePatterns::ofEnd(name);
      if (!pattern.ok())
        return pattern.status().in(own.quoted(name));
      patterns.push_back({name, pattern.take(), read});
    }
    return Status();
  }

  /// What the patterns of a field say of a module. PEFT takes the first that
  /// matches; objects here have lost their order, so that several agree or are
  /// an error.
  static Result<double> valueOf(const char *field, const Patterns &patterns,
                                const std::string &module, double otherwise) {
    const Pattern *found = nullptr;
    for (const Pattern &pattern : patterns) {
      KF_ASSIGN_OR_RETURN(const bool matches, pattern.modules.matches(module));
      if (!matches)
        continue;
      if (found && found->value != pattern.value)
        return Status::error(
            "'" + std::string(field) + "' has " + inQuotes(found->key) +
            " and " + inQuotes(pattern.key) + " for " + inQuotes(module) +
            " with different values; one of them is to match");
      found = &pattern;
    }
    return found ? found->value : otherwise;
  }

  ConfigReader reader;
  const ModelConfig &model;
  Patterns ranks, alphas;
};

/// The whole of a tensor, widened.
Result<std::vector<float>> widened(const Safetensors &tensors,
                                   const std::string &name) {
  KF_ASSIGN_OR_RETURN(const TensorView view, tensors.find(name));
  KF_ASSIGN_OR_RETURN(const int64_t count, checkedElementCount(view.shape));
  std::vector<float> values(static_cast<size_t>(count));
  KF_RETURN_IF_ERROR(
      convertToFloat(view.type, view.data, count, values.data()));
  if (const auto bad = std::ranges::find_if_not(
          values, [](float value) { return std::isfinite(value); });
      bad != values.end())
    return Status::error("tensor " + inQuotes(name) +
                         " has elements that are not finite");
  return values;
}

std::string fileIn(const std::string &folder, std::string_view name) {
  return (std::filesystem::path(folder) / name).string();
}

} // namespace

Result<std::vector<AdaptedModule>>
kf::parsePeftConfig(std::string_view text, const ModelConfig &model) try {
  KF_ASSIGN_OR_RETURN(const JsonDocument config, parseJson(text));
  if (!config->is_object())
    return Status::error("it is no JSON object");
  return ConfigParser(*config, model).parse();
} catch (...) {
  return statusOfException();
}

/// An error unless `tensors` are A and B of `modules`, and no others.
static Status checkTensors(const Safetensors &tensors,
                           const std::vector<AdaptedModule> &modules) {
  const std::vector<std::string> names = tensors.names();
  std::set<std::string> left(names.begin(), names.end());
  for (const AdaptedModule &each : modules)
    for (const auto &[name, shape] :
         {std::pair(each.module.nameOfA(),
                    std::vector{each.rank, each.module.in}),
          std::pair(each.module.nameOfB(),
                    std::vector{each.module.out, each.rank})}) {
      KF_ASSIGN_OR_RETURN(const TensorView view, tensors.find(name));
      if (view.shape != shape)
        return Status::error(
            "tensor " + inQuotes(name) + " has shape " + shapeText(view.shape) +
            ", but the configuration and the model imply " + shapeText(shape));
      if (!isFloat(view.type))
        return Status::error("tensor " + inQuotes(name) + " has type " +
                             std::string(nameOf(view.type)) +
                             "; f32, f16 and bf16 are read");
      left.erase(name);
    }
  if (!left.empty())
    return Status::error("tensor " + inQuotes(*left.begin()) +
                         " is of no module that 'target_modules' names and "
                         "adapters may add to");
  return Status();
}

/// What a folder is that is no adapter, if that is known; after a comma.
static std::string otherFolder(const std::string &path) {
  if (std::filesystem::exists(fileIn(path, "config.json")))
    return ", but is a model's folder; adapters are added to one";
  if (std::filesystem::exists(fileIn(path, "checkpoint.json")))
    return ", but is a checkpoint, which --resume reads; a training writes its "
           "adapter beside it when it ends";
  return ", which PEFT writes";
}

Result<PeftAdapter> PeftAdapter::open(const std::string &path,
                                      const ModelConfig &model) try {
  if (!std::filesystem::is_directory(path))
    return Status::error(
        "adapter " + inQuotes(path) + ": it is no folder; one with " +
            std::string(kConfigFile) + " and " + std::string(kTensorsFile) +
            ", as PEFT writes them, is expected",
        StatusCode::NotFound);
  PeftAdapter adapter;
  const std::string config = fileIn(path, kConfigFile);
  if (!std::filesystem::exists(config))
    return Status::error("adapter " + inQuotes(path) + ": it holds no " +
                             std::string(kConfigFile) + otherFolder(path),
                         StatusCode::NotFound);
  KF_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(config));
  const std::span<const std::byte> bytes = file.bytes();
  Result<std::vector<AdaptedModule>> modules = parsePeftConfig(
      {reinterpret_cast<const char *>(bytes.data()), bytes.size()}, model);
  if (!modules.ok())
    return modules.status().in(config);
  adapter.all = modules.take();
  adapter.file = fileIn(path, kTensorsFile);
  KF_ASSIGN_OR_RETURN(adapter.tensors, Safetensors::open(adapter.file));
  KF_RETURN_IF_ERROR(
      checkTensors(*adapter.tensors, adapter.all).in(adapter.file));
  return adapter;
} catch (...) {
  return statusOfException();
}

Result<std::vector<float>> PeftAdapter::values(const std::string &name) const {
  Result<std::vector<float>> values = widened(*tensors, name);
  if (!values.ok())
    return values.status().in(file);
  return values;
}

Result<std::vector<float>> PeftAdapter::a(const AdaptedModule &of) const {
  return values(of.module.nameOfA());
}

Result<std::vector<float>> PeftAdapter::b(const AdaptedModule &of) const {
  return values(of.module.nameOfB());
}

uint64_t PeftAdapter::bytes() const {
  uint64_t sum = 0;
  for (const std::string &name : tensors->names())
    if (const Result<TensorView> view = tensors->describe(name); view.ok())
      sum += view->bytes;
  return sum;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static std::string configText(const LoraConfig &config,
                              const std::string &baseModel, bool isTransposed) {
  const bool isAll =
      config.targets.size() == 1 && config.targets.front() == kAllLinear;
  const std::string targets =
      isAll ? jsonText(kAllLinear) : jsonArray(config.targets);
  const std::string text =
      jsonObject({{"base_model_name_or_path", jsonText(baseModel)},
                  {"bias", jsonText("none")},
                  {"fan_in_fan_out", jsonText(isTransposed)},
                  {"inference_mode", jsonText(true)},
                  {"init_lora_weights", jsonText(true)},
                  {"lora_alpha", jsonText(config.alpha)},
                  {"lora_dropout", jsonText(config.dropout)},
                  {"modules_to_save", "null"},
                  {"peft_type", jsonText("LORA")},
                  {"r", jsonText(config.rank)},
                  {"target_modules", targets},
                  {"task_type", jsonText("CAUSAL_LM")},
                  {"use_rslora", jsonText(config.rankStabilized)}});
  return text + "\n";
}

Status
kf::writePeftAdapter(const std::string &path, const LoraConfig &config,
                     const ModelConfig &model, const std::string &baseModel,
                     const std::map<std::string, HostTensor> &tensors) try {
  KF_ASSIGN_OR_RETURN(const std::vector<LoraModule> modules,
                      findLoraModules(model, config.targets));
  std::map<std::string, HostTensor> written;
  for (const LoraModule &module : modules)
    for (const auto &[name, shape] :
         {std::pair(module.nameOfA(), std::vector{config.rank, module.in}),
          std::pair(module.nameOfB(), std::vector{module.out, config.rank})}) {
      const auto it = tensors.find(name);
      if (it == tensors.end())
        return Status::error("the adapter lacks tensor " + inQuotes(name));
      if (it->second.shape != shape)
        return Status::error("tensor " + inQuotes(name) + " has shape " +
                             shapeText(it->second.shape) +
                             ", but the configuration implies " +
                             shapeText(shape));
      written.emplace(name, it->second);
    }
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code)
    return Status::error("cannot make the folder '" + path +
                         "': " + code.message());
  // The configuration last, and an older one first: a folder with both is
  // complete.
  std::filesystem::remove(fileIn(path, kConfigFile), code);
  if (code)
    return Status::error("cannot replace '" + fileIn(path, kConfigFile) +
                         "': " + code.message());
  KF_RETURN_IF_ERROR(writeSafetensors(fileIn(path, kTensorsFile), written,
                                      {.metadata = {{"format", "pt"}}}));
  return writeFile(fileIn(path, kConfigFile),
                   configText(config, baseModel, modules.front().transposed));
} catch (...) {
  return statusOfException();
}
