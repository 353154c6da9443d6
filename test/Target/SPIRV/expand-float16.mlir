// RUN: kf-opt %s --kf-spirv-expand-float16 | FileCheck %s --check-prefix=WITHOUT
// RUN: kf-opt %s --kf-spirv-expand-float16=has-float16=true | FileCheck %s --check-prefix=WITH
// RUN: kf-opt %s --kf-spirv-expand-float16 --canonicalize | FileCheck %s --check-prefix=VALUES

// Rounding is integer code anyway; buffers and widening where there is no f16.

// WITHOUT-LABEL: gpu.func @moves(
// WITHOUT-SAME:    %[[X:.*]]: memref<?xi16>, %[[Y:.*]]: memref<?xi16>)
// WITHOUT-NOT:     f16
// WITHOUT:         memref.load %[[X]]
// WITHOUT:         arith.cmpi uge, %{{.*}}, %c31744
// WITHOUT:         arith.bitcast %{{.*}} : i32 to f32
// WITHOUT:         scf.if %{{.*}} -> (i16)
// WITHOUT:         arith.trunci %{{.*}} : i32 to i16
// WITHOUT:         memref.store %{{.*}}, %[[Y]]
// WITH-LABEL: gpu.func @moves(
// WITH-SAME:    %{{.*}}: memref<?xf16>, %[[Y:.*]]: memref<?xf16>)
// WITH:         arith.extf %{{.*}} : f16 to f32
// WITH-NOT:     arith.truncf
// WITH:         %[[BITS:.*]] = arith.trunci %{{.*}} : i32 to i16
// WITH:         %[[HALF:.*]] = arith.bitcast %[[BITS]] : i16 to f16
// WITH:         memref.store %[[HALF]], %[[Y]]
gpu.module @moves {
  gpu.func @moves(%x: memref<?xf16>, %y: memref<?xf16>) kernel {
    %c0 = arith.constant 0 : index
    %h = memref.load %x[%c0] : memref<?xf16>
    %f = arith.extf %h : f16 to f32
    %s = arith.addf %f, %f : f32
    %zero = arith.constant 0.0 : f16
    %is = gpu.thread_id x
    %first = arith.cmpi eq, %is, %c0 : index
    %k = scf.if %first -> (f16) {
      scf.yield %h : f16
    } else {
      scf.yield %zero : f16
    }
    %t = arith.truncf %s : f32 to f16
    memref.store %k, %y[%is] : memref<?xf16>
    memref.store %t, %y[%c0] : memref<?xf16>
    gpu.return
  }
}

