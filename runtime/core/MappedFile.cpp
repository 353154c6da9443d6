//===- MappedFile.cpp - A file mapped read-only ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/MappedFile.h"

#include "runtime/core/Descriptor.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/SystemError.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace kf;

static Status cannotOpen(const std::string &path, const char *reason,
                         StatusCode code = StatusCode::Invalid) {
  return Status::error("cannot open '" + path + "': " + reason, code);
}

/// The same with the system's reason.
static Status cannotOpen(const std::string &path, int error) {
  return cannotOpen(path, std::strerror(error), codeOfSystemError(error));
}

Result<MappedFile> MappedFile::open(const std::string &path) try {
  // A path with a NUL in it would name another file than the one printed.
  if (path.find('\0') != std::string::npos)
    return cannotOpen(path.c_str(), "the name holds a zero byte");
  // O_NONBLOCK: a pipe answers at once instead of waiting for a writer.
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.ok())
    return cannotOpen(path, errno);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0)
    return cannotOpen(path, errno);
  if (!S_ISREG(info.st_mode))
    return cannotOpen(path, S_ISDIR(info.st_mode) ? "Is a directory"
                                                  : "Not a regular file");
  MappedFile file;
  file.name = path;
  file.id = FileIdentity::of(path, info);
  if (info.st_size == 0)
    return file;
  const size_t size = static_cast<size_t>(info.st_size);
  void *mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    return Status::error("cannot map '" + path + "': " + std::strerror(error),
                         codeOfSystemError(error));
  }
  file.data = mapped;
  file.size = size;
  file.known = KnownMapping(mapped, size, path);
  return file;
} catch (...) {
  return statusOfException();
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : data(std::exchange(other.data, nullptr)),
      size(std::exchange(other.size, 0)), name(std::move(other.name)),
      id(std::move(other.id)), known(std::move(other.known)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(data, other.data);
  std::swap(size, other.size);
  std::swap(name, other.name);
  std::swap(id, other.id);
  std::swap(known, other.known);
  return *this;
}

void MappedFile::release(std::span<const std::byte> part) const {
  const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t start = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t begin = (start + page - 1) / page * page;
  const uintptr_t end = (start + part.size()) / page * page;
  // A hint: where it fails, the pages stay.
  if (begin < end)
    (void)::madvise(reinterpret_cast<void *>(begin), end - begin,
                    MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  // Before its addresses can be another file's.
  known = KnownMapping();
  if (data)
    ::munmap(data, size);
}
