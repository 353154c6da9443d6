//===- Passes.td - The phases as passes -----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each runs the pipeline of a phase for the module's `kf.target`, by which alone
// it is known which passes these are.
//
//===----------------------------------------------------------------------===//

#ifndef KF_PIPELINES_PASSES_TD
#define KF_PIPELINES_PASSES_TD

include "mlir/Pass/PassBase.td"

def SetTarget : Pass<"kf-set-target", "::mlir::ModuleOp"> {
  let summary = "Say what the module is compiled for";
  let description = [{
    Sets `kf.target`, which every later pass asks. A target is the name of a
    device, one with a chip behind it, or an attribute:
    `target=cpu`, `target=cpu:znver4`, `target=cuda:sm_90a`, `target=vulkan`,
    `target=reference`, `target="#kf.vulkan_target<...>"`.
    ```mlir
    module { ... }
    ```
    becomes with `target=cpu:znver4`
    ```mlir
    module attributes {kf.target = #kf.cpu_target<cpu = "znver4",
        int8_dot = true>} { ... }
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "",
           "a device's name, with a chip behind ':' or not, or an attribute">,
    Option<"workers", "workers", "int64_t", "0",
           "threads that will share a kernel's workgroups, of a CPU; 0: unknown">
  ];
  let dependentDialects = ["::mlir::kf::KFDialect"];
}

class PhasePass<string name> : Pass<name, "::mlir::ModuleOp">;

def FusePhase : PhasePass<"kf-fuse"> {
  let summary = "Join projections, expand kf.mlp and ops on batches";
  let description = [{
    `kf-expand-mlp`, `kf-expand-tensors` and `kf-fuse-projections`; nothing for
    the reference, which runs ops as they are written.
  }];
}

def ProgramPhase : PhasePass<"kf-program"> {
  let summary = "Form kernels and programs";
  let description = [{
    `kf-select-rows`, the passes by which the target divides ops (for a CPU
    `kf-cpu-split-attention`), `kf-round-rows`, `kf-canonicalize`,
    `kf-form-kernels`, with what the target fuses, and `kf-bound-tokens`. No
    tuning database is asked: for its rows, which this phase keeps, run
    `kf-select-rows` with `db` before.
  }];
  let options = [
    Option<"maxTokens", "max-tokens", "int64_t", "512",
           "largest n_tokens of functions without kf.max_tokens">
  ];
}

def SchedulePhase : PhasePass<"kf-schedule"> {
  let summary = "Lay out weights, choose schedules, plan memory and tile";
  let description = [{
    `kf-set-layouts`, `kf-select-schedules`, `kf-plan-memory` and
    `kf-tile-kernels`; for the reference, `kf-plan-memory` alone does something.
    No tuning database is asked: for its schedules, which this phase keeps, run
    `kf-set-layouts` and `kf-select-schedules` with `db` before.
  }];
}

def LowerPhase : PhasePass<"kf-lower"> {
  let summary = "Lower tiled kernels to the target's dialect";
  let description = [{
    The passes of the target: to LLVM for a CPU, to NVVM for an NVIDIA GPU, to
    SPIR-V for Vulkan.
  }];
}

def CompilePhases : PhasePass<"kf-compile"> {
  let summary = "Every phase from kf functions to the target's dialect";
  let description = [{
    `kf-check-input` and the four phases above.
  }];
  let options = [
    Option<"maxTokens", "max-tokens", "int64_t", "512",
           "largest n_tokens of functions without kf.max_tokens">
  ];
}

#endif // KF_PIPELINES_PASSES_TD
