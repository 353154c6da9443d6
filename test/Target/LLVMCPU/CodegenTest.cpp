//===- CodegenTest.cpp - CPUs that code is made for -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/LLVMCPU/Codegen.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Target/TargetMachine.h"
#include "gtest/gtest.h"

#include <algorithm>

namespace {

std::string missingOf(const char *feature) {
  auto machine =
      mlir::kf::createTargetMachine("skylake-avx512", "x86_64-linux-gnu");
  if (!machine)
    return llvm::toString(machine.takeError());
  llvm::StringMap<bool> host;
  host["avx2"] = true;
  host[feature] = false;
  return mlir::kf::missingFeatures(**machine, host);
}

TEST(CpuFeatures, ThoseThatCodeMayUseAreNeeded) {
  for (const char *feature : {"avx512bw", "fma", "bmi2", "sse4.2"})
    EXPECT_EQ(missingOf(feature), feature);
}

TEST(CpuFeatures, ThoseThatCodeNamesAreNot) {
  // A virtual machine may have none of these.
  for (const char *feature : {"pku", "rdseed", "xsaves", "clwb", "aes"})
    EXPECT_EQ(missingOf(feature), "");
}

TEST(CpuFeatures, ExecutablesAskForThoseThatCodeMayUse) {
  auto machine = mlir::kf::createTargetMachine("cascadelake");
  if (!machine) {
    llvm::consumeError(machine.takeError());
    GTEST_SKIP() << "this machine is no x86";
  }
  const std::vector<std::string> features = mlir::kf::featuresOf(**machine);
  EXPECT_TRUE(std::ranges::is_sorted(features));
  for (const char *feature : {"avx512vnni", "avx512bw", "fma", "bmi2"})
    EXPECT_TRUE(llvm::is_contained(features, feature)) << feature;
  // The CPU has these as well.
  for (const char *feature : {"pku", "rdseed", "xsaves", "clwb", "aes"})
    EXPECT_FALSE(llvm::is_contained(features, feature)) << feature;
}

TEST(CpuFeatures, OfOtherCpusAreNot) { EXPECT_EQ(missingOf("fma4"), ""); }

} // namespace
