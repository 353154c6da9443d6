//===- KFCollectiveOps.td - Ops of all ranks of a module
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFCOLLECTIVEOPS_TD
#define KF_DIALECT_KF_IR_KFCOLLECTIVEOPS_TD

def KF_AllReduceOp : KF_TensorOp<"all_reduce", [KF_DispatchInterface]> {
  let summary = "sum over all ranks";
  let description = [{
    `result = x_0 + x_1 + ... + x_{n-1}`, where `x_r` is what rank r has for `x`.
    Sums are in f32, in whatever order, and rounded once; all ranks have the
    same bits.

    No kernel computes it: a program holds it beside its `kf.dispatch`es, all
    ranks run the same ones in the same order, and each waits for the others.

    - C1: `x` has rank 1 or more and elements of f32, f16 or bf16, in their
      order: no encoding of weights.
    - C2: the result has the type of `x`.
    - C3: the module has `kf.ranks`.
    - C4: it does not stand in a `kf.kernel`.
    - C5: `offsets`, where present, is that of a `kf.dispatch`.

    ```mlir
    %0 = kf.all_reduce %x : tensor<?x4096xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x,
                       OptionalAttr<DenseI64ArrayAttr>:$offsets);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def KF_AllGatherOp : KF_Op<"all_gather", [Pure, KF_NonEmptyTensors,
                                          KF_DispatchInterface]> {
  let summary = "the columns of all ranks, side by side";
  let description = [{
    `result[i, r C + j] = x_r[i, j]`, where `x_r`, [T, C], is what rank r has
    for `x`; of the last rank's columns, those past the end of the result are
    dropped. A program holds it as it does `kf.all_reduce`.

    - C1: `x` is [T, C] of f32, f16 or bf16, C static, without an encoding of
      weights.
    - C2: the result is [T, D] with the rows and the elements of `x`, D static.
    - C3: the module has `kf.ranks` = n, and (n - 1) C < D <= n C: every rank
      has columns of the result.
    - C4: it does not stand in a `kf.kernel`.
    - C5: `offsets`, where present, is that of a `kf.dispatch`.

    ```mlir
    %0 = kf.all_gather %x : tensor<?x739xf32> to tensor<?x1477xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x,
                       OptionalAttr<DenseI64ArrayAttr>:$offsets);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `to` type($result)";
  let hasVerifier = 1;
}

def KF_SendOp : KF_Op<"send", [KF_NonEmptyTensors, KF_DispatchInterface,
                               MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "hands rows on to the next rank";
  let description = [{
    Rank r + 1, or rank 0 where r is the last one, gets `x` of rank r as the
    result of the `kf.receive` that it comes to next: what a rank sends arrives
    in the order in which it was sent. A program holds it as it does
    `kf.all_reduce`, but ranks may run different programs, where each has a
    stage of a model: nothing but what is received is waited for.

    - C1: `x` is [T, C] of f32, f16 or bf16, C static, without an encoding of
      weights.
    - C2: `offsets`, where present, is empty: there is no result.
    - C3: the module has `kf.ranks`.
    - C4: it does not stand in a `kf.kernel`.

    ```mlir
    kf.send %x : tensor<?x4096xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x,
                       OptionalAttr<DenseI64ArrayAttr>:$offsets);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def KF_ReceiveOp : KF_Op<"receive", [KF_NonEmptyTensors, KF_DispatchInterface,
                                     MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "what the rank before has sent";
  let description = [{
    The result is `x` of a `kf.send` of rank r - 1, or of the last rank where r
    is 0: of the first one whose rows were not received yet. It has to have as
    many rows and columns, of the same type; what else was sent is an error.

    - C1: the result is [T, C] of f32, f16 or bf16, C static, without an
      encoding of weights.
    - C2: `offsets`, where present, is that of a `kf.dispatch`.
    - C3: the module has `kf.ranks`.
    - C4: it does not stand in a `kf.kernel`.

    ```mlir
    %0 = kf.receive : tensor<?x4096xf32>
    ```
  }];
  let arguments = (ins OptionalAttr<DenseI64ArrayAttr>:$offsets);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // KF_DIALECT_KF_IR_KFCOLLECTIVEOPS_TD
