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
  let summary = "reference to the keys and values of all layers";
  let description = [{
    In memory: [layers][2][kv_heads][capacity][head_dim]; index 0 of the second
    dimension is K, 1 is V. The capacity is known at run time. Within a K head,
    positions come in blocks of `key_block`, transposed:
    [capacity / key_block][head_dim][key_block], so that scores of `key_block`
    keys are one vector. `head_dim` and
    `key_block` are at most 65536, the others 2^31 - 1.

    ```mlir
    !kf.kv_cache<layers = 8, kv_heads = 2, head_dim = 64, type = f32, key_block = 16>
    ```
  }];
  let parameters = (ins
    "int64_t":$layers,
    "int64_t":$kv_heads,
    "int64_t":$head_dim,
    "::mlir::Type":$type,
    DefaultValuedParameter<"int64_t", "1">:$key_block
  );
  let assemblyFormat = [{ `<` struct($layers, $kv_heads, $head_dim, $type,
                                     $key_block) `>` }];
  let extraClassDeclaration = [{
    /// This type with another number of layers.
    KVCacheType withLayers(int64_t layers) const {
      return get(getContext(), layers, getKvHeads(), getHeadDim(), getType(),
                 getKeyBlock());
    }
  }];
  let genVerifyDecl = 1;
}

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
