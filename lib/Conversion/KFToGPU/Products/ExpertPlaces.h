//===- ExpertPlaces.h - Rows of an expert, found by threads -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which rows a workgroup multiplies with the weight of one expert, without
// operations of subgroups. As in StreamExperts.cpp, a place is a token and one
// of its experts, and a workgroup has some neighbouring tokens, each with the
// same place. Of all places in its window that have the same expert, the first,
// and each that has as many before it as make another group, leads those behind
// it up to the next leader; a workgroup multiplies what its places lead.
//
// Each thread looks at a part of the window for one of the workgroup's places:
// it counts those with the same expert, learns from the counts of all parts how
// many are before its own, and lists those that the workgroup's place leads.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_EXPERTPLACES_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_EXPERTPLACES_H

#include "../GPUEmitter.h"

namespace mlir::kf {

class ExpertPlaces {
public:
  /// A token and one of the places among its experts, both in the tile, as an
  /// index is: before its first one, too.
  using Place = std::array<Value, 2>;

  ExpertPlaces(GPUEmitter &emitter, ExpertMatmulOp op,
               const ExpertGroups &groups)
      : e(emitter), b(emitter.b), loc(emitter.loc), op(op), groups(groups) {}

  /// Calls `body` with how many rows go together, at least 1, for each group
  /// that the workgroup's `tokens` tokens lead, one after the other. All
  /// threads must come here, and come to `body`.
  void forGroups(Value tokens, function_ref<void(Value)> body);

  // Of the group that `body` is called for:

  Value expert() const { return ofGroup; }
  Place placeOfRow(Value row);
  Value loadX(const Place &place, Value k);
  /// What is stored of an element of the product with these sums, and its place
  /// in the tile.
  Value finishElement(Value row, Value column, ValueRange sums);
  SmallVector<Value> resultIndices(Value row, Value column);

private:
  void find(Value tokens);
  void readNumbers();
  Value wordAt(Value memory, Value at);
  void setWord(Value value, Value memory, Value at);
  Value placeAt(Value list, Value row);
  Place placeOf(Value inWindow);

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  ExpertMatmulOp op;
  const ExpertGroups groups;
  Value numbers;   // i32, of experts: of all places of the window
  Value counts;    // i32 [rows][parts]: places of a part that have the expert
  Value lists;     // i32 [rows][1 + rows]: how many go together, and which
  Value listOfRow; // of the group: where its list begins
  Value windowStart, inWindow; // first token, and places of all
  Value ofGroup;               // its expert
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_EXPERTPLACES_H
