//===- Blas.cpp - OpenBLAS and BLIS, in one process -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both export the same names, so neither is linked: each is opened with its
// symbols kept apart, and called through pointers.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/Peers/Peer.h"

#include <dlfcn.h>

using namespace kf;
using namespace kf::bench;

namespace {

// CBLAS's interface (Netlib): enumerators of its arguments.
constexpr int cblasRowMajor = 101, cblasNoTrans = 111, cblasTrans = 112;
using Sgemm = void(int order, int transA, int transB, int m, int n, int k,
                   float alpha, const float *a, int lda, const float *b,
                   int ldb, float beta, float *c, int ldc);

class BlasProduct : public Contender {
public:
  BlasProduct(Sgemm *sgemm, const Product &product)
      : sgemm(sgemm), m(static_cast<int>(product.rows)),
        n(static_cast<int>(product.outputs)),
        k(static_cast<int>(product.inputs)), x(product.x),
        w(product.weights.data<float>(),
          product.weights.data<float>() + product.weights.elementCount()),
        y(product.rows * product.outputs) {}

  Status run() override {
    sgemm(cblasRowMajor, cblasNoTrans, cblasTrans, m, n, k, 1.0f, x.data(), k,
          w.data(), k, 0.0f, y.data(), n);
    return Status();
  }
  Result<std::vector<float>> result() override { return y; }

private:
  Sgemm *sgemm;
  int m, n, k;
  std::vector<float> x, w, y;
};

class Blas : public Peer {
public:
  Blas(std::string label, std::string about, Sgemm *sgemm,
       void (*setThreads)(int))
      : label(std::move(label)), about(std::move(about)), sgemm(sgemm),
        setThreads(setThreads) {}

  std::string name() const override { return label; }
  std::string description() const override { return about; }

  Result<std::unique_ptr<Contender>> product(const Product &product) override {
    if (product.weights.type != DataType::F32)
      return std::unique_ptr<Contender>();
    setThreads(product.threads);
    return copiesOf(
        product.copies, [&]() -> Result<std::unique_ptr<Contender>> {
          return std::unique_ptr<Contender>(new BlasProduct(sgemm, product));
        });
  }

private:
  std::string label, about;
  Sgemm *sgemm;
  void (*setThreads)(int);
};

/// A library that stays open; null where it is missing.
void *openLibrary(std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (void *library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL))
      return library;
  return nullptr;
}

template <typename Function> Function *symbol(void *library, const char *name) {
  return reinterpret_cast<Function *>(::dlsym(library, name));
}

} // namespace

std::unique_ptr<Peer> bench::openOpenBlas() {
  void *library = openLibrary({"libopenblas.so.0", "libopenblas.so"});
  if (!library)
    return nullptr;
  auto *sgemm = symbol<Sgemm>(library, "cblas_sgemm");
  auto *setThreads = symbol<void(int)>(library, "openblas_set_num_threads");
  auto *config = symbol<char *()>(library, "openblas_get_config");
  auto *core = symbol<char *()>(library, "openblas_get_corename");
  if (!sgemm || !setThreads || !config || !core)
    return nullptr;
  return std::make_unique<Blas>("OpenBLAS",
                                std::string(config()) + ", runs " + core(),
                                sgemm, setThreads);
}

std::unique_ptr<Peer> bench::openBlis() {
  void *library = openLibrary({"libblis.so.4", "libblis.so"});
  if (!library)
    return nullptr;
  auto *sgemm = symbol<Sgemm>(library, "cblas_sgemm");
  // dim_t is 64 bits wide where the library is, whatever its BLAS takes.
  auto *setThreads =
      symbol<void(int64_t)>(library, "bli_thread_set_num_threads");
  auto *initialize = symbol<void()>(library, "bli_init");
  auto *version = symbol<const char *()>(library, "bli_info_get_version_str");
  auto *query = symbol<int()>(library, "bli_arch_query_id");
  auto *text = symbol<const char *(int)>(library, "bli_arch_string");
  if (!sgemm || !setThreads || !initialize || !version || !query || !text)
    return nullptr;
  initialize(); // what it chose is not to be asked for before
  static void (*set)(int64_t) = nullptr;
  set = setThreads;
  return std::make_unique<Blas>(
      "BLIS", std::string(version()) + ", runs " + text(query()), sgemm,
      [](int threads) { set(threads); });
}
