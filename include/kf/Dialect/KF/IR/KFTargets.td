//===- KFTargets.td - What a module is compiled for
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The module's `kf.target` is one of these attributes. They hold what a device
// reports; what follows from that is said by the models of their interface, in
// lib/Target/<Name>.
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFTARGETS_TD
#define KF_DIALECT_KF_IR_KFTARGETS_TD

include "kf/Dialect/KF/IR/KFAttributes.td"

def KF_IsTarget : NativeAttrTrait<"IsTarget"> {
  let cppNamespace = "::mlir::kf";
}

/// What a module's `kf.target` may be.
class KF_TargetAttr<string name, string attrMnemonic>
    : KF_Attr<name#"Target", attrMnemonic, [KF_IsTarget]>;

def KF_ByteDot : KF_I32Enum<"ByteDot", "what multiplies bytes",
                            [I32EnumAttrCase<"Vpdpbusd", 0, "vpdpbusd">,
                             I32EnumAttrCase<"Pmaddubsw", 1, "pmaddubsw">,
                             I32EnumAttrCase<"Pmaddwd", 2, "pmaddwd">,
                             I32EnumAttrCase<"Sdot", 3, "sdot">,
                             I32EnumAttrCase<"Usdot", 4, "usdot">]>;

def KF_CpuTargetAttr : KF_TargetAttr<"Cpu", "cpu_target"> {
  let summary = "a CPU that LLVM generates code for";
  let description = [{
    - `cpu`: LLVM's name; "native" is the machine that compiles.
    - `triple`: LLVM's name of the system; without it, this machine's.
    - `lanes`: f32 lanes of a vector register, 4, 8 or 16.
    - `registers`: vector registers; 0: 32 with 16 lanes, otherwise 16.
    - `int8_dot`: it multiplies bytes and adds up their products.
    - `byte_dot`: the instruction that does: `vpdpbusd` (VNNI), `pmaddubsw`
      (AVX2, SSSE3), `pmaddwd` (SSE2), `sdot` or `usdot` (NEON).
    - `amx`: it multiplies tiles of bf16 (AMX-BF16), and has 16 lanes.
    - `bf16_dot`: it multiplies pairs of bf16 in its vectors (`vdpbf16ps`), and
      twice as many elements as of f32; it has 16 lanes.
    - `prefetch`: how lines of weights come from memory fastest (`#kf.vector`).
    - `workers`: threads that will share a kernel's workgroups; 0: unknown. Any
      number can.

    ```mlir
    #kf.cpu_target<cpu = "znver4", lanes = 16, int8_dot = true, bf16_dot = true, workers = 2>
    #kf.cpu_target<cpu = "znver5", int8_dot = true, bf16_dot = true, prefetch = once>
    #kf.cpu_target<cpu = "sapphirerapids", int8_dot = true, amx = true>
    #kf.cpu_target<cpu = "cortex-a76", triple = "aarch64-linux-gnu", lanes = 4,
                   registers = 32, int8_dot = true, byte_dot = sdot>
    ```
  }];
  let parameters = (ins StringRefParameter<"">:$cpu,
      StringRefParameter<"", "\"\"">:$triple,
      DefaultValuedParameter<"int64_t", "16">:$lanes,
      DefaultValuedParameter<"int64_t", "0">:$registers,
      DefaultValuedParameter<"bool", "false">:$int8_dot,
      DefaultValuedParameter<"::mlir::kf::ByteDot",
                             "::mlir::kf::ByteDot::Vpdpbusd">:$byte_dot,
      DefaultValuedParameter<"bool", "false">:$amx,
      DefaultValuedParameter<"bool", "false">:$bf16_dot,
      DefaultValuedParameter<"::mlir::kf::PrefetchKind",
                             "::mlir::kf::PrefetchKind::Twice">:$prefetch,
      DefaultValuedParameter<"int64_t", "0">:$workers);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    /// Vector registers, never 0.
    int64_t countRegisters() const {
      return getRegisters() ? getRegisters() : getLanes() == 16 ? 32 : 16;
    }
    /// Whether it multiplies bytes without a sign of up to 255; others want
    /// a sign on those of 8 bits.
    bool takesUnsignedBytes() const {
      return getByteDot() != ByteDot::Pmaddubsw &&
             getByteDot() != ByteDot::Sdot;
    }
  }];
  let genVerifyDecl = 1;
}

