//===- KFSchedules.td - How kernels are computed
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One attribute for each algorithm, with the fields that its emitter obeys and
// no others. Policy writes it (a target, the tuner, a person), passes obey it,
// and the target's check rejects what it cannot run. Where a text that was
// measured would mean other code, kScheduleVersion (KernelKey.h) is raised.
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFSCHEDULES_TD
#define KF_DIALECT_KF_IR_KFSCHEDULES_TD

include "kf/Dialect/KF/IR/KFAttributes.td"
include "kf/Dialect/KF/IR/KFScheduleInterface.td"

class KF_ScheduleAttr<string name, string attrMnemonic>
    : KF_Attr<name#"Schedule", attrMnemonic, [KF_ScheduleAttrInterface]> {
  let genVerifyDecl = 1;
}

/// What a kernel's `schedule` may be.
def KF_AnyScheduleAttr
    : Attr<CPred<"::llvm::isa<::mlir::kf::ScheduleAttrInterface>($_self)">,
           "a schedule, such as #kf.vector or #kf.simt"> {
  let storageType = "::mlir::kf::ScheduleAttrInterface";
  let returnType = "::mlir::kf::ScheduleAttrInterface";
  let convertFromStorage = "$_self";
}

/// A list of sizes in brackets.
def KF_Sizes : OptionalArrayRefParameter<"int64_t"> {
  let parser = "::mlir::kf::parseSizeList($_parser)";
  let printer = "::mlir::kf::printSizes($_printer, $_self)";
}

def KF_DotKind
    : KF_I32Enum<
          "DotKind", "what a matmul multiplies in",
          [I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"I8", 1, "i8">,
           I32EnumAttrCase<"S8", 2, "s8">, I32EnumAttrCase<"BF16", 3, "bf16">,
           I32EnumAttrCase<"BF16Pairs", 4, "bf16_pairs">]>;

def KF_PrefetchKind : KF_I32Enum<"PrefetchKind", "how lines are prefetched",
                                 [I32EnumAttrCase<"Twice", 0, "twice">,
                                  I32EnumAttrCase<"Once", 1, "once">,
                                  I32EnumAttrCase<"Hardware", 2, "hardware">]>;

def KF_PanelUse : KF_I32Enum<"PanelUse", "how register tiles take a panel",
                             [I32EnumAttrCase<"Apart", 0, "apart">,
                              I32EnumAttrCase<"Unpacked", 1, "unpacked">,
                              I32EnumAttrCase<"Shared", 2, "shared">]>;

def KF_RowDivision
    : KF_I32Enum<"RowDivision", "how rows become register tiles",
                 [I32EnumAttrCase<"Whole", 0, "whole">,
                  I32EnumAttrCase<"Even", 1, "even">]>;

def KF_GroupOrder : KF_I32Enum<"GroupOrder", "when groups are summed up",
                               [I32EnumAttrCase<"Together", 0, "together">,
                                I32EnumAttrCase<"InTurn", 1, "in_turn">]>;

