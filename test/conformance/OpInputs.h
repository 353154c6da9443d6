//===- OpInputs.h - Inputs of the conformance suite -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a function of test/conformance/ops is run with: pseudo-random numbers,
// and where numbers mean something, such that do.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_CONFORMANCE_OPINPUTS_H
#define KF_TEST_CONFORMANCE_OPINPUTS_H

#include "runtime/engine/ProgramRunner.h"
#include "runtime/program/Executable.h"
#include "runtime/weights/WeightSource.h"

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace kf::test {

/// Pages of a cache, and how many of them a function's page table may have.
inline constexpr int64_t cachePages = 4;

/// Inputs that say which sequence a row belongs to, which position it has there
/// and where pages are, by their numbers among the tensors that a function
/// takes; which slots have states, positions of rows that go on from those; and
/// of how many sequences there are pages or states. Of those that say which
/// experts a program's rows choose, how many experts there are.
struct CacheInputs {
  std::set<size_t> sequences, positions, laterPositions, pageTables, slots;
  int64_t sequenceCount = 1;
  std::map<size_t, int64_t> experts;
};

/// What floats of inputs are.
struct InputKind {
  /// Three of each input, anywhere, are not finite.
  bool special = false;
  /// Whole numbers up to 127, which every 32nd one is: with the scale of each
  /// 32, codes of 8 bits are exact.
  bool fitsBytes = false;
  /// Those of rows are multiplied by this.
  float scale = 1;

  std::string text() const {
    return special      ? ", some values not finite"
           : fitsBytes  ? ", rows of bytes"
           : scale == 1 ? ""
                        : ", rows times " + std::to_string(scale);
  }
};

/// `rows` tokens; of each named size fewer than of the one before, down to
/// none.
StepSizes makeSizes(const Executable &program, int64_t rows);

/// Inputs of `program` for a step of `sizes`, whose rows are of each sequence
/// in turn, at its next position. Pages come in no order; nor do experts, some
/// of which are below 0, or more than there are.
std::vector<HostTensor> makeInputs(const Executable &program,
                                   const StepSizes &sizes, std::mt19937 &random,
                                   const InputKind &kind,
                                   const CacheInputs &cacheInputs);

/// Random values for every weight that a program names: floats in [-1, 1), and
/// blocks of random codes whose scales make the values about as large.
class RandomWeights : public WeightSource {
public:
  /// `program` reads each weight as the checkpoint holds it, as the reference's
  /// programs do.
  explicit RandomWeights(const Executable &program);

  Result<TensorView> find(const std::string &name) const override;
  std::vector<std::string> names() const override { return {}; }

private:
  std::map<std::string, HostTensor> tensors;
};

} // namespace kf::test

#endif // KF_TEST_CONFORMANCE_OPINPUTS_H
