// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   -verify-diagnostics

kf.kernel @f64(%x: tensor<?x8xf64>) -> tensor<?x8xf64>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [8]>} {
  // expected-error @below {{no GPU kernel for 'arith.negf' on 'tensor<?x8xf64>' yet; use --device=cpu or --device=reference}}
  %0 = arith.negf %x : tensor<?x8xf64>
  kf.yield %0 : tensor<?x8xf64>
}

// -----

// expected-error @below {{no GPU kernel for 'tensor<8x64xf32, #kf.layout<panel = 4>>' yet; use --device=cpu or --device=reference}}
kf.kernel @packed(%x: tensor<?x64xf32>, %w: tensor<8x64xf32, #kf.layout<panel = 4>>) -> tensor<?x64xf32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [8]>} {
  %0 = kf.softmax %x : tensor<?x64xf32>
  kf.yield %0 : tensor<?x64xf32>
}

// -----

kf.kernel @quantize(%x: tensor<?x64xf32>) -> tensor<?x64x!kf.quant<q8_0>>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [8]>} {
  // expected-error @below {{no GPU kernel for 'kf.quantize' yet; use --device=reference}}
  %0 = kf.quantize %x <q8_0> : tensor<?x64xf32>
  kf.yield %0 : tensor<?x64x!kf.quant<q8_0>>
}

// -----

kf.kernel @keys(%c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32, key_block = 4>, %k: tensor<?x2x8xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>)
    attributes {schedule = #kf.simt<workgroup = [1], threads = [8]>} {
  // expected-error @below {{no GPU kernel for 'kf.kv_append' on '!kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32, key_block = 4>' yet; use --device=cpu or --device=reference}}
  kf.kv_append %c, %k, %k, %p, %s, %t {layer = 0 : i64} : !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32, key_block = 4>, tensor<?x2x8xf32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield
}

// -----

