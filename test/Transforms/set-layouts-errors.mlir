// RUN: kf-opt %s --kf-set-target=target=cpu:x86-64-v4 --kf-set-layouts -split-input-file -verify-diagnostics

// Only what a checkpoint holds is packed as blocks.
kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q8_0>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [14, 32], tile = [14, 32], lanes = 16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q8_0>>
  kf.yield %0 : tensor<?x96xf32>
}

kf.program @p(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q8_0>>) -> tensor<?x96xf32> attributes {max_tokens = 8 : i64} {
  // expected-error @+1 {{kf-set-layouts: operand 1 is quantized, and only the blocks of a kf.weight can be packed}}
  %0 = kf.dispatch @k(%x, %w) : (tensor<?x64xf32>, tensor<96x64x!kf.quant<q8_0>>) -> tensor<?x96xf32>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{kf-set-layouts: pages of 24 positions cannot be laid out for #kf.cpu_target<cpu = "x86-64-v4", int8_dot = true, byte_dot = pmaddubsw>; page must be a multiple of its vector's lanes}}
module {
  func.func @page(%c: !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 16, type = f32, page = 24>) {
    return
  }
}

// -----

kf.kernel @view_of_blocks(%x: tensor<?x64xf32>, %a: tensor<96x64x!kf.quant<q8_0>>) -> tensor<?x32xf32> {
  %w = tensor.extract_slice %a[0, 0] [32, 64] [1, 1] : tensor<96x64x!kf.quant<q8_0>> to tensor<32x64x!kf.quant<q8_0>>
  // expected-error @+1 {{'kf.matmul' op kf-set-layouts: its weight is a view of blocks, and kernels read those of whole tensors alone; kf.dequantize the tensor and view that}}
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<32x64x!kf.quant<q8_0>>
  kf.yield %0 : tensor<?x32xf32>
}

// -----

// So is f8E4M3FN.
kf.kernel @float8(%x: tensor<?x64xf32>, %w: tensor<96x64xf8E4M3FN>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf8E4M3FN>
  kf.yield %0 : tensor<?x96xf32>
}

kf.program @float8_argument(%x: tensor<?x64xf32>, %w: tensor<96x64xf8E4M3FN>) -> tensor<?x96xf32> attributes {max_tokens = 8 : i64} {
  // expected-error @+1 {{kf-set-layouts: operand 1 is of f8E4M3FN, of which only a kf.weight can be packed; load it, or use --device=reference}}
  %0 = kf.dispatch @float8(%x, %w) : (tensor<?x64xf32>, tensor<96x64xf8E4M3FN>) -> tensor<?x96xf32>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

kf.kernel @view_of_float8(%x: tensor<?x64xf32>, %a: tensor<96x64xf8E4M3FN>) -> tensor<?x32xf32> {
  %w = tensor.extract_slice %a[0, 0] [32, 64] [1, 1] : tensor<96x64xf8E4M3FN> to tensor<32x64xf8E4M3FN>
  // expected-error @+1 {{'kf.matmul' op kf-set-layouts: its weight is a view of f8E4M3FN, which products take as it is loaded alone; have it in bf16, which holds the same numbers}}
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<32x64xf8E4M3FN>
  kf.yield %0 : tensor<?x32xf32>
}
