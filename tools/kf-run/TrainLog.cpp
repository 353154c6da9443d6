//===- TrainLog.cpp - The log of kf-run train -----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TrainLog.h"

#include "Report.h"

#include "runtime/core/Json.h"
#include "runtime/core/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <unistd.h>

using namespace kf;

/// How many bytes of the log `text` are of steps up to `step`, without an
/// evaluation behind it: if one is due, it is done again.
static size_t bytesUntil(std::string_view text, int64_t step) {
  size_t kept = 0;
  while (true) {
    const size_t end = text.find('\n', kept);
    if (end == text.npos)
      return kept; // a line that was cut off
    const Result<JsonDocument> line = parseJson(text.substr(kept, end - kept));
    if (!line.ok() || !(*line)->is_object() || !(*line)->contains("step") ||
        !(**line)["step"].is_number_unsigned())
      return kept;
    const int64_t at = (**line)["step"].get<int64_t>();
    if (at > step || (at == step && (*line)->contains("eval_loss")))
      return kept;
    kept = end + 1;
  }
}

static Status cannotWrite(const std::string &path, int reason) {
  return Status::error("cannot write " + quotePath(path) + ": " +
                       std::strerror(reason));
}

Result<TrainLog> TrainLog::open(const std::string &path, int64_t step) {
  if (path == "-")
    return TrainLog(path, Descriptor(), /*empty=*/true);
  size_t kept = 0;
  std::error_code ignored;
  if (step > 0 && std::filesystem::is_regular_file(path, ignored)) {
    KF_ASSIGN_OR_RETURN(const MappedFile old, MappedFile::open(path));
    kept = bytesUntil(old.text(), step);
  }
  Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file.ok())
    return cannotWrite(path, errno);
  // Devices have no size.
  if (::ftruncate(file.get(), static_cast<off_t>(kept)) != 0 && errno != EINVAL)
    return cannotWrite(path, errno);
  return TrainLog(path, std::move(file), kept == 0);
}

Status TrainLog::write(const std::string &line) {
  empty = false;
  const std::string text = line + "\n";
  if (!file.ok())
    return writeStdout(text);
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t count = ::write(file.get(), rest.data(), rest.size());
    if (count < 0 && errno != EINTR)
      return cannotWrite(path, errno);
    if (count > 0)
      rest.remove_prefix(static_cast<size_t>(count));
  }
  return Status();
}
