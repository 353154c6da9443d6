//===- Memory.cpp - Global memory with canaries ----------------*- C++ -*--===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <sys/mman.h>

using namespace emu;

namespace {

constexpr uint64_t page = 4096;
/// From here on memory is neither filled nor checked: it would be touched.
constexpr uint64_t mostFilled = 64 << 20;
/// Of a buffer and its canary at least.
constexpr uint64_t leastCanary = 32;

struct Buffer {
  uint64_t bytes, mapped; ///< the last page of what is mapped has no access
  uint64_t end(uint64_t base) const { return base + mapped - page; }
};
std::map<uint64_t, Buffer> buffers; // by address

/// The buffer of the last access, which the next one is in most of the time.
uint64_t lastBase = 1, lastEnd = 0;

/// Bytes read behind buffers at most, by the text of the kernel.
struct Notes : std::map<std::string, uint64_t> {
  ~Notes() {
    for (const auto &[text, bytes] : *this)
      fprintf(stderr,
              "cuda emulator: note: %s read at most %lu bytes behind a "
              "buffer\n",
              text.c_str(), bytes);
  }
} notes;

void checkCanary(uint64_t base, const Buffer &buffer) {
  if (buffer.bytes >= mostFilled)
    return;
  for (uint64_t at = base + buffer.bytes; at < buffer.end(base); ++at)
    if (*reinterpret_cast<uint8_t *>(at) != 0xff)
      fault("written behind a buffer of " + std::to_string(buffer.bytes) +
            " bytes, at offset " + std::to_string(at - base));
}

} // namespace

uint64_t emu::allocate(uint64_t bytes) {
  std::lock_guard guard(lock());
  const uint64_t mapped = (bytes + leastCanary + page - 1) / page * page + page;
  void *made = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED)
    return 0;
  const uint64_t base = reinterpret_cast<uint64_t>(made);
  mprotect(static_cast<char *>(made) + mapped - page, page, PROT_NONE);
  if (bytes < mostFilled)
    memset(made, 0xff, mapped - page);
  buffers[base] = {bytes, mapped};
  return base;
}

void emu::release(uint64_t base) {
  std::lock_guard guard(lock());
  const auto found = buffers.find(base);
  if (found == buffers.end())
    fault("free of what is no buffer");
  checkCanary(base, found->second);
  munmap(reinterpret_cast<void *>(base), found->second.mapped);
  buffers.erase(found);
  lastBase = 1, lastEnd = 0;
}

void emu::checkCanaries() {
  for (const auto &[base, buffer] : buffers)
    checkCanary(base, buffer);
}

void emu::copyBytes(uint64_t to, uint64_t from, uint64_t bytes) {
  memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
}

/// Constants of the kernel, which are variables of its library.
static bool isConstant(uint64_t address) {
  Dl_info info;
  return dladdr(reinterpret_cast<void *>(address), &info) && info.dli_fname &&
         currentKernel()->library == info.dli_fname;
}

void emuCheckGlobal(Thread *t, u64 address, u64 bytes, int writes) {
  if (address >= lastBase && address + bytes <= lastEnd)
    return;
  auto found = buffers.upper_bound(address);
  if (found == buffers.begin() ||
      address > std::prev(found)->second.end(std::prev(found)->first)) {
    if (isShared(address, bytes) || isConstant(address))
      return;
    emuFail(t, "outside of global memory: address, bytes", address, bytes);
    return;
  }
  const auto &[base, buffer] = *--found;
  if (address + bytes <= base + buffer.bytes) {
    lastBase = base, lastEnd = base + buffer.bytes;
    return;
  }
  const uint64_t behind = address + bytes - base - buffer.bytes;
  // Memory of a device ends with a page, so that loads whose values nobody
  // uses are harmless; what they read here are NaNs.
  if (writes || address + bytes > buffer.end(base))
    emuFail(t, "outside of a buffer: bytes behind its end, its bytes", behind,
            buffer.bytes);
  uint64_t &most = notes[currentKernel()->text];
  most = std::max(most, behind);
}
