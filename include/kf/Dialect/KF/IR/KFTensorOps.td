//===- KFTensorOps.td - Ops on tensors of any rank
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What arith, math and tensor lack: moving elements, reducing any dimensions,
// and products and attention of batches.
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFTENSOROPS_TD
#define KF_DIALECT_KF_IR_KFTENSOROPS_TD

//===----------------------------------------------------------------------===//
// Moving elements
//===----------------------------------------------------------------------===//

def KF_TransposeOp : KF_TensorOp<"transpose", [KF_Differentiable]> {
  let summary = "the dimensions of a tensor in another order";
  let description = [{
    Dimension i of the result is dimension `permutation[i]` of `x`. A view: it
    has no memory of its own, and whoever reads it reads `x`.

    - C1: `permutation` holds each dimension of `x` once.
    - C2: the elements of `x` do not lie in blocks.
    - C3: the result has the element type of `x`; a `?` stays in front.

    ```mlir
    %0 = kf.transpose %x permutation = [1, 0] : tensor<3x4xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $x `permutation` `=` $permutation attr-dict `:` type($x)
  }];
  let hasFolder = 1;
}

def KF_BroadcastOp : KF_Op<"broadcast", [Pure, KF_NonEmptyTensors,
                                         KF_Differentiable]> {
  let summary = "repeats a tensor along dimensions of 1 and new leading ones";
  let description = [{
    Dimensions are matched from the last to the first, as NumPy's and ONNX's
    are: one of 1 is repeated, and missing ones in front are as if they were 1.
    A view: it has no memory of its own.

    - C1: the element types are the same, and their elements do not lie in
      blocks.
    - C2: the result has at least as many dimensions as `x`.
    - C3: each dimension of `x` is 1 or that of the result; a `?` is the same
      size of the step.

    ```mlir
    %0 = kf.broadcast %x : tensor<3x1xf32> to tensor<2x3x4xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def KF_IotaOp : KF_Op<"iota", [Pure, KF_NonEmptyTensors]> {
  let summary = "the index of each element along a dimension";
  let description = [{
    `result[i_0, ..., i_n] = i_dim`. It takes no memory.

    - C1: the result is a static tensor of i32 or i64.
    - C2: `dim` is one of its dimensions.

    ```mlir
    %0 = kf.iota dim = 1 : tensor<3x4xi32>
    ```
  }];
  let arguments = (ins I64Attr:$dim);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "`dim` `=` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def KF_CopyOp : KF_LoopOp<"copy", [KF_Differentiable]> {
  let summary = "the same elements in memory of their own";
  let description = [{
    What a view (`kf.transpose`, `tensor.concat`, a slice, ...) shows is
    computed anew by everyone who reads it; a copy of it is computed once.

    - C1: the elements of `x` do not lie in blocks.
    - C2: the result has the type of `x`.

    ```mlir
    %0 = kf.copy %x : tensor<3x4xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

//===----------------------------------------------------------------------===//
// Reductions and products
//===----------------------------------------------------------------------===//

def KF_ReduceOp : KF_LoopOp<"reduce", [KF_Differentiable]> {
  let summary = "sum, prod, max, min or mean over some dimensions";
  let description = [{
    Combines the elements along `dims`, which the result lacks, or with
    `keep_dims` has as 1. f16 and bf16 are summed in f32 and rounded once;
    integers wrap, and compare as signed ones; of i1, `max` is "or" and `min` is
    "and". `max` and `min` of a NaN are NaN.

    - C1: `dims` are dimensions of `x`, in ascending order, at least one.
    - C2: elements are floats (f16, bf16, f32, f64) or integers; `mean` needs
      floats, and of i1 there are `max` and `min` alone.
    - C3: the result has the element type of `x` and its other dimensions.

    ```mlir
    %0 = kf.reduce(sum) %x dims = [0, 2] : tensor<2x3x4xf32>
    %1 = kf.reduce(max) %x dims = [1] keep_dims : tensor<?x3xi32>
    %2 = kf.reduce(sum) %x dims = [0] : tensor<?x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, KF_ReduceKindAttr:$kind,
                       DenseI64ArrayAttr:$dims, UnitAttr:$keep_dims);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    `` custom<ReduceKind>($kind) $x `dims` `=` $dims (`keep_dims` $keep_dims^)?
    attr-dict `:` type($x)
  }];
  let extraClassDeclaration = [{
    OperandReads getOperandReads() { return OperandReads::Elements; }
    ResultChanges getResultChanges() { return ResultChanges::Elements; }
    ElementWork getElementWork() { return {getX(), 1}; }
    /// Whether dimension `dim` of `x` is reduced.
    bool isReduced(int64_t dim) {
      return ::llvm::is_contained(getDims(), dim);
    }
  }];
}

def KF_BatchMatmulOp : KF_LoopOp<"batch_matmul", [KF_Differentiable]> {
  let summary = "products of x with W transposed, one for each batch";
  let description = [{
    `result[b] = x[b] w[b]^T`, accumulated in f32. `kf-expand-tensors` makes it
    of `kf.matmul` on tensors of rank 3 and 4.

    - C1: `x` is [B, M, K] or [B, C, M, K] of f32, f16 or bf16, K static.
    - C2: `w` is of the same rank, [..., N, K], with the batches of `x`, of f32,
      f16 or bf16.
    - C3: the last dimensions of `x` and `w` are equal.
    - C4: the result is [..., M, N] with the element type of `x`.

    ```mlir
    %0 = kf.batch_matmul %x, %w : tensor<2x5x8xf32>, tensor<2x7x8xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$w);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `,` $w attr-dict `:` type($x) `,` type($w)";
  let extraClassDeclaration = [{
    ResultChanges getResultChanges() { return ResultChanges::Elements; }
    ElementWork getElementWork() {
      return {getResult(), 2 * uint64_t(getX().getType().getShape().back())};
    }
  }];
}

/// Attention to keys that are tensors, or gradients of it.
class KF_BatchAttentionOp<string mnemonic, list<Trait> traits = []>
    : KF_LoopOp<mnemonic, !listconcat([KF_BatchAttentionInterface, KF_Expanded],
                                      traits)>;

def KF_ScaledDotProductAttentionOp
    : KF_BatchAttentionOp<"scaled_dot_product_attention",
                          [KF_DifferentiableByParts]> {
  let summary = "attention of queries to keys and values that are tensors";
  let description = [{
    For each batch and head, `softmax(mask(cap(scale * q k^T))) v` over the
    keys (Vaswani et al., 2017). Query head h reads KV head h / (H / G) (grouped
    heads; Ainslie et al., 2023).

    - `scale` is 1 / sqrt(D) where it is absent.
    - `softcap` c makes c * tanh(s / c) of a score s.
    - `mask` of i1 says which keys a query attends to; one of floats is added to
      the scores.
    - With `causal`, query i attends to keys j <= i + `offset`: `offset` keys
      came before the queries'. With `window`, it attends to
      j > i + `offset` - `window` alone.

    A query that attends to no key, as all of its scores are -inf, has zeros.
    Scores are summed and their softmax is computed in f32.
    Where the target has a kernel for it, it is one; else `kf-expand-tensors`
    makes products, a softmax and elementwise ops of it, and the scores,
    [B, H, T, S] of f32, are in memory between them.

    - C1: `q` is [B, H, T, D], or [H, T, D], of f32, f16 or bf16, static.
    - C2: `k` is [B, G, S, D] with the batches of `q`, H a multiple of G, and
      its element type.
    - C3: `v` is [B, G, S, E], of the batches, heads, keys and elements of `k`.
    - C4: `mask`, where present, is i1 or of a float type, and `kf.broadcast`
      would make [B, H, T, S] of it.
    - C5: `scale` is finite, `softcap` and `window` are positive, `window` needs
      `causal`; `window` is at most 2^31, and so is the magnitude of `offset`.
    - C6: the result is [B, H, T, E] of the element type of `q`.

    ```mlir
    %0 = kf.scaled_dot_product_attention %q, %k, %v {causal}
        : tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x16xf32>
    %1 = kf.scaled_dot_product_attention %q, %k, %v mask(%m) {softcap = 30.0 : f32}
        : tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x16xf32>,
          tensor<5x7xi1>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$q, AnyRankedTensor:$k,
                       AnyRankedTensor:$v, Optional<AnyRankedTensor>:$mask,
                       OptionalAttr<F32Attr>:$scale,
                       OptionalAttr<F32Attr>:$softcap,
                       UnitAttr:$causal,
                       DefaultValuedAttr<I64Attr, "0">:$offset,
                       OptionalAttr<I64Attr>:$window);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`mask` `(` $mask^ `)`)? attr-dict
    `:` type($q) `,` type($k) `,` type($v) (`,` type($mask)^)?
  }];
  let extraClassDeclaration = [{
    ElementWork getElementWork();
  }];
}

