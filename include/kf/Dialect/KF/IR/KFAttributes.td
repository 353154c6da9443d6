//===- KFAttributes.td - Attributes of the kf dialect
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFATTRIBUTES_TD
#define KF_DIALECT_KF_IR_KFATTRIBUTES_TD

include "kf/Dialect/KF/IR/KFDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/TensorEncoding.td"

class KF_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<KF_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

class KF_I32Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::kf";
  let genSpecializedAttr = 0;
}

def KF_ActivationKind : KF_I32Enum<"ActivationKind", "elementwise activation", [
  I32EnumAttrCase<"Identity", 0, "identity">,
  I32EnumAttrCase<"Silu", 1, "silu">,
  I32EnumAttrCase<"Gelu", 2, "gelu">,
  I32EnumAttrCase<"GeluTanh", 3, "gelu_tanh">,
  I32EnumAttrCase<"Relu", 4, "relu">]>;
def KF_ActivationKindAttr
    : EnumAttr<KF_Dialect, KF_ActivationKind, "activation_kind"> {
  let assemblyFormat = "`<` $value `>`";
}

/// Shapes and types are in MatrixUnits.h.
def KF_MatrixUnit
    : KF_I32Enum<"MatrixUnit", "the matrix unit that multiplies",
                 [I32EnumAttrCase<"MmaSync", 0, "mma_sync">,
                  I32EnumAttrCase<"Wgmma", 1, "wgmma">,
                  I32EnumAttrCase<"Tf32Pairs", 2, "tf32_pairs">,
                  I32EnumAttrCase<"Amx", 3, "amx">,
                  I32EnumAttrCase<"Bf16Pairs", 4, "bf16_pairs">,
                  I32EnumAttrCase<"Bytes", 5, "bytes">,
                  I32EnumAttrCase<"CoopF16", 6, "coop_f16">,
                  I32EnumAttrCase<"CoopBF16", 7, "coop_bf16">]>;

def KF_ReduceKind : KF_I32Enum<"ReduceKind", "how elements are combined", [
  I32EnumAttrCase<"Sum", 0, "sum">,
  I32EnumAttrCase<"Prod", 1, "prod">,
  I32EnumAttrCase<"Max", 2, "max">,
  I32EnumAttrCase<"Min", 3, "min">,
  I32EnumAttrCase<"Mean", 4, "mean">]>;
def KF_ReduceKindAttr : EnumAttr<KF_Dialect, KF_ReduceKind, "reduce_kind"> {
  let assemblyFormat = "`<` $value `>`";
}

def KF_RopeStyle : KF_I32Enum<"RopeStyle", "which elements rotate together", [
  I32EnumAttrCase<"Half", 0, "half">,
  I32EnumAttrCase<"Interleaved", 1, "interleaved">]>;
def KF_RopeStyleAttr : EnumAttr<KF_Dialect, KF_RopeStyle, "rope_style"> {
  let assemblyFormat = "`<` $value `>`";
}

def KF_RopeScalingKind : KF_I32Enum<"RopeScalingKind", "rotary scaling rule", [
  I32EnumAttrCase<"Linear", 0, "linear">,
  I32EnumAttrCase<"Llama3", 1, "llama3">]>;

def KF_BlockFormat : KF_I32Enum<"BlockFormat", "block-quantized storage", [
  I32EnumAttrCase<"Q8_0", 0, "q8_0">,
  I32EnumAttrCase<"Q4_0", 1, "q4_0">,
  I32EnumAttrCase<"Q4_1", 2, "q4_1">,
  I32EnumAttrCase<"Q5_0", 3, "q5_0">,
  I32EnumAttrCase<"Q5_1", 4, "q5_1">,
  I32EnumAttrCase<"Q2_K", 5, "q2_k">,
  I32EnumAttrCase<"Q3_K", 6, "q3_k">,
  I32EnumAttrCase<"Q4_K", 7, "q4_k">,
  I32EnumAttrCase<"Q5_K", 8, "q5_k">,
  I32EnumAttrCase<"Q6_K", 9, "q6_k">,
  I32EnumAttrCase<"IQ4_NL", 10, "iq4_nl">,
  I32EnumAttrCase<"MXFP4", 11, "mxfp4">,
  I32EnumAttrCase<"IQ4_XS", 12, "iq4_xs">]>;
