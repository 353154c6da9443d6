//===- WeightUploader.cpp - Weights on their way to a device --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/WeightUploader.h"

#include <algorithm>

using namespace kf;

Result<std::unique_ptr<WeightUploader>>
WeightUploader::create(Device &device, int64_t partBytes) {
  std::unique_ptr<WeightUploader> self(new WeightUploader(device, partBytes));
  for (Slot &slot : self->slots) {
    KF_ASSIGN_OR_RETURN(slot.copied, device.createEvent());
  }
  KF_ASSIGN_OR_RETURN(self->stream, device.createStream());
  return self;
}

int64_t WeightUploader::partBytesFor(int64_t bytes) {
  // To pin memory takes 0.4 ms a megabyte, in which nothing is copied, and to
  // begin and end a part about as much as to pack a megabyte.
  constexpr int64_t least = int64_t(1) << 20, most = int64_t(32) << 20;
  constexpr int64_t slotCount = std::tuple_size_v<decltype(slots)>;
  return std::clamp((bytes - 1) / slotCount + 1, least, most);
}

/// A slot of `bytes` bytes at least that nothing reads any more.
Result<WeightUploader::Slot *> WeightUploader::nextSlot(uint64_t bytes) {
  Slot &slot = slots[turn++ % slots.size()];
  KF_RETURN_IF_ERROR(slot.copied->synchronize());
  if (slot.memory && slot.memory->size() >= bytes)
    return &slot;
  slot.memory.reset();
  Result<std::unique_ptr<Buffer>> made =
      device.allocate(std::max(bytes, static_cast<uint64_t>(partBytes)),
                      MemoryKind::HostPinned);
  if (made.ok()) {
    slot.memory = made.take();
    return &slot;
  }
  // One is enough where there is no memory for more.
  for (Slot &other : slots)
    if (other.memory && other.memory->size() >= bytes) {
      KF_RETURN_IF_ERROR(other.copied->synchronize());
      return &other;
    }
  return made.status();
}

Status
WeightUploader::upload(const WeightSpec &spec, const WeightSource &source,
                       Buffer &target, const PackOptions &options,
                       const std::function<void(int64_t, int64_t)> &onPacked) {
  KF_ASSIGN_OR_RETURN(const int64_t bytes, spec.packedBytes());
  const int64_t unit = packedUnit(spec);
  const int64_t part = std::max<int64_t>(partBytes / unit, 1) * unit;
  for (int64_t first = 0; first < bytes; first += part) {
    const int64_t count = std::min(part, bytes - first);
    KF_ASSIGN_OR_RETURN(Slot * slot, nextSlot(static_cast<uint64_t>(count)));
    KF_RETURN_IF_ERROR(
        packWeightPart(spec, source, first,
                       {static_cast<std::byte *>(slot->memory->hostPointer()),
                        static_cast<size_t>(count)},
                       options));
    KF_RETURN_IF_ERROR(stream->copy(target, static_cast<uint64_t>(first),
                                    *slot->memory, 0,
                                    static_cast<uint64_t>(count)));
    KF_RETURN_IF_ERROR(stream->record(*slot->copied));
    if (onPacked)
      onPacked(first, count);
  }
  return Status();
}

Status WeightUploader::finish() {
  Status status = stream->synchronize();
  if (failure.ok())
    failure = std::move(status);
  return failure;
}
