//===- CeilingLoops.cpp - Ceilings as contenders --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "benchmarks/CeilingLoops.h"

#include "benchmarks/Ceilings.h"
#include "benchmarks/Operations.h"

using namespace kf;
using namespace kf::bench;

namespace {

constexpr int64_t rounds = 1 << 17;
constexpr size_t sliceBytes = 16 << 20;

class MultiplyAdds : public Contender {
public:
  Status run() override {
    (void)fmaLoop(rounds);
    return Status();
  }
};

class Reads : public Contender {
public:
  Reads() : data(slices() * sliceBytes / sizeof(float), 1.0f) {}

  Status run() override {
    slice = (slice + 1) % slices();
    sink =
        readLoop(data.data() + slice * sliceBytes / sizeof(float), sliceBytes);
    return Status();
  }

private:
  static size_t slices() { return copiesBeyondCaches(sliceBytes); }

  std::vector<float> data;
  size_t slice = 0;
  volatile float sink = 0;
};

} // namespace

Entry bench::multiplyAddCeiling() {
  return {"ceiling", std::make_unique<MultiplyAdds>(), fmaLoop(rounds), true};
}

Entry bench::readCeiling() {
  return {"ceiling", std::make_unique<Reads>(), sliceBytes, true};
}
