//===- Codegen.cpp - kf kernels to machine code ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/LLVMCPU/Codegen.h"

#include "kf/Conversion/Passes.h"
#include "kf/Target/Common/LLVMBackend.h"
#include "kf/Target/LLVMCPU/Passes.h"

#include "runtime/core/TileRegisters.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

using namespace mlir;
using namespace mlir::kf;

/// Whether code for `triple` can hold what kernels take for granted: addresses
/// of 64 bits, the lowest byte first, and names and calls as on Linux.
static bool isKnownSystem(const llvm::Triple &triple) {
  bool isKnownArch = triple.getArch() == llvm::Triple::x86_64 ||
                     triple.getArch() == llvm::Triple::aarch64;
  return isKnownArch && triple.isOSLinux() && !triple.isX32() &&
         triple.getEnvironment() != llvm::Triple::GNUILP32;
}

/// Whether code generation uses a feature only where code names its
/// instructions: those of cryptography, random numbers, protection, modes of
/// memory and of the system. Kernels' code does not.
static bool isNamedAlone(StringRef feature) {
  // Not sha3 of AArch64, whose instructions of vectors are for all.
  static const llvm::StringSet<> names = {
      "aes",     "cldemote", "clflushopt", "clwb",    "clzero",   "crc",
      "crc32",   "enqcmd",   "fsgsbase",   "fxsr",    "hreset",   "invpcid",
      "kl",      "lwp",      "movdir64b",  "movdiri", "mwaitx",   "pclmul",
      "pconfig", "pku",      "ptwrite",    "rdpid",   "rdpru",    "rdrnd",
      "rdseed",  "rtm",      "serialize",  "sgx",     "sha",      "sha2",
      "sha512",  "shstk",    "sm3",        "sm4",     "tsxldtrk", "uintr",
      "usermsr", "vaes",     "vpclmulqdq", "waitpkg", "wbnoinvd", "widekl",
      "xsave",   "xsavec",   "xsaveopt",   "xsaves"};
  return names.contains(feature);
}

/// What this machine's CPU has and the system lets this process use.
static llvm::StringMap<bool> hostFeatures() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  for (auto &feature : features)
    if (feature.getKey().starts_with("amx-") && feature.getValue())
      feature.setValue(::kf::mayUseTiles());
  return features;
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
mlir::kf::createTargetMachine(StringRef cpu, StringRef system) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
  llvm::Triple triple(system.empty() ? llvm::sys::getProcessTriple()
                                     : llvm::Triple::normalize(system));
  std::string error;
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found || !isKnownSystem(triple))
    return llvm::createStringError(
        "cpu target: there is no code for the system '" + system +
        "'; there is for x86_64-linux-gnu and aarch64-linux-gnu");
  if (cpu == nativeCpu && !system.empty())
    return llvm::createStringError(
        "cpu target: 'native' is this machine's CPU, not one of '" + system +
        "'; name one, as in aarch64-linux-gnu/cortex-a76");

  std::string features;
  if (cpu == nativeCpu) {
    cpu = llvm::sys::getHostCPUName();
    for (const auto &[name, isOn] : hostFeatures())
      features += (features.empty() ? "" : ",") +
                  std::string(isOn ? "+" : "-") + name.str();
  }
  // Asked first: a TargetMachine for an unknown CPU writes to stderr.
  std::unique_ptr<llvm::MCSubtargetInfo> known(
      found->createMCSubtargetInfo(triple, "", ""));
  if (!known || !known->isCPUStringValid(cpu))
    return llvm::createStringError(
        "cpu target: LLVM knows no " + triple.getArchName() + " CPU '" + cpu +
        "'; 'native' is this machine's, and another system's stands behind "
        "its name, as in aarch64-linux-gnu/cortex-a76");
  // So does one for a CPU of 32 bits, which then ends the process.
  known.reset(found->createMCSubtargetInfo(triple, cpu, ""));
  if (triple.isX86() && !known->checkFeatures("+64bit"))
    return llvm::createStringError(
        "cpu target: the CPU '" + cpu +
        "' has no 64-bit mode, which kernels need; --target-cpu=x86-64 is the "
        "least that has, and native is this machine's");
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  std::unique_ptr<llvm::TargetMachine> machine(found->createTargetMachine(
      triple, cpu, features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      llvm::CodeGenOptLevel::Default));
  if (!machine)
    return llvm::createStringError("cpu target: LLVM has no code generator "
                                   "for " +
                                   triple.str());
  return machine;
}

std::string mlir::kf::missingFeatures(const llvm::TargetMachine &machine,
                                      const llvm::StringMap<bool> &host) {
  const llvm::MCSubtargetInfo *info = machine.getMCSubtargetInfo();
  std::string missing;
  for (const auto &[name, isOn] : host)
    if (!isOn && !isNamedAlone(name) && info->checkFeatures("+" + name.str()))
      missing += (missing.empty() ? "" : ", ") + name.str();
  return missing;
}

