//===- ExecutableTest.cpp - Checks and the file form of executables -------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/TestExecutable.h"
#include "test/runtime/TestFiles.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <functional>
#include <random>

using namespace kf;

namespace {

TEST(Executable, RoundTrips) {
  Executable executable = sampleExecutable();
  ASSERT_EQ(executable.verify().message(), "");
  std::string bytes = executable.serialize();
  Result<Executable> back = Executable::deserialize(bytes);
  ASSERT_TRUE(back.ok()) << back.message();
  EXPECT_EQ(back->serialize(), bytes);
  EXPECT_EQ(back->target, executable.target);
  EXPECT_EQ(back->features, executable.features);
  EXPECT_EQ(back->model, executable.model);
  EXPECT_EQ(back->programName, executable.programName);
  EXPECT_EQ(back->maxTokens, executable.maxTokens);
  EXPECT_EQ(back->arenaBytes, executable.arenaBytes);
  EXPECT_EQ(back->weights, executable.weights);
  EXPECT_EQ(back->caches, executable.caches);
  EXPECT_EQ(back->inputs, executable.inputs);
  EXPECT_EQ(back->outputs, executable.outputs);
  EXPECT_EQ(back->binary, executable.binary);
  ASSERT_EQ(back->kernels.size(), 2u);
  EXPECT_EQ(back->kernels[1].scratchBytes, 4096u);
  EXPECT_EQ(back->kernels[1].workgroupSize[0], 64u);
  EXPECT_FALSE(back->kernels[0].work);
  EXPECT_EQ(back->kernels[1].work, executable.kernels[1].work);
  ASSERT_EQ(back->dispatches.size(), 2u);
  EXPECT_EQ(back->dispatches[1].bindings[3].offset, 2u);
  const BindingAccess read = {false, 0}, write = {true, 64};
  EXPECT_EQ(back->dispatches[0].accesses,
            (std::vector<BindingAccess>{read, read, write}));
  EXPECT_TRUE(back->dispatches[1].accesses.empty());
  EXPECT_EQ(back->dispatches[1].grid[0].scalar, 0);
  EXPECT_EQ(back->dispatches[1].grid[0].value, 16);
  EXPECT_EQ(back->dispatches[0].grid[0].scalar, -1);
}

TEST(Executable, RoundTripsWhatKernelsForCudaSay) {
  Executable executable = sampleExecutable();
  executable.target = "cuda";
  executable.kernels[1].dynamicBytes = 4000;
  executable.kernels[1].waits = true;
  Result<Executable> back = Executable::deserialize(executable.serialize());
  ASSERT_TRUE(back.ok()) << back.message();
  EXPECT_EQ(back->kernels[0].dynamicBytes, 0u);
  EXPECT_FALSE(back->kernels[0].waits);
  EXPECT_EQ(back->kernels[1].dynamicBytes, 4000u);
  EXPECT_TRUE(back->kernels[1].waits);
}

TEST(Executable, RoundTripsWhatKernelsForVulkanSay) {
  Executable executable = sampleExecutable();
  executable.target = "vulkan";
  executable.kernels[1].subgroupThreads = 32;
  Result<Executable> back = Executable::deserialize(executable.serialize());
  ASSERT_TRUE(back.ok()) << back.message();
  EXPECT_EQ(back->kernels[0].subgroupThreads, 0u);
  EXPECT_EQ(back->kernels[1].subgroupThreads, 32u);
}

TEST(Executable, EveryTruncationIsAnError) {
  std::string bytes = sampleExecutable().serialize();
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(
        Executable::deserialize(std::string_view(bytes).substr(0, length)).ok())
        << length;
  EXPECT_FALSE(Executable::deserialize(bytes + '\0').ok());
}

TEST(Executable, EveryFlippedBitIsAnError) {
  std::string bytes = sampleExecutable().serialize();
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] ^= 1 << bit;
      EXPECT_FALSE(Executable::deserialize(bytes).ok()) << i << "." << bit;
      bytes[i] ^= 1 << bit;
    }
}

std::string withChecksum(std::string bytes) {
  const uint32_t sum =
      crc32_z(0, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size());
  for (int i = 0; i < 4; ++i)
    bytes.push_back(static_cast<char>(sum >> (8 * i)));
  return bytes;
}

