//===- KernelModules.cpp - The kernels of a module, each alone ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/KernelModules.h"

#include "FirstError.h"

#include "kf/Target/Targets.h"
#include "kf/Transforms/KernelKey.h"
#include "kf/Transforms/Passes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Support/DebugStringHelper.h"

using namespace mlir;
using namespace mlir::kf;

//===----------------------------------------------------------------------===//
// Splitting
//===----------------------------------------------------------------------===//

namespace {

/// Where the program of a kernel `name` has its own name.
std::string programName(StringRef name) { return (name + "_alone").str(); }

/// Adds a program of `dispatch` alone to `module`.
void addProgram(DispatchOp dispatch, ModuleOp module) {
  auto whole = dispatch->getParentOfType<ProgramOp>();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  OwningOpRef<Operation *> shell(whole->cloneWithoutRegions());
  auto program = cast<ProgramOp>(builder.insert(shell.release()));
  program.setSymName(programName(dispatch.getKernel()));
  program.removeArgAttrsAttr();
  program.removeResAttrsAttr();
  program.removeArenaBytesAttr();
  Block *block = builder.createBlock(&program.getBody());

  IRMapping values;
  for (Value operand : dispatch.getOperands_()) {
    if (values.contains(operand))
      continue;
    if (auto weight = operand.getDefiningOp<WeightOp>())
      builder.clone(*weight, values);
    else
      values.map(operand,
                 block->addArgument(operand.getType(), operand.getLoc()));
  }
  Operation *copy = builder.clone(*dispatch, values);
  YieldOp::create(builder, dispatch.getLoc(), copy->getResults());
  program.setFunctionType(builder.getFunctionType(block->getArgumentTypes(),
                                                  copy->getResultTypes()));
}

} // namespace

KernelOp KernelModule::getKernel() const {
  return module.get().lookupSymbol<KernelOp>(name);
}

OwningOpRef<ModuleOp> mlir::kf::copyKernelAlone(KernelOp kernel) {
  auto whole = kernel->getParentOfType<ModuleOp>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(whole.getLoc());
  (*module)->setAttrs(whole->getAttrs());
  (*module)->removeAttr(kRanksAttrName); // no kernel needs the others
  module->getBody()->push_back(kernel.clone());
  return module;
}

llvm::Expected<std::vector<KernelModule>>
mlir::kf::splitKernels(ModuleOp module) {
  if (module.getOps<ProgramOp>().empty())
    return llvm::createStringError("there is no kf.program to take kernels of");
  const DenseMap<StringAttr, int64_t> rows = getMostRows(module);
  llvm::MapVector<StringAttr, SmallVector<DispatchOp>> dispatches;
  for (auto program : module.getOps<ProgramOp>())
    program.walk([&](DispatchOp dispatch) {
      dispatches[dispatch.getKernelAttr().getAttr()].push_back(dispatch);
    });

  std::vector<KernelModule> kernels;
  for (auto &[name, all] : dispatches) {
    auto kernel = module.lookupSymbol<KernelOp>(name);
    if (!kernel)
      return llvm::createStringError("kernel @" + name.getValue() +
                                     " is already lowered");
    KernelModule &alone = kernels.emplace_back();
    alone.name = name.str();
    alone.dispatches = static_cast<int64_t>(all.size());
    alone.rows = rows.lookup(name);
    alone.module = copyKernelAlone(kernel);
    // Of programs of several sizes, that of the rows that schedules are for.
    addProgram(*llvm::max_element(all,
                                  [](DispatchOp a, DispatchOp b) {
                                    return getMostRows(a) < getMostRows(b);
                                  }),
               *alone.module);
  }
  return kernels;
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

llvm::Expected<OwningOpRef<ModuleOp>>
mlir::kf::layOut(const KernelModule &kernel, const CompileOptions &options) {
  OwningOpRef<ModuleOp> module = kernel.module.get().clone();
  llvm::Expected<TargetAttrInterface> target =
      parseTarget(options.target, module->getContext(), options.workers);
  if (!target)
    return target.takeError();
  (*module)->setAttr(kTargetAttrName, *target);
  PassManager passes(module->getContext());
  passes.addPass(createSetLayouts());
  FirstError errors(module->getContext(), ": ");
  if (failed(passes.run(*module)))
    return llvm::createStringError(errors.text);
  return module;
}

llvm::Expected<std::vector<ScheduleCandidate>>
mlir::kf::scheduleCandidates(const KernelModule &kernel,
                             const CompileOptions &options,
                             const ::kf::MachineRates &rates) {
  llvm::Expected<OwningOpRef<ModuleOp>> module = layOut(kernel, options);
  if (!module)
    return module.takeError();
  auto op = (*module)->lookupSymbol<KernelOp>(kernel.name);
  TargetAttrInterface target = getTarget(op);
  std::vector<ScheduleCandidate> candidates;
  if (target.isInterpreted())
    return candidates;
  FirstError errors(op->getContext(), ": ");
  for (ScheduleAttrInterface schedule :
       target.getScheduleCandidates(op, kernel.rows))
    candidates.push_back(
        {debugString(schedule),
         target.predictSeconds(op, schedule, kernel.rows, rates)});
  if (candidates.empty())
    return llvm::createStringError(errors.text);
  return candidates;
}

static llvm::Expected<ScheduleAttrInterface>
parseSchedule(StringRef schedule, MLIRContext *context) {
  FirstError errors(context, ": ");
  auto parsed = dyn_cast_if_present<ScheduleAttrInterface>(
      parseAttribute(schedule, context));
  if (!parsed)
    return llvm::createStringError(
        "'" + schedule + "' is no schedule" +
        (errors.text.empty() ? "" : ": " + errors.text));
  return parsed;
}

llvm::Expected<std::string> mlir::kf::normalizeSchedule(StringRef schedule) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<KFDialect>();
  // MLIR counts blanks in front as trailing characters.
  llvm::Expected<ScheduleAttrInterface> parsed =
      parseSchedule(schedule.trim(), &context);
  if (!parsed)
    return parsed.takeError();
  return debugString(*parsed);
}

llvm::Expected<::kf::Executable>
mlir::kf::compile(const KernelModule &kernel, StringRef schedule,
                  const CompileOptions &options) {
  OwningOpRef<ModuleOp> module = kernel.module.get().clone();
  if (!schedule.empty()) {
    llvm::Expected<ScheduleAttrInterface> parsed =
        parseSchedule(schedule, module->getContext());
    if (!parsed)
      return parsed.takeError();
    module->lookupSymbol<KernelOp>(kernel.name).setScheduleAttr(*parsed);
  }
  return compile(*module, options, Phase::Program);
}
