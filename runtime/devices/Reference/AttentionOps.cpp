//===- AttentionOps.cpp - Rotary embedding, cache, attention --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceOps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace kf::reference {
namespace {

/// C1 of rope, attention and kv_append.
Status checkHeads(const char *op, const char *what, const TensorView &x) {
  if (x.rank() != 3 || !isFloat(x.type))
    return Status::error(std::string(op) + " C1: " + what + " is " +
                         describe(x.type, x.shape) +
                         ", not [T, heads, D] of float elements");
  return Status();
}

/// Integers of the T rows of `x`, named `name`; `constraint` is the op's number
/// for it.
Result<std::vector<int32_t>> readPerRow(const char *op, const char *constraint,
                                        const char *name,
                                        const TensorView &values,
                                        const TensorView &x) {
  std::string what = std::string(op) + " " + constraint + ": " + name;
  if (values.rank() != 1 || values.shape[0] != x.shape[0])
    return Status::error(what + " are " + describe(values.type, values.shape) +
                         " for rows of " + describe(x.type, x.shape));
  return readInts(values, what.c_str());
}

Status checkLayer(const char *op, const char *constraint, int64_t layer,
                  const CacheView &cache) {
  if (layer < 0 || layer >= cache.spec.layers)
    return Status::error(std::string(op) + " " + constraint + ": layer " +
                         std::to_string(layer) + " of a cache of " +
                         std::to_string(cache.spec.layers) + " layers");
  return Status();
}

/// "Llama 3.1": long wavelengths are divided by the factor, short ones stay,
/// and those between, if there are any, are interpolated.
float scaleLlama3(const RopeScaling &scaling, float frequency) {
  double context = static_cast<double>(scaling.originalContext);
  double low = scaling.lowFreqFactor, high = scaling.highFreqFactor;
  float factor = static_cast<float>(scaling.factor);
  float wavelength = static_cast<float>(2 * std::numbers::pi) / frequency;
  if (wavelength > static_cast<float>(context / low))
    return frequency / factor;
  if (wavelength <= static_cast<float>(context / high))
    return frequency;
  float smooth =
      (static_cast<float>(context) / wavelength - static_cast<float>(low)) /
      static_cast<float>(high - low);
  return (1 - smooth) * frequency / factor + smooth * frequency;
}

/// The rows of a step and their pages, read and checked in shape.
struct RowPlaces {
  std::vector<int32_t> positions, sequences; // [T]
  std::vector<int32_t> table;                // [S][P]
  int64_t sequenceCount = 0, tablePages = 0; // S, P

  /// Positions that a sequence may have.
  int64_t limit(const CacheView &cache) const {
    return tablePages * cache.spec.page;
  }

  /// The cache's slot of position `position`, in [0, limit), of row `row`'s
  /// sequence.
  Result<int64_t> slot(const CacheView &cache, int64_t row,
                       int64_t position) const {
    int64_t sequence = sequences[row], place = position % cache.spec.page;
    if (sequence < 0 || sequence >= sequenceCount)
      return Status::error("row " + std::to_string(row) +
                           " belongs to sequence " + std::to_string(sequence) +
                           ", but the page table has " +
                           std::to_string(sequenceCount));
    int64_t number = position / cache.spec.page;
    int64_t page = table[sequence * tablePages + number];
    if (page < 0 || page >= cache.pages)
      return Status::error("page " + std::to_string(number) + " of sequence " +
                           std::to_string(sequence) + " is " +
                           std::to_string(page) + " of a cache of " +
                           std::to_string(cache.pages) + " pages");
    return page * cache.spec.page + place;
  }
};

/// `constraints` are the op's numbers for positions, sequences and table.
Result<RowPlaces> readPlaces(const char *op, const char *const constraints[3],
                             const CacheRows &rows, const TensorView &x) {
  RowPlaces places;
  KF_ASSIGN_OR_RETURN(
      places.positions,
      readPerRow(op, constraints[0], "positions", rows.positions, x));
  KF_ASSIGN_OR_RETURN(
      places.sequences,
      readPerRow(op, constraints[1], "sequences", rows.sequences, x));
  const TensorView &table = rows.pageTable;
  std::string what = std::string(op) + " " + constraints[2] + ": page_table";
  if (table.rank() != 2)
    return Status::error(what + " is " + describe(table.type, table.shape) +
                         ", not [S, P]");
  KF_ASSIGN_OR_RETURN(places.table, readInts(table, what.c_str()));
  places.sequenceCount = table.shape[0];
  places.tablePages = table.shape[1];
  return places;
}

/// Keys and values of one head at some positions, as floats.
struct HeadRows {
  std::vector<float> keys, values; // [count][D]
};

/// Those at `slots`; zeros for a negative one.
HeadRows readHead(const CacheView &cache, int64_t layer, int64_t head,
                  std::span<const int64_t> slots) {
  int64_t d = cache.spec.headDim;
  HeadRows rows;
  rows.keys.resize(slots.size() * d);
  rows.values.resize(slots.size() * d);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] < 0)
      continue;
    cache.readKey(layer, head, slots[i], rows.keys.data() + i * d);
    cache.readValue(layer, head, slots[i], rows.values.data() + i * d);
  }
  return rows;
}

