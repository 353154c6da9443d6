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
