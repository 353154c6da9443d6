//===- NamedVulkanDevicesTest.cpp - Devices to compile for ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device by its name is what the device itself reports.
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Pipelines/Registration.h"
#include "kf/Target/Targets.h"
#include "test/conformance/TestDevice.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace kf;

namespace {

mlir::Attribute parse(const std::string &text, mlir::MLIRContext &context) {
  llvm::Expected<mlir::kf::TargetAttrInterface> target =
      mlir::kf::parseTarget(text, &context);
  if (target)
    return *target;
  ADD_FAILURE() << llvm::toString(target.takeError());
  return {};
}

TEST(NamedVulkanDevices, LavapipeIsDebians) {
  KF_REQUIRE_VULKAN();
  const std::unique_ptr<Device> device = test::openTestDevice("vulkan");
  ASSERT_TRUE(device);
  if (!device->description().starts_with("llvmpipe (LLVM 15.0.6, 256 bits)"))
    GTEST_SKIP() << "other than Debian 12's: " << device->description();
  mlir::DialectRegistry registry;
  mlir::kf::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::kf::KFDialect>();
  EXPECT_EQ(parse("vulkan:lavapipe", context), parse(device->target(), context))
      << device->target();
}

} // namespace