/// `scale * q k^T`, capped. q [D], k [D].
float scoreOf(const float *q, const float *k, int64_t d,
              const AttentionOptions &options) {
  const float score = options.scale * dot(q, k, d);
  return options.softcap
             ? *options.softcap * std::tanh(score / *options.softcap)
             : score;
}

/// Softmax of `scale * q k^T` over entries [first, last] of `rows` and, where
/// there is one, a sink, then the weighted sum of v. q [D], result [D].
void attendRow(const float *q, const HeadRows &rows, int64_t d, int64_t first,
               int64_t last, const AttentionOptions &options, const float *sink,
               float *result) {
  std::vector<float> weights(last - first + 1);
  for (int64_t p = first; p <= last; ++p)
    weights[p - first] = scoreOf(q, rows.keys.data() + p * d, d, options);
  float largest = *std::max_element(weights.begin(), weights.end());
  // A sink that is much larger leaves nothing of the others, and takes all
  // where these are -inf.
  if (sink)
    largest = std::max(largest, std::numeric_limits<float>::lowest());
  double sum = sink ? std::exp(double(*sink) - largest) : 0;
  for (float &weight : weights) {
    weight = std::exp(weight - largest);
    sum += weight;
  }
  for (int64_t p = first; p <= last; ++p) {
    float weight = static_cast<float>(weights[p - first] / sum);
    for (int64_t i = 0; i < d; ++i)
      result[i] += weight * rows.values[p * d + i];
  }
}

/// Of the scores of all entries of `rows`: the largest one, of -inf alone the
/// lowest float, and the sums of exp(score - maximum), and of those times v. A
/// NaN makes them NaN. q [D], values [D].
void attendPart(const float *q, const HeadRows &rows, int64_t d,
                const AttentionOptions &options, float &maximum, float &total,
                float *values) {
  std::vector<float> scores(rows.keys.size() / d);
  maximum = std::numeric_limits<float>::lowest();
  for (size_t p = 0; p < scores.size(); ++p) {
    scores[p] = scoreOf(q, rows.keys.data() + p * d, d, options);
    if (scores[p] > maximum || std::isnan(scores[p]))
      maximum = scores[p]; // no score is larger than NaN
  }
  double sum = 0;
  for (size_t p = 0; p < scores.size(); ++p) {
    float weight = std::exp(scores[p] - maximum);
    sum += weight;
    for (int64_t i = 0; i < d; ++i)
      values[i] += weight * rows.values[p * d + i];
  }
  total = static_cast<float>(sum);
}

/// `sinks` [heads], or nothing where they are null.
Result<std::vector<float>> readSinks(const std::string &constraint,
                                     const TensorView *sinks, int64_t heads) {
  if (!sinks)
    return std::vector<float>();
  if (sinks->rank() != 1 || sinks->shape[0] != heads || !isFloat(sinks->type))
    return Status::error(constraint + ": sinks are " +
                         describe(sinks->type, sinks->shape) + ", not [" +
                         std::to_string(heads) + "] of float elements");
  return widen(*sinks);
}

