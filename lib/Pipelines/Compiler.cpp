//===- Compiler.cpp - From kf functions to executables --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/Compiler.h"

#include "FirstError.h"
#include "KernelCode.h"
#include "PassRun.h"

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Target/Common/ExecutableBuilder.h"
#include "kf/Target/Targets.h"
#include "kf/Transforms/KernelKey.h"

#include "mlir/IR/Action.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Support/DebugStringHelper.h"

using namespace mlir;
using namespace mlir::kf;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

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

/// Sets what `module` is compiled for.
llvm::Expected<TargetAttrInterface> setTarget(ModuleOp module,
                                              const CompileOptions &options) {
  llvm::Expected<TargetAttrInterface> target =
      parseTarget(options.target, module.getContext(), options.workers);
  if (target)
    module->setAttr(kTargetAttrName, *target);
  return target;
}

void addPhase(Phase phase, OpPassManager &passes, TargetAttrInterface target,
              const CompileOptions &options) {
  switch (phase) {
  case Phase::Fused:
    return buildFusePipeline(passes, target);
  case Phase::Program:
    return buildProgramPipeline(passes, target, options.maxTokens,
                                options.measured);
  case Phase::Scheduled:
    return buildSchedulePipeline(passes, target, options.measured);
  case Phase::Lowered:
    return buildLowerPipeline(passes, target);
  case Phase::Import:
  case Phase::Binary:
    return;
  }
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

/// Whether what each pass makes is verified. That is 7 to 13 % of the time to
/// compile (the CPU's cases of blocks, attention and ranges of
/// kf_op_conformance_test), so builds without assertions verify what the last
/// one makes.
#ifdef NDEBUG
constexpr bool verifiesEachPass = false;
#else
constexpr bool verifiesEachPass = true;
#endif

} // namespace

llvm::Error mlir::kf::failureOf(const FirstError &errors) {
  return llvm::createStringError(errors.text.empty() ? "compilation failed"
                                                     : errors.text);
}

LogicalResult
mlir::kf::runPasses(ModuleOp module, const CompileOptions &options,
                    llvm::function_ref<void(OpPassManager &)> add) {
  PassManager passes(module.getContext());
  passes.enableVerifier(verifiesEachPass);
  add(passes);
  SkipWhenCancelled skip(module.getContext(), options.cancelled);
  if (failed(passes.run(module)) || ::kf::isCancelled(options.cancelled))
    return failure();
  return verifiesEachPass ? success() : verify(module);
}