def KF_VectorScheduleAttr : KF_ScheduleAttr<"Vector", "vector"> {
  let summary = "vector code for one thread a workgroup (CPUs)";
  let description = [{
    - `workgroup`: tile of each parallel loop of the kernel's root op that one
      workgroup computes; 0 leaves the loop whole.
    - `tile`: register tile. matmul: [rows, columns], the columns being the
      panel of the weight's `#kf.layout`; expert_matmul: behind these, how many
      rows of an expert are made ready before its weight is read; attention:
      [query rows], or [query rows, those where a token is alone of its
      sequence]; with `dot = bf16` the first is 16; batch_matmul: [rows], 1 to
      16, that are summed up at a time (none: one).
    - `reduction`: attention's keys of one softmax block; with `dot = bf16`, how
      far a matmul sums up before it goes on to other columns (0: whole).
    - `lanes`: lanes of a vector register, in f32 elements.
    - `unroll`: unrolling of a matmul's reduction loop, whose steps are
      elements, or pairs with `dot = bf16_pairs`.
    - `accumulators`: independent partial sums per output of a matmul.
    - `dot`: what a matmul, or attention, multiplies in. `f32` widens both
      operands in registers; `i8`, for block-quantized weights on CPUs with
      `int8_dot`, rounds rows of x to 8 bits, with a scale for every 32 elements;
      an infinity among them becomes a NaN. `s8` is that for codes of 8 bits on
      CPUs whose `byte_dot` wants a sign on them. `bf16`, on CPUs with `amx`,
      takes weights of bf16 and blocks, whose elements it rounds, and rounds x to
      bf16. So does `bf16_pairs`, on CPUs with `bf16_dot`, for weights of bf16
      with an even K. Attention with `dot = bf16`, which has a cache of 16 bits
      or of blocks, and heads of a multiple of 32 elements, rounds queries, keys,
      values and the weights of keys; a token that is alone of its sequence is
      multiplied in f32 where `tile` has a size for it.
    - `prefetch`: how a matmul asks for lines of a weight. `twice`, early into
      the second-level cache and later into the nearest; of a weight that the
      former holds, into the nearest alone. Where several register tiles read a
      panel, or one of several rows of 8 bits, they ask for the panel behind it
      meanwhile, each for a share. `once`, for lines that are read once: into the
      nearest cache. `hardware`, for none: the CPU's own prefetchers do.
    - `hardware_rows`: of 8-bit products that ask for the panel behind: a
      register tile of so many rows or fewer that is the only one of its
      workgroup asks for none of it, as its lines come more slowly than they are
      multiplied.
    - `panels`: how register tiles of a matmul take a panel of the weight.
      `apart`, each converts what it multiplies for itself; `unpacked`, the panel
      is converted once for all of them, into scratch, where the weight is not
      f32; `shared`, of 8-bit products with `row_tiles = even`, all of them are
      multiplied with 32 elements of K, which the first one takes apart, before
      the next are read.
    - `row_tiles`: how a matmul's rows become register tiles. `whole`, of as many
      rows as `tile` says, and those that are left make smaller ones; `even`, as
      few tiles as there can be, of which some have one row more than the others.
    - `groups`: of a matmul with `glu` in `f32` or `bf16_pairs`: whether a
      register tile has the sums of gate and up `together`, and reads x once, or
      `in_turn`, with registers for one at a time. Other products take them in
      turn.

    Register tiles are at most 65536, other sizes 2^31 - 1.

    ```mlir
    #kf.vector<workgroup = [56, 128], tile = [14, 32], lanes = 16, unroll = 4, panels = unpacked>
    #kf.vector<workgroup = [16, 128], tile = [5, 32], lanes = 16, dot = i8, panels = shared, row_tiles = even>
    ```
  }];
  let parameters = (ins KF_Sizes:$workgroup, KF_Sizes:$tile,
      DefaultValuedParameter<"int64_t", "0">:$reduction,
      DefaultValuedParameter<"int64_t", "1">:$lanes,
      DefaultValuedParameter<"int64_t", "1">:$unroll,
      DefaultValuedParameter<"int64_t", "1">:$accumulators,
      DefaultValuedParameter<"::mlir::kf::DotKind",
                             "::mlir::kf::DotKind::F32">:$dot,
      DefaultValuedParameter<"::mlir::kf::PrefetchKind",
                             "::mlir::kf::PrefetchKind::Twice">:$prefetch,
      DefaultValuedParameter<"int64_t", "0">:$hardware_rows,
      DefaultValuedParameter<"::mlir::kf::PanelUse",
                             "::mlir::kf::PanelUse::Apart">:$panels,
      DefaultValuedParameter<"::mlir::kf::RowDivision",
                             "::mlir::kf::RowDivision::Whole">:$row_tiles,
      DefaultValuedParameter<"::mlir::kf::GroupOrder",
                             "::mlir::kf::GroupOrder::Together">:$groups);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<int64_t> getThreads() const { return {}; }
  }];
}

def KF_SumOwner : KF_I32Enum<"SumOwner", "whose threads' sums are",
                             [I32EnumAttrCase<"Own", 0, "own">,
                              I32EnumAttrCase<"Shared", 1, "shared">]>;

