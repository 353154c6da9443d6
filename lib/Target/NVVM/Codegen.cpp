//===- Codegen.cpp - kf kernels to PTX ------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/NVVM/Codegen.h"

#include "MergeMasks.h"

#include "kf/Conversion/Passes.h"
#include "kf/Target/Common/LLVMBackend.h"
#include "kf/Target/NVVM/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;
using namespace mlir::kf;

//===----------------------------------------------------------------------===//
// Chips
//===----------------------------------------------------------------------===//

/// The first whose f16, asynchronous copies and matrix units the kernels use.
static constexpr unsigned oldestChip = 80;

/// The 80 of "sm_80"; 0 for another text.
static unsigned numberOf(StringRef chip) {
  return CudaTargetAttr::parseNumber(chip).value_or(0);
}

static llvm::Expected<const llvm::Target *> lookupTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(
      llvm::Triple("nvptx64-nvidia-cuda"), error);
  if (!target)
    return llvm::createStringError("cuda target: " + error);
  return target;
}

llvm::Error mlir::kf::checkCudaChip(StringRef chip) {
  auto target = lookupTarget();
  if (!target)
    return target.takeError();
  std::unique_ptr<llvm::MCSubtargetInfo> known((*target)->createMCSubtargetInfo(
      llvm::Triple("nvptx64-nvidia-cuda"), "", ""));
  if (numberOf(chip) >= oldestChip && known->isCPUStringValid(chip))
    return llvm::Error::success();
  SmallVector<StringRef> accepted;
  for (const llvm::SubtargetSubTypeKV &cpu :
       known->getAllProcessorDescriptions())
    if (numberOf(cpu.Key) >= oldestChip)
      accepted.push_back(cpu.Key);
  llvm::sort(accepted, [](StringRef a, StringRef b) {
    return std::tuple(numberOf(a), a) < std::tuple(numberOf(b), b);
  });
  return llvm::createStringError("cuda target: there is no code for '" + chip +
                                 "'; it is one of " +
                                 llvm::join(accepted, ", "));
}

/// PTX 8.0, which drivers from 525 on compile, for chips that are as old; the
/// others need what LLVM chooses for them.
static StringRef featuresOf(StringRef chip) {
  constexpr StringLiteral old[] = {"sm_80", "sm_86", "sm_87",
                                   "sm_89", "sm_90", "sm_90a"};
  return llvm::is_contained(old, chip) ? "+ptx80" : "";
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createMachine(StringRef chip) {
  if (llvm::Error error = checkCudaChip(chip))
    return std::move(error);
  auto target = lookupTarget();
  if (!target)
    return target.takeError();
  llvm::TargetOptions options;
  // Kernels say themselves where a product and a sum are rounded at once, so
  // that one row is computed alike in a kernel for one and in one for many.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  std::unique_ptr<llvm::TargetMachine> machine((*target)->createTargetMachine(
      llvm::Triple("nvptx64-nvidia-cuda"), chip, featuresOf(chip), options,
      llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
  if (!machine)
    return llvm::createStringError("cuda target: LLVM has no code generator "
                                   "for " +
                                   chip);
  return machine;
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

void mlir::kf::buildNvvmCodegenPipeline(OpPassManager &passes) {
  passes.addPass(createConvertKFToGPU());
  passes.addPass(createLowerAffinePass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createExpandNvvmMath());
  passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createLowerAffinePass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertGPUToNvvm());
  passes.addPass(createReconcileUnrealizedCastsPass());
  // Without descriptors of memory, the code is what it looks like.
  passes.addNestedPass<gpu::GPUModuleOp>(createCanonicalizerPass());
  passes.addNestedPass<gpu::GPUModuleOp>(createCSEPass());
}

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

/// The module's variables in shared memory.
static SmallVector<llvm::GlobalVariable *>
getSharedVariables(llvm::Module &module) {
  constexpr unsigned sharedSpace = 3;
  SmallVector<llvm::GlobalVariable *> found;
  for (llvm::GlobalVariable &variable : module.globals())
    if (variable.getAddressSpace() == sharedSpace)
      found.push_back(&variable);
  return found;
}

/// Says of `variables` what alignment they have. The optimizer presumes the
/// preferred one, 16 bytes for all but the smallest, and joins accesses by it;
/// PTX of a variable that says none has that of its elements.
static void alignVariables(ArrayRef<llvm::GlobalVariable *> variables) {
  for (llvm::GlobalVariable *variable : variables)
    variable->setAlignment(
        variable->getDataLayout().getPreferredAlign(variable));
}

/// Places `variables` one behind the other, with their alignment and at least
/// `least`; returns the bytes of all.
static uint64_t placeVariables(ArrayRef<llvm::GlobalVariable *> variables,
                               llvm::Align least,
                               SmallVectorImpl<uint64_t> &offsets) {
  uint64_t bytes = 0;
  for (const llvm::GlobalVariable *variable : variables) {
    bytes = llvm::alignTo(bytes,
                          std::max(least, variable->getAlign().valueOrOne()));
    offsets.push_back(bytes);
    bytes +=
        variable->getDataLayout().getTypeAllocSize(variable->getValueType());
  }
  return bytes;
}

/// Variables of more bytes than code may ask for become parts of the memory
/// that a launch gives. Sets both sizes. Comes last: before, the optimizer
/// knows that variables are apart.
static void assignSharedMemory(llvm::Module &module, ::kf::KernelSpec &kernel) {
  SmallVector<llvm::GlobalVariable *> variables = getSharedVariables(module);
  SmallVector<uint64_t> offsets;
  kernel.dynamicBytes = 0;
  kernel.scratchBytes = placeVariables(variables, llvm::Align(), offsets);
  if (kernel.scratchBytes <= kCudaStaticSharedBytes)
    return;
  offsets.clear();
  // Copies and matrix loads take 16 bytes at a time.
  kernel.dynamicBytes = kernel.scratchBytes =
      placeVariables(variables, llvm::Align(16), offsets);
  llvm::LLVMContext &context = module.getContext();
  auto *memory = new llvm::GlobalVariable(
      module, llvm::ArrayType::get(llvm::Type::getInt8Ty(context), 0),
      /*isConstant=*/false, llvm::GlobalValue::ExternalLinkage,
      /*Initializer=*/nullptr, "kf_shared", /*InsertBefore=*/nullptr,
      llvm::GlobalValue::NotThreadLocal, variables.front()->getAddressSpace());
  memory->setAlignment(llvm::Align(1024)); // of a swizzled tile, the most
  for (auto [variable, offset] : llvm::zip_equal(variables, offsets)) {
    llvm::Constant *place =
        llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), offset);
    variable->replaceAllUsesWith(llvm::ConstantExpr::getGetElementPtr(
        llvm::Type::getInt8Ty(context), memory, place));
    variable->eraseFromParent();
  }
}

