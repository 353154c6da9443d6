//===- CpuTarget.cpp - A CPU as a target ----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CostModel.h"
#include "KernelConfig.h"
#include "ScheduleCandidates.h"
#include "VerifySchedule.h"
#include "Workers.h"

#include "kf/Conversion/KernelSupport.h"
#include "kf/Target/LLVMCPU/Codegen.h"
#include "kf/Target/LLVMCPU/Passes.h"
#include "kf/Target/TargetEntry.h"

#include "runtime/program/Executable.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

struct CpuTargetModel
    : TargetAttrInterface::ExternalModel<CpuTargetModel, CpuTargetAttr> {
  StringRef getDevice(Attribute) const { return "cpu"; }

  MachineDescription getMachine(Attribute target) const {
    return describeCpuMachine(cast<CpuTargetAttr>(target));
  }
  StringRef getMeasuredMachine(Attribute target) const {
    auto machine = machineOf(target);
    if (machine)
      return (*machine)->getTargetCPU() == getCpuCosts().chip
                 ? StringRef(getCpuCosts().machine)
                 : StringRef();
    llvm::consumeError(machine.takeError());
    return "";
  }

  void addDivisionPasses(Attribute, OpPassManager &passes,
                         int64_t maxTokens) const {
    passes.addNestedPass<func::FuncOp>(createSplitCpuAttention({maxTokens}));
  }

  /// Panels of two vectors; halves of 16-bit panels interleave by the vector's
  /// lanes. Of experts, panels of one vector where else a quarter of what is
  /// read would be zeros: A of an adapter of rank 16 is half of two vectors.
  Attribute getWeightLayout(Attribute target, RankedTensorType weight) const {
    auto cpu = cast<CpuTargetAttr>(target);
    const int64_t columns = weight.getShape().end()[-2];
    if (weight.getRank() == 4 && isa<FloatType>(weight.getElementType()) &&
        llvm::alignTo(columns, cpu.getLanes()) * 4 <=
            llvm::alignTo(columns, panelOf(cpu)) * 3)
      return LayoutAttr::get(target.getContext(), cpu.getLanes(),
                             /*interleave=*/0);
    bool interleave = weight.getElementType().isBF16();
    return LayoutAttr::get(target.getContext(), panelOf(cpu),
                           interleave ? cpu.getLanes() : 0);
  }

  /// A vector of keys is one load.
  KVCacheType getCacheLayout(Attribute target, KVCacheType cache) const {
    int64_t lanes = cast<CpuTargetAttr>(target).getLanes();
    if (cache.getPage() % lanes != 0)
      return {};
    return cache.withKeyBlock(lanes);
  }

  SmallVector<Type> getRowTypes(Attribute target, Operation *op,
                                int64_t rows) const {
    return getCpuRowTypes(op, cast<CpuTargetAttr>(target), rows);
  }
  ScheduleAttrInterface selectSchedule(Attribute target, KernelOp kernel,
                                       int64_t rows) const {
    return selectCpuSchedule(kernel, cast<CpuTargetAttr>(target), rows);
  }
  LogicalResult verifySchedule(Attribute target, KernelOp kernel,
                               int64_t) const {
    if (failed(checkVectorSupport(kernel)))
      return failure();
    return verifyCpuSchedule(
        kernel, kernel.getScheduleAttr(), cast<CpuTargetAttr>(target),
        [&] { return kernel.emitError("schedule cannot run on this CPU: "); });
  }
  SmallVector<ScheduleAttrInterface>
  getScheduleCandidates(Attribute target, KernelOp kernel, int64_t rows) const {
    return getCpuScheduleCandidates(kernel, cast<CpuTargetAttr>(target), rows);
  }
  double predictSeconds(Attribute target, KernelOp kernel,
                        ScheduleAttrInterface schedule, int64_t rows,
                        const ::kf::MachineRates &rates) const {
    auto vector = dyn_cast<VectorScheduleAttr>(schedule);
    return vector ? predictCpuSeconds(kernel, vector, getMachine(target), rows,
                                      rates)
                  : 0;
  }
  void addLoweringPasses(Attribute, OpPassManager &passes) const {
    buildCpuCodegenPipeline(passes);
  }

  LogicalResult serialize(Attribute target, ModuleOp module,
                          ::kf::Executable &executable,
                          ::kf::CancelFlag cancelled) const {
    auto machine = machineOf(target);
    if (!machine)
      return module.emitError(llvm::toString(machine.takeError()));
    for (::kf::KernelSpec &kernel : executable.kernels)
      if (auto body =
              module.lookupSymbol<LLVM::LLVMFuncOp>(kernel.name + "_body"))
        if (auto bytes = body->getAttrOfType<IntegerAttr>("kf.scratch_bytes"))
          kernel.scratchBytes = bytes.getInt();
    // Only functions translate; the program is described by the executable.
    for (auto program : llvm::make_early_inc_range(module.getOps<ProgramOp>()))
      program.erase();
    registerBuiltinDialectTranslation(*module.getContext());
    registerLLVMDialectTranslation(*module.getContext());
    auto object = compileToObject(module, **machine, cancelled);
    if (!object)
      return module.emitError(llvm::toString(object.takeError()));
    executable.binary = std::move(*object);
    executable.features = featuresOf(**machine);
    return success();
  }

  /// An archive, as linkers take it.
  std::string joinCode(Attribute, ArrayRef<std::string> codes) const {
    std::vector<llvm::NewArchiveMember> members;
    for (const std::string &code : codes) {
      llvm::NewArchiveMember &member = members.emplace_back();
      member.Buf = llvm::MemoryBuffer::getMemBuffer(
          code, "kernel", /*RequiresNullTerminator=*/false);
      member.MemberName = member.Buf->getBufferIdentifier();
    }
    return llvm::cantFail(llvm::writeArchiveToBuffer(
                              members, llvm::SymtabWritingMode::NoSymtab,
                              llvm::object::Archive::K_GNU,
                              /*Deterministic=*/true,
                              /*Thin=*/false))
        ->getBuffer()
        .str();
  }

  std::string getIdentity(Attribute target) const {
    auto machine = machineOf(target);
    if (!machine) {
      llvm::consumeError(machine.takeError());
      return "";
    }
    return (*machine)->getTargetTriple().str() + " " +
           (*machine)->getTargetCPU().str() + " " +
           (*machine)->getTargetFeatureString().str();
  }

  llvm::Error checkRunsOnHost(Attribute target) const {
    auto cpu = cast<CpuTargetAttr>(target);
    return checkHostRuns(cpu.getCpu(), cpu.getTriple());
  }

private:
  static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
  machineOf(Attribute target) {
    auto cpu = cast<CpuTargetAttr>(target);
    return createTargetMachine(cpu.getCpu(), cpu.getTriple());
  }
};

llvm::Expected<Attribute> createCpuTarget(MLIRContext *context, StringRef chip,
                                          int64_t workers) {
  // Another system's CPU stands behind its name: aarch64-linux-gnu/cortex-a76.
  StringRef triple, cpu = chip.empty() ? StringRef(nativeCpu) : chip;
  if (cpu.contains('/'))
    std::tie(triple, cpu) = cpu.split('/');
  auto machine = createTargetMachine(cpu, triple);
  if (!machine)
    return machine.takeError();
  int64_t lanes = vectorLanes(**machine);
  int64_t registers = vectorRegisters(**machine);
  std::optional<ByteDot> dot = byteDotOf(**machine);
  return CpuTargetAttr::get(context, cpu, triple, lanes,
                            (registers == 32) == (lanes == 16) ? 0 : registers,
                            dot.has_value(), dot.value_or(ByteDot::Vpdpbusd),
                            hasTiles(**machine), hasBF16Dot(**machine),
                            prefetchOf(**machine), workers);
}

} // namespace

const TargetEntry mlir::kf::cpuTarget = {
    "cpu", registerTargetModel<CpuTargetAttr, CpuTargetModel>, createCpuTarget};