def KF_SimtScheduleAttr : KF_ScheduleAttr<"Simt", "simt"> {
  let summary = "scalar code for the threads of a GPU's workgroup";
  let description = [{
    - `workgroup`: tile of each parallel loop of the kernel's root op that one
      workgroup computes; 0 leaves the loop whole.
    - `threads`: threads of a workgroup along x, y, z.
    - `tile`: elements of a matmul that each thread keeps in registers, [rows,
      columns].
    - `reduction`: K step of a matmul whose operands are staged; 0 means whole.
    - `unroll`: unrolling of a matmul's loop over a staged step, or over the
      products of a thread; elsewhere, how many elements a thread reads before
      it uses the first.
    - `sums`: of a matmul. `own`, a thread's elements are its alone: `workgroup`
      is `tile` times `threads`, y being rows, and the operands are staged in
      workgroup memory. `shared`, threads along x, two or more, share the sum of
      each element, for few rows: `workgroup` has the tile's rows, and its
      columns times the threads along y; nothing is staged. Of a kf.reduce of
      floats along its last dimensions, `shared`: all threads share each
      element.

    Register tiles and threads are at most 65536, other sizes 2^31 - 1.

    ```mlir
    #kf.simt<workgroup = [32, 32], threads = [16, 16], tile = [2, 2], reduction = 16>
    #kf.simt<workgroup = [1, 8], threads = [32, 4], tile = [1, 2], unroll = 8, sums = shared>
    #kf.simt<workgroup = [1], threads = [64]>
    ```
  }];
  let parameters = (ins KF_Sizes:$workgroup, KF_Sizes:$threads, KF_Sizes:$tile,
      DefaultValuedParameter<"int64_t", "0">:$reduction,
      DefaultValuedParameter<"int64_t", "1">:$unroll,
      DefaultValuedParameter<"::mlir::kf::SumOwner",
                             "::mlir::kf::SumOwner::Own">:$sums);
  let assemblyFormat = "`<` struct(params) `>`";
}

def KF_RowForm
    : KF_I32Enum<"RowForm", "how rows are multiplied",
                 [I32EnumAttrCase<"F32", 0, "f32">,
                  I32EnumAttrCase<"Split", 1, "split">,
                  I32EnumAttrCase<"Rounded", 2, "rounded">]>;

def KF_OperandPlace
    : KF_I32Enum<"OperandPlace", "where units find their right operand",
                 [I32EnumAttrCase<"Registers", 0, "registers">,
                  I32EnumAttrCase<"Shared", 1, "shared">]>;

def KF_MmaScheduleAttr : KF_ScheduleAttr<"Mma", "mma"> {
  let summary = "a product of many rows on the matrix units of GPUs";
  let description = [{
    A workgroup computes `workgroup` = [rows, columns] of a matmul of 16-bit
    floats, with sums in f32; or [1, rows, columns] of a kf.batch_matmul of rank
    3, for one batch. Of f32, which is for `unit = mma_sync` alone, each factor
    is two numbers of bf16, what is rounded and what that leaves, and all but the
    product of what both leave is summed up: three products, which are right to
    2^-16. It goes along K in steps of `reduction`, whose operands are copied to
    shared memory while earlier ones are multiplied.

    - `warps`: how many divide the rows, and the columns. Each has a tile of its
      own, of whole 16 x 8 products.
    - `reduction`: 16, 32, 64 or 128 elements of K; 32 or more of codes (blocks
      and 8-bit floats with `#kf.fragments`).
    - `stages`: steps that shared memory holds, 2 to 8. Codes have a ring of
      their own there, of tiles of 256 columns, as many as the stages need.
    - `unit`: `mma_sync`, of a warp, whose operands are in registers; or `wgmma`
      (sm_90a), of four warps, which reads rows from shared memory itself. Of
      the latter, `warps` is [1, a multiple of 4], each with 16 lines of the
      weight, rows are at most 256, `reduction` is 64 and `stages` 3 or more. Or
      it is `coop_f16` or `coop_bf16`, cooperative matrices of 16 x 16, which
      subgroups of a Vulkan device multiply, those being the warps: for weights
      with `#kf.fragments`, blocks with scales of f16 among them, with a
      `reduction` of 32 and 2 `stages`, one of which is in registers while the
      other is multiplied.
    - `parts`: workgroups, up to 8, that divide K and have sums of the same tile,
      where there are fewer tiles than multiprocessors; of codes, each has whole
      tiles of 256 columns. They are a cluster (sm_90), and each adds up a part of
      the tile from their workgroup memory, in their order.
    - `shares`: of cooperative matrices, up to 32 subgroups of a workgroup that
      divide K, for few rows: each takes every so many steps (of blocks, parts
      of their tiles) by itself, with operands and sums of the whole tile, so
      that `warps` is [1, 1]. Their sums are added up at the end, in their order.

    ```mlir
    #kf.mma<workgroup = [128, 128], warps = [2, 2], reduction = 32, stages = 3, unit = mma_sync>
    #kf.mma<workgroup = [256, 128], warps = [1, 8], reduction = 64, stages = 4, unit = wgmma>
    #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 4, unit = wgmma, parts = 4>
    #kf.mma<workgroup = [128, 128], warps = [2, 2], reduction = 32, stages = 2, unit = coop_f16>
    #kf.mma<workgroup = [16, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 8>
    ```
  }];
  let parameters = (ins KF_Sizes:$workgroup, KF_Sizes:$warps,
      "int64_t":$reduction, "int64_t":$stages,
      "::mlir::kf::MatrixUnit":$unit,
      DefaultValuedParameter<"int64_t", "1">:$parts,
      DefaultValuedParameter<"int64_t", "1">:$shares);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<int64_t> getThreads() const { return {}; }
  }];
}

