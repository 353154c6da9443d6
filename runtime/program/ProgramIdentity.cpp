//===- ProgramIdentity.cpp - Which build this program is ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/ProgramIdentity.h"

#include "runtime/core/Descriptor.h"
#include "runtime/program/ExecutableCache.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <link.h>

using namespace kf;

/// The note of the linker that identifies this program; empty if there is none.
static std::string buildId() {
  std::string id;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *data) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto &segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_NOTE)
            continue;
          const char *at =
              reinterpret_cast<const char *>(info->dlpi_addr + segment.p_vaddr);
          const char *end = at + segment.p_memsz;
          while (end - at >= static_cast<ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
            ElfW(Nhdr) note;
            std::memcpy(&note, at, sizeof(note));
            at += sizeof(note);
            const char *name = at;
            at += (note.n_namesz + 3) & ~3u;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                std::memcmp(name, "GNU", 4) == 0)
              static_cast<std::string *>(data)->assign(at, note.n_descsz);
            at += (note.n_descsz + 3) & ~3u;
          }
        }
        return 1; // the first object is the program itself
      },
      &id);
  return id;
}

/// A hash of all bytes of this program's file.
static Result<std::string> hashProgram() {
  constexpr const char *self = "/proc/self/exe";
  auto failed = [&] {
    return Status::error("cannot read " + std::string(self) +
                         ", this program: " + std::strerror(errno));
  };
  const Descriptor file(::open(self, O_RDONLY | O_CLOEXEC));
  if (!file.ok())
    return failed();
  std::string hash, block(1 << 20, '\0');
  for (;;) {
    const ssize_t count = ::read(file.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return failed();
    if (count == 0)
      return hash;
    hash = hashKey(
        {hash, std::string_view(block).substr(0, static_cast<size_t>(count))});
  }
}

Result<std::string> kf::programIdentity() {
  std::string id = buildId();
  return id.empty() ? hashProgram() : Result<std::string>(std::move(id));
}