/// Mutations of a file that is refused for its version find little.
TEST(Executable, TheFuzzersFileIsOfThisVersion) {
  std::ifstream file(
      test::testFile(KF_SOURCE_DIR "/test/fuzz/corpus/executable/file"),
      std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(Executable::deserialize(withChecksum(bytes)).message(), "");
}

/// A checksum protects from accidents only; whoever writes one gets no crash
/// either.
TEST(Executable, DamageWithARightChecksumNeverCrashes) {
  const std::string good = sampleExecutable().serialize();
  std::mt19937 random(1);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good.substr(0, good.size() - 4);
    for (int i = 0, n = 1 + random() % 3; i < n; ++i)
      bytes[random() % bytes.size()] = random() % 2
                                           ? "0123456789{}[]\",-"[random() % 17]
                                           : static_cast<char>(random());
    Result<Executable> result =
        Executable::deserialize(withChecksum(std::move(bytes)));
    if (!result.ok()) {
      EXPECT_NE(result.message(), "");
      EXPECT_EQ(result.message().find('\n'), std::string::npos)
          << result.message();
      continue;
    }
    ++accepted; // in a name or the binary
    EXPECT_TRUE(result->verify().ok());
  }
  EXPECT_GT(accepted, 0);
}

TEST(Executable, OtherVersionsAreNamed) {
  std::string bytes = sampleExecutable().serialize();
  bytes[7] = 98;
  EXPECT_EQ(Executable::deserialize(bytes).message(),
            "the executable's file has version 98; this is version 10, compile "
            "it again");
  bytes[7] = Executable::kFileVersion;
  bytes[8] = 99;
  EXPECT_EQ(Executable::deserialize(bytes).message(),
            "the executable was made for ABI version 99; this is version " +
                std::to_string(KF_ABI_VERSION) + ", compile it again");
  EXPECT_EQ(Executable::deserialize("not one at all").message(),
            "this is no KernelForge executable");
}

struct BadCase {
  const char *message;
  std::function<void(Executable &)> damage;
};

