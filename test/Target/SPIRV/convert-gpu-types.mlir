// RUN: kf-opt %s --kf-spirv-convert-gpu | FileCheck %s --check-prefix=WORDS
// RUN: kf-opt %s --kf-spirv-convert-gpu=types=f16,i8,i16,i64 | FileCheck %s --check-prefix=NARROW
// RUN: not kf-opt %s --kf-spirv-convert-gpu=types=f64 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: error: kf-spirv-convert-gpu: types are f16, i8, i16 and i64, found f64

// A device without 8- and 16-bit types reads words. Parts of a word are stored
// by an atomic op that clears them and one that sets them, since other threads
// may store the other parts; no order beyond that is asked for.
// WORDS-LABEL: spirv.func @copy(
// WORDS-SAME:    !spirv.rtarray<i32, stride=4>
// WORDS-SAME:    !spirv.rtarray<i32, stride=4>
// WORDS:         spirv.Load "StorageBuffer" %{{.*}} : i32
// WORDS:         spirv.AtomicAnd <Device> <None>
// WORDS:         spirv.AtomicOr <Device> <None>
// WORDS:         spirv.AtomicAnd <Device> <None>
// WORDS:         spirv.AtomicOr <Device> <None>
// NARROW-LABEL: spirv.func @copy(
// NARROW-SAME:    !spirv.rtarray<i8, stride=1>
// NARROW-SAME:    !spirv.rtarray<i16, stride=2>
// NARROW:         spirv.Load "StorageBuffer" %{{.*}} : i8
// NARROW-NOT:     spirv.Atomic
// NARROW:         spirv.Store "StorageBuffer" %{{.*}} : i16
gpu.module @copy {
  gpu.func @copy(%x: memref<?xi8>, %y: memref<?xi16>) kernel
      attributes {known_block_size = array<i32: 1, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<?xi8>
    %w = arith.extui %v : i8 to i16
    memref.store %w, %y[%i] : memref<?xi16>
    memref.store %v, %x[%i] : memref<?xi8>
    gpu.return
  }
}
