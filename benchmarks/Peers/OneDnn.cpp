//===- OneDnn.cpp - oneDNN ------------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products read weights in the layout that the library asks for, which they are
// brought into beforehand, as ours are.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/Peers/Peer.h"

#include <algorithm>
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.hpp>

using namespace kf;
using namespace kf::bench;

namespace {

using Type = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;
using Description = dnnl::memory::desc;

/// A primitive with its arguments.
class Primitive : public Contender {
public:
  Primitive(dnnl::stream stream, dnnl::primitive primitive,
            std::unordered_map<int, dnnl::memory> arguments)
      : stream(std::move(stream)), primitive(std::move(primitive)),
        arguments(std::move(arguments)) {}

  Status run() override try {
    primitive.execute(stream, arguments);
    stream.wait();
    return Status();
  } catch (const dnnl::error &error) {
    return Status::error(error.what());
  }

  Result<std::vector<float>> result() override {
    const dnnl::memory &y = arguments.at(DNNL_ARG_DST);
    auto *floats = static_cast<const float *>(y.get_data_handle());
    return std::vector<float>(floats,
                              floats + y.get_desc().get_size() / sizeof(float));
  }

private:
  dnnl::stream stream;
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;
};

class OneDnn : public Peer {
public:
  std::string name() const override { return "oneDNN"; }
  std::string description() const override {
    const dnnl_version_t *version = dnnl_version();
    return std::to_string(version->major) + "." +
           std::to_string(version->minor) + "." +
           std::to_string(version->patch) + ", instruction set " +
           std::to_string(static_cast<int>(dnnl::get_effective_cpu_isa()));
  }

  Result<std::unique_ptr<Contender>> product(const Product &product) override {
    const DataType type = product.weights.type;
    if (type != DataType::F32 && type != DataType::BF16)
      return std::unique_ptr<Contender>();
    useThreads(product.threads);
    return copiesOf(product.copies, [&] { return makeProduct(product); });
  }

  Result<std::unique_ptr<Contender>>
  rows(const RowOperation &operation) override try {
    using Kind = RowOperation::Kind;
    if (operation.kind == Kind::RmsNorm)
      return std::unique_ptr<Contender>();
    useThreads(1);
    const Description x({operation.rows, operation.columns}, Type::f32,
                        Tag::ab),
        column({operation.columns}, Type::f32, Tag::a);
    std::unordered_map<int, dnnl::memory> arguments = {
        {DNNL_ARG_SRC, filled(x, Type::f32, Tag::ab, operation.x.data())},
        {DNNL_ARG_DST, dnnl::memory(x, engine)}};
    if (operation.kind == Kind::LayerNorm) {
      arguments[DNNL_ARG_SCALE] =
          filled(column, Type::f32, Tag::a, operation.weight.data());
      arguments[DNNL_ARG_SHIFT] =
          filled(column, Type::f32, Tag::a, operation.bias.data());
    }
    return std::unique_ptr<Contender>(new Primitive(
        stream,
        operation.kind == Kind::Softmax ? softmaxOf(x)
                                        : layerNormOf(x, operation.epsilon),
        std::move(arguments)));
  } catch (const dnnl::error &error) {
    return Status::error(error.what());
  }

private:
  dnnl::primitive softmaxOf(const Description &x) {
    using Operation = dnnl::softmax_forward;
#if DNNL_VERSION_MAJOR < 3
    return Operation(
        describe<Operation>(dnnl::prop_kind::forward_inference, x, 1));
#else
    return Operation(describe<Operation>(dnnl::prop_kind::forward_inference,
                                         dnnl::algorithm::softmax_accurate, x,
                                         x, 1));
#endif
  }

  dnnl::primitive layerNormOf(const Description &x, float epsilon) {
    using Operation = dnnl::layer_normalization_forward;
    const auto flags = dnnl::normalization_flags::use_scale |
                       dnnl::normalization_flags::use_shift;
#if DNNL_VERSION_MAJOR < 3
    return Operation(describe<Operation>(dnnl::prop_kind::forward_inference, x,
                                         epsilon, flags));
#else
    return Operation(describe<Operation>(dnnl::prop_kind::forward_inference, x,
                                         x, epsilon, flags));
#endif
  }

  /// oneDNN has the threads of its OpenMP library, whichever that is.
  static void useThreads(int threads) {
    using Set = void(int);
    if (auto *set = reinterpret_cast<Set *>(
            ::dlsym(RTLD_DEFAULT, "omp_set_num_threads")))
      set(threads);
  }

  dnnl::memory filled(const Description &as, Type type, Tag tag,
                      const void *values) {
    Description plain(as.dims(), type, tag);
    dnnl::memory memory(as, engine);
    dnnl::memory source(plain, engine, const_cast<void *>(values));
    dnnl::reorder(source, memory).execute(stream, source, memory);
    stream.wait();
    return memory;
  }

  Result<std::unique_ptr<Contender>> makeProduct(const Product &product) try {
    const Type type =
        product.weights.type == DataType::F32 ? Type::f32 : Type::bf16;
    const int64_t m = product.rows, n = product.outputs, k = product.inputs;
    const Description x({m, k}, type, Tag::ab), w({k, n}, type, Tag::any),
        y({m, n}, Type::f32, Tag::ab);
    const auto chosen = describe<dnnl::matmul>(x, w, y);
    return std::unique_ptr<Contender>(new Primitive(
        stream, dnnl::matmul(chosen),
        {{DNNL_ARG_SRC,
          filled(chosen.src_desc(), Type::f32, Tag::ab, product.x.data())},
         {DNNL_ARG_WEIGHTS, filled(chosen.weights_desc(), type, Tag::ba,
                                   product.weights.bytes.data())},
         {DNNL_ARG_DST, dnnl::memory(chosen.dst_desc(), engine)}}));
  } catch (const dnnl::error &error) {
    return Status::error(error.what());
  }

  /// The library's choice for the operation; versions from 3 on have no
  /// descriptor of their own for operations.
  template <typename Operation, typename... Arguments>
  typename Operation::primitive_desc describe(const Arguments &...arguments) {
#if DNNL_VERSION_MAJOR < 3
    return typename Operation::primitive_desc(
        typename Operation::desc(arguments...), engine);
#else
    return typename Operation::primitive_desc(engine, arguments...);
#endif
  }

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

} // namespace

std::unique_ptr<Peer> bench::openOneDnn() try {
  return std::make_unique<OneDnn>();
} catch (const dnnl::error &) {
  return nullptr;
}