kf.kernel @attention(%q: tensor<?x2x8xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32, key_block = 4>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x2x8xf32>
    attributes {schedule = #kf.flash<workgroup = [1, 1], keys = 16, threads = [8]>} {
  // expected-error @below {{no GPU kernel for 'kf.attention' on '!kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32, key_block = 4>' yet; use --device=cpu or --device=reference}}
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x2x8xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32, key_block = 4>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x8xf32>
}

// -----

kf.kernel @negated(%q: tensor<?x2x8xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x2x8xf32>
    attributes {schedule = #kf.flash<workgroup = [1, 1], keys = 16, threads = [8]>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x2x8xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>, tensor<?xi32>, tensor<1x4xi32>
  // expected-error @below {{no GPU kernel for 'arith.negf' that reads 'tensor<?x1x8xf32>' from 'kf.attention'; compute that in a kernel of its own}}
  %1 = arith.negf %0 : tensor<?x2x8xf32>
  kf.yield %1 : tensor<?x2x8xf32>
}

// -----

// Sums in the place of codes.
kf.kernel @codes_twice(%x: tensor<4x32xf32>) -> (tensor<4x1xi32>, tensor<4x1xf32>, tensor<4x32xi8>)
    attributes {schedule = #kf.simt<workgroup = [4], threads = [8]>, grid = #kf.grid<tokens = [0], counts = [1]>} {
  %e = tensor.empty() : tensor<4x32xi8>
  %f = tensor.empty() : tensor<4x1xf32>
  %g = tensor.empty() : tensor<4x1xi32>
  %0:3 = scf.forall (%i) = (0) to (4) step (4) shared_outs(%a = %g, %b = %f, %d = %e) -> (tensor<4x1xi32>, tensor<4x1xf32>, tensor<4x32xi8>) {
    // expected-error @below {{no GPU kernel for 'kf.quantize_rows' that does not make the kernel's results, in their order; form kernels of other ops}}
    %c, %s, %t = kf.quantize_rows %x group(32) : tensor<4x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %a[%i, 0] [4, 1] [1, 1] : tensor<4x1xi32> into tensor<4x1xi32>
      tensor.parallel_insert_slice %s into %b[%i, 0] [4, 1] [1, 1] : tensor<4x1xf32> into tensor<4x1xf32>
      tensor.parallel_insert_slice %c into %d[%i, 0] [4, 32] [1, 1] : tensor<4x32xi8> into tensor<4x32xi8>
    }
  }
  kf.yield %0#0, %0#1, %0#2 : tensor<4x1xi32>, tensor<4x1xf32>, tensor<4x32xi8>
}

// -----

kf.kernel @softmax_twice(%x: tensor<4x64xf32>) -> (tensor<4x64xf32>, tensor<4x64xf32>)
    attributes {schedule = #kf.simt<workgroup = [4], threads = [8]>, grid = #kf.grid<tokens = [0], counts = [1]>} {
  %e = tensor.empty() : tensor<4x64xf32>
  %0:2 = scf.forall (%i) = (0) to (4) step (4) shared_outs(%a = %e, %b = %e) -> (tensor<4x64xf32>, tensor<4x64xf32>) {
    // expected-error @below {{no GPU kernel for 'kf.softmax' that does not make the kernel's results, in their order}}
    %c = kf.softmax %x : tensor<4x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %c into %a[%i, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<4x64xf32>
      tensor.parallel_insert_slice %c into %b[%i, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<4x64xf32>
    }
  }
  kf.yield %0#0, %0#1 : tensor<4x64xf32>, tensor<4x64xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: a part of attention needs workgroup = [1, heads, 1]}}
kf.kernel @parts(%q: tensor<?x2x8xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> (tensor<?x2x2xf32>, tensor<?x2x2xf32>, tensor<?x2x2x8xf32>)
    attributes {schedule = #kf.flash<workgroup = [2, 1, 1], keys = 16, threads = [8]>} {
  %m, %n, %v = kf.attention_partial %q, %c, %p, %s, %t splits(2) {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x2x8xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %m, %n, %v : tensor<?x2x2xf32>, tensor<?x2x2xf32>, tensor<?x2x2x8xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = !kf.quant<q8_0>>
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
kf.kernel @append_of_blocks(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %g: tensor<32xf32>, %c: !layer, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x8xi32>) -> tensor<?x4x32xf32>
    attributes {schedule = #kf.flash<workgroup = [1, 2], keys = 16, threads = [32]>} {
  // expected-error @below {{no CUDA kernel for attention to '!kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = !kf.quant<q8_0>>' with an append; append in a kernel of its own}}
  kf.kv_append %c, %k, %k, %p, %s, %t {layer = 0 : i64} : !layer, tensor<?x2x32xf32>, tensor<?xi32>, tensor<3x8xi32>
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !layer, tensor<?xi32>, tensor<3x8xi32>
  kf.yield %0 : tensor<?x4x32xf32>
}
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f16>
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
kf.kernel @append_of_normalized_keys(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %g: tensor<32xf32>, %c: !layer, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x8xi32>) -> tensor<?x4x32xf32>
    attributes {schedule = #kf.flash<workgroup = [1, 2], keys = 16, threads = [32]>} {
  %n = kf.rms_norm %k, %g eps(1.0e-5) : tensor<?x2x32xf32>, tensor<32xf32>
  // expected-error @below {{no CUDA kernel for 'kf.kv_append' that reads 'tensor<?x1x32xf32>' from 'kf.rms_norm'; compute that in a kernel of its own}}
  kf.kv_append %c, %n, %k, %p, %s, %t {layer = 0 : i64} : !layer, tensor<?x2x32xf32>, tensor<?xi32>, tensor<3x8xi32>
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !layer, tensor<?xi32>, tensor<3x8xi32>
  kf.yield %0 : tensor<?x4x32xf32>
}
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f16>
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
kf.kernel @append_of_normalized_values(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %g: tensor<32xf32>, %c: !layer, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x8xi32>) -> tensor<?x4x32xf32>
    attributes {schedule = #kf.flash<workgroup = [1, 2], keys = 16, threads = [32]>} {
  %n = kf.rms_norm %k, %g eps(1.0e-5) : tensor<?x2x32xf32>, tensor<32xf32>
  // expected-error @below {{no CUDA kernel for 'kf.kv_append' that reads 'tensor<?x1x32xf32>' from 'kf.rms_norm'; compute that in a kernel of its own}}
  kf.kv_append %c, %k, %n, %p, %s, %t {layer = 0 : i64} : !layer, tensor<?x2x32xf32>, tensor<?xi32>, tensor<3x8xi32>
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !layer, tensor<?xi32>, tensor<3x8xi32>
  kf.yield %0 : tensor<?x4x32xf32>
}
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f16>
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
// expected-error @below {{schedule cannot run on a GPU: an append beside attention takes warps of 32 threads, found 8}}
kf.kernel @append_without_warps(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %g: tensor<32xf32>, %c: !layer, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x8xi32>) -> tensor<?x4x32xf32>
    attributes {schedule = #kf.flash<workgroup = [1, 2], keys = 16, threads = [8]>} {
  kf.kv_append %c, %k, %k, %p, %s, %t {layer = 0 : i64} : !layer, tensor<?x2x32xf32>, tensor<?xi32>, tensor<3x8xi32>
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !layer, tensor<?xi32>, tensor<3x8xi32>
  kf.yield %0 : tensor<?x4x32xf32>
}
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 32, type = f16>
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
// expected-error @below {{schedule cannot run on a GPU: a tile of attention, and an append beside it, have a kv_head}}
kf.kernel @append_of_all_heads(%q: tensor<2x2x32xf32>, %k: tensor<2x1x32xf32>, %c: !layer, %p: tensor<2xi32>, %s: tensor<2xi32>, %t: tensor<3x8xi32>) -> tensor<2x2x32xf32>
    attributes {schedule = #kf.flash<workgroup = [2, 2], keys = 16, threads = [32]>, grid = #kf.grid<tokens = [0], counts = [1]>} {
  %e = tensor.empty() : tensor<2x2x32xf32>
  %0 = scf.forall (%i) = (0) to (2) step (2) shared_outs(%a = %e) -> (tensor<2x2x32xf32>) {
    kf.kv_append %c, %k, %k, %p, %s, %t {layer = 0 : i64} : !layer, tensor<2x1x32xf32>, tensor<2xi32>, tensor<3x8xi32>
    %o = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<2x2x32xf32>, !layer, tensor<2xi32>, tensor<3x8xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o into %a[%i, 0, 0] [2, 2, 32] [1, 1, 1] : tensor<2x2x32xf32> into tensor<2x2x32xf32>
    }
  }
  kf.yield %0 : tensor<2x2x32xf32>
}
}

// -----

// A workgroup of a dimension that the loop does not have.
// expected-error @below {{convert-kf-to-gpu: the grid of a tiled kernel has the loop's dimensions, with a workgroup for each tile, and one of the schedule's parts where there are several}}
kf.kernel @grid_of_two(%x: tensor<4x64xf32>) -> tensor<4x64xf32>
    attributes {schedule = #kf.simt<workgroup = [4], threads = [8]>, grid = #kf.grid<tokens = [0, 0], counts = [1, 2]>} {
  %e = tensor.empty() : tensor<4x64xf32>
  %0 = scf.forall (%i) = (0) to (4) step (4) shared_outs(%a = %e) -> (tensor<4x64xf32>) {
    %c = kf.softmax %x : tensor<4x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %c into %a[%i, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<4x64xf32>
    }
  }
  kf.yield %0 : tensor<4x64xf32>
}

// -----

// A cluster without a dimension of its own.
!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 32, type = f16>
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
// expected-error @below {{convert-kf-to-gpu: the grid of a tiled kernel has the loop's dimensions, with a workgroup for each tile, and one of the schedule's parts where there are several}}
kf.kernel @no_parts(%q: tensor<1x2x32xf32>, %c: !layer, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x8xi32>) -> tensor<1x2x32xf32>
    attributes {schedule = #kf.flash_mma<workgroup = [1, 2], keys = 16, threads = [32, 1, 4], unit = mma_sync, rows = split, held = registers, parts = 2>, grid = #kf.grid<tokens = [0], counts = [1]>} {
  %e = tensor.empty() : tensor<1x2x32xf32>
  %0 = scf.forall (%i) = (0) to (1) step (1) shared_outs(%a = %e) -> (tensor<1x2x32xf32>) {
    %o = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<1x2x32xf32>, !layer, tensor<1xi32>, tensor<1x8xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o into %a[%i, 0, 0] [1, 2, 32] [1, 1, 1] : tensor<1x2x32xf32> into tensor<1x2x32xf32>
    }
  }
  kf.yield %0 : tensor<1x2x32xf32>
}
}

// -----

// A cluster of more workgroups than the schedule says.
!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 32, type = f16>
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
// expected-error @below {{convert-kf-to-gpu: the grid of a tiled kernel has the loop's dimensions, with a workgroup for each tile, and one of the schedule's parts where there are several}}
kf.kernel @four_parts(%q: tensor<1x2x32xf32>, %c: !layer, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x8xi32>) -> tensor<1x2x32xf32>
    attributes {schedule = #kf.flash_mma<workgroup = [1, 2], keys = 16, threads = [32, 1, 4], unit = mma_sync, rows = split, held = registers, parts = 2>, grid = #kf.grid<tokens = [0, 0], counts = [1, 4]>} {
  %e = tensor.empty() : tensor<1x2x32xf32>
  %0 = scf.forall (%i) = (0) to (1) step (1) shared_outs(%a = %e) -> (tensor<1x2x32xf32>) {
    %o = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<1x2x32xf32>, !layer, tensor<1xi32>, tensor<1x8xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o into %a[%i, 0, 0] [1, 2, 32] [1, 1, 1] : tensor<1x2x32xf32> into tensor<1x2x32xf32>
    }
  }
  kf.yield %0 : tensor<1x2x32xf32>
}
}