def KF_StreamScheduleAttr : KF_ScheduleAttr<"Stream", "stream"> {
  let summary = "a product of few rows by matrix units (NVIDIA GPUs)";
  let description = [{
    For a matmul of up to 16 rows, or 32 that registers hold, whose weight has
    `#kf.fragments`: the weight is read once, in long runs, and multiplied as it lies there. A workgroup
    owns the row blocks of its columns; its warps share K, and what they have
    is added in workgroup memory, in an order that is always the same. An
    infinity in a row makes NaNs where the weight has blocks, and one in a weight
    where x is split.

    Of an expert_matmul, with as many tokens as there may be, `rows` are those
    that have the same expert and are multiplied together. A workgroup has
    `rows` neighbouring tokens, with the same place among their experts, and
    multiplies the rows that these lead; they are looked for among about
    128 `rows` / k tokens, the window, where a token has k experts.

    - `workgroup`: [rows, columns], or [rows, 1, columns] of an expert_matmul; a
      row block has 16 columns, or 8 with glu.
    - `warps`: of a workgroup. Along K, warps take tiles in turn.
    - `tiles`: of the weight that a warp takes at a time; of 16-bit floats a
      multiple of 2, and of f32 of 4.
    - `stages`: those that are on their way or at hand in workgroup memory.
    - `unit`: `mma_sync`, for weights of 16 bits or less; or `tf32_pairs`, for
      those of f32, which are split into two numbers of TF32, as x is.
    - `rows`: how x is taken. `split`, it becomes two numbers of 16 bits, so that
      products are about as exact as those of f32; `rounded`, it is what matrix
      units multiply with the weight (its type of 16 bits, f16 with blocks);
      `f32`, by `tf32_pairs`.
    - `held`: where x is while the weight goes past. In `registers` of each warp,
      which has a part of K, where x is rounded; `shared`, in workgroup memory,
      otherwise, and of an expert_matmul, which rounds x itself, up to 64 rows.
    - `block_warps`: warps that divide the row blocks, a divisor of all, where x
      is shared: so many have the same part of K, and take turns in all of it.
      That is for more rows, or parts of x: reading x costs as much as the weight
      then.
    - `blocks`: row blocks that a warp takes at a time, 1 or, of plain elements,
      2, which share what is read of x.
    - `reduction`: K of the part of x that is in workgroup memory, or registers,
      at a time; 0 means whole. It is a multiple of that of `tiles` tiles for
      each of the `warps / block_warps` that have the same row blocks.
    - `parts`: workgroups, up to 8, that divide K where registers hold x, and have
      sums of the same columns. They are a cluster (sm_90), and add up what the
      others have found from their workgroup memory, in their order.

    Sums depend on `warps` and `tiles` alone, and on `reduction` and `parts`
    where registers hold rows.

    ```mlir
    #kf.stream<workgroup = [1, 32], warps = 8, tiles = 4, stages = 3, unit = mma_sync, rows = split, held = shared>
    #kf.stream<workgroup = [4, 1, 64], warps = 8, tiles = 1, stages = 4, unit = mma_sync, rows = split, held = shared>
    #kf.stream<workgroup = [16, 128], warps = 14, tiles = 1, stages = 4, unit = mma_sync, rows = rounded, held = registers, reduction = 3584, parts = 4>
    ```
  }];
  let parameters = (ins KF_Sizes:$workgroup, "int64_t":$warps, "int64_t":$tiles,
      "int64_t":$stages, "::mlir::kf::MatrixUnit":$unit,
      "::mlir::kf::RowForm":$rows, "::mlir::kf::OperandPlace":$held,
      DefaultValuedParameter<"int64_t", "1">:$block_warps,
      DefaultValuedParameter<"int64_t", "1">:$blocks,
      DefaultValuedParameter<"int64_t", "0">:$reduction,
      DefaultValuedParameter<"int64_t", "1">:$parts);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<int64_t> getThreads() const { return {}; }
  }];
}

