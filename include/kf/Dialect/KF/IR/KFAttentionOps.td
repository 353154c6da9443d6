//===- KFAttentionOps.td - Attention and its cache ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What KFOps.td includes: rotated positions, attention to pages of a cache, and
// appends to them.
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFATTENTIONOPS_TD
#define KF_DIALECT_KF_IR_KFATTENTIONOPS_TD

def KF_RopeOp : KF_LoopOp<"rope", [KF_IntegersInMemory, KF_Differentiable]> {
  let summary = "rotary position embedding";
  let description = [{
    Rotates pairs of each head's first `rotary_dim` elements by
    `positions[t] * f_i`, `f_i = theta^(-2i / rotary_dim)` changed by `scaling`
    (Su et al., "RoFormer", 2021). `half` pairs element i with
    i + rotary_dim / 2 (Hugging Face), `interleaved` pairs 2i with 2i + 1.
    Frequencies are rounded to f32, and so is their product with the position.
    Cosines and sines are multiplied by `magnitude`, as YaRN and LongRoPE want
    it, and the elements behind `rotary_dim` are not.

    - C1: `x` is a rank 3 tensor [T, heads, D] of float elements, the last two
      dimensions static.
    - C2: `positions` is a rank 1 tensor of i32 with dim 0 of `x`.
    - C3: `rotary_dim` is even, positive and at most D and 65536.
    - C4: `theta` is positive and finite.
    - C5: the result has the type of `x`.
    - C6: `factors`, where present, is [rotary_dim / 2] of a float type; each
      scaled frequency is divided by its factor.
    - C7: `magnitude`, where present, is positive and finite as f32.

    ```mlir
    %0 = kf.rope %x, %positions {rotary_dim = 64 : i64, theta = 1.0e4 : f64}
        : tensor<?x4x64xf32>, tensor<?xi32>
    %1 = kf.rope %x, %positions factors(%f) {rotary_dim = 64 : i64, theta = 5.0e5 : f64}
        : tensor<?x4x64xf32>, tensor<?xi32>, tensor<32xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$positions,
                       Optional<AnyRankedTensor>:$factors,
                       F64Attr:$theta, I64Attr:$rotary_dim,
                       DefaultValuedAttr<KF_RopeStyleAttr,
                         "::mlir::kf::RopeStyle::Half">:$style,
                       OptionalAttr<KF_RopeScalingAttr>:$scaling,
                       OptionalAttr<F64Attr>:$magnitude);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $x `,` $positions (`factors` `(` $factors^ `)`)? attr-dict `:` type($x) `,`
    type($positions) (`,` type($factors)^)?
  }];
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    bool isCheapToRecompute() { return true; }
    OperandReads getOperandReads() { return OperandReads::NormOfHeads; }
    ResultChanges getResultChanges() { return ResultChanges::Rounding; }
    ResultKind getResultKind() { return ResultKind::Rotation; }
    ElementWork getElementWork() { return {getResult(), 3}; }
    /// The rotary_dim / 2 frequencies in radians per position, after scaling.
    ::llvm::SmallVector<float> getFrequencies();
  }];
}

def KF_AttentionOp : KF_Op<"attention", [AttrSizedOperandSegments,
    KF_NonEmptyTensors, KF_IntegersInMemory, InferTypeOpAdaptor,
    AllTypesMatch<["positions", "sequences"]>, KF_CacheAttentionInterface,
    KF_LayerOpInterface, DeclareOpInterfaceMethods<KF_LoopOpInterface>,
    KF_FusionOpInterface, KF_WorkOpInterface]> {
  let hasVerifier = 1;
  let summary = "causal attention of queries to a layer of the KV cache";
  let description = [{
    Query row t of head h belongs to sequence s = `sequences[t]` and attends to
    that sequence's positions p with `p <= positions[t]` and, with `window`,
    `p > positions[t] - window`, or where it is `chunked`, `p / window ==
    positions[t] / window`: softmax of `scale * q k^T`, then the weighted sum of
    v. `softcap` c makes c * tanh(s / c) of a score s. Position p lies in
    page `page_table[s, p / page]` of the cache. Other positions, pages and
    sequences have no part in it, whatever the cache holds there, and their
    entries of the table may be anything; a row without any position is zeros.

    With `sinks`, the softmax of head h has one more score, `sinks[h]`, whose
    value is zeros, also where it is infinite: a head may attend to nothing
    (Xiao et al., "Efficient Streaming Language Models with Attention Sinks",
    2024; as a learned number, in gpt-oss).

    Rows may come in any order. Those of one sequence that are neighbours, as
    the rows of a step are, share the work.

    Positions past the table's P pages are not attended to. A sequence outside
    [0, S), or an entry of the table outside of the cache's pages, that a row
    with a position wants, is an error of the caller: the reference reports it,
    and compiled code reads another page of the pool instead, nothing outside
    of it.

    Query head h reads KV head h / (heads / kv_heads) (grouped heads; Ainslie et
    al., 2023).

    In a tiled kernel, `kv_head` names the one KV head that all heads of `q`
    read.

    - C1: `q` is a rank 3 tensor [T, heads, D] of float elements, the last two
      dimensions static.
    - C2: D is the cache's head_dim.
    - C3: without `kv_head`, heads is a multiple of the cache's kv_heads.
    - C4: `positions` is a rank 1 tensor of i32 with dim 0 of `q`.
    - C5: `layer` is in [0, layers of the cache).
    - C6: `window` and `softcap`, where present, are positive, and `softcap` is
      finite; `chunked` needs `window`.
    - C7: the result has the type of `q`.
    - C8: `sequences` has the type of `positions`.
    - C9: `page_table` is [S, P] of i32, P static.
    - C10: `sinks`, where present, is [heads] of a float type.

    ```mlir
    %0 = kf.attention %q, %cache, %positions, %sequences, %page_table
        {layer = 3 : i64, scale = 0.125 : f32}
        : tensor<?x4x64xf32>,
          !kf.kv_cache<layers = 8, kv_heads = 2, head_dim = 64, type = f32>,
          tensor<?xi32>, tensor<1x32xi32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$q,
                       Arg<KF_KVCacheType, "", [MemRead]>:$cache,
                       AnyRankedTensor:$positions, AnyRankedTensor:$sequences,
                       AnyRankedTensor:$page_table,
                       Optional<AnyRankedTensor>:$sinks,
                       // The last operand: tiling adds it.
                       Optional<Index>:$kv_head,
                       I64Attr:$layer, F32Attr:$scale,
                       OptionalAttr<I64Attr>:$window, UnitAttr:$chunked,
                       OptionalAttr<F32Attr>:$softcap);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $q `,` $cache `,` $positions `,` $sequences `,` $page_table
    (`sinks` `(` $sinks^ `:` type($sinks) `)`)?
    (`kv_head` `(` $kv_head^ `)`)? attr-dict
    `:` type($q) `,` type($cache) `,` type($positions) `,` type($page_table)
  }];
  let extraClassDeclaration = [{
    OperandReads getOperandReads() { return OperandReads::Heads; }
    ResultChanges getResultChanges() { return ResultChanges::RoundingAtTheEnd; }
  }];
}

