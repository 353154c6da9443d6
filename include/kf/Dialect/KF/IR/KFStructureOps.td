//===- KFStructureOps.td - Weights, kernels, programs
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFSTRUCTUREOPS_TD
#define KF_DIALECT_KF_IR_KFSTRUCTUREOPS_TD

include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def KF_WeightOp : KF_Op<"weight", [Pure, KF_NonEmptyTensors]> {
  let summary = "a weight of the model, by name";
  let description = [{
    Stands for tensors of the checkpoint; no data is in the IR. Several names
    are concatenated along the first dimension, or with `stacked` become the
    slices of new leading dimensions: no more than it takes for all names to have
    a place, and dimensions of 1 behind them as long as matrices are left. With `transposed` the checkpoint stores
    [K, N] for a logical [N, K].

    - C1: at least one name, none empty.
    - C2: the result has a static shape.
    - C3: with `stacked`, the first leading dimensions, multiplied, are the
      number of names.
    - C4: `transposed` needs rank 2, and those of `stacked` more.

    ```mlir
    %0 = kf.weight ["model.norm.weight"] : tensor<256xbf16>
    %1 = kf.weight ["gate", "up"] {stacked} : tensor<2x704x256xbf16>
    %2 = kf.weight ["gate0", "gate1", "up0", "up1"] {stacked}
        : tensor<2x2x704x256xbf16>
    ```
  }];
  let arguments = (ins StrArrayAttr:$names, UnitAttr:$stacked,
                       UnitAttr:$transposed);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$names attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def KF_PackOp : KF_Op<"pack", [Pure, KF_NonEmptyTensors,
    DeclareOpInterfaceMethods<KF_LoopOpInterface>, KF_FusionOpInterface,
    KF_WorkOpInterface]> {
  let summary = "lays a matmul weight out for the kernel that reads it";
  let description = [{
    The same logical tensor in another layout, the encoding of the result type.
    Folds into `kf.weight`, so that packing runs once, at load.

    - C1: source and result differ in their encodings alone.
    - C2: the result's encoding is a `#kf.layout`, the source has none.

    ```mlir
    %0 = kf.pack %w : tensor<96x64xbf16>
        to tensor<96x64xbf16, #kf.layout<panel = 32, interleave = 16>>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def KF_CacheLayerOp : KF_Op<"cache_layer", [Pure]> {
  let summary = "one layer of a cache, as a cache of its own";
  let description = [{
    Lets the layers of a model share kernels: a kernel sees one layer, and the
    program says which.

    - C1: `layer` is in [0, layers of the cache).
    - C2: the result is the cache's type with one layer.

    ```mlir
    %1 = kf.cache_layer %cache[3]
        : !kf.kv_cache<layers = 8, kv_heads = 2, head_dim = 64, type = f32>
        to !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f32>
    ```
  }];
  let arguments = (ins KF_AnyCache:$cache, I64Attr:$layer);
  let results = (outs KF_AnyCache:$result);
  let assemblyFormat = [{
    $cache `[` $layer `]` attr-dict `:` type($cache) `to` type($result)
  }];
  let hasVerifier = 1;
}

def KF_YieldOp : KF_Op<"yield", [Pure, ReturnLike, Terminator,
                                ParentOneOf<["KernelOp", "ProgramOp"]>]> {
  let summary = "results of a kernel or program";
  let description = [{
    - C1: the operand types are the result types of the enclosing op.
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{ }]>];
  let hasVerifier = 1;
}

def KF_KernelOp : KF_Op<"kernel", [IsolatedFromAbove, Symbol,
    FunctionOpInterface, SingleBlock]> {
  let summary = "tensor ops that one launch computes";
  let description = [{
    - C1: arguments and results are tensors, or caches
      (arguments only); a dimension other than the first is static, none is 0.
    - C2: there is a body, and it ends in a `kf.yield`.
    - C3: a tensor's encoding is a `#kf.layout` or `#kf.fragments`, and the
      tensor is static, or a `#kf.size`, and it is not.
    - C4: until the kernel is tiled, `kf.pack` makes tensors with a `#kf.layout`,
      and `kf.matmul` reads them, and those with `#kf.fragments`, as its `w`; no
      other op knows of layouts.
    - C5: the module's `kf.sizes` lists every name of a size.

    `schedule` says how it is computed; `grid` is set once it is tiled.

    ```mlir
    kf.kernel @softmax_0(%x: tensor<?x64xf32>) -> tensor<?x64xf32>
        attributes {schedule = #kf.vector<workgroup = [16], lanes = 16>} {
      %0 = kf.softmax %x : tensor<?x64xf32>
      kf.yield %0 : tensor<?x64xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<KF_AnyScheduleAttr>:$schedule,
                       OptionalAttr<KF_GridAttr>:$grid,
                       OptionalAttr<StrAttr>:$sym_visibility,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// The terminator of the body.
    ::mlir::kf::YieldOp getYield();
  }];
}

def KF_SizeRangeArrayAttr
    : TypedArrayAttrBase<KF_SizeRangeAttr, "array of #kf.size_range">;

def KF_ProgramOp : KF_Op<"program", [IsolatedFromAbove, Symbol,
    FunctionOpInterface, SingleBlock]> {
  let summary = "a straight list of dispatches";
  let description = [{
    One step, replayed by the runtime. `min_tokens` (1 by default) and
    `max_tokens` are the smallest and the largest `n_tokens` that it runs with,
    and `sizes` says the same of each size that has a name; `arena_bytes` is
    the size of the buffer that holds its intermediate tensors, once planned.

    - C1: the body holds `kf.weight`, `kf.cache_layer`, `kf.dispatch`,
      collectives and the `kf.yield` only.
    - C2: `max_tokens` is positive, and `min_tokens` between 1 and it.
    - C3: there is a body, and it ends in a `kf.yield`.
    - C4: arguments are caches, or as results tensors
      without an encoding but `#kf.size`; a dimension other than the first is
      static, none is 0. What is packed is so within the program alone.
    - C5: each result is made by a `kf.dispatch` or a collective, and yielded
      once.
    - C6: `sizes` has one entry for each name, and the module's `kf.sizes`
      numbers it.

    ```mlir
    kf.program @step(%x: tensor<?x64xf32>) -> tensor<?x64xf32>
        attributes {max_tokens = 8 : i64, arena_bytes = 0 : i64} {
      %0 = kf.dispatch @softmax_0(%x) {offsets = array<i64: -1>}
          : (tensor<?x64xf32>) -> tensor<?x64xf32>
      kf.yield %0 : tensor<?x64xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       I64Attr:$max_tokens,
                       OptionalAttr<I64Attr>:$min_tokens,
                       OptionalAttr<KF_SizeRangeArrayAttr>:$sizes,
                       OptionalAttr<I64Attr>:$arena_bytes,
                       OptionalAttr<StrAttr>:$sym_visibility,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// The terminator of the body.
    ::mlir::kf::YieldOp getYield();
    /// Least and most of a size: of n_tokens where `name` is null, else as
    /// `sizes` says; nothing where it does not.
    std::optional<std::pair<int64_t, int64_t>> getRange(::mlir::StringAttr name);
    /// The largest number of rows of `tensor`; its extent where that is static.
    int64_t getMostRows(::mlir::RankedTensorType tensor);
  }];
}

def KF_DispatchOp : KF_Op<"dispatch",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>, KF_DispatchInterface,
     ParentOneOf<["ProgramOp"]>]> {
  let summary = "runs a kernel";
  let description = [{
    - C1: `kernel` names a `kf.kernel`, or what it was lowered to.
    - C2: operand and result types are the kernel's.
    - C3: `offsets`, where present, has one entry a result: its byte offset in
      the program's arena, or -1 where the result is the program's own.

    ```mlir
    %0 = kf.dispatch @matmul_0(%x, %w) {offsets = array<i64: 4096>}
        : (tensor<?x256xf32>, tensor<768x256xbf16>) -> tensor<?x768xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyType>:$operands_,
                       OptionalAttr<DenseI64ArrayAttr>:$offsets);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $kernel `(` $operands_ `)` attr-dict `:`
    functional-type($operands_, $results)
  }];
  let hasVerifier = 1;
}

#endif // KF_DIALECT_KF_IR_KFSTRUCTUREOPS_TD
