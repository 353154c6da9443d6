// RUN: kf-opt %s -verify-diagnostics -split-input-file --allow-unregistered-dialect

// Verifiers and parsers of attributes and types.

// rope_scaling
// expected-error @+1 {{factor must be positive, found 0}}
"test.op"() {a = #kf.rope_scaling<linear, factor = 0.0>} : () -> ()

// -----

// expected-error @+1 {{factor must be positive, found -1}}
"test.op"() {a = #kf.rope_scaling<llama3, factor = -1.0>} : () -> ()

// -----

// expected-error @+1 {{llama3 scaling needs 0 < low_freq_factor <= high_freq_factor, found 0.000000e+00 and 4}}
"test.op"() {a = #kf.rope_scaling<llama3, factor = 8.0, high_freq_factor = 4.0, original_context = 64>} : () -> ()

// -----

// expected-error @+1 {{llama3 scaling needs 0 < low_freq_factor <= high_freq_factor}}
"test.op"() {a = #kf.rope_scaling<llama3, factor = 8.0, low_freq_factor = 4.0, high_freq_factor = 3.0, original_context = 64>} : () -> ()

// -----

// expected-error @+1 {{llama3 scaling needs a positive original_context, found 0}}
"test.op"() {a = #kf.rope_scaling<llama3, factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0>} : () -> ()

// -----

// expected-error @+2 {{expected ::mlir::kf::RopeScalingKind to be one of: linear, llama3}}
// expected-error @+1 {{failed to parse KF_RopeScalingAttr parameter 'kind'}}
"test.op"() {a = #kf.rope_scaling<yarn, factor = 8.0>} : () -> ()

// -----

// layout
// expected-error @+1 {{panel must be in [1, 65536], found 0}}
"test.op"() {a = #kf.layout<panel = 0>} : () -> ()

// -----

// expected-error @+1 {{panel must be in [1, 65536], found 4611686018427387904}}
"test.op"() {a = #kf.layout<panel = 4611686018427387904>} : () -> ()

// -----

// expected-error @+1 {{panel (24) must be a multiple of twice interleave (16)}}
"test.op"() {a = #kf.layout<panel = 24, interleave = 16>} : () -> ()

// -----

// expected-error @+1 {{panel (32) must be a multiple of twice interleave (-1)}}
"test.op"() {a = #kf.layout<panel = 32, interleave = -1>} : () -> ()

// -----

// expected-error @+1 {{#kf.layout needs a tensor of rank 2 to 4, found rank 1}}
func.func private @f(tensor<8xf32, #kf.layout<panel = 4>>)

// -----

// expected-error @+1 {{#kf.fragments needs a tensor of rank 2, of rank 3 with two matrices, or of rank 4 with one or two of each expert}}
func.func private @f(tensor<8xf32, #kf.fragments>)

// -----

// expected-error @+1 {{#kf.fragments needs a tensor of rank 2, of rank 3 with two matrices, or of rank 4 with one or two of each expert}}
func.func private @f(tensor<3x8x4xf32, #kf.fragments>)

// -----

// expected-error @+1 {{#kf.fragments needs elements of f16, bf16, f32 or f8E4M3FN, or blocks, found 'i32'}}
func.func private @f(tensor<8x4xi32, #kf.fragments>)

// -----

// expected-error @+1 {{#kf.layout with interleave needs bf16 elements, found 'f32'}}
func.func private @f(tensor<8x4xf32, #kf.layout<panel = 4, interleave = 2>>)

// -----

// expected-error @+1 {{#kf.layout with interleave needs bf16 elements, found 'f16'}}
func.func private @f(tensor<64x64xf16, #kf.layout<panel = 32, interleave = 16>>)

// -----

// expected-error @+1 {{#kf.layout with interleave needs bf16 elements, found '!kf.quant<q8_0>'}}
func.func private @f(tensor<8x32x!kf.quant<q8_0>, #kf.layout<panel = 4, interleave = 2>>)

// -----

// expected-error @+2 {{expected one of [f32, i8, s8, bf16, bf16_pairs] for what a matmul multiplies in, got: i4}}
// expected-error @+1 {{failed to parse KF_VectorScheduleAttr parameter 'dot'}}
"test.op"() {a = #kf.vector<dot = i4>} : () -> ()

// -----

// schedules
// expected-error @+1 {{duplicate or unknown struct parameter name: tiles}}
"test.op"() {a = #kf.vector<tiles = [4]>} : () -> ()

// -----

// expected-error @+1 {{duplicate or unknown struct parameter name: tile}}
"test.op"() {a = #kf.vector<tile = [4], tile = [8]>} : () -> ()

// -----

// expected-error @+1 {{duplicate or unknown struct parameter name: stages}}
"test.op"() {a = #kf.simt<workgroup = [1], threads = [64], stages = 2>} : () -> ()

// -----

// expected-error @+1 {{expected '='}}
"test.op"() {a = #kf.vector<lanes>} : () -> ()

// -----

// expected-error @+2 {{expected '['}}
// expected-error @+1 {{failed to parse KF_VectorScheduleAttr parameter 'tile'}}
"test.op"() {a = #kf.vector<tile = 4>} : () -> ()

// -----

// expected-error @+1 {{schedule: workgroup has -1, which is not in [0, 2147483647]}}
"test.op"() {a = #kf.vector<workgroup = [4, -1]>} : () -> ()

// -----

// expected-error @+1 {{schedule: workgroup has 4294967296, which is not in [0, 2147483647]}}
"test.op"() {a = #kf.simt<workgroup = [4294967296], threads = [1]>} : () -> ()

// -----

// expected-error @+1 {{schedule: tile has 0, which is not in [1, 65536]}}
"test.op"() {a = #kf.vector<tile = [0, 32]>} : () -> ()

// -----

// expected-error @+1 {{schedule: tile has 100000, which is not in [1, 65536]}}
"test.op"() {a = #kf.vector<tile = [1, 100000]>} : () -> ()

// -----

// expected-error @+1 {{schedule: reduction has -64, which is not in [0, 2147483647]}}
"test.op"() {a = #kf.vector<reduction = -64>} : () -> ()

// -----

// expected-error @+1 {{schedule: lanes must be a power of two up to 64, found 12}}
"test.op"() {a = #kf.vector<lanes = 12>} : () -> ()

// -----

// expected-error @+1 {{schedule: lanes must be a power of two up to 64, found 128}}
"test.op"() {a = #kf.vector<lanes = 128>} : () -> ()

// -----

// expected-error @+1 {{schedule: lanes must be a power of two up to 64, found -9223372036854775808}}
"test.op"() {a = #kf.vector<lanes = -9223372036854775808>} : () -> ()

// -----

// expected-error @+1 {{schedule: needs 1 <= accumulators <= unroll <= 64, found accumulators 1, unroll 0}}
"test.op"() {a = #kf.vector<unroll = 0>} : () -> ()

// -----

// expected-error @+1 {{schedule: needs 1 <= accumulators <= unroll <= 64, found accumulators 8, unroll 4}}
"test.op"() {a = #kf.vector<unroll = 4, accumulators = 8>} : () -> ()

// -----

// expected-error @+1 {{schedule: needs 1 <= accumulators <= unroll <= 64, found accumulators 1, unroll 65}}
"test.op"() {a = #kf.vector<unroll = 65>} : () -> ()

// -----

// expected-error @+1 {{schedule: unroll has 65, which is not in [1, 64]}}
"test.op"() {a = #kf.simt<threads = [1], unroll = 65>} : () -> ()

// -----

// expected-error @+1 {{schedule: threads has one to 3 entries, found 4}}
"test.op"() {a = #kf.simt<threads = [1, 2, 3, 4]>} : () -> ()

// -----

// expected-error @+1 {{schedule: threads has one to 3 entries, found 0}}
"test.op"() {a = #kf.simt<workgroup = [1]>} : () -> ()

// -----

// expected-error @+1 {{schedule: threads has 0, which is not in [1, 65536]}}
"test.op"() {a = #kf.simt<threads = [0]>} : () -> ()

// -----

// expected-error @+1 {{schedule: keys has 0, which is not in [1, 65536]}}
"test.op"() {a = #kf.flash<workgroup = [1, 1], keys = 0, threads = [64]>} : () -> ()

// -----

// expected-error @below {{schedule: keys must be 16, 32 or 64, found 48}}
"test.op"() {a = #kf.flash_mma<workgroup = [1, 1], keys = 48, threads = [32, 1, 1], unit = mma_sync, rows = split, held = registers>} : () -> ()

// -----

// expected-error @below {{schedule: threads must be [32, warps of rows, warps of keys]}}
"test.op"() {a = #kf.flash_mma<workgroup = [1, 1], keys = 16, threads = [64], unit = mma_sync, rows = split, held = registers>} : () -> ()

// -----

// expected-error @below {{schedule: threads has 33, which is not in [1, 32]}}
"test.op"() {a = #kf.flash_mma<workgroup = [1, 1], keys = 16, threads = [32, 1, 33], unit = mma_sync, rows = split, held = registers>} : () -> ()

// -----

// expected-error @below {{schedule: parts has 9, which is not in [1, 8]}}
"test.op"() {a = #kf.flash_mma<workgroup = [1, 1], keys = 16, threads = [32, 1, 8], unit = mma_sync, rows = split, held = registers, parts = 9>} : () -> ()

// -----

// expected-error @+1 {{schedule: workgroup and warps are [rows, columns]}}
"test.op"() {a = #kf.mma<workgroup = [64], warps = [2, 2], reduction = 32, stages = 3, unit = mma_sync>} : () -> ()

// -----

// expected-error @+1 {{schedule: workgroup has 0, which is not in [1, 65536]}}
"test.op"() {a = #kf.mma<workgroup = [0, 64], warps = [2, 2], reduction = 32, stages = 3, unit = mma_sync>} : () -> ()

// -----

// expected-error @+1 {{schedule: warps has 33, which is not in [1, 32]}}
"test.op"() {a = #kf.mma<workgroup = [64, 64], warps = [2, 33], reduction = 32, stages = 3, unit = mma_sync>} : () -> ()

// -----

// expected-error @+1 {{schedule: reduction must be 16, 32, 64 or 128, found 48}}
"test.op"() {a = #kf.mma<workgroup = [64, 64], warps = [2, 2], reduction = 48, stages = 3, unit = mma_sync>} : () -> ()

// -----

// expected-error @+1 {{schedule: stages has 1, which is not in [2, 8]}}
"test.op"() {a = #kf.mma<workgroup = [64, 64], warps = [2, 2], reduction = 32, stages = 1, unit = mma_sync>} : () -> ()

// -----

// expected-error @+1 {{schedule: workgroup is [rows, columns]}}
"test.op"() {a = #kf.stream<workgroup = [16], warps = 8, tiles = 4, stages = 3, unit = mma_sync, rows = split, held = shared>} : () -> ()

// -----

// expected-error @+1 {{schedule: workgroup is [rows, columns], or [rows, 1, columns] of experts}}
"test.op"() {a = #kf.stream<workgroup = [4, 2, 16], warps = 8, tiles = 4, stages = 3, unit = mma_sync, rows = split, held = shared>} : () -> ()

// -----

// expected-error @+1 {{schedule: workgroup has 0, which is not in [1, 65536]}}
"test.op"() {a = #kf.stream<workgroup = [1, 0], warps = 8, tiles = 4, stages = 3, unit = mma_sync, rows = split, held = shared>} : () -> ()

// -----

// expected-error @+1 {{schedule: warps has 33, which is not in [1, 32]}}
"test.op"() {a = #kf.stream<workgroup = [1, 16], warps = 33, tiles = 4, stages = 3, unit = mma_sync, rows = split, held = shared>} : () -> ()

// -----

// expected-error @+1 {{schedule: tiles has 34, which is not in [1, 32]}}
"test.op"() {a = #kf.stream<workgroup = [1, 16], warps = 8, tiles = 34, stages = 3, unit = mma_sync, rows = split, held = shared>} : () -> ()

// -----

// expected-error @+1 {{schedule: stages has 1, which is not in [2, 16]}}
"test.op"() {a = #kf.stream<workgroup = [1, 16], warps = 8, tiles = 4, stages = 1, unit = mma_sync, rows = split, held = shared>} : () -> ()

// -----

// expected-error @+1 {{schedule: reduction has -16, which is not in}}
"test.op"() {a = #kf.stream<workgroup = [1, 16], warps = 8, tiles = 4, stages = 2, unit = mma_sync, rows = split, held = shared, reduction = -16>} : () -> ()

// -----

// expected-error @+1 {{schedule: parts has 0, which is not in [1, 8]}}
"test.op"() {a = #kf.stream<workgroup = [16, 16], warps = 8, tiles = 4, stages = 2, unit = mma_sync, rows = rounded, held = registers, parts = 0>} : () -> ()

// -----

// expected-error @+1 {{schedule: parts has 9, which is not in [1, 8]}}
"test.op"() {a = #kf.stream<workgroup = [16, 16], warps = 8, tiles = 4, stages = 2, unit = mma_sync, rows = rounded, held = registers, parts = 9>} : () -> ()

// -----

// targets
// expected-error @+1 {{cpu_target: lanes must be 4, 8 or 16, found 12}}
"test.op"() {a = #kf.cpu_target<cpu = "native", lanes = 12>} : () -> ()

// -----

// expected-error @+1 {{cpu_target: registers must be 16 or 32, or 0 where that follows from the lanes, found 8}}
"test.op"() {a = #kf.cpu_target<cpu = "native", registers = 8>} : () -> ()

// -----

// expected-error @+1 {{cpu_target: workers must be in [0, 65536], found -1}}
"test.op"() {a = #kf.cpu_target<cpu = "native", workers = -1>} : () -> ()

// -----

// expected-error @+1 {{vulkan_target: subgroup must be in [1, 128], found 0}}
"test.op"() {a = #kf.vulkan_target<threads = 64, memory = 0, subgroup = 0>} : () -> ()

// -----

// expected-error @+1 {{vulkan_target: matrices are of f16, bf16 and i8, found 'f32'}}
"test.op"() {a = #kf.vulkan_target<threads = 64, memory = 0, matrices = [f32]>} : () -> ()

// -----

// expected-error @+1 {{vulkan_target: multiprocessors must be in [0, 65536], found -1}}
"test.op"() {a = #kf.vulkan_target<threads = 64, memory = 0, multiprocessors = -1>} : () -> ()

// -----

// expected-error @+1 {{schedule: warps has 0, which is not in [1, 32]}}
"test.op"() {a = #kf.lanes<workgroup = [1, 16], warps = 0, tiles = 1>} : () -> ()

// -----

// expected-error @+1 {{schedule: workgroup is [rows, columns], or [rows, 1, columns] of an expert_matmul}}
"test.op"() {a = #kf.lanes<workgroup = [16], warps = 8, tiles = 1>} : () -> ()

// -----

// expected-error @+1 {{schedule: block_warps (3) must divide warps (8)}}
"test.op"() {a = #kf.lanes<workgroup = [1, 16], warps = 8, tiles = 1, block_warps = 3>} : () -> ()

// -----

// expected-error @+1 {{vulkan_target: types are f16, i8, i16 and i64, found 'f64'}}
"test.op"() {a = #kf.vulkan_target<threads = 64, memory = 0, types = [i8, f64]>} : () -> ()

// -----

// expected-error @+1 {{cuda_target: chip must be sm_80 or later, as in sm_90a, found 'sm_75'}}
"test.op"() {a = #kf.cuda_target<chip = "sm_75">} : () -> ()

// -----

// expected-error @+1 {{cuda_target: chip must be sm_80 or later, as in sm_90a, found 'gfx90a'}}
"test.op"() {a = #kf.cuda_target<chip = "gfx90a">} : () -> ()

// -----

// expected-error @+1 {{kf.target says what a module is compiled for, such as #kf.cpu_target<...>}}
module attributes {kf.target = "cpu"} {}

// -----

// grid
// expected-error @+1 {{grid: tokens and counts need the same length, at most 3}}
"test.op"() {a = #kf.grid<tokens = [1], counts = [0, 1]>} : () -> ()

// -----

// expected-error @+1 {{grid: tokens and counts need the same length, at most 3}}
"test.op"() {a = #kf.grid<tokens = [1, 1, 1, 1], counts = [0, 0, 0, 0]>} : () -> ()

// -----

// expected-error @+1 {{grid: a dimension needs a positive divisor of n_tokens or a positive count}}
"test.op"() {a = #kf.grid<tokens = [0], counts = [0]>} : () -> ()

// -----

// expected-error @+1 {{grid: a dimension needs a positive divisor of n_tokens or a positive count}}
"test.op"() {a = #kf.grid<tokens = [-4], counts = [1]>} : () -> ()

// -----

// Enumerations
// expected-error @+2 {{expected ::mlir::kf::ActivationKind to be one of: identity, silu, gelu, gelu_tanh, relu}}
// expected-error @+1 {{failed to parse KF_ActivationKindAttr parameter}}
"test.op"() {a = #kf.activation_kind<swish>} : () -> ()

// -----

// expected-error @+2 {{expected ::mlir::kf::RopeStyle to be one of: half, interleaved}}
// expected-error @+1 {{failed to parse KF_RopeStyleAttr parameter}}
"test.op"() {a = #kf.rope_style<other>} : () -> ()

// -----

// expected-error @+2 {{expected ::mlir::kf::BlockFormat to be one of: q8_0, q4_0, q4_1, q5_0, q5_1, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, mxfp4, iq4_xs}}
// expected-error @+1 {{failed to parse KF_BlockFormatAttr parameter}}
"test.op"() {a = #kf.block_format<q9_0>} : () -> ()

// -----

// Types
// expected-error @+1 {{kv_cache: every size must be positive}}
func.func private @f(!kf.kv_cache<layers = 0, kv_heads = 1, head_dim = 8, type = f32>)

// -----

// expected-error @+1 {{kv_cache: every size must be positive}}
func.func private @f(!kf.kv_cache<layers = 1, kv_heads = -1, head_dim = 8, type = f32>)

// -----

// expected-error @+1 {{kv_cache: every size must be positive}}
func.func private @f(!kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 0, type = f32>)

// -----

// expected-error @+1 {{kv_cache: every size must be positive}}
func.func private @f(!kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = f32, key_block = 0>)

// -----

// expected-error @+1 {{kv_cache: head_dim is at most 65536, key_block and page 65536}}
func.func private @f(!kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 65537, type = f32>)

// -----

// expected-error @+1 {{kv_cache: head_dim is at most 65536, key_block and page 65536}}
func.func private @f(!kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = f32, key_block = 65537>)

// -----

// expected-error @+1 {{kv_cache: every size must be positive}}
func.func private @f(!kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = f32, page = 0>)

// -----

// expected-error @+1 {{kv_cache: head_dim is at most 65536, key_block and page 65536}}
func.func private @f(!kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = f32, page = 65537>)

// -----

// expected-error @+1 {{kv_cache: page (24) must be a multiple of key_block (16)}}
func.func private @f(!kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = f32, key_block = 16, page = 24>)

// -----

// expected-error @+1 {{kv_cache: layers and kv_heads are at most 2147483647}}
func.func private @f(!kf.kv_cache<layers = 2147483648, kv_heads = 1, head_dim = 8, type = f32>)

// -----

// expected-error @+1 {{kv_cache: elements must be f32, f16, bf16 or !kf.quant<q8_0>, found 'f64'}}
func.func private @f(!kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = f64>)

// -----

// expected-error @+1 {{kv_cache: elements must be f32, f16, bf16 or !kf.quant<q8_0>, found '!kf.quant<q4_0>'}}
func.func private @f(!kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 32, type = !kf.quant<q4_0>>)

// -----

// expected-error @+1 {{kv_cache: head_dim (48) must be a multiple of 32 for elements in blocks; use f32, f16 or bf16}}
func.func private @f(!kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 48, type = !kf.quant<q8_0>>)

// -----

// expected-error @+2 {{expected ::mlir::kf::BlockFormat to be one of: q8_0, q4_0, q4_1, q5_0, q5_1, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, mxfp4, iq4_xs}}
// expected-error @+1 {{failed to parse KF_QuantType parameter}}
func.func private @f(tensor<32x!kf.quant<q9_0>>)

// -----

// expected-error @+1 {{unknown  type `nothing` in dialect `kf`}}
func.func private @f(tensor<96x64x!kf.nothing, #kf.layout<panel = 32, interleave = 16>>)