// Halves of the last bit go to the even number, what is too large to infinity.
// VALUES-LABEL: gpu.func @round(
// VALUES-DAG:     %[[ONE:.*]] = arith.constant 15360 : i16
// VALUES-DAG:     %[[EVEN:.*]] = arith.constant 15362 : i16
// VALUES-DAG:     %[[LARGEST:.*]] = arith.constant 31743 : i16
// VALUES-DAG:     %[[INFINITE:.*]] = arith.constant 31744 : i16
// VALUES-DAG:     %[[NEGATIVE:.*]] = arith.constant -32768 : i16
// VALUES-DAG:     %[[SMALLEST:.*]] = arith.constant 1 : i16
// VALUES-DAG:     %[[TWO:.*]] = arith.constant 2 : i16
// VALUES-DAG:     %[[NORMAL:.*]] = arith.constant 1024 : i16
// VALUES-DAG:     %[[NAN:.*]] = arith.constant 32256 : i16
// VALUES:         memref.store %[[ONE]], %{{.*}}[%c0]
// VALUES:         memref.store %[[EVEN]], %{{.*}}[%c1]
// VALUES:         memref.store %[[LARGEST]], %{{.*}}[%c2]
// VALUES:         memref.store %[[INFINITE]], %{{.*}}[%c3]
// VALUES:         memref.store %[[NEGATIVE]], %{{.*}}[%c4]
// VALUES:         memref.store %[[SMALLEST]], %{{.*}}[%c5]
// VALUES:         memref.store %[[TWO]], %{{.*}}[%c6]
// VALUES:         memref.store %[[NORMAL]], %{{.*}}[%c7]
// VALUES:         memref.store %[[NAN]], %{{.*}}[%c8]
// VALUES:         memref.store %[[INFINITE]], %{{.*}}[%c9]
gpu.module @round {
  gpu.func @round(%y: memref<?xf16>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c6 = arith.constant 6 : index
    %c7 = arith.constant 7 : index
    %c8 = arith.constant 8 : index
    %c9 = arith.constant 9 : index
    %v0 = arith.constant 1.00048828125 : f32     // 1 + half a step
    %v1 = arith.constant 1.00146484375 : f32     // 1 + one and a half
    %v2 = arith.constant 65519.0 : f32
    %v3 = arith.constant 65520.0 : f32
    %v4 = arith.constant -1.0e-30 : f32
    %v5 = arith.constant 5.9604645e-08 : f32     // 2^-24
    %v6 = arith.constant 8.9406967e-08 : f32     // 1.5 * 2^-24
    %v7 = arith.constant 6.1035156e-05 : f32     // 2^-14
    %v8 = arith.constant 0x7FC00000 : f32
    %v9 = arith.constant 0x7F800000 : f32
    %t0 = arith.truncf %v0 : f32 to f16
    memref.store %t0, %y[%c0] : memref<?xf16>
    %t1 = arith.truncf %v1 : f32 to f16
    memref.store %t1, %y[%c1] : memref<?xf16>
    %t2 = arith.truncf %v2 : f32 to f16
    memref.store %t2, %y[%c2] : memref<?xf16>
    %t3 = arith.truncf %v3 : f32 to f16
    memref.store %t3, %y[%c3] : memref<?xf16>
    %t4 = arith.truncf %v4 : f32 to f16
    memref.store %t4, %y[%c4] : memref<?xf16>
    %t5 = arith.truncf %v5 : f32 to f16
    memref.store %t5, %y[%c5] : memref<?xf16>
    %t6 = arith.truncf %v6 : f32 to f16
    memref.store %t6, %y[%c6] : memref<?xf16>
    %t7 = arith.truncf %v7 : f32 to f16
    memref.store %t7, %y[%c7] : memref<?xf16>
    %t8 = arith.truncf %v8 : f32 to f16
    memref.store %t8, %y[%c8] : memref<?xf16>
    %t9 = arith.truncf %v9 : f32 to f16
    memref.store %t9, %y[%c9] : memref<?xf16>
    gpu.return
  }
}

// VALUES-LABEL: gpu.func @extend(
// VALUES-DAG:     %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// VALUES-DAG:     %[[LARGEST:.*]] = arith.constant -6.550400e+04 : f32
// VALUES-DAG:     %[[SMALLEST:.*]] = arith.constant 5.96046448E-8 : f32
// VALUES-DAG:     %[[INFINITE:.*]] = arith.constant 0x7F800000 : f32
// VALUES-DAG:     %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// VALUES:         memref.store %[[ONE]]
// VALUES:         memref.store %[[LARGEST]]
// VALUES:         memref.store %[[SMALLEST]]
// VALUES:         memref.store %[[INFINITE]]
// VALUES:         memref.store %[[NAN]]
gpu.module @extend {
  gpu.func @extend(%y: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %h0 = arith.constant 1.0 : f16
    %h1 = arith.constant -65504.0 : f16
    %h2 = arith.constant 0x0001 : f16
    %h3 = arith.constant 0x7C00 : f16
    %h4 = arith.constant 0x7E00 : f16
    %f0 = arith.extf %h0 : f16 to f32
    memref.store %f0, %y[%c0] : memref<?xf32>
    %f1 = arith.extf %h1 : f16 to f32
    memref.store %f1, %y[%c0] : memref<?xf32>
    %f2 = arith.extf %h2 : f16 to f32
    memref.store %f2, %y[%c0] : memref<?xf32>
    %f3 = arith.extf %h3 : f16 to f32
    memref.store %f3, %y[%c0] : memref<?xf32>
    %f4 = arith.extf %h4 : f16 to f32
    memref.store %f4, %y[%c0] : memref<?xf32>
    gpu.return
  }
}
