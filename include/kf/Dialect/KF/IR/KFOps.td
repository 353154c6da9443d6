//===- KFOps.td - Tensor ops of the kf dialect
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFOPS_TD
#define KF_DIALECT_KF_IR_KFOPS_TD

include "kf/Dialect/KF/IR/KFSchedules.td"
include "kf/Dialect/KF/IR/KFTargets.td"
include "kf/Dialect/KF/IR/KFTypes.td"
include "kf/Dialect/KF/IR/KFInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class KF_Op<string mnemonic, list<Trait> traits = []>
    : Op<KF_Dialect, mnemonic, traits>;

/// An op without side effects whose result types follow from its operands.
class KF_TensorOp<string mnemonic, list<Trait> traits = []>
    : KF_Op<mnemonic, !listconcat([Pure, KF_NonEmptyTensors,
                               InferTypeOpAdaptor], traits)> {
  let hasVerifier = 1;
}

/// A tensor op that a loop nest computes and that can be tiled.
class KF_LoopOp<string mnemonic, list<Trait> traits = []>
    : KF_TensorOp<mnemonic, !listconcat(
        [DeclareOpInterfaceMethods<KF_LoopOpInterface>, KF_FusionOpInterface,
         KF_WorkOpInterface], traits)>;

/// The trait of an op that says its own derivative.
def KF_Differentiable
    : DeclareOpInterfaceMethods<KF_DifferentiableOpInterface>;
/// The same of one that is made of others first.
def KF_DifferentiableByParts
    : DeclareOpInterfaceMethods<KF_DifferentiableOpInterface,
                                ["expandForGradients"]>;

/// One that reduces rows and then computes each of their elements, with so many
/// operations for one of the result.
class KF_RowOp<string mnemonic, int operations, string kind = "Other">
    : KF_LoopOp<mnemonic, [KF_Differentiable]> {
  let extraClassDeclaration = [{
    bool isCheapToRecompute() { return true; }
    OperandReads getOperandReads() { return OperandReads::Elements; }
    ResultChanges getResultChanges() { return ResultChanges::Elements; }
    ElementWork getElementWork() { return {getResult(), }] # operations # [{}; }
    ResultKind getResultKind() { return ResultKind::}] # kind # [{; }
  }];
}

//===----------------------------------------------------------------------===//
// Lookup
//===----------------------------------------------------------------------===//

