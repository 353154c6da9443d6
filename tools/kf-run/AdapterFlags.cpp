//===- AdapterFlags.cpp - Adapters that a model is opened with ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AdapterFlags.h"

#include "runtime/core/Quote.h"

#include <algorithm>
#include <filesystem>

using namespace kf;

/// "kf-stories" of "models/kf-stories/", "a" of "b/a.gguf".
static std::string nameOfModel(const std::string &path) {
  if (path.empty())
    return "kf-stories";
  const std::filesystem::path file =
      (std::filesystem::path(path) / "").parent_path();
  return file.extension() == ".gguf" ? file.stem().string()
                                     : file.filename().string();
}

/// What "NAME=PATH" or "PATH" says. A path alone may have a '='; the name is
/// then the folder's.
static AdapterChoice parseAdapter(const std::string &text) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const size_t equals = text.find('=');
  if (equals != std::string::npos && !fs::exists(text, ignored))
    return {text.substr(0, equals), text.substr(equals + 1)};
  fs::path path = fs::path(text).lexically_normal();
  if (!path.has_filename())
    path = path.parent_path();
  return {path.filename().string(), text};
}

void AdapterFlags::addTo(OptionParser &parser) {
  parser.texts({"lora", 0, "NAME=PATH"}, given,
               "an adapter in PEFT's format, a folder, beside the model; PATH "
               "alone has the folder's name. Given again, there are several");
  parser.addCheck([this]() -> Status {
    for (const std::string &text : given) {
      choices.push_back(parseAdapter(text));
      KF_RETURN_IF_ERROR(checkAdapterName(choices.back().name));
    }
    return Status();
  });
}

void AdapterFlags::addOneTo(OptionParser &parser) {
  addTo(parser);
  parser.text({"adapter", 0, "NAME"}, adapter,
              "which of several adapters (--lora) is used");
  parser.addCheck([this]() -> Status {
    if (!adapter.empty() && choices.empty())
      return Status::error("--adapter is for models with adapters; --lora "
                           "NAME=PATH adds one");
    if (choices.size() > 1 && adapter.empty())
      return Status::error("there are several --lora; --adapter NAME says "
                           "which one");
    if (adapter.empty() && choices.size() == 1)
      adapter = choices.front().name;
    return Status();
  });
}

void AdapterFlags::addNamesTo(OptionParser &parser, const std::string &path) {
  addTo(parser);
  parser.texts({"alias", 'a', "NAME"}, modelNames,
               "what the model is called, instead of its file's name. May be "
               "given more than once");
  parser.addCheck([this, &path] {
    if (modelNames.empty())
      modelNames.push_back(nameOfModel(path));
    for (const AdapterChoice &choice : choices)
      if (std::ranges::find(modelNames, choice.name) != modelNames.end())
        return Status::error("the model and an adapter are both called " +
                             inQuotes(choice.name) +
                             "; --lora NAME=PATH gives the adapter another "
                             "name");
    return Status();
  });
}