/// Checks what kf.attention and kf.attention_partial, `op`, ask of their
/// operands alike.
Result<RowPlaces> readAttention(const char *op, const TensorView &q,
                                const CacheView &cache,
                                const CacheRows &cacheRows,
                                const AttentionOptions &options) {
  KF_RETURN_IF_ERROR(checkHeads(op, "q", q));
  const std::string name = op;
  int64_t heads = q.shape[1], d = q.shape[2], kvHeads = cache.spec.kvHeads;
  if (d != cache.spec.headDim)
    return Status::error(name + " C2: q has heads of " + std::to_string(d) +
                         ", the cache of " +
                         std::to_string(cache.spec.headDim));
  if (heads % kvHeads != 0)
    return Status::error(name + " C3: " + std::to_string(heads) +
                         " heads are no multiple of the cache's " +
                         std::to_string(kvHeads));
  constexpr const char *constraints[] = {"C4", "C8", "C9"};
  KF_ASSIGN_OR_RETURN(RowPlaces places,
                      readPlaces(op, constraints, cacheRows, q));
  KF_RETURN_IF_ERROR(checkLayer(op, "C5", options.layer, cache));
  if (options.window.chunked && options.window.size == 0)
    return Status::error(name + " C6: chunked needs a window");
  if (options.softcap && !(*options.softcap > 0))
    return Status::error(name + " C6: softcap is not positive");
  return places;
}

/// Positions [begin, end) that a row attends to; none where they are not less.
struct Seen {
  int64_t begin, end;
};

/// Those of a row at position `last`, of the first `limit` ones.
Seen seenFrom(int64_t last, int64_t limit, const AttentionOptions &options) {
  const int64_t end = std::min<int64_t>(last + 1, limit);
  return {end > 0 ? options.window.firstOf(last) : 0, end};
}

/// Part number `part` of `parts` of the pages with the positions `seen`.
Seen partOf(Seen seen, int64_t part, int64_t parts, int64_t page) {
  if (seen.begin >= seen.end)
    return seen;
  int64_t first = seen.begin / page, end = (seen.end + page - 1) / page;
  int64_t share = (end - first + parts - 1) / parts;
  int64_t begin = first + part * share;
  return {std::max(seen.begin, begin * page),
          std::min(seen.end, (begin + share) * page)};
}

} // namespace

std::vector<float> ropeFrequencies(const RopeOptions &options) {
  std::vector<float> frequencies(options.rotaryDim / 2);
  float dim = static_cast<float>(options.rotaryDim);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    float exponent = static_cast<float>(2 * i) / dim;
    // Rounded once: far positions multiply what another rounding would change.
    frequencies[i] = 1.0f / static_cast<float>(std::pow(
                                options.theta, static_cast<double>(exponent)));
    if (!options.scaling)
      continue;
    if (options.scaling->kind == RopeScaling::Kind::Linear)
      frequencies[i] /= static_cast<float>(options.scaling->factor);
    else
      frequencies[i] = scaleLlama3(*options.scaling, frequencies[i]);
  }
  return frequencies;
}

