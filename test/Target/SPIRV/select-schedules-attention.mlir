// RUN: kf-opt %s --kf-set-target=target=vulkan --kf-select-schedules | FileCheck %s

// The heads of a KV head to a workgroup, and tokens as long as rows share what
// is read; a row of its own where there are few.
!cache = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f16, page = 48>
// CHECK-LABEL: kf.kernel @attention
// CHECK-SAME:    #kf.flash<workgroup = [2, 4], keys = 16, threads = [128]>
kf.kernel @attention(%q: tensor<?x8x64xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x8x64xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x8x64xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x8x64xf32>
}
// CHECK-LABEL: kf.kernel @append
// CHECK-SAME:    #kf.simt<workgroup = [1], threads = [64], unroll = 4>
kf.kernel @append(%c: !cache, %k: tensor<?x2x64xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) {
  kf.kv_append %c, %k, %k, %p, %s, %t {layer = 0 : i64} : !cache, tensor<?x2x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield
}

// As many threads as logits are worth.
// CHECK-LABEL: kf.kernel @sample
// CHECK-SAME:    #kf.simt<workgroup = [1], threads = [16], unroll = 8>
kf.kernel @sample(%x: tensor<?x256xf32>, %f: tensor<?xf32>, %i: tensor<?xi32>, %s: tensor<?xi64>) -> tensor<?xi32> {
  %0 = kf.sample %x temperature(%f) top_k(%i) top_p(%f) min_p(%f) seed(%s) counter(%i)
      : (tensor<?x256xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  kf.yield %0 : tensor<?xi32>
}