def KF_LaneCodes
    : KF_I32Enum<"LaneCodes", "how threads make floats of codes",
                 [I32EnumAttrCase<"Words", 0, "words">,
                  I32EnumAttrCase<"Halves", 1, "halves">]>;

def KF_LanesScheduleAttr : KF_ScheduleAttr<"Lanes", "lanes"> {
  let summary = "a product of few rows by a GPU's threads, each for itself";
  let description = [{
    For a matmul of up to 16 rows whose weight has `#kf.fragments`, on GPUs for
    whose matrix units, if they have some, there is no code. Of a tile of the
    weight each of 32 threads, a warp, reads the words that a lane of matrix
    units has, 16 bytes at a time, takes them apart, and multiplies them by rows
    of x, which are in workgroup memory, in f32. What threads have of the same
    element is added there, in an order that is always the same. An infinity in
    a row makes NaNs where the weight has blocks.

    An expert_matmul may have any number of tokens: `rows` of them that have the
    same expert are multiplied together, as in `#kf.stream`. They are looked for
    among about 512 `rows` / k tokens, where a token has k experts.

    - `workgroup`: [rows, columns], or [rows, 1, columns] of an expert_matmul; a
      row block has 16 columns, or 8 with glu.
    - `warps`: of a workgroup. Along K, warps take steps in turn.
    - `tiles`: of the weight that a warp takes at a time, a step; of f32 a
      multiple of 2. Of blocks it is 1, of which a step is what `codes` says.
    - `block_warps`: warps that divide the row blocks, a divisor of all. So many
      have the same part of K.
    - `reduction`: K of the part of x that is in workgroup memory at a time; 0
      means whole. It is a multiple of a step of the `warps / block_warps` that
      divide K.
    - `rounds`: in how many rounds, one after the other, a warp takes its row
      blocks, for all of which x is brought to workgroup memory once.
    - `codes`: how codes of blocks become floats. `words`: by their bits in a
      word of f32, a part of 64 or 128 columns of a tile at a time. `halves`: two
      at a time, as subnormal numbers of f16, which f32 holds exactly, and a
      whole tile at a time; where threads compute with f16, and not of formats
      whose codes are entries of a table. Sums of products are 2^-24 of those of
      `words` until they are scaled: below about 2e-31 these are subnormal f32,
      which are rounded coarsely, or 0 where the device takes them for zeros.

    Sums depend on `warps / block_warps`, `tiles` and `codes`, and with `rounds`
    on `reduction`: where that depends on how many rows a step has, so do sums.

    ```mlir
    #kf.lanes<workgroup = [1, 16], warps = 8, tiles = 8>
    #kf.lanes<workgroup = [8, 32], warps = 8, tiles = 1, block_warps = 2, reduction = 1024>
    #kf.lanes<workgroup = [1, 64], warps = 8, tiles = 1, rounds = 4, codes = halves>
    #kf.lanes<workgroup = [4, 1, 64], warps = 8, tiles = 1, rounds = 4, codes = halves>
    ```
  }];
  let parameters = (ins KF_Sizes:$workgroup, "int64_t":$warps, "int64_t":$tiles,
      DefaultValuedParameter<"int64_t", "1">:$block_warps,
      DefaultValuedParameter<"int64_t", "0">:$reduction,
      DefaultValuedParameter<"int64_t", "1">:$rounds,
      DefaultValuedParameter<"::mlir::kf::LaneCodes",
                             "::mlir::kf::LaneCodes::Words">:$codes);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<int64_t> getThreads() const { return {}; }
  }];
}