TEST(Executable, VerifyNamesWhatIsWrong) {
  const BadCase cases[] = {
      {"an executable without a target",
       [](Executable &e) { e.target.clear(); }},
      {"a CPU feature is no word of up to 64 letters",
       [](Executable &e) { e.features[0] = "avx\n2"; }},
      {"the model's key is no word of up to 64 letters",
       [](Executable &e) { e.model = "a b"; }},
      {"an executable without a program name",
       [](Executable &e) { e.programName.clear(); }},
      {"maximum number of tokens 0 is not between 1 and 2^31",
       [](Executable &e) { e.maxTokens = 0; }},
      {"an arena of 18446744073709551615 bytes is larger than any machine's "
       "memory",
       [](Executable &e) { e.arenaBytes = ~uint64_t(0); }},
      {"an executable with dispatches but no kernel code",
       [](Executable &e) { e.binary.clear(); }},
      {"kernel 0: its name is empty",
       [](Executable &e) { e.kernels[0].name.clear(); }},
      {"kernel 1: its workgroup has a dimension of 0 threads",
       [](Executable &e) { e.kernels[1].workgroupSize[2] = 0; }},
      {"kernel 1: it asks for 1099511627776 bytes of scratch; at most "
       "4294967296 are possible",
       [](Executable &e) { e.kernels[1].scratchBytes = uint64_t(1) << 40; }},
      {"kernel 1: 4097 bytes of its scratch are a launch's, which is of 4096",
       [](Executable &e) {
         e.target = "cuda";
         e.kernels[1].dynamicBytes = 4097;
       }},
      {"kernel 1: its scratch is a launch's, or it waits for others, which "
       "kernels for cuda alone do",
       [](Executable &e) { e.kernels[1].dynamicBytes = 1; }},
      {"kernel 0: its scratch is a launch's, or it waits for others, which "
       "kernels for cuda alone do",
       [](Executable &e) { e.kernels[0].waits = true; }},
      {"kernel 0: it is for subgroups of 32 threads, which vulkan alone has",
       [](Executable &e) { e.kernels[0].subgroupThreads = 32; }},
      {"dispatch 1: the work of kernel 'matmul' depends on operand 4, of which "
       "it has 4",
       [](Executable &e) { e.kernels[1].work->keys->sequences = 4; }},
      {"weight: a weight without checkpoint tensors",
       [](Executable &e) { e.weights[0].names.clear(); }},
      {"weight 'norm': a weight has dimension 0; 1 or more is expected",
       [](Executable &e) { e.weights[0].shape = {0}; }},
      {"weight 'q': a weight's first dimension 1 does not fit its 2 checkpoint "
       "tensors",
       [](Executable &e) { e.weights[1].shape[0] = 1; }},
      {"weight 'q': a panel has 0 rows; 1 to 4096 are possible",
       [](Executable &e) { e.weights[1].layout.panel = 0; }},
      {"weight 'q': a panel of 24 rows is no multiple of twice the interleave "
       "16",
       [](Executable &e) { e.weights[1].layout.panel = 24; }},
      {"weight 'q': only bf16 elements can be interleaved, not f32",
       [](Executable &e) { e.weights[1].type = DataType::F32; }},
      {"weight 'q': only bf16 elements can be interleaved, not f16",
       [](Executable &e) { e.weights[1].type = DataType::F16; }},
      {"weight 'norm': a weight without panels has a panel or an "
       "interleave",
       [](Executable &e) { e.weights[0].layout.panel = 8; }},
      {"weight 'q': a weight without panels has a panel or an interleave",
       [](Executable &e) {
         e.weights[1].layout.kind = WeightLayout::Kind::Fragments;
       }},
      {"weight 'q': no fragments of i32",
       [](Executable &e) {
         e.weights[1].layout = {WeightLayout::Kind::Fragments};
         e.weights[1].type = DataType::I32;
       }},
      {"weight 'q': rows of q8_0 come in blocks of 32 elements, but have 40",
       [](Executable &e) {
         e.weights[1].layout = {WeightLayout::Kind::Fragments};
         e.weights[1].type = DataType::Q8_0;
         e.weights[1].shape.back() = 40;
       }},
      {"weight 'norm': fragments need a weight of rank 2, of rank 3 with two "
       "groups, or of rank 4 with one or two",
       [](Executable &e) {
         e.weights[0].layout = {WeightLayout::Kind::Fragments};
       }},
      {"weight 'q': its fragments are too large",
       [](Executable &e) {
         e.weights[1].layout = {WeightLayout::Kind::Fragments};
         e.weights[1].shape = {int64_t(1) << 40, int64_t(1) << 40};
       }},
      {"weight 'q': its fragments are too large", // of experts
       [](Executable &e) {
         e.weights[1].layout = {WeightLayout::Kind::Fragments};
         e.weights[1].shape = {2, int64_t(1) << 40, 1 << 12, 1 << 12};
       }},
      {"weight 'q': a shape has more elements than 63 bits can count",
       [](Executable &e) {
         e.weights[1].shape = {int64_t(1) << 40, int64_t(1) << 40};
       }},
      {"cache 0: a cache has a dimension below 1",
       [](Executable &e) { e.caches[0].headDim = 0; }},
      {"cache 0: a cache has a dimension below 1",
       [](Executable &e) { e.caches[0].page = 0; }},
      {"cache 0: a cache with pages of 24 positions, which is no multiple of "
       "the key block 16",
       [](Executable &e) { e.caches[0].page = 24; }},
      {"cache 0: a cache of q4_0; f32, f16, bf16 and q8_0 are possible",
       [](Executable &e) { e.caches[0].type = DataType::Q4_0; }},
      {"cache 0: a cache of q8_0 with heads of 48, which is no multiple of 32; "
       "f32, f16 and bf16 are possible",
       [](Executable &e) {
         e.caches[0].type = DataType::Q8_0;
         e.caches[0].headDim = 48;
       }},
      {"input 0: an extent of -2 is no size of the program",
       [](Executable &e) { e.inputs[0].shape = {-2}; }},
      {"input 0: an extent of -3 is no size of the program",
       [](Executable &e) { e.inputs[0].shape = {-3}; }},
      {"size 'wanted' is from 5 to 4, which is not within 0 and 2^31",
       [](Executable &e) { e.namedSizes = {{"wanted", 5, 4}}; }},
      {"a size's name is no word of up to 64 letters",
       [](Executable &e) { e.namedSizes = {{"two\nlines", 0, 4}}; }},
      {"the program has 7 named sizes; at most 6 are possible",
       [](Executable &e) { e.namedSizes.resize(7); }},
      {"dispatch 0: there is no kernel 7 (the executable has 2)",
       [](Executable &e) { e.dispatches[0].kernel = 7; }},
      {"dispatch 0: binding 0: there is no input 1 (the program has 1)",
       [](Executable &e) { e.dispatches[0].bindings[0].index = 1; }},
      {"dispatch 0: binding 0: the binding of input 0 has an offset",
       [](Executable &e) { e.dispatches[0].bindings[0].offset = 64; }},
      {"dispatch 0: binding 0: unknown binding kind 9",
       [](Executable &e) { e.dispatches[0].bindings[0].kind = 9; }},
      {"dispatch 0: binding 2: arena offset 100 is not a multiple of 64",
       [](Executable &e) { e.dispatches[0].bindings[2].offset = 100; }},
      {"dispatch 0: binding 2: arena offset 65536 is outside the arena of "
       "65536 bytes",
       [](Executable &e) { e.dispatches[0].bindings[2].offset = 65536; }},
      {"dispatch 1: binding 3: there is no layer 3 in cache 0 of 3",
       [](Executable &e) { e.dispatches[1].bindings[3].offset = 3; }},
      {"dispatch 0: 2 accesses for 3 bindings",
       [](Executable &e) { e.dispatches[0].accesses.pop_back(); }},
      {"dispatch 0: binding 2 has 65409 bytes of the arena, where 65408 are",
       [](Executable &e) { e.dispatches[0].accesses[2].bytes = 65409; }},
      {"dispatch 0: binding 0 is written, which weights and inputs are not",
       [](Executable &e) { e.dispatches[0].accesses[0].writes = true; }},
      {"dispatch 0: binding 1 is written, which weights and inputs are not",
       [](Executable &e) { e.dispatches[0].accesses[1].writes = true; }},
      {"dispatch 0: binding 1 has 1 bytes of the arena, where 0 are",
       [](Executable &e) { e.dispatches[0].accesses[1].bytes = 1; }},
      {"dispatch 1: a grid dimension divides scalar 1, which is no size of "
       "the program",
       [](Executable &e) { e.dispatches[1].grid[0].scalar = 1; }},
      {"dispatch 1: a grid dimension divides scalar 8, which is no size of "
       "the program",
       [](Executable &e) { e.dispatches[1].grid[0].scalar = 8; }},
      {"dispatch 1: a grid dimension has value 0; 1 or more is expected",
       [](Executable &e) { e.dispatches[1].grid[2].value = 0; }},
      {"dispatch 1: a grid has more workgroups than 63 bits can count",
       [](Executable &e) {
         e.dispatches[1].grid[1].value = INT64_MAX;
         e.dispatches[1].grid[2].value = 2;
       }},
      {"dispatch 2: 2 buffers for kernel 'norm', which took 3 before",
       [](Executable &e) {
         e.dispatches.push_back(e.dispatches[0]);
         e.dispatches[2].bindings.pop_back();
         e.dispatches[2].accesses.pop_back();
       }},
  };
  for (const BadCase &bad : cases) {
    Executable executable = sampleExecutable();
    bad.damage(executable);
    EXPECT_EQ(executable.verify().message(), bad.message);
    EXPECT_EQ(Executable::deserialize(executable.serialize()).message(),
              bad.message);
  }
}

