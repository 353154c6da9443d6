// Weights from a GGUF file, by the names that it gives them. Ones are exact in
// the 8 bits that the CPU's kernel may round x to.
// RUN: kf-run exec %s --device=reference --input 1x256xf32=1 \
// RUN:   --weights %kf_models/kf-stories-gguf/kf-stories-Q4_0.gguf \
// RUN:   --output @%t.npy
// RUN: kf-run exec %s --input 1x256xf32=1 --expected @%t.npy \
// RUN:   --weights %kf_models/kf-stories-gguf/kf-stories-Q4_0.gguf \
// RUN:   | FileCheck %s
// CHECK: [SUCCESS] all results are as expected

// The function asks for another type than the file has.
// RUN: %fails 1 kf-run exec %s --input 1x256xf32=1 \
// RUN:   --weights %kf_models/kf-stories-gguf/kf-stories-Q8_0.gguf \
// RUN:   | FileCheck %s --check-prefix=TYPE
// TYPE: error: {{.*}}blk.0.attn_output.weight

func.func @project(%x: tensor<1x256xf32>) -> tensor<1x256xf32> {
  %w = kf.weight ["blk.0.attn_output.weight"] : tensor<256x256x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<1x256xf32>, tensor<256x256x!kf.quant<q4_0>>
  return %0 : tensor<1x256xf32>
}
