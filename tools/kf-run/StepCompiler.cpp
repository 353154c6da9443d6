//===- StepCompiler.cpp - Steps from the cache or the compiler ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepCompiler.h"

#include "Report.h"

#include <cstring>
#include <link.h>

using namespace kf;

namespace {

/// The linker's identification of this program, so that no program outlives
/// the compiler that made it; empty if there is none.
std::string buildId() {
  std::string id;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *data) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto &segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_NOTE)
            continue;
          const char *at =
              reinterpret_cast<const char *>(info->dlpi_addr + segment.p_vaddr);
          const char *end = at + segment.p_memsz;
          while (end - at >= static_cast<ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
            ElfW(Nhdr) note;
            std::memcpy(&note, at, sizeof(note));
            at += sizeof(note);
            const char *name = at;
            at += (note.n_namesz + 3) & ~3u;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                std::memcmp(name, "GNU", 4) == 0)
              static_cast<std::string *>(data)->assign(at, note.n_descsz);
            at += (note.n_descsz + 3) & ~3u;
          }
        }
        return 1; // the first object is the program itself
      },
      &id);
  return id;
}

} // namespace

Result<StepCompiler> StepCompiler::create(const Model &model,
                                          CompilerOptions options,
                                          bool useCache) {
  StepCompiler result(model, std::move(options));
  KF_ASSIGN_OR_RETURN(result.fingerprint, compilerFingerprint(result.options));
  if (!useCache)
    return result;
  Result<std::string> folder = ExecutableCache::defaultFolder();
  if (!folder.ok()) {
    printWarning(folder.message() + "; going on without the executable cache");
    return result;
  }
  result.cache.emplace(*folder,
                       [](const std::string &line) { printWarning(line); });
  if (Status status = result.cache->prepare(); !status.ok()) {
    printWarning(status.message() + "; compiled programs are not kept");
    result.keeps = false;
  }
  result.signature = signatureOf(model);
  return result;
}

std::string StepCompiler::keyOf(StepKind kind, int64_t maxTokens) const {
  return hashKey({signature, nameOf(kind), std::to_string(maxTokens),
                  fingerprint, buildId()});
}

Result<Executable> StepCompiler::compile(StepKind kind, int64_t maxTokens) {
  std::string key;
  if (cache) {
    key = keyOf(kind, maxTokens);
    KF_ASSIGN_OR_RETURN(std::optional<Executable> found, cache->lookup(key));
    if (found) {
      ++cachedCount;
      return std::move(*found);
    }
  }
  Result<CompilerModule> module =
      CompilerModule::import(model->config, *model->weights, kind, maxTokens);
  if (!module.ok())
    return nameModel(*model, module.status());
  KF_ASSIGN_OR_RETURN(Executable executable, module->compile(options));
  ++compiledCount;
  if (cache && keeps)
    KF_RETURN_IF_ERROR(cache->store(key, executable));
  return executable;
}