/// sampleExecutable() for three ranks, with collectives behind its dispatches.
Executable sampleOfRanks() {
  Executable executable = sampleExecutable();
  executable.ranks = 3;
  executable.inputs.push_back({DataType::BF16, {-1, 4, 5}});
  executable.outputs.push_back({DataType::F32, {-1, 16}});
  DispatchSpec reduce;
  reduce.collective = {CollectiveSpec::Kind::AllReduce, DataType::BF16, -1, 20,
                       20};
  reduce.bindings = {{KF_BINDING_INPUT, 1, 0}, {KF_BINDING_ARENA, 0, 1024}};
  reduce.accesses = {{false, 0}, {true, 320}};
  DispatchSpec gather;
  gather.collective = {CollectiveSpec::Kind::AllGather, DataType::F32, -1, 6,
                       16};
  gather.bindings = {{KF_BINDING_ARENA, 0, 2048}, {KF_BINDING_OUTPUT, 1, 0}};
  executable.dispatches.push_back(reduce);
  executable.dispatches.push_back(gather);
  return executable;
}

TEST(Executable, Collectives) {
  const Executable executable = sampleOfRanks();
  ASSERT_EQ(executable.verify().message(), "");
  Result<Executable> back = Executable::deserialize(executable.serialize());
  ASSERT_TRUE(back.ok()) << back.message();
  EXPECT_EQ(back->ranks, 3);
  ASSERT_EQ(back->dispatches.size(), 4u);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(back->dispatches[i].collective,
              executable.dispatches[i].collective);
  EXPECT_EQ(back->kernelOf(back->dispatches[1]), &back->kernels[1]);
  EXPECT_EQ(back->kernelOf(back->dispatches[2]), nullptr);
  EXPECT_EQ(back->nameOf(back->dispatches[1]), "matmul");
  EXPECT_EQ(back->nameOf(back->dispatches[2]), "all_reduce");
  EXPECT_EQ(back->nameOf(back->dispatches[3]), "all_gather");
}

