// RUN: kf-opt %s --kf-set-target=target=vulkan:h200 --kf-compile | FileCheck %s

// A block of keys, then of values, in workgroup memory: 64 lines of 128 columns
// and 16 bytes. Scores are f32, weights words.
// CHECK-LABEL: spirv.module
// CHECK-SAME:    CooperativeMatrixKHR
// CHECK-DAG:     !spirv.ptr<!spirv.struct<(!spirv.array<1088 x vector<4xi32>>)>, Workgroup>
// CHECK-DAG:     !spirv.ptr<!spirv.struct<(!spirv.array<2304 x i32>)>, Workgroup>
// CHECK-DAG:     !spirv.ptr<!spirv.struct<(!spirv.array<4352 x f32>)>, Workgroup>
// Queries are rounded as the kernel asks for, without arithmetic before, and held.
// CHECK-NOT:     spirv.FSub
// CHECK:         spirv.FConvert {{.*}} : vector<2xf32> to vector<2xf16>
// CHECK-COUNT-8: spirv.KHR.CooperativeMatrixLoad {{.*}}, <RowMajor>, <NonPrivatePointer> : !spirv.ptr<vector<4xi32>, Workgroup>, i32 -> !spirv.coopmatrix<16x16xf16, Subgroup, MatrixA>
// Scores of 16 keys in 8 steps.
// CHECK:         spirv.mlir.loop
// CHECK:         spirv.KHR.CooperativeMatrixLoad {{.*}}, <ColumnMajor>, <NonPrivatePointer> : !spirv.ptr<vector<4xi32>, Workgroup>, i32 -> !spirv.coopmatrix<16x16xf16, Subgroup, MatrixB>
// CHECK-COUNT-8: spirv.KHR.CooperativeMatrixMulAdd
// CHECK:         spirv.KHR.CooperativeMatrixStore {{.*}}, <RowMajor>, <NonPrivatePointer> : !spirv.ptr<f32, Workgroup>
// CHECK:         spirv.GL.Exp
// Factors scale what there is of each 16 columns.
// CHECK:         %[[FACTORS:.*]] = spirv.KHR.CooperativeMatrixLoad {{.*}} -> !spirv.coopmatrix<16x16xf32, Subgroup, MatrixAcc>
// CHECK-COUNT-8: spirv.FMul %{{.*}}, %[[FACTORS]] {{.*}}: !spirv.coopmatrix<16x16xf32, Subgroup, MatrixAcc>
// CHECK:         spirv.KHR.CooperativeMatrixLoad {{.*}}, <RowMajor>, <NonPrivatePointer> : !spirv.ptr<i32, Workgroup>, i32 -> !spirv.coopmatrix<16x16xf16, Subgroup, MatrixA>
// CHECK:         spirv.KHR.CooperativeMatrixLoad {{.*}}, <RowMajor>, <NonPrivatePointer> : !spirv.ptr<vector<4xi32>, Workgroup>, i32 -> !spirv.coopmatrix<16x16xf16, Subgroup, MatrixB>
// What is not finite is noted.
// CHECK:         spirv.AtomicOr <Workgroup> <None>
// CHECK:         spirv.ExecutionMode @{{.*}} "RoundingModeRTE", 16
func.func @f(%q: tensor<?x32x128xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>, %c: !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 128, type = f16>) -> tensor<?x32x128xf32> attributes {kf.max_tokens = 512 : i64} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.1 : f32} : tensor<?x32x128xf32>, !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 128, type = f16>, tensor<?xi32>, tensor<1x8xi32>
  return %0 : tensor<?x32x128xf32>
}
