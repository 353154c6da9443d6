// A row behind the page table, whose window has left it, sees no key: its
// result is zero, as it is without parts. Only a program takes such a row: of a
// function, exec knows what its inputs are.
// RUN: kf-run emit-mlir %s --compile-to=program > %t.mlir
// RUN: kf-run exec %t.mlir --context 256 --threads 1 --input 2x2x16xf32=0.5 --input 64x1x16xf32=1 \
// RUN:   --input 64xi32=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63 \
// RUN:   --input 64xi32=0 --input 2xi32=30,1000 --input 2xi32=0 --input 1x4xi32=0,1,2,3 \
// RUN:   --output - --expected "2x2x16xf32=[[1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1][1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1]][[0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0][0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]]" \
// RUN:   | FileCheck %s
// CHECK: [SUCCESS] all results are as expected

!cache = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 16, type = f32>
func.func @parts(%q: tensor<2x2x16xf32>, %k: tensor<64x1x16xf32>, %kp: tensor<64xi32>, %ks: tensor<64xi32>, %c: !cache, %p: tensor<2xi32>, %s: tensor<2xi32>, %t: tensor<1x4xi32>) -> tensor<2x2x16xf32> {
  kf.kv_append %c, %k, %k, %kp, %ks, %t {layer = 0 : i64} : !cache, tensor<64x1x16xf32>, tensor<64xi32>, tensor<1x4xi32>
  %m, %n, %v = kf.attention_partial %q, %c, %p, %s, %t splits(2) {layer = 0 : i64, scale = 0.25 : f32, window = 8 : i64} : tensor<2x2x16xf32>, !cache, tensor<2xi32>, tensor<1x4xi32>
  %0 = kf.attention_combine %m, %n, %v : tensor<2x2x2xf32>, tensor<2x2x2x16xf32>
  return %0 : tensor<2x2x16xf32>
}
