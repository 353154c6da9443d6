//===- Elementwise.h - The elementwise ops of arith and math ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ops of other dialects that kernels know. The reference has the same list
// (runtime/devices/Reference/ScalarOps.cpp); the conformance suite runs each.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_DIALECT_KF_IR_ELEMENTWISE_H
#define KF_LIB_DIALECT_KF_IR_ELEMENTWISE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace mlir::kf {

template <typename... OpTys> struct OpList {};

using ElementwiseOps = OpList<
    arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::RemFOp,
    arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
    arith::NegFOp, arith::CmpFOp, arith::AddIOp, arith::SubIOp, arith::MulIOp,
    arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp, arith::CeilDivSIOp,
    arith::CeilDivUIOp, arith::RemSIOp, arith::RemUIOp, arith::MaxSIOp,
    arith::MaxUIOp, arith::MinSIOp, arith::MinUIOp, arith::AndIOp, arith::OrIOp,
    arith::XOrIOp, arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp, arith::CmpIOp,
    arith::SelectOp, arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp,
    arith::ExtUIOp, arith::TruncIOp, arith::SIToFPOp, arith::UIToFPOp,
    arith::FPToSIOp, arith::FPToUIOp, arith::BitcastOp, math::AbsFOp,
    math::AbsIOp, math::CeilOp, math::FloorOp, math::RoundOp, math::RoundEvenOp,
    math::TruncOp, math::SqrtOp, math::RsqrtOp, math::CbrtOp, math::ExpOp,
    math::Exp2Op, math::ExpM1Op, math::LogOp, math::Log2Op, math::Log10Op,
    math::Log1pOp, math::PowFOp, math::ErfOp, math::ErfcOp, math::SinOp,
    math::CosOp, math::TanOp, math::AsinOp, math::AcosOp, math::AtanOp,
    math::Atan2Op, math::SinhOp, math::CoshOp, math::TanhOp, math::AsinhOp,
    math::AcoshOp, math::AtanhOp, math::CopySignOp, math::FmaOp,
    math::IsFiniteOp, math::IsInfOp, math::IsNaNOp, math::IsNormalOp>;

} // namespace mlir::kf

#endif // KF_LIB_DIALECT_KF_IR_ELEMENTWISE_H
