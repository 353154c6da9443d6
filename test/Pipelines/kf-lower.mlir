// RUN: kf-opt %S/Inputs/block.mlir --kf-set-target=target=cpu:x86-64-v4 --kf-fuse --kf-program --kf-schedule --kf-lower | FileCheck %s
// RUN: kf-opt %S/Inputs/block.mlir --kf-set-target=target=reference --kf-fuse --kf-program --kf-schedule --kf-lower \
// RUN:   | FileCheck %s --check-prefix=REFERENCE

// The program stays; kernels are LLVM functions with the ABI of the runtime.
// CHECK:     kf.program @block(
// CHECK-NOT: kf.kernel
// CHECK:     llvm.func internal @embedding_0_body(
// CHECK-NOT: unrealized_conversion_cast
// CHECK:     llvm.func @embedding_0(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64)
// CHECK:     llvm.intr.fma({{.*}}) : (vector<16xf32>, vector<16xf32>, vector<16xf32>) -> vector<16xf32>

// Nothing to lower for the reference.
// REFERENCE: kf.kernel @rms_norm_0(
// REFERENCE: kf.matmul
