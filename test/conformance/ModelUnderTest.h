//===- ModelUnderTest.h - A model compiled for one device -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_CONFORMANCE_MODELUNDERTEST_H
#define KF_TEST_CONFORMANCE_MODELUNDERTEST_H

#include "runtime/devices/Device.h"
#include "runtime/engine/Session.h"
#include "runtime/weights/WeightSource.h"

#include "runtime/text/Tokenizer.h"

#include <memory>
#include <string>

namespace kf::test {

/// A model, a device and a session that compiles in memory.
class ModelUnderTest {
public:
  /// `path` is a folder of Hugging Face's or a GGUF file; `device` is "cpu" or
  /// "reference"; `cpu` is the CPU that code is made for. Fails the current
  /// test on an error.
  static std::unique_ptr<ModelUnderTest>
  open(const std::string &path, const std::string &device, unsigned threads = 1,
       const std::string &cpu = "native");
  Session &session() { return *current; }

  // For tests that run steps themselves.
  Result<Executable> compileStep(const StepShape &shape);
  Device &runsOn() { return *device; }
  const WeightSource &source() const { return *weights; }

private:
  Status readModel();

  ModelConfig config;
  std::string path, target, cpu;
  std::unique_ptr<WeightSource> weights;
  std::unique_ptr<Device> device;
  std::unique_ptr<Session> current;
};

/// Mean negative log-likelihood of the stories in a JSON array of texts, by the
/// rule of kf-stories' reference.json: begin token, text, end token, no context
/// between stories. Fails the current test on an error.
struct HeldOut {
  double nllPerToken = 0;
  int64_t tokens = 0;
};
HeldOut measureHeldOut(Session &session, const Tokenizer &tokenizer,
                       const std::string &path);

/// Index of the largest element, the lowest where several are.
int32_t argmax(std::span<const float> logits);
/// log(sum(exp(logits))), in double.
double logSumExp(std::span<const float> logits);

} // namespace kf::test

#endif // KF_TEST_CONFORMANCE_MODELUNDERTEST_H
