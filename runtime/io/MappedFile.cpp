//===- MappedFile.cpp - A file mapped read-only ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/MappedFile.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace kf;

static Status cannotOpen(const std::string &path, const char *reason) {
  return Status::error("cannot open '" + path + "': " + reason);
}

Result<MappedFile> MappedFile::open(const std::string &path) {
  // A path with a NUL in it would name another file than the one printed.
  if (path.find('\0') != std::string::npos)
    return cannotOpen(path.c_str(), "the name holds a zero byte");
  // O_NONBLOCK: a pipe answers at once instead of waiting for a writer.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return cannotOpen(path, std::strerror(errno));
  struct stat info;
  if (::fstat(fd, &info) != 0) {
    Status failure = cannotOpen(path, std::strerror(errno));
    ::close(fd);
    return failure;
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return cannotOpen(path, S_ISDIR(info.st_mode) ? "Is a directory"
                                                  : "Not a regular file");
  }

  MappedFile file;
  file.name = path;
  file.size = static_cast<size_t>(info.st_size);
  if (file.size != 0) {
    void *mapped = ::mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapped == MAP_FAILED) {
      Status failure =
          Status::error("cannot map '" + path + "': " + std::strerror(errno));
      file.size = 0;
      ::close(fd);
      return failure;
    }
    file.data = mapped;
    file.known = KnownMapping(mapped, file.size, path);
  }
  ::close(fd);
  return file;
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : data(std::exchange(other.data, nullptr)),
      size(std::exchange(other.size, 0)), name(std::move(other.name)),
      known(std::move(other.known)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(data, other.data);
  std::swap(size, other.size);
  std::swap(name, other.name);
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
