// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector,canonicalize,cse)' -split-input-file | FileCheck %s

// 40 columns with vectors of 16: two whole ones in a loop, then one of 8.
// CHECK-LABEL: func.func @softmax(
// CHECK-SAME:    %[[X:.*]]: memref<?x40xf32>, %[[R:.*]]: memref<?x40xf32> {llvm.noalias}
// CHECK:         scf.for
// CHECK:           scf.for %{{.*}} = %c0 to %c32 step %c16 {{.*}} -> (vector<16xf32>)
// CHECK:             vector.load %[[X]]{{.*}}, vector<16xf32>
// CHECK:             arith.maximumf
// CHECK:           vector.reduction <maximumf>, %{{.*}} : vector<16xf32> into f32
// CHECK:           vector.reduction <maximumf>, %{{.*}} : vector<8xf32> into f32
// CHECK:           %[[E:.*]] = math.exp %{{.*}} : vector<16xf32>
// CHECK:           vector.store %[[E]], %[[KEPT:.*]][%
// CHECK:           math.exp %{{.*}} : vector<8xf32>
// CHECK-NOT:       math.exp
// CHECK:           vector.load %[[KEPT]]{{.*}}, vector<16xf32>
// CHECK:           vector.store %{{.*}}, %[[R]]{{.*}}, vector<16xf32>
// CHECK:           vector.store %{{.*}}, %[[R]]{{.*}}, vector<8xf32>
kf.kernel @softmax(%x: tensor<?x40xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.softmax %x : tensor<?x40xf32>
  kf.yield %0 : tensor<?x40xf32>
}

// -----

// Long rows have four sums, and what is left of 2096 columns joins one of them.
// CHECK-LABEL: func.func @long_rows(
// CHECK:         %[[FOUR:.*]]:4 = scf.for %{{.*}} = %c0 to %c2048 step %c64 {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK-COUNT-4: arith.addf
// CHECK:         %[[ALL:.*]] = arith.addf %{{.*}}, %[[FOUR]]#3
// CHECK:         %[[SUM:.*]] = scf.for %{{.*}} = %c2048 to %c2096 step %c16 iter_args(%{{.*}} = %[[ALL]]) -> (vector<16xf32>)
// CHECK:         vector.reduction <add>, %[[SUM]]
kf.kernel @long_rows(%x: tensor<?x2096xf32>, %g: tensor<2096xf32>) -> tensor<?x2096xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x2096xf32>, tensor<2096xf32>
  kf.yield %0 : tensor<?x2096xf32>
}

// -----

// Softmax with vectors of 8 has no rest.
// CHECK-LABEL: func.func @softmax(
// CHECK:         scf.for %{{.*}} = %c0 to %c40 step %c8 {{.*}} -> (vector<8xf32>)
// CHECK-NOT:     vector<16xf32>
// CHECK:         return
kf.kernel @softmax(%x: tensor<?x40xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 8>} {
  %0 = kf.softmax %x : tensor<?x40xf32>
  kf.yield %0 : tensor<?x40xf32>
}

// -----

// The addition has no memory of its own: it is computed where it is read.
// CHECK-LABEL: func.func @rms_norm(
// CHECK-SAME:    kf.scratch_bytes = 0 : i64
// CHECK:         %[[SUM:.*]] = arith.addf %{{.*}} : vector<8xf32>
// CHECK-NEXT:    arith.mulf %[[SUM]], %[[SUM]]
// CHECK:         vector.reduction <add>
// CHECK:         math.sqrt
// CHECK:         arith.extf %{{.*}} : vector<8xbf16> to vector<8xf32>
// CHECK:         vector.store
kf.kernel @rms_norm(%x: tensor<?x32xf32>, %r: tensor<?x32xf32>, %g: tensor<32xbf16>) -> tensor<?x32xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 8>} {
  %0 = arith.addf %x, %r : tensor<?x32xf32>
  %1 = kf.rms_norm %0, %g eps(1.0e-5) : tensor<?x32xf32>, tensor<32xbf16>
  kf.yield %1 : tensor<?x32xf32>
}

// -----

// CHECK-LABEL: func.func @layer_norm(
// CHECK-COUNT-2: vector.reduction <add>
// CHECK:         math.sqrt
// CHECK:         vector.store %{{.*}} : memref<?x32xf32>, vector<16xf32>
kf.kernel @layer_norm(%x: tensor<?x32xf32>, %g: tensor<32xf32>, %b: tensor<32xf32>) -> tensor<?x32xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.layer_norm %x, %g bias(%b) eps(1.0e-5) : tensor<?x32xf32>, tensor<32xf32>, tensor<32xf32>
  kf.yield %0 : tensor<?x32xf32>
}

// -----

// An id outside the table gives zeros.
// CHECK-LABEL: func.func @embedding(
// CHECK-SAME:    %[[IDS:.*]]: memref<?xi32>, %[[T:.*]]: memref<100x16xbf16>
// CHECK:         memref.load %[[IDS]]
// CHECK:         arith.cmpi ult
// CHECK:         arith.select
kf.kernel @embedding(%ids: tensor<?xi32>, %t: tensor<100x16xbf16>) -> tensor<?x16xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.embedding %ids, %t : tensor<?xi32>, tensor<100x16xbf16>
  kf.yield %0 : tensor<?x16xf32>
}

