//===- MpiGroup.cpp - Collectives by MPI ----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/MpiGroup.h"

#include "runtime/core/Exceptions.h"

#include <vector>

using namespace kf;

namespace {

class MpiRank final : public Group {
public:
  MpiRank(int64_t rank, int64_t size, MpiLibrary &library, RankLinks &links,
          bool isCrowded)
      : Group(rank, size), library(library), links(links),
        isCrowded(isCrowded) {}

  Status allReduce(DataType type, const void *source, void *target,
                   uint64_t elements) override {
    return call([&] {
      return type == DataType::F32 ? sum(static_cast<const float *>(source),
                                         static_cast<float *>(target), elements)
                                   : sumRounded(type, source, target, elements);
    });
  }

  Status allGather(const void *source, void *target, uint64_t bytes) override {
    return call(
        [&] { return library.gather(source, target, bytes, isCrowded, poll); });
  }

  Status send(const void *source, uint64_t bytes) override {
    return call(
        [&] { return library.send(source, bytes, next(), isCrowded, poll); });
  }

  Status receive(void *target, uint64_t bytes) override {
    return call([&] {
      return library.receive(target, bytes, previous(), isCrowded, poll);
    });
  }

  void abort(std::string_view reason) override { links.abort(reason); }

  Status failure() const override { return links.failure(); }

private:
  template <typename Fn> Status call(Fn fn) {
    KF_RETURN_IF_ERROR(poll());
    const Status status = catchExceptions(fn);
    // Others wait for what does not come.
    if (!status.ok())
      links.abort(status.message());
    return status;
  }

  Status sum(const float *source, float *target, uint64_t elements) {
    return library.sum(source, target, elements, isCrowded, poll);
  }

  Status sumRounded(DataType type, const void *source, void *target,
                    uint64_t elements) {
    const int64_t count = static_cast<int64_t>(elements);
    wide.resize(elements);
    sums.resize(elements);
    KF_RETURN_IF_ERROR(convertToFloat(
        type, static_cast<const std::byte *>(source), count, wide.data()));
    KF_RETURN_IF_ERROR(sum(wide.data(), sums.data(), elements));
    return convertFromFloat(type, sums.data(), count,
                            static_cast<std::byte *>(target));
  }

  MpiLibrary &library;
  RankLinks &links;
  bool isCrowded;
  /// MPI itself never gives up waiting for a rank that is gone.
  const MpiLibrary::Poll poll = [this] {
    return links.hasFailed() ? links.failure() : Status();
  };
  std::vector<float> wide, sums; ///< of a sum that is not f32
};

} // namespace

std::unique_ptr<Group> kf::createMpiGroup(int64_t rank, int64_t size,
                                          MpiLibrary &library, RankLinks &links,
                                          bool isCrowded) {
  return std::make_unique<MpiRank>(rank, size, library, links, isCrowded);
}
