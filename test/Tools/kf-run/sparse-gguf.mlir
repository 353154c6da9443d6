// GGUF files whose tensors lie beyond 4 GiB. They are sparse: next to nothing
// of them is on the disk, or read.
// REQUIRES: sparse-files

// RUN: rm -rf %t && mkdir %t
// RUN: %S/Inputs/sparse_gguf.py table %t/table.gguf
// RUN: kf-run inspect %t/table.gguf --tensors | FileCheck %s --check-prefix=TABLE
// TABLE: table   F32  [1572864, 1024]  6442450944
// TABLE-NEXT: matrix  F32  [4, 1024]        16384
// RUN: kf-run exec %s --weights %t/table.gguf \
// RUN:   --input 4xi32=0,1048575,1048576,1572863 \
// RUN:   --expected "4x4xf32=[1 2 3 4][2 4 6 8][3 6 9 12][4 8 12 16]" \
// RUN:   | FileCheck %s --check-prefix=EXEC
// RUN: kf-run exec %s --weights %t/table.gguf --device reference \
// RUN:   --input 4xi32=0,1048575,1048576,1572863 \
// RUN:   --expected "4x4xf32=[1 2 3 4][2 4 6 8][3 6 9 12][4 8 12 16]" \
// RUN:   | FileCheck %s --check-prefix=EXEC
// EXEC: [SUCCESS] all results are as expected
// RUN: rm %t/table.gguf

// A model of which all but two tensors lie there: the numbers are those of the
// model without the hole.
// RUN: kf-run quantize %kf_golden/gpt2-layernorm %t/small.gguf --type f32
// RUN: %S/Inputs/sparse_gguf.py stretch %t/small.gguf %t/large.gguf
// RUN: kf-run inspect %t/large.gguf | FileCheck %s --check-prefix=LARGE
// LARGE: context        20971520 positions
// RUN: kf-run logits %t/small.gguf --ids 1,2,3 > %t/small.txt
// RUN: kf-run logits %t/large.gguf --ids 1,2,3 > %t/large.txt
// RUN: cmp %t/small.txt %t/large.txt
// RUN: rm %t/large.gguf

func.func @rows(%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %table = kf.weight ["table"] : tensor<1572864x1024xf32>
  %matrix = kf.weight ["matrix"] : tensor<4x1024xf32>
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<1572864x1024xf32>
  %1 = kf.matmul %0, %matrix : tensor<?x1024xf32>, tensor<4x1024xf32>
  return %1 : tensor<?x4xf32>
}
