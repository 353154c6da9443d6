//===- Fuel.h - The steps of one call ---------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_FUEL_H
#define KF_RUNTIME_GRAMMAR_FUEL_H

#include "runtime/core/Cancellation.h"
#include "runtime/core/Status.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace kf::grammar {

/// What ends compiling or matching inside the library; the public functions
/// make a Status of it.
struct Failure {
  Status status;
};
[[noreturn]] inline void fail(std::string message,
                              StatusCode code = StatusCode::Invalid) {
  throw Failure{Status::error(std::move(message), code)};
}

/// Returns fn(), a Status or a Result; a Failure becomes its error.
template <typename Fn> auto catchFailure(Fn &&fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (Failure &failure) {
    return std::move(failure.status);
  }
}

/// The steps that a call may take. All work whose amount a grammar or a text
/// decides is paid for before it is done. One thread.
class Fuel {
public:
  Fuel(uint64_t steps, CancelFlag cancelled)
      : left(steps), cancelled(cancelled) {}

  /// Throws Failure where there are not `steps` left, or the call is cancelled.
  void spend(uint64_t steps = 1) {
    if (steps > ready)
      takeMore(steps);
    ready -= steps;
  }

private:
  static constexpr uint64_t kPortion = 20'000; ///< between looks at the flag

  void takeMore(uint64_t steps) {
    if (isCancelled(cancelled))
      throw Failure{Status::cancelled()};
    if (steps - ready > left)
      fail("the grammar takes more steps than its limit here; a simpler one, "
           "or a higher limit, may do");
    const uint64_t more = std::min(left, std::max(steps - ready, kPortion));
    ready += more;
    left -= more;
  }

  uint64_t left; ///< that are not ready
  uint64_t ready = 0;
  CancelFlag cancelled;
};

} // namespace kf::grammar

#endif // KF_RUNTIME_GRAMMAR_FUEL_H