def KF_EmbeddingOp : KF_LoopOp<"embedding", [KF_IntegersInMemory,
                                            KF_Differentiable]> {
  let summary = "rows of a table";
  let description = [{
    `result[i, :] = table[ids[i], :]`, widened to f32. An id outside the table
    gives a row of zeros. With a table of as many rows as a step has tokens, it
    picks some of them.

    - C1: `ids` is a rank 1 tensor of i32.
    - C2: `table` is a rank 2 tensor of f32, f16, bf16 or a quantized type with
      static columns; rows of blocks are whole blocks.
    - C3: the result has shape [dim(ids, 0), dim(table, 1)] and type f32.

    ```mlir
    %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<1477x256xbf16>
    %1 = kf.embedding %wanted, %x
        : tensor<?xi32, #kf.size<wanted>>, tensor<?x256xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$ids, AnyRankedTensor:$table);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$ids `,` $table attr-dict `:` type($ids) `,` type($table)";
  let extraClassDeclaration = [{
    bool isCheapToRecompute() { return true; }
    ResultKind getResultKind() { return ResultKind::Lookup; }
    /// Of the table, the rows that are taken.
    ::mlir::RankedTensorType getPartRead(::mlir::OpOperand &operand);
  }];
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

def KF_MatmulOp : KF_LoopOp<"matmul",
    [AttrSizedOperandSegments, KF_IntegersInMemory, KF_ProductOpInterface,
     KF_DifferentiableByParts]> {
  let summary = "x times W transposed, optionally with bias and gating";
  let description = [{
    `result = x W^T + bias`, accumulated in f32. With `glu(act)`, W holds a gate
    and an up matrix, and `result = act(x W[0]^T + bias[0]) * (x W[1]^T +
    bias[1])`.

    With `scales` and `sums`, `x` holds the codes of kf.quantize_rows, and
    stands for codes times scales. With `wide`, the sums of rounded rows are not
    rounded themselves.

    With `weight_scales`, each row of W stands for its elements times its scale;
    sums are scaled before the bias is added.

    With `outliers`, `x` holds the rounded elements of kf.round_half: an infinite
    one stands for what `outliers` has in its place.

    `rows` is what the kernel of the op is to read `x` in: `kf-select-rows` asks
    the target where it is absent, and `kf-round-rows` rounds `x` to it, and
    takes it away.

    With `x` of rank 3 or 4, there is a product for each of its batches, its
    dimensions but the last two: all of them with `w` where it is a matrix, else
    each with its own. `kf-expand-tensors` makes `kf.matmul` on matrices and
    `kf.batch_matmul` of it.

    - C1: `x` is a tensor [..., M, K] of rank 2 to 4 of f32, f16 or bf16, or
      with `scales` of rank 2 and i8.
    - C2: `w` is [N, K], or [2, N, K] with `glu`, of f32, f16, bf16, f8E4M3FN or
      a quantized type; rows of blocks are whole blocks. Without `glu`, it may be
      [..., N, K] of the rank of `x`, of f32, f16 or bf16: each batch dimension
      is that of `x` or 1.
    - C3: the last dimensions of `x` and `w` are equal and static.
    - C4: `bias`, where present, is [N], or [2, N] with `glu`, of a float type;
      `w` has no batches then.
    - C5: the result is [..., M, N] with the element type of `x`, f32 with
      `scales` or `wide`.
    - C6: `scales` and `sums` come together. `w` is of a quantized type then,
      `scales` [M, K / 32] of f32, and `sums` [M, K / G] of i32, G being the
      elements of the type's blocks that share a scale.
    - C7: with `wide`, `x` is of rank 2 and of f16 or bf16.
    - C8: with `w` of f8E4M3FN, `x` is of rank 2; `weight_scales` is for no other
      `w`, and has the shape of `w` without its last dimension, of f32.
    - C9: with `outliers`, `x` is of rank 2 and of f16, with `wide`; `outliers`
      has its shape, of f32.
    - C10: with `rows`, `x` is of f32 and, as `w`, has no batches; the op is in no
      kernel, which reads what it is given. `rows<i8>` is for `w` of a quantized
      type.

    ```mlir
    %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<768x256xbf16>
    %1 = kf.matmul %x, %w bias(%b) : tensor<?x64xf32>, tensor<96x64xf32>, tensor<96xf32>
    %2 = kf.matmul %x, %gu glu(silu) : tensor<?x256xf32>, tensor<2x704x256xbf16>
    %3 = kf.matmul %q, %k : tensor<2x4x5x8xf32>, tensor<2x1x7x8xf32>
    %4 = kf.matmul %codes scales(%s : tensor<?x8xf32>) sums(%t : tensor<?x8xi32>),
        %q : tensor<?x256xi8>, tensor<768x256x!kf.quant<q4_0>>
    %5 = kf.matmul %rounded, %w wide : tensor<?x256xbf16>, tensor<768x256xbf16>
    %6 = kf.matmul %x, %f weight_scales(%s : tensor<768xf32>)
        : tensor<?x256xf32>, tensor<768x256xf8E4M3FN>
    %7 = kf.matmul %half outliers(%o : tensor<?x256xf32>), %h wide
        : tensor<?x256xf16>, tensor<768x256xf16>
    %8 = kf.matmul %x, %w rows<bf16> : tensor<?x256xf32>, tensor<768x256xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$w,
                       Optional<AnyRankedTensor>:$bias,
                       Optional<AnyRankedTensor>:$scales,
                       Optional<AnyRankedTensor>:$sums,
                       Optional<AnyRankedTensor>:$weight_scales,
                       Optional<AnyRankedTensor>:$outliers,
                       OptionalAttr<KF_ActivationKindAttr>:$glu,
                       UnitAttr:$wide, OptionalAttr<KF_RowsAttr>:$rows);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $x (`scales` `(` $scales^ `:` type($scales) `)`)?
    (`sums` `(` $sums^ `:` type($sums) `)`)?
    (`outliers` `(` $outliers^ `:` type($outliers) `)`)? `,` $w
    (`weight_scales` `(` $weight_scales^ `:` type($weight_scales) `)`)?
    (`bias` `(` $bias^ `)`)?
    (`glu` `` custom<Activation>($glu)^)? (`wide` $wide^)?
    (`rows` `` $rows^)? attr-dict `:` type($x) `,` type($w) (`,` type($bias)^)?
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$w,
                   "::mlir::Value":$bias,
                   "::mlir::kf::ActivationKindAttr":$glu,
                   CArg<"::mlir::Value", "{}">:$weightScales), [{
      build($_builder, $_state, x, w, bias, /*scales=*/{}, /*sums=*/{},
            weightScales, /*outliers=*/{}, glu, /*wide=*/false, /*rows=*/{});
    }]>
  ];
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    OperandReads getOperandReads() { return OperandReads::NormOfRows; }
    ResultChanges getResultChanges() { return ResultChanges::Elements; }
    /// Of outliers there are hardly any.
    ::mlir::RankedTensorType getPartRead(::mlir::OpOperand &operand);
    /// What bounds the gate: nothing.
    ::mlir::kf::GluClampAttr getClampAttr() { return {}; }
    /// Whether x and w are matrices (or w two of them, with glu), as kernels
    /// have them.
    bool isOfMatrices();
  }];
}

