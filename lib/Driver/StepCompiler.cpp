//===- StepCompiler.cpp - Steps from the cache or the compiler ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Driver/StepCompiler.h"

#include "runtime/program/ProgramIdentity.h"
#include "runtime/session/OpenModel.h"

#include <charconv>

using namespace kf;

namespace {

/// What an entry of the cache says of the schedules that it was compiled with.
/// As a note: "<digest, or -> <kernel>/<rows> <kernel>/<rows> ...".
struct ScheduleNote {
  std::string digest; ///< of the measured ones; empty: there were none
  std::vector<TuningKey> kernels; ///< all that there might have been one for
};

std::string noteOf(const ScheduleNote &note) {
  std::string text = note.digest.empty() ? "-" : note.digest;
  for (const TuningKey &key : note.kernels)
    text += " " + key.kernel + "/" + std::to_string(key.rows);
  return text;
}

/// Nothing where the text is no such note. Keys are of `scope`.
std::optional<ScheduleNote> parseNote(std::string_view text,
                                      const TuningScope &scope) {
  if (text.empty())
    return std::nullopt;
  ScheduleNote note;
  size_t end = std::min(text.find(' '), text.size());
  if (text.substr(0, end) != "-")
    note.digest = text.substr(0, end);
  while (end < text.size()) {
    text.remove_prefix(end + 1);
    end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const size_t slash = word.find('/');
    if (slash == std::string_view::npos)
      return std::nullopt;
    TuningKey &key = note.kernels.emplace_back();
    key.kernel = word.substr(0, slash);
    key.scope = scope;
    const char *last = word.data() + word.size();
    const auto [stop, code] =
        std::from_chars(word.data() + slash + 1, last, key.rows);
    if (code != std::errc() || stop != last)
      return std::nullopt;
  }
  return note;
}

} // namespace

Result<StepCompiler> StepCompiler::create(const ModelFiles &model,
                                          CompilerOptions options,
                                          bool useCache, Observer *observer) {
  StepCompiler result(model, std::move(options), observer);
  KF_ASSIGN_OR_RETURN(result.fingerprint, compilerFingerprint(result.options));
  if (result.options.tuning) {
    KF_ASSIGN_OR_RETURN(result.scope, tuningScopeOf(result.options));
  }
  if (!useCache)
    return result;
  if (Status status = result.openCache(); !status.ok())
    result.warn(status.message() + "; going on without the executable cache");
  return result;
}

void StepCompiler::warn(const std::string &line) const {
  if (observer)
    observer->onWarning(line);
}

Status StepCompiler::openCache() {
  KF_ASSIGN_OR_RETURN(std::string folder, ExecutableCache::defaultFolder());
  KF_ASSIGN_OR_RETURN(uint64_t limit, ExecutableCache::defaultLimit());
  // No program outlives the compiler that made it.
  KF_ASSIGN_OR_RETURN(identity, programIdentity());
  signature = signatureOf(*model);
  ExecutableCache opened(
      folder,
      [observer = observer](const std::string &line) {
        if (observer)
          observer->onWarning(line);
      },
      limit);
  KF_RETURN_IF_ERROR(opened.prepare());
  if (Status status = opened.checkWritable(); !status.ok()) {
    warn(status.message() + "; compiled programs are not kept");
    keeps = false;
  }
  cache.emplace(std::move(opened));
  return Status();
}

std::string StepCompiler::keyOf(const std::vector<std::string> &text) const {
  std::vector<std::string_view> parts = {signature};
  parts.insert(parts.end(), text.begin(), text.end());
  parts.push_back(fingerprint);
  parts.push_back(identity);
  return hashKey(parts);
}

std::string StepCompiler::digestOf(std::span<const TuningKey> kernels) const {
  return options.tuning ? options.tuning->digest(kernels) : "";
}

Result<std::optional<Executable>> StepCompiler::lookup(std::string &key) const {
  while (true) {
    std::string text;
    KF_ASSIGN_OR_RETURN(std::optional<Executable> found,
                        cache->lookup(key, &text));
    std::optional<ScheduleNote> note;
    if (found)
      note = parseNote(text, scope);
    const std::string digest = note ? digestOf(note->kernels) : "";
    if (note && digest != note->digest) {
      // Other rows make other kernels, which the next note has.
      key = hashKey({key, digest});
      continue;
    }
    if (!note)
      found.reset();
    cache->count(key, found.has_value());
    return found;
  }
}

/// The body alone has a cache, and layers that hand on something.
Result<Executable> StepCompiler::compile(const StepShape &shape) {
  const bool isBody = shape.part == StepPart::Body;
  return provide({nameOf(shape), isBody ? options.cacheType : "",
                  isBody ? options.activationType : ""},
                 nameOf(shape), [&] {
                   return CompilerModule::import(model->config, *model->weights,
                                                 shape, options);
                 });
}

Result<Executable> StepCompiler::compile(const TrainingShape &shape) {
  const bool isUpdate = shape.part == TrainingPart::Update;
  return provide(
      {"training", describe(shape), isUpdate ? "" : options.activationType},
      nameOf(shape), [&] {
        return CompilerModule::importTraining(model->config, *model->weights,
                                              shape, options);
      });
}

Result<Executable>
StepCompiler::provide(const std::vector<std::string> &text,
                      const std::string &name,
                      const std::function<Result<CompilerModule>()> &import) {
  std::string key;
  if (cache) {
    key = keyOf(text);
    KF_ASSIGN_OR_RETURN(std::optional<Executable> found, lookup(key));
    if (found) {
      ++cachedCount;
      return std::move(*found);
    }
  }
  const ObservedWork work(observer, "compiling " + name);
  Result<CompilerModule> module = import();
  if (!module.ok())
    return nameModel(*model, module.status());
  ScheduleNote note;
  KF_ASSIGN_OR_RETURN(Executable executable,
                      module->compile(options, &note.kernels));
  note.digest = digestOf(note.kernels);
  executable.model = modelKeyOf(*model);
  ++compiledCount;
  if (cache && keeps)
    KF_RETURN_IF_ERROR(cache->store(key, executable, noteOf(note)));
  return executable;
}
