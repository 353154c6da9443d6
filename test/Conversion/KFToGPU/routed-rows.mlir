// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

// A row's logits go to workgroup memory, and what they are ordered by, of which
// a thread compares eight at a time with its own: the seven that there are, and
// one that comes last. Who has one of the first places stores its number and
// logit there; a place's weight is made of those of all places.
kf.kernel @normalized(%x: tensor<?x7xf32>) -> (tensor<?x3xi32>, tensor<?x3xf32>)
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64]>} {
  %e, %w = kf.route %x top(3) normalized : tensor<?x7xf32>
  kf.yield %e, %w : tensor<?x3xi32>, tensor<?x3xf32>
}
// CHECK-LABEL: gpu.func @normalized
// CHECK-SAME:    (%[[X:[a-z0-9]+]]: memref<?xf32>, %[[E:[a-z0-9]+]]: memref<?xi32>, %[[W:[a-z0-9]+]]: memref<?xf32>,
// CHECK-SAME:    workgroup(%[[LOGITS:[a-z0-9]+]] : memref<8xf32, #gpu.address_space<workgroup>>, %[[KEYS:[a-z0-9]+]] : memref<8xf32, #gpu.address_space<workgroup>>, %[[NUMBERS:[a-z0-9]+]] : memref<4xi32, #gpu.address_space<workgroup>>, %[[CHOSEN:[a-z0-9]+]] : memref<4xf32, #gpu.address_space<workgroup>>)
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [1], counts = [0]>
// CHECK:         scf.for
// CHECK:           %[[LOGIT:.*]] = memref.load %[[X]]
// CHECK:           memref.store %[[LOGIT]], %[[LOGITS]]
// CHECK:           %[[IS_NAN:.*]] = arith.cmpf uno, %[[LOGIT]], %[[LOGIT]]
// CHECK:           arith.select %[[IS_NAN]], %{{.*}}, %[[LOGIT]]
// CHECK:           memref.store %{{.*}}, %[[KEYS]]
// CHECK:         gpu.barrier
// CHECK:         scf.for
// CHECK:           %[[OWN:.*]] = memref.load %[[KEYS]]
// CHECK:           %[[OTHER:.*]] = memref.load %[[KEYS]]
// CHECK-COUNT-7:   memref.load %[[KEYS]]
// CHECK:           arith.cmpf ogt, %[[OTHER]], %[[OWN]]
// CHECK:           arith.cmpf oeq, %[[OTHER]], %[[OWN]]
// CHECK:           scf.if
// CHECK:             memref.store %{{.*}}, %[[NUMBERS]]
// CHECK:             memref.store %{{.*}}, %[[CHOSEN]]
// CHECK:         gpu.barrier
// CHECK:         scf.for
// CHECK:           %[[NUMBER:.*]] = memref.load %[[NUMBERS]]
// CHECK:           memref.store %[[NUMBER]], %[[E]]
// CHECK:           arith.maximumf
// CHECK:           math.exp
// CHECK:           memref.store %{{.*}}, %[[W]]

// -----

// Without normalized, all experts of the row count: threads find the largest
// and the sum of exponentials together.
kf.kernel @of_all(%x: tensor<1x40xbf16>, %s: tensor<40xf32>) -> (tensor<1x8xi32>, tensor<1x8xf32>)
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64]>} {
  %e, %w = kf.route %x top(8) scales(%s : tensor<40xf32>) : tensor<1x40xbf16>
  kf.yield %e, %w : tensor<1x8xi32>, tensor<1x8xf32>
}
// CHECK-LABEL: gpu.func @of_all
// CHECK-SAME:    %[[S:[a-z0-9]+]]: memref<?xf32>, %{{[a-z0-9]+}}: memref<?xi32>, %[[W:[a-z0-9]+]]: memref<?xf32>,
// CHECK:         arith.maximumf
// CHECK:         math.exp
// CHECK:         arith.cmpf ogt
// CHECK:         %[[SCALE:.*]] = memref.load %[[S]]
// CHECK:         %[[SCALED:.*]] = arith.mulf %{{.*}}, %[[SCALE]]
// CHECK:         memref.store %[[SCALED]], %[[W]]

// -----

// With a bias, sums order experts, and sigmoids weigh them.
kf.kernel @biased(%x: tensor<?x16xf32>, %b: tensor<16xf32>) -> (tensor<?x2xi32>, tensor<?x2xf32>)
    attributes {schedule = #kf.simt<workgroup = [4], threads = [32]>} {
  %e, %w = kf.route %x top(2) sigmoid bias(%b : tensor<16xf32>) : tensor<?x16xf32>
  kf.yield %e, %w : tensor<?x2xi32>, tensor<?x2xf32>
}
// CHECK-LABEL: gpu.func @biased
// CHECK-SAME:    (%[[X:[a-z0-9]+]]: memref<?xf32>, %[[B:[a-z0-9]+]]: memref<?xf32>,
// CHECK:         scf.for
// CHECK:           %[[BIAS:.*]] = memref.load %[[B]]
// CHECK:           arith.addf %{{.*}}, %[[BIAS]]
// CHECK:           arith.cmpf ogt
// A row after another: memory is read before it is overwritten.
// CHECK:           scf.if
// CHECK:             math.exp
// CHECK:           gpu.barrier
// CHECK:           gpu.barrier
// CHECK-NEXT:    }
