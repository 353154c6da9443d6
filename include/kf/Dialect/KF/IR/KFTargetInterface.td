//===- KFTargetInterface.td - What passes ask of targets
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFTARGETINTERFACE_TD
#define KF_DIALECT_KF_IR_KFTARGETINTERFACE_TD

include "mlir/IR/OpBase.td"

def KF_TargetAttrInterface : AttrInterface<"TargetAttrInterface"> {
  let cppNamespace = "::mlir::kf";
  let description = [{
    What pipelines and passes ask of the module's `kf.target`. Each target
    answers in lib/Target/<Name>; nobody switches on targets.
  }];
  let methods = [
    InterfaceMethod<[{
        The device that runs the executables ("cpu").
      }],
      "::llvm::StringRef", "getDevice">,
    InterfaceMethod<[{
        Whether ops run as they are written, one by one: nothing is fused, laid
        out, scheduled or lowered.
      }],
      "bool", "isInterpreted", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
        What the machine has that runs the executables: see Machine.h.
      }],
      "::mlir::kf::MachineDescription", "getMachine">,
    InterfaceMethod<[{
        What is fused.
      }],
      "::mlir::kf::FusionRules", "getFusionRules", (ins), "",
      [{ return {}; }]>,
    InterfaceMethod<[{
        Whether a kernel of attention may have, before it, the append of what it
        reads of the step's own rows.
      }],
      "bool", "appendsInAttention", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
        Adds passes over functions that divide ops into parts which this target
        computes in kernels of their own. Functions without `kf.max_tokens` have
        up to `max_tokens`.
      }],
      "void", "addDivisionPasses",
      (ins "::mlir::OpPassManager &":$passes, "int64_t":$max_tokens), "", [{ return; }]>,
    InterfaceMethod<[{
        The element types that the kernel of `op` may read its rows of f32 in,
        of which there are up to `rows`: x of a product, the queries of
        kf.attention, or all that BatchAttentionInterface multiplies, for which
        f32 says that there is no kernel. f32: as they are, and what else is done with them is the
        kernel's, by the schedule that selectSchedule() gives it for such rows.
        Another one: they are rounded to it before, once for all workgroups. The
        first is what the target chooses. The others are as exact, or more so:
        a measurement may say that one of them is faster. None is there twice.
      }],
      "::llvm::SmallVector<::mlir::Type>", "getRowTypes",
      (ins "::mlir::Operation *":$op, "int64_t":$rows), "",
      [{ return {::mlir::Float32Type::get($_attr.getContext())}; }]>,
    InterfaceMethod<[{
        How matmuls read a weight of this type, which has no layout yet: the
        encoding of its tensor, `#kf.layout` or `#kf.fragments`; null: as it is
        stored. Kernels and step sizes of a model share it.
      }],
      "::mlir::Attribute", "getWeightLayout",
      (ins "::mlir::RankedTensorType":$weight), "", [{ return {}; }]>,
    InterfaceMethod<[{
        The type of a KV cache as kernels of this target lay it out; null where
        they cannot.
      }],
      "::mlir::kf::KVCacheType", "getCacheLayout",
      (ins "::mlir::kf::KVCacheType":$cache)>,
    InterfaceMethod<[{
        A schedule for `kernel`, which computes up to `rows` rows; null after a
        diagnostic that names what there is no code for.
      }],
      "::mlir::kf::ScheduleAttrInterface", "selectSchedule",
      (ins "::mlir::kf::KernelOp":$kernel, "int64_t":$rows)>,
    InterfaceMethod<[{
        Schedules that are worth measuring for `kernel`, which computes up to
        `rows` rows, whatever its schedule is: each verifies, none is there
        twice, and the first is what selectSchedule() gives. None after
        selectSchedule()'s diagnostic.
      }],
      "::llvm::SmallVector<::mlir::kf::ScheduleAttrInterface>",
      "getScheduleCandidates",
      (ins "::mlir::kf::KernelOp":$kernel, "int64_t":$rows), "", [{
        ::llvm::SmallVector<::mlir::kf::ScheduleAttrInterface> candidates;
        auto target = ::llvm::cast<::mlir::kf::TargetAttrInterface>($_attr);
        if (auto schedule = target.selectSchedule(kernel, rows))
          candidates.push_back(schedule);
        return candidates;
      }]>,
    InterfaceMethod<[{
        Seconds that one run of `kernel` by `schedule`, which verifies, should
        take with `rows` rows on a machine with these rates, for ranking
        candidates; 0 where the target has no model of its costs. Rates of 0
        are replaced by those of a usual machine.
      }],
      "double", "predictSeconds",
      (ins "::mlir::kf::KernelOp":$kernel,
           "::mlir::kf::ScheduleAttrInterface":$schedule, "int64_t":$rows,
           "const ::kf::MachineRates &":$rates), "", [{ return 0; }]>,
    InterfaceMethod<[{
        The machine that the costs were measured on by which selectSchedule()
        and predictSeconds() go: "NVIDIA H200". Empty: none was, and they are
        estimated from getMachine().
      }],
      "::llvm::StringRef", "getMeasuredMachine", (ins), "", [{ return ""; }]>,
    InterfaceMethod<[{
        Fails, with a diagnostic, for a kernel whose schedule cannot run.
      }],
      "::llvm::LogicalResult", "verifySchedule",
      (ins "::mlir::kf::KernelOp":$kernel, "int64_t":$rows), "",
      [{ return ::llvm::success(); }]>,
    InterfaceMethod<[{
        Adds the passes from tiled kernels to what serialize() takes.
      }],
      "void", "addLoweringPasses", (ins "::mlir::OpPassManager &":$passes), "",
      [{ return; }]>,
    InterfaceMethod<[{
        Makes code of the lowered `module`, which is spent then: the binary of
        `executable`, and what each of its kernels needs to run. Diagnostics say
        what failed.
      }],
      "::llvm::LogicalResult", "serialize",
      (ins "::mlir::ModuleOp":$module, "::kf::Executable &":$executable,
           "::kf::CancelFlag":$cancelled)>,
    InterfaceMethod<[{
        One binary of `codes`, those of kernels that were serialized each by
        itself, in the order of an executable's kernels.
      }],
      "std::string", "joinCode",
      (ins "::llvm::ArrayRef<std::string>":$codes), "", [{
        std::string all;
        for (const std::string &code : codes)
          all += code;
        return all;
      }]>,
    InterfaceMethod<[{
        What code for this target depends on beside the attribute's text, such
        as the machine that "native" means.
      }],
      "std::string", "getIdentity", (ins), "", [{ return ""; }]>,
    InterfaceMethod<[{
        An error where this machine is one of the target's kind and lacks what
        the code uses. Devices check the rest when they open.
      }],
      "::llvm::Error", "checkRunsOnHost", (ins), "",
      [{ return ::llvm::Error::success(); }]>
  ];
}

#endif // KF_DIALECT_KF_IR_KFTARGETINTERFACE_TD
