//===- TargetEntry.h - How a target makes itself known ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_TARGETENTRY_H
#define KF_TARGET_TARGETENTRY_H

#include "kf/Dialect/KF/IR/KF.h"

#include "llvm/Support/Error.h"

namespace mlir::kf {

/// What a target's folder defines.
struct TargetEntry {
  /// The name that compiler and runtime share.
  StringLiteral device;
  /// Makes the target's attribute a TargetAttrInterface.
  void (*registerModel)(DialectRegistry &registry);
  /// The attribute by `chip`, as it stands behind the device's name, or empty.
  /// `workers`: threads that share a kernel's workgroups; 0: unknown. Errors: a
  /// chip that there is no code for.
  llvm::Expected<Attribute> (*create)(MLIRContext *context, StringRef chip,
                                      int64_t workers);
};

/// A TargetEntry::registerModel.
template <typename TargetAttr, typename Model>
void registerTargetModel(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KFDialect *) {
    TargetAttr::template attachInterface<Model>(*context);
  });
}

/// A CPU by LLVM's name of it; this machine's without one.
extern const TargetEntry cpuTarget;
/// NVIDIA's GPUs with the chip's architecture; without one sm_80, whose code
/// every later GPU runs.
extern const TargetEntry cudaTarget;
/// The interpreter. It has no chips.
extern const TargetEntry referenceTarget;
/// A Vulkan device by a name of VulkanTarget.cpp; without one, one that reports
/// the least.
extern const TargetEntry vulkanTarget;

} // namespace mlir::kf

#endif // KF_TARGET_TARGETENTRY_H
