//===- Checkpoints.cpp - Training that can go on --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Checkpoints.h"

#include "runtime/chat/LocalTime.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/JsonText.h"
#include "runtime/core/Lines.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Quote.h"
#include "runtime/core/SystemError.h"
#include "runtime/core/WriteFile.h"
#include "runtime/io/Safetensors.h"
#include "runtime/io/SafetensorsWriter.h"
#include "runtime/model/ConfigReader.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

using namespace kf;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "checkpoint-", kUnfinished = ".tmp";
constexpr const char *kHeadFile = "checkpoint.json";
constexpr const char *kStateFile = "state.safetensors";
constexpr int64_t kFormat = 1;
constexpr size_t kMostHeadBytes = size_t(1) << 20;

std::string headText(const CheckpointHead &head) {
  std::string options;
  for (const auto &[name, value] : head.options)
    options +=
        (options.empty() ? "" : ",") + jsonText(name) + ":" + jsonText(value);
  return jsonObject({{"format", jsonText(kFormat)},
                     {"step", jsonText(head.step)},
                     {"time", jsonText(head.time)},
                     {"owns_result", head.ownsResult ? "true" : "false"},
                     {"model", jsonText(head.model)},
                     {"data", jsonText(head.data)},
                     {"options", "{" + options + "}"}}) +
         "\n";
}

Result<CheckpointHead> parseHead(std::string_view text) {
  if (text.size() > kMostHeadBytes)
    return Status::error("more than " + bytesText(kMostHeadBytes));
  KF_ASSIGN_OR_RETURN(const JsonDocument document, parseJson(text));
  if (!document->is_object())
    return Status::error("a JSON object is expected, not " +
                         shortDump(*document));
  const ConfigReader reader(*document);
  KF_RETURN_IF_ERROR(reader.integer("format", kFormat, kFormat).status());
  CheckpointHead head;
  KF_ASSIGN_OR_RETURN(head.step, reader.integer("step", 0, INT64_MAX));
  KF_ASSIGN_OR_RETURN(head.time, reader.text("time", ""));
  if (!head.time.empty())
    KF_RETURN_IF_ERROR(parseLocalTime(head.time).status().in("'time'"));
  KF_ASSIGN_OR_RETURN(head.ownsResult, reader.boolean("owns_result", false));
  KF_ASSIGN_OR_RETURN(head.model, reader.text("model"));
  KF_ASSIGN_OR_RETURN(head.data, reader.text("data"));
  const json *options = reader.find("options");
  if (!options || !options->is_object())
    return reader.unexpected("options", "an object");
  const ConfigReader values(*options, "options.");
  for (const auto &[name, value] : options->items()) {
    KF_ASSIGN_OR_RETURN(head.options[name], values.text(name));
  }
  return head;
}

/// The step of a checkpoint by the name of its folder; nothing for others.
std::optional<int64_t> stepOf(std::string_view name) {
  if (!name.starts_with(kPrefix))
    return std::nullopt;
  name.remove_prefix(kPrefix.size());
  int64_t step = 0;
  const char *last = name.data() + name.size();
  auto [end, code] = std::from_chars(name.data(), last, step);
  if (code != std::errc() || end != last || step < 0)
    return std::nullopt;
  return step;
}

/// The step of what is on its way to be a checkpoint, or on its way out.
std::optional<int64_t> stepOfUnfinished(std::string_view name) {
  if (!name.ends_with(kUnfinished))
    return std::nullopt;
  return stepOf(name.substr(0, name.size() - kUnfinished.size()));
}

Status cannot(const char *what, const std::string &path, int reason) {
  return Status::error("cannot " + std::string(what) + " " + quotePath(path) +
                           ": " + std::strerror(reason),
                       codeOfSystemError(reason));
}

/// Has what was renamed in `folder` last.
Status syncFolder(const std::string &folder) {
  const Descriptor descriptor(
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() < 0 || ::fsync(descriptor.get()) != 0)
    return cannot("write", folder, errno);
  return Status();
}

/// Makes the folder `from` be `to`; what was `to` is `from` then, or gone.
Status putInPlace(const std::string &from, const std::string &to) {
  std::error_code ignored;
  if (fs::exists(to, ignored)) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(),
                    RENAME_EXCHANGE) == 0)
      return Status();
    // Not every file system exchanges.
    if (errno != EINVAL && errno != ENOSYS)
      return cannot("write", to, errno);
    fs::remove_all(to, ignored);
  }
  return ::rename(from.c_str(), to.c_str()) == 0 ? Status()
                                                 : cannot("write", to, errno);
}

Status writeStates(const std::string &path, TrainingModel &model) {
  // Twice each, so that no two of them have to be in memory at once.
  std::vector<SafetensorsInfo> infos;
  for (const std::string &name : model.stateNames()) {
    KF_ASSIGN_OR_RETURN(const HostTensor state, model.readState(name));
    infos.push_back({name, state.shape, state.type});
  }
  KF_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsWriter> writer,
                      SafetensorsWriter::create(path, infos, {}));
  for (const SafetensorsInfo &info : infos) {
    KF_ASSIGN_OR_RETURN(const HostTensor state, model.readState(info.name));
    KF_RETURN_IF_ERROR(writer->append(state.bytes));
  }
  return writer->finish();
}

} // namespace

