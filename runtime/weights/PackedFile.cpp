//===- PackedFile.cpp - Packed weights in a file --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/PackedFile.h"

#include "runtime/core/Exceptions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace kf;

namespace {

/// The file's first bytes; another form of it gets another number.
constexpr std::string_view kMagic = "KernelForge packed weights 1\n";
/// Weights begin at a multiple of it, in the file and in memory.
constexpr uint64_t kHugePage = uint64_t(2) << 20;
/// Bytes that have a sum of their own.
constexpr uint64_t kSummed = uint64_t(4) << 20;
/// Bytes that are written at a time.
constexpr uint64_t kWritten = 4 * kHugePage;
/// The head behind the magic: its bytes, and those of the whole file.
constexpr uint64_t kSizes = 2 * sizeof(uint64_t);
constexpr uint64_t kMostHead = uint64_t(1) << 30;

uint64_t rounded(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// Another sum for any bytes in which one word of eight differs, and for nearly
/// all others. Several chains, for a multiplication takes time.
uint64_t sumOf(std::span<const std::byte> bytes) {
  constexpr uint64_t prime = 0x9e3779b97f4a7c15;
  std::array<uint64_t, 8> sums = {1, 2, 3, 4, 5, 6, 7, 8}, words;
  auto mix = [](uint64_t &sum, uint64_t word) {
    sum = std::rotl((sum ^ word) * prime, 29);
  };
  size_t at = 0;
  for (; at + sizeof(words) <= bytes.size(); at += sizeof(words)) {
    std::memcpy(words.data(), bytes.data() + at, sizeof(words));
    for (size_t i = 0; i < words.size(); ++i)
      mix(sums[i], words[i]);
  }
  words = {};
  if (at < bytes.size())
    std::memcpy(words.data(), bytes.data() + at, bytes.size() - at);
  uint64_t all = bytes.size();
  for (size_t i = 0; i < words.size(); ++i) {
    mix(sums[i], words[i]);
    mix(all, sums[i]);
  }
  return all;
}

/// Runs task(i) for i below `count` on the threads that pack.
Status forEach(const PackOptions &options, size_t count,
               const std::function<Status(size_t)> &task) {
  auto run = [&](int64_t i) {
    return isCancelled(options.cancelled)
               ? Status::cancelled()
               : catchExceptions([&] { return task(static_cast<size_t>(i)); });
  };
  if (options.pool)
    return options.pool->parallelFor(static_cast<int64_t>(count), run);
  for (size_t i = 0; i < count; ++i)
    KF_RETURN_IF_ERROR(run(static_cast<int64_t>(i)));
  return Status();
}

//===----------------------------------------------------------------------===//
// The head
//===----------------------------------------------------------------------===//

/// A weight's place in the file, and the sums of its parts of kSummed bytes.
struct Place {
  std::string key;
  uint64_t first = 0, bytes = 0;
  std::vector<uint64_t> sums;

  uint64_t parts() const { return rounded(bytes, kSummed) / kSummed; }
};

struct Head {
  std::string identity, model;
  std::vector<Place> places;
  uint64_t fileBytes = 0;
};

/// Numbers are written as the processor has them: what packing makes of
/// weights is of one kind of processor as well.
class HeadWriter {
public:
  void number(uint64_t value) {
    bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
  }
  void text(std::string_view text) {
    number(text.size());
    bytes += text;
  }
  std::string bytes;
};

/// Reads what HeadWriter wrote from bytes that may be anything.
class HeadReader {
public:
  explicit HeadReader(std::string_view bytes) : rest(bytes) {}

  uint64_t number() {
    uint64_t value = 0;
    if (rest.size() < sizeof(value)) {
      isBroken = true;
      return 0;
    }
    std::memcpy(&value, rest.data(), sizeof(value));
    rest.remove_prefix(sizeof(value));
    return value;
  }
  std::string text() {
    const uint64_t size = number();
    isBroken |= size > rest.size();
    const std::string result(rest.substr(0, isBroken ? 0 : size));
    rest.remove_prefix(result.size());
    return result;
  }
  /// How many things of at least `each` bytes there are.
  uint64_t count(uint64_t each) {
    const uint64_t count = number();
    isBroken |= count > rest.size() / each;
    return isBroken ? 0 : count;
  }
  bool isSound() const { return !isBroken; }
  bool isAtEnd() const { return rest.empty(); }

private:
  std::string_view rest;
  bool isBroken = false;
};

/// The file's bytes before the first weight, as many as places without sums
/// have that has as many parts.
std::string headText(const Head &head) {
  HeadWriter body;
  body.text(head.identity);
  body.text(head.model);
  body.number(head.places.size());
  for (const Place &place : head.places) {
    body.text(place.key);
    body.number(place.first);
    body.number(place.bytes);
    for (uint64_t part = 0; part < place.parts(); ++part)
      body.number(part < place.sums.size() ? place.sums[part] : 0);
  }
  HeadWriter out;
  out.bytes = kMagic;
  out.number(kMagic.size() + kSizes + body.bytes.size() + sizeof(uint64_t));
  out.number(head.fileBytes);
  out.bytes += body.bytes;
  out.number(sumOf(std::as_bytes(std::span(out.bytes))));
  return out.bytes;
}

/// The head of a file of `weights`, without their sums.
Head layOut(std::string_view identity, std::string_view model,
            std::span<const PackedWeight> weights) {
  Head head;
  head.identity = identity;
  head.model = model;
  for (const PackedWeight &weight : weights) {
    Place &place = head.places.emplace_back();
    place.key = weight.key;
    place.bytes = weight.bytes.size();
  }
  uint64_t end = rounded(headText(head).size(), kHugePage);
  for (Place &place : head.places) {
    place.first = rounded(end, KF_BUFFER_ALIGNMENT);
    end = place.first + place.bytes;
  }
  head.fileBytes = end;
  return head;
}

/// Reads `bytes` bytes of the file from `first` on.
Result<std::string> readBytes(const Descriptor &file, uint64_t first,
                              uint64_t bytes) {
  std::string result(bytes, '\0');
  for (size_t done = 0; done < bytes;) {
    const ssize_t got = ::pread(file.get(), result.data() + done, bytes - done,
                                static_cast<off_t>(first + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return Status::error(std::strerror(errno));
    if (got == 0)
      return Status::error("it is cut off");
    done += static_cast<size_t>(got);
  }
  return result;
}

/// The head of a file of `bytes` bytes: every place is within it. The system
/// reads nothing ahead.
Result<Head> readHead(const Descriptor &file, uint64_t bytes) {
  (void)::posix_fadvise(file.get(), 0, 0, POSIX_FADV_RANDOM);
  const auto damaged = [] { return Status::error("its head is damaged"); };
  constexpr uint64_t least = kMagic.size() + kSizes;
  if (bytes < least)
    return Status::error("it is cut off");
  KF_ASSIGN_OR_RETURN(std::string text, readBytes(file, 0, least));
  if (!text.starts_with(kMagic))
    return Status::error("it holds no packed weights");
  HeadReader sizes(std::string_view(text).substr(kMagic.size()));
  const uint64_t headBytes = sizes.number();
  Head head;
  head.fileBytes = sizes.number();
  if (head.fileBytes != bytes)
    return Status::error("it has " + std::to_string(bytes) + " bytes, not " +
                         std::to_string(head.fileBytes));
  if (headBytes < least + sizeof(uint64_t) || headBytes > bytes ||
      headBytes > kMostHead)
    return damaged();
  KF_ASSIGN_OR_RETURN(text, readBytes(file, 0, headBytes));
  const std::string_view summed =
      std::string_view(text).substr(0, headBytes - sizeof(uint64_t));
  if (HeadReader(std::string_view(text).substr(summed.size())).number() !=
      sumOf(std::as_bytes(std::span(summed))))
    return damaged();
  HeadReader reader(summed.substr(least));
  head.identity = reader.text();
  head.model = reader.text();
  const uint64_t count = reader.count(3 * sizeof(uint64_t));
  for (uint64_t i = 0; i < count && reader.isSound(); ++i) {
    Place place;
    place.key = reader.text();
    place.first = reader.number();
    place.bytes = reader.number();
    if (place.first < headBytes || place.first > bytes ||
        place.first % KF_BUFFER_ALIGNMENT != 0 ||
        place.bytes > bytes - place.first)
      return damaged();
    for (uint64_t part = 0; part < place.parts() && reader.isSound(); ++part)
      place.sums.push_back(reader.number());
    head.places.push_back(std::move(place));
  }
  if (!reader.isSound() || !reader.isAtEnd())
    return damaged();
  return head;
}

//===----------------------------------------------------------------------===//
// The weights
//===----------------------------------------------------------------------===//

/// Writes a new file so many whole huge pages at a time: the system caches a
/// file in pages no larger than what it is written in.
class WholePages {
public:
  WholePages(AtomicFile &file, CancelFlag cancelled)
      : file(file), cancelled(cancelled) {
    bytes.reserve(kWritten);
  }
  Status append(std::span<const std::byte> more) {
    while (!more.empty()) {
      const size_t count = std::min(kWritten - bytes.size(), more.size());
      bytes.append(reinterpret_cast<const char *>(more.data()), count);
      more = more.subspan(count);
      if (bytes.size() == kWritten)
        KF_RETURN_IF_ERROR(flush());
    }
    return Status();
  }
  /// What is left at the end.
  Status flush() {
    if (isCancelled(cancelled))
      return Status::cancelled();
    KF_RETURN_IF_ERROR(file.append(bytes));
    bytes.clear();
    return Status();
  }

private:
  AtomicFile &file;
  CancelFlag cancelled;
  std::string bytes;
};

/// Part of a mapped weight that has a sum.
struct SummedPart {
  std::span<const std::byte> bytes;
  uint64_t first = 0; ///< in the file
  uint64_t sum = 0;
  bool isResident = false; ///< its pages are in the system's memory
};

uint64_t pageBytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }

/// The whole pages around `bytes` in memory.
std::span<std::byte> pagesAround(std::span<const std::byte> bytes) {
  const uint64_t page = pageBytes();
  const auto first = reinterpret_cast<uintptr_t>(bytes.data());
  const uint64_t begin = first / page * page;
  return {reinterpret_cast<std::byte *>(begin),
          rounded(first + bytes.size(), page) - begin};
}

/// Whether the system has all pages of a part in memory; false where it does
/// not tell.
bool isResident(const Descriptor &file, const SummedPart &part) {
  const uint64_t page = pageBytes();
  const uint64_t begin = part.first / page * page;
  const uint64_t end = rounded(part.first + part.bytes.size(), page);
#ifdef SYS_cachestat
  constexpr long number = SYS_cachestat;
#else
  constexpr long number = 451; // on every architecture
#endif
  struct {
    uint64_t first, bytes;
  } const range = {begin, end - begin};
  struct {
    uint64_t pages, dirty, written, evicted, evictedOfLate;
  } counts = {};
  if (::syscall(number, file.get(), &range, &counts, 0) == 0)
    return counts.pages == (end - begin) / page;
  const std::span<std::byte> pages = pagesAround(part.bytes);
  std::vector<unsigned char> resident(pages.size() / page);
  return ::mincore(pages.data(), pages.size(), resident.data()) == 0 &&
         std::ranges::all_of(
             resident, [](unsigned char bits) { return (bits & 1) != 0; });
}

/// Has the pages of `bytes` mapped, read from the disk where they have to be.
/// An error where they cannot be read; older systems map them later.
Status populate(std::span<const std::byte> bytes) {
#ifdef MADV_POPULATE_READ
  constexpr int advice = MADV_POPULATE_READ;
#else
  constexpr int advice = 22;
#endif
  const std::span<std::byte> pages = pagesAround(bytes);
  for (;;) {
    if (::madvise(pages.data(), pages.size(), advice) == 0 || errno == EINVAL)
      return Status();
    if (errno == ENOMEM)
      return Status::outOfMemory();
    if (errno != EINTR && errno != EAGAIN)
      return Status::error("its bytes cannot be read");
  }
}

} // namespace

uint64_t PackedFile::bytesFor(std::string_view identity, std::string_view model,
                              std::span<const PackedWeight> weights) {
  return layOut(identity, model, weights).fileBytes;
}

Status PackedFile::write(AtomicFile &file, std::string_view identity,
                         std::string_view model,
                         std::span<const PackedWeight> weights,
                         const PackOptions &options) {
  Head head = layOut(identity, model, weights);
  KF_RETURN_IF_ERROR(file.reserve(head.fileBytes));
  std::vector<std::pair<size_t, size_t>> parts; // of which place, which one
  for (size_t i = 0; i < weights.size(); ++i) {
    head.places[i].sums.resize(head.places[i].parts());
    for (size_t part = 0; part < head.places[i].sums.size(); ++part)
      parts.emplace_back(i, part);
  }
  KF_RETURN_IF_ERROR(forEach(options, parts.size(), [&](size_t i) {
    const auto [place, part] = parts[i];
    const std::span<const std::byte> rest =
        weights[place].bytes.subspan(part * kSummed);
    head.places[place].sums[part] =
        sumOf(rest.first(std::min<size_t>(kSummed, rest.size())));
    return Status();
  }));
  const std::string text = headText(head);
  WholePages pages(file, options.cancelled);
  KF_RETURN_IF_ERROR(pages.append(std::as_bytes(std::span(text))));
  uint64_t at = text.size();
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::vector<std::byte> gap(head.places[i].first - at);
    KF_RETURN_IF_ERROR(pages.append(gap));
    KF_RETURN_IF_ERROR(pages.append(weights[i].bytes));
    at = head.places[i].first + weights[i].bytes.size();
  }
  return pages.flush();
}

Result<std::string> PackedFile::modelOf(const Descriptor &file,
                                        uint64_t bytes) {
  KF_ASSIGN_OR_RETURN(Head head, readHead(file, bytes));
  return std::move(head.model);
}

Result<std::unique_ptr<PackedFile>>
PackedFile::open(const Descriptor &file, uint64_t bytes,
                 const std::string &path, std::string_view identity,
                 const PackOptions &options) {
  KF_ASSIGN_OR_RETURN(Head head, readHead(file, bytes));
  if (head.identity != identity)
    return Status::error("it holds weights of another model");
  std::unique_ptr<PackedFile> result(new PackedFile);
  result->mappingBytes = rounded(bytes, kHugePage) + kHugePage;
  void *room = ::mmap(nullptr, result->mappingBytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    return Status::outOfMemory();
  result->mapping = room;
  auto *base = reinterpret_cast<std::byte *>(
      rounded(reinterpret_cast<uintptr_t>(room), kHugePage));
  if (::mmap(base, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, file.get(), 0) ==
      MAP_FAILED)
    return errno == ENOMEM || errno == EAGAIN
               ? Status::outOfMemory()
               : Status::error(std::string("it cannot be mapped: ") +
                               std::strerror(errno));
  result->known = KnownMapping(base, bytes, path);
#ifdef MADV_HUGEPAGE
  // Only a wish: it depends on the file system, too.
  (void)::madvise(base, bytes, MADV_HUGEPAGE);
#endif

  std::vector<SummedPart> parts;
  for (const Place &place : head.places) {
    const std::span<const std::byte> whole(base + place.first, place.bytes);
    result->weights.emplace(place.key, whole);
    for (size_t part = 0; part < place.sums.size(); ++part) {
      const std::span<const std::byte> rest = whole.subspan(part * kSummed);
      parts.push_back(
          {.bytes = rest.first(std::min<size_t>(kSummed, rest.size())),
           .first = place.first + part * kSummed,
           .sum = place.sums[part]});
    }
  }
  // What is in memory is what a writer wrote or a reader has checked, unless a
  // reader is about to. It is asked before any weight is read.
  const bool isAlone = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
  if (isAlone)
    for (SummedPart &part : parts)
      part.isResident = isResident(file, part);
  (void)::posix_fadvise(file.get(), 0, 0, POSIX_FADV_NORMAL);
  const Status checked = forEach(options, parts.size(), [&](size_t i) {
    const SummedPart &part = parts[i];
    KF_RETURN_IF_ERROR(populate(part.bytes));
    return part.isResident || sumOf(part.bytes) == part.sum
               ? Status()
               : Status::error("its bytes are damaged (their sum differs)");
  });
  if (!checked.ok()) {
    // What was read and not checked is not to be in memory for the next one.
    result.reset();
    (void)::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  if (isAlone)
    (void)::flock(file.get(), LOCK_UN);
  KF_RETURN_IF_ERROR(checked);
  return result;
}

PackedFile::~PackedFile() {
  // Before its addresses can be another file's.
  known = KnownMapping();
  if (mapping)
    ::munmap(mapping, mappingBytes);
}

std::span<const std::byte> PackedFile::find(const std::string &key) const {
  const auto found = weights.find(key);
  return found == weights.end() ? std::span<const std::byte>() : found->second;
}
