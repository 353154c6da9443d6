//===- KFExpertOps.td - Feed-forward blocks of several experts
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mixture of experts (Shazeer et al., "Outrageously Large Neural Networks",
// 2017): a router chooses a few of many feed-forward blocks for each row, and
// adds up what they give by the weights that it chose them with.
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFEXPERTOPS_TD
#define KF_DIALECT_KF_IR_KFEXPERTOPS_TD

def KF_RouteOp : KF_TensorOp<"route", [AttrSizedOperandSegments,
                                       KF_Expanded]> {
  let summary = "the experts of each row, and how much each counts";
  let description = [{
    The `top` largest logits of each row, in descending order: `experts` are
    their numbers, and `weights` their probabilities by a softmax over all
    logits of the row, or with `normalized` over those that were chosen, which
    is the same divided by its sum. Of equal logits the first one is larger. A
    NaN is as large as -inf, and makes the row's weights NaN, or if `normalized`
    those of a row that chose it. `scales` multiplies the weight of expert e by
    `scales[e]`. `kf-expand-route` makes reductions and elementwise ops of it where
    the target has no kernel for it.

    With `sigmoid`, weights are the sigmoids of logits, each by itself, and if
    `normalized` divided by the sum of those that were chosen, plus 1e-20. A NaN
    makes the weight of its expert alone NaN, or if `normalized` those of a row
    that chose it.

    With `bias`, the experts with the largest sums of weight and `bias[e]` are
    chosen instead, whose weights are as without (Wang et al., "Auxiliary-Loss-
    Free Load Balancing Strategy for Mixture-of-Experts", 2024). With
    `groups(n, m)`, the E experts are n groups of neighbours, and those are
    chosen of the m groups whose two largest sums together are largest
    (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024). Sums of the other
    groups count as -inf: where the m groups have fewer than `top` that are
    larger, the first experts of those that are equal are chosen, of dropped
    groups as well.

    - C1: `logits` is a rank 2 tensor [T, E] of f32, f16 or bf16, E static and at
      most 65536.
    - C2: `top` is between 1 and E.
    - C3: `experts` is [T, top] of i32, `weights` [T, top] of f32.
    - C4: `scales` and `bias`, where present, are [E] of a float type.
    - C5: `bias` needs `sigmoid`, and `groups` needs `bias`; n divides E, groups
      have two experts or more, m is between 1 and n, and m groups have `top`
      experts or more.

    ```mlir
    %experts, %weights = kf.route %logits top(2) normalized : tensor<?x8xf32>
    %e, %w = kf.route %logits top(2) scales(%s : tensor<8xbf16>)
        : tensor<?x8xf32>
    %f, %u = kf.route %logits top(2) sigmoid normalized
        bias(%b : tensor<8xf32>) groups(4, 2) : tensor<?x8xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$logits, Optional<AnyRankedTensor>:$bias,
                       Optional<AnyRankedTensor>:$scales, I64Attr:$top,
                       UnitAttr:$sigmoid, UnitAttr:$normalized,
                       OptionalAttr<I64Attr>:$groups,
                       OptionalAttr<I64Attr>:$kept_groups);
  let results = (outs AnyRankedTensor:$experts, AnyRankedTensor:$weights);
  let assemblyFormat = [{
    $logits `top` `(` $top `)` (`sigmoid` $sigmoid^)?
    (`normalized` $normalized^)? (`bias` `(` $bias^ `:` type($bias) `)`)?
    (`groups` `(` $groups^ `,` $kept_groups `)`)?
    (`scales` `(` $scales^ `:` type($scales) `)`)? attr-dict `:` type($logits)
  }];
  let extraClassDeclaration = [{
    /// C5 of groups.
    ::llvm::LogicalResult verifyGroups();
  }];
}

def KF_ExpertMatmulOp : KF_LoopOp<"expert_matmul",
    [AttrSizedOperandSegments, KF_IntegersInMemory, KF_ProductOpInterface]> {
  let summary = "products of each row with the weights of its experts";
  let description = [{
    `result[t, j] = x[t] W[e]^T + bias[e]`, or of `x[t, j]`, with e being
    `experts[t, j]`, accumulated in f32. With `glu(act)`, each expert has a gate
    and an up matrix: `result[t, j] = act(x[t] W[0, e]^T + bias[0, e]) * (x[t]
    W[1, e]^T + bias[1, e])`, which `clamped` bounds. A number below 0 stands for
    expert 0, one above the last expert's for that.

    With `scales` and `sums`, `x` holds the codes of kf.quantize_rows, and
    stands for codes times scales.

    `rows` is as kf.matmul has it.

    - C1: `x` is [T, K] or [T, k, K] of f32, f16 or bf16, or with `scales`
      [T, K] of i8.
    - C2: `experts` is [T, k] of i32, k static.
    - C3: `w` is [1, E, N, K], or [2, E, N, K] with `glu`, of f32, f16, bf16 or a
      quantized type; rows of blocks are whole blocks. E is at most 65536.
    - C4: the last dimensions of `x` and `w` are equal and static.
    - C5: `bias`, where present, has the shape of `w` without its last dimension
      and float elements.
    - C6: `scales` and `sums` come together. `w` is of a quantized type then,
      `scales` [T, K / 32] of f32, and `sums` [T, K / G] of i32, G being the
      elements of the type's blocks that share a scale.
    - C7: the result is [T, k, N] with the element type of `x`, f32 with
      `scales`.
    - C8: `clamped` is for `glu(silu)`.
    - C9: with `rows`, which is f32 or, where `w` is of a quantized type, i8, `x`
      is [T, K] of f32; the op is in no kernel.

    ```mlir
    %0 = kf.expert_matmul %x experts(%e), %w glu(silu)
        : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x8x704x256xbf16>
    %1 = kf.expert_matmul %0 experts(%e), %d
        : tensor<?x2x704xf32>, tensor<?x2xi32>, tensor<1x8x256x704xbf16>
    %2 = kf.expert_matmul %x experts(%e), %w
        glu(silu) clamped<limit = 7.0, alpha = 1.702>
        : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x8x704x256xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$experts,
                       AnyRankedTensor:$w, Optional<AnyRankedTensor>:$bias,
                       Optional<AnyRankedTensor>:$scales,
                       Optional<AnyRankedTensor>:$sums,
                       OptionalAttr<KF_ActivationKindAttr>:$glu,
                       OptionalAttr<KF_GluClampAttr>:$clamp,
                       OptionalAttr<KF_RowsAttr>:$rows);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $x (`scales` `(` $scales^ `:` type($scales) `)`)?
    (`sums` `(` $sums^ `:` type($sums) `)`)? `experts` `(` $experts `)` `,` $w
    (`bias` `(` $bias^ `)`)? (`glu` `` custom<Activation>($glu)^)?
    (`clamped` `` $clamp^)? (`rows` `` $rows^)? attr-dict
    `:` type($x) `,` type($experts) `,` type($w) (`,` type($bias)^)?
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$experts,
                   "::mlir::Value":$w, "::mlir::Value":$bias,
                   "::mlir::kf::ActivationKindAttr":$glu,
                   CArg<"::mlir::kf::GluClampAttr", "{}">:$clamp), [{
      build($_builder, $_state, x, experts, w, bias, /*scales=*/{}, /*sums=*/{},
            glu, clamp, /*rows=*/{});
    }]>
  ];
  let extraClassDeclaration = [{
    ResultChanges getResultChanges() { return ResultChanges::Elements; }
    /// The weights of as many experts as rows choose, at most: of all, where the
    /// number of rows is not known.
    ::mlir::RankedTensorType getPartRead(::mlir::OpOperand &operand);
    /// Scales of the rows of w: none.
    ::mlir::Value getWeightScales() { return {}; }
    /// How many experts there are.
    int64_t countExperts();
    /// Whether x has a row for each expert of a row.
    bool hasRowForEach();
  }];
}

#endif // KF_DIALECT_KF_IR_KFEXPERTOPS_TD
