//===- Ggml.cpp - ggml, which llama.cpp computes with ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights lie in the buffer type that llama.cpp would choose for them: the
// first of the CPU backend's extra ones that can compute the operation, which
// rearrange blocks.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/Peers/Peer.h"

#include <cmath>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <optional>

using namespace kf;
using namespace kf::bench;

namespace {

template <auto release> struct Releasing {
  template <typename Type> void operator()(Type *object) const {
    release(object);
  }
};
using Context = std::unique_ptr<ggml_context, Releasing<ggml_free>>;
using BackendBuffer =
    std::unique_ptr<ggml_backend_buffer, Releasing<ggml_backend_buffer_free>>;
using Backend = std::unique_ptr<ggml_backend, Releasing<ggml_backend_free>>;
using Threads =
    std::unique_ptr<ggml_threadpool, Releasing<ggml_threadpool_free>>;

std::optional<ggml_type> typeFor(DataType type) {
  switch (type) {
  case DataType::F32:
    return GGML_TYPE_F32;
  case DataType::F16:
    return GGML_TYPE_F16;
  case DataType::BF16:
    return GGML_TYPE_BF16;
  case DataType::Q8_0:
    return GGML_TYPE_Q8_0;
  case DataType::Q4_0:
    return GGML_TYPE_Q4_0;
  case DataType::Q4_K:
    return GGML_TYPE_Q4_K;
  case DataType::Q6_K:
    return GGML_TYPE_Q6_K;
  default:
    return std::nullopt;
  }
}

/// Tensors without memory of their own.
Context makeContext() {
  return Context(ggml_init(
      {.mem_size = 16 * ggml_tensor_overhead() + ggml_graph_overhead(),
       .mem_buffer = nullptr,
       .no_alloc = true}));
}

/// Where llama.cpp would put `weight` of the operation `result`.
ggml_backend_buffer_type_t bufferTypeFor(ggml_backend_dev_t device,
                                         ggml_tensor *weight,
                                         ggml_tensor *result) {
  auto *extra = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(
      ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device),
                                        "ggml_backend_dev_get_extra_bufts"));
  ggml_backend_buffer_type_t *types = extra ? extra(device) : nullptr;
  for (; types && *types; ++types) {
    // Operations are asked for with the weight in a buffer of the type.
    BackendBuffer empty(ggml_backend_buft_alloc_buffer(*types, 0));
    weight->buffer = empty.get();
    const bool supported = ggml_backend_dev_supports_op(device, result);
    weight->buffer = nullptr;
    if (supported)
      return *types;
  }
  return ggml_backend_dev_buffer_type(device);
}

/// A graph with its tensors in place.
class Graph : public Contender {
public:
  explicit Graph(int threads)
      : backend(ggml_backend_cpu_init()), context(makeContext()),
        weightContext(makeContext()) {
    ggml_backend_cpu_set_n_threads(backend.get(), threads);
    if (threads > 1) {
      ggml_threadpool_params parameters =
          ggml_threadpool_params_default(threads);
      pool.reset(ggml_threadpool_new(&parameters));
      ggml_backend_cpu_set_threadpool(backend.get(), pool.get());
    }
  }
  ~Graph() override { backend.reset(); } // before its threads

  ggml_tensor *matrix(ggml_type type, int64_t columns, int64_t rows) {
    return ggml_new_tensor_2d(context.get(), type, columns, rows);
  }
  ggml_tensor *weightMatrix(ggml_type type, int64_t columns, int64_t rows) {
    return ggml_new_tensor_2d(weightContext.get(), type, columns, rows);
  }
  ggml_context *get() { return context.get(); }

  /// Places all tensors; `of` is what the graph computes.
  Status place(ggml_tensor *of, ggml_tensor *weight) {
    ggml_backend_dev_t device = ggml_backend_get_device(backend.get());
    last = of;
    if (weight)
      weights.reset(ggml_backend_alloc_ctx_tensors_from_buft(
          weightContext.get(), bufferTypeFor(device, weight, of)));
    tensors.reset(ggml_backend_alloc_ctx_tensors(context.get(), backend.get()));
    if (!tensors || (weight && !weights))
      return Status::outOfMemory();
    graph = ggml_new_graph(context.get());
    ggml_build_forward_expand(graph, of);
    return Status();
  }

  Status run() override {
    if (ggml_backend_graph_compute(backend.get(), graph) != GGML_STATUS_SUCCESS)
      return Status::error("the graph failed");
    return Status();
  }
  Result<std::vector<float>> result() override {
    std::vector<float> values(ggml_nelements(last));
    ggml_backend_tensor_get(last, values.data(), 0, ggml_nbytes(last));
    return values;
  }

private:
  Threads pool;
  Backend backend;
  Context context, weightContext;
  BackendBuffer tensors, weights;
  ggml_cgraph *graph = nullptr;
  ggml_tensor *last = nullptr;
};

