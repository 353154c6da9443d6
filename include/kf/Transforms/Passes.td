//===- Passes.td - Index of the transform passes --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the order in which the pipeline runs them. Each shows IR before and after.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TRANSFORMS_PASSES_TD
#define KF_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def CheckInput : Pass<"kf-check-input", "::mlir::ModuleOp"> {
  let summary = "Refuse what the pipeline has no place or no bounds for";
  let description = [{
    The first pass over text that a person or another program wrote. What it
    lets through costs the passes behind it time and memory like its length, and
    their sums of sizes fit into 64 bits. IR stays as it is.

    - A module holds `func.func`, `kf.kernel` and `kf.program`, 4096 at most,
      whose names have at most 1024 bytes. Kernels are not tiled: passes trust
      the slices of those that are.
    - Bodies have one level. They hold kf, `arith` and `math` ops, `tensor.dim`,
      `extract_slice`, `expand_shape`, `collapse_shape`, `concat` and `cast`:
      65536 ops in a module.
    - An op takes and a function has at most 8192 values, and makes or returns
      as many.
    - A value is a KV cache, a ranked tensor, or a scalar. Elements are floats
      or integers of up to 64 bits, `index`, or `!kf.quant`. A tensor has up to
      8 dimensions of up to 2^31 - 1, and 2^40 elements, not counting `?`; a
      cache has 2^40 for each position.
    - A constant that is a list has at most 256 elements. Data belongs into
      arguments and `kf.weight`.
    - `kf.max_tokens` and `max_tokens` are from 1 to 2^31 - 1.

    The steps of Llama 3.1 405B are about 2000 ops with tensors of up to 2^31
    elements.
    ```mlir
    %0 = kf.weight ["w"] : tensor<2147483648x4xf32>
    ```
    gives
    ```
    error: 'kf.weight' op kf-check-input: a dimension is at most 2147483647, found 'tensor<2147483648x4xf32>'
    ```
  }];
}

