//===- SpareMemory.cpp - For code that cannot fail to allocate ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cpu/SpareMemory.h"

#include <cstdlib>

namespace kf {

SpareMemory::~SpareMemory() { std::free(block.load()); }

Status SpareMemory::fill() {
  if (!isFull())
    block.store(std::malloc(bytes));
  return isFull() ? Status() : Status::outOfMemory();
}

void SpareMemory::release() {
  SpareMemory *memory = inUse.load();
  void *block = memory ? memory->block.exchange(nullptr) : nullptr;
  if (block)
    return std::free(block); // operator new tries again
  if (std::new_handler handler = otherwise.load())
    return handler();
  throw std::bad_alloc();
}

SpareMemory::Use::Use(SpareMemory &memory)
    : lock(changing), isOuter(!inUse.load()) {
  if (!isOuter)
    return;
  inUse.store(&memory);
  otherwise.store(std::get_new_handler());
  std::set_new_handler(release);
}

SpareMemory::Use::~Use() {
  if (!isOuter)
    return;
  std::set_new_handler(otherwise.load());
  inUse.store(nullptr);
}

} // namespace kf
