//===- Socket.h - Connections between hosts ---------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_COLLECTIVE_SOCKET_H
#define KF_RUNTIME_COLLECTIVE_SOCKET_H

#include "runtime/core/Descriptor.h"
#include "runtime/core/Status.h"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kf {

using Deadline = std::chrono::steady_clock::time_point;

/// A TCP port where others can connect. One thread.
class Listener {
public:
  /// At `address`, a name or number of this host; port 0: one that is free.
  /// Errors name both.
  static Result<Listener> open(const std::string &address, uint16_t port);

  uint16_t port() const { return number; }
  /// Who connects next, until `deadline`; none: nobody has. Errors: the
  /// system's.
  Result<Descriptor> accept(Deadline deadline);

private:
  Descriptor socket;
  uint16_t number = 0;
};

/// Connects to a port, again and again until `deadline` where nobody listens
/// there yet. Errors name it.
Result<Descriptor> connectTo(const std::string &address, uint16_t port,
                             Deadline deadline);

/// Waits until a socket can be read, or written, or is closed, until
/// `deadline`; whether it was. Any thread.
bool awaitReadable(int socket, Deadline deadline);
bool awaitWritable(int socket, Deadline deadline);

/// Reads what is there, up to all of `room`; 0: nothing is. Error: the other
/// end is gone.
Result<size_t> readSome(int socket, std::span<char> room);
/// Writes what there is room for, up to all of `bytes`; 0: there is none.
/// Error: the other end is gone.
Result<size_t> writeSome(int socket, std::string_view bytes);

/// The name of this host.
std::string hostName();

} // namespace kf

#endif // KF_RUNTIME_COLLECTIVE_SOCKET_H