def KF_BlockFormatAttr : EnumAttr<KF_Dialect, KF_BlockFormat, "block_format"> {
  let summary = "storage of a block-quantized element type";
  let description = [{
    Names one of GGUF's block formats. `getStorage` gives its storage, which
    runtime/core/BlockFormat.h describes once for the reference, packing and
    code.
  }];
  let assemblyFormat = "`<` $value `>`";
}

/// A double, printed with the fewest digits that give it back.
class KF_DoubleParameter<string value = ""> : APFloatParameter<""> {
  let parser = "::mlir::kf::parseDouble($_parser)";
  let printer = "::mlir::kf::printDouble($_printer, $_self)";
  let defaultValue = value;
}

//===----------------------------------------------------------------------===//
// Gates
//===----------------------------------------------------------------------===//

def KF_GluClampAttr : KF_Attr<"GluClamp", "glu_clamp"> {
  let summary = "bounds of the two sides of a gate";
  let description = [{
    What `silu(g) * u` becomes with it, as gpt-oss has it: `g'` is the lesser of
    `g` and `limit`, `u'` is `u` or the nearest number from `-limit` to `limit`,
    and the result `g' * sigmoid(alpha * g') * (u' + 1)`.

    ```mlir
    #kf.glu_clamp<limit = 7.0, alpha = 1.702>
    ```
  }];
  let parameters = (ins KF_DoubleParameter<>:$limit, KF_DoubleParameter<>:$alpha);
  let assemblyFormat = "`<` struct($limit, $alpha) `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Rows of products
//===----------------------------------------------------------------------===//

def KF_RowsAttr : KF_Attr<"Rows", "rows"> {
  let summary = "what the kernel of a product reads its rows in";
  let description = [{
    The type of elements that rows of f32 are read in. With f32, a kernel reads
    them as they are, and its schedule says how it takes them. With f16 and bf16
    they are rounded before, once for all workgroups, and with i8 they are codes
    with a scale for each 32.

    ```mlir
    #kf.rows<bf16>
    ```
  }];
  let parameters = (ins "::mlir::Type":$element);
  let assemblyFormat = "`<` $element `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Rotary scaling
//===----------------------------------------------------------------------===//

def KF_RopeScalingAttr : KF_Attr<"RopeScaling", "rope_scaling"> {
  let summary = "scaling of rotary frequencies";
  let description = [{
    `linear` divides every frequency by `factor`. `llama3` (Llama 3.1, section
    "RoPE scaling"; Hugging Face's `rope_type: llama3`) divides those with
    wavelengths beyond `original_context / low_freq_factor` by `factor`, keeps
    those below `original_context / high_freq_factor`, and interpolates between.

    ```mlir
    #kf.rope_scaling<linear, factor = 2.0>
    #kf.rope_scaling<llama3, factor = 8.0, low_freq_factor = 1.0,
                     high_freq_factor = 4.0, original_context = 8192>
    ```
  }];
  let parameters = (ins
    EnumParameter<KF_RopeScalingKind>:$kind,
    KF_DoubleParameter<>:$factor,
    KF_DoubleParameter<"::llvm::APFloat(0.0)">:$low_freq_factor,
    KF_DoubleParameter<"::llvm::APFloat(0.0)">:$high_freq_factor,
    DefaultValuedParameter<"int64_t", "0">:$original_context
  );
  let assemblyFormat = [{ `<` $kind `,` struct($factor, $low_freq_factor,
                          $high_freq_factor, $original_context) `>` }];
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Layout of weights
//===----------------------------------------------------------------------===//

def KF_LayoutAttr : KF_Attr<"Layout", "layout",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "how a packed matmul weight lies in memory (tensor encoding)";
  let description = [{
    Encoding of a weight tensor. The tensor keeps its logical shape, [N, K] or
    [G, N, K]; in memory it is [ceil(N/panel)][G][K][panel], rows past N being
    zero, so that a kernel reads one panel of `panel` output columns as one
    stream. Of the weights of experts, [G, E, N, K], those of one follow those
    of another: [E][ceil(N/panel)][G][K][panel]. With `interleave = I`, elements
    i and i+I of each group of 2*I in a panel row are neighbours; elements are
    bf16 then, and one 32-bit lane holds both. A panel is at most 65536 columns.

    ```mlir
    tensor<768x256xbf16, #kf.layout<panel = 32, interleave = 16>>
    ```
  }];
  let parameters = (ins
    "int64_t":$panel,
    DefaultValuedParameter<"int64_t", "0">:$interleave
  );
  let assemblyFormat = "`<` struct($panel, $interleave) `>`";
  let genVerifyDecl = 1;
}

def KF_FragmentsAttr : KF_Attr<"Fragments", "fragments",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "a matmul weight in the order of a GPU's matrix units "
                "(tensor encoding)";
  let description = [{
    Encoding of a weight tensor of f16, bf16, f32, f8E4M3FN or blocks, which
    keeps its logical shape, [N, K] or, of a gate and an up matrix, [2, N, K].
    In memory it is [row blocks][tiles of K][bytes]: a tile is what a warp takes
    of it as the left operand of m16n8 products. A row block has 16 rows; of [2,
    N, K], 8 rows of the first matrix and the same 8 of the second. What is past
    N or K is zero. Of the weights of experts, [1, E, N, K] or [2, E, N, K],
    the row blocks of one follow those of another.
    `runtime/core/FragmentTile.h` says where an element lies.

    It is made when weights are loaded: no kernel packs so.

    ```mlir
    tensor<768x256xbf16, #kf.fragments>
    tensor<2x704x256xf16, #kf.fragments>
    ```
  }];
}

//===----------------------------------------------------------------------===//
// Names of dynamic sizes
//===----------------------------------------------------------------------===//

def KF_SizeAttr : KF_Attr<"Size", "size",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "the number of a tensor's rows, by name (tensor encoding)";
  let description = [{
    Says which of a step's sizes the leading `?` of a tensor is. A `?` without
    a name is `n_tokens`, and no other size can be called so. Equal names mean
    equal extents, different names nothing about each other. A tile of such a
    tensor keeps the name, also where its extent is a number.

    ```mlir
    tensor<?x256xf32>                    // n_tokens rows
    tensor<?x256xf32, #kf.size<wanted>>  // as many as there are wanted rows
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name);
  let assemblyFormat = "`<` custom<SizeName>($name) `>`";
  let genVerifyDecl = 1;
}

def KF_SizeRangeAttr : KF_Attr<"SizeRange", "size_range"> {
  let summary = "the extents that a named size of a program may have";
  let description = [{
    From `least`, which may be 0, to `most`.

    ```mlir
    #kf.size_range<wanted, least = 0, most = 16>
    ```
  }];
  let parameters = (ins
    "::mlir::StringAttr":$name,
    DefaultValuedParameter<"int64_t", "0">:$least,
    "int64_t":$most
  );
  let assemblyFormat = [{
    `<` custom<SizeName>($name) `,` struct($least, $most) `>`
  }];
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Grid
//===----------------------------------------------------------------------===//

def KF_GridAttr : KF_Attr<"Grid", "grid"> {
  let summary = "number of workgroups of a tiled kernel";
  let description = [{
    One entry a dimension, the last varying fastest. Where `tokens[i]` is not
    0, the dimension has ceil(n_tokens / tokens[i]) workgroups, else
    `counts[i]`. With `size`, it is that size of the step that is divided, and
    not n_tokens.

    ```mlir
    #kf.grid<tokens = [56, 0], counts = [0, 4]>
    #kf.grid<tokens = [16, 0], counts = [0, 4], size = wanted>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$tokens,
    ArrayRefParameter<"int64_t">:$counts,
    OptionalParameter<"::mlir::StringAttr">:$size
  );
  let assemblyFormat = [{ `<` `tokens` `=` custom<Sizes>($tokens) `,`
                              `counts` `=` custom<Sizes>($counts)
                              (`,` `size` `=` custom<SizeName>($size)^)? `>` }];
  let genVerifyDecl = 1;
}

#endif // KF_DIALECT_KF_IR_KFATTRIBUTES_TD
