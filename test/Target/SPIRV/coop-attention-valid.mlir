// REQUIRES: spirv-val-matrices
// RUN: split-file %s %t
// RUN: kf-opt %t/f16.mlir --kf-set-target=target=vulkan:h200 --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/f16.spv
// RUN: spirv-val --target-env vulkan1.3 %t/f16.spv
// RUN: kf-opt %t/bf16.mlir --kf-set-target=target=vulkan:h200 --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/bf16.spv
// RUN: spirv-val --target-env vulkan1.3 %t/bf16.spv
// RUN: kf-opt %t/q8_0.mlir --kf-set-target=target=vulkan:h200 --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/q8_0.spv
// RUN: spirv-val --target-env vulkan1.3 %t/q8_0.spv

// Modules for each type of cache.

//--- f16.mlir
func.func @f(%q: tensor<?x8x128xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 128, type = f16>) -> tensor<?x8x128xf32> attributes {kf.max_tokens = 512 : i64} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.1 : f32} : tensor<?x8x128xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 128, type = f16>, tensor<?xi32>, tensor<1x8xi32>
  return %0 : tensor<?x8x128xf32>
}
//--- bf16.mlir
func.func @f(%q: tensor<?x4x72xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<2x8xi32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 72, type = bf16>) -> tensor<?x4x72xf32> attributes {kf.max_tokens = 512 : i64} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.1 : f32, window = 100 : i64} : tensor<?x4x72xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 72, type = bf16>, tensor<?xi32>, tensor<2x8xi32>
  return %0 : tensor<?x4x72xf32>
}
//--- q8_0.mlir
func.func @f(%q: tensor<?x6x64xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = !kf.quant<q8_0>>) -> tensor<?x6x64xf32> attributes {kf.max_tokens = 512 : i64} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.1 : f32, softcap = 2.0 : f32} : tensor<?x6x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = !kf.quant<q8_0>>, tensor<?xi32>, tensor<1x8xi32>
  return %0 : tensor<?x6x64xf32>
}
