// RUN: kf-opt %s --kf-form-kernels -split-input-file | FileCheck %s
// RUN: kf-opt %s --kf-form-kernels=fuse=false -split-input-file | FileCheck %s --check-prefix=APART

// The norm, the product, the activation and the residual are one kernel.
// CHECK-LABEL: kf.program @norm_matmul_residual(
// CHECK-SAME:    %[[X:.*]]: tensor<?x64xf32>, %[[G:.*]]: tensor<64xf32>, %[[R:.*]]: tensor<?x32xf32>)
// CHECK-SAME:    attributes {max_tokens = 8 : i64}
// CHECK-NEXT:    %[[W:.*]] = kf.weight ["w"] : tensor<32x64xf32>
// CHECK-NEXT:    %[[Y:.*]] = kf.dispatch @rms_norm_matmul_activation_add_0(%[[X]], %[[G]], %[[W]], %[[R]])
// CHECK-NEXT:    kf.yield %[[Y]]
// CHECK-LABEL: kf.kernel @rms_norm_matmul_activation_add_0(
// CHECK-SAME:    %[[X:.*]]: tensor<?x64xf32>, %[[G:.*]]: tensor<64xf32>, %[[W:.*]]: tensor<32x64xf32>, %[[R:.*]]: tensor<?x32xf32>)
// CHECK-NEXT:    %[[N:.*]] = kf.rms_norm %[[X]], %[[G]]
// CHECK-NEXT:    %[[M:.*]] = kf.matmul %[[N]], %[[W]]
// CHECK-NEXT:    %[[A:.*]] = kf.activation(relu) %[[M]]
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[A]], %[[R]]
// CHECK-NEXT:    kf.yield %[[S]]

