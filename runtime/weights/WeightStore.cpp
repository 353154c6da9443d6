//===- WeightStore.cpp - Weights on a device, each once -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/WeightStore.h"

#include "runtime/core/Lines.h"
#include "runtime/core/Quote.h"
#include "runtime/core/Stopwatch.h"
#include "runtime/weights/NonFinite.h"
#include "runtime/weights/WeightPacking.h"

#include <algorithm>
#include <numeric>
#include <vector>

using namespace kf;

namespace {

/// Bytes of memory that weights share, where there are so many of them.
constexpr uint64_t kSlabBytes = uint64_t(1) << 30;
/// Bytes of a tensor that one thread releases at a time.
constexpr uint64_t kReleasedSlice = uint64_t(4) << 20;

/// What a weight of `bytes` takes of it.
int64_t aligned(int64_t bytes) {
  return (bytes + KF_BUFFER_ALIGNMENT - 1) / KF_BUFFER_ALIGNMENT *
         KF_BUFFER_ALIGNMENT;
}

/// A string that two specifications share only if they are equal.
std::string keyOf(const WeightSpec &spec) {
  std::string key;
  for (int64_t number :
       {static_cast<int64_t>(spec.stacked),
        static_cast<int64_t>(spec.transposed), static_cast<int64_t>(spec.type),
        static_cast<int64_t>(spec.layout.kind), spec.layout.panel,
        spec.layout.interleave, static_cast<int64_t>(spec.shape.size())})
    key += std::to_string(number) + ' ';
  for (int64_t dim : spec.shape)
    key += std::to_string(dim) + ' ';
  for (const std::string &name : spec.names)
    key += std::to_string(name.size()) + ':' + name;
  return key;
}

/// Whether kernels can read `view` where it lies: they load elements one by one
/// or in vectors that need no more alignment, and blocks by the byte.
bool isAligned(const TensorView &view) {
  const size_t alignment = isBlock(view.type) ? 1 : sizeOf(view.type);
  return reinterpret_cast<uintptr_t>(view.data) % alignment == 0;
}

} // namespace

Result<std::optional<std::string>>
WeightStore::findNonFinite(std::span<const std::string> names) const {
  for (const std::string &name : names) {
    const Result<TensorView> view = source->find(name);
    if (!view.ok())
      continue;
    const bool isBound = bound.count(name);
    auto onRead = [&](uint64_t first, uint64_t bytes) {
      if (!isBound)
        source->releasePart(name, first, bytes);
    };
    KF_ASSIGN_OR_RETURN(
        std::optional<std::string> found,
        kf::findNonFinite(*view, packing.pool, packing.cancelled, onRead));
    if (!isBound)
      source->release(name);
    if (found)
      return std::optional("tensor " + inQuotes(name) + " has " + *found);
  }
  return std::optional<std::string>();
}

Result<Buffer *> WeightStore::get(const WeightSpec &spec) {
  KF_ASSIGN_OR_RETURN(std::vector<Buffer *> made, getEach({&spec, 1}, {}));
  return made.front();
}

Result<std::vector<Buffer *>>
WeightStore::getAll(std::span<const WeightSpec> specs) {
  return getEach(specs, progress);
}

Result<std::vector<Buffer *>>
WeightStore::getEach(std::span<const WeightSpec> specs,
                     const Progress &onProgress) {
  std::vector<std::string> keys;
  std::map<std::string, int64_t> missing; // bytes, by key
  missingBytes = 0;
  uint64_t all = 0, done = 0;
  for (const WeightSpec &spec : specs) {
    const std::string &key = keys.emplace_back(keyOf(spec));
    if (buffers.count(key) || missing.count(key))
      continue;
    KF_ASSIGN_OR_RETURN(const int64_t bytes, spec.packedBytes());
    missing.emplace(key, bytes);
    all += static_cast<uint64_t>(bytes);
    if (bytes > INT64_MAX - KF_BUFFER_ALIGNMENT ||
        __builtin_add_overflow(missingBytes, aligned(bytes), &missingBytes))
      missingBytes = INT64_MAX;
  }
  auto tell = [&] {
    if (onProgress && all)
      onProgress(done, all);
  };

  KF_ASSIGN_OR_RETURN(const Keeping keeping, lookUp(missing));
  packedNow.clear();
  tell();
  std::vector<Buffer *> result;
  std::vector<std::string> made; // keys
  Status status;
  for (size_t i = 0; i < specs.size(); ++i) {
    auto found = buffers.find(keys[i]);
    if (found == buffers.end()) {
      if (isCancelled(packing.cancelled)) {
        status = Status::cancelled();
        break;
      }
      const int64_t bytes = missing.at(keys[i]);
      const Stopwatch watch;
      Result<std::unique_ptr<Buffer>> buffer =
          keeping.has(keys[i], bytes)
              ? device.wrap(keeping.file->find(keys[i]).data(), bytes)
              : make(specs[i], bytes);
      packSeconds += watch.seconds();
      if (!buffer.ok()) {
        status = buffer.status();
        break;
      }
      made.push_back(keys[i]);
      missingBytes -= aligned(bytes);
      found = buffers.emplace(keys[i], buffer.take()).first;
      totalBytes += found->second->size();
      done += static_cast<uint64_t>(bytes);
      tell();
    }
    result.push_back(found->second.get());
  }
  if (done != all) {
    done = all;
    tell();
  }
  if (!packed.empty() || !read.empty()) {
    const Stopwatch watch;
    releasePacked();
    packSeconds += watch.seconds();
  }
  if (status.ok() && !keeping.file && !keeping.identity.empty())
    status = keep(keeping);
  const Status uploaded = finishUploads(made);
  KF_RETURN_IF_ERROR(status);
  KF_RETURN_IF_ERROR(uploaded);
  return result;
}