def KF_MlpOp : KF_TensorOp<"mlp", [AttrSizedOperandSegments, KF_Expanded,
                                   KF_DifferentiableByParts]> {
  let summary = "feed-forward block, gated or plain";
  let description = [{
    Plain: `result = act(x Wup^T + bup) Wdown^T + bdown`. With `gate`:
    `result = (act(x Wgate^T + bgate) * (x Wup^T + bup)) Wdown^T + bdown`.
    `kf-expand-mlp` rewrites it to `kf.matmul` and `kf.activation`.

    - C1: `x` is a rank 2 tensor [M, K] of f32, f16 or bf16.
    - C2: `up`, and `gate` where present, are [F, K]; their types may differ.
    - C3: `down` is [N, F].
    - C4: biases are [F], [F] and [N]; `gate_bias` needs `gate`.
    - C5: the result is [M, N] with the element type of `x`.

    ```mlir
    %0 = kf.mlp %x up(%up) down(%down) activation(gelu_tanh)
        : (tensor<?x64xf32>, tensor<256x64xf32>, tensor<64x256xf32>)
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, Optional<AnyRankedTensor>:$gate,
                       AnyRankedTensor:$up, AnyRankedTensor:$down,
                       Optional<AnyRankedTensor>:$gate_bias,
                       Optional<AnyRankedTensor>:$up_bias,
                       Optional<AnyRankedTensor>:$down_bias,
                       KF_ActivationKindAttr:$activation);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $x (`gate` `(` $gate^ `)`)? `up` `(` $up `)` `down` `(` $down `)`
    (`gate_bias` `(` $gate_bias^ `)`)? (`up_bias` `(` $up_bias^ `)`)?
    (`down_bias` `(` $down_bias^ `)`)?
    `activation` `` custom<Activation>($activation)
    attr-dict `:` `(` type(operands) `)`
  }];
}

//===----------------------------------------------------------------------===//
// Normalization and elementwise
//===----------------------------------------------------------------------===//

// Operations: square, sum; scale, weight.
def KF_RmsNormOp : KF_RowOp<"rms_norm", 4, "NormOfHeads"> {
  let summary = "root mean square normalization over the last dimension";
  let description = [{
    `result = x / sqrt(mean(x * x) + eps) * weight` (Zhang and Sennrich,
    "Root Mean Square Layer Normalization", 2019). With `zero_centered`, the
    factor is `1 + weight`, in f32.

    - C1: `x` has rank 1 or more, a static last dimension D, and float elements.
    - C2: `weight` is [D] of a float type.
    - C3: `eps` is finite and not negative.
    - C4: the result has the type of `x`.

    ```mlir
    %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<?x256xf32>, tensor<256xbf16>
    %1 = kf.rms_norm %x, %w zero_centered eps(1.0e-5)
        : tensor<?x256xf32>, tensor<256xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$weight,
                       F32Attr:$eps, UnitAttr:$zero_centered);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $x `,` $weight (`zero_centered` $zero_centered^)? `eps` `(` $eps `)`
    attr-dict `:` type($x) `,` type($weight)
  }];
}