// APART-LABEL: kf.program @norm_matmul_residual(
// APART:         %[[N:.*]] = kf.dispatch @rms_norm_0(
// APART-NEXT:    %[[M:.*]] = kf.dispatch @matmul_0(%[[N]],
// APART-NEXT:    %[[A:.*]] = kf.dispatch @activation_0(%[[M]])
// APART-NEXT:    %[[S:.*]] = kf.dispatch @add_0(%[[A]],
// APART-NEXT:    kf.yield %[[S]]
func.func @norm_matmul_residual(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %r: tensor<?x32xf32>)
    -> tensor<?x32xf32> attributes {kf.max_tokens = 8 : i64} {
  %w = kf.weight ["w"] : tensor<32x64xf32>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<32x64xf32>
  %2 = kf.activation(relu) %1 : tensor<?x32xf32>
  %3 = arith.addf %2, %r : tensor<?x32xf32>
  return %3 : tensor<?x32xf32>
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 16, type = f32>

// Heads are normalized and rotated where they are read: in the append and in
// the attention. The views of the joined projection are cloned into both. Each
// kernel sees one layer of the cache.
// CHECK-LABEL: kf.program @rotate(
// CHECK-SAME:    %[[Y:.*]]: tensor<?x128xf32>, %[[G:.*]]: tensor<16xf32>, %[[P:.*]]: tensor<?xi32>, %[[S:.*]]: tensor<?xi32>, %[[T:.*]]: tensor<1x4xi32>, %[[C:.*]]: !kf.kv_cache<layers = 2
// CHECK-SAME:    attributes {max_tokens = 512 : i64}
// CHECK-NEXT:    %[[L0:.*]] = kf.cache_layer %[[C]][1]
// CHECK-NEXT:    kf.dispatch @rms_norm_rope_kv_append_0(%[[Y]], %[[G]], %[[P]], %[[L0]], %[[S]], %[[T]])
// CHECK-NEXT:    %[[L1:.*]] = kf.cache_layer %[[C]][1]
// CHECK-NEXT:    %[[A:.*]] = kf.dispatch @rope_attention_0(%[[Y]], %[[P]], %[[L1]], %[[S]], %[[T]])
// CHECK-NEXT:    kf.yield %[[A]]
// CHECK-LABEL: kf.kernel @rms_norm_rope_kv_append_0(
// CHECK:         tensor.extract_slice %{{.*}}[0, 64]
// CHECK:         kf.rms_norm
// CHECK:         kf.rope
// CHECK:         kf.kv_append %{{.*}} {layer = 0 : i64}
// CHECK-NEXT:    kf.yield{{$}}
// CHECK-LABEL: kf.kernel @rope_attention_0(
// CHECK-SAME:    %[[Y:.*]]: tensor<?x128xf32>, %[[P:.*]]: tensor<?xi32>, %[[L:.*]]: !kf.kv_cache<layers = 1, {{.*}}>, %[[S:.*]]: tensor<?xi32>, %[[T:.*]]: tensor<1x4xi32>
// CHECK:         tensor.extract_slice %[[Y]][0, 0]
// CHECK:         tensor.expand_shape
// CHECK:         %[[Q:.*]] = kf.rope
// CHECK:         %[[A:.*]] = kf.attention %[[Q]], %[[L]], %[[P]], %[[S]], %[[T]] {layer = 0 : i64
// CHECK-NEXT:    kf.yield %[[A]]

// APART-LABEL: kf.program @rotate(
// APART:         kf.dispatch @rms_norm_0
// APART:         kf.dispatch @rope_0
// APART:         kf.dispatch @kv_append_0
// APART:         kf.dispatch @rope_1
// APART:         kf.dispatch @attention_0
func.func @rotate(%y: tensor<?x128xf32>, %g: tensor<16xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache)
    -> tensor<?x4x16xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?x128xf32>
  %q0 = tensor.extract_slice %y[0, 0] [%n, 64] [1, 1] : tensor<?x128xf32> to tensor<?x64xf32>
  %q1 = tensor.expand_shape %q0 [[0], [1, 2]] output_shape [%n, 4, 16] : tensor<?x64xf32> into tensor<?x4x16xf32>
  %k0 = tensor.extract_slice %y[0, 64] [%n, 32] [1, 1] : tensor<?x128xf32> to tensor<?x32xf32>
  %k1 = tensor.expand_shape %k0 [[0], [1, 2]] output_shape [%n, 2, 16] : tensor<?x32xf32> into tensor<?x2x16xf32>
  %v0 = tensor.extract_slice %y[0, 96] [%n, 32] [1, 1] : tensor<?x128xf32> to tensor<?x32xf32>
  %v1 = tensor.expand_shape %v0 [[0], [1, 2]] output_shape [%n, 2, 16] : tensor<?x32xf32> into tensor<?x2x16xf32>
  %k2 = kf.rms_norm %k1, %g eps(1.0e-6) : tensor<?x2x16xf32>, tensor<16xf32>
  %k3 = kf.rope %k2, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<?x2x16xf32>, tensor<?xi32>
  kf.kv_append %c, %k3, %v1, %p, %sp, %pt {layer = 1 : i64} : !cache, tensor<?x2x16xf32>, tensor<?xi32>, tensor<1x4xi32>
  %q2 = kf.rope %q1, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<?x4x16xf32>, tensor<?xi32>
  %0 = kf.attention %q2, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.25 : f32}
      : tensor<?x4x16xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x16xf32>
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 1, head_dim = 16, type = f32>