/// What is kept of the weights that are missing, if any may be.
Result<WeightStore::Keeping>
WeightStore::lookUp(const std::map<std::string, int64_t> &missing) {
  Keeping keeping;
  if (!keeper || missing.empty())
    return keeping;
  KF_ASSIGN_OR_RETURN(const bool isShared, sharesMemory());
  if (!isShared)
    return keeping;
  const Stopwatch watch;
  keeping.identity = keptSource.identity;
  keeping.isSettled = true;
  for (const FileIdentity &file : keptSource.files) {
    keeping.identity += file.text() + '\n';
    keeping.isSettled &= file.isSettled();
  }
  for (const auto &[key, bytes] : missing)
    keeping.identity += key + '\n';
  KF_ASSIGN_OR_RETURN(std::unique_ptr<PackedFile> found,
                      keeper->lookup(keeping.identity, packing));
  if (found)
    keeping.file = kept.emplace_back(std::move(found)).get();
  packSeconds += watch.seconds();
  return keeping;
}

/// Keeps the weights that were packed. Files that had settled before, and are
/// as they were when they were mapped, had no other bytes meanwhile.
Status WeightStore::keep(const Keeping &keeping) const {
  if (packedNow.empty())
    return Status();
  for (const FileIdentity &file : keptSource.files)
    if (!keeping.isSettled || !file.isCurrent()) {
      keeper->warning(
          "the packed weights are not kept: " + quotePath(file.path) +
          " has changed within two seconds of its use; the next start "
          "keeps them");
      return Status();
    }
  return keeper->store(keeping.identity, keptSource.model, packedNow, packing);
}

/// Waits for the weights `keys`, of which there are none after an error.
Status WeightStore::finishUploads(std::span<const std::string> keys) {
  if (!uploader)
    return Status();
  const Stopwatch watch;
  const Status status = uploader->finish();
  uploader.reset();
  packSeconds += watch.seconds();
  if (!status.ok())
    for (const std::string &key : keys)
      if (auto lost = buffers.extract(key))
        totalBytes -= lost.mapped()->size();
  return status;
}

Result<bool> WeightStore::isInHostMemory() {
  if (!hostMemory) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> probe,
                        device.allocate(KF_BUFFER_ALIGNMENT));
    hostMemory = probe->hostPointer() != nullptr;
  }
  return *hostMemory;
}

Result<bool> WeightStore::sharesMemory() {
  alignas(KF_BUFFER_ALIGNMENT) static const std::byte
      probed[KF_BUFFER_ALIGNMENT] = {};
  KF_ASSIGN_OR_RETURN(const bool isHost, isInHostMemory());
  if (!isHost)
    return false;
  if (!sharing) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> probe,
                        device.wrap(probed, sizeof(probed)));
    sharing = probe->hostPointer() == probed;
  }
  return *sharing;
}

/// The next `bytes` bytes of a slab, which are taken when there is a buffer of
/// them.
Result<std::span<std::byte>> WeightStore::takeRoom(uint64_t bytes) {
  if (slabs.empty() || slabUsed > slabs.back().size() ||
      slabs.back().size() - slabUsed < bytes) {
    const uint64_t wanted =
        std::min(static_cast<uint64_t>(missingBytes), kSlabBytes);
    Result<AlignedBuffer> slab =
        AlignedBuffer::allocate(std::max(bytes, wanted));
    if (!slab.ok() && bytes < wanted)
      slab = AlignedBuffer::allocate(bytes);
    KF_RETURN_IF_ERROR(slab.status());
    slabs.push_back(slab.take());
    slabUsed = 0;
  }
  return slabs.back().span().subspan(slabUsed, bytes);
}