// -----

// The lowest index of the largest element: rows are read where they lie, 128
// elements in each step of one loop; what is left is copied, with -inf behind
// it.
// CHECK-LABEL: func.func @argmax(
// CHECK-SAME:    %[[X:.*]]: memref<?x300xf32>, %{{.*}}: memref<?xi32> {llvm.noalias}
// CHECK:         memref.subview %[[X]][%{{.*}}, 0] [1, 300] [1, 1]
// CHECK:         scf.for
// CHECK-COUNT-8:   vector.load
// CHECK-COUNT-8:   arith.maxnumf
// CHECK:         vector.reduction <maxnumf>
// CHECK:         arith.cmpf oeq
// CHECK:         vector.reduction <minsi>
// CHECK:         memref.store %{{.*}} : memref<?xi32>
kf.kernel @argmax(%x: tensor<?x300xf32>) -> tensor<?xi32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.argmax %x : tensor<?x300xf32>
  kf.yield %0 : tensor<?xi32>
}

// -----

// Heads are views of rows: the third head of row t starts at column 64.
// CHECK-LABEL: func.func @views(
// CHECK-SAME:    %[[Y:.*]]: memref<?x128xf32>, %{{.*}}: memref<?x2x32xf32> {llvm.noalias}
// CHECK:         arith.addi %{{.*}}, %c64
// CHECK:         vector.load %[[Y]]{{.*}} : memref<?x128xf32>, vector<16xf32>
// CHECK:         vector.store %{{.*}} : memref<?x2x32xf32>, vector<16xf32>
kf.kernel @views(%y: tensor<?x128xf32>) -> tensor<?x2x32xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?x128xf32>
  %0 = tensor.extract_slice %y[0, 64] [%n, 64] [1, 1] : tensor<?x128xf32> to tensor<?x64xf32>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [%n, 2, 32] : tensor<?x64xf32> into tensor<?x2x32xf32>
  %2 = kf.activation(relu) %1 : tensor<?x2x32xf32>
  kf.yield %2 : tensor<?x2x32xf32>
}

// -----

// f16 is computed in f32, and rounded when it is stored.
// CHECK-LABEL: func.func @f16(
// CHECK:         arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>
// CHECK:         arith.maximumf %{{.*}} : vector<16xf32>
// CHECK:         arith.truncf %{{.*}} : vector<16xf32> to vector<16xf16>
// CHECK-NEXT:    vector.store
kf.kernel @f16(%x: tensor<?x32xf16>) -> tensor<?x32xf16>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.activation(relu) %x : tensor<?x32xf16>
  kf.yield %0 : tensor<?x32xf16>
}

// -----

// A weight that is known at run time is packed: 16 rows to a panel, rows past
// the last are zero.
// CHECK-LABEL: func.func @pack(
// CHECK-SAME:    memref<40x8xf32>, %{{.*}}: memref<3x1x8x16xf32> {llvm.noalias}
// CHECK:         memref.store
kf.kernel @pack(%w: tensor<40x8xf32>) -> tensor<40x8xf32, #kf.layout<panel = 16>>
    attributes {schedule = #kf.vector<workgroup = [16]>} {
  %0 = kf.pack %w : tensor<40x8xf32> to tensor<40x8xf32, #kf.layout<panel = 16>>
  kf.yield %0 : tensor<40x8xf32, #kf.layout<panel = 16>>
}

// -----

// Rows that do not lie as they are read are copied.
// CHECK-LABEL: func.func @argmax_of_slice(
// CHECK-NOT:     memref.subview
// CHECK:         vector.from_elements
// CHECK-NOT:     memref.subview
// CHECK:         vector.reduction <minsi>
kf.kernel @argmax_of_slice(%x: tensor<?x16xf32>) -> tensor<?xi32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 4>} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %0 = tensor.extract_slice %x[0, 1] [%n, 8] [1, 2] : tensor<?x16xf32> to tensor<?x8xf32>
  %1 = kf.argmax %0 : tensor<?x8xf32>
  kf.yield %1 : tensor<?xi32>
}

// -----

// A list is a constant of the module, whatever else has its name.
// CHECK:       memref.global "private" constant @picked_list_0 : memref<4xf32> = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 5.000000e+00]>
// CHECK-LABEL: func.func @picked(
// CHECK:         memref.get_global @picked_list_0
// CHECK-LABEL: func.func @picked_list(
kf.kernel @picked(%x: tensor<?x4xf32>) -> tensor<?x4xf32>
    attributes {schedule = #kf.vector<workgroup = [1], lanes = 4>} {
  %0 = arith.constant dense<[[1.0, 2.0, 3.0, 5.0]]> : tensor<1x4xf32>
  %1 = kf.broadcast %0 : tensor<1x4xf32> to tensor<?x4xf32>
  %2 = arith.mulf %x, %1 : tensor<?x4xf32>
  kf.yield %2 : tensor<?x4xf32>
}
kf.kernel @picked_list(%x: tensor<?x4xf32>) -> tensor<?x4xf32>
    attributes {schedule = #kf.vector<workgroup = [1], lanes = 4>} {
  %0 = arith.negf %x : tensor<?x4xf32>
  kf.yield %0 : tensor<?x4xf32>
}