namespace {

LogicalResult run(ModuleOp module, TargetAttrInterface target,
                  const CompileOptions &options, Phase from, Phase to) {
  return runPasses(module, options, [&](OpPassManager &passes) {
    if (from == Phase::Import)
      buildCheckPipeline(passes);
    for (Phase phase :
         {Phase::Fused, Phase::Program, Phase::Scheduled, Phase::Lowered})
      if (phase > from && phase <= to)
        addPhase(phase, passes, target, options);
  });
}

/// Calls `use` with the target of `options`, in a context of its own.
template <typename Use>
auto withTarget(const CompileOptions &options, Use use)
    -> decltype(use(TargetAttrInterface())) {
  DialectRegistry registry;
  registry.insert<KFDialect>();
  registerTargetModels(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  llvm::Expected<TargetAttrInterface> target =
      parseTarget(options.target, &context, options.workers);
  if (!target)
    return target.takeError();
  return use(*target);
}

} // namespace

llvm::Expected<std::string>
mlir::kf::fingerprint(const CompileOptions &options) {
  llvm::Expected<::kf::TuningScope> scope = tuningScopeOf(options);
  if (!scope)
    return scope.takeError();
  return scope->compiler + " " + scope->target + " " + scope->identity;
}

llvm::Expected<::kf::TuningScope>
mlir::kf::tuningScopeOf(const CompileOptions &options) {
  return withTarget(
      options,
      [&](TargetAttrInterface target) -> llvm::Expected<::kf::TuningScope> {
        return getTuningScope(target, options.measured.device);
      });
}

llvm::Expected<bool> mlir::kf::isInterpreted(const CompileOptions &options) {
  return withTarget(options,
                    [](TargetAttrInterface target) -> llvm::Expected<bool> {
                      return target.isInterpreted();
                    });
}

llvm::Error mlir::kf::checkRunsOnHost(const CompileOptions &options) {
  return withTarget(options, [](TargetAttrInterface target) {
    return target.checkRunsOnHost();
  });
}

llvm::Error mlir::kf::runPhases(ModuleOp module, const CompileOptions &options,
                                Phase from, Phase to) {
  llvm::Expected<TargetAttrInterface> target = setTarget(module, options);
  if (!target)
    return target.takeError();
  FirstError errors(module.getContext(), ": ", options.onWarning);
  if (failed(run(module, *target, options, from, to)))
    return failureOf(errors);
  return llvm::Error::success();
}

/// Runs passes in front of all phases.
static llvm::Error prepare(ModuleOp module, const CompileOptions &options,
                           llvm::function_ref<void(OpPassManager &)> add) {
  FirstError errors(module.getContext(), ": ", options.onWarning);
  if (failed(runPasses(module, options, add)))
    return failureOf(errors);
  return llvm::Error::success();
}

llvm::Error mlir::kf::differentiate(ModuleOp module, GradientPolicy policy,
                                    const CompileOptions &options) {
  return prepare(module, options, [&](OpPassManager &passes) {
    passes.addPass(createDifferentiate({policy, /*accumulate=*/true}));
  });
}

llvm::Error mlir::kf::splitRows(ModuleOp module,
                                const CompileOptions &options) {
  // 256 rows of a vocabulary of 128 thousand, with which a product takes longer
  // than reading its weight, and 2048 of 14 thousand inner columns.
  constexpr int64_t mostBytes = int64_t(128) << 20;
  return prepare(module, options, [&](OpPassManager &passes) {
    passes.addNestedPass<func::FuncOp>(createSplitRows({mostBytes}));
  });
}

//===----------------------------------------------------------------------===//
// Executables
//===----------------------------------------------------------------------===//

/// The choices of `module`, as of Phase::Fused.
static std::vector<RowChoice> getRowChoices(ModuleOp module,
                                            TargetAttrInterface target,
                                            const CompileOptions &options) {
  const ::kf::TuningScope scope =
      getTuningScope(target, options.measured.device);
  std::vector<RowChoice> choices;
  for (PlainProduct product : findPlainProducts(module, options.maxTokens)) {
    const SmallVector<Type> types =
        target.getRowTypes(product.op, product.rows);
    if (product.op.getRowsAttr() || types.size() < 2)
      continue;
    ::kf::TuningKey key = getTuningKey(product, scope);
    if (llvm::any_of(choices, [&](const RowChoice &choice) {
          return choice.key == key;
        }))
      continue;
    RowChoice &choice = choices.emplace_back();
    choice.key = std::move(key);
    choice.subject = getTuningSubject(product.op);
    for (Type type : types)
      choice.rows.push_back(
          debugString(RowsAttr::get(module.getContext(), type)));
  }
  return choices;
}

llvm::Expected<std::vector<RowChoice>>
mlir::kf::findRowChoices(ModuleOp module, const CompileOptions &options,
                         Phase from) {
  if (llvm::Error error = runPhases(module, options, from, Phase::Fused))
    return std::move(error);
  return getRowChoices(module, getTarget(module), options);
}

/// Adds to `keys` the database's for the kernels of `module`, which are laid
/// out and not tiled.
static void addKernelKeys(ModuleOp module, TargetAttrInterface target,
                          StringRef device,
                          std::vector<::kf::TuningKey> &keys) {
  if (target.isInterpreted())
    return;
  const ::kf::TuningScope scope = getTuningScope(target, device);
  const DenseMap<StringAttr, int64_t> rows = getMostRows(module);
  for (auto kernel : module.getOps<KernelOp>())
    if (auto known = rows.find(kernel.getSymNameAttr()); known != rows.end())
      keys.push_back(getTuningKey(kernel, known->second, scope));
}

llvm::Expected<::kf::Executable>
mlir::kf::compile(ModuleOp module, const CompileOptions &options, Phase from,
                  std::vector<::kf::TuningKey> *kernels) {
  llvm::Expected<TargetAttrInterface> target = setTarget(module, options);
  if (!target)
    return target.takeError();
  FirstError errors(module.getContext(), ": ", options.onWarning);
  std::vector<::kf::TuningKey> keys;
  if (failed(run(module, *target, options, from, Phase::Fused)))
    return failureOf(errors);
  for (RowChoice &choice : getRowChoices(module, *target, options))
    keys.push_back(std::move(choice.key));
  if (failed(run(module, *target, options, std::max(from, Phase::Fused),
                 Phase::Program)) ||
      failed(runPasses(module, options, [&](OpPassManager &passes) {
        buildChoicePipeline(passes, options.measured);
      })))
    return failureOf(errors);
  addKernelKeys(module, *target, options.measured.device, keys);
  if (kernels)
    *kernels = std::move(keys);
  const KernelWorks works = countWorks(module);
  if (failed(runPasses(module, options, [&](OpPassManager &passes) {
        buildTilePipeline(passes, *target);
      })))
    return failureOf(errors);
  FailureOr<::kf::Executable> executable =
      buildExecutable(module, *target, works);
  if (failed(executable))
    return failureOf(errors);
  if (target->isInterpreted()) {
    if (failed(target->serialize(module, *executable, options.cancelled)))
      return failureOf(errors);
  } else if (llvm::Error error =
                 makeKernelCode(module, *target, options, *executable)) {
    return std::move(error);
  }
  return std::move(*executable);
}