Result<Tensor> rope(const TensorView &x, const TensorView &positions,
                    const TensorView *factors, const RopeOptions &options) {
  KF_RETURN_IF_ERROR(checkHeads("kf.rope", "x", x));
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> rows,
                      readPerRow("kf.rope", "C2", "positions", positions, x));
  int64_t heads = x.shape[1], d = x.shape[2], rotary = options.rotaryDim;
  if (rotary <= 0 || rotary % 2 != 0 || rotary > d)
    return Status::error("kf.rope C3: rotary_dim is " + std::to_string(rotary) +
                         " for heads of " + std::to_string(d) +
                         "; an even number from 2 up to that is expected");
  if (!(options.theta > 0))
    return Status::error("kf.rope C4: theta is not positive");
  std::vector<float> frequencies = ropeFrequencies(options); // [rotary / 2]
  if (factors) {
    if (!isFloat(factors->type) || factors->shape != std::vector{rotary / 2})
      return Status::error("kf.rope C6: factors are " +
                           describe(factors->type, factors->shape) + ", not " +
                           std::to_string(rotary / 2) + " floats");
    KF_ASSIGN_OR_RETURN(std::vector<float> values, widen(*factors));
    for (int64_t i = 0; i < rotary / 2; ++i)
      frequencies[i] /= values[i];
  }
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, x.shape));
  widen(x, 0, x.count(), result.floats());
  bool half = options.style == RopeStyle::Half;
  const auto magnitude = static_cast<float>(options.magnitude);
  for (int64_t t = 0; t < x.shape[0]; ++t)
    for (int64_t head = 0; head < heads; ++head) {
      float *values = result.floats() + (t * heads + head) * d; // [D]
      for (int64_t i = 0; i < rotary / 2; ++i) {
        float angle = static_cast<float>(rows[t]) * frequencies[i];
        float cosine = std::cos(angle) * magnitude;
        float sine = std::sin(angle) * magnitude;
        float &a = values[half ? i : 2 * i];
        float &b = values[half ? i + rotary / 2 : 2 * i + 1];
        float rotated = a * cosine - b * sine;
        b = b * cosine + a * sine;
        a = rotated;
      }
    }
  return result;
}

Status kvAppend(const CacheView &cache, const TensorView &k,
                const TensorView &v, const CacheRows &rows, int64_t layer) {
  KF_RETURN_IF_ERROR(checkHeads("kf.kv_append", "k", k));
  if (k.shape != v.shape || !(k.type == v.type) ||
      k.shape[1] != cache.spec.kvHeads || k.shape[2] != cache.spec.headDim)
    return Status::error("kf.kv_append C1: k is " + describe(k.type, k.shape) +
                         " and v is " + describe(v.type, v.shape) +
                         " for a cache of " +
                         std::to_string(cache.spec.kvHeads) + " heads of " +
                         std::to_string(cache.spec.headDim));
  constexpr const char *constraints[] = {"C2", "C4", "C5"};
  Result<RowPlaces> places = readPlaces("kf.kv_append", constraints, rows, k);
  if (!places)
    return places.status();
  KF_RETURN_IF_ERROR(checkLayer("kf.kv_append", "C3", layer, cache));
  int64_t heads = cache.spec.kvHeads, d = cache.spec.headDim;
  std::vector<float> row(d);
  for (int64_t t = 0; t < k.shape[0]; ++t) {
    int64_t position = places->positions[t];
    if (position < 0 || position >= places->limit(cache))
      continue;
    Result<int64_t> slot = places->slot(cache, t, position);
    if (!slot)
      return slot.status().in("kf.kv_append C5");
    for (int64_t head = 0; head < heads; ++head) {
      widen(k, (t * heads + head) * d, d, row.data());
      cache.writeKey(layer, head, *slot, row.data());
      widen(v, (t * heads + head) * d, d, row.data());
      cache.writeValue(layer, head, *slot, row.data());
    }
  }
  return Status();
}

