//===- Compiler.cpp - The compiler without MLIR ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Driver/Compiler.h"
#include "kf/Driver/MeasuredCosts.h"

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Import/Import.h"
#include "kf/Pipelines/Compiler.h"
#include "kf/Pipelines/InputRoles.h"
#include "kf/Pipelines/KernelModules.h"
#include "kf/Pipelines/OutputRoles.h"
#include "kf/Pipelines/Registration.h"
#include "kf/Pipelines/SourceText.h"
#include "kf/Target/Targets.h"
#include "kf/Transforms/KernelKey.h"
#include "runtime/core/Lines.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/NoBadAlloc.h"
#include "runtime/core/Quote.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/ErrorHandling.h"

#include <cstdlib>
#include <set>

using namespace kf;

struct CompilerModule::Contents {
  Contents()
      : context(makeRegistry(), mlir::MLIRContext::Threading::DISABLED) {}

  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    mlir::kf::registerDialects(registry);
    return registry;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string path; ///< of the file, if it came from one
  /// What has run.
  mlir::kf::Phase phase = mlir::kf::Phase::Import;
};

namespace {

void abortProcess() { std::abort(); }

/// Of the process.
CompilerErrorHandlers errorHandlers = {abortProcess,
                                       [](const char *) { std::abort(); }};

/// The error's text. One that begins with a position in the file `path` is
/// written as the parser's are: "file:line:column: error: ...".
Status statusOf(llvm::Error error, const std::string &path = {}) {
  std::string text = oneLine(llvm::toString(std::move(error)));
  if (!path.empty() && text.starts_with(path + ":")) {
    const size_t end = text.find_first_not_of("0123456789:", path.size());
    if (end != std::string::npos && text[end] == ' ')
      text.insert(end, " error:");
  }
  return Status::error(text);
}

/// The error's text, unless it is that of passes which `cancelled` ended.
Status statusOf(llvm::Error error, CancelFlag cancelled,
                const std::string &path) {
  if (!isCancelled(cancelled))
    return statusOf(std::move(error), path);
  llvm::consumeError(std::move(error));
  return Status::cancelled();
}

/// `made` as the runtime has it; an error as above.
template <typename T>
Result<T> resultOf(llvm::Expected<T> made, CancelFlag cancelled,
                   const std::string &path) {
  if (made)
    return std::move(*made);
  return statusOf(made.takeError(), cancelled, path);
}

/// What can be compiled: a function of kf ops, or a program of dispatches that
/// an earlier phase made of one.
bool isEntry(mlir::Operation &op) {
  return llvm::isa<mlir::func::FuncOp, mlir::kf::ProgramOp>(op);
}

llvm::StringRef nameOf(mlir::Operation &op) {
  return mlir::SymbolTable::getSymbolName(&op).getValue();
}

/// Erases all functions but `name`, or checks that there is one alone.
Status selectFunction(mlir::ModuleOp module, const std::string &name,
                      bool single) {
  std::vector<mlir::Operation *> entries;
  std::string names;
  for (mlir::Operation &op : *module.getBody())
    if (isEntry(op)) {
      names += (entries.empty() ? "" : ", ") + nameOf(op).str();
      entries.push_back(&op);
    }
  if (entries.empty())
    return Status::error("there is no function in the file");
  if (name.empty()) {
    if (!single || entries.size() == 1)
      return Status();
    return Status::error(
        "choose one of the file's functions with --function: " + names);
  }
  if (!llvm::any_of(entries, [&](auto *op) { return nameOf(*op) == name; }))
    return Status::error("there is no function " + inQuotes(name) +
                         "; the file has " + names);
  for (mlir::Operation *op : entries)
    if (nameOf(*op) != name)
      op->erase();
  return Status();
}

mlir::kf::CompileOptions convert(const CompilerOptions &options) {
  mlir::kf::CompileOptions result;
  result.target = options.target;
  if (options.targetCpu != "native")
    result.target += ":" + options.targetCpu;
  result.workers = options.workers;
  result.maxTokens = options.maxTokens;
  result.measured = {options.tuning, options.tuningFile, options.device};
  if (options.onWarning)
    result.onWarning = [warn = options.onWarning](const std::string &warning) {
      warn(oneLine(warning));
    };
  result.cancelled = options.cancelled;
  return result;
}

} // namespace

void kf::installCompilerErrorHandlers(const CompilerErrorHandlers &handlers) {
  errorHandlers = handlers;
  llvm::install_fatal_error_handler([](void *, const char *reason, bool) {
    const NoBadAlloc guard(errorHandlers.onOutOfMemory);
    errorHandlers.onFatalError(reason);
  });
  llvm::install_bad_alloc_error_handler(
      [](void *, const char *, bool) { errorHandlers.onOutOfMemory(); });
}

