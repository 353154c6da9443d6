//===- KFInterfaces.td - Interfaces of kf ops
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFINTERFACES_TD
#define KF_DIALECT_KF_IR_KFINTERFACES_TD

include "mlir/IR/OpBase.td"

def KF_LoopOpInterface : OpInterface<"LoopOpInterface"> {
  let cppNamespace = "::mlir::kf";
  let description = [{
    An op that a perfect loop nest computes. The TilingInterface of every kf op
    derives from these two methods.
  }];
  let methods = [
    InterfaceMethod<[{
        Iterator type of each loop; only parallel loops are tiled across
        workgroups.
      }],
      "::llvm::SmallVector<::mlir::utils::IteratorType>", "getLoopTypes">,
    InterfaceMethod<[{
        One map from the loops to each operand, then to each result. A result
        expression `d<i>` means that the dimension is sliced by loop i; `0` means
        that it is taken whole. Operands that are not tensors have a map without
        results.
      }],
      "::llvm::SmallVector<::mlir::AffineMap>", "getLoopMaps">
  ];
}

def KF_FusionOpInterface : OpInterface<"FusionOpInterface"> {
  let cppNamespace = "::mlir::kf";
  let description = [{
    How an op shares a kernel with the ops that make its operands, and with
    those that read its result (kf-form-kernels). One that says nothing takes
    its operands from memory, and nothing else changes its result.
  }];
  let methods = [
    InterfaceMethod<[{
        What it computes of its operands while it reads them.
      }],
      "::mlir::kf::OperandReads", "getOperandReads", (ins), "",
      [{ return ::mlir::kf::OperandReads::Memory; }]>,
    InterfaceMethod<[{
        What changes its result before it reaches memory.
      }],
      "::mlir::kf::ResultChanges", "getResultChanges", (ins), "",
      [{ return ::mlir::kf::ResultChanges::None; }]>,
    InterfaceMethod<[{
        What its result is, for those that say what they compute of operands.
      }],
      "::mlir::kf::ResultKind", "getResultKind", (ins), "",
      [{ return ::mlir::kf::ResultKind::Other; }]>
  ];
}

def KF_WorkOpInterface : OpInterface<"WorkOpInterface"> {
  let cppNamespace = "::mlir::kf";
  let description = [{
    What an op computes, where a number of operations for each element of one
    tensor says it, and what it moves (countWork).
  }];
  let methods = [
    InterfaceMethod<[{
        The tensor, and operations for each of its elements; by default none, for
        ops that move elements.
      }],
      "::mlir::kf::ElementWork", "getElementWork", (ins), "",
      [{ return {}; }]>,
    InterfaceMethod<[{
        What is read of an operand's tensor, as a type of so many elements: by
        default all of it; null: hardly any.
      }],
      "::mlir::RankedTensorType", "getPartRead",
      (ins "::mlir::OpOperand &":$operand), "", [{
        return ::llvm::cast<::mlir::RankedTensorType>(operand.get().getType());
      }]>,
    InterfaceMethod<[{
        What is written to a cache or, of states, read as well; keys that are
        read depend on their positions, and are no part of it.
      }],
      "::mlir::kf::RowBytes", "getCacheBytes", (ins), "", [{ return {}; }]>
  ];
}

def KF_ProductOpInterface : OpInterface<"ProductOpInterface"> {
  let cppNamespace = "::mlir::kf";
  let description = [{
    Products of rows with a weight: what kf.matmul and kf.expert_matmul, where
    each row has weights of its own, have alike.
  }];
  let methods = [
    InterfaceMethod<"Rows, or codes of rows with scales.", "::mlir::Value",
      "getX">,
    InterfaceMethod<"The weight.", "::mlir::Value", "getW">,
    InterfaceMethod<"The weight, as the op's operand.", "::mlir::OpOperand &",
      "getWMutable">,
    InterfaceMethod<"What is added to sums; null: nothing.", "::mlir::Value",
      "getBias">,
    InterfaceMethod<"Scales of the codes of rows; null: rows are numbers.",
      "::mlir::Value", "getScales">,
    InterfaceMethod<"Sums of the codes of rows; null without scales.",
      "::mlir::Value", "getSums">,
    InterfaceMethod<"Scales of the rows of w; null where these are numbers.",
      "::mlir::Value", "getWeightScales">,
    InterfaceMethod<"The activation of a gate; none without one.",
      "::std::optional<::mlir::kf::ActivationKind>", "getGlu">,
    InterfaceMethod<"What bounds the gate; null: nothing.",
      "::mlir::kf::GluClampAttr", "getClampAttr">,
    InterfaceMethod<[{
        What the kernel is to read rows in; null: nobody has decided.
      }],
      "::mlir::kf::RowsAttr", "getRowsAttr">,
    InterfaceMethod<"Sets it; null: takes it away.", "void", "setRowsAttr",
      (ins "::mlir::kf::RowsAttr":$rows)>,
    InterfaceMethod<"The product.", "::mlir::Value", "getResult">
  ];
}

