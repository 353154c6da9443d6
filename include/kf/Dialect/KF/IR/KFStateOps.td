//===- KFStateOps.td - Layers that keep a state ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What KFOps.td includes: linear attention, whose layers keep a state of one
// size for a sequence in the place of its keys and values.
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFSTATEOPS_TD
#define KF_DIALECT_KF_IR_KFSTATEOPS_TD

def KF_GatedDeltaOp : KF_Op<"gated_delta", [
    KF_NonEmptyTensors, KF_IntegersInMemory, InferTypeOpAdaptor,
    AllTypesMatch<["q", "k"]>, AllTypesMatch<["a", "b"]>,
    AllTypesMatch<["positions", "sequences"]>,
    DeclareOpInterfaceMethods<KF_LoopOpInterface>, KF_FusionOpInterface,
    KF_LayerOpInterface, KF_WorkOpInterface]> {
  let summary = "gated delta rule, behind a short causal convolution";
  let description = [{
    Linear attention whose memory is a matrix for each head (Yang et al., "Gated
    Delta Networks: Improving Mamba2 with Delta Rule", 2025). Rows of a sequence
    are taken in their order. Of row t, value head h and its key head
    h / (V / K):

    - Each channel of `q`, `k` and `v` becomes silu of the sum of its last `taps`
      rows in the sequence, row t the last, times its row of `convolution`, whose
      rows are those of all of `q`, all of `k` and all of `v`. Rows before the
      sequence's first are zeros.
    - q and k are divided by sqrt(sum of their squares + 1e-6), q by sqrt(dk),
      too.
    - S = exp(-exp(`decay`) * softplus(a + `bias`)) * S, a matrix [dk, dv];
    - S = S + k (sigmoid(b) * (v - S^T k))^T;
    - the result is S^T q.

    All of it is computed in f32. A row at position 0 begins its sequence, with S
    and what the convolution looks back at zeros. Others go on from what slot
    `states[s]` of layer `layer` of the cache holds, s = `sequences[t]`, which
    has the state behind the sequence's last row when the op is over. Rows may
    come in any order, but those of a sequence by their positions, which follow
    one another; whether the state in the cache is that of the position before is
    for the caller to know.

    A sequence or a slot that does not exist is an error of the caller: the
    reference reports it, and compiled code takes another slot of the cache,
    nothing outside of it, or leaves rows of the result as they are.

    In a tiled kernel, `tile` names the one sequence and the one head that are
    computed; rows of other sequences are left as they are.

    - C1: `q` and `k` are [T, K, dk], and `v` is [T, V, dv], of f32, f16 or bf16,
      all but T static; V is a multiple of K.
    - C2: `a` and `b` are [T, V] of a float type.
    - C3: `convolution` is [2 * K * dk + V * dv, 1, taps] of a float type, with 2
      to 16 taps.
    - C4: `decay` and `bias` are [V] of a float type.
    - C5: the cache has V heads of dk * dv + (taps - 1) * (2 * dk + dv) elements.
    - C6: `layer` is in [0, layers of the cache).
    - C7: `positions` and `sequences` are rank 1 tensors of i32 with dim 0 of
      `q`, and `v` and `a` have as many rows.
    - C8: `states` is [S] of i32.
    - C9: the result has the type of `v`, with one head where there is a `tile`,
      which has two entries.

    ```mlir
    %0 = kf.gated_delta %q, %k, %v, %a, %b, %convolution, %decay, %bias, %cache,
        %positions, %sequences, %states {layer = 0 : i64}
        : tensor<?x2x16xf32>, tensor<?x4x16xf32>, tensor<?x4xf32>,
          tensor<128x1x4xbf16>, tensor<4xf32>, tensor<4xf32>,
          !kf.state_cache<layers = 3, heads = 4, elements = 400, slot_pages = 32>,
          tensor<?xi32>, tensor<1xi32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$q, AnyRankedTensor:$k,
                       AnyRankedTensor:$v, AnyRankedTensor:$a,
                       AnyRankedTensor:$b, AnyRankedTensor:$convolution,
                       AnyRankedTensor:$decay, AnyRankedTensor:$bias,
                       Arg<KF_StateCacheType, "", [MemRead, MemWrite]>:$cache,
                       AnyRankedTensor:$positions, AnyRankedTensor:$sequences,
                       AnyRankedTensor:$states, Variadic<Index>:$tile,
                       I64Attr:$layer);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $a `,` $b `,` $convolution `,` $decay `,` $bias `,`
    $cache `,` $positions `,` $sequences `,` $states (`tile` `(` $tile^ `)`)?
    attr-dict `:` type($q) `,` type($v) `,` type($a) `,` type($convolution) `,`
    type($decay) `,` type($bias) `,` type($cache) `,` type($positions) `,`
    type($states)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// K, V, dk and dv.
    int64_t getKeyHeads() { return sizeOf(getQ(), 1); }
    int64_t getValueHeads() { return sizeOf(getV(), 1); }
    int64_t getKeyDim() { return sizeOf(getQ(), 2); }
    int64_t getValueDim() { return sizeOf(getV(), 2); }
    /// Rows that the convolution sums up.
    int64_t getTaps() { return sizeOf(getConvolution(), 2); }
    /// Channels of a value head: 2 * dk + dv.
    int64_t getChannels() { return 2 * getKeyDim() + getValueDim(); }
    /// Of a row and a value head: the state takes a product with a number, two
    /// with a vector, and an outer product that is added to it.
    ElementWork getElementWork() {
      return {getA(), static_cast<uint64_t>(7 * getKeyDim() * getValueDim() +
                                            2 * getTaps() * getChannels())};
    }
    /// Of a sequence, its state, before and after.
    RowBytes getCacheBytes();
    static int64_t sizeOf(::mlir::Value tensor, unsigned dim) {
      return ::llvm::cast<::mlir::RankedTensorType>(tensor.getType())
          .getDimSize(dim);
    }
  }];
}

#endif // KF_DIALECT_KF_IR_KFSTATEOPS_TD
