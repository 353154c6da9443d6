// RUN: kf-opt %s --kf-set-target=target=cpu:x86-64-v4 --kf-set-layouts -split-input-file | FileCheck %s

// Panels are two vectors wide; the halves of a bf16 panel interleave by lanes.
// CHECK-LABEL: kf.kernel @bf16(
// CHECK-SAME:    %{{.*}}: tensor<?x64xf32>, %{{.*}}: tensor<96x64xbf16, #kf.layout<panel = 32, interleave = 16>>)
kf.kernel @bf16(%x: tensor<?x64xf32>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [14, 32], tile = [14, 32], lanes = 16>} {
  // CHECK: kf.matmul %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<96x64xbf16, #kf.layout<panel = 32, interleave = 16>>
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xbf16>
  kf.yield %0 : tensor<?x96xf32>
}

// CHECK-LABEL: kf.kernel @f32(
// CHECK-SAME:    tensor<2x48x96xf32, #kf.layout<panel = 32>>
kf.kernel @f32(%x: tensor<?x96xf32>, %w: tensor<2x48x96xf32>) -> tensor<?x48xf32>
    attributes {schedule = #kf.vector<workgroup = [14, 32], tile = [14, 16], lanes = 8>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x96xf32>, tensor<2x48x96xf32>
  kf.yield %0 : tensor<?x48xf32>
}

// Of experts, panels are one vector wide where else a quarter of them or more
// would be zeros, as of adapters of rank 16, alone or three beside one another.
// CHECK-LABEL: kf.kernel @adapter(
// CHECK-SAME:    tensor<1x9x16x64xbf16, #kf.layout<panel = 16>>
kf.kernel @adapter(%x: tensor<?x64xf32>, %e: tensor<?x1xi32>, %w: tensor<1x9x16x64xbf16>) -> tensor<?x1x16xf32> {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x1xi32>, tensor<1x9x16x64xbf16>
  kf.yield %0 : tensor<?x1x16xf32>
}

// CHECK-LABEL: kf.kernel @three_adapters(
// CHECK-SAME:    tensor<1x9x48x64xf32, #kf.layout<panel = 16>>
kf.kernel @three_adapters(%x: tensor<?x64xf32>, %e: tensor<?x1xi32>, %w: tensor<1x9x48x64xf32>) -> tensor<?x1x48xf32> {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x1xi32>, tensor<1x9x48x64xf32>
  kf.yield %0 : tensor<?x1x48xf32>
}

// CHECK-LABEL: kf.kernel @five_adapters(
// CHECK-SAME:    tensor<1x9x80x64xbf16, #kf.layout<panel = 32, interleave = 16>>
kf.kernel @five_adapters(%x: tensor<?x64xf32>, %e: tensor<?x1xi32>, %w: tensor<1x9x80x64xbf16>) -> tensor<?x1x80xf32> {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x1xi32>, tensor<1x9x80x64xbf16>
  kf.yield %0 : tensor<?x1x80xf32>
}

// Blocks are read in panels of two.
// CHECK-LABEL: kf.kernel @blocks_of_adapter(
// CHECK-SAME:    tensor<1x9x16x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>
kf.kernel @blocks_of_adapter(%x: tensor<?x64xf32>, %e: tensor<?x1xi32>, %w: tensor<1x9x16x64x!kf.quant<q8_0>>) -> tensor<?x1x16xf32> {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x1xi32>, tensor<1x9x16x64x!kf.quant<q8_0>>
  kf.yield %0 : tensor<?x1x16xf32>
}

// A weight of the checkpoint is packed when it is loaded.
// CHECK-LABEL: kf.program @at_load(
// CHECK-NOT:     kf.dispatch @pack
// CHECK:         %[[W:.*]] = kf.weight ["w"] : tensor<96x64xbf16, #kf.layout<panel = 32, interleave = 16>>
// CHECK:         kf.dispatch @bf16(%{{.*}}, %[[W]])
// CHECK:         %[[V:.*]] = kf.weight ["gate", "up"] {stacked} : tensor<2x48x96xf32, #kf.layout<panel = 32>>
// CHECK:         kf.dispatch @f32(%{{.*}}, %[[V]])
kf.program @at_load(%x: tensor<?x64xf32>) -> tensor<?x48xf32> attributes {max_tokens = 8 : i64} {
  %w = kf.weight ["w"] : tensor<96x64xbf16>
  %v = kf.weight ["gate", "up"] {stacked} : tensor<2x48x96xf32>
  %0 = kf.dispatch @bf16(%x, %w) : (tensor<?x64xf32>, tensor<96x64xbf16>) -> tensor<?x96xf32>
  %1 = kf.dispatch @f32(%0, %v) : (tensor<?x96xf32>, tensor<2x48x96xf32>) -> tensor<?x48xf32>
  kf.yield %1 : tensor<?x48xf32>
}

// -----

