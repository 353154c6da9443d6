// RUN: kf-opt %s --kf-set-target=target=vulkan:h200 --kf-select-schedules | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target=vulkan:rdna3 --kf-select-schedules | FileCheck %s --check-prefix=RDNA3
// RUN: kf-opt %s --kf-set-target=target=vulkan:lavapipe --kf-select-schedules | FileCheck %s --check-prefix=PLAIN

// Attention of many rows is on cooperative matrices where subgroups multiply
// what the cache holds.
!half = !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 128, type = f16, page = 64>
!brain = !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 64, type = bf16, page = 64>
!codes = !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 64, type = !kf.quant<q8_0>, page = 64>
!single = !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 64, type = f32, page = 64>
!wide = !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 256, type = f16, page = 64>

// CHECK-LABEL: kf.kernel @half
// CHECK-SAME:    #kf.flash_mma<workgroup = [16, 4], keys = 64, threads = [32, 4, 1], unit = coop_f16, rows = rounded, held = shared>
// RDNA3-LABEL: kf.kernel @half
// RDNA3-SAME:    #kf.flash_mma<workgroup = [16, 4], keys = 64, threads = [64, 4, 1], unit = coop_f16, rows = rounded, held = shared>
// PLAIN-LABEL: kf.kernel @half
// PLAIN-SAME:    #kf.flash<
kf.kernel @half(%q: tensor<?x32x128xf32>, %c: !half, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x64xi32>) -> tensor<?x32x128xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.08 : f32} : tensor<?x32x128xf32>, !half, tensor<?xi32>, tensor<1x64xi32>
  kf.yield %0 : tensor<?x32x128xf32>
}

// RDNA3 multiplies f16 alone.
// CHECK-LABEL: kf.kernel @brain
// CHECK-SAME:    unit = coop_bf16
// RDNA3-LABEL: kf.kernel @brain
// RDNA3-SAME:    #kf.flash<
kf.kernel @brain(%q: tensor<?x32x64xf32>, %c: !brain, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x64xi32>) -> tensor<?x32x64xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x32x64xf32>, !brain, tensor<?xi32>, tensor<1x64xi32>
  kf.yield %0 : tensor<?x32x64xf32>
}

// CHECK-LABEL: kf.kernel @codes
// CHECK-SAME:    unit = coop_f16
kf.kernel @codes(%q: tensor<?x32x64xf32>, %c: !codes, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x64xi32>) -> tensor<?x32x64xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x32x64xf32>, !codes, tensor<?xi32>, tensor<1x64xi32>
  kf.yield %0 : tensor<?x32x64xf32>
}

// Nothing of f32 is rounded, and sums of wider heads leave no registers.
// CHECK-LABEL: kf.kernel @single
// CHECK-SAME:    #kf.flash<
kf.kernel @single(%q: tensor<?x32x64xf32>, %c: !single, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x64xi32>) -> tensor<?x32x64xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x32x64xf32>, !single, tensor<?xi32>, tensor<1x64xi32>
  kf.yield %0 : tensor<?x32x64xf32>
}
// CHECK-LABEL: kf.kernel @wide
// CHECK-SAME:    #kf.flash<
kf.kernel @wide(%q: tensor<?x32x256xf32>, %c: !wide, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x64xi32>) -> tensor<?x32x256xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.06 : f32} : tensor<?x32x256xf32>, !wide, tensor<?xi32>, tensor<1x64xi32>
  kf.yield %0 : tensor<?x32x256xf32>
}
