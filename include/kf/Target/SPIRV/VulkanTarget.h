//===- VulkanTarget.h - A Vulkan device as a target -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_SPIRV_VULKANTARGET_H
#define KF_TARGET_SPIRV_VULKANTARGET_H

#include "kf/Dialect/KF/IR/KF.h"

#include "llvm/Support/Error.h"

namespace mlir::kf {

/// Makes VulkanTargetAttr a TargetAttrInterface.
void registerVulkanTarget(DialectRegistry &registry);

/// A device with the limits that Vulkan's Roadmap 2022 profile guarantees.
/// Errors: a chip.
llvm::Expected<TargetAttrInterface>
createVulkanTarget(MLIRContext *context, StringRef chip, int64_t workers);

} // namespace mlir::kf

#endif // KF_TARGET_SPIRV_VULKANTARGET_H
