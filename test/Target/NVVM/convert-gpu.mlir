// RUN: kf-opt %s --split-input-file --convert-scf-to-cf --kf-nvvm-convert-gpu --reconcile-unrealized-casts | FileCheck %s

// Arguments are bare pointers, attributions are globals in shared memory, and
// the size of a block is the only one that the kernel runs with.

// CHECK-LABEL: gpu.module @reduce
// CHECK:         llvm.mlir.global internal @[[MEMORY:.*]]() {addr_space = 3 : i32} : !llvm.array<64 x f32>
// CHECK:         llvm.func @reduce(%[[X:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr)
// CHECK-SAME:      nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>
// CHECK:           llvm.mlir.addressof @[[MEMORY]] : !llvm.ptr<3>
// CHECK:           nvvm.read.ptx.sreg.tid.x
// CHECK:           llvm.getelementptr {{.*}}[%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK:           llvm.intr.sqrt
// CHECK:           llvm.intr.maximum
// CHECK:           nvvm.barrier
// CHECK-NOT:       builtin.unrealized_conversion_cast
// CHECK:           llvm.return
gpu.module @reduce {
  gpu.func @reduce(%x: memref<?xf32>, %scalars: memref<?xi32>)
      workgroup(%memory : memref<64xf32, #gpu.address_space<workgroup>>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %step = arith.constant 64 : index
    %word = memref.load %scalars[%c0] : memref<?xi32>
    %n = arith.index_cast %word : i32 to index
    %thread = gpu.thread_id x
    %most = scf.for %i = %thread to %n step %step iter_args(%s = %zero) -> (f32) {
      %v = memref.load %x[%i] : memref<?xf32>
      %r = math.sqrt %v : f32
      %t = arith.maximumf %s, %r : f32
      scf.yield %t : f32
    }
    memref.store %most, %memory[%thread] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %y = memref.load %memory[%thread] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %y, %x[%thread] : memref<?xf32>
    gpu.return
  }
}

// -----

// Weights, and what the arena holds, are not written by a dispatch that reads
// them; inputs may be the buffer of an output, and a kernel may write a cache.
// The scalars come last. A layer of a cache begins where a page of the one before
// ends.

!cache = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 1, type = f32, page = 1>
kf.program @p(%x: tensor<?x8xf32>, %c: !cache) -> tensor<?x8xf32>
    attributes {max_tokens = 4 : i64, arena_bytes = 256 : i64} {
  %w = kf.weight ["w"] : tensor<8xf32>
  %l = kf.cache_layer %c[0] : !cache to !cache
  %0 = kf.dispatch @k(%x, %w, %l) {offsets = array<i64: 0>} : (tensor<?x8xf32>, tensor<8xf32>, !cache) -> tensor<?x8xf32>
  %1 = kf.dispatch @last(%0, %w, %l) {offsets = array<i64: -1>} : (tensor<?x8xf32>, tensor<8xf32>, !cache) -> tensor<?x8xf32>
  kf.yield %1 : tensor<?x8xf32>
}

// CHECK-LABEL: gpu.module @k
// CHECK:         llvm.func @k(%{{.*}}: !llvm.ptr {llvm.align = 16 : i64}, %{{.*}}: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}, %{{.*}}: !llvm.ptr {llvm.align = 8 : i64}, %{{.*}}: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias, llvm.readonly})
gpu.module @k {
  gpu.func @k(%x: memref<?xf32>, %w: memref<?xf32>, %c: memref<?xf32>, %r: memref<?xf32>, %s: memref<?xi32>) kernel {
    gpu.return
  }
}

// CHECK-LABEL: gpu.module @last
// CHECK:         llvm.func @last(%{{.*}}: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}, %{{.*}}: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}, %{{.*}}: !llvm.ptr {llvm.align = 8 : i64}, %{{.*}}: !llvm.ptr {llvm.align = 16 : i64}, %{{.*}}: !llvm.ptr {llvm.noalias, llvm.readonly})
gpu.module @last {
  gpu.func @last(%x: memref<?xf32>, %w: memref<?xf32>, %c: memref<?xf32>, %r: memref<?xf32>, %s: memref<?xi32>) kernel {
    gpu.return
  }
}

// -----

// All dispatches of a kernel have to agree.

kf.program @p(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {max_tokens = 4 : i64, arena_bytes = 256 : i64} {
  %0 = kf.dispatch @k(%x) {offsets = array<i64: 0>} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = kf.dispatch @k(%0) {offsets = array<i64: -1>} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  kf.yield %1 : tensor<?x8xf32>
}

// CHECK-LABEL: gpu.module @k
// CHECK:         llvm.func @k(%{{.*}}: !llvm.ptr {llvm.align = 16 : i64}, %{{.*}}: !llvm.ptr {llvm.align = 16 : i64}, %{{.*}}: !llvm.ptr {llvm.noalias, llvm.readonly})
gpu.module @k {
  gpu.func @k(%x: memref<?xf32>, %r: memref<?xf32>, %s: memref<?xi32>) kernel {
    gpu.return
  }
}

// -----

// One that begins while others are at work: what they write may change until it
// has waited, which nothing is moved across. Weights do not change.

kf.program @p(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {max_tokens = 4 : i64, arena_bytes = 256 : i64} {
  %w = kf.weight ["w"] : tensor<8xf32>
  %0 = kf.dispatch @k(%x, %w) {offsets = array<i64: 0>} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = kf.dispatch @early(%0, %w) {offsets = array<i64: 128>} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  kf.yield %1 : tensor<?x8xf32>
}

gpu.module @k {
  gpu.func @k(%x: memref<?xf32>, %w: memref<?xf32>, %r: memref<?xf32>, %s: memref<?xi32>) kernel {
    gpu.return
  }
}

// CHECK-LABEL: gpu.module @early
// CHECK:         llvm.func @early(%{{.*}}: !llvm.ptr {llvm.align = 16 : i64}, %{{.*}}: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}, %{{.*}}: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias, llvm.readonly})
// CHECK-SAME:      kf.waits
// CHECK:           nvvm.griddepcontrol launch_dependents
// CHECK-NEXT:      llvm.inline_asm has_side_effects "griddepcontrol.wait;", "~{memory}"
gpu.module @early {
  gpu.func @early(%x: memref<?xf32>, %w: memref<?xf32>, %r: memref<?xf32>, %s: memref<?xi32>) kernel {
    nvvm.griddepcontrol launch_dependents
    nvvm.griddepcontrol wait
    gpu.return
  }
}

// -----

// Half precision is the GPU's own; subgroup operations are those of a warp.

// CHECK-LABEL: gpu.module @warp
// CHECK:         llvm.load {{.*}} : !llvm.ptr -> f16
// CHECK:         llvm.fpext {{.*}} : f16 to f32
// CHECK:         nvvm.shfl.sync bfly
gpu.module @warp {
  gpu.func @warp(%x: memref<?xf16>, %r: memref<?xf32>) kernel
      attributes {known_block_size = array<i32: 32, 1, 1>} {
    %thread = gpu.thread_id x
    %v = memref.load %x[%thread] : memref<?xf16>
    %wide = arith.extf %v : f16 to f32
    %offset = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %other, %valid = gpu.shuffle xor %wide, %offset, %width : f32
    memref.store %other, %r[%thread] : memref<?xf32>
    gpu.return
  }
}
