//===- EventStream.h - Events of a stream, as they come ------- -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads text/event-stream, in which servers send what they generate piece by
// piece. The other side may send anything, for any time.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CLIENT_EVENTSTREAM_H
#define KF_RUNTIME_CLIENT_EVENTSTREAM_H

#include "runtime/core/Status.h"

#include <functional>
#include <string>
#include <string_view>

namespace kf {

/// Takes a stream apart. One thread.
class EventStream {
public:
  /// The most bytes of a line, and of an event's data.
  static constexpr size_t kMostBytes = size_t(4) << 20;

  /// Called with the data of each event that has some; an error ends push().
  using OnData = std::function<Status(std::string_view data)>;

  explicit EventStream(OnData onData) : onData(std::move(onData)) {}

  /// Reads on. Errors: onData's, and too long a line or event. After an error
  /// there is nothing more to read.
  Status push(std::string_view bytes);

private:
  Status endLine();

  OnData onData;
  std::string line, data;
  bool hasData = false; ///< of the event that goes on
  bool afterCr = false; ///< a line feed belongs to the line before
  bool isFirst = true;  ///< line, which may begin with a byte order mark
};

} // namespace kf

#endif // KF_RUNTIME_CLIENT_EVENTSTREAM_H
