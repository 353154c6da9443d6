//===- KFDialect.td - The kf dialect
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFDIALECT_TD
#define KF_DIALECT_KF_IR_KFDIALECT_TD

include "mlir/IR/OpBase.td"

/// Kernels of the op read integers (ids, positions) from memory, not as elements
/// that others compute.
def KF_IntegersInMemory : NativeOpTrait<"IntegersInMemory"> {
  let cppNamespace = "::mlir::kf";
}

/// Other ops stand for the op before kernels are formed (kf-expand-mlp,
/// kf-expand-route, kf-expand-tensors); the reference alone computes it.
def KF_Expanded : NativeOpTrait<"Expanded"> {
  let cppNamespace = "::mlir::kf";
}

/// No tensor among the operands and results has a dimension of size 0.
def KF_NonEmptyTensors : NativeOpTrait<"NonEmptyTensors"> {
  let cppNamespace = "::mlir::kf";
}

def KF_Dialect : Dialect {
  let name = "kf";
  let cppNamespace = "::mlir::kf";
  let summary = "Transformer inference: ops, kernels and programs";
  let description = [{
    The dialect describes one step of a transformer decoder in three forms.

    1. *Tensor ops* (`kf.matmul`, `kf.rms_norm`, `kf.attention`, ...) have value
       semantics. The KV cache is the exception: a reference with memory
       effects. A `?` may stand only as the leading dimension of a tensor. It is
       the number of the step's tokens (`n_tokens`), or the size that the
       tensor's `#kf.size` names, and the same everywhere. No static dimension
       is 0.
    2. *Kernels* (`kf.kernel`) are clusters of tensor ops that one launch
       computes. A kernel carries its schedule; passes obey it.
    3. *Programs* (`kf.program`) are straight lists of `kf.dispatch`, which the
       runtime replays.

    A module says what it is compiled for in `kf.target`, which the passes ask
    wherever targets differ.

    Several devices can run a model together, each a *rank* with its part of the
    weights. All have the same module, which says in `kf.ranks` how many they
    are (an i64 from 2 on), and meet in the *collectives* `kf.all_reduce` and
    `kf.all_gather`; or each has a stage of the model, a module of its own, and
    hands rows on to the next by `kf.send` and `kf.receive`.

    Constraints of an op are numbered C1, C2, ...; the verifier's messages and
    the tests cite them.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
  let hasOperationAttrVerify = 1;
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

#endif // KF_DIALECT_KF_IR_KFDIALECT_TD