Result<Tensor> attention(const TensorView &q, const CacheView &cache,
                         const CacheRows &cacheRows,
                         const AttentionOptions &options,
                         const TensorView *sinks) {
  KF_ASSIGN_OR_RETURN(RowPlaces places, readAttention("kf.attention", q, cache,
                                                      cacheRows, options));
  int64_t rows = q.shape[0], heads = q.shape[1], d = q.shape[2];
  KF_ASSIGN_OR_RETURN(std::vector<float> sinkOf,
                      readSinks("kf.attention C10", sinks, heads));
  int64_t kvHeads = cache.spec.kvHeads;
  KF_ASSIGN_OR_RETURN(std::vector<float> queries, widen(q)); // [T, heads, D]
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, q.shape));
  int64_t group = heads / kvHeads, limit = places.limit(cache);
  // Neighbours of one sequence read what they attend to once.
  for (int64_t t = 0, next = 0; t < rows; t = next) {
    next = t + 1;
    while (next < rows && places.sequences[next] == places.sequences[t])
      ++next;
    std::vector<Seen> seen; // of rows [t, next)
    int64_t begin = limit, end = 0;
    for (int64_t row = t; row < next; ++row) {
      Seen own = seenFrom(places.positions[row], limit, options);
      seen.push_back(own);
      if (own.begin >= own.end)
        continue;
      begin = std::min(begin, own.begin);
      end = std::max(end, own.end);
    }
    // Of [begin, end); -1 for what no row attends to.
    std::vector<int64_t> slots(std::max<int64_t>(end - begin, 0), -1);
    for (const Seen &own : seen)
      for (int64_t position = own.begin; position < own.end; ++position) {
        if (slots[position - begin] >= 0)
          continue;
        Result<int64_t> slot = places.slot(cache, t, position);
        if (!slot)
          return slot.status().in("kf.attention C9");
        slots[position - begin] = *slot;
      }
    for (int64_t kvHead = 0; kvHead < kvHeads; ++kvHead) {
      HeadRows cached = readHead(cache, options.layer, kvHead, slots);
      for (int64_t row = t; row < next; ++row) {
        Seen own = seen[row - t];
        if (own.begin >= own.end)
          continue;
        for (int64_t h = kvHead * group; h < (kvHead + 1) * group; ++h)
          attendRow(queries.data() + (row * heads + h) * d, cached, d,
                    own.begin - begin, own.end - 1 - begin, options,
                    sinks ? &sinkOf[h] : nullptr,
                    result.floats() + (row * heads + h) * d);
      }
    }
  }
  return result;
}

Result<std::vector<Tensor>> attentionPartial(const TensorView &q,
                                             const CacheView &cache,
                                             const CacheRows &cacheRows,
                                             const AttentionOptions &options,
                                             int64_t splits) {
  constexpr const char *op = "kf.attention_partial";
  KF_ASSIGN_OR_RETURN(RowPlaces places,
                      readAttention(op, q, cache, cacheRows, options));
  constexpr int64_t mostSplits = 65536;
  if (splits < 1 || splits > mostSplits)
    return Status::error(std::string(op) + " C10: splits is " +
                         std::to_string(splits) + ", not in [1, " +
                         std::to_string(mostSplits) + "]");
  int64_t rows = q.shape[0], heads = q.shape[1], d = q.shape[2];
  KF_ASSIGN_OR_RETURN(std::vector<float> queries, widen(q)); // [T, heads, D]
  KF_ASSIGN_OR_RETURN(Tensor maxima,
                      Tensor::zeros(DataType::F32, {rows, heads, splits}));
  std::ranges::fill_n(maxima.floats(), rows * heads * splits,
                      -std::numeric_limits<float>::infinity());
  KF_ASSIGN_OR_RETURN(Tensor totals,
                      Tensor::zeros(DataType::F32, {rows, heads, splits}));
  KF_ASSIGN_OR_RETURN(Tensor values,
                      Tensor::zeros(DataType::F32, {rows, heads, splits, d}));
  int64_t group = heads / cache.spec.kvHeads, limit = places.limit(cache);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t split = 0; split < splits; ++split) {
      Seen seen = partOf(seenFrom(places.positions[t], limit, options), split,
                         splits, cache.spec.page);
      if (seen.begin >= seen.end)
        continue;
      std::vector<int64_t> slots;
      for (int64_t position = seen.begin; position < seen.end; ++position) {
        Result<int64_t> slot = places.slot(cache, t, position);
        if (!slot)
          return slot.status().in(std::string(op) + " C9");
        slots.push_back(*slot);
      }
      for (int64_t h = 0; h < heads; ++h) {
        HeadRows cached = readHead(cache, options.layer, h / group, slots);
        int64_t place = (t * heads + h) * splits + split;
        attendPart(queries.data() + (t * heads + h) * d, cached, d, options,
                   maxima.floats()[place], totals.floats()[place],
                   values.floats() + place * d);
      }
    }
  std::vector<Tensor> results;
  results.push_back(std::move(maxima));
  results.push_back(std::move(totals));
  results.push_back(std::move(values));
  return results;
}