def KF_ReferenceTargetAttr : KF_TargetAttr<"Reference", "reference_target"> {
  let summary = "the interpreter, which runs ops as they are written";
  let description = [{
    ```mlir
    #kf.reference_target
    ```
  }];
}

/// A list of types in brackets.
def KF_Types : OptionalArrayRefParameter<"::mlir::Type"> {
  let parser = "::mlir::kf::parseTypeList($_parser)";
  let printer = "::mlir::kf::printTypeList($_printer, $_self)";
}

def KF_VulkanTargetAttr : KF_TargetAttr<"Vulkan", "vulkan_target"> {
  let summary = "a Vulkan device";
  let description = [{
    - `threads`: of a workgroup (maxComputeWorkGroupInvocations).
    - `memory`: bytes of workgroup memory (maxComputeSharedMemorySize).
    - `subgroup`: threads that run in step (subgroupSize).
    - `arithmetic`, `shuffle`: whether those add up, and exchange, what they
      have in registers (subgroupSupportedOperations).
    - `types`: of f16, i8, i16 and i64 those that it has in buffers and in
      registers; f32 and i32 are everywhere. Without, they are packed into words
      of 32 bits and computed with integers. One that has f16 computes with its
      subnormal numbers.
    - `denorm_preserve`: it computes with the subnormal numbers of f32, too,
      where a kernel asks for that (shaderDenormPreserveFloat32).
    - `int8_dot`: an instruction multiplies four bytes of a word by four of
      another, and adds up their products.
    - `matrices`: of f16, bf16 and i8 those that subgroups multiply as matrices
      of 16 x 16 (VK_KHR_cooperative_matrix), with sums of 32 bits. Such a device
      rounds f16 to the nearest where a kernel asks for that
      (shaderRoundingModeRTEFloat16).
    - `multiprocessors`: how many; 0: unknown.

    Matrices of f16 and bf16 multiply many rows, where `types` has f16 and i16
    and `shuffle` is true; `subgroup` is how many threads have one together. With
    f16 and i16, products of few rows have `codes = halves`, `rounds` and more
    vectors on their way, too (`#kf.lanes`): devices without are taken for CPUs.
    Schedules do not go by `arithmetic`, `int8_dot` and matrices of i8 yet: these
    say what a device has, as `kf-run devices` does.

    ```mlir
    #kf.vulkan_target<threads = 1024, memory = 32768, subgroup = 8, arithmetic = true, types = [f16, i8, i16]>
    #kf.vulkan_target<threads = 1024, memory = 49152, subgroup = 32, arithmetic = true, shuffle = true,
                      types = [f16, i8, i16], denorm_preserve = true, int8_dot = true, matrices = [f16, bf16, i8],
                      multiprocessors = 132>
    ```
  }];
  let parameters = (ins "int64_t":$threads, "int64_t":$memory,
      DefaultValuedParameter<"int64_t", "4">:$subgroup,
      DefaultValuedParameter<"bool", "false">:$arithmetic,
      DefaultValuedParameter<"bool", "false">:$shuffle, KF_Types:$types,
      DefaultValuedParameter<"bool", "false">:$denorm_preserve,
      DefaultValuedParameter<"bool", "false">:$int8_dot, KF_Types:$matrices,
      DefaultValuedParameter<"int64_t", "0">:$multiprocessors);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def KF_CudaTargetAttr : KF_TargetAttr<"Cuda", "cuda_target"> {
  let summary = "an NVIDIA GPU";
  let description = [{
    - `chip`: its architecture, sm_80 or later; "sm_90a" has what Hopper alone
      has.
    - `multiprocessors`: how many; 0: unknown.
    - `memory`: bytes of shared memory that a block may ask for.

    ```mlir
    #kf.cuda_target<chip = "sm_90a", multiprocessors = 132>
    ```
  }];
  let parameters = (ins StringRefParameter<"">:$chip,
      DefaultValuedParameter<"int64_t", "0">:$multiprocessors,
      DefaultValuedParameter<"int64_t", "49152">:$memory);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The 90 of "sm_90a"; nothing where `chip` is no such text.
    static std::optional<unsigned> parseNumber(::llvm::StringRef chip);
  }];
}

#endif // KF_DIALECT_KF_IR_KFTARGETS_TD
