//===- WriteFileTest.cpp - Tests of writing files -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/WriteFile.h"

#include "TempFile.h"

#include "runtime/io/MappedFile.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace kf;
using namespace kf::test;

TEST(WriteFile, ReplacesWhatWasThere) {
  TempFolder temp;
  const std::string path = temp.write("x", "something longer");
  ASSERT_TRUE(writeFile(path, "short").ok());
  Result<MappedFile> file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->text(), "short");
}

TEST(WriteFile, TakesDevices) {
  EXPECT_TRUE(writeFile("/dev/null", "x").ok());
  EXPECT_EQ(writeFile("/dev/full", "x").message(),
            "cannot write '/dev/full': No space left on device");
}

TEST(WriteFile, RefusesWhatMayWait) {
  TempFolder temp;
  const std::string pipe = temp.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(writeFile(pipe, "x").message(),
            "cannot write '" + pipe + "': it is not a regular file");
}

TEST(WriteFile, NamesFoldersThatAreNotThere) {
  TempFolder temp;
  EXPECT_EQ(writeFile(temp.path("no/x"), "x").message(),
            "cannot write '" + temp.path("no/x") +
                "': No such file or directory");
  EXPECT_EQ(writeFile(temp.path(), "x").message(),
            "cannot write '" + temp.path() + "': Is a directory");
}