Result<Tensor> attentionCombine(const TensorView &maxima,
                                const TensorView &totals,
                                const TensorView &values,
                                const TensorView *sinks) {
  if (values.rank() != 4 || !(values.type == DataType::F32))
    return Status::error("kf.attention_combine C1: values are " +
                         describe(values.type, values.shape) +
                         ", not [T, heads, splits, D] of f32");
  std::vector<int64_t> shape(values.shape.begin(), values.shape.end() - 1);
  for (const TensorView *part : {&maxima, &totals})
    if (part->shape != shape || !(part->type == DataType::F32))
      return Status::error("kf.attention_combine C2: maxima and totals are " +
                           describe(part->type, part->shape) +
                           " for values of " +
                           describe(values.type, values.shape));
  int64_t heads = values.shape[1], splits = values.shape[2],
          d = values.shape[3];
  KF_ASSIGN_OR_RETURN(std::vector<float> sinkOf,
                      readSinks("kf.attention_combine C4", sinks, heads));
  KF_ASSIGN_OR_RETURN(std::vector<float> largest, widen(maxima));
  KF_ASSIGN_OR_RETURN(std::vector<float> sums, widen(totals));
  KF_ASSIGN_OR_RETURN(std::vector<float> parts, widen(values));
  KF_ASSIGN_OR_RETURN(
      Tensor result,
      Tensor::zeros(DataType::F32, {values.shape[0], values.shape[1], d}));
  const float none = -std::numeric_limits<float>::infinity();
  for (int64_t row = 0; row < values.shape[0] * values.shape[1]; ++row) {
    float maximum = none;
    for (int64_t s = 0; s < splits; ++s) {
      float own = largest[row * splits + s];
      maximum = own > maximum || std::isnan(own) ? own : maximum;
      if (std::isnan(own))
        break;
    }
    if (maximum == none)
      continue;
    // One that is larger than the others leaves nothing of them.
    double total = sinks ? std::exp(double(sinkOf[row % heads]) - maximum) : 0;
    std::vector<float> weights;
    for (int64_t s = 0; s < splits; ++s) {
      weights.push_back(std::exp(largest[row * splits + s] - maximum));
      total += weights.back() * sums[row * splits + s];
    }
    for (int64_t s = 0; s < splits; ++s)
      for (int64_t i = 0; i < d; ++i)
        result.floats()[row * d + i] += static_cast<float>(
            weights[s] * parts[(row * splits + s) * d + i] / total);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// rotary_embedding
//===----------------------------------------------------------------------===//

Result<Tensor> rotate(const TensorView &x, const TensorView &cos,
                      const TensorView &sin, RopeStyle style) {
  std::vector<int64_t> shape = x.shape;
  if (x.rank() < 2 || !isFloat(x.type) || cos.rank() < 1 ||
      !isFloat(cos.type) || !isFloat(sin.type) || cos.shape != sin.shape ||
      cos.columns() > x.columns() / 2)
    return Status::error("kf.rotary_embedding C2: tables are " +
                         describe(cos.type, cos.shape) + " for " +
                         describe(x.type, x.shape));
  const int64_t half = cos.columns(), d = x.columns();
  shape.back() = half;
  KF_ASSIGN_OR_RETURN(Tensor cosines, broadcast(cos, shape));
  KF_ASSIGN_OR_RETURN(Tensor sines, broadcast(sin, shape));
  KF_ASSIGN_OR_RETURN(std::vector<float> c, widen(cosines.view()));
  KF_ASSIGN_OR_RETURN(std::vector<float> s, widen(sines.view()));
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, x.shape));
  widen(x, 0, x.count(), result.floats());
  for (int64_t row = 0; row < x.rows(); ++row)
    for (int64_t i = 0; i < half; ++i) {
      bool isHalf = style == RopeStyle::Half;
      float *values = result.floats() + row * d;
      float &a = values[isHalf ? i : 2 * i];
      float &b = values[isHalf ? i + half : 2 * i + 1];
      const float cosine = c[row * half + i], sine = s[row * half + i];
      const float first = a * cosine - b * sine;
      b = b * cosine + a * sine;
      a = first;
    }
  return result;
}

} // namespace kf::reference
