// RUN: kf-opt %s --kf-cpu-lower-byte-ops -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @vnni(
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%{{.*}}, %{{.*}}, %{{.*}}) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.256"
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.128"
module attributes {kf.target = #kf.cpu_target<cpu = "native", int8_dot = true>} {
func.func @vnni(%s: vector<16xi32>, %a: vector<64xi8>, %b: vector<64xi8>,
                %t: vector<8xi32>, %c: vector<32xi8>, %d: vector<32xi8>,
                %u: vector<4xi32>, %e: vector<16xi8>, %f: vector<16xi8>)
    -> (vector<16xi32>, vector<8xi32>, vector<4xi32>) {
  %0 = kf.dp4a %s, %a, %b : vector<16xi32>, vector<64xi8>
  %1 = kf.dp4a %t, %c, %d most(15) : vector<8xi32>, vector<32xi8>
  %2 = kf.dp4a %u, %e, %f : vector<4xi32>, vector<16xi8>
  return %0, %1, %2 : vector<16xi32>, vector<8xi32>, vector<4xi32>
}
}

// -----

// Two products of 63 * 127 and as much again fit in 16 bits, the third begins
// the next sum. LLVM is kept from taking sums apart.
// CHECK-LABEL: func.func @few_bits(
// CHECK-SAME:    %[[S:[^:]*]]: vector<8xi32>, %[[A:[^:]*]]: vector<32xi8>, %[[B:[^:]*]]: vector<32xi8>
// CHECK:         %[[P0:.*]] = llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"(%[[A]], %[[B]]) : (vector<32xi8>, vector<32xi8>) -> vector<16xi16>
// CHECK:         %[[P1:.*]] = llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"(%[[B]], %[[A]])
// CHECK:         %[[W:.*]] = arith.addi %[[P0]], %[[P1]] : vector<16xi16>
// CHECK:         %[[PINNED:.*]] = llvm.inline_asm has_side_effects "", "=v,0" %[[W]] : (vector<16xi16>) -> vector<16xi16>
// CHECK:         %[[ONE:.*]] = arith.constant dense<1> : vector<16xi16>
// CHECK:         %[[D:.*]] = llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"(%[[PINNED]], %[[ONE]]) : (vector<16xi16>, vector<16xi16>) -> vector<8xi32>
// CHECK:         %[[S1:.*]] = arith.addi %[[S]], %[[D]] : vector<8xi32>
// CHECK:         %[[PINNED1:.*]] = llvm.inline_asm has_side_effects "", "=v,0" %[[S1]] : (vector<8xi32>) -> vector<8xi32>
// CHECK:         %[[P2:.*]] = llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"(%[[A]], %[[A]])
// CHECK:         %[[D2:.*]] = llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"(%[[P2]],
// CHECK:         %[[S2:.*]] = arith.addi %[[PINNED1]], %[[D2]]
// CHECK:         %[[PINNED2:.*]] = llvm.inline_asm has_side_effects "", "=v,0" %[[S2]]
// CHECK:         return %[[PINNED2]]
module attributes {kf.target = #kf.cpu_target<cpu = "haswell", lanes = 8, int8_dot = true, byte_dot = pmaddubsw>} {
func.func @few_bits(%s: vector<8xi32>, %a: vector<32xi8>, %b: vector<32xi8>)
    -> vector<8xi32> {
  %0 = kf.dp4a %s, %a, %b most(63) : vector<8xi32>, vector<32xi8>
  %1 = kf.dp4a %0, %b, %a most(63) : vector<8xi32>, vector<32xi8>
  %2 = kf.dp4a %1, %a, %a most(63) : vector<8xi32>, vector<32xi8>
  return %2 : vector<8xi32>
}

// Products of two rows stay in their order: each with the codes that rows share.
// CHECK-LABEL: func.func @in_order(
// CHECK-SAME:    vector<8xi32>, %[[A:[^:]*]]: vector<32xi8>, %[[B:[^:]*]]: vector<32xi8>
// CHECK:         pmadd.ub.sw"(%[[A]], %[[A]])
// CHECK:         pmadd.ub.sw"(%[[A]], %[[B]])
// CHECK:         %[[C:.*]] = arith.xori %[[A]], %[[B]]
// CHECK:         pmadd.ub.sw"(%[[C]], %[[A]])
// CHECK:         pmadd.wd
// CHECK:         pmadd.ub.sw"(%[[C]], %[[B]])
// CHECK:         pmadd.wd
func.func @in_order(%s: vector<8xi32>, %a: vector<32xi8>, %b: vector<32xi8>)
    -> (vector<8xi32>, vector<8xi32>) {
  %0 = kf.dp4a %s, %a, %a most(15) : vector<8xi32>, vector<32xi8>
  %1 = kf.dp4a %s, %a, %b most(15) : vector<8xi32>, vector<32xi8>
  %c = arith.xori %a, %b : vector<32xi8>
  %2 = kf.dp4a %0, %c, %a most(15) : vector<8xi32>, vector<32xi8>
  %3 = kf.dp4a %1, %c, %b most(15) : vector<8xi32>, vector<32xi8>
  return %2, %3 : vector<8xi32>, vector<8xi32>
}

// A sum that is read elsewhere, or goes on with other bounds, ends there.
// CHECK-LABEL: func.func @two_uses(
// CHECK-COUNT-3: pmadd.wd
func.func @two_uses(%s: vector<8xi32>, %a: vector<32xi8>, %b: vector<32xi8>)
    -> (vector<8xi32>, vector<8xi32>) {
  %0 = kf.dp4a %s, %a, %b most(15) : vector<8xi32>, vector<32xi8>
  %1 = kf.dp4a %0, %a, %b most(15) : vector<8xi32>, vector<32xi8>
  %2 = kf.dp4a %1, %a, %b most(31) : vector<8xi32>, vector<32xi8>
  return %0, %2 : vector<8xi32>, vector<8xi32>
}

// CHECK-LABEL: func.func @signed_bytes(
// CHECK-SAME:    %[[S:[^:]*]]: vector<8xi32>, %[[A:[^:]*]]: vector<32xi8>, %[[B:[^:]*]]: vector<32xi8>
// CHECK:         %[[X:.*]] = llvm.call_intrinsic "llvm.x86.avx2.psign.b"(%[[B]], %[[A]])
// CHECK:         %[[Y:.*]] = math.absi %[[A]]
// CHECK:         llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"(%[[Y]], %[[X]])
func.func @signed_bytes(%s: vector<8xi32>, %a: vector<32xi8>, %b: vector<32xi8>)
    -> vector<8xi32> {
  %0 = kf.dp4a %s, %a, %b signed : vector<8xi32>, vector<32xi8>
  return %0 : vector<8xi32>
}

// CHECK-LABEL: func.func @wide_signed_bytes(
// CHECK:         arith.cmpi slt
// CHECK:         arith.select
// CHECK:         "llvm.x86.avx512.pmaddubs.w.512"
// CHECK:         "llvm.x86.avx512.pmaddw.d.512"
func.func @wide_signed_bytes(%s: vector<16xi32>, %a: vector<64xi8>) -> vector<16xi32> {
  %0 = kf.dp4a %s, %a, %a signed : vector<16xi32>, vector<64xi8>
  return %0 : vector<16xi32>
}
}

