// A module of several ranks is run by as many threads, which are all given the
// same inputs, and have to come to the same results.
//
// RUN: kf-run exec %s --function sums --input 2x4xf32=1,2,3,4,5,6,7,8 \
// RUN:   | FileCheck %s --check-prefix=SUMS
// RUN: kf-run exec %s --function sums --input 2x4xf32=1,2,3,4,5,6,7,8 \
// RUN:   --device reference --bench 3 2>&1 | FileCheck %s --check-prefix=BENCH
// SUMS: EXEC @sums
// SUMS: 2x4xf32=[9 18 27 36][45 54 63 72]
// BENCH: 3 runs: least
// BENCH: 2x4xf32=[9 18 27 36]
//
// RUN: kf-run exec %s --function gathers --input 2x2xf32=1,2,3,4 -t 3 \
// RUN:   --expected 2x5xf32=1,2,1,2,1,3,4,3,4,3 | FileCheck %s --check-prefix=SAME
// SAME: [SUCCESS]
//
// What all send, the next ranks have: of equal rows, the same.
// RUN: kf-run exec %s --function passes --input 2x2xf32=1,2,3,4 -t 3 \
// RUN:   --expected 2x2xf32=2,4,6,8 | FileCheck %s --check-prefix=SAME
// RUN: kf-run exec %s --function passes --input 2x2xf32=1,2,3,4 \
// RUN:   --device reference --expected 2x2xf32=2,4,6,8 \
// RUN:   | FileCheck %s --check-prefix=SAME
//
// What is compiled ahead, too.
// RUN: kf-run emit-mlir %s --function sums --compile-to=binary -o %t.kf
// RUN: kf-exec run %t.kf --input 1x4xf32=1 --expected 1x4xf32=9 --profile 2>&1 \
// RUN:   | FileCheck %s --check-prefix=PROFILE
// PROFILE-DAG: all_reduce {{ *}}2
// PROFILE-DAG: [SUCCESS]
//
// RUN: not kf-run exec %s --function sums --input 1x4xf32=1 -t 2 2>&1 \
// RUN:   | FileCheck %s --check-prefix=THREADS
// THREADS: error: -t 2: the threads are shared by 3 ranks, each of which takes one at least; raise -t, or have fewer ranks
// RUN: not kf-run exec %s --function sums --input 1x5xf32=1 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SHAPE
// SHAPE: error: input 0 is 1x5xf32, but the program takes ?x4xf32
module attributes {kf.ranks = 3 : i64} {
  func.func @sums(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %0 = kf.all_reduce %x : tensor<?x4xf32>
    %1 = kf.all_reduce %0 : tensor<?x4xf32>
    return %1 : tensor<?x4xf32>
  }

  func.func @gathers(%x: tensor<?x2xf32>) -> tensor<?x5xf32> {
    %0 = kf.all_gather %x : tensor<?x2xf32> to tensor<?x5xf32>
    return %0 : tensor<?x5xf32>
  }

  func.func @passes(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
    kf.send %x : tensor<?x2xf32>
    %0 = kf.receive : tensor<?x2xf32>
    %1 = arith.addf %0, %0 : tensor<?x2xf32>
    return %1 : tensor<?x2xf32>
  }
}
