// RUN: kf-opt %s -split-input-file --kf-nvvm-convert-gpu -verify-diagnostics

gpu.module @atan {
  gpu.func @atan(%x: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<?xf32>
    // expected-error @below {{kf-nvvm-convert-gpu: no CUDA code for 'math.atan' on 'f32'}}
    %e = math.atan %v : f32
    memref.store %e, %x[%c0] : memref<?xf32>
    gpu.return
  }
}

// -----

gpu.module @wide {
  gpu.func @wide(%x: memref<?xf64>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<?xf64>
    // expected-error @below {{kf-nvvm-convert-gpu: no CUDA code for 'math.exp' on 'f64'}}
    %e = math.exp %v : f64
    memref.store %e, %x[%c0] : memref<?xf64>
    gpu.return
  }
}

// -----

gpu.module @remainder {
  gpu.func @remainder(%x: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<?xf32>
    // expected-error @below {{kf-nvvm-convert-gpu: no CUDA code for 'arith.remf' on 'f32'}}
    %e = arith.remf %v, %v : f32
    memref.store %e, %x[%c0] : memref<?xf32>
    gpu.return
  }
}

// -----

gpu.module @dim {
  gpu.func @dim(%x: memref<?xf32>, %y: memref<?xindex>) kernel {
    %c0 = arith.constant 0 : index
    // expected-error @below {{kf-nvvm-convert-gpu: a kernel's arguments are pointers; their sizes are not known}}
    %n = memref.dim %x, %c0 : memref<?xf32>
    memref.store %n, %y[%c0] : memref<?xindex>
    gpu.return
  }
}

// -----

gpu.module @rows {
  // expected-error @below {{kf-nvvm-convert-gpu: a kernel's buffer has one dimension, found 'memref<?x8xf32>'}}
  gpu.func @rows(%x: memref<?x8xf32>) kernel {
    gpu.return
  }
}

// -----

kf.program @p(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {max_tokens = 4 : i64, arena_bytes = 256 : i64} {
  %0 = kf.dispatch @k(%x) {offsets = array<i64: 0>} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-error @below {{'kf.dispatch' op kf-nvvm-convert-gpu: has 3 buffers, another one of the kernel has 2}}
  %1 = kf.dispatch @k(%0, %x) {offsets = array<i64: -1>} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  kf.yield %1 : tensor<?x8xf32>
}
gpu.module @k {
  gpu.func @k(%x: memref<?xf32>, %r: memref<?xf32>, %s: memref<?xi32>) kernel {
    gpu.return
  }
}

// -----

kf.program @p(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {max_tokens = 4 : i64, arena_bytes = 256 : i64} {
  %0 = kf.dispatch @k(%x) {offsets = array<i64: -1>} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  kf.yield %0 : tensor<?x8xf32>
}
gpu.module @k {
  // expected-error @below {{kf-nvvm-convert-gpu: a kernel takes the 2 buffers of its dispatches and the scalars, found 2 arguments}}
  gpu.func @k(%x: memref<?xf32>, %s: memref<?xi32>) kernel {
    gpu.return
  }
}
