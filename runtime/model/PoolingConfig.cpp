//===- PoolingConfig.cpp - How a model's embeddings are made --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/PoolingConfig.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Quote.h"
#include "runtime/model/ConfigReader.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

using namespace kf;
using nlohmann::json;

namespace {

/// Both files are a few hundred bytes.
constexpr size_t kMostBytes = size_t(1) << 16;
constexpr size_t kMostModules = 16;

constexpr std::string_view kAdvice =
    "; --pooling mean, cls or last takes rows of the last layer instead";

Status unsupported(const std::string &what) {
  return Status::error(what + std::string(kAdvice), StatusCode::Unsupported);
}

/// A JSON file inside `folder`, which errors call `name`.
Result<JsonDocument> readFile(const std::filesystem::path &folder,
                              const std::string &name) {
  const Result<MappedFile> file = MappedFile::open((folder / name).string());
  if (!file.ok())
    return Status::error(inQuotes(name) + " cannot be opened",
                         file.status().code());
  if (file->text().size() > kMostBytes)
    return Status::error(
        inQuotes(name) + " has " + std::to_string(file->text().size()) +
        " bytes; at most " + std::to_string(kMostBytes) + " are read");
  Result<JsonDocument> parsed = parseJson(file->text());
  return parsed.ok() ? std::move(parsed)
                     : Result<JsonDocument>(parsed.status().in(inQuotes(name)));
}

/// The name of a class of Python's, without its package.
std::string_view className(std::string_view type) {
  return type.substr(type.rfind('.') + 1); // from 0 where there is no dot
}

/// Whether `path` is a folder inside of another one.
bool isFolderName(std::string_view path) {
  return !path.empty() && path.size() <= 255 && path != "." && path != ".." &&
         path.find_first_of(std::string_view("/\\\0", 3)) == path.npos;
}

/// A mode of sentence-transformers, as its newer files name it, and the field
/// that is true in the others.
struct Mode {
  std::string_view name, field;
  std::optional<Pooling> pooling; ///< none: there is no code for it
};
constexpr Mode kModes[] = {
    {"cls", "pooling_mode_cls_token", Pooling::Cls},
    {"mean", "pooling_mode_mean_tokens", Pooling::Mean},
    {"lasttoken", "pooling_mode_lasttoken", Pooling::Last},
    {"max", "pooling_mode_max_tokens", {}},
    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", {}},
    {"weightedmean", "pooling_mode_weightedmean_tokens", {}},
};

/// What the Pooling module's configuration asks for.
Result<Pooling> readModes(const json &object, const std::string &name) {
  if (!object.is_object())
    return Status::error(inQuotes(name) + " holds no JSON object");
  const ConfigReader reader(object);
  const Mode *found = nullptr;
  auto add = [&](const Mode &mode) {
    if (found)
      return unsupported("it asks for '" + std::string(found->field) +
                         "' and '" + std::string(mode.field) +
                         "' at once, which are not joined here")
          .in(inQuotes(name));
    found = &mode;
    return Status();
  };
  if (reader.contains("pooling_mode")) {
    Result<std::string> said = reader.text("pooling_mode");
    if (!said.ok())
      return said.status().in(inQuotes(name));
    const auto *mode = std::ranges::find(kModes, *said, &Mode::name);
    if (mode == std::end(kModes))
      return unsupported("'pooling_mode' is " + inQuotes(*said) +
                         ", which is not supported")
          .in(inQuotes(name));
    found = mode;
  } else {
    for (const Mode &mode : kModes) {
      Result<bool> isAsked = reader.boolean(mode.field, false);
      if (!isAsked.ok())
        return isAsked.status().in(inQuotes(name));
      if (*isAsked)
        KF_RETURN_IF_ERROR(add(mode));
    }
  }
  if (!found)
    return unsupported("it asks for no pooling that is known")
        .in(inQuotes(name));
  if (!found->pooling)
    return unsupported("'" + std::string(found->field) + "' is not supported")
        .in(inQuotes(name));
  return *found->pooling;
}

/// Modules in the order in which they run: a Transformer, its Pooling, and
/// maybe Normalize.
Result<PoolingConfig> readModules(const std::filesystem::path &folder) {
  constexpr const char *name = "modules.json";
  KF_ASSIGN_OR_RETURN(const JsonDocument modules, readFile(folder, name));
  if (!modules->is_array() || modules->size() > kMostModules)
    return Status::error(inQuotes(name) + " holds no JSON array of at most " +
                         std::to_string(kMostModules) + " modules");
  PoolingConfig config;
  config.normalizes = false;
  std::string poolingFolder;
  for (const json &module : *modules) {
    if (!module.is_object())
      return Status::error(inQuotes(name) + " has a module that is no object");
    const ConfigReader reader(module);
    Result<std::string> type = reader.text("type"), path = reader.text("path");
    for (const Result<std::string> *text : {&type, &path})
      if (!text->ok())
        return text->status().in(inQuotes(name));
    const std::string_view kind = className(*type);
    if (kind == "Pooling" && !isFolderName(*path))
      return Status::error(inQuotes(name) + " has the path " + inQuotes(*path) +
                           ", which is no folder inside the model's");
    if (kind == "Pooling" && poolingFolder.empty())
      poolingFolder = *path;
    else if (kind == "Normalize")
      config.normalizes = true;
    else if (kind != "Transformer" && kind != "Dropout") // a matrix, mostly
      return unsupported("it has a module " + inQuotes(kind) +
                         ", which is not supported")
          .in(inQuotes(name));
  }
  if (poolingFolder.empty())
    return unsupported("it has no Pooling module").in(inQuotes(name));
  const std::string file = poolingFolder + "/config.json";
  KF_ASSIGN_OR_RETURN(const JsonDocument modes, readFile(folder, file));
  KF_ASSIGN_OR_RETURN(config.pooling, readModes(*modes, file));
  return config;
}

PoolingConfig orUnsupported(Result<PoolingConfig> read) {
  if (read.ok())
    return read.take();
  PoolingConfig config;
  config.unsupported = read.status();
  return config;
}

constexpr std::string_view kNames[] = {"none", "mean", "cls", "last"};

} // namespace

