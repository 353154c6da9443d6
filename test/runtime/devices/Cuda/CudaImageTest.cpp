//===- CudaImageTest.cpp - Code that the driver is given ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/CudaImage.h"

#include "FakeCuda.h"
#include "test/runtime/StatusAssertions.h"
#include "test/runtime/devices/ScalePrograms.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

namespace {

std::string ptx(const std::string &text) { return text + '\0'; }

Status errorOf(const std::string &code) {
  return parseCudaImages(lengthPrefixed(code), 1).status();
}

TEST(CudaImageTest, ReadsImagesInOrder) {
  const std::string first = ptx(".version 8.0\n.target sm_90a\n"),
                    second = Cubin().bytes(), third = ptx("//\n");
  const std::string binary =
      lengthPrefixed(first) + lengthPrefixed(second) + lengthPrefixed(third);
  auto images = parseCudaImages(binary, 3);
  ASSERT_TRUE(images.ok()) << images.message();
  EXPECT_EQ((*images)[0].bytes, first);
  EXPECT_EQ((*images)[1].bytes, second);
  EXPECT_EQ((*images)[2].bytes, third);
  EXPECT_TRUE((*images)[0].isPtx);
  EXPECT_FALSE((*images)[1].isPtx);
  EXPECT_EQ((*images)[0].target, (PtxTarget{90, true, false}));
  EXPECT_EQ((*images)[2].target, std::nullopt);
  EXPECT_TRUE(parseCudaImages("", 0).ok());
}

TEST(CudaImageTest, TellsWhetherTextWaits) {
  auto waits = [](const std::string &text) {
    return parseCudaImages(lengthPrefixed(ptx(text)), 1)->front().waits;
  };
  EXPECT_TRUE(waits(".entry kf_kernel() {\n\tgriddepcontrol.wait;\n}"));
  EXPECT_FALSE(waits(".entry kf_kernel() {}"));
  EXPECT_FALSE(waits("// griddepcontrol.wait;\n"));
  EXPECT_FALSE(waits("griddepcontrol.launch_dependents;"));
}

TEST(CudaImageTest, ChecksLengths) {
  const std::string one = lengthPrefixed(ptx("//\n"));
  auto fails = [](const std::string &binary, const char *message) {
    return failsWith(parseCudaImages(binary, 1).status(), message);
  };
  EXPECT_TRUE(fails("", "code of kernel 0: there is none"));
  EXPECT_TRUE(fails(one.substr(0, 7), "code of kernel 0: there is none"));
  EXPECT_TRUE(fails(one.substr(0, one.size() - 1),
                    "it has 4 bytes, of which 3 are there"));
  EXPECT_TRUE(fails(std::string(8, '\xff'), "of which 0 are there"));
  EXPECT_TRUE(fails(one + "x", "1 bytes follow the code of the last kernel"));
}

TEST(CudaImageTest, ChecksText) {
  EXPECT_TRUE(failsWith(errorOf(""), "does not end in a NUL"));
  EXPECT_TRUE(failsWith(errorOf(".version 8.0"), "does not end in a NUL"));
  EXPECT_TRUE(failsWith(errorOf(ptx(std::string("a\0b", 3))),
                        "neither PTX nor an ELF file: byte 1 is no text"));
  EXPECT_TRUE(failsWith(errorOf(ptx("ab\x80")), "byte 2 is no text"));
  EXPECT_TRUE(succeeds(errorOf(ptx("\t~ \r\n"))));
}

TEST(CudaImageTest, ChecksElfFiles) {
  EXPECT_TRUE(succeeds(errorOf(Cubin().bytes())));
  const std::string whole = Cubin().bytes();
  for (size_t size = SELFMAG; size < whole.size(); ++size)
    EXPECT_FALSE(errorOf(whole.substr(0, size)).ok()) << size << " bytes";
  auto errorWith = [](auto change) {
    Cubin cubin;
    change(cubin);
    return errorOf(cubin.bytes());
  };
  EXPECT_TRUE(failsWith(errorWith([](Cubin &c) { c.header.e_machine = 62; }),
                        "no code for NVIDIA GPUs"));
  EXPECT_TRUE(
      failsWith(errorWith([](Cubin &c) { c.header.e_ident[EI_CLASS] = 1; }),
                "no code for NVIDIA GPUs"));
  const char *table = "section table is damaged";
  EXPECT_TRUE(failsWith(
      errorWith([](Cubin &c) { c.header.e_shoff = UINT64_MAX; }), table));
  EXPECT_TRUE(
      failsWith(errorWith([](Cubin &c) { c.header.e_shnum = 3; }), table));
  EXPECT_TRUE(
      failsWith(errorWith([](Cubin &c) { c.header.e_shstrndx = 2; }), table));
  EXPECT_TRUE(
      failsWith(errorWith([](Cubin &c) { c.header.e_shentsize = 0; }), table));
  const char *section = "outside of the file";
  EXPECT_TRUE(
      failsWith(errorWith([](Cubin &c) { c.sections[1].sh_size = UINT64_MAX; }),
                section));
  EXPECT_TRUE(failsWith(
      errorWith([](Cubin &c) { c.sections[1].sh_offset = UINT64_MAX; }),
      section));
  EXPECT_TRUE(succeeds(errorWith([](Cubin &c) {
    c.sections[1].sh_type = SHT_NOBITS; // takes no room in the file
    c.sections[1].sh_size = UINT64_MAX;
  })));
  EXPECT_TRUE(failsWith(errorWith([](Cubin &c) { c.header.e_phnum = 1; }),
                        "program table is damaged"));
}

TEST(CudaImageTest, TellsWhichDevicesTextFits) {
  auto targetOf = [](const std::string &name) {
    const std::string binary =
        lengthPrefixed(ptx("// .target sm_75\n.target " + name + "\n"));
    return parseCudaImages(binary, 1)->front().target;
  };
  EXPECT_EQ(targetOf("sm_"), std::nullopt);
  EXPECT_EQ(targetOf("sm_99999999999"), std::nullopt);
  const PtxTarget plain = *targetOf("sm_80"), exact = *targetOf("sm_90a, x"),
                  family = *targetOf("sm_100f");
  EXPECT_TRUE(plain.fits(8, 0));
  EXPECT_TRUE(plain.fits(9, 0));
  EXPECT_FALSE(plain.fits(7, 5));
  EXPECT_TRUE(exact.fits(9, 0));
  EXPECT_FALSE(exact.fits(10, 0));
  EXPECT_TRUE(family.fits(10, 3));
  EXPECT_FALSE(family.fits(12, 0));
}

TEST(CudaImageTest, CountsParameters) {
  auto count = [](const std::string &text) {
    const std::string binary = lengthPrefixed(ptx(text));
    return parseCudaImages(binary, 1)->front().parameters;
  };
  EXPECT_EQ(count(".visible .entry kf_kernel() {}"), 0u);
  EXPECT_EQ(count(".entry kf_kernel { .reg .b32 %r; }"), 0u);
  EXPECT_EQ(count(".target sm_80\n.visible .entry kf_kernel (\n"
                  "  .param .u64 .ptr .global .align 16 a,\n"
                  "  .param .align 8 .b8 b[16]\n"
                  ")\n.maxntid 64\n{ .param .u64 c; }"),
            2u);
  // Others' parameters, and what is no code.
  EXPECT_EQ(count(".entry kf_kernel_2(.param .u64 a) {}\n"
                  "// .entry kf_kernel(.param .u64 a)\n"
                  "/* .entry kf_kernel(.param .u64 a)\n*/"
                  ".pragma \".entry kf_kernel(\";\n"
                  ".entry /**/ kf_kernel /*)*/ (.param .u64 a, // )\n"
                  ".param .u64 b) {}"),
            2u);
  for (const char *none :
       {"", ".entry", ".entry other(.param .u64 a) {}", "kf_kernel(.param)",
        "// .entry kf_kernel(", "/* .entry kf_kernel(", "\".entry kf_kernel(",
        // What could hide an entry, and more than one.
        ".file 1 \"x\\\"\" .entry kf_kernel(.param .u64 a) {}",
        "#if 0\n.entry kf_kernel() {}\n#endif\n.entry kf_kernel() {}",
        ".entry kf_kernel(.param .u64 a); .entry kf_kernel(.param .u64 a) {}"})
    EXPECT_EQ(count(none), std::nullopt) << none;
  EXPECT_EQ(count(".entry kf_kernel(.param .u64 a"), 1u); // does not end
}

} // namespace
