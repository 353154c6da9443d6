// RUN: kf-opt %S/Inputs/block.mlir --kf-set-target=target=cpu:x86-64-v4 --kf-fuse --kf-program | FileCheck %s
// RUN: kf-opt %S/Inputs/block.mlir --kf-set-target=target=reference --kf-fuse --kf-program \
// RUN:   | FileCheck %s --check-prefix=REFERENCE

// A step is a list of dispatches, nine for this layer.
// CHECK-LABEL: kf.program @block(
// CHECK-SAME:    max_tokens = 8 : i64
// CHECK:         kf.dispatch @embedding_0(
// CHECK-NEXT:    kf.dispatch @rms_norm_matmul_0(
// CHECK:         kf.dispatch @rope_kv_append_0(
// CHECK:         kf.dispatch @rope_attention_0(
// CHECK-NEXT:    kf.dispatch @matmul_add_0(
// CHECK-NEXT:    kf.dispatch @matmul_0(
// CHECK-NEXT:    kf.dispatch @matmul_add_1(
// CHECK-NEXT:    kf.dispatch @matmul_1(
// CHECK-NEXT:    kf.dispatch @argmax_0(
// CHECK-NEXT:    kf.yield
// CHECK-NOT:   func.func

// Every op is a kernel of its own.
// REFERENCE-LABEL: kf.program @block(
// REFERENCE-COUNT-15: kf.dispatch
// REFERENCE-NOT:      kf.dispatch
// REFERENCE:          kf.kernel