// Operations: two sums; three more, bias.
def KF_LayerNormOp : KF_RowOp<"layer_norm", 7, "Norm"> {
  let summary = "layer normalization over the last dimension";
  let description = [{
    `result = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias` (Ba, Kiros and
    Hinton, "Layer Normalization", 2016).

    - C1: `x` has rank 1 or more, a static last dimension D, and float elements.
    - C2: `weight`, and `bias` where present, are [D] of a float type.
    - C3: `eps` is finite and not negative.
    - C4: the result has the type of `x`.

    ```mlir
    %0 = kf.layer_norm %x, %w bias(%b) eps(1.0e-5)
        : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$weight,
                       Optional<AnyRankedTensor>:$bias, F32Attr:$eps);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $x `,` $weight (`bias` `(` $bias^ `)`)? `eps` `(` $eps `)` attr-dict
    `:` type($x) `,` type($weight) (`,` type($bias)^)?
  }];
}

// Operations: max, minus, exp, sum, divide.
def KF_SoftmaxOp : KF_RowOp<"softmax", 5> {
  let summary = "softmax over the last dimension";
  let description = [{
    `result = exp(x - max(x)) / sum(exp(x - max(x)))`.

    - C1: `x` has rank 1 or more, a static last dimension, and float elements.
    - C2: the result has the type of `x`.

    ```mlir
    %0 = kf.softmax %x : tensor<?x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def KF_ActivationOp : KF_LoopOp<"activation", [KF_Differentiable]> {
  let summary = "elementwise activation";
  let description = [{
    `silu`: x / (1 + exp(-x)). `gelu`: x * (1 + erf(x / sqrt 2)) / 2.
    `gelu_tanh`: its tanh approximation (Hendrycks and Gimpel, 2016). `relu`:
    max(x, 0). `identity`: x.

    - C1: `x` is a ranked tensor of float elements.
    - C2: the result has the type of `x`.

    ```mlir
    %0 = kf.activation(silu) %x : tensor<?x704xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, KF_ActivationKindAttr:$kind);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "`` custom<Activation>($kind) $x attr-dict `:` type($x)";
  let hasFolder = 1;
  let extraClassDeclaration = [{
    bool isCheapToRecompute() { return true; }
    ElementWork getElementWork() { return {getResult(), 1}; }
  }];
}

include "kf/Dialect/KF/IR/KFAttentionOps.td"

//===----------------------------------------------------------------------===//
// Token selection
//===----------------------------------------------------------------------===//

def KF_ArgmaxOp : KF_LoopOp<"argmax"> {
  let summary = "index of the largest element of each row";
  let description = [{
    The lowest such index where several are equal. A NaN is smaller than any
    number; a row of NaNs gives 0.

    - C1: `logits` is a rank 2 tensor [T, V] of float elements, V static.
    - C2: the result is [T] of i32.

    ```mlir
    %0 = kf.argmax %logits : tensor<?x1477xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$logits);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$logits attr-dict `:` type($logits)";
  let extraClassDeclaration = [{
    OperandReads getOperandReads() { return OperandReads::Elements; }
    ElementWork getElementWork() { return {getLogits(), 1}; }
  }];
}

def KF_SampleOp : KF_LoopOp<"sample", [AttrSizedOperandSegments,
                                       KF_IntegersInMemory]> {
  let summary = "chooses a token from each row of logits";
  let description = [{
    Row r has settings of its own, so that one op serves sequences that want
    different things, and what it chooses depends on nothing but its logits and
    settings.

    1. *Adjustments*, where there are any: each entry i from `first[r]` to
       `first[r] + count[r]`, as far as the lists reach, changes the logit x of
       token `ids[i]`, if there is such a token. If the token was seen,
       `seen[i]` times, x becomes x / `repetition[r]` where it is positive and
       x * `repetition[r]` where not, less `frequency[r] * seen[i]`, less
       `presence[r]`; then `bias[i]` is added. What was finite stays finite; a
       bias of -inf excludes the token.
    2. *Mask*, where there is one: a row whose `masked[r]` is the number of a row
       of `mask` chooses only of the tokens whose bits are set there, bit i % 32
       of word i / 32 for token i; what the others' logits are does not matter.
       Any other number, such as -1, allows all.
    3. With `temperature[r] = 0` the token with the largest logit is chosen, the
       lowest of equals. Else logits are divided by the temperature.
    4. *Filters*, in Hugging Face's order, each on what the one before left:
       the `top_k[r]` most likely tokens stay (0: all); the fewest most likely
       ones whose probabilities reach `top_p[r]`; those with at least `min_p[r]`
       times the probability of the most likely one. Of equal logits the lower
       id is the more likely one.
    5. *Draw*: the first token left, in order of ids, up to which probabilities
       sum up to more than u times the sum of all left. u in [0, 1) is 64 bits
       of Philox4x32-10 (Salmon et al., 2011) with `seed[r]` as the key and
       `counter[r]` as the counter: draw number `counter[r]` of the seed.

    The result is -1 where a row has NaN, +inf or nothing but -inf for logits
    after adjustments and mask, and where a setting is out of its range: a
    temperature that is negative or not finite, `top_k` below 0, `top_p` outside
    of (0, 1], `min_p` outside of [0, 1], penalties that are not finite, and a
    `repetition` that is not positive.

    Every target chooses the same token: probabilities are integers, in units of
    2^-30 of the largest, and runtime/core/SamplingMath.h defines them to the
    bit.

    - C1: `logits` is a rank 2 tensor [R, V] of float elements, V static and
      below 2^31.
    - C2: `temperature`, `top_p` and `min_p` are [R] of f32, `top_k` and
      `counter` [R] of i32, `seed` [R] of i64.
    - C3: adjustments and penalties come together: `first` and `count` are [R]
      of i32, `repetition`, `presence` and `frequency` [R] of f32.
    - C4: `ids` and `seen` are [A] of i32, `bias` [A] of f32.
    - C5: the result is [R] of i32.
    - C6: `masked` and `mask` come together: `masked` is [R] of i32, `mask`
      [M, ceil(V / 32)] of i32.

    ```mlir
    %0 = kf.sample %logits temperature(%t) top_k(%k) top_p(%p) min_p(%m)
        seed(%s) counter(%c)
        : (tensor<?x1477xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>,
           tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
    %1 = kf.sample %logits temperature(%t) top_k(%k) top_p(%p) min_p(%m)
        seed(%s) counter(%c)
        adjustments(%first, %count, %ids, %seen, %bias)
        penalties(%repetition, %presence, %frequency)
        : (tensor<?x1477xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>,
           tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi32>,
           tensor<?xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xf32>,
           tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
    %2 = kf.sample %logits temperature(%t) top_k(%k) top_p(%p) min_p(%m)
        seed(%s) counter(%c) mask(%masked, %mask)
        : (tensor<?x1477xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>,
           tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi32>,
           tensor<4x47xi32>)
    ```
  }];
  let arguments = (ins AnyRankedTensor:$logits, AnyRankedTensor:$temperature,
                       AnyRankedTensor:$top_k, AnyRankedTensor:$top_p,
                       AnyRankedTensor:$min_p, AnyRankedTensor:$seed,
                       AnyRankedTensor:$counter,
                       Optional<AnyRankedTensor>:$first,
                       Optional<AnyRankedTensor>:$count,
                       Optional<AnyRankedTensor>:$ids,
                       Optional<AnyRankedTensor>:$seen,
                       Optional<AnyRankedTensor>:$bias,
                       Optional<AnyRankedTensor>:$repetition,
                       Optional<AnyRankedTensor>:$presence,
                       Optional<AnyRankedTensor>:$frequency,
                       Optional<AnyRankedTensor>:$masked,
                       Optional<AnyRankedTensor>:$mask);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $logits `temperature` `(` $temperature `)` `top_k` `(` $top_k `)`
    `top_p` `(` $top_p `)` `min_p` `(` $min_p `)` `seed` `(` $seed `)`
    `counter` `(` $counter `)`
    (`adjustments` `(` $first^ `,` $count `,` $ids `,` $seen `,` $bias `)`
     `penalties` `(` $repetition `,` $presence `,` $frequency `)`)?
    (`mask` `(` $masked^ `,` $mask `)`)?
    attr-dict `:` `(` type(operands) `)`
  }];
  let extraClassDeclaration = [{
    ElementWork getElementWork() { return {getLogits(), 1}; }
    /// Whether logits are changed before anything else happens.
    bool hasAdjustments() { return getIds() != nullptr; }
    /// Whether rows may choose of some tokens only.
    bool hasMask() { return getMask() != nullptr; }
  }];
}

//===----------------------------------------------------------------------===//
// Block quantization
//===----------------------------------------------------------------------===//

def KF_QuantizeOp : KF_LoopOp<"quantize"> {
  let summary = "rounds a tensor to a block-quantized type";
  let description = [{
    - C1: `x` is a ranked tensor of f32.
    - C2: its last dimension is static and a multiple of the format's block.
    - C3: the result has the shape of `x` and element type
      `!kf.quant<format>`.

    ```mlir
    %0 = kf.quantize %x <q8_0> : tensor<?x256xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, KF_BlockFormatAttr:$format);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x $format attr-dict `:` type($x)";
  let extraClassDeclaration = [{
    ElementWork getElementWork() { return {getX(), 1}; }
  }];
}

def KF_QuantizeRowsOp : KF_LoopOp<"quantize_rows"> {
  let summary = "rounds rows to 8 bits, with a scale for 32 elements";
  let description = [{
    Of each 32 neighbours of a row, `scales` is the largest magnitude / 127, and
    `codes` are the elements * (127 / magnitude), rounded to the nearest
    integer, ties to even; both are zero where the magnitude is below 2^-118,
    for a device may take numbers near the smallest ones for zeros. With an
    infinity or a NaN among them the scale is a NaN, so that none is hidden, and
    the codes are zeros. `sums` are the codes of each `group` elements added up,
    which products with weights that have minimums or an offset need.

    - C1: `x` is a rank 2 tensor [M, K] of float elements, K static and a
      multiple of 32.
    - C2: `group` is 16 or 32.
    - C3: `codes` is [M, K] of i8, `scales` [M, K / 32] of f32, and `sums`
      [M, K / group] of i32.

    ```mlir
    %codes, %scales, %sums = kf.quantize_rows %x group(32) : tensor<?x256xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, I64Attr:$group);
  let results = (outs AnyRankedTensor:$codes, AnyRankedTensor:$scales,
                      AnyRankedTensor:$sums);
  let assemblyFormat = [{
    $x `group` `(` $group `)` attr-dict `:` type($x)
  }];
  let extraClassDeclaration = [{
    OperandReads getOperandReads() { return OperandReads::RowsOrNorm; }
    // Magnitude, multiply, sum.
    ElementWork getElementWork() { return {getX(), 3}; }
  }];
}

def KF_RoundHalfOp : KF_LoopOp<"round_half"> {
  let summary = "rounds elements to f16, and keeps those that it cannot hold";
  let description = [{
    `rounded` are the elements as f16, to the nearest, ties to even. Where that
    is infinite, `outliers` are the elements themselves, to at least as many
    significant bits as f16 has; elsewhere nobody reads it, and it holds anything.
    So products of rows lose no element that f32 holds, while those without an
    outlier, which nearly all are, move two bytes for each element.

    - C1: `x` has f32 elements and rank 1 or more.
    - C2: `rounded` and `outliers` have its shape, of f16 and f32.

    ```mlir
    %rounded, %outliers = kf.round_half %x : tensor<?x256xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$rounded, AnyRankedTensor:$outliers);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def KF_DequantizeOp : KF_LoopOp<"dequantize"> {
  let summary = "widens a block-quantized tensor to f32";
  let description = [{
    - C1: the elements of `x` are of a `!kf.quant` type.
    - C2: its last dimension is static and a multiple of the format's block.
    - C3: the result has the shape of `x` and type f32.

    ```mlir
    %0 = kf.dequantize %x : tensor<?x256x!kf.quant<q8_0>>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let extraClassDeclaration = [{
    ElementWork getElementWork() { return {getX(), 1}; }
  }];
}

include "kf/Dialect/KF/IR/KFStateOps.td"
include "kf/Dialect/KF/IR/KFExpertOps.td"
include "kf/Dialect/KF/IR/KFTensorOps.td"
include "kf/Dialect/KF/IR/KFTrainingOps.td"
include "kf/Dialect/KF/IR/KFStructureOps.td"
include "kf/Dialect/KF/IR/KFCollectiveOps.td"
include "kf/Dialect/KF/IR/KFVectorOps.td"

#endif // KF_DIALECT_KF_IR_KFOPS_TD
