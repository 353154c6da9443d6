//===- Descriptor.h - An open file -----------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_DESCRIPTOR_H
#define KF_RUNTIME_CORE_DESCRIPTOR_H

#include <unistd.h>
#include <utility>

namespace kf {

/// Owns a file descriptor, closed at the end of its life; negative: none.
class Descriptor {
public:
  explicit Descriptor(int fd = -1) : fd(fd) {}
  Descriptor(Descriptor &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }

  bool ok() const { return fd >= 0; }
  int get() const { return fd; }

private:
  int fd;
};

} // namespace kf

#endif // KF_RUNTIME_CORE_DESCRIPTOR_H