def KF_AttentionPartialOp : KF_Op<"attention_partial", [
    KF_NonEmptyTensors, KF_IntegersInMemory, InferTypeOpAdaptor,
    AllTypesMatch<["positions", "sequences"]>, KF_CacheAttentionInterface,
    KF_LayerOpInterface, DeclareOpInterfaceMethods<KF_LoopOpInterface>,
    KF_FusionOpInterface, KF_WorkOpInterface]> {
  let hasVerifier = 1;
  let summary = "kf.attention over parts of the keys";
  let description = [{
    What kf.attention_combine makes kf.attention's result of, computed apart
    for each of `splits` parts of the keys that a row sees. The pages that hold
    them, n of them, are divided evenly: the first part has the keys of the
    first ceil(n / splits) pages, and so on; the last ones may have none. So
    what a row's parts are depends on its own position alone.

    Of the scores of each part's keys, `maxima` are the largest ones (the lowest
    float, where all scores are -inf, so that differences are no NaN), `totals`
    the sums of exp(score - maximum), and `values` the sums of
    exp(score - maximum) times v. A part without keys has -inf, 0 and zeros.

    In a tiled kernel, `tile` names the one KV head that all heads of `q` read,
    and the one part that is computed.

    - C1: `q` is a rank 3 tensor [T, heads, D] of float elements, the last two
      dimensions static.
    - C2: D is the cache's head_dim.
    - C3: without `tile`, heads is a multiple of the cache's kv_heads.
    - C4: `positions` is a rank 1 tensor of i32 with dim 0 of `q`.
    - C5: `layer` is in [0, layers of the cache).
    - C6: `window` and `softcap`, where present, are positive, and `softcap` is
      finite; `chunked` needs `window`.
    - C7: `maxima` and `totals` are [T, heads, splits], and `values` is
      [T, heads, splits, D], of f32; with `tile`, one split is.
    - C8: `sequences` has the type of `positions`.
    - C9: `page_table` is [S, P] of i32, P static.
    - C10: `splits` is in [1, 65536]; `tile`, where present, has two entries.

    ```mlir
    %m, %t, %v = kf.attention_partial %q, %cache, %positions, %sequences,
        %page_table splits(4) {layer = 3 : i64, scale = 0.125 : f32}
        : tensor<?x4x64xf32>,
          !kf.kv_cache<layers = 8, kv_heads = 2, head_dim = 64, type = f32>,
          tensor<?xi32>, tensor<1x32xi32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$q,
                       Arg<KF_KVCacheType, "", [MemRead]>:$cache,
                       AnyRankedTensor:$positions, AnyRankedTensor:$sequences,
                       AnyRankedTensor:$page_table, Variadic<Index>:$tile,
                       I64Attr:$splits, I64Attr:$layer, F32Attr:$scale,
                       OptionalAttr<I64Attr>:$window, UnitAttr:$chunked,
                       OptionalAttr<F32Attr>:$softcap);
  let results = (outs AnyRankedTensor:$maxima, AnyRankedTensor:$totals,
                      AnyRankedTensor:$values);
  let assemblyFormat = [{
    $q `,` $cache `,` $positions `,` $sequences `,` $page_table
    `splits` `(` $splits `)` (`tile` `(` $tile^ `)`)? attr-dict
    `:` type($q) `,` type($cache) `,` type($positions) `,` type($page_table)
  }];
  let extraClassDeclaration = [{
    OperandReads getOperandReads() { return OperandReads::Heads; }
    /// Scores of no key: none, for kf.attention_combine has them.
    ::mlir::Value getSinks() { return {}; }
    /// The KV head of all heads of a tile; null outside of one.
    ::mlir::Value getKvHead() {
      return getTile().empty() ? ::mlir::Value() : getTile().front();
    }
    /// The part of a tile; null outside of one.
    ::mlir::Value getSplit() {
      return getTile().empty() ? ::mlir::Value() : getTile().back();
    }
  }];
}

def KF_AttentionCombineOp : KF_LoopOp<"attention_combine",
    [AllTypesMatch<["maxima", "totals"]>]> {
  let summary = "kf.attention's result from parts of it";
  let description = [{
    With m the largest of a row's `maxima`, and w_s = exp(maxima[s] - m):
    the sum of w_s * values[s], divided by that of w_s * totals[s]; zeros where
    m is -inf, as no part has keys. `sinks` adds exp(sinks[h] - m) to the
    divisor of head h.

    - C1: `values` is [T, heads, splits, D] of f32, all but T static.
    - C2: `maxima` and `totals` are [T, heads, splits] of f32.
    - C3: the result is [T, heads, D] of f32.
    - C4: `sinks`, where present, is [heads] of a float type.

    ```mlir
    %0 = kf.attention_combine %m, %t, %v
        : tensor<?x4x8xf32>, tensor<?x4x8x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$maxima, AnyRankedTensor:$totals,
                       AnyRankedTensor:$values,
                       Optional<AnyRankedTensor>:$sinks);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $maxima `,` $totals `,` $values (`sinks` `(` $sinks^ `:` type($sinks) `)`)?
    attr-dict `:` type($maxima) `,` type($values)
  }];
  let extraClassDeclaration = [{
    ResultChanges getResultChanges() { return ResultChanges::RoundingAtTheEnd; }
    ElementWork getElementWork() { return {getValues(), 2}; }
  }];
}

