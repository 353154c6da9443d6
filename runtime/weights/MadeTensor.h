//===- MadeTensor.h - Memory that is filled when it is asked for -*- C++
//-*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_MADETENSOR_H
#define KF_RUNTIME_WEIGHTS_MADETENSOR_H

#include "runtime/core/AlignedBuffer.h"
#include "runtime/core/Quote.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace kf {

/// The bytes of a tensor that a source makes of others, from the first time
/// that somebody asks for them until they are released. Any number of threads;
/// one makes them, while others wait.
class MadeTensor {
public:
  /// The bytes, `bytes` of them, which `make`, a Status(std::byte *), fills
  /// unless they are there. Errors: no memory, which names the tensor `name`,
  /// and those of `make`; after them there are none.
  template <typename Make>
  Result<const std::byte *> get(const std::string &name, uint64_t bytes,
                                Make make) {
    std::lock_guard lock(making);
    if (!memory) {
      Result<AlignedBuffer> room = AlignedBuffer::allocate(bytes);
      if (!room.ok())
        return room.status().in("tensor " + inQuotes(name));
      KF_RETURN_IF_ERROR(make(room->data()));
      memory = room.take();
    }
    return memory->data();
  }

  /// Nobody may use the bytes, or be in get().
  void release() {
    std::lock_guard lock(making);
    memory.reset();
  }

private:
  std::mutex making; ///< guards `memory`
  std::optional<AlignedBuffer> memory;
};

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_MADETENSOR_H
