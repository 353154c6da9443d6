// RUN: kf-opt %s --kf-cpu-emit-entry-points --canonicalize -split-input-file -verify-diagnostics | FileCheck %s

// The body keeps its arguments; the entry point has the ABI's.
// CHECK-LABEL: func.func private @k_body(
// CHECK-SAME:    memref<?x64xf32>, %{{.*}}: memref<8xf32>, %{{.*}}: memref<8xi64>, %{{.*}}: memref<?xi8>, %{{.*}}: index)
// CHECK-SAME:    llvm.linkage = #llvm.linkage<internal>, passthrough = ["alwaysinline"]
// CHECK-LABEL: func.func @k(
// CHECK-SAME:    %[[BINDINGS:.*]]: !llvm.ptr, %[[SCALARS:.*]]: !llvm.ptr, %[[SCRATCH:.*]]: !llvm.ptr, %[[GROUP:.*]]: i64)
// CHECK:         %[[X:.*]] = llvm.load %[[BINDINGS]] : !llvm.ptr -> !llvm.ptr
// CHECK:         %[[N:.*]] = llvm.load %[[SCALARS]] : !llvm.ptr -> i64
// CHECK:         llvm.insertvalue %[[N]], %{{.*}}[3, 0]
// CHECK:         %[[SECOND:.*]] = llvm.getelementptr %[[BINDINGS]][1]
// CHECK:         llvm.load %[[SECOND]] : !llvm.ptr -> !llvm.ptr
// CHECK:         %[[INDEX:.*]] = arith.index_cast %[[GROUP]] : i64 to index
// CHECK:         call @k_body({{.*}}, %[[INDEX]])
// CHECK-NEXT:    return
func.func @k(%x: memref<?x64xf32>, %r: memref<8xf32>, %scalars: memref<8xi64>,
             %scratch: memref<?xi8>, %workgroup: index)
    attributes {kf.grid = #kf.grid<tokens = [8], counts = [0]>} {
  return
}

// Other functions stay.
// CHECK-LABEL: func.func @other(
// CHECK-SAME:    %{{.*}}: memref<4xf32>)
func.func @other(%x: memref<4xf32>) {
  return
}

// -----

// expected-error @+1 {{kf-cpu-emit-entry-points: a function with kf.grid needs the arguments that convert-kf-to-vector gives it}}
func.func @too_few() attributes {kf.grid = #kf.grid<tokens = [8], counts = [0]>} {
  return
}

// -----

// expected-error @+1 {{kf-cpu-emit-entry-points: a function with kf.grid needs}}
func.func @no_buffers(%x: tensor<4xf32>, %scalars: memref<8xi64>, %scratch: memref<?xi8>,
                      %workgroup: index)
    attributes {kf.grid = #kf.grid<tokens = [8], counts = [0]>} {
  return
}
