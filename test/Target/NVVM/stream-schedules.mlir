// RUN: kf-opt %s -split-input-file --kf-select-schedules -verify-diagnostics -o - | FileCheck %s

// Few rows with a weight for matrix units stream it; others do not.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132>} {
  // CHECK-LABEL: kf.kernel @gate_up
  // CHECK-SAME:    #kf.stream<workgroup = [1, 56], warps = 8, tiles = 2, stages = 3, unit = mma_sync, rows = split, held = shared>
  kf.kernel @gate_up(%x: tensor<1x4096xf32>, %w: tensor<2x14336x4096xbf16, #kf.fragments>) -> tensor<1x14336xf32> {
    %0 = kf.matmul %x, %w glu(silu) : tensor<1x4096xf32>, tensor<2x14336x4096xbf16, #kf.fragments>
    kf.yield %0 : tensor<1x14336xf32>
  }
  // x in parts.
  // CHECK-LABEL: kf.kernel @down
  // CHECK-SAME:    #kf.stream<workgroup = [1, 16], warps = 8, tiles = 2, stages = 4, unit = mma_sync, rows = split, held = shared, reduction = 3584>
  kf.kernel @down(%x: tensor<1x14336xf32>, %w: tensor<4096x14336xbf16, #kf.fragments>) -> tensor<1x4096xf32> {
    %0 = kf.matmul %x, %w : tensor<1x14336xf32>, tensor<4096x14336xbf16, #kf.fragments>
    kf.yield %0 : tensor<1x4096xf32>
  }
  // CHECK-LABEL: kf.kernel @many
  // CHECK-SAME:    #kf.simt<
  kf.kernel @many(%x: tensor<17x64xf32>, %w: tensor<96x64xbf16, #kf.fragments>) -> tensor<17x96xf32> {
    %0 = kf.matmul %x, %w : tensor<17x64xf32>, tensor<96x64xbf16, #kf.fragments>
    kf.yield %0 : tensor<17x96xf32>
  }
  // Four tiles of f32 share loads of x. Its rows are not rounded, nor held.
  // CHECK-LABEL: kf.kernel @f32
  // CHECK-SAME:    #kf.stream<workgroup = [1, 16], warps = 8, tiles = 4, stages = 2, unit = tf32_pairs, rows = f32, held = shared>
  kf.kernel @f32(%x: tensor<1x64xf32>, %w: tensor<96x64xf32, #kf.fragments>) -> tensor<1x96xf32> {
    %0 = kf.matmul %x, %w : tensor<1x64xf32>, tensor<96x64xf32, #kf.fragments>
    kf.yield %0 : tensor<1x96xf32>
  }
  // CHECK-LABEL: kf.kernel @rows_f32
  // CHECK-SAME:    #kf.stream<workgroup = [{{[0-9]+}}, {{[0-9]+}}], warps = 8, tiles = 4, {{.*}}, unit = tf32_pairs, rows = f32, held = shared,{{.*}} reduction =
  kf.kernel @rows_f32(%x: tensor<16x4096xf32>, %w: tensor<4096x4096xf32, #kf.fragments>) -> tensor<16x4096xf32> {
    %0 = kf.matmul %x, %w : tensor<16x4096xf32>, tensor<4096x4096xf32, #kf.fragments>
    kf.yield %0 : tensor<16x4096xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132, memory = 232448>} {
  // Rows of 16 bits are held: of K = 4096 by 16 warps, of 14336, with blocks,
  // by 7 in four slices, for which there is a cluster of four workgroups; 29 of
  // the 30 clusters that there are at once have work.
  // CHECK-LABEL: kf.kernel @held
  // CHECK-SAME:    #kf.stream<workgroup = [16, 48], warps = 16, tiles = 4, stages = 4, unit = mma_sync, rows = rounded, held = registers, reduction = 4096>
  kf.kernel @held(%x: tensor<16x4096xbf16>, %w: tensor<6144x4096xbf16, #kf.fragments>) -> tensor<16x6144xf32> {
    %0 = kf.matmul %x, %w wide : tensor<16x4096xbf16>, tensor<6144x4096xbf16, #kf.fragments>
    kf.yield %0 : tensor<16x6144xf32>
  }
  // CHECK-LABEL: kf.kernel @held_in_slices
  // CHECK-SAME:    #kf.stream<workgroup = [16, 144], warps = 7, tiles = 2, stages = 4, unit = mma_sync, rows = rounded, held = registers, reduction = 3584, parts = 4>
  kf.kernel @held_in_slices(%x: tensor<16x14336xf16>, %w: tensor<4096x14336x!kf.quant<q4_k>, #kf.fragments>) -> tensor<16x4096xf32> {
    %0 = kf.matmul %x, %w wide : tensor<16x14336xf16>, tensor<4096x14336x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<16x4096xf32>
  }
  // Rows that a norm makes are split, whatever they are stored as.
  // CHECK-LABEL: kf.kernel @normalized
  // CHECK-SAME:    warps = 8, tiles = 4, {{.*}}rows = split, held = shared
  kf.kernel @normalized(%x: tensor<16x4096xf16>, %g: tensor<4096xf16>, %w: tensor<6144x4096xf16, #kf.fragments>) -> tensor<16x6144xf16> {
    %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<16x4096xf16>, tensor<4096xf16>
    %1 = kf.matmul %0, %w : tensor<16x4096xf16>, tensor<6144x4096xf16, #kf.fragments>
    kf.yield %1 : tensor<16x6144xf16>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_89", multiprocessors = 128, memory = 101376>} {
  // Without clusters, one workgroup has all slices.
  // CHECK-LABEL: kf.kernel @held_alone
  // CHECK-SAME:    #kf.stream<workgroup = [16, 32], warps = 8, tiles = 1, stages = 3, unit = mma_sync, rows = rounded, held = registers, reduction = 2048>
  kf.kernel @held_alone(%x: tensor<16x14336xf16>, %w: tensor<4096x14336x!kf.quant<q4_k>, #kf.fragments>) -> tensor<16x4096xf32> {
    %0 = kf.matmul %x, %w wide : tensor<16x14336xf16>, tensor<4096x14336x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<16x4096xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: #kf.stream needs a weight with #kf.fragments, found tensor<96x64xbf16>}}
  kf.kernel @plain_weight(%x: tensor<1x64xf32>, %w: tensor<96x64xbf16>) -> tensor<1x96xf32>
      attributes {schedule = #kf.stream<workgroup = [1, 16], warps = 8, tiles = 2, stages = 2, unit = mma_sync, rows = split, held = shared>} {
    %0 = kf.matmul %x, %w : tensor<1x64xf32>, tensor<96x64xbf16>
    kf.yield %0 : tensor<1x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: tiles (3) must be a multiple of 2 where they have 16 columns of K}}
  kf.kernel @tiles(%x: tensor<1x64xf32>, %w: tensor<96x64xbf16, #kf.fragments>) -> tensor<1x96xf32>
      attributes {schedule = #kf.stream<workgroup = [1, 16], warps = 8, tiles = 3, stages = 2, unit = mma_sync, rows = split, held = shared>} {
    %0 = kf.matmul %x, %w : tensor<1x64xf32>, tensor<96x64xbf16, #kf.fragments>
    kf.yield %0 : tensor<1x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: #kf.stream is for matmul of rows of floats}}
  kf.kernel @no_product(%x: tensor<4x64xf32>, %g: tensor<64xf32>) -> tensor<4x64xf32>
      attributes {schedule = #kf.stream<workgroup = [1, 16], warps = 8, tiles = 2, stages = 2, unit = mma_sync, rows = split, held = shared>} {
    %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<4x64xf32>, tensor<64xf32>
    kf.yield %0 : tensor<4x64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: #kf.stream multiplies at most 32 rows, found 33}}
  kf.kernel @held_rows(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16, #kf.fragments>) -> tensor<?x96xf32>
      attributes {schedule = #kf.stream<workgroup = [33, 16], warps = 2, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = registers>} {
    %0 = kf.matmul %x, %w wide : tensor<?x64xbf16>, tensor<96x64xbf16, #kf.fragments>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: #kf.stream multiplies at most 16 rows, found 17}}
  kf.kernel @rows(%x: tensor<?x64xf32>, %w: tensor<96x64xbf16, #kf.fragments>) -> tensor<?x96xf32>
      attributes {schedule = #kf.stream<workgroup = [17, 16], warps = 8, tiles = 2, stages = 2, unit = mma_sync, rows = split, held = shared>} {
    %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xbf16, #kf.fragments>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: columns (12) must be a multiple of 8, those of a row block}}
  kf.kernel @columns(%x: tensor<1x64xf32>, %w: tensor<2x96x64xbf16, #kf.fragments>) -> tensor<1x96xf32>
      attributes {schedule = #kf.stream<workgroup = [1, 12], warps = 8, tiles = 2, stages = 2, unit = mma_sync, rows = split, held = shared>} {
    %0 = kf.matmul %x, %w glu(silu) : tensor<1x64xf32>, tensor<2x96x64xbf16, #kf.fragments>
    kf.yield %0 : tensor<1x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: reduction (384) must be a multiple of 256, a step of all warps}}
  kf.kernel @reduction(%x: tensor<1x1024xf32>, %w: tensor<96x1024xbf16, #kf.fragments>) -> tensor<1x96xf32>
      attributes {schedule = #kf.stream<workgroup = [1, 16], warps = 8, tiles = 2, stages = 2, unit = mma_sync, rows = split, held = shared, reduction = 384>} {
    %0 = kf.matmul %x, %w : tensor<1x1024xf32>, tensor<96x1024xbf16, #kf.fragments>
    kf.yield %0 : tensor<1x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: a lane holds 256 words of x, and has registers for 191}}
  kf.kernel @registers(%x: tensor<16x4096xbf16>, %w: tensor<96x4096xbf16, #kf.fragments>) -> tensor<16x96xf32>
      attributes {schedule = #kf.stream<workgroup = [16, 16], warps = 4, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = registers>} {
    %0 = kf.matmul %x, %w wide : tensor<16x4096xbf16>, tensor<96x4096xbf16, #kf.fragments>
    kf.yield %0 : tensor<16x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: reduction (64) must be a multiple of 128, a step of all warps}}
  kf.kernel @held_reduction(%x: tensor<16x4096xbf16>, %w: tensor<96x4096xbf16, #kf.fragments>) -> tensor<16x96xf32>
      attributes {schedule = #kf.stream<workgroup = [16, 16], warps = 4, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 64>} {
    %0 = kf.matmul %x, %w wide : tensor<16x4096xbf16>, tensor<96x4096xbf16, #kf.fragments>
    kf.yield %0 : tensor<16x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_89">} {
  // expected-error @below {{schedule cannot run on this device: parts are a cluster of workgroups, which sm_90 and later have}}
  kf.kernel @no_clusters(%x: tensor<16x1024xbf16>, %w: tensor<96x1024xbf16, #kf.fragments>) -> tensor<16x96xf32>
      attributes {schedule = #kf.stream<workgroup = [16, 16], warps = 4, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 512, parts = 2>} {
    %0 = kf.matmul %x, %w wide : tensor<16x1024xbf16>, tensor<96x1024xbf16, #kf.fragments>
    kf.yield %0 : tensor<16x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: parts (4) cannot each have some of 5 slices of 512 columns of K}}
  kf.kernel @idle_parts(%x: tensor<16x2560xbf16>, %w: tensor<96x2560xbf16, #kf.fragments>) -> tensor<16x96xf32>
      attributes {schedule = #kf.stream<workgroup = [16, 16], warps = 4, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 512, parts = 4>} {
    %0 = kf.matmul %x, %w wide : tensor<16x2560xbf16>, tensor<96x2560xbf16, #kf.fragments>
    kf.yield %0 : tensor<16x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: rows = rounded is for rows in memory of the 16-bit floats that go with the weight, found f32}}
  kf.kernel @rows_of_f32(%x: tensor<1x1024xf32>, %w: tensor<96x1024xbf16, #kf.fragments>) -> tensor<1x96xf32>
      attributes {schedule = #kf.stream<workgroup = [1, 16], warps = 4, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = registers>} {
    %0 = kf.matmul %x, %w : tensor<1x1024xf32>, tensor<96x1024xbf16, #kf.fragments>
    kf.yield %0 : tensor<1x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: rows = rounded is for rows in memory of the 16-bit floats that go with the weight, found f16 of a norm}}
  kf.kernel @rows_of_norm(%x: tensor<16x1024xf16>, %g: tensor<1024xf16>, %w: tensor<96x1024xf16, #kf.fragments>) -> tensor<16x96xf16>
      attributes {schedule = #kf.stream<workgroup = [16, 16], warps = 8, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = registers>} {
    %n = kf.rms_norm %x, %g eps(1.0e-5) : tensor<16x1024xf16>, tensor<1024xf16>
    %0 = kf.matmul %n, %w : tensor<16x1024xf16>, tensor<96x1024xf16, #kf.fragments>
    kf.yield %0 : tensor<16x96xf16>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: unit = tf32_pairs is for weights of f32, found bf16}}
  kf.kernel @pairs_of_bf16(%x: tensor<1x64xf32>, %w: tensor<96x64xbf16, #kf.fragments>) -> tensor<1x96xf32>
      attributes {schedule = #kf.stream<workgroup = [1, 16], warps = 8, tiles = 4, stages = 2, unit = tf32_pairs, rows = f32, held = shared>} {
    %0 = kf.matmul %x, %w : tensor<1x64xf32>, tensor<96x64xbf16, #kf.fragments>
    kf.yield %0 : tensor<1x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: unit = mma_sync is for weights of 16 bits or less, found f32}}
  kf.kernel @f32_by_mma_sync(%x: tensor<1x64xf32>, %w: tensor<96x64xf32, #kf.fragments>) -> tensor<1x96xf32>
      attributes {schedule = #kf.stream<workgroup = [1, 16], warps = 8, tiles = 4, stages = 2, unit = mma_sync, rows = split, held = shared>} {
    %0 = kf.matmul %x, %w : tensor<1x64xf32>, tensor<96x64xf32, #kf.fragments>
    kf.yield %0 : tensor<1x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.vulkan_target<threads = 256, memory = 65536, types = [f16, i8, i16]>} {
  // expected-error @below {{schedule cannot run on this device: #kf.stream needs the matrix units of NVIDIA GPUs}}
  kf.kernel @vulkan(%x: tensor<1x64xf32>, %w: tensor<96x64xbf16, #kf.fragments>) -> tensor<1x96xf32>
      attributes {schedule = #kf.stream<workgroup = [1, 16], warps = 8, tiles = 2, stages = 2, unit = mma_sync, rows = split, held = shared>} {
    %0 = kf.matmul %x, %w : tensor<1x64xf32>, tensor<96x64xbf16, #kf.fragments>
    kf.yield %0 : tensor<1x96xf32>
  }
}

// -----

// Three stages of 64 KiB, 8 KiB of x, 1 KiB of sums, 8 sums of squares, and 16
// bytes for a scale: each part begins at a multiple of these.
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on this device: it needs 205872 bytes of workgroup memory, the device has 49152}}
  kf.kernel @large(%x: tensor<1x1024xf32>, %g: tensor<1024xf32>, %w: tensor<96x1024xbf16, #kf.fragments>) -> tensor<1x96xf32>
      attributes {schedule = #kf.stream<workgroup = [1, 16], warps = 8, tiles = 16, stages = 3, unit = mma_sync, rows = split, held = shared>} {
    %n = kf.rms_norm %x, %g eps(1.0e-5) : tensor<1x1024xf32>, tensor<1024xf32>
    %0 = kf.matmul %n, %w : tensor<1x1024xf32>, tensor<96x1024xbf16, #kf.fragments>
    kf.yield %0 : tensor<1x96xf32>
  }
}

// -----

// Sums of many row blocks and parts of K would not fit in one workgroup's
// memory for each multiprocessor; narrower workgroups have room.
module attributes {kf.target = #kf.cuda_target<chip = "sm_86", multiprocessors = 82, memory = 101376>} {
  // CHECK-LABEL: kf.kernel @vocabulary
  // CHECK-SAME:    #kf.stream<workgroup = [16,
  // CHECK-SAME:    unit = mma_sync, rows = rounded, held = registers
  kf.kernel @vocabulary(%x: tensor<16x4096xf16>, %w: tensor<128256x4096x!kf.quant<q6_k>, #kf.fragments>) -> tensor<16x128256xf32> {
    %0 = kf.matmul %x, %w wide : tensor<16x4096xf16>, tensor<128256x4096x!kf.quant<q6_k>, #kf.fragments>
    kf.yield %0 : tensor<16x128256xf32>
  }
}
