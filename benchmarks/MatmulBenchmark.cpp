//===- MatmulBenchmark.cpp - f32 matrix product against peak and OpenBLAS -===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread. Three rows for each size: a loop of fused multiply-adds in
// registers (the ceiling), y = x W^T compiled from kf.matmul with W packed at
// load, and OpenBLAS's sgemm. Set OPENBLAS_CORETYPE=SkylakeX on AVX-512 CPUs
// that OpenBLAS does not know. The counters are floating-point operations a
// second.
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/Compiler.h"
#include "kf/Pipelines/Registration.h"
#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/engine/ProgramRunner.h"
#include "runtime/measure/HostLoops.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <benchmark/benchmark.h>

#include <map>
#ifdef KF_HAVE_OPENBLAS
#include <cblas.h>
extern "C" void openblas_set_num_threads(int);
#endif

using namespace kf;

namespace {

void setRate(benchmark::State &state, double operations) {
  state.counters["flop/s"] =
      benchmark::Counter(operations * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

void fmaPeak(benchmark::State &state) {
  double operations = 0;
  for (auto _ : state)
    operations = 2 * f32Loops().front().run(1 << 20);
  setRate(state, operations);
}
BENCHMARK(fmaPeak)->Unit(benchmark::kMillisecond);

/// A weight source with one matrix.
class OneWeight : public WeightSource {
public:
  explicit OneWeight(HostTensor tensor) : tensor(std::move(tensor)) {}
  Result<TensorView> find(const std::string &) const override {
    return TensorView{tensor.type, tensor.shape, tensor.bytes.data(),
                      tensor.bytes.size()};
  }
  std::vector<std::string> names() const override { return {"w"}; }

private:
  HostTensor tensor;
};

HostTensor filled(std::vector<int64_t> shape) {
  HostTensor tensor = HostTensor::zeros(DataType::F32, shape).take();
  for (int64_t i = 0; i < tensor.elementCount(); ++i)
    tensor.data<float>()[i] = static_cast<float>(i % 17) * 0.1f - 0.8f;
  return tensor;
}

std::string moduleText(int64_t m, int64_t n, int64_t k) {
  auto dims = [](int64_t a, int64_t b) {
    return "tensor<" + std::to_string(a) + "x" + std::to_string(b) + "xf32>";
  };
  return "func.func @f(%x: " + dims(m, k) + ") -> " + dims(m, n) +
         " {\n %w = kf.weight [\"w\"] : " + dims(n, k) +
         "\n %0 = kf.matmul %x, %w : " + dims(m, k) + ", " + dims(n, k) +
         "\n return %0 : " + dims(m, n) + "\n}\n";
}

void kfMatmul(benchmark::State &state) {
  int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  mlir::DialectRegistry registry;
  mlir::kf::registerDialects(registry);
  mlir::MLIRContext context(registry);
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(moduleText(m, n, k), &context);
  auto executable = mlir::kf::compile(*module, {});
  if (!executable)
    return state.SkipWithError(llvm::toString(executable.takeError()).c_str());
  CpuDeviceOptions options;
  options.threads = 1;
  auto device = createCpuDevice(options);
  OneWeight source(filled({n, k}));
  WeightStore weights(**device, &source);
  KVCache cache(**device, 1);
  auto runner = ProgramRunner::create(*executable, **device, weights, cache);
  if (!runner.ok())
    return state.SkipWithError(runner.message().c_str());
  HostTensor x = filled({m, k});
  if (!(*runner)->write(0, x.bytes.data(), x.bytes.size()).ok())
    return state.SkipWithError("cannot write the input");
  for (auto _ : state)
    if (Status status = (*runner)->execute(1); !status.ok())
      return state.SkipWithError(status.message().c_str());
  setRate(state, 2.0 * m * n * k);
}

#ifdef KF_HAVE_OPENBLAS
void openBlas(benchmark::State &state) {
  openblas_set_num_threads(1);
  int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  HostTensor x = filled({m, k}), w = filled({n, k}), y = filled({m, n});
  for (auto _ : state)
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1.0f,
                x.data<float>(), k, w.data<float>(), k, 0.0f, y.data<float>(),
                n);
  setRate(state, 2.0 * m * n * k);
}
#endif

void sizes(benchmark::internal::Benchmark *benchmark) {
  for (int64_t size : {256, 512, 1024, 2048})
    benchmark->Args({size, size, size});
  benchmark->Args({512, 5632, 2048}); // a prompt through TinyLlama's gate
  benchmark->Args({1, 5632, 2048});   // and one token
  benchmark->Unit(benchmark::kMillisecond);
}
BENCHMARK(kfMatmul)->Apply(sizes);
#ifdef KF_HAVE_OPENBLAS
BENCHMARK(openBlas)->Apply(sizes);
#endif

} // namespace

BENCHMARK_MAIN();
