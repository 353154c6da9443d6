//===- SetCacheLayout.cpp - Key blocks of KV caches -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/LLVMCPU/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"

namespace mlir::kf {
#define GEN_PASS_DEF_SETCACHELAYOUT
#include "kf/Target/LLVMCPU/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

struct SetCacheLayoutPass
    : mlir::kf::impl::SetCacheLayoutBase<SetCacheLayoutPass> {
  using SetCacheLayoutBase::SetCacheLayoutBase;

  void runOnOperation() override {
    if (keyBlock <= 0) {
      getOperation().emitError("kf-set-cache-layout: key-block must be "
                               "positive, found ")
          << keyBlock.getValue();
      return signalPassFailure();
    }
    KVCacheType tooSmall;
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](KVCacheType type) -> Type {
      if (type.getPage() % keyBlock != 0) {
        tooSmall = type;
        return type;
      }
      return KVCacheType::get(type.getContext(), type.getLayers(),
                              type.getKvHeads(), type.getHeadDim(),
                              type.getType(), keyBlock, type.getPage());
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
    if (!tooSmall)
      return;
    getOperation().emitError("kf-set-cache-layout: pages of ")
        << tooSmall.getPage() << " positions cannot hold key blocks of "
        << keyBlock.getValue() << "; page must be a multiple of it";
    signalPassFailure();
  }
};

} // namespace
