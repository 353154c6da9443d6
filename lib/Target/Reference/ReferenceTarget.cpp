//===- ReferenceTarget.cpp - The interpreter as a target ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Reference/ReferenceTarget.h"

#include "kf/Target/Reference/Serialize.h"

#include "runtime/program/Executable.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

struct ReferenceTargetModel
    : TargetAttrInterface::ExternalModel<ReferenceTargetModel,
                                         ReferenceTargetAttr> {
  StringRef getDevice(Attribute) const { return "reference"; }
  bool isInterpreted(Attribute) const { return true; }
  void addDivisionPasses(Attribute, OpPassManager &, int64_t) const {}
  FusionRules getFusionRules(Attribute, int64_t) const {
    return {/*fuses=*/false};
  }
  LayoutAttr getWeightLayout(Attribute, RankedTensorType) const { return {}; }
  KVCacheType getCacheLayout(Attribute, KVCacheType cache) const {
    return cache;
  }
  ScheduleAttrInterface selectSchedule(Attribute, KernelOp kernel,
                                       int64_t) const {
    kernel.emitError("the reference runs kernels without a schedule");
    return {};
  }
  LogicalResult verifySchedule(Attribute, KernelOp, int64_t) const {
    return success();
  }
  void addLoweringPasses(Attribute, OpPassManager &) const {}
  LogicalResult serialize(Attribute, ModuleOp module,
                          ::kf::Executable &executable,
                          ::kf::CancelFlag) const {
    FailureOr<std::string> binary = serializeForReference(module);
    if (failed(binary))
      return failure();
    executable.binary = std::move(*binary);
    return success();
  }
  std::string getIdentity(Attribute) const { return ""; }
};

} // namespace

void mlir::kf::registerReferenceTarget(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KFDialect *) {
    ReferenceTargetAttr::attachInterface<ReferenceTargetModel>(*context);
  });
}

llvm::Expected<TargetAttrInterface>
mlir::kf::createReferenceTarget(MLIRContext *context, StringRef chip, int64_t) {
  if (!chip.empty())
    return llvm::createStringError("the reference is one device, without '" +
                                   chip + "'");
  return cast<TargetAttrInterface>(
      Attribute(ReferenceTargetAttr::get(context)));
}