// A weight that is computed or passed at run time is packed by a kernel, one
// for each pair of types.
// CHECK-LABEL: kf.kernel @pack(
// CHECK-SAME:    tensor<96x64xf32>) -> tensor<96x64xf32, #kf.layout<panel = 32>>
// CHECK:         kf.pack
// CHECK-NOT:   kf.pack
// CHECK-LABEL: kf.program @at_run_time(
// CHECK-SAME:    %[[X:.*]]: tensor<?x64xf32>, %[[A:.*]]: tensor<96x64xf32>, %[[B:.*]]: tensor<96x64xf32>)
// CHECK-NEXT:    %[[PA:.*]] = kf.dispatch @pack(%[[A]])
// CHECK-NEXT:    kf.dispatch @k(%[[X]], %[[PA]])
// CHECK-NEXT:    %[[PB:.*]] = kf.dispatch @pack(%[[B]])
// CHECK-NEXT:    kf.dispatch @k(%[[X]], %[[PB]])
kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [14, 32], tile = [14, 32], lanes = 16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32>
  kf.yield %0 : tensor<?x96xf32>
}
kf.program @at_run_time(%x: tensor<?x64xf32>, %a: tensor<96x64xf32>, %b: tensor<96x64xf32>)
    -> (tensor<?x96xf32>, tensor<?x96xf32>) attributes {max_tokens = 8 : i64} {
  %0 = kf.dispatch @k(%x, %a) : (tensor<?x64xf32>, tensor<96x64xf32>) -> tensor<?x96xf32>
  %1 = kf.dispatch @k(%x, %b) : (tensor<?x64xf32>, tensor<96x64xf32>) -> tensor<?x96xf32>
  kf.yield %0, %1 : tensor<?x96xf32>, tensor<?x96xf32>
}

// -----

// Layouts come before schedules, and what is packed already is left alone.
// CHECK-LABEL: kf.kernel @unscheduled(
// CHECK-SAME:    tensor<96x64xf32, #kf.layout<panel = 32>>)
kf.kernel @unscheduled(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32>
  kf.yield %0 : tensor<?x96xf32>
}

// Blocks have no halves to interleave.
// CHECK-LABEL: kf.kernel @quantized(
// CHECK-SAME:    tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>)
kf.kernel @quantized(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q8_0>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [14, 32], tile = [14, 32], lanes = 16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q8_0>>
  kf.yield %0 : tensor<?x96xf32>
}

// CHECK-LABEL: kf.kernel @packed(
// CHECK-SAME:    tensor<96x64xf32, #kf.layout<panel = 8>>)
kf.kernel @packed(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 8>>)
    -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [14, 32], tile = [14, 32], lanes = 16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.layout<panel = 8>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// A kernel that reads the weight as it is, too, takes it twice.
// CHECK-LABEL: kf.kernel @square(
// CHECK-SAME:    %[[A:.*]]: tensor<32x32xf32>, %[[W:.*]]: tensor<32x32xf32, #kf.layout<panel = 32>>)
// CHECK-NEXT:    kf.matmul %[[A]], %[[W]]
// CHECK-LABEL: kf.program @twice(
// CHECK-SAME:    %[[A:.*]]: tensor<32x32xf32>)
// CHECK-NEXT:    %[[W:.*]] = kf.dispatch @pack(%[[A]])
// CHECK-NEXT:    kf.dispatch @square(%[[A]], %[[W]])
kf.kernel @square(%a: tensor<32x32xf32>) -> tensor<32x32xf32>
    attributes {schedule = #kf.vector<workgroup = [14, 32], tile = [14, 32], lanes = 16>} {
  %0 = kf.matmul %a, %a : tensor<32x32xf32>, tensor<32x32xf32>
  kf.yield %0 : tensor<32x32xf32>
}
kf.program @twice(%a: tensor<32x32xf32>) -> tensor<32x32xf32> attributes {max_tokens = 1 : i64} {
  %0 = kf.dispatch @square(%a) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  kf.yield %0 : tensor<32x32xf32>
}

// -----

// What views show of a weight is packed by a kernel that reads through them.
// CHECK-LABEL: kf.kernel @pack(
// CHECK-SAME:    %[[A:.*]]: tensor<40x64xf32>)
// CHECK-NEXT:    %[[T:.*]] = kf.transpose %[[A]] permutation = [1, 0]
// CHECK-NEXT:    kf.pack %[[T]]
// CHECK-LABEL: kf.kernel @viewed(
// CHECK-SAME:    %[[X:.*]]: tensor<?x40xf32>, %{{.*}}: tensor<40x64xf32>, %[[W:.*]]: tensor<64x40xf32, #kf.layout<panel = 32>>)
// CHECK-NEXT:    kf.matmul %[[X]], %[[W]]
// CHECK-LABEL: kf.program @of_view(
// CHECK-SAME:    %[[X:.*]]: tensor<?x40xf32>, %[[A:.*]]: tensor<40x64xf32>)
// CHECK-NEXT:    %[[W:.*]] = kf.dispatch @pack(%[[A]])
// CHECK-NEXT:    kf.dispatch @viewed(%[[X]], %[[A]], %[[W]])
kf.kernel @viewed(%x: tensor<?x40xf32>, %a: tensor<40x64xf32>) -> tensor<?x64xf32> {
  %w = kf.transpose %a permutation = [1, 0] : tensor<40x64xf32>
  %0 = kf.matmul %x, %w : tensor<?x40xf32>, tensor<64x40xf32>
  kf.yield %0 : tensor<?x64xf32>
}
kf.program @of_view(%x: tensor<?x40xf32>, %a: tensor<40x64xf32>) -> tensor<?x64xf32> attributes {max_tokens = 1 : i64} {
  %0 = kf.dispatch @viewed(%x, %a) : (tensor<?x40xf32>, tensor<40x64xf32>) -> tensor<?x64xf32>
  kf.yield %0 : tensor<?x64xf32>
}
