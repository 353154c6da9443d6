//===- ReferenceTarget.cpp - The interpreter as a target ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Conversion/KernelSupport.h"
#include "kf/Target/Reference/Serialize.h"
#include "kf/Target/TargetEntry.h"

#include "runtime/program/Executable.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

struct ReferenceTargetModel
    : TargetAttrInterface::ExternalModel<ReferenceTargetModel,
                                         ReferenceTargetAttr> {
  StringRef getDevice(Attribute) const { return "reference"; }
  bool isInterpreted(Attribute) const { return true; }
  MachineDescription getMachine(Attribute) const {
    MachineDescription machine; // ops run one by one, whatever it has
    machine.name = "reference";
    machine.sharesRegisters = false;
    return machine;
  }
  FusionRules getFusionRules(Attribute) const { return {/*fuses=*/false}; }
  KVCacheType getCacheLayout(Attribute, KVCacheType cache) const {
    return cache;
  }
  ScheduleAttrInterface selectSchedule(Attribute, KernelOp kernel,
                                       int64_t) const {
    kernel.emitError("the reference runs kernels without a schedule");
    return {};
  }
  LogicalResult verifySchedule(Attribute, KernelOp kernel, int64_t) const {
    return checkReferenceSupport(kernel);
  }
  LogicalResult serialize(Attribute, ModuleOp module,
                          ::kf::Executable &executable,
                          ::kf::CancelFlag) const {
    FailureOr<std::string> binary = serializeForReference(module);
    if (failed(binary))
      return failure();
    executable.binary = std::move(*binary);
    return success();
  }
};

llvm::Expected<Attribute> createReferenceTarget(MLIRContext *context,
                                                StringRef chip, int64_t) {
  if (!chip.empty())
    return llvm::createStringError("reference target: there is no chip '" +
                                   chip + "'; leave it out");
  return ReferenceTargetAttr::get(context);
}

} // namespace

const TargetEntry mlir::kf::referenceTarget = {
    "reference", registerTargetModel<ReferenceTargetAttr, ReferenceTargetModel>,
    createReferenceTarget};