def KF_RotaryEmbeddingOp : KF_TensorOp<"rotary_embedding",
    [AllTypesMatch<["cos", "sin"]>, KF_Expanded, KF_WorkOpInterface,
     KF_Differentiable]> {
  let summary = "rotary position embedding by tables of cosines and sines";
  let description = [{
    Rotates pairs (a, b) of the first R elements of each row to
    (a cos - b sin, b cos + a sin), R being twice the last dimension of the
    tables (Su et al., "RoFormer", 2021); the others stay. `half` pairs element
    i with i + R / 2, `interleaved` 2i with 2i + 1. `kf.rope` computes its
    tables from positions.

    - C1: `x` has rank 2 or more and f32, f16 or bf16 elements; dimensions but
      the first are static.
    - C2: `cos` and `sin` have one type, of f32, f16 or bf16 elements, and
      `kf.broadcast` would make of them what `x` is without its last dimension,
      with R / 2 behind it.
    - C3: R is at most the last dimension of `x`.
    - C4: the result has the type of `x`.

    ```mlir
    %0 = kf.rotary_embedding %x, %cos, %sin
        : tensor<?x4x64xf32>, tensor<?x1x32xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$cos,
                       AnyRankedTensor:$sin,
                       DefaultValuedAttr<KF_RopeStyleAttr,
                         "::mlir::kf::RopeStyle::Half">:$style);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $x `,` $cos `,` $sin attr-dict `:` type($x) `,` type($cos)
  }];
  let extraClassDeclaration = [{
    ElementWork getElementWork() { return {getResult(), 3}; }
  }];
}

#endif // KF_DIALECT_KF_IR_KFTENSOROPS_TD