// -----

// CHECK-LABEL: func.func @even_and_odd(
// CHECK-SAME:    %[[S:[^:]*]]: vector<4xi32>, %[[A:[^:]*]]: vector<16xi8>, %[[B:[^:]*]]: vector<16xi8>
// CHECK:         %[[U:.*]] = vector.bitcast %[[A]] : vector<16xi8> to vector<8xi16>
// CHECK:         arith.andi %[[U]]
// CHECK:         arith.shrui %[[U]]
// CHECK:         %[[V:.*]] = vector.bitcast %[[B]] : vector<16xi8> to vector<8xi16>
// CHECK-COUNT-2: arith.shrsi
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.sse2.pmadd.wd"
// CHECK:         arith.cmpi eq, %[[A]],
// CHECK-COUNT-15: arith.select
module attributes {kf.target = #kf.cpu_target<cpu = "x86-64", lanes = 4, int8_dot = true, byte_dot = pmaddwd>} {
func.func @even_and_odd(%s: vector<4xi32>, %a: vector<16xi8>, %b: vector<16xi8>)
    -> (vector<4xi32>, vector<16xi8>) {
  %0 = kf.dp4a %s, %a, %b : vector<4xi32>, vector<16xi8>
  %1 = kf.look_up %a [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1] : vector<16xi8>
  return %0, %1 : vector<4xi32>, vector<16xi8>
}
}

// -----

// CHECK-LABEL: func.func @neon(
// CHECK:         llvm.call_intrinsic "llvm.aarch64.neon.sdot"(%{{.*}}, %{{.*}}, %{{.*}}) : (vector<4xi32>, vector<16xi8>, vector<16xi8>) -> vector<4xi32>
// CHECK:         llvm.call_intrinsic "llvm.aarch64.neon.sdot"
// CHECK:         llvm.call_intrinsic "llvm.aarch64.neon.tbl1"(%{{.*}}, %{{.*}}) : (vector<16xi8>, vector<16xi8>) -> vector<16xi8>
module attributes {kf.target = #kf.cpu_target<cpu = "cortex-a76", triple = "aarch64-linux-gnu", lanes = 4, registers = 32, int8_dot = true, byte_dot = sdot>} {
func.func @neon(%s: vector<4xi32>, %a: vector<16xi8>, %b: vector<16xi8>)
    -> (vector<4xi32>, vector<16xi8>) {
  %0 = kf.dp4a %s, %a, %b signed : vector<4xi32>, vector<16xi8>
  %1 = kf.dp4a %0, %a, %b most(127) : vector<4xi32>, vector<16xi8>
  %2 = kf.look_up %a [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1] : vector<16xi8>
  return %1, %2 : vector<4xi32>, vector<16xi8>
}
}