std::string_view kf::nameOf(Pooling pooling) {
  return kNames[static_cast<size_t>(pooling)];
}

std::optional<Pooling> kf::poolingOfName(std::string_view name) {
  const auto *found = std::ranges::find(kNames, name);
  if (found == std::end(kNames))
    return std::nullopt;
  return static_cast<Pooling>(found - std::begin(kNames));
}

PoolingConfig kf::loadPoolingConfig(const std::string &folder) {
  return orUnsupported(catchExceptions([&]() -> Result<PoolingConfig> {
    std::error_code ignored;
    const std::filesystem::path path(folder);
    if (!std::filesystem::exists(path / "modules.json", ignored))
      return PoolingConfig();
    return readModules(path);
  }));
}

PoolingConfig kf::readPoolingConfig(const Gguf &gguf) {
  return orUnsupported(catchExceptions([&]() -> Result<PoolingConfig> {
    PoolingConfig config;
    KF_ASSIGN_OR_RETURN(const std::string_view architecture,
                        gguf.getString("general.architecture", ""));
    const std::string key = std::string(architecture) + ".pooling_type";
    KF_ASSIGN_OR_RETURN(const std::optional<uint64_t> type,
                        gguf.findUnsigned(key));
    if (!type || *type == 0)
      return config;
    const std::string metadata = "metadata " + inQuotes(key);
    constexpr uint64_t rank = 4;
    if (*type == rank)
      return unsupported(metadata +
                         " is 4, rank: scores of pairs of texts are not "
                         "supported");
    if (*type > rank)
      return unsupported(metadata + " is " + std::to_string(*type) +
                         ", which is not known");
    config.pooling = static_cast<Pooling>(*type); // the same numbers
    return config;
  }));
}
