//===- Program.cpp - A function of kf ops as a contender ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "benchmarks/Program.h"

#include "benchmarks/Operations.h"
#include "kf/Pipelines/Compiler.h"
#include "kf/Pipelines/Registration.h"
#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/engine/ProgramRunner.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <algorithm>

using namespace kf;
using namespace kf::bench;

namespace {

/// Weights of a copy, which go away when they are packed.
class OwnWeights : public WeightSource {
public:
  explicit OwnWeights(std::map<std::string, HostTensor> tensors)
      : tensors(std::move(tensors)) {}

  Result<TensorView> find(const std::string &name) const override {
    auto found = tensors.find(name);
    if (found == tensors.end() || found->second.bytes.empty())
      return Status::error("there is no weight '" + name + "'");
    const HostTensor &tensor = found->second;
    return TensorView{tensor.type, tensor.shape, tensor.bytes.data(),
                      tensor.bytes.size()};
  }
  void release(const std::string &name) const override {
    tensors[name].bytes = {};
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto &entry : tensors)
      all.push_back(entry.first);
    return all;
  }

private:
  mutable std::map<std::string, HostTensor> tensors;
};

Result<Executable> compile(const std::string &text, int threads) {
  mlir::DialectRegistry registry;
  mlir::kf::registerDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return Status::error("cannot parse the program: " + text);
  mlir::kf::CompileOptions options;
  options.workers = threads;
  auto executable = mlir::kf::compile(*module, options);
  if (!executable)
    return Status::error(llvm::toString(executable.takeError()));
  return std::move(*executable);
}

class Program : public Contender {
public:
  static Result<std::unique_ptr<Program>>
  create(const ProgramText &text,
         const std::map<std::string, HostTensor> &weights,
         const ProgramOptions &options) {
    std::unique_ptr<Program> program(new Program);
    CpuDeviceOptions device;
    device.threads = options.threads;
    KF_ASSIGN_OR_RETURN(program->device, createCpuDevice(device));
    KF_ASSIGN_OR_RETURN(Executable executable,
                        compile(text.text, options.threads));
    KF_ASSIGN_OR_RETURN(program->loaded, program->device->load(executable));
    std::unique_ptr<LoadedProgram> before;
    if (!options.before.text.empty()) {
      KF_ASSIGN_OR_RETURN(Executable first,
                          compile(options.before.text, options.threads));
      KF_ASSIGN_OR_RETURN(before, program->device->load(first));
    }
    int64_t pages = 1;
    for (const CacheSpec &cache : executable.caches)
      pages = std::max(pages, (options.context + cache.page - 1) / cache.page);
    for (int64_t i = 0; i < options.copies; ++i) {
      auto copy = std::make_unique<Copy>(*program->device, weights, pages);
      if (before) {
        KF_ASSIGN_OR_RETURN(auto runner, program->runnerOf(*before, *copy));
        KF_RETURN_IF_ERROR(runner->run(options.before.inputs).status());
      }
      KF_ASSIGN_OR_RETURN(copy->runner,
                          program->runnerOf(*program->loaded, *copy));
      KF_ASSIGN_OR_RETURN(copy->sizes, copy->runner->sizesOf(text.inputs));
      for (size_t input = 0; input < text.inputs.size(); ++input)
        KF_RETURN_IF_ERROR(
            copy->runner->write(input, text.inputs[input].bytes.data(),
                                text.inputs[input].bytes.size()));
      program->copies.push_back(std::move(copy));
    }
    return program;
  }

  Status run() override {
    last = (last + 1) % copies.size();
    return copies[last]->runner->execute(copies[last]->sizes);
  }

  Result<std::vector<float>> result() override {
    const TensorSpec &spec = loaded->program().outputs.front();
    int64_t count = 1;
    for (int64_t dim : spec.shape)
      count *= dim;
    KF_ASSIGN_OR_RETURN(const void *data, copies[last]->runner->read(
                                              0, 0, count * sizeof(float)));
    auto *floats = static_cast<const float *>(data);
    return std::vector<float>(floats, floats + count);
  }

private:
  struct Copy {
    Copy(Device &device, const std::map<std::string, HostTensor> &tensors,
         int64_t pages)
        : source(tensors), weights(device, &source), cache(device, pages) {}
    OwnWeights source;
    WeightStore weights;
    KVCache cache;
    std::unique_ptr<ProgramRunner> runner;
    StepSizes sizes = StepSizes(1);
  };

  Program() = default;

  Result<std::unique_ptr<ProgramRunner>> runnerOf(LoadedProgram &program,
                                                  Copy &copy) {
    return ProgramRunner::create(program, *device, copy.weights, copy.cache);
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<LoadedProgram> loaded;
  std::vector<std::unique_ptr<Copy>> copies;
  size_t last = 0;
};

/// "tensor<2x3xf32>"
std::string typeText(const std::vector<int64_t> &shape, DataType type) {
  std::string text = "tensor<";
  for (int64_t dim : shape)
    text += std::to_string(dim) + "x";
  const std::string element(nameOf(type));
  return text + (isBlock(type) ? "!kf.quant<" + element + ">" : element) + ">";
}

HostTensor tensorOf(const std::vector<float> &values,
                    std::vector<int64_t> shape) {
  HostTensor tensor = HostTensor::zeros(DataType::F32, std::move(shape)).take();
  std::ranges::copy(values, tensor.data<float>());
  return tensor;
}

} // namespace