// Layers share kernels: one kernel of a kind, whatever the number of layers.
// CHECK-LABEL: kf.program @two_layers(
// CHECK:         %[[C0:.*]] = kf.cache_layer %{{.*}}[0]
// CHECK:         kf.dispatch @kv_append_0(%[[C0]],
// CHECK:         kf.dispatch @attention_0(
// CHECK:         kf.dispatch @[[M:rms_norm_matmul_add_0]](
// CHECK:         %[[C1:.*]] = kf.cache_layer %{{.*}}[1]
// CHECK:         kf.dispatch @kv_append_0(%[[C1]],
// CHECK:         kf.dispatch @attention_0(
// CHECK:         kf.dispatch @[[M]](
// CHECK-COUNT-3: kf.kernel
// CHECK-NOT:     kf.kernel
func.func @two_layers(%x: tensor<?x16xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) -> tensor<?x16xf32> {
  %w0 = kf.weight ["layers.0.o"] : tensor<16x16xf32>
  %g0 = kf.weight ["layers.0.norm"] : tensor<16xf32>
  %w1 = kf.weight ["layers.1.o"] : tensor<16x16xf32>
  %g1 = kf.weight ["layers.1.norm"] : tensor<16xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %h0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [%n, 1, 16] : tensor<?x16xf32> into tensor<?x1x16xf32>
  kf.kv_append %c, %h0, %h0, %p, %sp, %pt {layer = 0 : i64} : !cache, tensor<?x1x16xf32>, tensor<?xi32>, tensor<1x4xi32>
  %a0 = kf.attention %h0, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x1x16xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  %f0 = tensor.collapse_shape %a0 [[0], [1, 2]] : tensor<?x1x16xf32> into tensor<?x16xf32>
  %n0 = kf.rms_norm %f0, %g0 eps(1.0e-5) : tensor<?x16xf32>, tensor<16xf32>
  %m0 = kf.matmul %n0, %w0 : tensor<?x16xf32>, tensor<16x16xf32>
  %r0 = arith.addf %m0, %x : tensor<?x16xf32>
  %h1 = tensor.expand_shape %r0 [[0], [1, 2]] output_shape [%n, 1, 16] : tensor<?x16xf32> into tensor<?x1x16xf32>
  kf.kv_append %c, %h1, %h1, %p, %sp, %pt {layer = 1 : i64} : !cache, tensor<?x1x16xf32>, tensor<?xi32>, tensor<1x4xi32>
  %a1 = kf.attention %h1, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.25 : f32} : tensor<?x1x16xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  %f1 = tensor.collapse_shape %a1 [[0], [1, 2]] : tensor<?x1x16xf32> into tensor<?x16xf32>
  %n1 = kf.rms_norm %f1, %g1 eps(1.0e-5) : tensor<?x16xf32>, tensor<16xf32>
  %m1 = kf.matmul %n1, %w1 : tensor<?x16xf32>, tensor<16x16xf32>
  %r1 = arith.addf %m1, %r0 : tensor<?x16xf32>
  return %r1 : tensor<?x16xf32>
}

// -----

// The result of the norm has two readers: it reaches memory, in a kernel of
// its own.
// CHECK-LABEL: kf.program @two_readers(
// CHECK:         %[[N:.*]] = kf.dispatch @rms_norm_0(
// CHECK:         kf.dispatch @matmul_0(%[[N]],
// CHECK:         kf.dispatch @matmul_1(%[[N]],
func.func @two_readers(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<32x64xf32>,
                       %v: tensor<16x64xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>) {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<32x64xf32>
  %2 = kf.matmul %0, %v : tensor<?x64xf32>, tensor<16x64xf32>
  return %1, %2 : tensor<?x32xf32>, tensor<?x16xf32>
}

// -----

// Two products are two kernels: a kernel has one op that decides its loops.
// CHECK-LABEL: kf.program @two_products(
// CHECK:         kf.dispatch @matmul_0(
// CHECK:         kf.dispatch @matmul_add_0(
func.func @two_products(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>, %v: tensor<64x64xf32>)
    -> tensor<?x64xf32> {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %1 = kf.matmul %x, %v : tensor<?x64xf32>, tensor<64x64xf32>
  %2 = arith.addf %0, %1 : tensor<?x64xf32>
  return %2 : tensor<?x64xf32>
}

// -----

