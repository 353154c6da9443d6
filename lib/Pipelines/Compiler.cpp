//===- Compiler.cpp - From kf functions to executables --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/Compiler.h"

#include "FirstError.h"

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Target/Common/ExecutableBuilder.h"
#include "kf/Target/LLVMCPU/Codegen.h"
#include "kf/Target/NVVM/Codegen.h"
#include "kf/Target/Reference/Serialize.h"
#include "kf/Target/SPIRV/Codegen.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Action.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::kf;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::optional<Target> mlir::kf::parseTarget(StringRef name) {
  return llvm::StringSwitch<std::optional<Target>>(name)
      .Case("cpu", Target::Cpu)
      .Case("reference", Target::Reference)
      .Case("vulkan", Target::Vulkan)
      .Case("cuda", Target::Cuda)
      .Default(std::nullopt);
}

StringRef mlir::kf::nameOf(Target target) {
  switch (target) {
  case Target::Cpu:
    return "cpu";
  case Target::Reference:
    return "reference";
  case Target::Vulkan:
    return "vulkan";
  case Target::Cuda:
    return "cuda";
  }
  llvm_unreachable("every target has a name");
}

std::optional<Phase> mlir::kf::parsePhase(StringRef name) {
  return llvm::StringSwitch<std::optional<Phase>>(name)
      .Case("import", Phase::Import)
      .Case("fused", Phase::Fused)
      .Case("program", Phase::Program)
      .Case("scheduled", Phase::Scheduled)
      .Case("lowered", Phase::Lowered)
      .Case("binary", Phase::Binary)
      .Default(std::nullopt);
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

namespace {

llvm::Error failureOf(const FirstError &errors) {
  return llvm::createStringError(errors.text.empty() ? "compilation failed"
                                                     : errors.text);
}

/// The GPU that code is generated for.
StringRef chipOf(const CompileOptions &options) {
  return options.targetCpu == "native" ? StringRef("sm_80")
                                       : StringRef(options.targetCpu);
}

/// What the pipelines need to know of `options`.
llvm::Expected<PipelineOptions> resolve(const CompileOptions &options) {
  PipelineOptions resolved;
  resolved.target = options.target;
  resolved.maxTokens = options.maxTokens;
  if (options.target == Target::Cpu) {
    auto machine = createTargetMachine({options.targetCpu, ""});
    if (!machine)
      return machine.takeError();
    resolved.lanes = vectorLanes(**machine);
    resolved.int8Dot = hasInt8Dot(**machine);
    resolved.workers = options.workers;
  }
  if (options.target == Target::Cuda)
    if (llvm::Error error = checkCudaChip(chipOf(options)))
      return std::move(error);
  return resolved;
}

using BuildPhase = void (*)(OpPassManager &, const PipelineOptions &);

BuildPhase builderOf(Phase phase) {
  switch (phase) {
  case Phase::Fused:
    return buildFusePipeline;
  case Phase::Program:
    return buildProgramPipeline;
  case Phase::Scheduled:
    return buildSchedulePipeline;
  case Phase::Lowered:
    return buildLowerPipeline;
  case Phase::Import:
  case Phase::Binary:
    return nullptr;
  }
  llvm_unreachable("every phase is handled");
}

/// Skips every pass that begins once the flag is set.
class SkipWhenCancelled {
public:
  SkipWhenCancelled(MLIRContext *context, ::kf::CancelFlag cancelled)
      : context(context), cancelled(cancelled) {
    if (cancelled)
      context->registerActionHandler([cancelled](
                                         llvm::function_ref<void()> action,
                                         const tracing::Action &what) {
        if (!isa<PassExecutionAction>(what) || !::kf::isCancelled(cancelled))
          action();
      });
  }
  ~SkipWhenCancelled() {
    if (cancelled)
      context->registerActionHandler(nullptr);
  }

private:
  MLIRContext *context;
  ::kf::CancelFlag cancelled;
};

LogicalResult run(ModuleOp module, const PipelineOptions &options, Phase from,
                  Phase to, ::kf::CancelFlag cancelled) {
  PassManager passes(module.getContext());
  if (from == Phase::Import)
    buildCheckPipeline(passes);
  for (Phase phase :
       {Phase::Fused, Phase::Program, Phase::Scheduled, Phase::Lowered})
    if (phase > from && phase <= to)
      builderOf(phase)(passes, options);
  SkipWhenCancelled skip(module.getContext(), cancelled);
  return failure(failed(passes.run(module)) || ::kf::isCancelled(cancelled));
}

} // namespace

llvm::Expected<std::string>
mlir::kf::fingerprint(const CompileOptions &options) {
  std::string text = "kf-" KF_VERSION " llvm-" LLVM_VERSION_STRING " abi-" +
                     std::to_string(KF_ABI_VERSION) + " " +
                     nameOf(options.target).str();
  if (options.target == Target::Cpu) {
    auto machine = createTargetMachine({options.targetCpu, ""});
    if (!machine)
      return machine.takeError();
    text += " " + (*machine)->getTargetTriple().str() + " " +
            (*machine)->getTargetCPU().str() + " " +
            (*machine)->getTargetFeatureString().str() + " workers-" +
            std::to_string(options.workers);
  }
  if (options.target == Target::Cuda)
    text += " " + chipOf(options).str();
  return text;
}

llvm::Error mlir::kf::checkRunsOnHost(const CompileOptions &options) {
  if (options.target != Target::Cpu || options.targetCpu == "native")
    return llvm::Error::success();
  return checkRunsOnHost(CpuTarget{options.targetCpu, ""});
}

llvm::Error mlir::kf::runPhases(ModuleOp module, const CompileOptions &options,
                                Phase from, Phase to) {
  llvm::Expected<PipelineOptions> resolved = resolve(options);
  if (!resolved)
    return resolved.takeError();
  FirstError errors(module.getContext(), ": ");
  if (failed(run(module, *resolved, from, to, options.cancelled)))
    return failureOf(errors);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Executables
//===----------------------------------------------------------------------===//

/// Machine code for the kernels of the scheduled `module`, and the scratch
/// memory that each needs.
static llvm::Error generateCpuCode(ModuleOp module,
                                   const CompileOptions &options,
                                   const PipelineOptions &pipeline,
                                   ::kf::Executable &executable) {
  auto machine = createTargetMachine({options.targetCpu, ""});
  if (!machine)
    return machine.takeError();
  if (failed(run(module, pipeline, Phase::Scheduled, Phase::Lowered,
                 options.cancelled)))
    return llvm::createStringError("");
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
  auto object = compileToObject(module, **machine, options.cancelled);
  if (!object)
    return object.takeError();
  executable.binary = std::move(*object);
  return llvm::Error::success();
}

llvm::Expected<::kf::Executable>
mlir::kf::compile(ModuleOp module, const CompileOptions &options) {
  llvm::Expected<PipelineOptions> pipeline = resolve(options);
  if (!pipeline)
    return pipeline.takeError();
  FirstError errors(module.getContext(), ": ");
  if (failed(run(module, *pipeline, Phase::Import, Phase::Scheduled,
                 options.cancelled)))
    return failureOf(errors);
  FailureOr<::kf::Executable> executable =
      buildExecutable(module, nameOf(options.target));
  if (failed(executable))
    return failureOf(errors);
  switch (options.target) {
  case Target::Reference: {
    FailureOr<std::string> binary = serializeForReference(module);
    if (failed(binary))
      return failureOf(errors);
    executable->binary = std::move(*binary);
    return std::move(*executable);
  }
  case Target::Cpu:
    if (llvm::Error error =
            generateCpuCode(module, options, *pipeline, *executable)) {
      std::string text = llvm::toString(std::move(error));
      return text.empty() ? failureOf(errors) : llvm::createStringError(text);
    }
    return std::move(*executable);
  case Target::Vulkan:
    if (failed(run(module, *pipeline, Phase::Scheduled, Phase::Lowered,
                   options.cancelled)) ||
        failed(serializeForVulkan(module, *executable)))
      return failureOf(errors);
    return std::move(*executable);
  case Target::Cuda:
    if (failed(run(module, *pipeline, Phase::Scheduled, Phase::Lowered,
                   options.cancelled)) ||
        failed(serializeForCuda(module, *executable, chipOf(options),
                                options.cancelled)))
      return failureOf(errors);
    return std::move(*executable);
  }
  llvm_unreachable("every target is compiled above");
}
