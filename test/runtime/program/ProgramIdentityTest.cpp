//===- ProgramIdentityTest.cpp - Which build this program is --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two programs are made of this: one that the linker gives a build id
// (KF_BUILD_ID), and one that it gives none. The first loads a library with an
// id of its own where there is one (KF_IDENTITY_LIBRARY).
//
//===----------------------------------------------------------------------===//

#include "runtime/program/ProgramIdentity.h"

#include "runtime/program/ExecutableCache.h"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <fstream>
#include <iterator>

using namespace kf;

TEST(ProgramIdentity, IsNeverEmpty) {
  Result<std::string> identity = programIdentity();
  ASSERT_TRUE(identity.ok()) << identity.message();
#ifdef KF_BUILD_ID
  EXPECT_EQ(identity->substr(0, 4), "\x12\x34\x56\x78");
  EXPECT_EQ(identity->size(), 4u);
#else
  std::ifstream self("/proc/self/exe", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(self), {}};
  ASSERT_FALSE(bytes.empty());
  std::string hash;
  for (size_t at = 0; at < bytes.size(); at += 1 << 20)
    hash = hashKey({hash, std::string_view(bytes).substr(at, 1 << 20)});
  EXPECT_EQ(*identity, hash);
#endif
}

#ifdef KF_IDENTITY_LIBRARY
TEST(ProgramIdentity, OfALibraryIsTheLibrarys) {
  void *library = dlopen(KF_IDENTITY_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  auto identity =
      reinterpret_cast<size_t (*)(char *, size_t)>(dlsym(library, "identity"));
  ASSERT_TRUE(identity);
  char bytes[64];
  const size_t size = identity(bytes, sizeof(bytes));
  EXPECT_EQ(std::string(bytes, size), "\x9a\xbc\xde\xf0");
  dlclose(library);
}
#endif