/// The PTX of one kernel, with its NUL; sets its workgroup size and memory.
static llvm::Expected<std::string> generatePtx(gpu::GPUModuleOp module,
                                               LLVM::LLVMFuncOp function,
                                               llvm::TargetMachine &machine,
                                               ::kf::KernelSpec &kernel) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(module, context, kernel.name);
  if (!code)
    return llvm::createStringError("it does not translate to LLVM IR");
  code->setDataLayout(machine.createDataLayout());
  code->setTargetTriple(machine.getTargetTriple());
  llvm::Function *entry = code->getFunction(function.getName());
  entry->setName(kCudaEntryPoint);
  for (llvm::Function &defined : *code)
    if (!defined.isDeclaration()) {
      defined.addFnAttr("target-cpu", machine.getTargetCPU());
      defined.addFnAttr("target-features", machine.getTargetFeatureString());
    }
  alignVariables(getSharedVariables(*code));
  optimizeKernels(*code, machine);
  mergeMasks(*code);
  assignSharedMemory(*code, kernel);
  kernel.waits = function->hasAttr(kCudaWaitsAttrName);
  auto text = emitKernels(*code, machine, llvm::CodeGenFileType::AssemblyFile);
  if (text)
    text->push_back('\0');
  return text;
}

LogicalResult mlir::kf::serializeForCuda(ModuleOp module,
                                         ::kf::Executable &executable,
                                         StringRef chip,
                                         ::kf::CancelFlag cancelled) {
  auto machine = createMachine(chip);
  if (!machine)
    return module.emitError(llvm::toString(machine.takeError()));
  MLIRContext *context = module.getContext();
  registerBuiltinDialectTranslation(*context);
  registerGPUDialectTranslation(*context);
  registerLLVMDialectTranslation(*context);
  registerNVVMDialectTranslation(*context);

  executable.binary.clear();
  for (::kf::KernelSpec &kernel : executable.kernels) {
    if (::kf::isCancelled(cancelled))
      return module.emitError("cancelled");
    auto found = module.lookupSymbol<gpu::GPUModuleOp>(kernel.name);
    auto function =
        found ? found.lookupSymbol<LLVM::LLVMFuncOp>(kernel.name) : nullptr;
    if (!function)
      return module.emitError("cuda target: kernel @")
             << kernel.name << " is not lowered to the NVVM dialect";
    if (auto size = function->getAttrOfType<DenseI32ArrayAttr>(
            NVVM::NVVMDialect::getReqntidAttrName()))
      llvm::copy(size.asArrayRef(), kernel.workgroupSize.begin());
    auto text = generatePtx(found, function, **machine, kernel);
    if (!text)
      return function.emitError("cuda target: no PTX for kernel @")
             << kernel.name << ": " << llvm::toString(text.takeError());
    uint64_t bytes = text->size();
    for (int shift = 0; shift < 64; shift += 8)
      executable.binary.push_back(static_cast<char>(bytes >> shift));
    executable.binary += *text;
  }
  return success();
}