Result<std::unique_ptr<Contender>>
bench::compileProgram(const ProgramText &program,
                      const std::map<std::string, HostTensor> &weights,
                      const ProgramOptions &options) {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Contender> made,
                      Program::create(program, weights, options));
  return made;
}

Result<std::unique_ptr<Contender>>
bench::compileProduct(const Product &product) {
  const std::string x = typeText({product.rows, product.inputs}, DataType::F32),
                    y = typeText({product.rows, product.outputs},
                                 DataType::F32),
                    w = typeText({product.outputs, product.inputs},
                                 product.weights.type);
  ProgramOptions options;
  options.threads = product.threads;
  options.copies = product.copies;
  return compileProgram({"func.func @product(%x: " + x + ") -> " + y +
                             " {\n  %w = kf.weight [\"w\"] : " + w +
                             "\n  %y = kf.matmul %x, %w : " + x + ", " + w +
                             "\n  return %y : " + y + "\n}\n",
                         {tensorOf(product.x, {product.rows, product.inputs})}},
                        {{"w", product.weights}}, options);
}

Result<std::unique_ptr<Contender>>
bench::compileRows(const RowOperation &operation) {
  using Kind = RowOperation::Kind;
  const int64_t columns = operation.columns;
  const std::string x = typeText({operation.rows, columns}, DataType::F32),
                    w = typeText({columns}, DataType::F32);
  std::map<std::string, HostTensor> weights;
  std::string body;
  auto weight = [&](const char *name, const std::vector<float> &values) {
    weights.emplace(name, tensorOf(values, {columns}));
    body += std::string("  %") + name + " = kf.weight [\"" + name +
            "\"] : " + w + "\n";
  };
  const std::string epsilon = "eps(" + std::to_string(operation.epsilon) + ")";
  switch (operation.kind) {
  case Kind::RmsNorm:
    weight("w", operation.weight);
    body += "  %y = kf.rms_norm %x, %w " + epsilon + " : " + x + ", " + w;
    break;
  case Kind::LayerNorm:
    weight("w", operation.weight);
    weight("b", operation.bias);
    body += "  %y = kf.layer_norm %x, %w bias(%b) " + epsilon + " : " + x +
            ", " + w + ", " + w;
    break;
  case Kind::Softmax:
    body += "  %y = kf.softmax %x : " + x;
    break;
  }
  return compileProgram({"func.func @rows(%x: " + x + ") -> " + x + " {\n" +
                             body + "\n  return %y : " + x + "\n}\n",
                         {tensorOf(operation.x, {operation.rows, columns})}},
                        weights, {});
}

Result<std::unique_ptr<Contender>>
bench::compileAttention(const Attention &attention) {
  const int64_t positions = attention.positions(), rows = attention.rows,
                kvHeads = attention.kvHeads, headDim = attention.headDim;
  const std::vector<int64_t> all = {positions, kvHeads, headDim},
                             queries = {rows, attention.heads, headDim},
                             // As many pages as there could be.
      table = {1, positions / 16 + 1};
  auto counted = [](std::vector<int64_t> shape, int64_t first, int64_t step) {
    HostTensor tensor = HostTensor::zeros(DataType::I32, shape).take();
    for (int64_t i = 0; i < tensor.elementCount(); ++i)
      tensor.data<int32_t>()[i] = static_cast<int32_t>(first + i * step);
    return tensor;
  };
  const std::string cache =
      "!kf.kv_cache<layers = 1, kv_heads = " + std::to_string(kvHeads) +
      ", head_dim = " + std::to_string(headDim) +
      ", type = " + std::string(nameOf(attention.cacheType)) + ">";
  // What both functions take: positions, sequences, page table and cache.
  auto common = [&](int64_t count) {
    const std::string type = typeText({count}, DataType::I32);
    return "%p: " + type + ", %s: " + type +
           ", %t: " + typeText(table, DataType::I32) + ", %c: " + cache;
  };
  auto types = [&](int64_t count) {
    return typeText({count}, DataType::I32) + ", " +
           typeText(table, DataType::I32);
  };
  const std::string kv = typeText(all, DataType::F32),
                    q = typeText(queries, DataType::F32);

  ProgramOptions options;
  options.threads = attention.threads;
  options.copies = attention.copies;
  options.context = positions;
  options.before.text =
      "func.func @fill(%k: " + kv + ", %v: " + kv + ", " + common(positions) +
      ") -> " + kv + " {\n  kf.kv_append %c, %k, %v, %p, %s, %t " +
      "{layer = 0 : i64} : " + cache + ", " + kv + ", " + types(positions) +
      "\n  %y = kf.copy %k : " + kv + "\n  return %y : " + kv + "\n}\n";
  options.before.inputs = {tensorOf(attention.k, all),
                           tensorOf(attention.v, all),
                           counted({positions}, 0, 1),
                           counted({positions}, 0, 0), counted(table, 0, 1)};
  return compileProgram(
      {"func.func @attend(%q: " + q + ", " + common(rows) + ") -> " + q +
           " {\n  %y = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, "
           "scale = " +
           std::to_string(attention.scale()) + " : f32} : " + q + ", " + cache +
           ", " + types(rows) + "\n  return %y : " + q + "\n}\n",
       {tensorOf(attention.q, queries), counted({rows}, attention.past, 1),
        counted({rows}, 0, 0), counted(table, 0, 1)}},
      {}, options);
}