Result<CheckpointHead> kf::readCheckpointHead(const std::string &path) try {
  KF_ASSIGN_OR_RETURN(const MappedFile file,
                      MappedFile::open(path + "/" + kHeadFile));
  Result<CheckpointHead> head = parseHead(file.text());
  if (!head.ok())
    return head.status().in(quotePath(file.path()));
  return head;
} catch (...) {
  return statusOfException();
}

Status kf::checkSameTraining(const std::string &path,
                             const CheckpointHead &saved,
                             const CheckpointHead &now) {
  const std::string origin = "checkpoint " + quotePath(path);
  if (saved.model != now.model)
    return Status::error(origin + " is of another model; give the one that it "
                                  "was made with");
  auto differs = [&](const std::string &was, const std::string &is) {
    return Status::error(origin + " was made with " + was + ", and now it is " +
                         is +
                         "; give what it was made with, or train anew in "
                         "another --output");
  };
  auto typed = [](const std::string &name, const std::string &value) {
    return name + (value.empty() ? "" : " " + inQuotes(value));
  };
  for (const auto &[name, value] : saved.options) {
    const auto other = now.options.find(name);
    if (other == now.options.end())
      return differs(typed(name, value), "without");
    if (other->second != value)
      return differs(typed(name, value), inQuotes(other->second));
  }
  for (const auto &[name, value] : now.options)
    if (!saved.options.contains(name))
      return Status::error(origin + " was made without " + typed(name, value) +
                           "; leave it out, or train anew in another --output");
  if (saved.data != now.data)
    return Status::error(origin + " was made with other data, or with another "
                                  "chat template; give those that it was made "
                                  "with, or train anew in another --output");
  return Status();
}

Status kf::loadCheckpoint(const std::string &path, const CheckpointHead &head,
                          TrainingModel &model) try {
  const std::string file = path + "/" + kStateFile;
  KF_ASSIGN_OR_RETURN(const std::unique_ptr<Safetensors> states,
                      Safetensors::open(file));
  const std::vector<std::string> names = model.stateNames();
  if (const size_t count = states->names().size(); count != names.size())
    return Status::error(quotePath(file) + " has " + std::to_string(count) +
                         " states, but the model " +
                         std::to_string(names.size()));
  for (const std::string &name : names) {
    KF_ASSIGN_OR_RETURN(const TensorView view, states->find(name));
    const auto *bytes = static_cast<const std::byte *>(view.data);
    HostTensor state{view.type, view.shape, {bytes, bytes + view.bytes}};
    KF_RETURN_IF_ERROR(model.writeState(name, state).in(quotePath(file)));
    states->release(name);
  }
  model.setUpdates(head.step);
  return Status();
} catch (...) {
  return statusOfException();
}

Result<Checkpoints> Checkpoints::open(const std::string &folder, int64_t keep,
                                      Observer *observer) {
  std::error_code code;
  fs::create_directories(folder, code);
  Descriptor lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.get() < 0)
    return cannot("use", folder, code ? code.value() : errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return Status::error(quotePath(folder) +
                         " is what another process trains in; give another "
                         "--output");
  return Checkpoints(folder, keep, observer, std::move(lock));
}

std::string Checkpoints::pathOf(int64_t step) const {
  return folder + "/" + std::string(kPrefix) + std::to_string(step);
}

std::vector<int64_t> Checkpoints::steps() const {
  std::vector<int64_t> steps;
  std::error_code ignored;
  for (const fs::directory_entry &entry :
       fs::directory_iterator(folder, ignored))
    if (const std::optional<int64_t> step =
            stepOf(entry.path().filename().string()))
      steps.push_back(*step);
  std::ranges::sort(steps);
  return steps;
}

std::optional<CheckpointHead> Checkpoints::newest() const {
  std::vector<int64_t> all = steps();
  for (; !all.empty(); all.pop_back()) {
    const std::string path = pathOf(all.back());
    Result<CheckpointHead> head = readCheckpointHead(path);
    const Status states = Safetensors::open(path + "/" + kStateFile).status();
    if (head.ok() && states.ok())
      return head.take();
    if (observer)
      observer->onWarning((head.ok() ? states : head.status()).message() +
                          "; the checkpoint before it is taken");
  }
  return std::nullopt;
}

Status Checkpoints::save(TrainingModel &model, const CheckpointHead &head) try {
  std::error_code code;
  std::vector<fs::path> unfinished;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, code))
    if (stepOfUnfinished(entry.path().filename().string()))
      unfinished.push_back(entry.path());
  for (const fs::path &path : unfinished)
    fs::remove_all(path, code);

  const std::string place = pathOf(head.step);
  const std::string beside = place + std::string(kUnfinished);
  if (!fs::create_directory(beside, code))
    return cannot("write", beside, code ? code.value() : EEXIST);
  KF_RETURN_IF_ERROR(writeStates(beside + "/" + kStateFile, model));
  KF_RETURN_IF_ERROR(writeFile(beside + "/" + kHeadFile, headText(head)));
  KF_RETURN_IF_ERROR(putInPlace(beside, place));
  KF_RETURN_IF_ERROR(syncFolder(folder));
  fs::remove_all(beside, code);

  // Half removed, one would look whole.
  std::vector<int64_t> all = steps();
  std::erase(all, head.step);
  for (size_t i = 0; keep > 0 && i + static_cast<size_t>(keep) < all.size() + 1;
       ++i) {
    const std::string old = pathOf(all[i]);
    fs::rename(old, old + std::string(kUnfinished), code);
    fs::remove_all(old + std::string(kUnfinished), code);
  }
  return Status();
} catch (...) {
  return statusOfException();
}
