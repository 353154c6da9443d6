//===- KFTypes.td - Types of the kf dialect
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFTYPES_TD
#define KF_DIALECT_KF_IR_KFTYPES_TD

include "kf/Dialect/KF/IR/KFAttributes.td"

class KF_Type<string name, string typeMnemonic> : TypeDef<KF_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def KF_KVCacheType : KF_Type<"KVCache", "kv_cache"> {
  let summary = "reference to a pool of pages with keys and values";
  let description = [{
    A page has room for the keys and values of `page` positions of one sequence,
    in every layer. In memory: [layers][pages][2][kv_heads][page][head_dim];
    index 0 of the third dimension is K, 1 is V. The number of pages is known at
    run time; which page holds which positions of which sequence is said by the
    page table that each op on the cache takes. Within a K head of a page,
    positions come in blocks of `key_block`, transposed:
    [page / key_block][head_dim][key_block], so that scores of `key_block` keys
    are one vector. `page` is a multiple of `key_block`. `head_dim`, `key_block`
    and `page` are at most 65536, the others 2^31 - 1.

    `type` is f32, f16, bf16 or `!kf.quant<q8_0>`. With the last, 32 elements of
    a row (head_dim is a multiple of 32) share a scale: their largest magnitude
    / 127, rounded to f16. Elements are then codes of one byte, in the order
    above, and the codes of a K or V head of a page are followed by their
    scales: [page / key_block][head_dim / 32][key_block] of keys,
    [page][head_dim / 32] of values. Codes are rounded halves away from zero. A
    NaN makes the scale a NaN, so that none is hidden.

    ```mlir
    !kf.kv_cache<layers = 8, kv_heads = 2, head_dim = 64, type = f32, key_block = 16>
    !kf.kv_cache<layers = 8, kv_heads = 2, head_dim = 64, type = f32, page = 128>
    !kf.kv_cache<layers = 8, kv_heads = 2, head_dim = 64, type = !kf.quant<q8_0>>
    ```
  }];
  let parameters = (ins
    "int64_t":$layers,
    "int64_t":$kv_heads,
    "int64_t":$head_dim,
    "::mlir::Type":$type,
    DefaultValuedParameter<"int64_t", "1">:$key_block,
    DefaultValuedParameter<"int64_t", "64">:$page
  );
  let assemblyFormat = [{ `<` struct($layers, $kv_heads, $head_dim, $type,
                                     $key_block, $page) `>` }];
  let extraClassDeclaration = [{
    /// This type with another number of layers.
    KVCacheType withLayers(int64_t layers) const {
      return get(getContext(), layers, getKvHeads(), getHeadDim(), getType(),
                 getKeyBlock(), getPage());
    }
    /// The same pool with keys in blocks of `keyBlock` positions.
    KVCacheType withKeyBlock(int64_t keyBlock) const {
      return get(getContext(), getLayers(), getKvHeads(), getHeadDim(),
                 getType(), keyBlock, getPage());
    }
    /// Whether elements lie in blocks.
    bool isQuantized() const { return ::llvm::isa<QuantType>(getType()); }
  }];
  let genVerifyDecl = 1;
}

def KF_StateCacheType : KF_Type<"StateCache", "state_cache"> {
  let summary = "reference to states of sequences";
  let description = [{
    What layers keep of a sequence that remember it by a state of one size. In
    memory: [layers][slots][heads][elements] of f32, layers padded to 256 bytes.
    There is a slot for every `slot_pages` pages that the program's pools of keys
    and values have, and one for what is left of them. Which slot is which
    sequence's is said by an operand of each op on the cache. Sizes are at most
    2^31 - 1.

    ```mlir
    !kf.state_cache<layers = 3, heads = 4, elements = 400, slot_pages = 32>
    ```
  }];
  let parameters = (ins
    "int64_t":$layers,
    "int64_t":$heads,
    "int64_t":$elements,
    "int64_t":$slot_pages
  );
  let assemblyFormat = [{ `<` struct($layers, $heads, $elements,
                                     $slot_pages) `>` }];
  let extraClassDeclaration = [{
    /// This type with another number of layers.
    StateCacheType withLayers(int64_t layers) const {
      return get(getContext(), layers, getHeads(), getElements(),
                 getSlotPages());
    }
  }];
  let genVerifyDecl = 1;
}

def KF_AnyCache : AnyTypeOf<[KF_KVCacheType, KF_StateCacheType]>;

def KF_QuantType : KF_Type<"Quant", "quant"> {
  let summary = "block-quantized element type";
  let description = [{
    Element type of tensors whose last dimension is stored in blocks.

    ```mlir
    tensor<4096x4096x!kf.quant<q8_0>>
    ```
  }];
  let parameters = (ins EnumParameter<KF_BlockFormat>:$format);
  let assemblyFormat = "`<` $format `>`";
}

#endif // KF_DIALECT_KF_IR_KFTYPES_TD