llvm::Error mlir::kf::checkHostRuns(StringRef cpu, StringRef system) {
  auto machine = createTargetMachine(cpu, system);
  if (!machine)
    return machine.takeError();
  if (cpu == nativeCpu)
    return llvm::Error::success();
  const llvm::Triple host(llvm::sys::getProcessTriple());
  const llvm::Triple &triple = (*machine)->getTargetTriple();
  if (triple.getArch() != host.getArch() || triple.getOS() != host.getOS())
    return llvm::createStringError("cpu target: this machine, " + host.str() +
                                   ", cannot run code for " + triple.str() +
                                   "; --target-cpu=native is this machine's");
  const std::string missing = missingFeatures(**machine, hostFeatures());
  if (missing.empty())
    return llvm::Error::success();
  return llvm::createStringError("cpu target: this machine cannot run code for "
                                 "'" +
                                 cpu + "', which uses " + missing +
                                 "; --target-cpu=native is this machine's");
}

std::vector<std::string>
mlir::kf::featuresOf(const llvm::TargetMachine &machine) {
  std::vector<std::string> features;
  const llvm::Triple host(llvm::sys::getProcessTriple());
  if (machine.getTargetTriple().getArch() != host.getArch())
    return features;
  const llvm::MCSubtargetInfo *info = machine.getMCSubtargetInfo();
  for (const auto &[name, isOn] : hostFeatures())
    if (!isNamedAlone(name) && info->checkFeatures("+" + name.str()))
      features.push_back(name.str());
  llvm::sort(features);
  return features;
}

int64_t mlir::kf::vectorLanes(const llvm::TargetMachine &machine) {
  if (machine.getTargetTriple().isAArch64())
    return 4;
  const llvm::MCSubtargetInfo *info = machine.getMCSubtargetInfo();
  if (info->checkFeatures("+avx512f"))
    return 16;
  return info->checkFeatures("+avx2,+fma") ? 8 : 4;
}

int64_t mlir::kf::vectorRegisters(const llvm::TargetMachine &machine) {
  return vectorLanes(machine) == 16 || machine.getTargetTriple().isAArch64()
             ? 32
             : 16;
}

std::optional<ByteDot> mlir::kf::byteDotOf(const llvm::TargetMachine &machine) {
  const llvm::MCSubtargetInfo *info = machine.getMCSubtargetInfo();
  if (machine.getTargetTriple().isAArch64()) {
    if (info->checkFeatures("+i8mm"))
      return ByteDot::Usdot;
    if (info->checkFeatures("+dotprod"))
      return ByteDot::Sdot;
    return std::nullopt;
  }
  int64_t lanes = vectorLanes(machine);
  if (info->checkFeatures("+avx512vnni,+avx512vl,+avx512bw") ||
      (lanes == 8 && info->checkFeatures("+avxvnni")))
    return ByteDot::Vpdpbusd;
  // A CPU may compute with wider floats than bytes.
  if (lanes == 16 && !info->checkFeatures("+avx512bw"))
    return std::nullopt;
  return info->checkFeatures("+ssse3") ? ByteDot::Pmaddubsw : ByteDot::Pmaddwd;
}

bool mlir::kf::hasTiles(const llvm::TargetMachine &machine) {
  return vectorLanes(machine) == 16 && machine.getTargetTriple().isX86() &&
         machine.getMCSubtargetInfo()->checkFeatures("+amx-tile,+amx-bf16");
}

bool mlir::kf::hasBF16Dot(const llvm::TargetMachine &machine) {
  // AMD's do as many vdpbf16ps as multiply-adds of f32, Intel's a quarter of
  // them (docs/decisions/bf16-pairs.md).
  return vectorLanes(machine) == 16 &&
         machine.getTargetCPU().starts_with("znver") &&
         machine.getMCSubtargetInfo()->checkFeatures("+avx512bf16");
}

/// Measured on these alone (docs/decisions/weight-prefetch.md).
PrefetchKind mlir::kf::prefetchOf(const llvm::TargetMachine &machine) {
  return llvm::StringSwitch<PrefetchKind>(machine.getTargetCPU())
      .Case("znver4", PrefetchKind::Hardware)
      .Case("znver5", PrefetchKind::Once)
      .Default(PrefetchKind::Twice);
}

void mlir::kf::buildCpuCodegenPipeline(OpPassManager &passes) {
  passes.addPass(createConvertKFToVector());
  passes.addPass(createLowerCpuByteOps());
  passes.addPass(createEmitCpuEntryPoints());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createExpandCpuMath());
  passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createLowerAffinePass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertIndexToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createUBToLLVMConversionPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
}

llvm::Expected<std::string>
mlir::kf::compileToObject(ModuleOp module, llvm::TargetMachine &machine,
                          ::kf::CancelFlag cancelled) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(module, context, "kf_kernels");
  if (!llvmModule)
    return llvm::createStringError(
        "cpu target: kernels do not translate to LLVM IR");
  llvmModule->setDataLayout(machine.createDataLayout());
  llvmModule->setTargetTriple(machine.getTargetTriple());
  for (llvm::Function &function : *llvmModule) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    function.addFnAttr("prefer-vector-width", "512");
    // Vectors that registers do not hold lie in one line of the cache each.
    function.addFnAttr(llvm::Attribute::getWithStackAlignment(
        context, llvm::Align(4 * vectorLanes(machine))));
  }
  if (::kf::isCancelled(cancelled))
    return llvm::createStringError("cancelled");
  optimizeKernels(*llvmModule, machine);
  if (::kf::isCancelled(cancelled))
    return llvm::createStringError("cancelled");
  return emitKernels(*llvmModule, machine, llvm::CodeGenFileType::ObjectFile);
}
