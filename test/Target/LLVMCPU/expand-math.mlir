// RUN: kf-opt %s --kf-cpu-expand-math | FileCheck %s

// CHECK-LABEL: @expanded(
// CHECK-NOT:     math.exp
// CHECK-NOT:     math.tanh
// CHECK-NOT:     math.erf
// CHECK:         math.fma %{{.*}} : vector<16xf32>
// CHECK:         return
func.func @expanded(%x: vector<16xf32>) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>) {
  %0 = math.exp %x : vector<16xf32>
  %1 = math.tanh %x : vector<16xf32>
  %2 = math.erf %x : vector<16xf32>
  return %0, %1, %2 : vector<16xf32>, vector<16xf32>, vector<16xf32>
}

// What the CPU has an instruction for stays.
// CHECK-LABEL: @instructions(
// CHECK-NEXT:    math.sqrt
// CHECK-NEXT:    math.floor
// CHECK-NEXT:    return
func.func @instructions(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.sqrt %x : vector<16xf32>
  %1 = math.floor %0 : vector<16xf32>
  return %1 : vector<16xf32>
}
