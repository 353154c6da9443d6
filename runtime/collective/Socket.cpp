//===- Socket.cpp - Connections between hosts -----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/Socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace kf;
using Clock = std::chrono::steady_clock;

namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

std::string placeText(const std::string &address, uint16_t port) {
  return address + ":" + std::to_string(port);
}

Status failed(const char *what, const std::string &place, int reason) {
  return Status::error(std::string("cannot ") + what + " " + place + ": " +
                           std::strerror(reason),
                       StatusCode::Unavailable);
}

Result<Addresses> resolve(const std::string &address, uint16_t port,
                          int flags) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo *found = nullptr;
  const int error = getaddrinfo(address.c_str(), std::to_string(port).c_str(),
                                &hints, &found);
  if (error != 0)
    return Status::error("there is no host '" + address +
                             "': " + gai_strerror(error),
                         StatusCode::NotFound);
  return Addresses(found, freeaddrinfo);
}

/// A socket for one of the addresses that resolve() found.
Descriptor openSocket(const addrinfo &at) {
  return Descriptor(::socket(at.ai_family,
                             at.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                             at.ai_protocol));
}

/// Small messages are not held back for others.
void sendAtOnce(int socket) {
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

bool await(int socket, short events, Deadline deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd entry = {socket, events, 0};
    const int count =
        ::poll(&entry, 1,
               static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30)));
    if (count > 0)
      return true;
    if (count == 0 && Clock::now() >= deadline)
      return false;
    if (count < 0 && errno != EINTR)
      return true; // the call on the socket says why
  }
}

Status isGone(int reason) {
  return Status::error(reason ? std::strerror(reason) : "it is closed",
                       StatusCode::Unavailable);
}

} // namespace

Result<Listener> Listener::open(const std::string &address, uint16_t port) {
  KF_ASSIGN_OR_RETURN(const Addresses found,
                      resolve(address, port, AI_PASSIVE));
  int reason = 0;
  for (const addrinfo *at = found.get(); at; at = at->ai_next) {
    Listener listener;
    listener.socket = openSocket(*at);
    const int yes = 1;
    sockaddr_storage bound = {};
    socklen_t size = sizeof(bound);
    // A port whose last connections have just ended can be taken again.
    if (!listener.socket.ok() ||
        setsockopt(listener.socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes,
                   sizeof(yes)) != 0 ||
        ::bind(listener.socket.get(), at->ai_addr, at->ai_addrlen) != 0 ||
        ::listen(listener.socket.get(), SOMAXCONN) != 0 ||
        ::getsockname(listener.socket.get(),
                      reinterpret_cast<sockaddr *>(&bound), &size) != 0) {
      reason = errno;
      continue;
    }
    listener.number =
        ntohs(bound.ss_family == AF_INET6
                  ? reinterpret_cast<const sockaddr_in6 &>(bound).sin6_port
                  : reinterpret_cast<const sockaddr_in &>(bound).sin_port);
    return listener;
  }
  return failed("listen at", placeText(address, port), reason);
}

Result<Descriptor> Listener::accept(Deadline deadline) {
  while (awaitReadable(socket.get(), deadline)) {
    Descriptor made(::accept4(socket.get(), nullptr, nullptr,
                              SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (made.ok()) {
      sendAtOnce(made.get());
      return made;
    }
    // Whoever connected may be gone again.
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED &&
        errno != EPROTO)
      return failed("accept a connection at port", std::to_string(number),
                    errno);
  }
  return Descriptor();
}

Result<Descriptor> kf::connectTo(const std::string &address, uint16_t port,
                                 Deadline deadline) {
  KF_ASSIGN_OR_RETURN(const Addresses found, resolve(address, port, 0));
  int reason = ETIMEDOUT;
  for (;;) {
    for (const addrinfo *at = found.get(); at; at = at->ai_next) {
      Descriptor made = openSocket(*at);
      if (!made.ok())
        return failed("connect to", placeText(address, port), errno);
      int error =
          ::connect(made.get(), at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
      if (error == EINPROGRESS) {
        socklen_t size = sizeof(error);
        error = ETIMEDOUT;
        if (awaitWritable(made.get(), deadline))
          getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      }
      if (error == 0) {
        sendAtOnce(made.get());
        return made;
      }
      reason = error;
    }
    constexpr std::chrono::milliseconds pause(50);
    if (Clock::now() + pause > deadline)
      return failed("connect to", placeText(address, port), reason);
    std::this_thread::sleep_for(pause);
  }
}

bool kf::awaitReadable(int socket, Deadline deadline) {
  return await(socket, POLLIN, deadline);
}

bool kf::awaitWritable(int socket, Deadline deadline) {
  return await(socket, POLLOUT, deadline);
}

Result<size_t> kf::readSome(int socket, std::span<char> room) {
  for (;;) {
    const ssize_t count = ::recv(socket, room.data(), room.size(), 0);
    if (count > 0)
      return static_cast<size_t>(count);
    if (count == 0)
      return isGone(0);
    if (errno == EAGAIN)
      return size_t(0);
    if (errno != EINTR)
      return isGone(errno);
  }
}

Result<size_t> kf::writeSome(int socket, std::string_view bytes) {
  for (;;) {
    const ssize_t count =
        ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0)
      return static_cast<size_t>(count);
    if (errno == EAGAIN)
      return size_t(0);
    if (errno != EINTR)
      return isGone(errno);
  }
}

std::string kf::hostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0 || !*name)
    return "an unknown host";
  return name;
}
