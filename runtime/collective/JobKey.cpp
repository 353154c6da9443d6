//===- JobKey.cpp - What ranks of one job know ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/JobKey.h"

#include "runtime/core/Descriptor.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/PrivateFolder.h"
#include "runtime/core/WriteFile.h"

#include <cerrno>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

using namespace kf;

static constexpr const char *kHowElse =
    "; set KF_JOB_KEY_FILE to a file that all ranks can read";

static std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const size_t first = text.find_first_not_of(blanks);
  if (first == text.npos)
    return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// The text of a file that nobody else can read; nothing: there is none.
static Result<std::optional<std::string>> readSecret(const std::string &path) {
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.ok() && errno == ENOENT)
    return std::optional<std::string>();
  struct stat info;
  if (!file.ok() || ::fstat(file.get(), &info) != 0)
    return Status::error("cannot read the job key in '" + path +
                         "': " + std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return Status::error("the job key in '" + path +
                         "' is not in a regular file");
  if (info.st_uid != ::geteuid() || (info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return Status::error("others can read the job key in '" + path +
                         "'; make the file your own, of mode 0600");
  std::string text(4096, '\0');
  const ssize_t count = ::read(file.get(), text.data(), text.size());
  if (count < 0)
    return Status::error("cannot read the job key in '" + path +
                         "': " + std::strerror(errno));
  text.resize(static_cast<size_t>(count));
  return std::optional(text);
}

static Result<std::string> ownFolder(const Environment &environment) {
  if (const char *state = environment("XDG_STATE_HOME"); state && *state == '/')
    return std::string(state) + "/kernelforge";
  if (const char *home = environment("HOME"); home && *home == '/')
    return std::string(home) + "/.local/state/kernelforge";
  return Status::error(std::string("there is no folder for the job's key: "
                                   "neither XDG_STATE_HOME nor HOME is set") +
                       kHowElse);
}

/// Makes the user's own key. Of ranks that do so at once, one is the first.
static Status makeOwn(const std::string &folder, const std::string &path) {
  constexpr char digits[] = "0123456789abcdef";
  KF_RETURN_IF_ERROR(PrivateFolder::make(folder).status());
  KF_ASSIGN_OR_RETURN(const std::string random, randomBytes());
  std::string text;
  for (const char c : random) {
    text += digits[static_cast<unsigned char>(c) >> 4];
    text += digits[c & 15];
  }
  text += '\n';
  Result<AtomicFile> file =
      AtomicFile::create(path, {.replace = false, .mode = 0600});
  Status status = file.status();
  if (status.ok())
    status = file->append(text);
  if (status.ok())
    status = file->finish();
  return status;
}

Result<JobKey> JobKey::of(std::string_view text) try {
  const std::string_view key = trim(text);
  if (key.size() < kLeastBytes)
    return Status::error("a job key of " + std::to_string(key.size()) +
                         " bytes is too easily guessed; it takes " +
                         std::to_string(kLeastBytes) +
                         " or more, as 'openssl rand -hex 32' prints them");
  return JobKey(key);
} catch (...) {
  return statusOfException();
}

Result<JobKey> JobKey::find(const Environment &environment) try {
  if (const char *key = environment("KF_JOB_KEY")) {
    Result<JobKey> given = of(key);
    return given.ok() ? std::move(given)
                      : Result<JobKey>(given.status().in("KF_JOB_KEY"));
  }
  const char *named = environment("KF_JOB_KEY_FILE");
  std::string path = named ? named : "";
  Status made;
  if (!named) {
    KF_ASSIGN_OR_RETURN(const std::string folder, ownFolder(environment));
    path = folder + "/job-key";
    KF_ASSIGN_OR_RETURN(const std::optional<std::string> own, readSecret(path));
    if (!own)
      made = makeOwn(folder, path);
  }
  // Where another rank was faster, there is one all the same.
  KF_ASSIGN_OR_RETURN(const std::optional<std::string> text, readSecret(path));
  if (!text && !made.ok())
    return Status::error(made.message() + kHowElse, made.code());
  if (!text)
    return Status::error("there is no job key in '" + path + "'",
                         StatusCode::NotFound);
  Result<JobKey> key = of(*text);
  return key.ok() ? std::move(key) : Result<JobKey>(key.status().in(path));
} catch (...) {
  return statusOfException();
}

Result<std::string> kf::randomBytes() {
  std::string bytes(32, '\0');
  if (::getrandom(bytes.data(), bytes.size(), 0) !=
      static_cast<ssize_t>(bytes.size()))
    return Status::error(std::string("no random numbers: ") +
                             std::strerror(errno),
                         StatusCode::Unavailable);
  return bytes;
}