void set(ggml_tensor *tensor, const void *data) {
  ggml_backend_tensor_set(tensor, data, 0, ggml_nbytes(tensor));
}

class Ggml : public Peer {
public:
  std::string name() const override { return "ggml"; }
  std::string description() const override {
    return std::string("ggml ") + ggml_version() + ", commit " + ggml_commit();
  }

  Result<std::unique_ptr<Contender>> product(const Product &product) override {
    const std::optional<ggml_type> type = typeFor(product.weights.type);
    if (!type)
      return std::unique_ptr<Contender>();
    return copiesOf(
        product.copies, [&]() -> Result<std::unique_ptr<Contender>> {
          auto graph = std::make_unique<Graph>(product.threads);
          ggml_tensor *w =
              graph->weightMatrix(*type, product.inputs, product.outputs);
          ggml_tensor *x =
              graph->matrix(GGML_TYPE_F32, product.inputs, product.rows);
          KF_RETURN_IF_ERROR(graph->place(ggml_mul_mat(graph->get(), w, x), w));
          set(w, product.weights.bytes.data());
          set(x, product.x.data());
          return std::unique_ptr<Contender>(std::move(graph));
        });
  }

  Result<std::unique_ptr<Contender>>
  attention(const Attention &attention) override {
    const std::optional<ggml_type> type = typeFor(attention.cacheType);
    if (!type)
      return std::unique_ptr<Contender>();
    return copiesOf(attention.copies,
                    [&] { return makeAttention(attention, *type); });
  }

  Result<std::unique_ptr<Contender>>
  rows(const RowOperation &operation) override {
    using Kind = RowOperation::Kind;
    auto graph = std::make_unique<Graph>(1);
    ggml_context *context = graph->get();
    ggml_tensor *x =
        graph->matrix(GGML_TYPE_F32, operation.columns, operation.rows);
    ggml_tensor *weight = nullptr, *bias = nullptr, *y = nullptr;
    if (operation.kind == Kind::Softmax) {
      y = ggml_soft_max(context, x);
    } else {
      weight = graph->matrix(GGML_TYPE_F32, operation.columns, 1);
      y = operation.kind == Kind::RmsNorm
              ? ggml_rms_norm(context, x, operation.epsilon)
              : ggml_norm(context, x, operation.epsilon);
      y = ggml_mul(context, y, weight);
    }
    if (operation.kind == Kind::LayerNorm) {
      bias = graph->matrix(GGML_TYPE_F32, operation.columns, 1);
      y = ggml_add(context, y, bias);
    }
    KF_RETURN_IF_ERROR(graph->place(y, nullptr));
    set(x, operation.x.data());
    if (weight)
      set(weight, operation.weight.data());
    if (bias)
      set(bias, operation.bias.data());
    return std::unique_ptr<Contender>(std::move(graph));
  }

private:
  /// Its cache lies as llama.cpp's: a position's heads side by side.
  static Result<std::unique_ptr<Contender>>
  makeAttention(const Attention &attention, ggml_type type) {
    const int64_t positions = attention.positions(), rows = attention.rows;
    auto graph = std::make_unique<Graph>(attention.threads);
    ggml_context *context = graph->get();
    auto tensor = [&](ggml_type of, int64_t heads, int64_t count) {
      return ggml_new_tensor_3d(context, of, attention.headDim, heads, count);
    };
    // [columns, heads, rows] as [columns, rows, heads]
    auto byHead = [&](ggml_tensor *of) {
      return ggml_permute(context, of, 0, 2, 1, 3);
    };
    ggml_tensor *q = tensor(GGML_TYPE_F32, attention.heads, rows),
                *k = tensor(type, attention.kvHeads, positions),
                *v = tensor(type, attention.kvHeads, positions),
                *mask = graph->matrix(GGML_TYPE_F16, positions, rows);
    KF_RETURN_IF_ERROR(graph->place(
        ggml_flash_attn_ext(context, byHead(q), byHead(k), byHead(v), mask,
                            attention.scale(), 0, 0),
        nullptr));
    set(q, attention.q.data());
    auto setNarrow = [&](ggml_tensor *to, const std::vector<float> &from) {
      std::vector<std::byte> narrow(ggml_nbytes(to));
      KF_RETURN_IF_ERROR(convertFromFloat(attention.cacheType, from.data(),
                                          static_cast<int64_t>(from.size()),
                                          narrow.data()));
      set(to, narrow.data());
      return Status();
    };
    KF_RETURN_IF_ERROR(setNarrow(k, attention.k));
    KF_RETURN_IF_ERROR(setNarrow(v, attention.v));
    const uint16_t hidden = floatToHalf(-INFINITY);
    std::vector<uint16_t> hides(positions * rows, 0);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t at = attention.past + row + 1; at < positions; ++at)
        hides[row * positions + at] = hidden;
    set(mask, hides.data());
    return std::unique_ptr<Contender>(std::move(graph));
  }
};

} // namespace

std::unique_ptr<Peer> bench::openGgml() { return std::make_unique<Ggml>(); }