def Differentiate : Pass<"kf-differentiate", "::mlir::ModuleOp"> {
  let summary = "Have functions return the gradients of a loss by their arguments with kf.gradient";
  let description = [{
    The first result of a function with arguments that have `kf.gradient` is its
    loss, a tensor of rank 0. Behind its results the function returns, for each
    of these arguments in their order, the derivative of the loss by each of its
    elements (reverse mode; ops say their own derivatives by
    `DifferentiableOpInterface`). It has the argument's shape and is of f32, or
    f64 for an argument of f64. What the loss does not depend on has zeros. A
    function that others call gets no more results: it is an error.
    ```mlir
    func.func @f(%x: tensor<?x64xf32>, %w: tensor<32x64xf32> {kf.gradient},
                 %labels: tensor<?xi32>) -> tensor<f32> {
      %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<32x64xf32>
      %1 = kf.cross_entropy %0, %labels : tensor<?x32xf32>, tensor<?xi32>
      %2 = kf.reduce(sum) %1 dims = [0] : tensor<?xf32>
      return %2 : tensor<f32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<?x64xf32>, %w: tensor<32x64xf32>,
                 %labels: tensor<?xi32>) -> (tensor<f32>, tensor<32x64xf32>) {
      ... // as before, and then
      %3 = kf.broadcast %one : tensor<f32> to tensor<?xf32>
      %4 = kf.softmax %0 : tensor<?x32xf32>
      ... // %4 less 1 at the labels, times %3: the gradient of %0
      %9 = kf.matmul_wgrad %8, %x : tensor<?x32xf32>, tensor<?x64xf32>
      return %2, %9 : tensor<f32>, tensor<32x64xf32>
    }
    ```
    Gradients of a value that is read several times are added up. Nothing is
    computed for what no such argument reaches: weights by name (`kf.weight`)
    are frozen, in whatever type, and so is what only they and integers make.

    `policy` says what becomes of values of the forward pass that the backward
    pass reads. With `store`, all of them stay in memory until they are read;
    attention is made of its parts in the forward pass, so that its weights,
    [B, H, T, S], stay as well. With `recompute`, attention computes its weights
    again from queries and keys, and so does every cheap op (an elementwise one,
    a norm, a softmax, a rotation, a lookup, a view) whose result is larger than
    what it takes to keep its operands, those left out that are in memory
    anyway: arguments, weights, and what the backward pass reads besides. Ops
    are looked at from the last to the first. What is computed again stands in
    front of the first op that reads it, and has `kf.recomputed` if it is no view:
    without that it would be taken for the same value as before. It falls away
    when kernels are formed. Of products, only those within attention are
    computed again. With `layers`, that holds behind the last op that has
    `kf.kept`, whose backward pass comes first. In front of it, only results of
    ops with `kf.kept` stay in memory, such as what a layer hands to the next, and
    all else is computed again from them, products and attention as well:
    ```mlir
    %x1 = arith.addf %x, %y {kf.kept} : tensor<?x64xf32>
    %h = kf.matmul %x1, %w1 : tensor<?x64xf32>, tensor<64x64xf32>
    %a = kf.activation(silu) %h : tensor<?x64xf32>
    %z = kf.matmul %a, %w2 : tensor<?x64xf32>, tensor<64x64xf32>
    %x2 = arith.addf %x1, %z {kf.kept} : tensor<?x64xf32>
    ... // where %h and %a are read for gradients:
    %h1 = kf.matmul %x1, %w1 {kf.recomputed = 1 : i64} : tensor<?x64xf32>, tensor<64x64xf32>
    %a1 = kf.activation(silu) %h1 {kf.recomputed = 1 : i64} : tensor<?x64xf32>
    ```
    The number is 1, or 2 for one more copy of a cheap op that reads what stays,
    which gradients read, so that these are not taken for one another either.
    Without `layers`, the attribute has none. That the function returns a value makes no
    difference: it is computed again as others are. So are, with any policy, the
    places of the labels of kf.cross_entropy.

    With `accumulate`, the function takes one more argument for each gradient,
    in their order and of its type, and returns the sum of both in the gradient's
    place, which updates the argument (`kf.updates`):
    ```mlir
    func.func @f(%x: tensor<?x64xf32>, %w: tensor<32x64xf32>,
                 %labels: tensor<?xi32>, %sum: tensor<32x64xf32>)
        -> (tensor<f32>, tensor<32x64xf32> {kf.updates = 3 : i64}) {
      ...
      %9 = kf.matmul_wgrad %8, %x : tensor<?x32xf32>, tensor<?x64xf32>
      %10 = arith.addf %sum, %9 : tensor<32x64xf32>
      return %2, %10 : tensor<f32>, tensor<32x64xf32>
    }
    ```

    An op without a derivative on the way from an argument to the loss is an
    error that names it, and so is one with a region anywhere in the function.
    The rows of a product whose weight is of f8 have no derivative; its bias
    has.
  }];
  let options = [
    Option<"policy", "policy", "::mlir::kf::GradientPolicy",
           "::mlir::kf::GradientPolicy::Recompute",
           "what becomes of values that the backward pass reads", [{
             ::llvm::cl::values(
                 clEnumValN(::mlir::kf::GradientPolicy::Recompute, "recompute",
                            "computed again where that is cheap"),
                 clEnumValN(::mlir::kf::GradientPolicy::Layers, "layers",
                            "computed again from results with kf.kept"),
                 clEnumValN(::mlir::kf::GradientPolicy::Store, "store",
                            "kept in memory"))
           }]>,
    Option<"accumulate", "accumulate", "bool", "false",
           "add gradients to arguments, in place">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ExpandMlp : Pass<"kf-expand-mlp", "::mlir::func::FuncOp"> {
  let summary = "Rewrite kf.mlp to matrix products and activations";
  let description = [{
    ```mlir
    %0 = kf.mlp %x gate(%g) up(%u) down(%d) activation(silu) : (...)
    ```
    becomes
    ```mlir
    %1 = kf.matmul %x, %g : ...
    %2 = kf.activation(silu) %1 : ...
    %3 = kf.matmul %x, %u : ...
    %4 = arith.mulf %2, %3 : ...
    %0 = kf.matmul %4, %d : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ExpandRoute : Pass<"kf-expand-route", "::mlir::func::FuncOp"> {
  let summary = "Rewrite kf.route to reductions and elementwise ops";
  let description = [{
    An expert's rank is how many others of its row come before it, and the one
    of rank j is the j-th that is chosen. Of
    ```mlir
    %e, %w = kf.route %x top(2) normalized : tensor<?x8xf32>
    ```
    ranks, chosen numbers and chosen logits are sums over tensors that are never
    in memory,
    ```mlir
    %rank = kf.reduce(sum) %before dims = [2] : tensor<?x8x8xi32>
    %at = arith.cmpi eq, %ranks, %places : tensor<?x2x8xi32>
    %1 = arith.select %at, %numbers, %zeros : tensor<?x2x8xi1>, tensor<?x2x8xi32>
    %e = kf.reduce(sum) %1 dims = [2] : tensor<?x2x8xi32>
    %2 = arith.select %at, %logits, %zeros2 : tensor<?x2x8xi1>, tensor<?x2x8xf32>
    %3 = kf.reduce(sum) %2 dims = [2] : tensor<?x2x8xf32>
    %w = kf.softmax %3 : tensor<?x2xf32>
    ```
    Without `normalized`, the softmax comes first. GPUs have a kernel that does the
    same of a row of up to 512 experts without `groups`: there the op stays.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ExpandTensors : Pass<"kf-expand-tensors", "::mlir::func::FuncOp"> {
  let summary = "Rewrite ops on batches to ops that kernels compute";
  let description = [{
    `kf.matmul` of tensors of rank 3 and 4 becomes one of matrices where all
    batches share the weight, else a `kf.batch_matmul`:
    ```mlir
    %0 = kf.matmul %x, %w : tensor<2x5x8xf32>, tensor<7x8xf32>
    ```
    becomes
    ```mlir
    %1 = tensor.collapse_shape %x [[0, 1], [2]] : ...
    %2 = kf.matmul %1, %w : tensor<10x8xf32>, tensor<7x8xf32>
    %0 = tensor.expand_shape %2 [[0, 1], [2]] output_shape [2, 5, 7] : ...
    ```
    `kf.scaled_dot_product_attention`, and its gradients `kf.attention_qgrad` and
    `kf.attention_kvgrad`, become products with a softmax between them; the scores
    are a tensor of f32. Where the target has a kernel for one (`getRowTypes`), it
    stays, and reads tensors in memory that are rounded to what that multiplies.
    `kf.cross_entropy` becomes
    reductions of rows, `kf.dropout` elementwise ops with a `kf.philox`, and
    `kf.matmul_dgrad` a product with the transposed weight.
    `kf.rotary_embedding` becomes slices, elementwise ops and a `tensor.concat`. A
    kernel joins 16 tensors at most: a `tensor.concat` of more becomes one of
    copies of such:
    ```mlir
    %0 = tensor.concat dim(1) %x0, %x1, ... : (17 times tensor<?x2xf32>) -> tensor<?x34xf32>
    ```
    becomes
    ```mlir
    %1 = tensor.concat dim(1) %x0, ..., %x15 : (...) -> tensor<?x32xf32>
    %2 = kf.copy %1 : tensor<?x32xf32>
    %0 = tensor.concat dim(1) %2, %x16 : (tensor<?x32xf32>, tensor<?x2xf32>) -> tensor<?x34xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def FuseProjections : Pass<"kf-fuse-projections", "::mlir::func::FuncOp"> {
  let summary = "Join matrix products that read the same rows";
  let description = [{
    Gate and up become one gated product, and products of one x with several
    weights (q, k and v) one product with the concatenated weight:
    ```mlir
    %q = kf.matmul %x, %wq : tensor<?x256xf32>, tensor<256x256xbf16>
    %k = kf.matmul %x, %wk : tensor<?x256xf32>, tensor<128x256xbf16>
    ```
    becomes
    ```mlir
    %w = kf.weight ["q", "k"] : tensor<384x256xbf16>
    %y = kf.matmul %x, %w : tensor<?x256xf32>, tensor<384x256xbf16>
    %q = tensor.extract_slice %y[0, 0] [%n, 256] [1, 1] : ...
    %k = tensor.extract_slice %y[0, 256] [%n, 128] [1, 1] : ...
    ```
    Weights that are not `kf.weight` are left alone: their data is not known at
    load.

    Where the module's target has sums with what experts add as epilogues of
    their product (adapters are such experts), views of its rows go behind the
    sum, and behind an activation of it times another:
    `part + view(experts)` becomes `view(part as [T, 1, N] + experts)`.
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def SelectRows : Pass<"kf-select-rows", "::mlir::ModuleOp"> {
  let summary = "Choose how kernels of products read their rows";
  let description = [{
    A product whose rows are f32 gets `rows`, what its kernel is to read them in:
    what the module's `kf.target` says for as many rows, by the policy that
    chooses the kernel's schedule later. One that has it keeps it.

    Where the target says that there are others as exact, `db` may name a tuning
    database that has the one that was measured to be the fastest for the op, its
    types, as many rows and the scope of `kf-select-schedules`. One that the
    target does not say is a warning, once for all products of its key, and not
    used. Where the target says a single type, the database is not asked.
    ```mlir
    %0 = kf.matmul %x, %w : tensor<?x2048xf32>, tensor<2560x2048xbf16>
    ```
    becomes, on an NVIDIA GPU
    ```mlir
    %0 = kf.matmul %x, %w rows<bf16> : tensor<?x2048xf32>, tensor<2560x2048xbf16>
    ```
    and, where a kernel reads f32 and does itself what its schedule says,
    ```mlir
    %0 = kf.matmul %x, %w rows<f32> : tensor<?x2048xf32>, tensor<2560x2048xbf16>
    ```
  }];
  let options = [
    Option<"maxTokens", "max-tokens", "int64_t", "512",
           "largest n_tokens of functions without kf.max_tokens">,
    Option<"db", "db", "std::string", "",
           "a tuning database, whose rows are used">,
    Option<"device", "device", "std::string", "",
           "the device of the database's measurements, as kf-run devices "
           "describes it; by default the only one">
  ];
  let dependentDialects = ["::mlir::kf::KFDialect"];
}

def SplitRows : Pass<"kf-split-rows", "::mlir::func::FuncOp"> {
  let summary = "Compute values that are too large by parts of their rows";
  let description = [{
    Where the result of a product is larger than `most-bytes`, as logits of many
    rows are, the ops that make or read values with as many elements compute some
    rows after the others, so that these values are in memory in part. What they
    read with fewer elements is copied part by part, and what they give is joined.
    ```mlir
    %logits = kf.matmul %x, %head : tensor<2048x64xf32>, tensor<1000x64xf32>
    %losses = kf.cross_entropy %logits, %labels : tensor<2048x1000xf32>, tensor<2048xi32>
    ```
    becomes, with 4194304 bytes,
    ```mlir
    %x0 = tensor.extract_slice %x[0, 0] [1024, 64] [1, 1] : tensor<2048x64xf32> to tensor<1024x64xf32>
    %x1 = kf.copy %x0 : tensor<1024x64xf32>
    %logits0 = kf.matmul %x1, %head : tensor<1024x64xf32>, tensor<1000x64xf32>
    ... // labels likewise
    %losses0 = kf.cross_entropy %logits0, %labels0 : tensor<1024x1000xf32>, tensor<1024xi32>
    ... // the other 1024 rows
    %all = tensor.concat dim(0) %losses0, %losses1 : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<2048xf32>
    %losses = kf.copy %all : tensor<2048xf32>
    ```
    A part has the most rows, a power of two, with which the largest of the values
    fits, and 128 at least. Each row is computed by the ops that it was computed
    by. Nothing is split where an op needs other rows for a row, as the gradient of
    a weight does, which sums over them; where one of the ops reads what is made of
    what another one gives, so that not all of them can follow one another; and
    where the number of rows is no constant.
  }];
  let options = [
    Option<"mostBytes", "most-bytes", "int64_t", "268435456",
           "the largest result of a product that is computed at once">
  ];
  let dependentDialects = ["::mlir::kf::KFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def RoundRows : Pass<"kf-round-rows", "::mlir::func::FuncOp"> {
  let summary = "Round rows before products, and what attention reads and makes";
  let description = [{
    Obeys `rows` of products, and takes it away: rows of f32 are rounded once for
    all workgroups, and the product, whose result stays f32, reads what that
    gives. What f16 cannot hold stays beside it. `kf-form-kernels` rounds where
    the rows are computed.
    ```mlir
    %0 = kf.matmul %x, %v rows<bf16> : tensor<?x2048xf32>, tensor<2560x2048xbf16>
    %1 = kf.matmul %x, %w rows<f16> : tensor<?x2048xf32>, tensor<2560x2048x!kf.quant<q4_0>>
    %2 = kf.matmul %x, %w rows<i8> : tensor<?x2048xf32>, tensor<2560x2048x!kf.quant<q4_0>>
    ```
    becomes
    ```mlir
    %r = arith.truncf %x : tensor<?x2048xf32> to tensor<?x2048xbf16>
    %0 = kf.matmul %r, %v wide : tensor<?x2048xbf16>, tensor<2560x2048xbf16>
    %h, %o = kf.round_half %x : tensor<?x2048xf32>
    %1 = kf.matmul %h outliers(%o : tensor<?x2048xf32>), %w wide
        : tensor<?x2048xf16>, tensor<2560x2048x!kf.quant<q4_0>>
    %c, %s, %t = kf.quantize_rows %x group(32) : tensor<?x2048xf32>
    %2 = kf.matmul %c scales(%s : tensor<?x64xf32>) sums(%t : tensor<?x64xi32>),
        %w : tensor<?x2048xi8>, tensor<2560x2048x!kf.quant<q4_0>>
    ```
    Where the target has the rounding of attention's result in attention's
    kernel, that result is rounded before it is viewed in another shape, if all
    of its readers round it to one type. If all round it to 16 bits, queries are
    rounded with it to the type that the target says.
  }];
  let options = [
    Option<"maxTokens", "max-tokens", "int64_t", "512",
           "largest n_tokens of functions without kf.max_tokens">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::kf::KFDialect"];
}

def Canonicalize : Pass<"kf-canonicalize", "::mlir::ModuleOp"> {
  let summary = "Fold and canonicalize ops on tensors";
  let description = [{
    Upstream's `canonicalize`, but an op whose result has a `?` does not become
    a constant: constants of tensors have a static shape, and folders do not ask
    whether there is one.
    ```mlir
    %0 = arith.xori %x, %x : tensor<?x2xi32>
    %1 = arith.xori %y, %y : tensor<4x2xi32>
    ```
    becomes
    ```mlir
    %0 = arith.xori %x, %x : tensor<?x2xi32>
    %1 = arith.constant dense<0> : tensor<4x2xi32>
    ```
  }];
}

def FormKernels : Pass<"kf-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Cluster ops into kernels and functions into programs";
  let description = [{
    Each function becomes a `kf.program`, each cluster a `kf.kernel`. A cluster
    has one op that decides its loops (matmul, attention, kv_append, a
    normalization, ...); fused into it are
    - elementwise ops that alone consume its result (bias, activation, residual),
    - the normalization that feeds the rows of a matmul,
    - rope and q/k norms that feed an attention or a cache append,
    - the rounding of attention's result, and the append of what it reads, where
      the target's fusion rules say so,
    - views of operands: slices, reshapes, `kf.transpose`, `kf.broadcast`,
      `tensor.concat`, `kf.iota` and constants.

    What a program returns as a view is copied (`kf.copy`), and so are ids and
    positions that are views but slices, views that attention to tensors reads,
    and what a collective takes. Collectives stay as they are, beside the
    dispatches.

    A cluster has at most 32 ops, its kernel 1024 with the views: a long chain
    of elementwise ops becomes several kernels. By then a pass over memory costs
    little, while compile time grows faster than the kernel does. Pieces of a
    regular chain share a kernel. At most 32 views may lie behind one another.

    Clusters that are equal but for their operands share a kernel, so that the
    layers of a model are dispatches of the same few kernels.
    ```mlir
    func.func @f(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %r: tensor<?x32xf32>)
        -> tensor<?x32xf32> attributes {kf.max_tokens = 8 : i64} {
      %w = kf.weight ["w"] : tensor<32x64xf32>
      %0 = kf.rms_norm %x, %g eps(1.0e-5) : ...
      %1 = kf.matmul %0, %w : ...
      %2 = arith.addf %1, %r : tensor<?x32xf32>
      return %2 : tensor<?x32xf32>
    }
    ```
    becomes
    ```mlir
    kf.kernel @rms_norm_matmul_add_0(%arg0: ..., %arg1: ..., ...) {
      %0 = kf.rms_norm %arg0, %arg1 eps(1.0e-5) : ...
      %1 = kf.matmul %0, %arg2 : ...
      %2 = arith.addf %1, %arg3 : ...
      kf.yield %2 : ...
    }
    kf.program @f(...) attributes {max_tokens = 8 : i64} {
      %w = kf.weight ["w"] : tensor<32x64xf32>
      %0 = kf.dispatch @rms_norm_matmul_add_0(%x, %g, %w, %r) : ...
      kf.yield %0 : ...
    }
    ```
    What is fused is said by the module's `kf.target`, where it has one, and
    `fuse=false` gives every op a kernel of its own. The names of sizes that
    functions use are listed on the module (`kf.sizes`), and each program says
    what its sizes may be: what the function's `kf.size_ranges` does, or from 0
    to its tokens.
  }];
  let options = [
    Option<"fuse", "fuse", "bool", "true", "fuse ops into clusters">,
    Option<"maxTokens", "max-tokens", "int64_t", "512",
           "largest n_tokens of functions without kf.max_tokens">
  ];
  let dependentDialects = ["::mlir::kf::KFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def BoundTokens : Pass<"kf-bound-tokens", "::mlir::ModuleOp"> {
  let summary = "Keep views of `?` rows inside of what they view";
  let description = [{
    Every `?` is n_tokens, or the size that the tensor's `#kf.size` names, so
    that a slice's offset, size and source are linear in them: with 10 tokens,
    the slice below would read past its source. Programs get the `min_tokens`,
    `max_tokens` and `sizes` with which all views of their kernels stay inside,
    and every device checks a step's sizes before it runs.
    ```mlir
    kf.kernel @k(%x: tensor<?x4xf32>, %table: tensor<8x4xf32>) ... {
      %n = tensor.dim %x, %c0 : tensor<?x4xf32>
      %0 = tensor.extract_slice %table[0, 0] [%n, 4] [1, 1] : ...
    kf.program @f(...) attributes {max_tokens = 512 : i64} {
      %0 = kf.dispatch @k(%x, %table) : ...
    ```
    becomes
    ```mlir
    kf.program @f(...) attributes {max_tokens = 8 : i64} {
    ```
    A view that no sizes allow is an error, and so is one that makes a `?`
    of another number: of `?` and 4 joined, say, or of rows with another name.
    So is an index that is neither a constant nor the extent of a tensor, a `?`
    behind the first dimension, and a view that is right if one size is smaller
    than another, for nothing says that.
    Tiled kernels, whose slices lie where their grid says, are left as they are.
  }];
}

def CheckUpdates : Pass<"kf-check-updates", "::mlir::ModuleOp"> {
  let summary = "Refuse results that cannot lie where their argument does";
  let description = [{
    A result of a function that has `kf.updates = n` may lie in the memory of
    argument n, whose elements it replaces: an optimizer's step updates weights
    so, and gradients are added up. Whoever runs the program decides whether it
    does, by binding one buffer as both. `kf-form-kernels` hands the attribute
    on to programs, and to kernels that read such an argument, where the number
    is that of their operand. This pass checks that it is safe:

    - n is the number of an argument of the result's type, and no other result's;
    - no dispatch behind the one that makes the result reads the argument;
    - a kernel that reads the argument and makes the result reads its elements
      for those at the same place alone: by elementwise ops up to the result.

    ```mlir
    kf.kernel @add_0(%0: tensor<4xf32>, %1: tensor<4xf32>)
        -> (tensor<4xf32> {kf.updates = 0 : i64}) {
      %2 = kf.reduce(max) %0 dims = [0] : tensor<4xf32>
      ...
    ```
    gives
    ```
    error: 'kf.reduce' op kf-check-updates: reads what the kernel updates in place, element by element; only elementwise ops may
    ```
  }];
}

def SetLayouts : Pass<"kf-set-layouts", "::mlir::ModuleOp"> {
  let summary = "Lay weights and KV caches out as the target reads them";
  let description = [{
    Every KV cache gets the key block, and every weight that a matmul reads the
    `#kf.layout`, that the module's `kf.target` wants: one for all kernels and
    step sizes of a model, so that schedules are chosen inside of it and a
    weight is in memory once. A dispatch gets a `kf.pack`, which folds into
    `kf.weight`; a weight computed at run time, and what views show of one, is
    packed by a kernel of its own. A weight that has a layout keeps it.
    ```mlir
    kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<96x64xbf16>) ...
    ```
    becomes
    ```mlir
    kf.kernel @k(%x: tensor<?x64xf32>,
        %w: tensor<96x64xbf16, #kf.layout<panel = 32, interleave = 16>>) ...
    ```
  }];
  let dependentDialects = ["::mlir::kf::KFDialect"];
}

def SelectSchedules : Pass<"kf-select-schedules", "::mlir::ModuleOp"> {
  let summary = "Choose schedules of kernels, and check given ones";
  let description = [{
    A kernel that carries a schedule keeps it, if the module's `kf.target` can
    run it; the others get one from their shapes and the target's facts. A
    kernel for which the target has no code is an error that names the op.

    `db` names a tuning database, which `kf-run tune` writes. A kernel without a
    schedule gets the one that was measured for it: for its text, as many rows,
    the module's target, this compiler and `device`. One that cannot be read or
    that the target cannot run is a warning, and the target chooses. `device` is
    what `kf-run devices` prints behind the device's name and before its costs;
    without it, the measurements of this target and compiler are to be of one
    device.
    ```mlir
    kf.kernel @k(%x: tensor<?x256xf32>, %w: tensor<768x256xbf16, #kf.layout<...>>)
        ... { kf.matmul }
    ```
    becomes, on a CPU,
    ```mlir
    kf.kernel @k(...) attributes {schedule = #kf.vector<
        workgroup = [112, 256], tile = [14, 32], lanes = 16, unroll = 4>} ...
    ```
    and on a GPU
    ```mlir
    kf.kernel @k(...) attributes {schedule = #kf.simt<workgroup = [32, 32],
        threads = [16, 16, 1], tile = [2, 2], reduction = 16>} ...
    ```
  }];
  let options = [
    Option<"db", "db", "std::string", "",
           "a tuning database, whose schedules are used">,
    Option<"device", "device", "std::string", "",
           "the device of the database's measurements, as kf-run devices "
           "describes it; by default the only one">
  ];
  let dependentDialects = ["::mlir::kf::KFDialect"];
}

def PrintScheduleCandidates
    : Pass<"kf-print-schedule-candidates", "::mlir::ModuleOp"> {
  let summary = "Print the schedules that the target would measure";
  let description = [{
    For each kernel, the candidates of the module's `kf.target`, those that
    should be the fastest first, with the seconds that its model of costs
    predicts. Weights and caches must be laid out. The module stays as it is.
    ```
    kernel @k, up to 512 rows: 2 candidates
      1.25e-03 s #kf.vector<workgroup = [56, 128], tile = [14, 32], lanes = 16>
      1.50e-03 s #kf.vector<workgroup = [14, 32], tile = [14, 32], lanes = 16> (default)
    ```
  }];
  let options = [
    Option<"most", "most", "int64_t", /*default=*/"0",
           "Candidates to print of each kernel; 0: all, the default among "
           "them.">,
    Option<"read", "read", "double", /*default=*/"0",
           "Bytes that the machine reads from memory in a second; 0: a usual "
           "machine's, as for the other rates.">,
    Option<"f32", "f32", "double", /*default=*/"0",
           "Multiply-adds of f32 that it does in a second, each two "
           "operations.">,
    Option<"i8", "i8", "double", /*default=*/"0",
           "Multiply-adds of 8 bits that it does in a second, each two "
           "operations.">,
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "Threads that these rates are for; 0: those of the target.">
  ];
  let dependentDialects = ["::mlir::kf::KFDialect"];
}

def PlanMemory : Pass<"kf-plan-memory", "::mlir::kf::ProgramOp"> {
  let summary = "Place the intermediate tensors of a program in one arena";
  let description = [{
    Sizes are those at `max_tokens`. Tensors whose lifetimes do not overlap
    share bytes: largest first, each at the lowest offset that is free during
    its lifetime. Results of the program are written in place (offset -1).
    ```mlir
    %0 = kf.dispatch @a(%x) : ...
    ```
    becomes
    ```mlir
    %0 = kf.dispatch @a(%x) {offsets = array<i64: 0>} : ...
    ```
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", "256",
           "alignment of every tensor in bytes">
  ];
}

def TileKernels : Pass<"kf-tile-kernels", "::mlir::kf::KernelOp"> {
  let summary = "Tile kernels across workgroups as their schedule says";
  let description = [{
    The op that makes a kernel's result is tiled by `workgroup` with an
    `scf.forall`, one iteration a workgroup; its producers are fused into it
    through the TilingInterface. Sets `grid`. Register tiles are formed when the
    kernel is vectorized.
    ```mlir
    kf.kernel @k(%x: tensor<?x64xf32>) -> tensor<?x64xf32>
        attributes {schedule = #kf.vector<workgroup = [16, 0]>} {
      %0 = kf.softmax %x : tensor<?x64xf32>
      kf.yield %0 : tensor<?x64xf32>
    }
    ```
    becomes
    ```mlir
    kf.kernel @k(%x: tensor<?x64xf32>) -> tensor<?x64xf32>
        attributes {grid = #kf.grid<tokens = [16], counts = [0]>, ...} {
      %n = tensor.dim %x, %c0 : tensor<?x64xf32>
      %e = tensor.empty(%n) : tensor<?x64xf32>
      %0 = scf.forall (%i) = (0) to (%n) step (16) shared_outs(%o = %e) ... {
        %m = affine.min (d0, d1) -> (-d1 + d0, 16) (%n, %i)
        %s = tensor.extract_slice %x[%i, 0] [%m, 64] [1, 1] : ...
        %t = kf.softmax %s : tensor<?x64xf32>
        scf.forall.in_parallel {
          tensor.parallel_insert_slice %t into %o[%i, 0] [%m, 64] [1, 1] : ...
        }
      }
      kf.yield %0 : tensor<?x64xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // KF_TRANSFORMS_PASSES_TD
