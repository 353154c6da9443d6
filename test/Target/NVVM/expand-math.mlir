// RUN: kf-opt %s --kf-nvvm-expand-math | FileCheck %s

// What is left is arithmetic, fma, and operations on bits.

// CHECK-LABEL: func.func @exp
// CHECK:         arith.maximumf
// CHECK:         arith.minimumf
// CHECK-COUNT-9: math.fma
// CHECK:         arith.bitcast
// CHECK-NOT:     math.exp
// CHECK:         return
func.func @exp(%x: f32) -> f32 {
  %0 = math.exp %x : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @rough_exp
// CHECK:         %[[LOG2E:.*]] = arith.constant 1.442695
// CHECK:         %[[POWER:.*]] = arith.mulf %{{.*}}, %[[LOG2E]]
// CHECK-NEXT:    llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[POWER]])
// CHECK-NEXT:    return
func.func @rough_exp(%x: f32) -> f32 {
  %0 = math.exp %x fastmath<afn> : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @log
// CHECK-NOT:     math.log
// CHECK:         return
func.func @log(%x: f32) -> f32 {
  %0 = math.log %x : f32
  return %0 : f32
}

// Angles above 2^17 are reduced by integers, the others by three parts of pi/2.
// CHECK-LABEL: func.func @sin
// CHECK:         scf.if
// CHECK:           arith.muli {{.*}} : i64
// CHECK:         } else {
// CHECK-COUNT-4:   math.fma
// CHECK-NOT:     math.sin
// CHECK:         return
func.func @sin(%x: f32) -> f32 {
  %0 = math.sin %x : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @cos
// CHECK-NOT:     math.cos
// CHECK:         return
func.func @cos(%x: f32) -> f32 {
  %0 = math.cos %x : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @tanh
// CHECK:         math.copysign
// CHECK-NOT:     math.tanh
// CHECK:         return
func.func @tanh(%x: f32) -> f32 {
  %0 = math.tanh %x : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @erf
// CHECK:         math.copysign
// CHECK-NOT:     math.erf
// CHECK:         return
func.func @erf(%x: f32) -> f32 {
  %0 = math.erf %x : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @powf
// CHECK-NOT:     math.powf
// CHECK:         return
func.func @powf(%x: f32, %y: f32) -> f32 {
  %0 = math.powf %x, %y : f32
  return %0 : f32
}

// f16 is widened first.
// CHECK-LABEL: func.func @half
// CHECK:         arith.extf %{{.*}} : f16 to f32
// CHECK-NOT:     math.exp
// CHECK:         arith.truncf %{{.*}} : f32 to f16
func.func @half(%x: f16) -> f16 {
  %0 = math.exp %x : f16
  return %0 : f16
}

// What the GPU has instructions for stays, and so does what is not a scalar of
// f32, which the conversion refuses.
// CHECK-LABEL: func.func @kept
// CHECK:         math.sqrt
// CHECK:         math.floor
// CHECK:         math.exp {{.*}} : f64
func.func @kept(%x: f32, %y: f64) -> (f32, f32, f64) {
  %0 = math.sqrt %x : f32
  %1 = math.floor %x : f32
  %2 = math.exp %y : f64
  return %0, %1, %2 : f32, f32, f64
}

// Bits of a number that is rounded to f16: ptxas 13.0 stores a wrong byte where
// cvt.rn.f16.f32 wrote the register that st.b8 reads.
// CHECK-LABEL: func.func @bits
// CHECK-NOT:     arith.bitcast {{.*}} : f16 to i16
// CHECK:         arith.trunci {{.*}} : i32 to i16
// CHECK-NEXT:    return
func.func @bits(%x: f32) -> i16 {
  %half = arith.truncf %x : f32 to f16
  %0 = arith.bitcast %half : f16 to i16
  return %0 : i16
}

// A number that is used as such is rounded by the GPU.
// CHECK-LABEL: func.func @number
// CHECK-NEXT:    arith.truncf {{.*}} : f32 to f16
func.func @number(%x: f32) -> f16 {
  %0 = arith.truncf %x : f32 to f16
  return %0 : f16
}
