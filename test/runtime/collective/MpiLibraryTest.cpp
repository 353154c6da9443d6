//===- MpiLibraryTest.cpp - An MPI that is opened at run time -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/MpiLibrary.h"

#include <gtest/gtest.h>

#include <fstream>

using namespace kf;

namespace {

TEST(MpiLibrary, SaysWhichPluginIsMissing) {
  const Result<MpiLibrary> library =
      MpiLibrary::open(MpiKind::OpenMpi, "/nowhere");
  EXPECT_EQ(library.message(),
            "a launcher of Open MPI's has started this, and there is no "
            "'/nowhere/kf_mpi_openmpi.so': build with the package "
            "libopenmpi-dev, or use a launcher that there is a plugin for");
  EXPECT_EQ(library.status().code(), StatusCode::Unavailable);
}

TEST(MpiLibrary, SaysWhatIsNoPlugin) {
  const std::string folder = testing::TempDir();
  std::ofstream(folder + "/kf_mpi_mpich.so") << "no library";
  EXPECT_TRUE(MpiLibrary::open(MpiKind::Mpich, folder)
                  .message()
                  .starts_with("cannot open the plugin for MPICH: " + folder));
  std::remove((folder + "/kf_mpi_mpich.so").c_str());
}

} // namespace