def KF_KVAppendOp : KF_Op<"kv_append", [
    KF_NonEmptyTensors, KF_IntegersInMemory, AllTypesMatch<["k", "v"]>,
    AllTypesMatch<["positions", "sequences"]>,
    DeclareOpInterfaceMethods<KF_LoopOpInterface>, KF_FusionOpInterface,
    KF_LayerOpInterface, KF_WorkOpInterface]> {
  let summary = "writes keys and values into a layer of the KV cache";
  let description = [{
    Stores row t of `k` and `v` at position p = `positions[t]` of sequence
    s = `sequences[t]`, which lies in page `page_table[s, p / page]` of the
    cache. Rows whose position is negative or past the table's P pages are not
    stored. Nor are those with a sequence outside [0, S) or whose page is not
    one of the cache's, which is an error of the caller that the reference
    reports.

    What another sequence, or the same one through a second entry of the table,
    sees in this step of a page that a row is stored in is not defined.

    In a tiled kernel, `kv_head` names the one KV head that `k` and `v` are of.

    - C1: `k` and `v` are rank 3 tensors of one type, [T, kv_heads, D], with the
      cache's kv_heads, or 1 with `kv_head`, and head_dim.
    - C2: `positions` is a rank 1 tensor of i32 with dim 0 of `k`.
    - C3: `layer` is in [0, layers of the cache).
    - C4: `sequences` has the type of `positions`.
    - C5: `page_table` is [S, P] of i32, P static.

    ```mlir
    kf.kv_append %cache, %k, %v, %positions, %sequences, %page_table
        {layer = 3 : i64}
        : !kf.kv_cache<layers = 8, kv_heads = 2, head_dim = 64, type = f32>,
          tensor<?x2x64xf32>, tensor<?xi32>, tensor<1x32xi32>
    ```
  }];
  let arguments = (ins Arg<KF_KVCacheType, "", [MemRead, MemWrite]>:$cache,
                       AnyRankedTensor:$k, AnyRankedTensor:$v,
                       AnyRankedTensor:$positions, AnyRankedTensor:$sequences,
                       AnyRankedTensor:$page_table, Optional<Index>:$kv_head,
                       I64Attr:$layer);
  let assemblyFormat = [{
    $cache `,` $k `,` $v `,` $positions `,` $sequences `,` $page_table
    (`kv_head` `(` $kv_head^ `)`)? attr-dict
    `:` type($cache) `,` type($k) `,` type($positions) `,` type($page_table)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    OperandReads getOperandReads() { return OperandReads::Heads; }
    RowBytes getCacheBytes();
  }];
}

#endif // KF_DIALECT_KF_IR_KFATTENTIONOPS_TD
