//===- WeightUploaderTest.cpp - Weights on their way to a device ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/WeightUploader.h"

#include "test/runtime/DeviceSteps.h"
#include "test/runtime/FakeDevice.h"

#include <gtest/gtest.h>

using namespace kf;
using kf::test::FakeDevice;
using kf::test::FakeSource;

namespace {

/// Part by part, through fewer slots than there are parts.
TEST(WeightUploader, UploadsWhatPackingGives) {
  FakeDevice device(/*shared=*/false);
  FakeSource source;
  std::vector<float> w(100 * 64), v(10 * 64);
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = static_cast<float>(i);
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = -static_cast<float>(i);
  source.tensors["w"] = {DataType::F32, {100, 64}, w.data(), w.size() * 4};
  source.tensors["v"] = {DataType::F32, {10, 64}, v.data(), v.size() * 4};
  WeightSpec rows, panels, transposed;
  rows.names = panels.names = {"w", "v"};
  rows.shape = panels.shape = {110, 64};
  rows.type = DataType::BF16;
  panels.layout = {WeightLayout::Kind::Panels, 8, 0};
  transposed.names = {"w"};
  transposed.shape = {64, 100};
  transposed.transposed = true;
  for (const int64_t partBytes : {1, 3000, 1 << 20}) {
    std::unique_ptr<WeightUploader> uploader =
        WeightUploader::create(device, partBytes).take();
    std::vector<std::unique_ptr<Buffer>> buffers;
    for (const WeightSpec &spec : {rows, panels, transposed}) {
      buffers.push_back(device.allocate(*spec.packedBytes()).take());
      const Status status = uploader->upload(spec, source, *buffers.back(), {});
      ASSERT_TRUE(status.ok()) << status.message();
    }
    ASSERT_TRUE(uploader->finish().ok());
    for (size_t i = 0; const WeightSpec &spec : {rows, panels, transposed}) {
      const AlignedBuffer expected = packWeight(spec, source).take();
      std::vector<std::byte> found(expected.size());
      ASSERT_TRUE(test::readAndWait(device, *buffers[i++], 0, found.data(),
                                    found.size())
                      .ok());
      EXPECT_TRUE(std::ranges::equal(found, expected.span()));
    }
  }
}

} // namespace
