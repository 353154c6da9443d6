//===- FlushedSubnormals.h - Arithmetic without subnormals ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_FLUSHEDSUBNORMALS_H
#define KF_TEST_RUNTIME_FLUSHEDSUBNORMALS_H

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

namespace kf::test {

/// As long as it lives, this thread takes subnormal floats for zeros, and so do
/// those, for good, that it starts meanwhile. Nothing on other processors than
/// x86.
class FlushedSubnormals {
public:
#ifdef __x86_64__
  FlushedSubnormals() {
    constexpr unsigned flushToZero = 0x8000, denormalsAreZeros = 0x40;
    _mm_setcsr(before | flushToZero | denormalsAreZeros);
  }
  ~FlushedSubnormals() { _mm_setcsr(before); }
#else
  FlushedSubnormals() {}
#endif
  FlushedSubnormals(const FlushedSubnormals &) = delete;
  FlushedSubnormals &operator=(const FlushedSubnormals &) = delete;

#ifdef __x86_64__
private:
  const unsigned before = _mm_getcsr();
#endif
};

} // namespace kf::test

#endif // KF_TEST_RUNTIME_FLUSHEDSUBNORMALS_H
