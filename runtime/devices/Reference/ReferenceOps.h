//===- ReferenceOps.h - What every kf op means ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One plain function per op: the oracle of the tests, the tuner and
// `--device=reference`. Operands are widened to f32, everything is computed in
// f32 (sums of norms and softmax in f64), and results are f32 for the caller to
// round, except where an op says otherwise.
//
// A function fails, with the op's numbered constraint, when shapes or types do
// not fit; the values of operands never make one fail. Results are owned by the
// caller. Safe to call from several threads, but for two calls that write to
// one cache.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_REFERENCE_REFERENCEOPS_H
#define KF_RUNTIME_DEVICES_REFERENCE_REFERENCEOPS_H

#include "runtime/core/KeyWindow.h"
#include "runtime/devices/Reference/ReferenceTensor.h"

#include <optional>

namespace kf::reference {

//===----------------------------------------------------------------------===//
// Lookup and matrix products (MatmulOps.cpp)
//===----------------------------------------------------------------------===//

enum class Activation { Identity, Silu, Gelu, GeluTanh, Relu };

/// #kf.glu_clamp.
struct GluClamp {
  float limit = 0, alpha = 0;
};
/// How a gate joins its two products.
struct Glu {
  Activation activation = Activation::Silu;
  std::optional<GluClamp> clamp = {}; ///< of Silu
};

/// kf.embedding: row `ids[i]` of `table`, zeros where there is none.
/// ids [T] of i32, table [V, D] -> [T, D].
Result<Tensor> embedding(const TensorView &ids, const TensorView &table);

/// kf.matmul: x W^T + bias. x [M, K], w [N, K], bias [N] or null -> [M, N].
/// With `glu`: glu(x W[0]^T + bias[0]) * (x W[1]^T + bias[1]), w [2, N, K],
/// bias [2, N]. `scales`, null or of the shape of bias, are those of w's rows.
Result<Tensor> matmul(const TensorView &x, const TensorView &w,
                      const TensorView *bias,
                      std::optional<Activation> glu = std::nullopt,
                      const TensorView *scales = nullptr);

/// kf.matmul and kf.batch_matmul of batches: x [..., M, K], w [..., N, K] of
/// the same rank, whose other dimensions are those of x or 1, or [N, K] for
/// all; bias [N] or null -> [..., M, N].
Result<Tensor> batchMatmul(const TensorView &x, const TensorView &w,
                           const TensorView *bias = nullptr);

//===----------------------------------------------------------------------===//
// Training (TrainingOps.cpp)
//===----------------------------------------------------------------------===//

/// kf.cross_entropy: log(sum exp(logits[t])) - logits[t, labels[t]], 0 where
/// the label is no column. logits [T, V], labels [T] of i32 -> [T].
Result<Tensor> crossEntropy(const TensorView &logits, const TensorView &labels);

/// kf.dropout: x[t, d] / (1 - p), or 0 where the first word of Philox for
/// {d, t, draw[0], draw[1]} and {draw[2], draw[3]} is below p * 2^32.
/// x [T, D], draw [4] of i32.
Result<Tensor> dropout(const TensorView &x, const TensorView &draw, float p);

/// kf.philox: the first word of Philox for a counter of four words and a key of
/// two, which are six tensors of i32 of one shape.
Result<Tensor> philoxWords(const std::array<TensorView, 6> &words);

/// kf.scatter_add: the sum of the `rows` whose id it is, in their order, for
/// each row of a result of `count`. ids [T] of i32, rows [T, D] -> [count, D].
Result<Tensor> scatterAdd(const TensorView &ids, const TensorView &rows,
                          int64_t count);

/// kf.matmul_dgrad: dy W. dy [M, N], w [N, K] -> [M, K].
Result<Tensor> matmulDgrad(const TensorView &dy, const TensorView &w);

/// kf.matmul_wgrad: dy^T x. dy [M, N], x [M, K] -> [N, K].
Result<Tensor> matmulWgrad(const TensorView &dy, const TensorView &x);

//===----------------------------------------------------------------------===//
// Experts (ExpertOps.cpp)
//===----------------------------------------------------------------------===//

struct RouteOptions {
  int64_t top = 1;
  bool sigmoid = false, normalized = false;
  /// Of `groups` groups of neighbours, those that experts are chosen of; 0: all
  /// experts are one group.
  int64_t groups = 0, keptGroups = 0;
};

/// kf.route: the `top` largest of each row of `logits` [T, E], in descending
/// order, the first of equals first, and their probabilities by a softmax over
/// all or, with `normalized`, over those, times their scale in `scales` [E] or
/// null: [T, top] of i32 and of f32. With `sigmoid`, weights are sigmoids, and
/// `bias` [E], or null, is added to those where experts are chosen.
Result<std::vector<Tensor>> route(const TensorView &logits,
                                  const RouteOptions &options,
                                  const TensorView *scales = nullptr,
                                  const TensorView *bias = nullptr);

/// kf.expert_matmul: x[t] w[0, e]^T + bias[0, e] of e = experts[t, j], taken
/// for the nearest expert that there is. x [T, K] or [T, k, K], experts [T, k]
/// of i32, w [1, E, N, K], bias [1, E, N] or null -> [T, k, N]. With `glu`, w
/// and bias have two groups: gated(glu, first, second).
Result<Tensor> expertMatmul(const TensorView &x, const TensorView &experts,
                            const TensorView &w, const TensorView *bias,
                            std::optional<Glu> glu);

//===----------------------------------------------------------------------===//
// Feed-forward blocks (MatmulOps.cpp)
//===----------------------------------------------------------------------===//

/// Weights of kf.mlp; optional ones are null.
struct MlpWeights {
  const TensorView *gate = nullptr;                        ///< [F, K]
  const TensorView *up = nullptr;                          ///< [F, K]
  const TensorView *down = nullptr;                        ///< [N, F]
  const TensorView *gateBias = nullptr, *upBias = nullptr; ///< [F]
  const TensorView *downBias = nullptr;                    ///< [N]
};

/// kf.mlp: act(x Wup^T + bup) Wdown^T + bdown, or with a gate
/// (act(x Wgate^T + bgate) * (x Wup^T + bup)) Wdown^T + bdown.
/// x [M, K] -> [M, N].
Result<Tensor> mlp(const TensorView &x, const MlpWeights &weights,
                   Activation activation);

//===----------------------------------------------------------------------===//
// Normalization and elementwise (ElementwiseOps.cpp)
//===----------------------------------------------------------------------===//

/// kf.rms_norm: x / sqrt(mean(x^2) + eps) * weight over the last dimension, or
/// 1 + weight where that is `zeroCentered`. x [..., D], weight [D] -> [..., D].
/// Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
Result<Tensor> rmsNorm(const TensorView &x, const TensorView &weight, float eps,
                       bool zeroCentered = false);

/// kf.layer_norm: (x - mean(x)) / sqrt(var(x) + eps) * weight + bias over the
/// last dimension, var being the biased variance. x [..., D], weight [D],
/// bias [D] or null -> [..., D]. Ba, Kiros and Hinton, "Layer Normalization",
/// 2016.
Result<Tensor> layerNorm(const TensorView &x, const TensorView &weight,
                         const TensorView *bias, float eps);

/// kf.softmax: exp(x - max(x)) / sum(exp(x - max(x))) over the last dimension.
/// x [..., D] -> [..., D].
Result<Tensor> softmax(const TensorView &x);

/// kf.activation of one number.
/// silu: x / (1 + exp(-x)). gelu: x (1 + erf(x / sqrt 2)) / 2. gelu_tanh:
/// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 (Hendrycks and Gimpel,
/// "Gaussian Error Linear Units", 2016). relu: max(x, 0). identity: x.
float activate(Activation kind, float x);
/// activate(gate) * up, or what clamp makes of them.
float gated(const Glu &glu, float gate, float up);

/// kf.activation: activate of every element. x [...] -> [...].
Result<Tensor> activation(Activation kind, const TensorView &x);

//===----------------------------------------------------------------------===//
// Arithmetic of any element type (ScalarOps.cpp)
//===----------------------------------------------------------------------===//

/// An elementwise op of arith or math on tensors of one shape, or kf.copy.
struct ScalarOp;
/// By its name, "arith.addf"; null where there is none.
const ScalarOp *findScalarOp(std::string_view name);
size_t operandCount(const ScalarOp &op);
/// Whether it has a `predicate`, as cmpf and cmpi do, and whether it knows this
/// one; any will do for the others.
bool hasPredicate(const ScalarOp &op);
bool hasPredicate(const ScalarOp &op, int64_t predicate);
/// `operands` [...] of one shape -> [...] of `type`; an error where the op does
/// not take or make such types.
Result<Tensor> apply(const ScalarOp &op, std::span<const TensorView> operands,
                     DataType type, int64_t predicate = 0);

enum class Reduction { Sum, Prod, Max, Min, Mean };
/// kf.reduce: elements along `dims` combined, x [...] -> [shape...] of the type
/// of `x`, the shape with or without dimensions of 1 in their place. Floats are
/// summed in f64.
Result<Tensor> reduce(Reduction kind, const TensorView &x,
                      std::span<const int64_t> dims,
                      std::vector<int64_t> shape);

//===----------------------------------------------------------------------===//
// Attention (AttentionOps.cpp)
//===----------------------------------------------------------------------===//

enum class RopeStyle { Half, Interleaved };

struct RopeScaling {
  enum class Kind { Linear, Llama3 } kind = Kind::Linear;
  double factor = 1;
  /// Llama3 only.
  double lowFreqFactor = 1, highFreqFactor = 1;
  int64_t originalContext = 0;
};

struct RopeOptions {
  double theta = 10000;
  int64_t rotaryDim = 0; ///< even, positive, at most D
  RopeStyle style = RopeStyle::Half;
  std::optional<RopeScaling> scaling;
  double magnitude = 1; ///< factor of cosines and sines, as f32
};

/// The rotaryDim / 2 frequencies in radians per position, in the order of f32
/// operations of Hugging Face's modeling_rope_utils.py: 1 / theta^(2i / dim),
/// then scaled. `rotaryDim` is even and positive.
std::vector<float> ropeFrequencies(const RopeOptions &options);

/// kf.rope: rotates pairs of each head's first rotaryDim elements by the f32
/// product of position and frequency. x [T, heads, D], positions [T] of i32 ->
/// [T, heads, D]. Su et al., "RoFormer", 2021. `factors`, where given,
/// [rotaryDim / 2], divide the frequencies.
Result<Tensor> rope(const TensorView &x, const TensorView &positions,
                    const TensorView *factors, const RopeOptions &options);

/// Where the T rows of a step stand in a cache of pages. A row without a
/// position in [0, P * page) is in none, and its sequence may be anything.
struct CacheRows {
  TensorView positions; ///< [T] of i32
  TensorView sequences; ///< [T] of i32, in [0, S)
  TensorView pageTable; ///< [S, P] of i32: pages of the cache
};

/// kf.kv_append: writes row t of k and v to the page of its position in a
/// layer, rounded to the cache's type; rows without a position are dropped.
/// k, v [T, kv heads, D]. Errors: a sequence or a page that there is not.
Status kvAppend(const CacheView &cache, const TensorView &k,
                const TensorView &v, const CacheRows &rows, int64_t layer);

/// Operands of kf.gated_delta: K key heads, V value heads, a multiple of them.
struct GatedDeltaInputs {
  TensorView q, k;                 ///< [T, K, dk]
  TensorView v;                    ///< [T, V, dv]
  TensorView a, b;                 ///< [T, V]
  TensorView convolution;          ///< [2 * K * dk + V * dv, 1, taps]
  TensorView decay, bias;          ///< [V]
  TensorView positions, sequences; ///< [T] of i32; sequences are in [0, S)
  TensorView states;               ///< [S] of i32: slots of the cache
};

/// kf.gated_delta: the gated delta rule, row by row of each sequence, behind a
/// short causal convolution; a row at position 0 begins a sequence -> [T, V,
/// dv]. Yang et al., "Gated Delta Networks: Improving Mamba2 with Delta Rule",
/// 2025. Errors: shapes, a sequence or a slot that there is not.
Result<Tensor> gatedDelta(const GatedDeltaInputs &inputs,
                          const CacheView &cache, int64_t layer);

struct AttentionOptions {
  int64_t layer = 0;
  float scale = 1;
  KeyWindow window;             ///< positions that a row sees
  std::optional<float> softcap; ///< positive: c * tanh(s / c) of a score s
};

/// kf.attention: query row t of head h attends to its sequence's positions p
/// with p <= positions[t] and p < P * page that `window` lets it see, of KV
/// head h / (heads / kv heads); zeros where there are none. `sinks` [heads], or
/// null: one more score of each head, of no key. q [T, heads, D] ->
/// [T, heads, D]. Vaswani et al., "Attention Is All You Need", 2017; grouped
/// heads: Ainslie et al., "GQA", 2023; pages: Kwon et al., "Efficient Memory
/// Management for Large Language Model Serving with PagedAttention", 2023.
/// Errors: a sequence or a page that there is not where a row needs it.
Result<Tensor> attention(const TensorView &q, const CacheView &cache,
                         const CacheRows &rows, const AttentionOptions &options,
                         const TensorView *sinks = nullptr);

struct PlainAttentionOptions {
  float scale = 1;
  std::optional<float> softcap; ///< positive
  bool causal = false;
  int64_t offset = 0;            ///< keys before the queries'
  std::optional<int64_t> window; ///< positive; empty: all earlier keys
};

/// kf.scaled_dot_product_attention: softmax(mask(cap(scale * q k^T))) v, zeros
/// where a query attends to no key. q [..., H, T, D], k [..., G, S, D],
/// v [..., G, S, E], mask null or broadcast to [..., H, T, S], of i1 or floats
/// -> [..., H, T, E].
Result<Tensor> plainAttention(const TensorView &q, const TensorView &k,
                              const TensorView &v, const TensorView *mask,
                              const PlainAttentionOptions &options);

/// kf.attention_qgrad: of plainAttention's result, with the gradient `dy`
/// [..., H, T, E]: that of q, and of each of its rows the logarithm of the sum
/// of exp(score) and the sum of what its weights have as gradients times these,
/// [..., H, T]; all of f32, and 0 where a query attends to no key. Errors:
/// those of plainAttention; C6: dy has another shape.
Result<std::vector<Tensor>>
attentionQgrad(const TensorView &q, const TensorView &k, const TensorView &v,
               const TensorView &dy, const TensorView *mask,
               const PlainAttentionOptions &options);

/// kf.attention_kvgrad: the gradients of k and v, of f32; what
/// kf.attention_qgrad says of rows is computed again. Errors: the same.
Result<std::vector<Tensor>>
attentionKvgrad(const TensorView &q, const TensorView &k, const TensorView &v,
                const TensorView &dy, const TensorView *mask,
                const PlainAttentionOptions &options);

/// kf.rotary_embedding: rotates pairs of the first 2 * R elements of each row.
/// x [..., D], cos and sin broadcast to [..., R] -> [..., D].
Result<Tensor> rotate(const TensorView &x, const TensorView &cos,
                      const TensorView &sin, RopeStyle style);

/// kf.attention_partial: of each part of the keys that a row sees, the largest
/// score (the lowest float, where all are -inf), the sum of exp(score -
/// maximum), and that of those times v; -inf, 0 and zeros of a part without
/// keys. The first of the `splits` parts has the keys of the first
/// ceil(n / splits) of the n pages that hold what the row sees, and so on. q
/// [T, heads, D] -> [T, heads, splits] twice, and [T, heads, splits, D]. Dao et
/// al., "Flash-Decoding for long-context inference", 2023. Errors: those of
/// attention.
Result<std::vector<Tensor>> attentionPartial(const TensorView &q,
                                             const CacheView &cache,
                                             const CacheRows &rows,
                                             const AttentionOptions &options,
                                             int64_t splits);

/// kf.attention_combine: attention's result from its parts; zeros where no part
/// has keys. maxima, totals [T, heads, splits], values [T, heads, splits, D] of
/// f32, sinks [heads] or null -> [T, heads, D].
Result<Tensor> attentionCombine(const TensorView &maxima,
                                const TensorView &totals,
                                const TensorView &values,
                                const TensorView *sinks = nullptr);

//===----------------------------------------------------------------------===//
// Token selection (SelectionOps.cpp)
//===----------------------------------------------------------------------===//

/// kf.argmax: the lowest index of each row's largest element; NaN is smaller
/// than every number. logits [T, V] -> [T] of i32.
Result<Tensor> argmax(const TensorView &logits);

/// What kf.sample changes logits by: row r's entries are those from first[r] to
/// first[r] + count[r], as far as there are.
struct SampleAdjustments {
  const TensorView *first, *count;                     ///< [R] of i32
  const TensorView *ids, *seen;                        ///< [A] of i32
  const TensorView *bias;                              ///< [A] of f32
  const TensorView *repetition, *presence, *frequency; ///< [R] of f32
};

struct SampleMaskRows {
  const TensorView *masked; ///< [R] of i32
  const TensorView *mask;   ///< [M, ceil(V / 32)] of i32
};

/// Settings of the rows of kf.sample.
struct SampleOperands {
  const TensorView *temperature; ///< [R] of f32
  const TensorView *topK;        ///< [R] of i32
  const TensorView *topP, *minP; ///< [R] of f32
  const TensorView *seed;        ///< [R] of i64
  const TensorView *counter;     ///< [R] of i32
  std::optional<SampleAdjustments> adjustments = std::nullopt;
  std::optional<SampleMaskRows> mask = std::nullopt;
};

/// kf.sample: a token of each row, or -1 where the row's settings are out of
/// range, or its logits, adjusted and masked, hold NaN or +inf or nothing but
/// -inf. logits [R, V] -> [R] of i32. The arithmetic is SamplingMath.h's.
Result<Tensor> sample(const TensorView &logits, const SampleOperands &operands);

//===----------------------------------------------------------------------===//
// Storage and shape (ShapeOps.cpp)
//===----------------------------------------------------------------------===//

/// kf.quantize: quantizeBlocks of every row. x [..., D] of f32, D a multiple of
/// the block -> [..., D] of `format`.
Result<Tensor> quantize(const TensorView &x, DataType format);

/// kf.quantize_rows: of each 32 neighbours, a scale, the largest magnitude /
/// 127, and the elements * (127 / magnitude), rounded to even; NaN and zeros
/// where one is not finite. Then sums of `group` codes, 16 or 32. x [M, K] ->
/// codes [M, K] of i8, scales [M, K / 32], sums [M, K / group] of i32.
Result<std::vector<Tensor>> quantizeRows(const TensorView &x, int64_t group);

/// kf.round_half: x of f32 as f16, and as f32 with the 11 significant bits that
/// products on matrix units keep of what f16 cannot hold.
Result<std::vector<Tensor>> roundHalf(const TensorView &x);

/// What kf.round_half's rounded elements of f16 and outliers of f32, of the
/// same shape, stand for, in f32: an outlier for each infinity.
Result<Tensor> insertOutliers(const TensorView &rounded,
                              const TensorView &outliers);

/// What quantizeRows' codes [M, K] of i8 and scales [M, K / 32] stand for:
/// codes * scales [M, K].
Result<Tensor> scaleRows(const TensorView &codes, const TensorView &scales);

/// kf.dequantize: dequantizeBlocks of every row. x [..., D] of a block format
/// -> [..., D].
Result<Tensor> dequantize(const TensorView &x);

/// tensor.extract_slice: element i of dimension d is element
/// offsets[d] + i * strides[d] of `x`. One offset, size and stride a dimension,
/// strides positive -> [sizes...] of the type of `x`, which is not quantized.
Result<Tensor> extractSlice(const TensorView &x,
                            std::span<const int64_t> offsets,
                            std::span<const int64_t> sizes,
                            std::span<const int64_t> strides);

/// kf.transpose: dimension i of the result is dimension permutation[i] of `x`.
Result<Tensor> transpose(const TensorView &x,
                         std::span<const int64_t> permutation);

/// kf.broadcast: dimensions of 1, and missing ones in front, are repeated
/// -> [shape...] of the type of `x`.
Result<Tensor> broadcast(const TensorView &x, std::vector<int64_t> shape);

/// tensor.concat: `parts`, at least one, of one type, behind one another along
/// dimension `dim`.
Result<Tensor> concat(std::span<const TensorView> parts, int64_t dim);

/// kf.iota: each element is its index along `dim`. -> [shape...] of `type`,
/// i32 or i64.
Result<Tensor> iota(DataType type, std::vector<int64_t> shape, int64_t dim);

/// tensor.expand_shape, tensor.collapse_shape: the same elements in another
/// shape of as many -> [shape...] of the type of `x`.
Result<Tensor> reshape(const TensorView &x, std::vector<int64_t> shape);

} // namespace kf::reference

#endif // KF_RUNTIME_DEVICES_REFERENCE_REFERENCEOPS_H