std::string kf::targetFor(const Device &device, const std::string &targetCpu) {
  return targetCpu == "native" ? device.target() : device.name();
}

Result<std::string> kf::compilerFingerprint(const CompilerOptions &options) {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  const mlir::kf::CompileOptions converted = convert(options);
  llvm::Expected<std::string> text = mlir::kf::fingerprint(converted);
  if (!text)
    return statusOf(text.takeError());
  return std::move(*text);
}

Status kf::checkRunsOnHost(const CompilerOptions &options) {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  const mlir::kf::CompileOptions converted = convert(options);
  if (llvm::Error error = mlir::kf::checkRunsOnHost(converted))
    return statusOf(std::move(error));
  return Status();
}

Result<std::string> kf::normalizeSchedule(const std::string &schedule) {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  llvm::Expected<std::string> text = mlir::kf::normalizeSchedule(schedule);
  if (!text)
    return statusOf(text.takeError());
  return std::move(*text);
}

Result<TuningScope> kf::tuningScopeOf(const CompilerOptions &options) {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  llvm::Expected<TuningScope> scope = mlir::kf::tuningScopeOf(convert(options));
  if (!scope)
    return statusOf(scope.takeError());
  return std::move(*scope);
}

Result<bool> kf::isInterpreted(const CompilerOptions &options) {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  llvm::Expected<bool> found = mlir::kf::isInterpreted(convert(options));
  if (!found)
    return statusOf(found.takeError());
  return *found;
}

Result<std::string> kf::defaultCacheType(const CompilerOptions &options) {
  KF_ASSIGN_OR_RETURN(const bool interprets, isInterpreted(options));
  return std::string(interprets ? "f32" : "f16");
}

Result<std::string> kf::measuredMachineOf(const std::string &target) {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  mlir::DialectRegistry registry;
  mlir::kf::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto found = mlir::kf::parseTarget(target, &context);
  if (!found)
    return statusOf(found.takeError());
  return found->getMeasuredMachine().str();
}

CompilerModule::CompilerModule(std::unique_ptr<Contents> contents)
    : contents(std::move(contents)) {}
CompilerModule::CompilerModule(CompilerModule &&) noexcept = default;
CompilerModule &CompilerModule::operator=(CompilerModule &&) noexcept = default;
CompilerModule::~CompilerModule() {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  contents.reset();
}

Result<CompilerModule> CompilerModule::parse(const std::string &path,
                                             const std::string &function,
                                             bool single) {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  return parseText(file.text(), path, function, single);
}

Result<CompilerModule> CompilerModule::parseText(std::string_view text,
                                                 const std::string &name,
                                                 const std::string &function,
                                                 bool single) {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  auto contents = std::make_unique<Contents>();
  auto module = mlir::kf::parseSource(text, name, &contents->context);
  if (!module)
    return Status::error(llvm::toString(module.takeError()));
  contents->module = std::move(*module);
  KF_RETURN_IF_ERROR(
      selectFunction(*contents->module, function, single).in(name));
  contents->path = name;
  return CompilerModule(std::move(contents));
}

Result<CompilerModule> CompilerModule::import(const ModelConfig &config,
                                              const WeightSource &source,
                                              const StepShape &shape,
                                              const CompilerOptions &options) {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  auto contents = std::make_unique<Contents>();
  mlir::kf::ImportOptions import;
  import.shape = shape;
  KF_ASSIGN_OR_RETURN(import.cacheType, parseDataType(options.cacheType));
  KF_ASSIGN_OR_RETURN(import.activationType,
                      parseDataType(options.activationType));
  auto module = mlir::kf::importStep(contents->context, config, source, import);
  if (!module)
    return statusOf(module.takeError());
  contents->module = std::move(*module);
  return CompilerModule(std::move(contents));
}

Result<CompilerModule> CompilerModule::importTraining(
    const ModelConfig &config, const WeightSource &source,
    const TrainingShape &shape, const CompilerOptions &options) {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  auto contents = std::make_unique<Contents>();
  KF_ASSIGN_OR_RETURN(const DataType activation,
                      parseDataType(options.activationType));
  auto module = mlir::kf::importTraining(contents->context, config, source,
                                         shape, activation);
  if (!module)
    return statusOf(module.takeError());
  contents->module = std::move(*module);
  const mlir::kf::CompileOptions compile = convert(options);
  if (shape.part == TrainingPart::Gradient)
    if (llvm::Error error =
            mlir::kf::differentiate(*contents->module,
                                    shape.recompute == Recompute::Layers
                                        ? mlir::kf::GradientPolicy::Layers
                                        : mlir::kf::GradientPolicy::Recompute,
                                    compile))
      return statusOf(std::move(error), options.cancelled, {});
  if (shape.part != TrainingPart::Update)
    if (llvm::Error error = mlir::kf::splitRows(*contents->module, compile))
      return statusOf(std::move(error), options.cancelled, {});
  return CompilerModule(std::move(contents));
}

