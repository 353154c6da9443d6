//===- ExpertPlaces.h - Rows that have the same expert ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which rows a workgroup multiplies with the weight of one expert. A place is a
// token and one of its experts, and a workgroup has as many neighbouring
// tokens, each with the same place, as rows are multiplied together. Of all
// places in its window that have the same expert, the first, and then each that
// has as many before it as make another group, leads those behind it up to the
// next leader. A workgroup multiplies the groups that places of its own lead,
// one after the other: so each place is in one group, whatever experts there
// are, and nothing is sorted.
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

  virtual ~ExpertPlaces() = default;

  /// Calls `body` with how many rows go together, at least 1, for each group
  /// that the workgroup's `tokens` tokens lead, one after the other. All
  /// threads must come here, and come to `body`.
  void forGroups(Value tokens, function_ref<void(Value)> body);

  // Of the group that `body` is called for:

  Value expert() const { return ofGroup; }
  Place placeOfRow(Value row);
  Value loadX(Value row, Value k) { return loadX(placeOfRow(row), k); }
  Value loadX(const Place &place, Value k);
  /// What is stored of an element of the product with these sums, and its place
  /// in the tile.
  Value finishElement(Value row, Value column, ValueRange sums);
  SmallVector<Value> resultIndices(Value row, Value column);

protected:
  ExpertPlaces(GPUEmitter &emitter, ExpertMatmulOp op,
               const ExpertGroups &groups)
      : groups(groups), e(emitter), b(emitter.b), loc(emitter.loc), op(op) {}

  /// Sets `numbers`, `lists` and what the window is, for all threads.
  virtual void find(Value tokens) = 0;
  /// What comes before the rows of a group are multiplied.
  virtual void beginGroup() {}

  void findWindow();
  Value wordAt(Value memory, Value at);
  void setWord(Value value, Value memory, Value at);
  /// Where place number `inWindow` of the window is, the number of the one that
  /// token `token` of the workgroup has, and the expert (i32) of one.
  Place placeOf(Value inWindow);
  Value leaderOf(Value token);
  Value expertOf(Value inWindow);
  Value nearestExpertOf(const Place &place);

  const ExpertGroups groups;
  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  Value numbers; // i32, of experts: of all places of the window
  Value lists;   // i32 [rows][1 + rows]: how many go together, and which
  Value windowStart, inWindow; // first token, and places of all

private:
  Value placeAt(Value list, Value row);

  ExpertMatmulOp op;
  Value listOfRow; // of the group: where its list begins
  Value ofGroup;   // its expert
};

/// Places found without operations of subgroups. Each thread looks at a part of
/// the window for one of the workgroup's places: it counts those with the same
/// expert, learns from the counts of all parts how many are before its own, and
/// lists those that the workgroup's place leads.
class ExpertParts : public ExpertPlaces {
public:
  ExpertParts(GPUEmitter &emitter, ExpertMatmulOp op,
              const ExpertGroups &groups)
      : ExpertPlaces(emitter, op, groups) {}

private:
  void find(Value tokens) override;
  void readNumbers();

  Value counts; // i32 [rows][parts]: places of a part that have the expert
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_EXPERTPLACES_H
