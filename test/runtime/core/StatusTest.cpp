//===- StatusTest.cpp - Errors and their codes --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Status.h"

#include "runtime/core/AlignedBuffer.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/SystemError.h"
#include "runtime/core/Tensor.h"
#include "runtime/io/Safetensors.h"
#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

using namespace kf;

namespace {

constexpr StatusCode codes[] = {StatusCode::Invalid,     StatusCode::NotFound,
                                StatusCode::OutOfMemory, StatusCode::Cancelled,
                                StatusCode::Unsupported, StatusCode::Internal,
                                StatusCode::Unavailable};

Result<int> fails(StatusCode code) { return Status::error("why", code); }

Status wraps(StatusCode code) {
  KF_ASSIGN_OR_RETURN(int value, fails(code));
  return value ? Status() : Status::error("zero");
}

/// However often context is put around an error.
TEST(Status, KeepsItsCode) {
  EXPECT_EQ(Status().code(), StatusCode::Ok);
  EXPECT_EQ(Status().in("here").code(), StatusCode::Ok);
  EXPECT_EQ(Status::error("what").code(), StatusCode::Invalid);
  for (StatusCode code : codes) {
    const Status status =
        catchExceptions([&] { return wraps(code).in("inner").in("outer"); });
    EXPECT_EQ(status.code(), code);
    EXPECT_EQ(status.message(), "outer: inner: why");
    EXPECT_EQ(status.isCancelled(), code == StatusCode::Cancelled);
  }
}

TEST(Status, OfExceptions) {
  auto codeOf = [](auto exception) {
    return catchExceptions([&]() -> Status { throw exception; }).code();
  };
  EXPECT_EQ(codeOf(std::bad_alloc()), StatusCode::OutOfMemory);
  EXPECT_EQ(codeOf(std::length_error("")), StatusCode::OutOfMemory);
  EXPECT_EQ(codeOf(std::runtime_error("")), StatusCode::Internal);
  EXPECT_EQ(codeOf(1), StatusCode::Internal);
}

/// No address space has so much.
TEST(Status, OfMemoryThatThereIsNot) {
  for (uint64_t bytes : {uint64_t(1) << 60, UINT64_MAX})
    EXPECT_EQ(AlignedBuffer::allocate(bytes).status().code(),
              StatusCode::OutOfMemory);
  EXPECT_EQ(
      HostTensor::zeros(DataType::F32, {int64_t(1) << 58}).status().code(),
      StatusCode::OutOfMemory);
}

TEST(Status, OfFiles) {
  const test::TempFolder folder;
  auto codeOf = [](const std::string &path) {
    return MappedFile::open(path).status().code();
  };
  EXPECT_EQ(codeOf(folder.path("none")), StatusCode::NotFound);
  EXPECT_EQ(codeOf(folder.path()), StatusCode::Invalid);
  EXPECT_EQ(codeOf(std::string("a\0b", 3)), StatusCode::Invalid);
  const auto tensors = Safetensors::fromMemory(
      std::as_bytes(std::span("\2\0\0\0\0\0\0\0{}", 10)), "none");
  ASSERT_TRUE(tensors.ok()) << tensors.message();
  EXPECT_EQ((*tensors)->find("w").status().code(), StatusCode::NotFound);
  EXPECT_EQ(codeOfSystemError(ENOMEM), StatusCode::OutOfMemory);
  EXPECT_EQ(codeOfSystemError(EACCES), StatusCode::Unavailable);
  EXPECT_EQ(codeOfSystemError(EAGAIN), StatusCode::Unavailable);
}

} // namespace
