//===- NoBadAlloc.h - Want of memory ends the process --------------- -*- C++
//-*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_NOBADALLOC_H
#define KF_RUNTIME_CORE_NOBADALLOC_H

#include <mutex>
#include <new>

namespace kf {

/// As long as one lives, on any thread, operator new ends the process by the
/// handler of the first instead of throwing.
class NoBadAlloc {
public:
  explicit NoBadAlloc(std::new_handler handler) {
    std::scoped_lock lock(changing);
    if (living++ == 0)
      previous = std::set_new_handler(handler);
  }
  NoBadAlloc(const NoBadAlloc &) = delete;
  NoBadAlloc &operator=(const NoBadAlloc &) = delete;
  ~NoBadAlloc() {
    std::scoped_lock lock(changing);
    if (--living == 0)
      std::set_new_handler(previous);
  }

private:
  static inline std::mutex changing;
  static inline int living = 0;
  static inline std::new_handler previous = nullptr; ///< before the first
};

} // namespace kf

#endif // KF_RUNTIME_CORE_NOBADALLOC_H