def KF_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::mlir::kf";
  let description = [{
    An op that says its own derivative, in reverse mode: of the gradients of its
    results it builds those of its operands (kf-differentiate). What they are,
    and where ops are built, is in Gradients.h.
  }];
  let methods = [
    InterfaceMethod<[{
        Adds to `gradients` one for each operand that `gradients` wants, of the
        gradients that the results have there. Fails with a diagnostic on the op
        where there is no derivative for such an operand.
      }],
      "::llvm::LogicalResult", "buildGradients",
      (ins "::mlir::kf::Gradients &":$gradients)>,
    InterfaceMethod<[{
        The same result by other ops, where derivatives read what is between
        them; null where the op is differentiated as it stands. With `stores`,
        what is between them is to be kept in memory, else only what is costly
        to compute again.
      }],
      "::mlir::Value", "expandForGradients",
      (ins "::mlir::OpBuilder &":$builder, "bool":$stores), "",
      [{ return {}; }]>,
    InterfaceMethod<[{
        Whether computing the result again takes no longer than passing over the
        operands in memory.
      }],
      "bool", "isCheapToRecompute", (ins), "", [{ return false; }]>
  ];
}

def KF_DispatchInterface : OpInterface<"DispatchInterface"> {
  let cppNamespace = "::mlir::kf";
  let description = [{
    What a program runs in its order: kf.dispatch, and collectives, which no
    kernel computes.
  }];
  let methods = [
    InterfaceMethod<[{
        The byte offset of each result in the program's arena, or -1 where the
        result is the program's own; nothing until memory is planned.
      }],
      "::std::optional<::llvm::ArrayRef<int64_t>>", "getOffsets">,
    InterfaceMethod<"Sets them.", "void", "setOffsets",
      (ins "::std::optional<::llvm::ArrayRef<int64_t>>":$offsets)>
  ];
}

def KF_LayerOpInterface : OpInterface<"LayerOpInterface"> {
  let cppNamespace = "::mlir::kf";
  let description = [{
    An op that reads or changes one layer of a cache, which its kernel sees
    alone.
  }];
  let methods = [
    InterfaceMethod<"The layer.", "uint64_t", "getLayer">,
    InterfaceMethod<"Names another layer.", "void", "setLayer",
      (ins "uint64_t":$layer)>
  ];
}

def KF_CacheAttentionInterface : OpInterface<"CacheAttentionInterface"> {
  let cppNamespace = "::mlir::kf";
  let description = [{
    Attention to keys of a KV cache: what kf.attention and
    kf.attention_partial, which computes parts of it, read alike.
  }];
  let methods = [
    InterfaceMethod<"Queries, [T, heads, D].", "::mlir::Value", "getQ">,
    InterfaceMethod<"The cache.",
      "::mlir::TypedValue<::mlir::kf::KVCacheType>", "getCache">,
    InterfaceMethod<"Position of each row.", "::mlir::Value", "getPositions">,
    InterfaceMethod<"Sequence of each row.", "::mlir::Value", "getSequences">,
    InterfaceMethod<"Pages of the sequences, [S, P].", "::mlir::Value",
      "getPageTable">,
    InterfaceMethod<"Scores of no key, one a head; null where there are none.",
      "::mlir::Value", "getSinks">,
    InterfaceMethod<"The KV head of all heads of a tile; null outside of one.",
      "::mlir::Value", "getKvHead">,
    InterfaceMethod<"Layer of the cache.", "uint64_t", "getLayer">,
    InterfaceMethod<"What scores are multiplied by.", "::llvm::APFloat",
      "getScale">,
    InterfaceMethod<"Keys that a row sees, where it does not see all.",
      "::std::optional<uint64_t>", "getWindow">,
    InterfaceMethod<"Whether the window is the row's chunk of as many keys, "
      "rather than the last ones.", "bool", "getChunked">,
    InterfaceMethod<"c of c * tanh(s / c), which a score s becomes.",
      "::std::optional<::llvm::APFloat>", "getSoftcap">
  ];
}

def KF_BatchAttentionInterface : OpInterface<"BatchAttentionInterface"> {
  let cppNamespace = "::mlir::kf";
  let description = [{
    Attention to keys that are tensors, and its gradients: what
    kf.scaled_dot_product_attention, kf.attention_qgrad and kf.attention_kvgrad
    read alike, and how they are tiled.
  }];
  let methods = [
    InterfaceMethod<"Queries, [..., H, T, D].", "::mlir::Value", "getQ">,
    InterfaceMethod<"Keys, [..., G, S, D].", "::mlir::Value", "getK">,
    InterfaceMethod<"Values, [..., G, S, E].", "::mlir::Value", "getV">,
    InterfaceMethod<"What queries see, or what is added to scores; null: there "
      "is none.", "::mlir::Value", "getMask">,
    InterfaceMethod<"What scores are multiplied by; none: 1 / sqrt(D).",
      "::std::optional<::llvm::APFloat>", "getScale">,
    InterfaceMethod<"c of c * tanh(s / c), which a score s becomes.",
      "::std::optional<::llvm::APFloat>", "getSoftcap">,
    InterfaceMethod<"Whether later keys are hidden.", "bool", "getCausal">,
    InterfaceMethod<"Keys that came before the queries'.", "uint64_t",
      "getOffset">,
    InterfaceMethod<"Keys that a query sees, where it does not see all.",
      "::std::optional<uint64_t>", "getWindow">
  ];
}

#endif // KF_DIALECT_KF_IR_KFINTERFACES_TD