/// The number of the tensor that a function takes, if `value` is one.
static std::optional<size_t> findInput(mlir::Value value) {
  auto argument = llvm::dyn_cast<mlir::BlockArgument>(value);
  if (!argument ||
      !llvm::isa<mlir::func::FuncOp>(argument.getOwner()->getParentOp()))
    return std::nullopt;
  // Caches are no inputs.
  size_t index = 0;
  for (mlir::BlockArgument before :
       argument.getOwner()->getArguments().take_front(argument.getArgNumber()))
    index += llvm::isa<mlir::RankedTensorType>(before.getType());
  return index;
}

int64_t CompilerModule::ranks() const {
  const auto ranks =
      (*contents->module)
          ->getAttrOfType<mlir::IntegerAttr>(mlir::kf::kRanksAttrName);
  return ranks ? ranks.getInt() : 1;
}

std::vector<CacheUse> CompilerModule::cacheUses() const {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  std::set<CacheUse> found;
  auto add = [&](auto op, bool isAttention, KeyWindow window) {
    std::optional<size_t> positions = findInput(op.getPositions()),
                          sequences = findInput(op.getSequences()),
                          pageTable = findInput(op.getPageTable());
    if (positions && sequences && pageTable)
      found.insert({*positions, *sequences, *pageTable,
                    op.getCache().getType().getPage(), isAttention, window});
  };
  contents->module->walk(
      [&](mlir::kf::KVAppendOp op) { add(op, /*isAttention=*/false, {}); });
  contents->module->walk([&](mlir::kf::CacheAttentionInterface op) {
    add(op, /*isAttention=*/true,
        {op.getWindow().value_or(0), op.getChunked()});
  });
  return {found.begin(), found.end()};
}

std::vector<StateUse> CompilerModule::stateUses() const {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  std::set<StateUse> found;
  contents->module->walk([&](mlir::kf::GatedDeltaOp op) {
    std::optional<size_t> positions = findInput(op.getPositions()),
                          sequences = findInput(op.getSequences()),
                          states = findInput(op.getStates());
    if (positions && sequences && states)
      found.insert({*positions, *sequences, *states,
                    op.getCache().getType().getSlotPages()});
  });
  return {found.begin(), found.end()};
}

Result<Executable> CompilerModule::compile(const CompilerOptions &options,
                                           std::vector<TuningKey> *kernels) {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  const mlir::kf::CompileOptions converted = convert(options);
  return resultOf(
      mlir::kf::compile(*contents->module, converted, contents->phase, kernels),
      options.cancelled, contents->path);
}

Result<std::vector<RowChoice>>
CompilerModule::rowChoices(const CompilerOptions &options) {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  KF_ASSIGN_OR_RETURN(
      std::vector<mlir::kf::RowChoice> found,
      resultOf(mlir::kf::findRowChoices(*contents->module, convert(options),
                                        contents->phase),
               options.cancelled, contents->path));
  std::vector<RowChoice> choices;
  for (mlir::kf::RowChoice &choice : found)
    choices.push_back({std::move(choice.key), std::move(choice.subject),
                       std::move(choice.rows)});
  return choices;
}