/// A stage: what it receives, it sends.
Executable sampleOfStages() {
  Executable executable = sampleExecutable();
  executable.ranks = 3;
  DispatchSpec receive, send;
  receive.collective = {CollectiveSpec::Kind::Receive, DataType::F32, -1, 8, 8};
  receive.bindings = {{KF_BINDING_ARENA, 0, 1024}};
  receive.accesses = {{true, 256}};
  send.collective = {CollectiveSpec::Kind::Send, DataType::F32, -1, 8, 8};
  send.bindings = receive.bindings;
  send.accesses = {{false, 256}};
  executable.dispatches.push_back(receive);
  executable.dispatches.push_back(send);
  return executable;
}

TEST(Executable, StagesHaveOneBufferOfEachMessage) {
  const Executable executable = sampleOfStages();
  ASSERT_EQ(executable.verify().message(), "");
  Result<Executable> back = Executable::deserialize(executable.serialize());
  ASSERT_TRUE(back.ok()) << back.message();
  for (size_t i = 2; i < 4; ++i)
    EXPECT_EQ(back->dispatches[i].collective,
              executable.dispatches[i].collective);
  EXPECT_EQ(back->nameOf(back->dispatches[2]), "receive");
  EXPECT_EQ(back->nameOf(back->dispatches[3]), "send");
  const BadCase cases[] = {
      {"dispatch 2: a collective has 2 bindings instead of 1",
       [](Executable &e) {
         e.dispatches[2].bindings.push_back({KF_BINDING_ARENA, 0, 0});
       }},
      {"dispatch 3: a collective has 0 bindings instead of 1",
       [](Executable &e) { e.dispatches[3].bindings.clear(); }},
      {"dispatch 2: a collective's result is neither an output nor in the "
       "arena",
       [](Executable &e) {
         e.dispatches[2].bindings[0] = {KF_BINDING_INPUT, 0, 0};
       }},
      {"dispatch 3: a collective's operand is neither an input nor in the "
       "arena",
       [](Executable &e) {
         e.dispatches[3].bindings[0] = {KF_BINDING_OUTPUT, 0, 0};
       }},
      {"dispatch 2: a collective does not write its result",
       [](Executable &e) { e.dispatches[2].accesses[0].writes = false; }},
      {"dispatch 3: 3 ranks with 8 columns each cannot make 24",
       [](Executable &e) { e.dispatches[3].collective->resultColumns = 24; }},
      {"dispatch 3: 2 accesses for 1 bindings",
       [](Executable &e) { e.dispatches[3].accesses.push_back({}); }},
  };
  for (const BadCase &bad : cases) {
    Executable damaged = sampleOfStages();
    bad.damage(damaged);
    EXPECT_EQ(damaged.verify().message(), bad.message);
  }
}

TEST(Executable, CollectivesAloneNeedNoCode) {
  Executable executable = sampleOfRanks();
  executable.kernels.clear();
  executable.binary.clear();
  executable.dispatches.erase(executable.dispatches.begin(),
                              executable.dispatches.begin() + 2);
  EXPECT_EQ(executable.verify().message(), "");
}

