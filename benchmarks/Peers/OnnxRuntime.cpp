//===- OnnxRuntime.cpp - ONNX Runtime -------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library of its Python package comes without headers. Its C interface is
// one table of functions to which releases only append, so the few that are
// called here are named by their places in it.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/Peers/OnnxModel.h"
#include "benchmarks/Peers/Peer.h"
#include "runtime/core/BlockFormat.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <utility>

using namespace kf;
using namespace kf::bench;

namespace {

struct OrtStatus;
struct OrtEnv;
struct OrtSession;
struct OrtSessionOptions;
struct OrtMemoryInfo;
struct OrtValue;

/// What OrtGetApiBase() returns.
struct OrtApiBase {
  void *const *(*getApi)(uint32_t version);
  const char *(*versionString)();
};

/// Version 1 of the table has all of them.
constexpr uint32_t apiVersion = 1;
enum Place : size_t {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSessionFromArray = 8,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetIntraOpNumThreads = 24,
  kCreateTensorWithData = 49,
  kCreateCpuMemoryInfo = 69,
  kReleaseEnv = 92,
  kReleaseStatus = 93,
  kReleaseMemoryInfo = 94,
  kReleaseSession = 95,
  kReleaseValue = 96,
  kReleaseSessionOptions = 100
};

class Api {
public:
  explicit Api(void *const *table) : table(table) {}

  /// Calls a function that returns a status.
  template <typename... Arguments>
  Status call(Place place, Arguments... arguments) const {
    auto *failed = at<OrtStatus *(Arguments...)>(place)(arguments...);
    if (!failed)
      return Status();
    std::string message =
        at<const char *(const OrtStatus *)>(kGetErrorMessage)(failed);
    at<void(OrtStatus *)>(kReleaseStatus)(failed);
    std::ranges::replace(message, '\n', ' ');
    return Status::error(message);
  }
  template <typename Type> void release(Place place, Type *object) const {
    if (object)
      at<void(Type *)>(place)(object);
  }

private:
  template <typename Function> Function *at(Place place) const {
    return reinterpret_cast<Function *>(table[place]);
  }

  void *const *table;
};

/// A model with its inputs and outputs in place.
class Session : public Contender {
public:
  explicit Session(const Api &api) : api(api) {}
  ~Session() override {
    for (OrtValue *value : inputs)
      api.release(kReleaseValue, value);
    for (OrtValue *value : outputs)
      api.release(kReleaseValue, value);
    api.release(kReleaseSession, session);
    api.release(kReleaseMemoryInfo, memory);
    api.release(kReleaseSessionOptions, options);
  }
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  /// `data` is that of the inputs, in their order.
  Status open(OrtEnv *env, const OnnxModel &model, int threads,
              std::vector<std::vector<float>> data) {
    const std::string bytes = model.serialize();
    KF_RETURN_IF_ERROR(api.call(kCreateSessionOptions, &options));
    KF_RETURN_IF_ERROR(api.call(kSetIntraOpNumThreads, options, threads));
    KF_RETURN_IF_ERROR(
        api.call(kCreateSessionFromArray, env,
                 static_cast<const void *>(bytes.data()), bytes.size(),
                 static_cast<const OrtSessionOptions *>(options), &session));
    constexpr int arena = 1, defaultMemory = 0;
    KF_RETURN_IF_ERROR(
        api.call(kCreateCpuMemoryInfo, arena, defaultMemory, &memory));
    inputData = std::move(data);
    for (size_t i = 0; i < inputData.size(); ++i)
      KF_RETURN_IF_ERROR(
          bind(model.inputValues()[i], inputData[i], inputNames, inputs));
    const OnnxModel::Value &output = model.outputValues().front();
    int64_t count = 1;
    for (int64_t dim : output.shape)
      count *= dim;
    outputData.resize(count);
    return bind(output, outputData, outputNames, outputs);
  }

  Status run() override {
    return api.call(kRun, session, static_cast<const void *>(nullptr),
                    inputNamePointers(), inputs.data(), inputs.size(),
                    outputNamePointers(), outputs.size(), outputs.data());
  }
  Result<std::vector<float>> result() override { return outputData; }

private:
  Status bind(const OnnxModel::Value &value, std::vector<float> &data,
              std::vector<std::string> &names,
              std::vector<OrtValue *> &values) {
    OrtValue *made = nullptr;
    KF_RETURN_IF_ERROR(api.call(
        kCreateTensorWithData, static_cast<const OrtMemoryInfo *>(memory),
        static_cast<void *>(data.data()), data.size() * sizeof(float),
        value.shape.data(), value.shape.size(), static_cast<int>(value.type),
        &made));
    names.push_back(value.name);
    values.push_back(made);
    return Status();
  }
  const char *const *inputNamePointers() {
    return pointersTo(inputNames, inputPointers);
  }
  const char *const *outputNamePointers() {
    return pointersTo(outputNames, outputPointers);
  }
  static const char *const *pointersTo(const std::vector<std::string> &names,
                                       std::vector<const char *> &pointers) {
    if (pointers.empty())
      for (const std::string &name : names)
        pointers.push_back(name.c_str());
    return pointers.data();
  }

