// RUN: kf-opt %s --kf-cpu-expand-math -split-input-file | FileCheck %s

// Without F16C, what is in the fields of an f32 is multiplied by 2^112.
// CHECK-LABEL: func.func @without(
// CHECK-SAME:    %[[X:.*]]: vector<4xf16>
// CHECK-DAG:     %[[SCALE:.*]] = arith.constant dense<5.19229686E+33> : vector<4xf32>
// CHECK:         %[[H:.*]] = arith.bitcast %[[X]] : vector<4xf16> to vector<4xi16>
// CHECK:         arith.extui %[[H]] : vector<4xi16> to vector<4xi32>
// CHECK:         arith.mulf %{{.*}}, %[[SCALE]]
// CHECK:         arith.select
// CHECK-NOT:     arith.extf
module attributes {kf.target = #kf.cpu_target<cpu = "x86-64", lanes = 4>} {
func.func @without(%x: vector<4xf16>) -> vector<4xf32> {
  %0 = arith.extf %x : vector<4xf16> to vector<4xf32>
  return %0 : vector<4xf32>
}
}

// -----

// CHECK-LABEL: func.func @neon(
// CHECK:         arith.extf
module attributes {kf.target = #kf.cpu_target<cpu = "cortex-a72", triple = "aarch64-linux-gnu", lanes = 4, registers = 32>} {
func.func @neon(%x: vector<4xf16>) -> vector<4xf32> {
  %0 = arith.extf %x : vector<4xf16> to vector<4xf32>
  return %0 : vector<4xf32>
}
}

// -----

// CHECK-LABEL: func.func @with(
// CHECK:         arith.extf
module attributes {kf.target = #kf.cpu_target<cpu = "haswell", lanes = 8>} {
func.func @with(%x: vector<8xf16>) -> vector<8xf32> {
  %0 = arith.extf %x : vector<8xf16> to vector<8xf32>
  return %0 : vector<8xf32>
}
}
