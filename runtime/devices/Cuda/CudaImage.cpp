//===- CudaImage.cpp - Kernels as the driver takes them -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/CudaImage.h"

#include <algorithm>
#include <charconv>
#include <elf.h>
#include <string>

using namespace kf;

namespace {

/// EM_CUDA, which older versions of <elf.h> lack.
constexpr uint16_t cudaMachine = 190;

/// The little-endian number at `offset`, which is within `bytes`.
template <typename T> T numberAt(std::string_view bytes, uint64_t offset) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(static_cast<unsigned char>(bytes[offset + i]))
             << (8 * i);
  return value;
}

/// Whether `count` records of `size` bytes from `offset` on are within `all`.
bool isWithin(uint64_t offset, uint64_t count, uint64_t size, uint64_t all) {
  return offset <= all && (size == 0 || count <= (all - offset) / size);
}

Status checkSections(std::string_view file) {
  const auto table = numberAt<uint64_t>(file, offsetof(Elf64_Ehdr, e_shoff));
  const auto count = numberAt<uint16_t>(file, offsetof(Elf64_Ehdr, e_shnum));
  const auto size = numberAt<uint16_t>(file, offsetof(Elf64_Ehdr, e_shentsize));
  const auto names = numberAt<uint16_t>(file, offsetof(Elf64_Ehdr, e_shstrndx));
  if (count == 0 || names >= count || size != sizeof(Elf64_Shdr) ||
      !isWithin(table, count, size, file.size()))
    return Status::error("its ELF file's section table is damaged");
  for (uint64_t at = table; at < table + uint64_t(count) * size; at += size) {
    const auto type =
        numberAt<uint32_t>(file, at + offsetof(Elf64_Shdr, sh_type));
    const auto offset =
        numberAt<uint64_t>(file, at + offsetof(Elf64_Shdr, sh_offset));
    const auto bytes =
        numberAt<uint64_t>(file, at + offsetof(Elf64_Shdr, sh_size));
    if (type != SHT_NOBITS && type != SHT_NULL &&
        !isWithin(offset, bytes, 1, file.size()))
      return Status::error("a section of its ELF file is outside of the file");
  }
  return {};
}

Status checkElf(std::string_view file) {
  if (file.size() < sizeof(Elf64_Ehdr) ||
      static_cast<unsigned char>(file[EI_CLASS]) != ELFCLASS64 ||
      static_cast<unsigned char>(file[EI_DATA]) != ELFDATA2LSB ||
      numberAt<uint16_t>(file, offsetof(Elf64_Ehdr, e_machine)) != cudaMachine)
    return Status::error("its ELF file is no code for NVIDIA GPUs");
  const auto table = numberAt<uint64_t>(file, offsetof(Elf64_Ehdr, e_phoff));
  const auto count = numberAt<uint16_t>(file, offsetof(Elf64_Ehdr, e_phnum));
  const auto size = numberAt<uint16_t>(file, offsetof(Elf64_Ehdr, e_phentsize));
  if (count > 0 && (size != sizeof(Elf64_Phdr) ||
                    !isWithin(table, count, size, file.size())))
    return Status::error("its ELF file's program table is damaged");
  return checkSections(file);
}

Status checkPtx(std::string_view text) {
  if (text.empty() || text.back() != '\0')
    return Status::error("its PTX does not end in a NUL");
  text.remove_suffix(1);
  auto isText = [](char c) {
    return (c >= ' ' && c <= '~') || c == '\n' || c == '\t' || c == '\r';
  };
  const auto bad = std::ranges::find_if_not(text, isText);
  if (bad != text.end())
    return Status::error("its code is neither PTX nor an ELF file: byte " +
                         std::to_string(bad - text.begin()) + " is no text");
  return {};
}

std::optional<PtxTarget> findTarget(std::string_view text) {
  constexpr std::string_view directive = "\n.target sm_";
  const size_t at = text.find(directive);
  if (at == std::string_view::npos)
    return std::nullopt;
  const char *begin = text.data() + at + directive.size();
  PtxTarget target;
  auto [rest, code] =
      std::from_chars(begin, text.data() + text.size(), target.number);
  if (code != std::errc())
    return std::nullopt;
  // The text ends in a NUL.
  target.isExact = *rest == 'a';
  target.isFamily = *rest == 'f';
  return target;
}

} // namespace

bool PtxTarget::fits(int major, int minor) const {
  const int device = major * 10 + minor;
  if (isExact)
    return number == device;
  return number <= device && (!isFamily || number / 10 == major);
}

Result<std::vector<CudaImage>> kf::parseCudaImages(std::string_view binary,
                                                   size_t count) {
  std::vector<CudaImage> images;
  for (size_t i = 0; i < count; ++i) {
    const std::string where = "code of kernel " + std::to_string(i);
    if (binary.size() < sizeof(uint64_t))
      return Status::error(where + ": there is none");
    const auto bytes = numberAt<uint64_t>(binary, 0);
    binary.remove_prefix(sizeof(uint64_t));
    if (bytes > binary.size())
      return Status::error(where + ": it has " + std::to_string(bytes) +
                           " bytes, of which " + std::to_string(binary.size()) +
                           " are there");
    CudaImage image;
    image.bytes = binary.substr(0, bytes);
    binary.remove_prefix(bytes);
    image.isPtx = !image.bytes.starts_with(ELFMAG);
    KF_RETURN_IF_ERROR(
        (image.isPtx ? checkPtx(image.bytes) : checkElf(image.bytes))
            .in(where));
    if (image.isPtx)
      image.target = findTarget(image.bytes);
    images.push_back(image);
  }
  if (!binary.empty())
    return Status::error(std::to_string(binary.size()) +
                         " bytes follow the code of the last kernel");
  return images;
}