// -----

// CHECK-LABEL: func.func @neon_mixed(
// CHECK:         llvm.call_intrinsic "llvm.aarch64.neon.usdot"
module attributes {kf.target = #kf.cpu_target<cpu = "neoverse-n2", triple = "aarch64-linux-gnu", lanes = 4, registers = 32, int8_dot = true, byte_dot = usdot>} {
func.func @neon_mixed(%s: vector<4xi32>, %a: vector<16xi8>, %b: vector<16xi8>) -> vector<4xi32> {
  %0 = kf.dp4a %s, %a, %b : vector<4xi32>, vector<16xi8>
  return %0 : vector<4xi32>
}
}

// -----

// Each 16 bytes of the register look into a table of their own.
// CHECK-LABEL: func.func @table(
// CHECK:         %[[T:.*]] = arith.constant dense<[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1]> : vector<32xi8>
// CHECK:         llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"(%[[T]], %{{.*}})
module attributes {kf.target = #kf.cpu_target<cpu = "native", int8_dot = true>} {
func.func @table(%c: vector<32xi8>) -> vector<32xi8> {
  %0 = kf.look_up %c [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1] : vector<32xi8>
  return %0 : vector<32xi8>
}
}

// -----

module attributes {kf.target = #kf.cpu_target<cpu = "native", int8_dot = true>} {
func.func @odd_dot(%s: vector<2xi32>, %a: vector<8xi8>) -> vector<2xi32> {
  // expected-error @+1 {{kf-cpu-lower-byte-ops: needs 4, 8 or 16 lanes, found 2}}
  %0 = kf.dp4a %s, %a, %a : vector<2xi32>, vector<8xi8>
  return %0 : vector<2xi32>
}
}

// -----

module attributes {kf.target = #kf.cpu_target<cpu = "native", int8_dot = true>} {
func.func @vnni_signed(%s: vector<4xi32>, %a: vector<16xi8>) -> vector<4xi32> {
  // expected-error @+1 {{kf-cpu-lower-byte-ops: vpdpbusd multiplies no bytes of a with a sign}}
  %0 = kf.dp4a %s, %a, %a signed : vector<4xi32>, vector<16xi8>
  return %0 : vector<4xi32>
}
}

// -----

module attributes {kf.target = #kf.cpu_target<cpu = "haswell", lanes = 8, int8_dot = true, byte_dot = pmaddubsw>} {
func.func @saturates(%s: vector<4xi32>, %a: vector<16xi8>) -> vector<4xi32> {
  // expected-error @+1 {{kf-cpu-lower-byte-ops: pmaddubsw multiplies bytes of a without a sign up to 127, not 255}}
  %0 = kf.dp4a %s, %a, %a : vector<4xi32>, vector<16xi8>
  return %0 : vector<4xi32>
}
}

// -----

module attributes {kf.target = #kf.cpu_target<cpu = "native", int8_dot = true>} {
func.func @odd_table(%c: vector<8xi8>) -> vector<8xi8> {
  // expected-error @+1 {{kf-cpu-lower-byte-ops: needs 16, 32 or 64 codes, found 8}}
  %0 = kf.look_up %c [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1] : vector<8xi8>
  return %0 : vector<8xi8>
}
}

// -----

module attributes {kf.target = #kf.cpu_target<cpu = "cortex-a76", triple = "aarch64-linux-gnu", lanes = 4, int8_dot = true, byte_dot = sdot>} {
func.func @wide_neon(%s: vector<8xi32>, %a: vector<32xi8>) -> vector<8xi32> {
  // expected-error @+1 {{kf-cpu-lower-byte-ops: needs 4 lanes, found 8}}
  %0 = kf.dp4a %s, %a, %a most(15) : vector<8xi32>, vector<32xi8>
  return %0 : vector<8xi32>
}
}

// -----

module attributes {kf.target = #kf.cpu_target<cpu = "cortex-a76", triple = "aarch64-linux-gnu", lanes = 4, int8_dot = true, byte_dot = sdot>} {
func.func @wide_neon_table(%c: vector<32xi8>) -> vector<32xi8> {
  // expected-error @+1 {{kf-cpu-lower-byte-ops: needs 16 codes, found 32}}
  %0 = kf.look_up %c [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1] : vector<32xi8>
  return %0 : vector<32xi8>
}
}

// -----

// expected-error @+1 {{the module does not say what it is compiled for}}
module {}

// -----

// expected-error @+1 {{the module is for #kf.reference_target, and this pass is for a #kf.cpu_target}}
module attributes {kf.target = #kf.reference_target} {}
