// A kernel alone, in a program of one dispatch: weights stay weights, a layer of
// a cache is a cache, what other kernels make is an argument. Of the program's
// sizes and tokens all stay.

// RUN: kf-run emit-mlir %s --device vulkan --compile-to=program --kernel matmul_0 \
// RUN:   | FileCheck %s --check-prefix=MATMUL
// MATMUL: module attributes {kf.sizes = ["wanted"], kf.target = #kf.vulkan_target<
// MATMUL-NOT:  kf.kernel
// MATMUL:      kf.kernel @matmul_0(%arg0: tensor<?x64xf32>, %arg1: tensor<32x64xf32>) -> tensor<?x32xf32>
// MATMUL-NOT:  kf.kernel
// MATMUL:      kf.program @matmul_0_alone(%arg0: tensor<?x64xf32>) -> tensor<?x32xf32>
// MATMUL-SAME:     max_tokens = 8 : i64
// MATMUL-SAME:     sizes = [#kf.size_range<wanted, most = 8>]
// MATMUL-NEXT:   %0 = kf.weight ["a"] : tensor<32x64xf32>
// MATMUL-NEXT:   %1 = kf.dispatch @matmul_0(%arg0, %0)
// MATMUL-NEXT:   kf.yield %1 : tensor<?x32xf32>

// One without results, whose cache is a layer.
// RUN: kf-run emit-mlir %s --compile-to=program --kernel kv_append_0 \
// RUN:   | FileCheck %s --check-prefix=APPEND
// APPEND:      kf.program @kv_append_0_alone(%arg0: !kf.kv_cache<layers = 1, {{.*}}>, %arg1: tensor<?x2x16xf32>, %arg2: tensor<?xi32>, %arg3: tensor<?x4xi32>) attributes
// APPEND-NOT:    kf.cache_layer
// APPEND:        kf.dispatch @kv_append_0(%arg0, %arg1, %arg2, %arg3)
// APPEND-NEXT:   kf.yield

// Of several programs it is the one with the most rows; a tensor that a dispatch
// takes twice is one argument.
// RUN: kf-run emit-mlir %s --compile-to=program --kernel twice \
// RUN:   | FileCheck %s --check-prefix=TWICE
// TWICE:      kf.program @twice_alone(%arg0: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {max_tokens = 7 : i64}
// TWICE-NEXT:   kf.dispatch @twice(%arg0, %arg0)

// From there on it compiles as a whole module does.
// RUN: kf-run emit-mlir %s --compile-to=scheduled --kernel matmul_0 \
// RUN:   | FileCheck %s --check-prefix=SCHEDULED
// SCHEDULED:     kf.kernel @matmul_0({{.*}}#kf.layout<{{.*}}schedule = #kf.vector<
// SCHEDULED:     kf.weight ["a"] : tensor<32x64xf32, #kf.layout<
// RUN: kf-run emit-mlir %s --compile-to=binary -o %t.kf --function f --kernel matmul_0

// RUN: not kf-run emit-mlir %s --kernel matmul_9 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: there is no kernel 'matmul_9'; there are kv_append_0, matmul_0, embedding_0, matmul_1, twice
// RUN: not kf-run emit-mlir %s --kernel matmul_0 --compile-to=fused 2>&1 \
// RUN:   | FileCheck %s --check-prefix=EARLY
// EARLY: error: --kernel needs --compile-to=program or a later phase; fused has no kernels yet

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 16, type = f32>

func.func @f(%x: tensor<?x64xf32>, %k: tensor<?x2x16xf32>, %cache: !cache,
             %positions: tensor<?xi32>, %pages: tensor<?x4xi32>, %wanted: tensor<?xi32, #kf.size<wanted>>)
    -> tensor<?x64xf32, #kf.size<wanted>> attributes {kf.max_tokens = 8 : i64} {
  %a = kf.weight ["a"] : tensor<32x64xf32>
  %b = kf.weight ["b"] : tensor<64x32xf32>
  kf.kv_append %cache, %k, %k, %positions, %positions, %pages {layer = 1 : i64}
      : <layers = 2, kv_heads = 2, head_dim = 16, type = f32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?x4xi32>
  %0 = kf.matmul %x, %a : tensor<?x64xf32>, tensor<32x64xf32>
  %1 = kf.embedding %wanted, %0 : tensor<?xi32, #kf.size<wanted>>, tensor<?x32xf32>
  %2 = kf.matmul %1, %b : tensor<?x32xf32, #kf.size<wanted>>, tensor<64x32xf32>
  return %2 : tensor<?x64xf32, #kf.size<wanted>>
}

kf.kernel @twice(%a: tensor<?x8xf32>, %b: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.addf %a, %b : tensor<?x8xf32>
  kf.yield %0 : tensor<?x8xf32>
}
kf.program @few(%a: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {max_tokens = 3 : i64} {
  %0 = kf.dispatch @twice(%a, %a) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  kf.yield %0 : tensor<?x8xf32>
}
kf.program @more(%a: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {max_tokens = 7 : i64} {
  %0 = kf.dispatch @twice(%a, %a) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  kf.yield %0 : tensor<?x8xf32>
}