TEST(Executable, VerifyNamesWhatIsWrongWithCollectives) {
  const BadCase cases[] = {
      {"a program for 0 ranks; 1 to 1024 are possible",
       [](Executable &e) { e.ranks = 0; }},
      {"a program for 1025 ranks; 1 to 1024 are possible",
       [](Executable &e) { e.ranks = 1025; }},
      {"dispatch 2: a collective in a program of one rank",
       [](Executable &e) { e.ranks = 1; }},
      {"dispatch 2: a collective of i32; f32, f16 and bf16 are possible",
       [](Executable &e) { e.dispatches[2].collective->type = DataType::I32; }},
      {"dispatch 2: a collective of -3 rows and 20 columns is not possible",
       [](Executable &e) { e.dispatches[2].collective->rows = -3; }},
      {"dispatch 2: a collective of 0 rows and 20 columns is not possible",
       [](Executable &e) { e.dispatches[2].collective->rows = 0; }},
      {"dispatch 3: a collective of -1 rows and 0 columns is not possible",
       [](Executable &e) { e.dispatches[3].collective->columns = 0; }},
      {"dispatch 2: 3 ranks with 20 columns each cannot make 21",
       [](Executable &e) { e.dispatches[2].collective->resultColumns = 21; }},
      {"dispatch 3: 3 ranks with 6 columns each cannot make 12",
       [](Executable &e) { e.dispatches[3].collective->resultColumns = 12; }},
      {"dispatch 3: 3 ranks with 6 columns each cannot make 19",
       [](Executable &e) { e.dispatches[3].collective->resultColumns = 19; }},
      {"dispatch 2: a collective has 3 bindings instead of 2",
       [](Executable &e) {
         e.dispatches[2].bindings.push_back({KF_BINDING_ARENA, 0, 0});
       }},
      {"dispatch 2: a collective's operand is neither an input nor in the "
       "arena",
       [](Executable &e) {
         e.dispatches[2].bindings[0] = {KF_BINDING_WEIGHT, 0, 0};
       }},
      {"dispatch 3: a collective's result is neither an output nor in the "
       "arena",
       [](Executable &e) {
         e.dispatches[3].bindings[1] = {KF_BINDING_INPUT, 0, 0};
       }},
      {"dispatch 2: binding 0: there is no input 2 (the program has 2)",
       [](Executable &e) { e.dispatches[2].bindings[0].index = 2; }},
      {"dispatch 2: binding 0: the program's tensor has another type or shape",
       [](Executable &e) { e.inputs[1].shape = {-1, 21}; }},
      // Sizes of the step, whose extents make as many columns.
      {"dispatch 2: binding 0: the program's tensor has another type or shape",
       [](Executable &e) {
         e.namedSizes = {{"a", 1, 1}, {"b", 1, 1}};
         const int64_t a = extentOfSlot(KF_SCALAR_NAMED_SIZES),
                       b = extentOfSlot(KF_SCALAR_NAMED_SIZES + 1);
         e.inputs[1].shape = {-1, a, b};
         e.dispatches[2].collective->columns = a * b;
         e.dispatches[2].collective->resultColumns = a * b;
       }},
      {"dispatch 2: binding 0: the program's tensor has another type or shape",
       [](Executable &e) { e.inputs[1].type = DataType::F16; }},
      {"dispatch 3: binding 1: the program's tensor has another type or shape",
       [](Executable &e) { e.outputs[1].shape = {8, 16}; }},
      {"dispatch 2: binding 1: it needs 320 bytes of the arena, where 256 are",
       [](Executable &e) {
         e.dispatches[2].bindings[1].offset = e.arenaBytes - 256;
       }},
      {"dispatch 2: a collective's operand and result overlap in the arena",
       [](Executable &e) {
         e.dispatches[2].bindings[0] = {KF_BINDING_ARENA, 0, 256};
         e.dispatches[2].bindings[1] = {KF_BINDING_ARENA, 0, 0};
       }},
      {"dispatch 2: a collective does not write its result",
       [](Executable &e) { e.dispatches[2].accesses[1].writes = false; }},
      {"dispatch 2: a collective has more than one workgroup",
       [](Executable &e) { e.dispatches[2].grid[1].value = 2; }},
      {"dispatch 2: 1 accesses for 2 bindings",
       [](Executable &e) { e.dispatches[2].accesses.pop_back(); }},
  };
  for (const BadCase &bad : cases) {
    Executable executable = sampleOfRanks();
    bad.damage(executable);
    EXPECT_EQ(executable.verify().message(), bad.message);
    EXPECT_EQ(Executable::deserialize(executable.serialize()).message(),
              bad.message);
  }
}

