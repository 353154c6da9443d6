//===- FailingAllocations.cpp - Memory that ends on demand ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FailingAllocations.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

#include <sys/mman.h>

using namespace kf::test;

namespace {

std::atomic<bool> armed{false};
std::atomic<int64_t> firstToFail{0}, begun{0};
std::atomic<Failing> whichFail{Failing::One};

bool fails() {
  if (!armed.load())
    return false;
  const int64_t number = begun.fetch_add(1);
  return number == firstToFail.load() ||
         (number > firstToFail.load() && whichFail.load() == Failing::Rest);
}

} // namespace

FailingAllocations::FailingAllocations(int64_t first, Failing which) {
  firstToFail = first;
  whichFail = which;
  begun = 0;
  armed = true;
}

FailingAllocations::~FailingAllocations() { armed = false; }

int64_t FailingAllocations::count() const { return begun.load(); }

// The linker gives calls of x to __wrap_x, and those of __real_x to x.
extern "C" {
void *__real_malloc(size_t);
void *__real_mmap(void *, size_t, int, int, int, off_t);
void *__real_aligned_alloc(size_t, size_t);
int __real_posix_memalign(void **, size_t, size_t);

void *__wrap_malloc(size_t size) {
  return fails() ? nullptr : __real_malloc(size);
}

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd,
                  off_t offset) {
  if (!fails())
    return __real_mmap(address, size, protection, flags, fd, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  if (!fails())
    return __real_aligned_alloc(alignment, size);
  errno = ENOMEM;
  return nullptr;
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size) {
  return fails() ? ENOMEM : __real_posix_memalign(memory, alignment, size);
}
}

/// What the standard says of operator new, with an allocation that may fail.
template <typename Allocate> static void *newOrThrow(Allocate allocate) {
  for (;;) {
    if (!fails())
      if (void *memory = allocate())
        return memory;
    if (std::new_handler handler = std::get_new_handler())
      handler();
    else
      throw std::bad_alloc();
  }
}

void *operator new(size_t size) {
  return newOrThrow([&] { return __real_malloc(size ? size : 1); });
}
void *operator new(size_t size, std::align_val_t alignment) {
  return newOrThrow([&]() -> void * {
    void *memory = nullptr;
    // Which wants no less than that of a pointer.
    const size_t least =
        std::max(static_cast<size_t>(alignment), sizeof(void *));
    const int error = __real_posix_memalign(&memory, least, size ? size : 1);
    return error ? nullptr : memory;
  });
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void *memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
