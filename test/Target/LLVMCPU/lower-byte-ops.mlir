// RUN: kf-opt %s --kf-cpu-lower-byte-ops -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @dot(
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%{{.*}}, %{{.*}}, %{{.*}}) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.256"
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.128"
func.func @dot(%s: vector<16xi32>, %a: vector<64xi8>, %b: vector<64xi8>,
               %t: vector<8xi32>, %c: vector<32xi8>, %d: vector<32xi8>,
               %u: vector<4xi32>, %e: vector<16xi8>, %f: vector<16xi8>)
    -> (vector<16xi32>, vector<8xi32>, vector<4xi32>) {
  %0 = kf.dp4a %s, %a, %b : vector<16xi32>, vector<64xi8>
  %1 = kf.dp4a %t, %c, %d : vector<8xi32>, vector<32xi8>
  %2 = kf.dp4a %u, %e, %f : vector<4xi32>, vector<16xi8>
  return %0, %1, %2 : vector<16xi32>, vector<8xi32>, vector<4xi32>
}

// -----

// Each 16 bytes of the register look into a table of their own.
// CHECK-LABEL: func.func @table(
// CHECK-DAG:     %[[T:.*]] = arith.constant dense<[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1]> : vector<32xi8>
// CHECK:         llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%[[T]], %{{.*}})
func.func @table(%c: vector<32xi8>) -> vector<32xi8> {
  %0 = kf.look_up %c [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1] : vector<32xi8>
  return %0 : vector<32xi8>
}

// -----

func.func @odd_dot(%s: vector<2xi32>, %a: vector<8xi8>) -> vector<2xi32> {
  // expected-error @+1 {{kf-cpu-lower-byte-ops: needs 4, 8 or 16 lanes, found 2}}
  %0 = kf.dp4a %s, %a, %a : vector<2xi32>, vector<8xi8>
  return %0 : vector<2xi32>
}

// -----

func.func @odd_table(%c: vector<8xi8>) -> vector<8xi8> {
  // expected-error @+1 {{kf-cpu-lower-byte-ops: needs 16, 32 or 64 codes, found 8}}
  %0 = kf.look_up %c [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1] : vector<8xi8>
  return %0 : vector<8xi8>
}
