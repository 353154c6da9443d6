//===- KFTrainingOps.td - Losses, and what gradients are made of ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What training needs and running a model does not: a loss, dropout, and the
// products and sums that gradients of weights and tables are.
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFTRAININGOPS_TD
#define KF_DIALECT_KF_IR_KFTRAININGOPS_TD

def KF_CrossEntropyOp : KF_TensorOp<"cross_entropy", [KF_Expanded,
                                                       KF_Differentiable]> {
  let summary = "negative log-likelihood of a label for each row of logits";
  let description = [{
    `result[t] = log(sum_v exp(logits[t, v])) - logits[t, labels[t]]`, in f32. A
    label that is no column, such as the -100 of tokens that do not count, gives
    0. What mean is wanted, of all rows or of those that count, is a `kf.reduce`
    of it. `kf-expand-tensors` makes reductions and elementwise ops of it.

    - C1: `logits` is a rank 2 tensor [T, V] of f32, f16 or bf16, V static and
      below 2^31.
    - C2: `labels` is a rank 1 tensor of i32 with dim 0 of `logits`.
    - C3: the result is [T] of f32.

    ```mlir
    %0 = kf.cross_entropy %logits, %labels : tensor<?x1477xf32>, tensor<?xi32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$logits, AnyRankedTensor:$labels);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $logits `,` $labels attr-dict `:` type($logits) `,` type($labels)
  }];
}

def KF_DropoutOp : KF_TensorOp<"dropout", [KF_Expanded, KF_Differentiable]> {
  let summary = "leaves elements out at random, and scales the others up";
  let description = [{
    `result[t, d]` is 0 with probability p, and else `x[t, d] / (1 - p)`
    (Srivastava et al., "Dropout", 2014). Which it is follows from the element's
    place and from `draw`, four words `{a, b, low, high}`: it is 0 where the first
    word of `kf.philox` for the counter `{d, t, a, b}` and the key `{low, high}`
    is below p * 2^32, rounded to an integer, as numbers without sign. So a
    backward pass, or one that goes on from a checkpoint, leaves out the same
    elements, in whichever order and on whichever device they are computed.
    `kf-expand-tensors` makes elementwise ops of it.

    - C1: `x` is a static rank 2 tensor of f32, f16 or bf16, with less than 2^31
      rows and columns.
    - C2: `draw` is a tensor<4xi32>.
    - C3: `p` is from 0 to below 1.
    - C4: the result has the type of `x`.

    ```mlir
    %0 = kf.dropout %x, %draw {p = 0.1 : f32} : tensor<512x256xf32>, tensor<4xi32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, RankedTensorOf<[I32]>:$draw, F32Attr:$p);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `,` $draw attr-dict `:` type($x) `,` type($draw)";
  let extraClassDeclaration = [{
    bool isCheapToRecompute() { return true; }
  }];
}

def KF_PhiloxOp : KF_Op<"philox", [Pure, KF_NonEmptyTensors,
    SameOperandsAndResultType, DeclareOpInterfaceMethods<KF_LoopOpInterface>,
    KF_FusionOpInterface, KF_WorkOpInterface]> {
  let summary = "random bits that follow from a counter and a key";
  let description = [{
    Of each element the first word of Philox4x32-10 (Salmon, Moraes, Dror and
    Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011) for the counter
    `{c0, c1, c2, c3}` and the key `{k0, k1}`.

    - C1: all are tensors of i32 of one type.

    ```mlir
    %0 = kf.philox %c0, %c1, %c2, %c3 key %k0, %k1 : tensor<512x256xi32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[I32]>:$c0, RankedTensorOf<[I32]>:$c1,
                       RankedTensorOf<[I32]>:$c2, RankedTensorOf<[I32]>:$c3,
                       RankedTensorOf<[I32]>:$k0, RankedTensorOf<[I32]>:$k1);
  let results = (outs RankedTensorOf<[I32]>:$result);
  let assemblyFormat = [{
    $c0 `,` $c1 `,` $c2 `,` $c3 `key` $k0 `,` $k1 attr-dict `:` type($result)
  }];
  let extraClassDeclaration = [{
    ElementWork getElementWork() { return {getResult(), 60}; }
  }];
}

def KF_ScatterAddOp : KF_Op<"scatter_add", [Pure, KF_NonEmptyTensors,
    KF_IntegersInMemory, DeclareOpInterfaceMethods<KF_LoopOpInterface>,
    KF_FusionOpInterface, KF_WorkOpInterface]> {
  let summary = "sums of the rows that have the same id";
  let description = [{
    `result[v, :]` is the sum of the `rows[t, :]` with `ids[t] = v`, in the order
    of t, and zeros where there are none. Rows whose id is no row of the result
    are left out. It is the gradient of kf.embedding for its table.

    - C1: `ids` is a rank 1 tensor of i32.
    - C2: `rows` is [dim(ids, 0), D] of f32, f16 or bf16, D static.
    - C3: the result is a static tensor [V, D] of f32.

    ```mlir
    %0 = kf.scatter_add %ids, %rows : tensor<?xi32>, tensor<?x256xf32>
        to tensor<1477x256xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$ids, AnyRankedTensor:$rows);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $ids `,` $rows attr-dict `:` type($ids) `,` type($rows) `to` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ElementWork getElementWork() { return {getRows(), 1}; }
  }];
}

