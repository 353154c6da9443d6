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
    : KF_Attr<name # "Target", attrMnemonic, [KF_IsTarget]>;

def KF_CpuTargetAttr : KF_TargetAttr<"Cpu", "cpu_target"> {
  let summary = "a CPU that LLVM generates code for";
  let description = [{
    - `cpu`: LLVM's name; "native" is the machine that compiles.
    - `lanes`: f32 lanes of a vector register, 4, 8 or 16.
    - `int8_dot`: it multiplies bytes and adds up their products (VNNI).
    - `workers`: threads that will share a kernel's workgroups; 0: unknown. Any
      number can.

    ```mlir
    #kf.cpu_target<cpu = "znver4", lanes = 16, int8_dot = true, workers = 2>
    ```
  }];
  let parameters = (ins
    StringRefParameter<"">:$cpu,
    DefaultValuedParameter<"int64_t", "16">:$lanes,
    DefaultValuedParameter<"bool", "false">:$int8_dot,
    DefaultValuedParameter<"int64_t", "0">:$workers
  );
  let assemblyFormat = "`<` struct(params) `>`";
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
    - `types`: of f16, i8, i16 and i64 those that it has in buffers and in
      registers; f32 and i32 are everywhere. Without, they are packed into words
      of 32 bits and computed with integers.

    ```mlir
    #kf.vulkan_target<threads = 1024, memory = 49152, subgroup = 32, types = [f16, i8, i16]>
    ```
  }];
  let parameters = (ins
    "int64_t":$threads,
    "int64_t":$memory,
    DefaultValuedParameter<"int64_t", "4">:$subgroup,
    KF_Types:$types
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def KF_CudaTargetAttr : KF_TargetAttr<"Cuda", "cuda_target"> {
  let summary = "an NVIDIA GPU";
  let description = [{
    - `chip`: its architecture, sm_80 or later; "sm_90a" has what Hopper alone
      has.
    - `multiprocessors`: how many; 0: unknown.
    - `memory`: bytes of shared memory that a block may have without asking for
      more.

    ```mlir
    #kf.cuda_target<chip = "sm_90a", multiprocessors = 132>
    ```
  }];
  let parameters = (ins
    StringRefParameter<"">:$chip,
    DefaultValuedParameter<"int64_t", "0">:$multiprocessors,
    DefaultValuedParameter<"int64_t", "49152">:$memory
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // KF_DIALECT_KF_IR_KFTARGETS_TD