// -----

// More workgroups than tiles.
// expected-error @below {{convert-kf-to-gpu: the grid of a tiled kernel has the loop's dimensions}}
kf.kernel @two_groups(%x: tensor<4x64xf32>) -> tensor<4x64xf32>
    attributes {schedule = #kf.simt<workgroup = [4], threads = [8]>, grid = #kf.grid<tokens = [0], counts = [2]>} {
  %e = tensor.empty() : tensor<4x64xf32>
  %0 = scf.forall (%i) = (0) to (4) step (4) shared_outs(%a = %e) -> (tensor<4x64xf32>) {
    %c = kf.softmax %x : tensor<4x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %c into %a[%i, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<4x64xf32>
    }
  }
  kf.yield %0 : tensor<4x64xf32>
}

// -----

kf.kernel @batches(%x: tensor<2x4x64xf32>, %w: tensor<2x96x64xf32>) -> tensor<2x4x96xf32>
    attributes {schedule = #kf.simt<workgroup = [2, 96], threads = [32, 2], tile = [1, 3]>, grid = #kf.grid<tokens = [0], counts = [1]>} {
  %e = tensor.empty() : tensor<2x4x96xf32>
  %0 = scf.forall (%i) = (0) to (2) step (2) shared_outs(%a = %e) -> (tensor<2x4x96xf32>) {
    // expected-error @below {{no GPU kernel for 'kf.matmul' of batches; run kf-expand-tensors first}}
    %1 = kf.matmul %x, %w : tensor<2x4x64xf32>, tensor<2x96x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %a[%i, 0, 0] [2, 4, 96] [1, 1, 1] : tensor<2x4x96xf32> into tensor<2x4x96xf32>
    }
  }
  kf.yield %0 : tensor<2x4x96xf32>
}