TEST(Executable, NamedSizes) {
  Executable executable = sampleExecutable();
  executable.minTokens = 2;
  executable.maxTokens = 9;
  executable.namedSizes = {{"wanted", 0, 4}, {"other", 1, 6}};
  const int64_t wanted = extentOfSlot(KF_SCALAR_NAMED_SIZES);
  executable.inputs[0].shape = {wanted, 8};
  executable.dispatches[0].grid[0] = {KF_SCALAR_NAMED_SIZES + 1, 2};
  ASSERT_TRUE(executable.verify().ok()) << executable.verify().message();
  auto copy = Executable::deserialize(executable.serialize());
  ASSERT_TRUE(copy.ok()) << copy.message();
  EXPECT_EQ(copy->namedSizes, executable.namedSizes);
  EXPECT_EQ(copy->inputs, executable.inputs);
  EXPECT_EQ(resolveShape(copy->inputs[0].shape, copy->largestSizes()),
            (std::vector<int64_t>{4, 8}));

  auto errorOf = [&](std::vector<int64_t> sizes) {
    sizes.resize(KF_SCALAR_COUNT);
    return copy->limits().check(sizes).message();
  };
  EXPECT_EQ(errorOf({2, 64, 0, 6}), "");
  EXPECT_EQ(errorOf({1, 64, 0, 6}),
            "a step of 1 tokens; the program takes 2 to 9");
  EXPECT_EQ(errorOf({2, 64, 5, 6}),
            "a step with 'wanted' = 5; the program takes 0 to 4");
  EXPECT_EQ(errorOf({2, 64, 4, 0}),
            "a step with 'other' = 0; the program takes 1 to 6");
}

TEST(Executable, Sizes) {
  Executable executable = sampleExecutable();
  EXPECT_EQ(*executable.weights[0].packedBytes(), 64 * 4);
  // 40 rows in 2 panels of 32, 64 columns, 2 bytes.
  EXPECT_EQ(*executable.weights[1].packedBytes(), 2 * 32 * 64 * 2);
  EXPECT_EQ(*executable.caches[0].bytes(5), 3 * 5 * 2 * 2 * 32 * 8 * 4);
  EXPECT_FALSE(executable.caches[0].bytes(0).ok());
  EXPECT_FALSE(executable.caches[0].bytes(INT64_MAX / 16 * 16).ok());
  CacheSpec blocks{DataType::Q8_0, 3, 2, 64, 8, 32};
  EXPECT_EQ(*blocks.bytes(5), 3 * 5 * 2 * 2 * 32 * (64 + 2 * 2));
}

TEST(Executable, SizesOfStates) {
  CacheSpec states = CacheSpec::ofStates(3, 2, 100, 64);
  EXPECT_EQ(states.slots(64), 1);
  EXPECT_EQ(states.slots(65), 2);
  // Layers of whole 256 bytes.
  EXPECT_EQ(*states.bytes(64), 3 * 1024);
  EXPECT_EQ(*states.bytes(65), 3 * 1792);
  states.slotPages = INT32_MAX;
  EXPECT_EQ(states.slots(INT64_MAX), (int64_t(1) << 32) + 3);
  EXPECT_EQ(*states.bytes(64), 3 * 1024);
  for (const int64_t most : {int64_t(INT32_MAX) + 1, INT64_MAX, int64_t(-1)}) {
    states.slotPages = most;
    EXPECT_EQ(
        states.bytes(64).message(),
        "a cache of states has elements of f32, key blocks of 1, and 1 to "
        "2147483647 pages for a slot, not " +
            std::to_string(most));
  }
  // A whole program of such a cache is refused as well.
  Executable executable = sampleExecutable();
  states.slotPages = INT64_MAX;
  executable.caches[0] = states;
  const Status status = executable.verify();
  EXPECT_NE(status.message().find("pages for a slot"), std::string::npos)
      << status.message();
}

} // namespace
