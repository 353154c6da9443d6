//===- Documents.cpp - Files of texts -------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Documents.h"

#include "Report.h"

#include "runtime/core/Json.h"
#include "runtime/core/MappedFile.h"

#include <filesystem>

using namespace kf;

/// By its name.
static bool hasObjectLines(const std::string &path) {
  std::string ending = std::filesystem::path(path).extension().string();
  for (char &c : ending)
    if (c >= 'A' && c <= 'Z')
      c += 'a' - 'A';
  return ending == ".jsonl" || ending == ".ndjson";
}

Result<std::vector<std::string>> kf::readDocuments(const std::string &path) {
  KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  if (hasObjectLines(path))
    return Status::error(quotePath(path) +
                         " has a JSON object a line, and texts are expected; "
                         "give a file of one text, or a .json file with an "
                         "array of texts");
  if (!path.ends_with(".json"))
    return std::vector<std::string>{std::string(file.text())};
  Result<JsonDocument> parsed = parseJson(file.text());
  if (!parsed.ok())
    return parsed.status().in(quotePath(path));
  const nlohmann::json *json = &**parsed;
  if (!json->is_array())
    return Status::error(quotePath(path) + " holds no array of texts");
  std::vector<std::string> documents;
  for (const nlohmann::json &item : *json) {
    if (!item.is_string())
      return Status::error(quotePath(path) + ": item " +
                           std::to_string(documents.size()) +
                           " of the array is not a text");
    documents.push_back(item.get<std::string>());
  }
  return documents;
}