Result<std::string> CompilerModule::print(const CompilerOptions &options,
                                          const std::string &phase) {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  const mlir::kf::CompileOptions converted = convert(options);
  std::optional<mlir::kf::Phase> to = mlir::kf::parsePhase(phase);
  if (!to || *to == mlir::kf::Phase::Binary)
    return Status::error("there is no text of phase " + inQuotes(phase));
  assert(*to >= contents->phase && "the module is that of a later phase");
  if (llvm::Error error = mlir::kf::runPhases(*contents->module, converted,
                                              contents->phase, *to))
    return statusOf(std::move(error), options.cancelled, contents->path);
  std::string text;
  llvm::raw_string_ostream stream(text);
  contents->module->print(stream);
  return text;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

struct KernelSet::Contents {
  /// Owns the context.
  std::unique_ptr<CompilerModule::Contents> source;
  CompilerOptions options;
  std::vector<mlir::kf::KernelModule> kernels;
};

KernelSet::KernelSet(std::unique_ptr<Contents> contents,
                     std::vector<KernelInfo> infos)
    : contents(std::move(contents)), infos(std::move(infos)) {}
KernelSet::KernelSet(KernelSet &&) noexcept = default;
KernelSet &KernelSet::operator=(KernelSet &&) noexcept = default;
KernelSet::~KernelSet() {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  contents.reset();
}

/// "?x2048xf32, 5632x2048xq4_0".
static std::string describeTypes(const TuningSubject &subject) {
  std::string text;
  for (size_t i = 0; i < subject.types.size(); ++i) {
    text += i == 0 ? "" : ", ";
    for (const int64_t extent : subject.shapes[i])
      text += (extent < 0 ? "?" : std::to_string(extent)) + "x";
    text += subject.types[i];
  }
  return text;
}

/// The kernels that the phases up to program make of `module`.
static llvm::Expected<std::vector<mlir::kf::KernelModule>>
formKernels(mlir::ModuleOp module, const mlir::kf::CompileOptions &options,
            mlir::kf::Phase from) {
  if (llvm::Error error =
          mlir::kf::runPhases(module, options, from, mlir::kf::Phase::Program))
    return error;
  return mlir::kf::splitKernels(module);
}

Status CompilerModule::isolate(const std::string &name,
                               const CompilerOptions &options) {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  KF_ASSIGN_OR_RETURN(std::vector<mlir::kf::KernelModule> split,
                      resultOf(formKernels(*contents->module, convert(options),
                                           contents->phase),
                               options.cancelled, contents->path));
  std::string names;
  for (mlir::kf::KernelModule &kernel : split) {
    if (kernel.name == name) {
      contents->module = std::move(kernel.module);
      contents->phase = mlir::kf::Phase::Program;
      return Status();
    }
    names += (names.empty() ? "" : ", ") + kernel.name;
  }
  return Status::error("there is no kernel " + inQuotes(name) + "; there are " +
                       names);
}

Result<KernelSet> CompilerModule::kernels(const CompilerOptions &options) {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  const mlir::kf::CompileOptions converted = convert(options);
  KF_ASSIGN_OR_RETURN(
      std::vector<mlir::kf::KernelModule> split,
      resultOf(formKernels(*contents->module, converted, contents->phase),
               options.cancelled, contents->path));
  const TuningScope scope = mlir::kf::getTuningScope(
      mlir::kf::getTarget(*contents->module), options.device);
  std::vector<KernelInfo> infos;
  for (const mlir::kf::KernelModule &kernel : split) {
    if (isCancelled(options.cancelled))
      return Status::cancelled();
    auto laidOut = mlir::kf::layOut(kernel, converted);
    if (!laidOut)
      return statusOf(laidOut.takeError(), contents->path);
    auto op = (*laidOut)->lookupSymbol<mlir::kf::KernelOp>(kernel.name);
    KernelInfo &info = infos.emplace_back();
    info.name = kernel.name;
    info.dispatches = kernel.dispatches;
    info.rows = kernel.rows;
    info.subject = mlir::kf::getTuningSubject(op);
    info.description = describeTypes(info.subject);
    info.key = mlir::kf::getTuningKey(op, kernel.rows, scope);
    auto program = *(*laidOut)->getOps<mlir::kf::ProgramOp>().begin();
    info.inputs = mlir::kf::getInputRoles(program);
    info.outputs = mlir::kf::getOutputRoles(program);
  }
  auto set = std::make_unique<KernelSet::Contents>();
  set->source = std::move(contents);
  set->options = options;
  set->kernels = std::move(split);
  return KernelSet(std::move(set), std::move(infos));
}

Result<std::vector<ScheduleCandidate>>
KernelSet::candidates(size_t kernel, const MachineRates &rates) const {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  if (isCancelled(contents->options.cancelled))
    return Status::cancelled();
  auto found = mlir::kf::scheduleCandidates(contents->kernels[kernel],
                                            convert(contents->options), rates);
  if (!found)
    return statusOf(found.takeError(), contents->source->path);
  std::vector<ScheduleCandidate> candidates;
  for (auto &[schedule, seconds] : *found)
    candidates.push_back({std::move(schedule), seconds});
  return candidates;
}

Result<Executable> KernelSet::compile(size_t kernel,
                                      const std::string &schedule) const {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  const mlir::kf::CompileOptions converted = convert(contents->options);
  return resultOf(
      mlir::kf::compile(contents->kernels[kernel], schedule, converted),
      contents->options.cancelled, contents->source->path);
}

Result<Executable> KernelSet::compileForReference(size_t kernel) const {
  const NoBadAlloc guard(errorHandlers.onOutOfMemory);
  mlir::kf::CompileOptions reference = convert(contents->options);
  reference.target = "reference";
  return resultOf(mlir::kf::compile(contents->kernels[kernel], "", reference),
                  contents->options.cancelled, contents->source->path);
}
