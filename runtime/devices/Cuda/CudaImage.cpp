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

/// The words of PTX without its comments: names and directives with their dots,
/// strings, single characters of any other kind.
class PtxWords {
public:
  explicit PtxWords(std::string_view text) : rest(text) {}

  /// Empty at the end.
  std::string_view next() {
    skipSpace();
    size_t size = std::min<size_t>(rest.size(), 1);
    if (rest.starts_with('"'))
      size = rest.find('"', 1) + 1; // 0: it does not end
    else if (!rest.empty() && isOfName(rest[0]))
      size = std::ranges::find_if_not(rest, isOfName) - rest.begin();
    return take(size ? size : rest.size());
  }

private:
  static bool isOfName(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' ||
           c == '.';
  }
  std::string_view take(size_t size) {
    const std::string_view taken = rest.substr(0, size);
    rest.remove_prefix(taken.size());
    return taken;
  }
  void skipTo(std::string_view end) {
    const size_t at = rest.find(end, 2); // behind what begins the comment
    take(at == std::string_view::npos ? rest.size() : at + end.size());
  }
  void skipSpace() {
    while (!rest.empty()) {
      if (rest.starts_with("//"))
        skipTo("\n");
      else if (rest.starts_with("/*"))
        skipTo("*/");
      else if (rest[0] <= ' ')
        take(1);
      else
        return;
    }
  }

  std::string_view rest;
};

/// Of "sm_90a".
std::optional<PtxTarget> parseTarget(std::string_view name) {
  constexpr std::string_view prefix = "sm_";
  if (!name.starts_with(prefix))
    return std::nullopt;
  name.remove_prefix(prefix.size());
  PtxTarget target;
  auto [end, code] =
      std::from_chars(name.data(), name.data() + name.size(), target.number);
  if (code != std::errc())
    return std::nullopt;
  name.remove_prefix(end - name.data());
  target.isExact = name.starts_with('a');
  target.isFamily = name.starts_with('f');
  return target;
}

/// Behind an entry's name: "(.param .u64 a, .param .u64 b)", or the body.
size_t countParameters(PtxWords &words) {
  size_t count = 0;
  if (words.next() == "(")
    for (std::string_view word = words.next(); !word.empty() && word != ")";
         word = words.next())
      count += word == ".param";
  return count;
}

/// What the text says of itself and of its entry. Text in which an entry could
/// hide from this, behind a quote in a string or a directive of a preprocessor,
/// and text with several of the name, have no count of parameters.
void readHead(CudaImage &image) {
  const bool isPlain =
      image.bytes.find_first_of("\\#") == std::string_view::npos;
  PtxWords words(image.bytes);
  size_t entries = 0;
  for (std::string_view word = words.next(); !word.empty();
       word = words.next()) {
    if (word == ".target" && !image.target) {
      image.target = parseTarget(words.next());
    } else if (word == ".entry" && words.next() == cudaEntryName) {
      image.parameters = countParameters(words);
      ++entries;
    } else if (word == "griddepcontrol.wait") {
      image.waits = true;
    }
  }
  if (!isPlain || entries != 1)
    image.parameters.reset();
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
      readHead(image);
    images.push_back(image);
  }
  if (!binary.empty())
    return Status::error(std::to_string(binary.size()) +
                         " bytes follow the code of the last kernel");
  return images;
}