Result<std::unique_ptr<Buffer>> WeightStore::make(const WeightSpec &spec,
                                                  int64_t bytes) {
  if (!source)
    return Status::error("the program needs weight '" + spec.names.front() +
                         "', but there is no checkpoint");
  // A view that fails to be found is reported, with its name, by packing.
  Result<TensorView> view = source->find(spec.names.front());
  KF_ASSIGN_OR_RETURN(const bool isShared, isInHostMemory());
  std::unique_ptr<Buffer> buffer;
  if (isShared && view.ok() && canBindDirectly(spec, *view) &&
      isAligned(*view)) {
    KF_ASSIGN_OR_RETURN(buffer, device.wrap(view->data, view->bytes));
    if (buffer->hostPointer() == view->data)
      bound.insert(spec.names.front());
    else
      addRead({{{spec.names.front(), 0, view->bytes}}});
  } else {
    KF_ASSIGN_OR_RETURN(buffer, pack(spec, bytes));
  }
  for (const std::string &name : spec.names)
    if (!bound.count(name))
      packed.insert(name);
  if (readBytes >= packing.releasedBytes)
    releasePacked();
  return buffer;
}

/// Parts of tensors that were read for a weight that is being packed. Those of
/// tensors that wait to be released are known.
void WeightStore::addRead(std::span<const TensorPart> parts) {
  for (const TensorPart &part : parts)
    if (!bound.count(part.name) && !packed.count(part.name)) {
      read.push_back(part);
      readBytes += part.bytes;
    }
}

/// Releases what was read of tensors, and all of those that were packed, while
/// nobody reads them.
void WeightStore::releasePacked() {
  std::vector<TensorPart> slices;
  for (const TensorPart &part : read)
    if (!bound.count(part.name))
      for (uint64_t at = 0; at < part.bytes; at += kReleasedSlice)
        slices.push_back({part.name, part.first + at,
                          std::min(kReleasedSlice, part.bytes - at)});
  std::vector<std::string> names;
  for (const std::string &name : packed)
    if (!bound.count(name))
      names.push_back(name);
  read.clear();
  readBytes = 0;
  packed.clear();
  auto forEach = [&](size_t count, const std::function<void(size_t)> &fn) {
    auto task = [&](int64_t number) {
      fn(static_cast<size_t>(number));
      return Status();
    };
    if (packing.pool)
      (void)packing.pool->parallelFor(static_cast<int64_t>(count),
                                      task); // which cannot fail
    else
      for (size_t number = 0; number < count; ++number)
        fn(number);
  };
  forEach(slices.size(), [&](size_t i) {
    source->releasePart(slices[i].name, slices[i].first, slices[i].bytes);
  });
  forEach(names.size(), [&](size_t i) { source->release(names[i]); });
}

/// Packs `spec` into `dst`, and releases what was read meanwhile.
Status WeightStore::packInParts(const WeightSpec &spec,
                                std::span<std::byte> dst) {
  // As many units as begin where memory is aligned.
  const int64_t unit = packedUnit(spec);
  const int64_t least =
      unit / std::gcd(unit, int64_t(KF_BUFFER_ALIGNMENT)) * KF_BUFFER_ALIGNMENT;
  const auto bytes = static_cast<int64_t>(dst.size());
  const int64_t wanted = static_cast<int64_t>(
      std::min(packing.releasedBytes, static_cast<uint64_t>(bytes)));
  const int64_t part = ((wanted - 1) / least + 1) * least;
  for (int64_t first = 0; first < bytes; first += part) {
    const int64_t count = std::min(part, bytes - first);
    KF_RETURN_IF_ERROR(packWeightPart(
        spec, *source, first,
        dst.subspan(static_cast<size_t>(first), static_cast<size_t>(count)),
        packing));
    addRead(tensorPartsOf(spec, *source, first, count));
    if (readBytes >= packing.releasedBytes && first + count < bytes)
      releasePacked();
  }
  return Status();
}

Result<std::unique_ptr<Buffer>> WeightStore::pack(const WeightSpec &spec,
                                                  int64_t bytes) {
  KF_ASSIGN_OR_RETURN(const bool isShared, sharesMemory());
  if (isShared) {
    KF_ASSIGN_OR_RETURN(std::span<std::byte> room,
                        takeRoom(static_cast<uint64_t>(bytes)));
    KF_RETURN_IF_ERROR(packInParts(spec, room));
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer,
                        device.wrap(room.data(), room.size()));
    slabUsed += static_cast<uint64_t>(aligned(bytes));
    packedNow.push_back({keyOf(spec), room});
    return buffer;
  }
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer, device.allocate(bytes));
  if (void *memory = buffer->hostPointer()) {
    KF_RETURN_IF_ERROR(packInParts(
        spec, {static_cast<std::byte *>(memory), static_cast<size_t>(bytes)}));
    return buffer;
  }
  if (!uploader) {
    KF_ASSIGN_OR_RETURN(
        uploader, WeightUploader::create(
                      device, WeightUploader::partBytesFor(missingBytes)));
  }
  auto addPart = [&](int64_t first, int64_t count) {
    addRead(tensorPartsOf(spec, *source, first, count));
    if (readBytes >= packing.releasedBytes && first + count < bytes)
      releasePacked();
  };
  if (Status status =
          uploader->upload(spec, *source, *buffer, packing, addPart);
      !status.ok()) {
    (void)uploader->finish(); // before the buffer goes
    return status;
  }
  return buffer;
}