def KF_FlashScheduleAttr : KF_ScheduleAttr<"Flash", "flash"> {
  let summary = "attention on a GPU, with a softmax over blocks of keys";
  let description = [{
    A workgroup computes `workgroup` = [query rows, heads] of an attention: it
    walks over the keys in blocks of `keys`, and keeps the largest score, the
    sum and the weighted values of each row so far (Dao et al.,
    "FlashAttention", 2022).

    - `threads`: threads of a workgroup along x.

    ```mlir
    #kf.flash<workgroup = [4, 8], keys = 32, threads = [64]>
    ```
  }];
  let parameters = (ins KF_Sizes:$workgroup, "int64_t":$keys,
      KF_Sizes:$threads);
  let assemblyFormat = "`<` struct(params) `>`";
}

def KF_FlashMmaScheduleAttr : KF_ScheduleAttr<"FlashMma", "flash_mma"> {
  let summary = "attention on the matrix units of NVIDIA GPUs";
  let description = [{
    What `#kf.flash` does for caches of f16, bf16 and q8_0, on matrix units.
    Where something comes out that is not finite, rows are computed again as
    `#kf.flash` does, for a hidden key may hold a NaN.

    It is for attention to tensors of bf16 and its gradients, too
    (kf.scaled_dot_product_attention, kf.attention_qgrad, kf.attention_kvgrad), with
    `unit = mma_sync` and `rows = rounded`. No rows are computed again there, and
    blocks that are hidden are not read. `workgroup` is [1, 1, rows], or [1, rows]
    without batches, 16 rows for each of the x warps, of queries, or keys for the
    last one; `keys` are the others' of a block.

    - `workgroup`: [query rows, heads], as of `#kf.flash`.
    - `keys`: keys of a block: 16, 32 or 64.
    - `threads`: [32, x, y]: a warp's, or a subgroup's, as many as the device
      has; warps that divide the rows, 16 each; and warps that divide the keys.
    - `unit`: `mma_sync`, of a warp of NVIDIA's; or `wgmma` (sm_90a), of four
      warps, which reads keys and values from shared memory itself. Of the
      latter, x is a multiple of 4. `coop_f16` and `coop_bf16` are cooperative
      matrices of Vulkan's subgroups, for heads of up to 128 columns and rows
      that are rounded: the latter for caches of bf16, the former for others.
    - `rows`: how queries and the weights of softmax, which are f32, are taken.
      `split`, they are two numbers of 16 bits each, so that results are as exact
      as those of `#kf.flash`; `rounded`, they have the cache's type, and with
      q8_0 all are f16.
    - `held`: where keys and values are that units multiply. In `registers`, each
      warp reads some from memory, for rows that are split; `shared`, they go
      through shared memory, for all warps and rows that are rounded. There are
      more than 8 rows then, x is 2 or more, and y is 1. On cooperative matrices
      y is 1, and the others are free.
    - `parts`: workgroups, up to 8, that divide the keys of one token by pages,
      as kf.attention_partial says. They are a cluster (sm_90), and read what
      the others have found from their workgroup memory.

    ```mlir
    #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 8], unit = mma_sync, rows = split, held = registers>
    #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 8], unit = mma_sync, rows = split, held = registers, parts = 8>
    #kf.flash_mma<workgroup = [32, 4], keys = 64, threads = [32, 8, 1], unit = wgmma, rows = rounded, held = shared>
    #kf.flash_mma<workgroup = [16, 4], keys = 64, threads = [32, 4, 1], unit = coop_f16, rows = rounded, held = shared>
    ```
  }];
  let parameters = (ins KF_Sizes:$workgroup, "int64_t":$keys, KF_Sizes:$threads,
      "::mlir::kf::MatrixUnit":$unit, "::mlir::kf::RowForm":$rows,
      "::mlir::kf::OperandPlace":$held,
      DefaultValuedParameter<"int64_t", "1">:$parts);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // KF_DIALECT_KF_IR_KFSCHEDULES_TD