  const Api &api;
  OrtSessionOptions *options = nullptr;
  OrtSession *session = nullptr;
  OrtMemoryInfo *memory = nullptr;
  std::vector<std::vector<float>> inputData;
  std::vector<float> outputData;
  std::vector<std::string> inputNames, outputNames;
  std::vector<const char *> inputPointers, outputPointers;
  std::vector<OrtValue *> inputs, outputs;
};

/// MatMulNBits' constants: codes in the order of the elements, 4 bits with the
/// earlier one in the low half, and a scale a block. A code's zero is half of
/// their range, as it is in q4_0 and, once the sign is added to, in q8_0.
void addBlocks(OnnxModel &model, const HostTensor &weights,
               const BlockFormat &format) {
  const int64_t blocks = weights.elementCount() / format.elements,
                inputs = weights.shape[1], outputs = weights.shape[0];
  const int bits = format.codeBits(), blobBytes = format.elements * bits / 8;
  std::vector<uint8_t> codes(blocks * blobBytes);
  std::vector<float> scales(blocks);
  for (int64_t i = 0; i < blocks; ++i) {
    const uint8_t *block = weights.data<uint8_t>() + i * format.bytes;
    scales[i] = halfToFloat(static_cast<uint16_t>(
        block[format.scaleOffset] | block[format.scaleOffset + 1] << 8));
    for (int element = 0; element < format.elements; ++element) {
      int code = format.codeAt(block, element);
      if (format.isSigned)
        code = (code + (1 << (bits - 1))) & ((1 << bits) - 1);
      codes[i * blobBytes + element * bits / 8] |= code << element * bits % 8;
    }
  }
  const int64_t perRow = inputs / format.elements;
  model.addConstant({"w", OnnxType::UInt8, {outputs, perRow, blobBytes}},
                    std::as_bytes(std::span(codes)));
  model.addConstant({"scales", OnnxType::Float, {outputs, perRow}},
                    std::as_bytes(std::span(scales)));
  model.addAttribute("K", inputs);
  model.addAttribute("N", outputs);
  model.addAttribute("bits", static_cast<int64_t>(bits));
  model.addAttribute("block_size", static_cast<int64_t>(format.elements));
  // x may be rounded to 8 bits, as ours is.
  model.addAttribute("accuracy_level", static_cast<int64_t>(4));
}

class OnnxRuntime : public Peer {
public:
  OnnxRuntime(std::string version, void *const *table)
      : version(std::move(version)), api(table) {}
  ~OnnxRuntime() override { api.release(kReleaseEnv, env); }

  Status open() {
    constexpr int errorsAlone = 3;
    return api.call(kCreateEnv, errorsAlone, "kf", &env);
  }

  std::string name() const override { return "ONNX Runtime"; }
  std::string description() const override { return version; }

  Result<std::unique_ptr<Contender>> product(const Product &product) override {
    const DataType type = product.weights.type;
    const int64_t m = product.rows, n = product.outputs, k = product.inputs;
    const bool isPlain = type == DataType::F32;
    if (!isPlain && type != DataType::Q4_0 && type != DataType::Q8_0)
      return std::unique_ptr<Contender>();
    OnnxModel model(isPlain ? "MatMul" : "MatMulNBits",
                    isPlain ? "" : "com.microsoft", 17);
    model.addInput({"x", OnnxType::Float, {m, k}});
    model.addOutput({"y", OnnxType::Float, {m, n}});
    if (isPlain) {
      std::vector<float> transposed(n * k);
      for (int64_t row = 0; row < n; ++row)
        for (int64_t column = 0; column < k; ++column)
          transposed[column * n + row] =
              product.weights.data<float>()[row * k + column];
      model.addConstant({"w", OnnxType::Float, {k, n}},
                        std::as_bytes(std::span(transposed)));
    } else {
      addBlocks(model, product.weights, *findBlockFormat(type));
    }
    return copiesOf(product.copies,
                    [&] { return open(model, product.threads, {product.x}); });
  }

  Result<std::unique_ptr<Contender>>
  rows(const RowOperation &operation) override {
    using Kind = RowOperation::Kind;
    const int64_t rows = operation.rows, columns = operation.columns;
    const bool isRms = operation.kind == Kind::RmsNorm,
               isSoftmax = operation.kind == Kind::Softmax;
    OnnxModel model(isRms       ? "SimplifiedLayerNormalization"
                    : isSoftmax ? "Softmax"
                                : "LayerNormalization",
                    "", 17);
    model.addInput({"x", OnnxType::Float, {rows, columns}});
    model.addOutput({"y", OnnxType::Float, {rows, columns}});
    model.addAttribute("axis", static_cast<int64_t>(-1));
    if (!isSoftmax) {
      model.addConstant({"w", OnnxType::Float, {columns}},
                        std::as_bytes(std::span(operation.weight)));
      if (!isRms)
        model.addConstant({"b", OnnxType::Float, {columns}},
                          std::as_bytes(std::span(operation.bias)));
      model.addAttribute("epsilon", operation.epsilon);
    }
    return open(model, 1, {operation.x});
  }

private:
  Result<std::unique_ptr<Contender>>
  open(const OnnxModel &model, int threads,
       std::vector<std::vector<float>> data) {
    auto session = std::make_unique<Session>(api);
    KF_RETURN_IF_ERROR(session->open(env, model, threads, std::move(data)));
    return std::unique_ptr<Contender>(std::move(session));
  }

  std::string version;
  Api api;
  OrtEnv *env = nullptr;
};

} // namespace

std::unique_ptr<Peer> bench::openOnnxRuntime() {
  const char *path = std::getenv("KF_ONNXRUNTIME");
  void *library =
      ::dlopen(path ? path : "libonnxruntime.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return nullptr;
  auto *base = reinterpret_cast<const OrtApiBase *(*)()>(
      ::dlsym(library, "OrtGetApiBase"));
  if (!base)
    return nullptr;
  void *const *table = base()->getApi(apiVersion);
  if (!table)
    return nullptr;
  auto runtime = std::make_unique<OnnxRuntime>(base()->versionString(), table);
  if (!runtime->open().ok())
    return nullptr;
  return runtime;
}
