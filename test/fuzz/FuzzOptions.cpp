//===- FuzzOptions.cpp - A file of options --------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/kf-run/ConfigFile.h"
#include "tools/kf-run/NearestName.h"

#include <cstdlib>

using namespace kf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  constexpr std::string_view commands[] = {"chat", "serve"};
  const Result<ConfigFile> file = ConfigFile::parse(text, "serve", commands);
  if (!file.ok())
    return 0;
  for (const auto *entries : {&file->common, &file->own})
    for (const ConfigEntry &entry : *entries) {
      if (entry.name.find('_') != entry.name.npos)
        std::abort();
      (void)nearestName(entry.name, commands);
      for (OptionKind kind :
           {OptionKind::Flag, OptionKind::Text, OptionKind::Texts,
            OptionKind::MaybeText, OptionKind::Integer, OptionKind::Integers,
            OptionKind::Real, OptionKind::Bytes}) {
        const auto values = optionValues(entry, kind);
        if (!values.ok())
          continue;
        for (const std::optional<std::string> &value : *values)
          if (value && value->find('\0') != value->npos)
            std::abort();
      }
    }
  return 0;
}
