//===- WeightStore.h - Weights on a device, each once -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_WEIGHTSTORE_H
#define KF_RUNTIME_WEIGHTS_WEIGHTSTORE_H

#include "runtime/core/AlignedBuffer.h"
#include "runtime/devices/Device.h"
#include "runtime/weights/PackedCache.h"
#include "runtime/weights/TensorParts.h"
#include "runtime/weights/WeightPacking.h"
#include "runtime/weights/WeightSource.h"
#include "runtime/weights/WeightUploader.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kf {

/// What weights are packed from, for a PackedCache.
struct PackedSource {
  std::string identity; ///< all that packed bytes depend on beside their specs
  std::string model;    ///< for people
  std::vector<FileIdentity> files; ///< that must not have changed
};

/// Holds every weight that the programs of a model asked for, packed as they
/// asked for it. Owns the buffers; `device`, `source` and what `packing` refers
/// to must outlive it. One thread.
class WeightStore {
public:
  /// `source` may be null for programs without weights.
  WeightStore(Device &device, const WeightSource *source,
              const PackOptions &packing = {})
      : device(device), source(source), packing(packing) {}

  /// The buffer of `spec`, packed when it is first asked for. What the source
  /// holds as kernels want it is not copied; every other tensor is released
  /// when it is packed, so many bytes at a time (PackOptions), for few are
  /// needed again.
  Result<Buffer *> get(const WeightSpec &spec);

  /// The buffers of `specs`, in their order: get() for each.
  Result<std::vector<Buffer *>> getAll(std::span<const WeightSpec> specs);
  /// From now on, a getAll() that has weights to make calls `callback` with the
  /// bytes of those that are made and of all: before the first one, after each,
  /// and once more with all of all where it fails.
  using Progress = std::function<void(uint64_t done, uint64_t all)>;
  void onProgress(Progress callback) { progress = std::move(callback); }

  /// From now on, a getAll() that has weights to make takes those that are kept
  /// in `cache`, which has to outlive this, or packs all and keeps them there,
  /// unless the files have changed, or may have. On devices that read memory
  /// where it lies; with others it changes nothing.
  void keepIn(const PackedCache &cache, PackedSource of) {
    keeper = &cache;
    keptSource = std::move(of);
  }

  /// The first of the tensors `names` with an element, or a block's scale, that
  /// is no finite number: "tensor 'x' has a NaN in row 3"; nothing if there is
  /// none. Reads them all, on the threads that pack. Error: packing is
  /// cancelled.
  Result<std::optional<std::string>>
  findNonFinite(std::span<const std::string> names) const;

  /// Bytes of all weights, those that lie in the file included.
  uint64_t bytes() const { return totalBytes; }
  /// Time spent in packing so far.
  double seconds() const { return packSeconds; }

private:
  /// The buffers of `specs`; `onProgress`, which may be empty, as onProgress()
  /// says.
  Result<std::vector<Buffer *>> getEach(std::span<const WeightSpec> specs,
                                        const Progress &onProgress);
  /// Of the weights that a call makes, in a PackedCache.
  struct Keeping {
    std::string identity;             ///< empty: they are not kept
    bool isSettled = false;           ///< files tell of every write from now on
    const PackedFile *file = nullptr; ///< null: they are not there yet
    bool has(const std::string &key, int64_t bytes) const {
      return file && file->find(key).size() == static_cast<uint64_t>(bytes);
    }
  };
  Result<Keeping> lookUp(const std::map<std::string, int64_t> &missing);
  Status keep(const Keeping &keeping) const;
  Result<std::unique_ptr<Buffer>> make(const WeightSpec &spec, int64_t bytes);
  Result<std::unique_ptr<Buffer>> pack(const WeightSpec &spec, int64_t bytes);
  Status packInParts(const WeightSpec &spec, std::span<std::byte> dst);
  Result<std::span<std::byte>> takeRoom(uint64_t bytes);
  Result<bool> isInHostMemory();
  Result<bool> sharesMemory();
  Status finishUploads(std::span<const std::string> keys);
  void addRead(std::span<const TensorPart> parts);
  void releasePacked();

  Device &device;
  const WeightSource *source;
  PackOptions packing;
  Progress progress;
  std::optional<bool> hostMemory; ///< whether the device's is the host's
  std::optional<bool> sharing;    ///< whether it wraps memory without a copy
  /// Where weights lie one behind the other, if it does. Huge pages have few
  /// ends then, and lines that are prefetched behind the end of a weight are
  /// those that the next kernel begins with.
  std::vector<AlignedBuffer> slabs;
  uint64_t slabUsed = 0;               ///< bytes of the last one
  const PackedCache *keeper = nullptr; ///< null: there is none
  PackedSource keptSource;
  std::vector<std::unique_ptr<PackedFile>> kept; ///< which buffers refer to
  std::vector<PackedWeight> packedNow; ///< in slabs, by the call that goes on
  std::map<std::string, std::unique_ptr<Buffer>> buffers; ///< by keyOf(spec)
  /// For what the host cannot write; null unless weights are on their way. It
  /// waits for them when it goes, before the buffers do.
  std::unique_ptr<WeightUploader> uploader;
  int64_t missingBytes = 0;     ///< of the weights that a call still makes
  std::set<std::string> bound;  ///< tensors that buffers refer to
  std::vector<TensorPart> read; ///< parts to release
  uint64_t readBytes = 0;       ///< of `read`
  std::set<std::string> packed; ///< tensors to release, but those of `bound`
  uint64_t totalBytes = 0;
  double packSeconds = 0;
};

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_WEIGHTSTORE_H