def KF_MatmulDgradOp : KF_TensorOp<"matmul_dgrad", [KF_Expanded]> {
  let summary = "dy times W: the gradient of kf.matmul for its rows";
  let description = [{
    `result = dy W`, accumulated in f32, where kf.matmul has `y = x W^T`.
    `kf-expand-tensors` makes a `kf.matmul` with the transposed weight of it.

    - C1: `dy` is a rank 2 tensor [M, N] of f32, f16 or bf16, N static.
    - C2: `w` is [N, K] of f32, f16, bf16 or a quantized type, static; rows of
      blocks are whole blocks.
    - C3: the result is [M, K] with the element type of `dy`.

    ```mlir
    %0 = kf.matmul_dgrad %dy, %w
        : tensor<?x768xf32>, tensor<768x256x!kf.quant<q4_0>>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$dy, AnyRankedTensor:$w);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$dy `,` $w attr-dict `:` type($dy) `,` type($w)";
}

def KF_MatmulWgradOp : KF_LoopOp<"matmul_wgrad"> {
  let summary = "dy transposed times x: the gradient of kf.matmul for its weight";
  let description = [{
    `result[n, k]` is the sum of `dy[m, n] * x[m, k]` over all rows m, in f32,
    where kf.matmul has `y = x W^T`. The number of rows may be a size of the
    step.

    - C1: `dy` is a rank 2 tensor [M, N] of f32, f16 or bf16, N static.
    - C2: `x` is [M, K] with the rows of `dy`, of f32, f16 or bf16, K static.
    - C3: the result is [N, K] of f32.

    ```mlir
    %0 = kf.matmul_wgrad %dy, %x : tensor<?x768xf32>, tensor<?x256xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$dy, AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$dy `,` $x attr-dict `:` type($dy) `,` type($x)";
  let extraClassDeclaration = [{
    ElementWork getElementWork() {
      return {getX(), 2 * uint64_t(getDy().getType().getShape().back())};
    }
  }];
}

def KF_AttentionQgradOp : KF_BatchAttentionOp<"attention_qgrad"> {
  let summary = "the gradient of attention for its queries";
  let description = [{
    Where kf.scaled_dot_product_attention has `y = p v` of the weights
    `p = softmax(s)` of scores `s`, with the gradient `dy` of y:
    `dp = dy v^T`, `delta = sum of each row's p dp`, and `dq = scale ds k` of
    `ds = p (dp - delta)` (with `softcap` c, ds times 1 - (s / c)^2). Weights are
    computed again (Dao et al., "FlashAttention", 2022). For
    kf.attention_kvgrad it gives what a row's weights are made of, too: the
    logarithm of the sum of exp(s), and delta. A query that attends to no key has
    0 in all three. Where the target has no kernel for it, `kf-expand-tensors`
    makes products, a softmax and elementwise ops of it.

    - C1 to C5: as of kf.scaled_dot_product_attention.
    - C6: `dy` is [B, H, T, E] of f32, f16 or bf16.
    - C7: the results are f32, [B, H, T, D], and twice [B, H, T].

    ```mlir
    %dq, %lse, %delta = kf.attention_qgrad %q, %k, %v, %dy {causal}
        : tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x16xf32>,
          tensor<2x4x5x16xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$q, AnyRankedTensor:$k,
                       AnyRankedTensor:$v, AnyRankedTensor:$dy,
                       Optional<AnyRankedTensor>:$mask,
                       OptionalAttr<F32Attr>:$scale,
                       OptionalAttr<F32Attr>:$softcap,
                       UnitAttr:$causal,
                       DefaultValuedAttr<I64Attr, "0">:$offset,
                       OptionalAttr<I64Attr>:$window);
  let results = (outs AnyRankedTensor:$dq, AnyRankedTensor:$lse,
                      AnyRankedTensor:$delta);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $dy (`mask` `(` $mask^ `)`)? attr-dict
    `:` type($q) `,` type($k) `,` type($v) `,` type($dy) (`,` type($mask)^)?
  }];
  let extraClassDeclaration = [{
    ElementWork getElementWork();
  }];
}

def KF_AttentionKvgradOp
    : KF_BatchAttentionOp<"attention_kvgrad",
                          [AllTypesMatch<["lse", "delta"]>]> {
  let summary = "the gradients of attention for its keys and values";
  let description = [{
    `dk = scale ds^T q` and `dv = p^T dy`, summed over the query heads that read a
    KV head, with what kf.attention_qgrad says, of which `lse` and `delta` are
    results.

    - C1 to C6: as of kf.attention_qgrad.
    - C7: `lse` and `delta` are f32, [B, H, T].
    - C8: the results are f32, of the shapes of `k` and `v`.

    ```mlir
    %dk, %dv = kf.attention_kvgrad %q, %k, %v, %dy, %lse, %delta {causal}
        : tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x16xf32>,
          tensor<2x4x5x16xf32>, tensor<2x4x5xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$q, AnyRankedTensor:$k,
                       AnyRankedTensor:$v, AnyRankedTensor:$dy,
                       AnyRankedTensor:$lse, AnyRankedTensor:$delta,
                       Optional<AnyRankedTensor>:$mask,
                       OptionalAttr<F32Attr>:$scale,
                       OptionalAttr<F32Attr>:$softcap,
                       UnitAttr:$causal,
                       DefaultValuedAttr<I64Attr, "0">:$offset,
                       OptionalAttr<I64Attr>:$window);
  let results = (outs AnyRankedTensor:$dk, AnyRankedTensor:$dv);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $dy `,` $lse `,` $delta (`mask` `(` $mask^ `)`)?
    attr-dict `:` type($q) `,` type($k) `,` type($v) `,` type($dy) `,`
    type($lse) (`,` type($mask)^)?
  }];
  let extraClassDeclaration = [{
    ElementWork getElementWork();
  }];
}

#endif // KF_DIALECT_KF_IR_KFTRAININGOPS_TD
