// Result types follow from the operands: the assembly names operand types only,
// and the generic form shows what was inferred.
// RUN: kf-opt %s --mlir-print-op-generic | FileCheck %s

!cache = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = bf16>

// CHECK-LABEL: sym_name = "dynamic"
func.func @dynamic(%ids: tensor<?xi32>, %t: tensor<100x64xbf16>, %x: tensor<?x64xf32>,
                   %w: tensor<96x64xbf16>, %g: tensor<2x48x64xf32>, %d: tensor<64x96xf32>,
                   %n: tensor<64xbf16>, %h: tensor<?x4x32xf16>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>,
                   %c: !cache, %u: tensor<?xf32>, %s: tensor<?xi64>) {
  // CHECK: "kf.embedding"{{.*}} -> tensor<?x64xf32>
  %0 = kf.embedding %ids, %t : tensor<?xi32>, tensor<100x64xbf16>
  // CHECK: "kf.matmul"{{.*}} -> tensor<?x96xf32>
  %1 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xbf16>
  // CHECK: "kf.matmul"{{.*}} -> tensor<?x48xf32>
  %2 = kf.matmul %x, %g glu(silu) : tensor<?x64xf32>, tensor<2x48x64xf32>
  // CHECK: "kf.mlp"{{.*}} -> tensor<?x64xf32>
  %3 = kf.mlp %x up(%w) down(%d) activation(relu) : (tensor<?x64xf32>, tensor<96x64xbf16>, tensor<64x96xf32>)
  // CHECK: "kf.rms_norm"{{.*}} -> tensor<?x64xf32>
  %4 = kf.rms_norm %x, %n eps(1.0e-5) : tensor<?x64xf32>, tensor<64xbf16>
  // CHECK: "kf.layer_norm"{{.*}} -> tensor<?x64xf32>
  %5 = kf.layer_norm %x, %n eps(1.0e-5) : tensor<?x64xf32>, tensor<64xbf16>
  // CHECK: "kf.softmax"{{.*}} -> tensor<?x64xf32>
  %6 = kf.softmax %x : tensor<?x64xf32>
  // CHECK: "kf.activation"{{.*}} -> tensor<?x64xf32>
  %7 = kf.activation(relu) %x : tensor<?x64xf32>
  // CHECK: "kf.rope"{{.*}} -> tensor<?x4x32xf16>
  %8 = kf.rope %h, %p {rotary_dim = 32 : i64, theta = 1.0e4 : f64} : tensor<?x4x32xf16>, tensor<?xi32>
  // CHECK: "kf.attention"{{.*}} -> tensor<?x4x32xf16>
  %9 = kf.attention %h, %c, %p, %sp, %pt {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x32xf16>, !cache, tensor<?xi32>, tensor<1x4xi32>
  // CHECK: "kf.argmax"{{.*}} -> tensor<?xi32>
  %10 = kf.argmax %x : tensor<?x64xf32>
  // CHECK: "kf.sample"{{.*}} -> tensor<?xi32>
  %11 = kf.sample %x temperature(%u) top_k(%p) top_p(%u) min_p(%u) seed(%s) counter(%p)
      : (tensor<?x64xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  // CHECK: "kf.quantize"{{.*}} -> tensor<?x64x!kf.quant<q4_0>>
  %12 = kf.quantize %x <q4_0> : tensor<?x64xf32>
  // CHECK: "kf.dequantize"{{.*}} -> tensor<?x64xf32>
  %13 = kf.dequantize %12 : tensor<?x64x!kf.quant<q4_0>>
  return
}

// CHECK-LABEL: sym_name = "static"
func.func @static(%ids: tensor<3xi32>, %t: tensor<100x64x!kf.quant<q8_0>>, %x: tensor<3x64xbf16>,
                  %w: tensor<96x64xbf16>, %g: tensor<2x48x64xf32>, %d: tensor<32x96xf32>,
                  %n: tensor<64xf32>, %u: tensor<3xf32>, %s: tensor<3xi64>, %y: tensor<3x2x64xf32>) {
  // CHECK: "kf.embedding"{{.*}} -> tensor<3x64xf32>
  %0 = kf.embedding %ids, %t : tensor<3xi32>, tensor<100x64x!kf.quant<q8_0>>
  // CHECK: "kf.matmul"{{.*}} -> tensor<3x96xbf16>
  %1 = kf.matmul %x, %w : tensor<3x64xbf16>, tensor<96x64xbf16>
  // CHECK: "kf.matmul"{{.*}} -> tensor<3x48xbf16>
  %2 = kf.matmul %x, %g glu(silu) : tensor<3x64xbf16>, tensor<2x48x64xf32>
  // CHECK: "kf.mlp"{{.*}} -> tensor<3x32xbf16>
  %3 = kf.mlp %x up(%w) down(%d) activation(relu) : (tensor<3x64xbf16>, tensor<96x64xbf16>, tensor<32x96xf32>)
  // CHECK: "kf.rms_norm"{{.*}} -> tensor<3x2x64xf32>
  %4 = kf.rms_norm %y, %n eps(1.0e-5) : tensor<3x2x64xf32>, tensor<64xf32>
  // CHECK: "kf.rms_norm"{{.*}} -> tensor<64xf32>
  %5 = kf.rms_norm %n, %n eps(1.0e-5) : tensor<64xf32>, tensor<64xf32>
  // CHECK: "kf.argmax"{{.*}} -> tensor<3xi32>
  %6 = kf.argmax %x : tensor<3x64xbf16>
  // CHECK: "kf.sample"{{.*}} -> tensor<3xi32>
  %7 = kf.sample %x temperature(%u) top_k(%ids) top_p(%u) min_p(%u) seed(%s) counter(%ids)
      : (tensor<3x64xbf16>, tensor<3xf32>, tensor<3xi32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi64>, tensor<3xi32>)
  // CHECK: "kf.quantize"{{.*}} -> tensor<3x2x64x!kf.quant<q8_0>>
  %8 = kf.quantize %y <q8_0> : tensor<3x2x64xf32>
  return
}