// -----

!cache = !kf.state_cache<layers = 1, heads = 4, elements = 136, slot_pages = 2>
// expected-error @below {{schedule cannot run on a GPU: gated_delta needs threads = [columns], or [columns, parts] with as many columns as v has, and parts of at most 64 columns of k, which they divide evenly, 512 threads at most}}
kf.kernel @threads(%c: !cache, %q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %p: tensor<?xi32>, %s: tensor<3xi32>) -> tensor<?x4x8xf32>
    attributes {schedule = #kf.simt<workgroup = [1, 1], threads = [8, 3]>} {
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %d, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<?xi32>, tensor<3xi32>
  kf.yield %0 : tensor<?x4x8xf32>
}

// -----

// Kernels of attention find rows by the tile's offsets alone.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", memory = 232448>} {
kf.kernel @slice(%q: tensor<8x64x32xbf16>, %k: tensor<4x64x32xbf16>) -> tensor<4x64x32xbf16>
    attributes {schedule = #kf.flash_mma<workgroup = [1, 64], keys = 32, threads = [32, 4, 1], unit = mma_sync, rows = rounded, held = shared>} {
  %0 = tensor.extract_slice %q[4, 0, 0] [4, 64, 32] [1, 1, 1] : tensor<8x64x32xbf16> to tensor<4x64x32xbf16>
  // expected-error @below {{no CUDA kernel for 'kf.scaled_dot_product_attention' that reads 'tensor<1x64x32xbf16>' from 'tensor.extract_slice'; compute that in a kernel of its own}}
  %1 = kf.scaled_dot_product_attention %0, %k, %k : tensor<4x64x32xbf16>, tensor<4x64x32xbf16>, tensor<4x64x32xbf16>
  kf.yield %1 : tensor<4x64x32xbf16>
}
}

// -----

kf.kernel @groups(%x: tensor<?x8xf32>, %b: tensor<8xf32>) -> (tensor<?x2xi32>, tensor<?x2xf32>)
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64]>} {
  // expected-error @below {{no GPU kernel for 'kf.route' of groups; run kf-expand-route first}}
  %e, %w = kf.route %x top(2) sigmoid bias(%b : tensor<8xf32>) groups(4, 2) : tensor<?x8xf32>
  kf.yield %e, %w : tensor<?x2xi32>, tensor<?x2xf32>
}
