//===- TokenizerFiles.cpp - Which reader a path needs ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/MappedFile.h"
#include "runtime/io/Gguf.h"
#include "runtime/text/Tokenizer.h"

#include <sys/stat.h>

using namespace kf;

static bool isFolder(const std::string &path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

static bool exists(const std::string &path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

/// tokenizer.json and GGUF files say what goes around a text; a tokenizer.model
/// does not, and leaves it to the file beside it.
static Status applyConfig(const std::string &path, bool &addBegin,
                          bool &addEnd) {
  KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  Result<JsonDocument> parsed = parseJson(file.text());
  if (!parsed.ok())
    return parsed.status().in(path);
  const nlohmann::json *config = &**parsed;
  for (auto [key, flag] : {std::pair("add_bos_token", &addBegin),
                           std::pair("add_eos_token", &addEnd)}) {
    auto value = config->find(key);
    if (value == config->end() || value->is_null())
      continue;
    if (!value->is_boolean())
      return Status::error(path + ": '" + key + "' is not true or false");
    *flag = value->get<bool>();
  }
  return Status();
}

Result<Tokenizer> Tokenizer::openFolder(const std::string &folder) {
  const std::string model = folder + "/tokenizer.model";
  const std::string json = folder + "/tokenizer.json";
  if (exists(json) || !exists(model))
    return open(json);
  KF_ASSIGN_OR_RETURN(Tokenizer result, open(model));
  bool addBegin = !result.prefix.empty(), addEnd = false;
  const std::string config = folder + "/tokenizer_config.json";
  if (exists(config))
    KF_RETURN_IF_ERROR(applyConfig(config, addBegin, addEnd));
  if (!addBegin)
    result.prefix.clear();
  if (addEnd && result.endId)
    result.suffix.push_back(*result.endId);
  return result;
}

Result<Tokenizer> Tokenizer::open(const std::string &path) try {
  if (isFolder(path))
    return openFolder(path);
  KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  if (Gguf::recognize(file.bytes())) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Gguf> gguf, Gguf::open(path));
    return fromGguf(*gguf);
  }
  // A ModelProto starts with a field number and a type, JSON with a brace.
  std::string_view start = file.text();
  start.remove_prefix(
      std::min(start.find_first_not_of(" \t\r\n"), start.size()));
  if (start.starts_with('{') || path.ends_with(".json"))
    return fromJson(file.text(), path);
  return fromSentencePiece(file.text(), path);
} catch (...) {
  return statusOfException();
}
