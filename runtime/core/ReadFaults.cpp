//===- ReadFaults.cpp - Mapped files that shrink while in use -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/ReadFaults.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace kf {

/// A mapping or a temporary file. Nodes are used again and never freed: the
/// handler may look at any of them at any time, without a lock.
struct FaultNode {
  std::atomic<char *> path{nullptr};       ///< null: there is nothing to know
  std::atomic<uintptr_t> begin{0}, end{0}; ///< of a mapping
  std::atomic<uint64_t> size{0};           ///< of a mapping's file
  FaultNode *next = nullptr;
  bool used = false; ///< has an owner
};

} // namespace kf

using namespace kf;

namespace {

/// Nodes of one kind.
class NodeList {
public:
  /// A node with that path. What else it says is for the caller to set.
  FaultNode *add(const std::string &path) {
    std::unique_ptr<char[]> copy(new char[path.size() + 1]);
    std::memcpy(copy.get(), path.c_str(), path.size() + 1);
    const std::lock_guard<std::mutex> lock(changing);
    FaultNode *node = first();
    while (node && node->used)
      node = node->next;
    if (!node) {
      node = new FaultNode;
      node->next = first();
      head.store(node);
    }
    node->used = true;
    node->path.store(copy.release());
    return node;
  }

  void remove(FaultNode *node) {
    if (!node)
      return;
    node->end.store(0);
    // Nothing where the handler has taken the path.
    delete[] node->path.exchange(nullptr);
    const std::lock_guard<std::mutex> lock(changing);
    node->used = false;
  }

  FaultNode *first() const { return head.load(); }

private:
  std::mutex changing;
  std::atomic<FaultNode *> head{nullptr};
};

constinit NodeList mappings, temporaries;
struct sigaction previous = {};

FaultNode *findMapping(uintptr_t address) {
  for (FaultNode *node = mappings.first(); node; node = node->next)
    if (address < node->end.load() && address >= node->begin.load())
      return node;
  return nullptr;
}

/// Collects a line in memory of its own: a handler may not allocate.
class Line {
public:
  void add(const char *text) {
    for (; *text && length < sizeof(bytes) - 1; ++text) {
      const unsigned char byte = static_cast<unsigned char>(*text);
      bytes[length++] = byte < 0x20 || byte == 0x7f ? '?' : *text;
    }
  }
  void print() {
    bytes[length++] = '\n';
    // Where stderr is gone, there is no one to tell.
    [[maybe_unused]] ssize_t count = ::write(STDERR_FILENO, bytes, length);
  }

private:
  char bytes[8192];
  size_t length = 0;
};

/// Calls nothing that POSIX does not allow in a handler of signals.
[[noreturn]] void endProcess(const FaultNode &mapping) {
  // Threads fault at the same moment; the first one speaks.
  static std::atomic<bool> ending{false};
  if (ending.exchange(true))
    for (;;)
      ::pause();
  for (FaultNode *node = temporaries.first(); node; node = node->next)
    if (const char *path = node->path.exchange(nullptr))
      ::unlink(path);
  Line line;
  line.add("error: cannot read '");
  const char *path = mapping.path.load();
  line.add(path);
  struct stat info;
  const bool shorter = ::stat(path, &info) == 0 &&
                       static_cast<uint64_t>(info.st_size) < mapping.size;
  line.add(shorter ? "': it became shorter while it was in use; run again with "
                     "the whole file"
                   : "': its disk or file system failed while it was in use");
  line.print();
  ::_exit(EXIT_FAILURE);
}

void onBusError(int, siginfo_t *info, void *) {
  const bool isFault = info->si_code > 0;
  if (isFault)
    if (const FaultNode *mapping =
            findMapping(reinterpret_cast<uintptr_t>(info->si_addr)))
      endProcess(*mapping);
  // Not ours. A fault occurs again as soon as this returns.
  ::sigaction(SIGBUS, &previous, nullptr);
  if (!isFault)
    ::raise(SIGBUS);
}

} // namespace

void kf::exitOnReadFaults() {
  struct sigaction action = {};
  action.sa_sigaction = onBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &previous);
}

KnownMapping::KnownMapping(const void *data, size_t size,
                           const std::string &path)
    : node(mappings.add(path)) {
  // Pages are whole: what lies behind the file's end in the last one is mapped.
  const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data);
  node->size.store(size);
  node->begin.store(begin);
  node->end.store((begin + size + page - 1) / page * page);
}

KnownMapping::KnownMapping(KnownMapping &&other) noexcept
    : node(std::exchange(other.node, nullptr)) {}

KnownMapping &KnownMapping::operator=(KnownMapping &&other) noexcept {
  std::swap(node, other.node);
  return *this;
}

KnownMapping::~KnownMapping() { mappings.remove(node); }

KnownTemporary::KnownTemporary(const std::string &path)
    : node(temporaries.add(path)) {}

KnownTemporary::KnownTemporary(KnownTemporary &&other) noexcept
    : node(std::exchange(other.node, nullptr)) {}

KnownTemporary &KnownTemporary::operator=(KnownTemporary &&other) noexcept {
  std::swap(node, other.node);
  return *this;
}

KnownTemporary::~KnownTemporary() { temporaries.remove(node); }
