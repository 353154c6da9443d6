//===- Status.h - Errors of the runtime ------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Status is success or one line that says what failed, where, and what to
// do. A Result<T> is a T or such a line. Nothing in the runtime throws across
// its API or aborts on what a user or a file supplied.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_STATUS_H
#define KF_RUNTIME_CORE_STATUS_H

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace kf {

/// What kind of end a call came to, for callers that do not do the same in all
/// cases; people read the message. Context that is put around an error keeps
/// its code.
enum class StatusCode {
  Ok,
  Invalid,     ///< what was given is wrong: a file, a request, an argument
  NotFound,    ///< there is nothing of that name: a file, a tensor, a device
  OutOfMemory, ///< of the host or a device, or pages of a cache: with less, or
               ///< when others have ended, it may go well
  Cancelled,   ///< told to end (Cancellation.h); nothing went wrong
  Unsupported, ///< it may be sound, but there is no code for it, or the device
               ///< cannot
  Internal,    ///< what was given is sound, and what was made of it is not: a
               ///< fault of ours or a driver's, or numbers that overflow
  Unavailable  ///< what is needed is not there, or of no use any more: a
               ///< driver, a device that is lost, what the system refuses
};

class [[nodiscard]] Status {
public:
  /// Success.
  Status() = default;
  /// Failure; `message` is one line without a trailing full stop or newline.
  static Status error(std::string message,
                      StatusCode code = StatusCode::Invalid) {
    assert(code != StatusCode::Ok && "an error that is none");
    Status status;
    status.text = std::move(message);
    status.kind = code;
    return status;
  }
  /// Failure for want of memory. Making and moving it takes none: the line is
  /// short enough for the string itself.
  static Status outOfMemory() {
    return error("no memory left", StatusCode::OutOfMemory);
  }
  static Status cancelled() {
    return error("cancelled", StatusCode::Cancelled);
  }

  bool ok() const { return !text; }
  explicit operator bool() const { return ok(); }
  StatusCode code() const { return kind; }
  bool isCancelled() const { return kind == StatusCode::Cancelled; }
  /// The error's line; empty on success.
  const std::string &message() const {
    static const std::string none;
    return text ? *text : none;
  }
  /// The same failure with `where: ` in front of it.
  Status in(const std::string &where) const {
    if (ok())
      return Status();
    return error(where + ": " + *text, kind);
  }

private:
  std::optional<std::string> text;
  StatusCode kind = StatusCode::Ok;
};

template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : held(std::move(value)) {}
  Result(Status failure) : failed(std::move(failure)) {
    assert(!failed.ok() && "a Result without a value needs an error");
  }

  bool ok() const { return held.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status &status() const { return failed; }
  const std::string &message() const { return failed.message(); }

  T &operator*() {
    assert(held && "no value");
    return *held;
  }
  const T &operator*() const {
    assert(held && "no value");
    return *held;
  }
  T *operator->() { return &**this; }
  const T *operator->() const { return &**this; }
  /// Moves the value out.
  T take() {
    assert(held && "no value");
    return std::move(*held);
  }

private:
  std::optional<T> held;
  Status failed;
};

/// Returns the error of `expr` (a Status) from the enclosing function.
#define KF_RETURN_IF_ERROR(expr)                                               \
  do {                                                                         \
    if (::kf::Status kfStatus = (expr); !kfStatus.ok())                        \
      return kfStatus;                                                         \
  } while (false)

#define KF_CONCAT_INNER(a, b) a##b
#define KF_CONCAT(a, b) KF_CONCAT_INNER(a, b)
/// Declares or assigns `lhs` from `expr` (a Result), or returns its error.
#define KF_ASSIGN_OR_RETURN(lhs, expr)                                         \
  auto KF_CONCAT(kfResult, __LINE__) = (expr);                                 \
  if (!KF_CONCAT(kfResult, __LINE__).ok())                                     \
    return KF_CONCAT(kfResult, __LINE__).status();                             \
  lhs = KF_CONCAT(kfResult, __LINE__).take()

} // namespace kf

#endif // KF_RUNTIME_CORE_STATUS_H
