//===- ProgramIdentity.cpp - Which build this program is ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/ProgramIdentity.h"

#include "runtime/core/Descriptor.h"
#include "runtime/core/Lines.h"
#include "runtime/program/ExecutableCache.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <link.h>

using namespace kf;

namespace {

/// The object that this code is linked into: a program, or a library that one
/// has loaded.
struct OwnObject {
  std::string file = "/proc/self/exe";
  std::string buildId; ///< the linker's note; empty if there is none
};

/// The build id in a segment of notes.
std::string buildIdIn(const char *at, const char *end) {
  while (end - at >= static_cast<ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof(note));
    at += sizeof(note);
    const char *name = at;
    at += (note.n_namesz + 3) & ~3u;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(name, "GNU", 4) == 0)
      return std::string(at, note.n_descsz);
    at += (note.n_descsz + 3) & ~3u;
  }
  return {};
}

/// Fills in the object, once it comes; of others, nothing.
int visit(dl_phdr_info *info, size_t, void *data) {
  const auto own = reinterpret_cast<ElfW(Addr)>(&visit);
  bool isOwn = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto &segment = info->dlpi_phdr[i];
    isOwn |= segment.p_type == PT_LOAD &&
             own - (info->dlpi_addr + segment.p_vaddr) < segment.p_memsz;
  }
  if (!isOwn)
    return 0;
  OwnObject &object = *static_cast<OwnObject *>(data);
  if (info->dlpi_name && *info->dlpi_name) // a program's own is empty
    object.file = info->dlpi_name;
  for (int i = 0; i < info->dlpi_phnum && object.buildId.empty(); ++i) {
    const auto &segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    const char *at =
        reinterpret_cast<const char *>(info->dlpi_addr + segment.p_vaddr);
    object.buildId = buildIdIn(at, at + segment.p_memsz);
  }
  return 1;
}

/// A hash of all bytes of the file.
Result<std::string> hashFile(const std::string &path) {
  auto failed = [&] {
    return Status::error("cannot read " + quotePath(path) +
                         ", this program: " + std::strerror(errno));
  };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
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

} // namespace

Result<std::string> kf::programIdentity() {
  OwnObject own;
  dl_iterate_phdr(visit, &own);
  if (own.buildId.empty())
    return hashFile(own.file);
  return std::move(own.buildId);
}
