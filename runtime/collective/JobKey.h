//===- JobKey.h - What ranks of one job know --------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_COLLECTIVE_JOBKEY_H
#define KF_RUNTIME_COLLECTIVE_JOBKEY_H

#include "runtime/core/Sha256.h"
#include "runtime/core/Status.h"

#include <functional>
#include <string>
#include <string_view>

namespace kf {

/// The value of an environment variable; null: it is not set.
using Environment = std::function<const char *(const char *)>;

/// A secret that all ranks of a job have, and prove to one another that they
/// have (RankMeeting.h). It is never sent.
class JobKey {
public:
  static constexpr size_t kLeastBytes = 16;

  /// The text of $KF_JOB_KEY, or of the file $KF_JOB_KEY_FILE; without either,
  /// that of this user's own file, job-key in $XDG_STATE_HOME/kernelforge or
  /// $HOME/.local/state/kernelforge, which is made where it is missing. Blanks
  /// around it do not count. Errors: a file that others may read, or that
  /// cannot be read or made; a key that is too short.
  static Result<JobKey> find(const Environment &environment);
  /// Error: `text` is too short.
  static Result<JobKey> of(std::string_view text);

  /// A digest of `message` that nobody can make without the key.
  Digest prove(std::string_view message) const {
    return hmacSha256(text, message);
  }

private:
  explicit JobKey(std::string_view text) : text(text) {}

  std::string text;
};

/// 32 bytes that nobody can foretell. Error: the system has none.
Result<std::string> randomBytes();

} // namespace kf

#endif // KF_RUNTIME_COLLECTIVE_JOBKEY_H