// Elementwise ops and the embedding join the row op that reads them.
// CHECK-LABEL: kf.program @embed(
// CHECK:         kf.dispatch @embedding_add_softmax_0(
// CHECK-NEXT:    kf.yield
func.func @embed(%ids: tensor<?xi32>, %t: tensor<10x8xf32>, %y: tensor<?x8xf32>)
    -> tensor<?x8xf32> {
  %0 = kf.embedding %ids, %t : tensor<?xi32>, tensor<10x8xf32>
  %1 = arith.addf %0, %y : tensor<?x8xf32>
  %2 = kf.softmax %1 : tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// A program writes each of its results once: what no kernel makes, and what is
// returned twice, is copied. A weight that nobody reads goes.
// CHECK-LABEL: kf.program @copies(
// CHECK-SAME:    %[[X:.*]]: tensor<?x8xf32>)
// CHECK-NEXT:    %[[W:.*]] = kf.weight ["w"]
// CHECK-NOT:     kf.weight
// CHECK-DAG:     %[[S:.*]] = kf.dispatch @softmax_0(%[[X]])
// CHECK-DAG:     %[[A:.*]] = kf.dispatch @copy_{{[0-9]}}(%[[X]])
// CHECK-DAG:     %[[B:.*]] = kf.dispatch @copy_{{[0-9]}}(%[[W]])
// CHECK-DAG:     %[[C:.*]] = kf.dispatch @copy_{{[0-9]}}(%[[S]])
// CHECK:         kf.yield %[[A]], %[[B]], %[[S]], %[[C]]
// CHECK:       kf.copy
func.func @copies(%x: tensor<?x8xf32>)
    -> (tensor<?x8xf32>, tensor<4xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %w = kf.weight ["w"] : tensor<4xf32>
  %unread = kf.weight ["unread"] : tensor<4xf32>
  %0 = kf.softmax %x : tensor<?x8xf32>
  return %x, %w, %0, %0 : tensor<?x8xf32>, tensor<4xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// Declarations stay functions.
// CHECK: func.func private @declared
func.func private @declared(tensor<4xf32>)

// -----

// The rows that are wanted join the product that reads them; the module numbers
// the names of sizes, and the program says what they may be.
// CHECK: module attributes {kf.sizes = ["wanted", "other"]}
// CHECK-LABEL: kf.program @wanted(
// CHECK-SAME:    max_tokens = 32 : i64
// CHECK-SAME:    sizes = [#kf.size_range<wanted, least = 1, most = 4>, #kf.size_range<other, most = 32>]
// CHECK-LABEL: kf.kernel @embedding_rms_norm_matmul_0
// CHECK-SAME:    -> tensor<?x8xf32, #kf.size<wanted>>
func.func @wanted(%x: tensor<?x64xf32>, %rows: tensor<?xi32, #kf.size<wanted>>,
                  %y: tensor<?x8xf32, #kf.size<other>>)
    -> (tensor<?x8xf32, #kf.size<wanted>>, tensor<?x8xf32, #kf.size<other>>)
    attributes {kf.max_tokens = 32 : i64,
                kf.size_ranges = [#kf.size_range<wanted, least = 1, most = 4>]} {
  %g = kf.weight ["norm"] : tensor<64xf32>
  %w = kf.weight ["head"] : tensor<8x64xf32>
  %0 = kf.embedding %rows, %x
      : tensor<?xi32, #kf.size<wanted>>, tensor<?x64xf32>
  %1 = kf.rms_norm %0, %g eps(1.0e-5)
      : tensor<?x64xf32, #kf.size<wanted>>, tensor<64xf32>
  %2 = kf.matmul %1, %w : tensor<?x64xf32, #kf.size<wanted>>, tensor<8x64xf32>
  %3 = kf.softmax %y : tensor<?x8xf32, #kf.size<other>>
  return %2, %3
      : tensor<?x8xf32, #kf.size<wanted>>, tensor<?x8xf32, #kf.size<other>>
}

// -----

// A norm is computed as its rows are rounded; the residual joins the product.
// CHECK-LABEL: kf.program @rounded(
// CHECK:         %[[Q:.*]]:3 = kf.dispatch @rms_norm_quantize_rows_0(%{{.*}}, %{{.*}})
// CHECK:         %[[Y:.*]] = kf.dispatch @matmul_add_0(%[[Q]]#0, %{{.*}}, %[[Q]]#1, %[[Q]]#2, %{{.*}})
// CHECK:       kf.kernel @rms_norm_quantize_rows_0({{.*}}) -> (tensor<?x64xi8>, tensor<?x2xf32>, tensor<?x2xi32>)
// CHECK:         %[[C:.*]], %[[S:.*]], %[[T:.*]] = kf.quantize_rows
// CHECK:         kf.yield %[[C]], %[[S]], %[[T]]
func.func @rounded(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %r: tensor<?x32xf32>) -> tensor<?x32xf32>
    attributes {kf.max_tokens = 8 : i64} {
  %w = kf.weight ["w"] : tensor<32x64x!kf.quant<q8_0>>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %c, %s, %t = kf.quantize_rows %0 group(32) : tensor<?x64xf32>
  %1 = kf.matmul %c scales(%s : tensor<?x2xf32>) sums(%t : tensor<?x2xi32>), %w
      : tensor<?x64xi8>, tensor<32x64x!kf.quant<q8_0>>
  %2 = arith.addf %1, %r : tensor<?x32xf32>
  return %2 : tensor<?x32xf32>
}

// -----

// Each layer's parts are a dispatch of one kernel, and so is what combines them.
// CHECK-LABEL: kf.program @parts(
// CHECK:         kf.dispatch @rope_attention_partial_0
// CHECK:         kf.dispatch @attention_combine_0
// CHECK:         kf.dispatch @rope_attention_partial_0
// CHECK:         kf.dispatch @attention_combine_0
// CHECK-NOT:     kf.kernel @attention_combine_1
!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 32, type = f32>
func.func @parts(%q: tensor<?x4x32xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache)
    -> (tensor<?x4x32xf32>, tensor<?x4x32xf32>) attributes {kf.max_tokens = 8 : i64} {
  %r = kf.rope %q, %p {rotary_dim = 32 : i64, theta = 1.0e4 : f64} : tensor<?x4x32xf32>, tensor<?xi32>
  %m, %t, %v = kf.attention_partial %r, %c, %p, %sp, %pt splits(3) {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention_combine %m, %t, %v : tensor<?x4x3xf32>, tensor<?x4x3x32xf32>
  %s = kf.rope %0, %p {rotary_dim = 32 : i64, theta = 1.0e4 : f64} : tensor<?x4x32xf32>, tensor<?xi32>
  %n, %u, %w = kf.attention_partial %s, %c, %p, %sp, %pt splits(3) {layer = 1 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  %1 = kf.attention_combine %n, %u, %w : tensor<?x4x3xf32>, tensor<?x4x3x32xf32>
  return %0, %1 : tensor<?x4x32xf32>, tensor<?x4x32xf32>
}

// -----

// What is rotated is rounded in the same kernel; attention takes it from
// memory, and nothing else is computed with a rotation.
// CHECK-LABEL: kf.program @rounded(
// CHECK:         %[[Q:.*]] = kf.dispatch @rope_trunc_0(
// CHECK:         kf.dispatch @attention_0(%[[Q]],
// CHECK:         %[[R:.*]] = kf.dispatch @rope_0(
// CHECK:         kf.dispatch @add_0(%[[R]],
!cache = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f16>
func.func @rounded(%q: tensor<?x4x32xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache)
    -> (tensor<?x4x32xf16>, tensor<?x4x32xf32>) {
  %r = kf.rope %q, %p {rotary_dim = 32 : i64, theta = 1.0e4 : f64} : tensor<?x4x32xf32>, tensor<?xi32>
  %h = arith.truncf %r : tensor<?x4x32xf32> to tensor<?x4x32xf16>
  %0 = kf.attention %h, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf16>, !cache, tensor<?xi32>, tensor<1x4xi32>
  %s = kf.rope %q, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<?x4x32xf32>, tensor<?xi32>
  %1 = arith.addf %s, %q : tensor<?x4x32xf32>
  return %0, %1 : tensor<?x4x32xf16>, tensor<?x4x32xf32>
}

// -----

// Attention to tensors reads memory: a view of what it reads is copied, once for
// all readers.
// CHECK-LABEL: kf.program @attention_of_views(
// CHECK-SAME:    %[[Q:.*]]: tensor<8x2x16xbf16>, %[[K:.*]]: tensor<4x8x16xbf16>)
// CHECK-DAG:     %[[T:.*]] = kf.dispatch @copy_{{[0-9]}}(%[[Q]])
// CHECK-DAG:     %[[S:.*]] = kf.dispatch @copy_{{[0-9]}}(%[[K]])
// CHECK-NOT:     kf.dispatch @copy
// CHECK:         kf.dispatch @scaled_dot_product_attention_0(%[[T]], %[[S]])
// CHECK:         kf.dispatch @attention_qgrad_0(%[[T]], %[[S]])
// CHECK-LABEL: kf.kernel @scaled_dot_product_attention_0(
// CHECK-NOT:     tensor.extract_slice
// CHECK:         kf.yield
func.func @attention_of_views(%q: tensor<8x2x16xbf16>, %k: tensor<4x8x16xbf16>)
    -> (tensor<2x8x16xbf16>, tensor<2x8x16xf32>) {
  %0 = kf.transpose %q permutation = [1, 0, 2] : tensor<8x2x16xbf16>
  %1 = tensor.extract_slice %k[2, 0, 0] [2, 8, 16] [1, 1, 1] : tensor<4x8x16xbf16> to tensor<2x8x16xbf16>
  %2 = kf.scaled_dot_product_attention %0, %1, %1 : tensor<2x8x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x16xbf16>
  %3:3 = kf.attention_qgrad %0, %1, %1, %0 : tensor<2x8x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x16xbf16>
  return %2, %3#0 : tensor<2x8x16xbf16>, tensor<2x8x16xf32>
}
