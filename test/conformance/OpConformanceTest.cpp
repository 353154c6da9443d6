//===- OpConformanceTest.cpp - Every op on every device against the reference
//===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles each function of test/conformance/ops for the reference device and
// for the device under test, runs both on the same pseudo-random inputs with
// one, a few and the most rows, and compares. Functions that a device has no
// code for are those of MissingKernels.h, with what the error must say. Then
// the same with an infinity, its opposite and a NaN in each input of floats:
// what they do not touch stays as it is, and what they do is the infinity or
// NaN that the reference gives. Products of rows that devices round to 8 bits
// are run with rows that 8 bits hold, too, where nothing is rounded, and norms
// and products with rows of very large and very small numbers. Programs of a
// file, whose kernels have
// schedules, are run in the same way; the reference takes them without these.
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Pipelines/Compiler.h"
#include "kf/Pipelines/Registration.h"
#include "kf/Target/Common/GpuSchedules.h"
#include "kf/Target/Targets.h"
#include "runtime/core/BlockFormat.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "runtime/engine/ProgramRunner.h"
#include "runtime/tuning/ResultComparison.h"
#include "test/conformance/MissingKernels.h"
#include "test/conformance/OpInputs.h"
#include "test/conformance/TestDevice.h"
#include "test/runtime/TestFiles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <random>
#include <set>

using namespace kf;
using namespace kf::test;

namespace {

const std::string opsFolder =
    test::testFile(KF_SOURCE_DIR "/test/conformance/ops");
/// The file of programs, whose schedules are NVIDIA's.
const std::string schedulesFile = "schedules.mlir";
/// The file of programs whose schedules are of Vulkan devices with cooperative
/// matrices.
const std::string coopFile = "coop_schedules.mlir";
/// The same whose subgroups divide K.
const std::string coopSharesFile = "coop_shares.mlir";
/// Bytes of workgroup memory that are enough for any of them, and for those of
/// the latter.
constexpr int64_t coopMemory = 48 * 1024, coopSharesMemory = 32 * 1024;
/// The file of programs whose schedules are for Vulkan devices.
const std::string roundsFile = "rounds.mlir";
/// Products of blocks whose code is as other devices' of other formats.
const std::string tilesFile = "block_tiles.mlir";
/// The file of weights in blocks of each format.
const std::string blocksFile = "blocks.mlir";
/// The file of products whose rows choose their weights.
const std::string expertsFile = "experts.mlir";
/// The file of products whose rows have elements of all sizes.
const std::string rangesFile = "ranges.mlir";

/// Says whether LLVM leaves out its strength reduction of loops, in what is
/// compiled from here on.
void leaveOutStrengthReduction(bool isLeftOut) {
  llvm::cl::Option *option =
      llvm::cl::getRegisteredOptions().lookup("disable-lsr");
  ASSERT_NE(option, nullptr);
  static_cast<llvm::cl::opt<bool> *>(option)->setValue(isLeftOut);
}

/// Parsed functions, or programs, of one file, one module each.
class OpFile {
public:
  explicit OpFile(const std::string &path)
      : context(makeRegistry(), mlir::MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
    whole = mlir::parseSourceFile<mlir::ModuleOp>(path, &context);
    EXPECT_TRUE(whole) << path;
  }

  /// The file of that name. The one that was asked for last is kept: reading
  /// one takes as long as a small case.
  static OpFile &of(const std::string &name) {
    static std::string lastName;
    static std::unique_ptr<OpFile> last;
    if (name != lastName) {
      last.reset();
      last = std::make_unique<OpFile>(opsFolder + "/" + name);
      lastName = name;
    }
    return *last;
  }

  std::vector<std::string> functions() {
    std::vector<std::string> names;
    for (auto function : whole->getOps<mlir::func::FuncOp>())
      names.push_back(function.getName().str());
    for (auto program : whole->getOps<mlir::kf::ProgramOp>())
      names.push_back(program.getSymName().str());
    return names;
  }

  /// Whether the function has a norm of rows, of a number that changes.
  bool hasNorm(const std::string &name) {
    auto function = whole->lookupSymbol<mlir::func::FuncOp>(name);
    return function &&
           function
               .walk([](mlir::Operation *op) {
                 return llvm::isa<mlir::kf::RmsNormOp, mlir::kf::LayerNormOp>(
                            op)
                            ? mlir::WalkResult::interrupt()
                            : mlir::WalkResult::advance();
               })
               .wasInterrupted();
  }

  CacheInputs cacheInputs(const std::string &name) {
    CacheInputs inputs;
    auto numberOf = [](mlir::Value value) {
      auto argument = llvm::cast<mlir::BlockArgument>(value);
      size_t number = 0;
      for (mlir::BlockArgument before :
           argument.getOwner()->getArguments().take_front(
               argument.getArgNumber()))
        number += llvm::isa<mlir::RankedTensorType>(before.getType());
      return number;
    };
    auto add = [&](auto op, auto number) {
      inputs.sequences.insert(number(op.getSequences()));
      inputs.positions.insert(number(op.getPositions()));
      inputs.pageTables.insert(number(op.getPageTable()));
      inputs.sequenceCount =
          llvm::cast<mlir::RankedTensorType>(op.getPageTable().getType())
              .getDimSize(0);
    };
    if (auto function = whole->lookupSymbol<mlir::func::FuncOp>(name)) {
      function.walk(
          [&](mlir::kf::CacheAttentionInterface op) { add(op, numberOf); });
      function.walk([&](mlir::kf::KVAppendOp op) { add(op, numberOf); });
      function.walk([&](mlir::kf::GatedDeltaOp op) {
        inputs.sequences.insert(numberOf(op.getSequences()));
        (inputs.slots.empty() ? inputs.positions : inputs.laterPositions)
            .insert(numberOf(op.getPositions()));
        inputs.slots.insert(numberOf(op.getStates()));
        inputs.sequenceCount =
            llvm::cast<mlir::RankedTensorType>(op.getStates().getType())
                .getDimSize(0);
      });
    }
    if (auto program = whole->lookupSymbol<mlir::kf::ProgramOp>(name))
      program.walk([&](mlir::kf::DispatchOp dispatch) {
        auto kernel =
            whole->lookupSymbol<mlir::kf::KernelOp>(dispatch.getKernel());
        kernel.walk([&](mlir::kf::CacheAttentionInterface op) {
          add(op, [&](mlir::Value value) {
            return numberOf(dispatch.getOperand(
                llvm::cast<mlir::BlockArgument>(value).getArgNumber()));
          });
        });
        kernel.walk([&](mlir::kf::ExpertMatmulOp op) {
          const unsigned operand =
              llvm::cast<mlir::BlockArgument>(op.getExperts()).getArgNumber();
          inputs.experts[numberOf(dispatch.getOperand(operand))] =
              op.countExperts();
        });
      });
    return inputs;
  }

  /// Whether rows of attention share keys on GPUs, in programs of up to
  /// `maxTokens` rows.
  bool sharesKeys(const std::string &name, int64_t maxTokens) {
    auto function = whole->lookupSymbol<mlir::func::FuncOp>(name);
    return function && function
                           .walk([&](mlir::kf::CacheAttentionInterface op) {
                             return mlir::kf::haveOwnKeys(op, maxTokens)
                                        ? mlir::WalkResult::advance()
                                        : mlir::WalkResult::interrupt();
                           })
                           .wasInterrupted();
  }

  /// Whether `target` is a GPU with clusters of workgroups.
  bool hasClusters(const std::string &target) {
    auto parsed = mlir::kf::parseTarget(target, &context);
    EXPECT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
    return parsed && parsed->getMachine().hasClusters();
  }

  /// Sums that a thread of `kernel` has, whose product goes by `mma` on
  /// subgroups of `threads`.
  static int64_t sumsOf(mlir::kf::KernelOp kernel,
                        mlir::kf::MmaScheduleAttr mma, int64_t threads) {
    int64_t sums = 1;
    for (int64_t size : mma.getWorkgroup())
      sums *= size;
    for (int64_t warps : mma.getWarps())
      threads *= warps;
    kernel.walk([&](mlir::kf::MatmulOp op) { sums *= op.getGlu() ? 2 : 1; });
    return sums / threads;
  }

  /// A part of the error of compiling the program of a file of cooperative
  /// matrices for `target`; empty where that has what its schedules need, and
  /// `memory` bytes for workgroups.
  std::string missingOf(const std::string &name, const std::string &target,
                        int64_t memory) {
    auto parsed = mlir::kf::parseTarget(target, &context);
    EXPECT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
    if (!parsed)
      return "no target";
    const mlir::kf::MachineDescription machine = parsed->getMachine();
    auto module = moduleOf(name);
    for (auto kernel : module->getOps<mlir::kf::KernelOp>()) {
      auto mma =
          llvm::dyn_cast<mlir::kf::MmaScheduleAttr>(kernel.getScheduleAttr());
      if (!mma)
        continue;
      if (!machine.has(mma.getUnit()))
        return "is of Vulkan devices whose subgroups multiply matrices";
      // Tiles are for subgroups of 32 threads: smaller ones have more sums
      // each.
      if (sumsOf(kernel, mma, machine.subgroupThreads) > 128)
        return "sums, and registers for";
    }
    return machine.memory < memory ? "bytes of workgroup memory" : "";
  }

  /// With `divided`, what the passes of that target make of the function, which
  /// may round rows, runs on `target`. Cases of one function, which come one
  /// after the other, share what they compile.
  llvm::Expected<std::shared_ptr<const Executable>>
  compile(const std::string &name, const std::string &target,
          const std::string &divided = "") {
    if (name != compiledName)
      compiled.clear();
    compiledName = name;
    auto &known = compiled[{target, divided}];
    if (!known) {
      auto executable = compileAnew(name, target, divided);
      if (!executable)
        return executable.takeError();
      known = std::make_shared<const Executable>(std::move(*executable));
    }
    return known;
  }

private:
  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    mlir::kf::registerDialects(registry);
    return registry;
  }

  /// A module of the function, or of the program and its kernels.
  mlir::OwningOpRef<mlir::ModuleOp> moduleOf(const std::string &name) {
    mlir::OwningOpRef<mlir::ModuleOp> module =
        mlir::ModuleOp::create(whole->getLoc());
    (*module)->setAttrs((*whole)->getAttrs());
    std::set<std::string> kept = {name};
    if (auto program = whole->lookupSymbol<mlir::kf::ProgramOp>(name))
      program.walk(
          [&](mlir::kf::DispatchOp op) { kept.insert(op.getKernel().str()); });
    for (mlir::Operation &op : *whole->getBody())
      if (kept.contains(mlir::SymbolTable::getSymbolName(&op).str()))
        module->getBody()->push_back(op.clone());
    return module;
  }

  llvm::Expected<Executable> compileAnew(const std::string &name,
                                         const std::string &target,
                                         const std::string &divided) {
    auto module = moduleOf(name);
    mlir::kf::CompileOptions options;
    using mlir::kf::Phase;
    if (module->lookupSymbol<mlir::kf::ProgramOp>(name)) {
      if (target == "reference")
        for (auto kernel : module->getOps<mlir::kf::KernelOp>())
          kernel.removeScheduleAttr();
      options.target = target;
      return mlir::kf::compile(*module, options, Phase::Program);
    }
    if (!divided.empty()) {
      options.target = divided;
      if (llvm::Error error = mlir::kf::runPhases(
              *module, options, Phase::Import, Phase::Program))
        return std::move(error);
    }
    options.target = target;
    return mlir::kf::compile(*module, options,
                             divided.empty() ? Phase::Import : Phase::Program);
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> whole;
  std::string compiledName;
  /// What that was compiled to, by target and by whose passes divided it.
  std::map<std::pair<std::string, std::string>,
           std::shared_ptr<const Executable>>
      compiled;
};

/// A program that a device has loaded, with its weights.
class LoadedCase {
public:
  LoadedCase(Device &device, const Executable &executable,
             const WeightSource &source)
      : device(device), weights(device, &source),
        program(device.load(executable)) {}

  /// Results of one run, whose caches are fresh.
  std::vector<HostTensor> run(const std::vector<HostTensor> &inputs) {
    EXPECT_TRUE(program.ok()) << program.message();
    if (!program.ok())
      return {};
    KVCache cache(device, cachePages, cachePages * kCachePage);
    auto runner = ProgramRunner::create(**program, device, weights, cache);
    EXPECT_TRUE(runner.ok()) << runner.message();
    if (!runner.ok())
      return {};
    auto results = (*runner)->run(inputs);
    EXPECT_TRUE(results.ok()) << results.message();
    return results.ok() ? results.take() : std::vector<HostTensor>();
  }

private:
  Device &device;
  WeightStore weights;
  Result<std::unique_ptr<LoadedProgram>> program;
};

void expectNear(const std::vector<HostTensor> &found,
                const std::vector<HostTensor> &expected,
                const ResultTolerance &tolerance) {
  auto difference = compareResults(found, expected, tolerance);
  ASSERT_TRUE(difference.ok()) << difference.message();
  ASSERT_TRUE(difference->agrees) << difference->complaint;
}

/// Makes elements of a tensor of rows of f32 large, each fourth; others stay as
/// they are, or become small. Rows have one of `magnitudes` each, in turn; all
/// elements of a row have one below 1.
void spread(HostTensor &x, const std::vector<float> &magnitudes) {
  ASSERT_EQ(x.type, DataType::F32);
  const int64_t columns = x.shape.back();
  for (int64_t i = 0; i < x.elementCount(); ++i) {
    const float most = magnitudes[i / columns % magnitudes.size()];
    x.data<float>()[i] *= i % 4 == 1 || most < 1 ? most
                          : i % 4 == 2           ? 1e-3f
                                                 : 1.0f;
  }
}

/// Row `row` of each tensor.
std::vector<HostTensor> rowOf(const std::vector<HostTensor> &tensors,
                              int64_t row) {
  std::vector<HostTensor> rows;
  for (const HostTensor &tensor : tensors) {
    const size_t bytes = tensor.bytes.size() / tensor.shape[0];
    std::vector<int64_t> shape = tensor.shape;
    shape[0] = 1;
    HostTensor part = HostTensor::zeros(tensor.type, shape).take();
    std::copy_n(tensor.bytes.begin() + row * bytes, bytes, part.bytes.begin());
    rows.push_back(std::move(part));
  }
  return rows;
}

/// What a function of the file of ranges is tried with: sizes of elements of
/// its rows, together in one tensor and apart.
std::vector<std::vector<float>> magnitudesFor(const std::string &function) {
  if (function.starts_with("gated_")) // they are squared
    return {{3e2f}, {3e4f}, {1.0f, 3e4f, 3e2f}};
  if (function.starts_with("normed_"))
    return {{7e4f}, {1e15f}, {1.0f, 1e15f, 7e4f}};
  if (function.starts_with("rows_experts_")) // some are rounded to f16
    return {{1e-2f}, {7e4f}, {1e6f}, {1e30f}, {1e-4f, 1e30f, 1e-2f, 7e4f}};
  return {{7e4f}, {1e6f}, {1e30f}, {1.0f, 1e30f, 7e4f, 1e6f}};
}

/// `device` as in TestDevice.h.
struct Case {
  std::string file, function, device;
};

void PrintTo(const Case &test, std::ostream *out) {
  *out << test.function << " of " << test.file << " on " << test.device;
}

/// Whether `device` is code for a CPU that is named, which this machine need
/// not have.
bool isNamedCpu(const std::string &device) {
  return device.starts_with("x86-64") || test::isEmulated(device);
}

/// Whether the function's name says a format of blocks.
bool namesBlocks(const std::string &function) {
  return std::ranges::any_of(kBlockFormats, [&](const BlockFormat &format) {
    return function.find("_" + std::string(nameOf(format.type))) !=
           std::string::npos;
  });
}

class OpConformance : public testing::TestWithParam<Case> {};

TEST_P(OpConformance, MatchesReference) {
  const Case &test = GetParam();
  KF_REQUIRE_DEVICE(test.device);
  std::unique_ptr<Device> device = test::openTestDevice(test.device);
  ASSERT_NE(device, nullptr);
  auto reference = createReferenceDevice();
  OpFile &file = OpFile::of(test.file);
  const std::string target = test::targetFor(*device, test.device);
  // It takes up to two thirds of the time to compile these. What users run has
  // it: `cpu` with the functions of blocks, AArch64 and each level of x86-64
  // with those of other files.
  leaveOutStrengthReduction(
      (test.file == rangesFile && !test::isGpu(test.device)) ||
      (isNamedCpu(test.device) &&
       (test.file == blocksFile || test.file == expertsFile)));
  auto expectedProgram =
      file.compile(test.function, "reference",
                   test::isGpu(test.device) ? target : std::string());
  ASSERT_TRUE(bool(expectedProgram))
      << llvm::toString(expectedProgram.takeError());
  auto program = file.compile(test.function, target);
  const std::string skip =
      test.file == schedulesFile && !file.hasClusters(target)
          ? "parts are a cluster of workgroups"
      : test.file == coopFile
          ? file.missingOf(test.function, target, coopMemory)
      : test.file == coopSharesFile
          ? file.missingOf(test.function, target, coopSharesMemory)
          : test::missingKernel(test.device, test.file, test.function);
  const bool isSkipped = !skip.empty();
  EXPECT_EQ(bool(program), !isSkipped);
  if (!program) {
    const std::string message = llvm::toString(program.takeError());
    ASSERT_TRUE(isSkipped) << message;
    EXPECT_NE(message.find(skip), std::string::npos) << message;
    GTEST_SKIP() << message;
  }
  const bool hasBlocks = namesBlocks(test.function);
  const bool isOfBlocks = test.file == blocksFile ||
                          (hasBlocks && (test.file == rangesFile ||
                                         test.file == expertsFile ||
                                         test.function.starts_with("mma_"))),
             streamsBlocks =
                 test.file == "block_streams.mlir" || test.file == tilesFile ||
                 ((test.file == schedulesFile || test.file == roundsFile) &&
                  hasBlocks && !isOfBlocks);
  ResultTolerance tolerance;
  tolerance.roundsRows =
      (isOfBlocks || streamsBlocks) && test::roundsRows(test.device);
  // Matrix units multiply f16: of 5 to 16 rows, cooperative matrices do, where
  // NVIDIA's own units multiply codes.
  const bool hasCoop = target.find("matrices = [f16") != std::string::npos;
  const bool areFew = (*program)->maxTokens > 4 && (*program)->maxTokens <= 16;
  tolerance.roundsBlocks =
      ((test.device == "cuda" || hasCoop) &&
       (isOfBlocks || test.function.starts_with("fragments_"))) ||
      (hasCoop && test.file == "block_streams.mlir" && areFew);
  // Both factors come from rows of 8 bits.
  if (test.file == expertsFile && isOfBlocks &&
      !test.function.starts_with("matmul_"))
    tolerance.scale = 4;
  // Rows that norms compute are rounded to f16: a few to the next number, where
  // a norm's last bit differs.
  if (streamsBlocks && (test.device == "cuda" || hasCoop) && areFew &&
      test.function.ends_with("_rows"))
    tolerance.scale = 20;
  // They multiply queries and weights of softmax that are rounded to 16 bits,
  // where many rows share keys.
  if (test.function.starts_with("flash_") ||
      (test.file == "attention.mlir" && test::multipliesIn16Bits(test.device) &&
       file.sharesKeys(test.function, (*program)->maxTokens)))
    for (const CacheSpec &cache : (*program)->caches) {
      if (cache.type == DataType::BF16)
        tolerance.scale = 500;
      else if (cache.type != DataType::F32)
        tolerance.scale = 100;
    }
  // Weights of softmax, and gradients of scores, are rounded to bf16.
  if (test.device == "cuda" && test.function.starts_with("units_"))
    tolerance.scale = 500;
  // Where the CPU has tiles, and where matrix units of GPUs multiply codes.
  const bool hasTiles =
      device->description().find("amx_bf16") != std::string::npos;
  const bool usesTiles =
      hasTiles && isOfBlocks && test.function.starts_with("many_");
  tolerance.splitsRows =
      test::isGpu(test.device) ? isOfBlocks || streamsBlocks : usesTiles;
  // Of f32, matrix units multiply what is rounded to bf16 and what that leaves.
  if (test.device == "cuda" && test.function.starts_with("wide_"))
    tolerance.splitsRows = true;
  // Products of blocks that are rounded to f16 make rows that are rounded to
  // bf16 for the next product: some to the next number.
  tolerance.roundsPairs = test::roundsToBF16(**program, *device) ||
                          (hasCoop && test.function == "mixed_gate");
  const CacheInputs cacheInputs = file.cacheInputs(test.function);
  // Divided as for a GPU, the reference's program joins weights as that does.
  auto undivided = file.compile(test.function, "reference");
  ASSERT_TRUE(bool(undivided)) << llvm::toString(undivided.takeError());
  RandomWeights source(**undivided);
  LoadedCase onDevice(*device, **program, source),
      onReference(*reference, **expectedProgram, source);
  std::mt19937 random(7);
  bool dynamic = false;
  for (const TensorSpec &input : (*program)->inputs)
    dynamic |= !input.shape.empty() && input.shape[0] < 0;
  if (test.file == rangesFile) {
    // Rows that are made of sums are rounded: some to the next number. Of 8
    // bits, which both factors of gated rows come from, few are left; and fewer
    // where the mean of weights is far from 0 and that of a row happens not to
    // be, as with these of q4_k. On GPUs both factors come from rows of 16
    // bits: the few large elements that make a row are 2^-11 / sqrt(3) off, a
    // product of two such sums 4e-4 of itself, and so are results, where the
    // largest is 2.5 times what they are in the mean.
    const bool isGated = test.function.starts_with("gated_");
    if (!test.function.starts_with("rows_"))
      tolerance.scale = test::isGpu(test.device) ? (isGated ? 40 : 20)
                        : test.function.starts_with("gated_q4_k") ? 10
                                                                  : 4;
    const auto magnitudesOfRuns = magnitudesFor(test.function);
    for (const std::vector<float> &magnitudes : magnitudesOfRuns)
      for (int64_t rows : {1, 4, 5, 16, 17, 64, 512}) {
        // The last ones have all magnitudes, which is enough of slow runs.
        if (rows > (*program)->maxTokens ||
            (rows == 512 && &magnitudes != &magnitudesOfRuns.back()))
          break;
        SCOPED_TRACE("rows = " + std::to_string(rows) + ", up to " +
                     std::to_string(magnitudes.back()));
        std::vector<HostTensor> inputs = makeInputs(
            **program, makeSizes(**program, rows), random, {}, cacheInputs);
        spread(inputs[0], magnitudes);
        auto found = onDevice.run(inputs);
        auto expected = onReference.run(inputs);
        for (int64_t row = 0; row < rows; ++row) {
          SCOPED_TRACE("row " + std::to_string(row));
          expectNear(rowOf(found, row), rowOf(expected, row), tolerance);
          if (testing::Test::HasFatalFailure())
            return;
        }
      }
    return;
  }
  std::vector<InputKind> kinds = {{}, {.special = true}};
  // Kernels leave out blocks that are hidden, where 0 times an infinity is a
  // NaN.
  if (test.device == "cuda" && test.function.starts_with("units_") &&
      test.function != "units_attention_all")
    kinds.pop_back();
  if (tolerance.roundsRows && test.function.starts_with("matmul_"))
    kinds.push_back({.fitsBytes = true});
  // Rows of experts that are rounded to f16, where that has fewer bits.
  if (test.file == expertsFile && test.function.starts_with("many_rows_"))
    kinds.push_back({.scale = 1e-2f});
  if (test.file == "rows.mlir" && dynamic && file.hasNorm(test.function))
    for (float scale : {1e30f, 1e25f, 7e4f, 1e-30f, 1e-40f, 0.0f})
      // What is subnormal is 0 to Vulkan devices that do not keep it.
      if (scale != 1e-40f || !device->target().starts_with("#kf.vulkan") ||
          device->target().find("denorm_preserve = true") != std::string::npos)
        kinds.push_back({.scale = scale});
  std::vector<int64_t> rowsOfRuns = {1, 3, 5, (*program)->maxTokens};
  // They end in the second row of subgroups, and the most in a further tile, or
  // in the third row.
  if (test.file == coopFile)
    rowsOfRuns.push_back(70);
  // Of a CPU's tiles of rows some have a share of the next panel beside them,
  // and the rest comes behind.
  if (test.function.find("_ahead") != std::string::npos)
    rowsOfRuns.push_back(100);
  if (!dynamic)
    rowsOfRuns = {1};
  for (const InputKind &kind : kinds) {
    // An emulator takes seconds for what takes others milliseconds.
    if (dynamic && test::isEmulated(test.device)) {
      rowsOfRuns = {3};
      if (!kind.special)
        rowsOfRuns.push_back((*program)->maxTokens);
    }
    for (int64_t rows : rowsOfRuns) {
      SCOPED_TRACE("rows = " + std::to_string(rows) + kind.text());
      const StepSizes sizes = makeSizes(**program, rows);
      std::vector<HostTensor> inputs =
          makeInputs(**program, sizes, random, kind, cacheInputs);
      ResultTolerance ofKind = tolerance;
      ofKind.roundsRows &= !kind.fitsBytes;
      expectNear(onDevice.run(inputs), onReference.run(inputs), ofKind);
      if (testing::Test::HasFatalFailure())
        return;
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(opsFolder))
    if (entry.path().extension() == ".mlir")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto &path : files)
    for (const std::string &function :
         OpFile::of(path.filename()).functions()) {
#ifdef KF_SANITIZERS
      // Numbers, of kernels that other files have as well.
      if (path.filename() == rangesFile && !function.ends_with("f16_4"))
        continue;
#endif
      if (path.filename() == schedulesFile || path.filename() == tilesFile) {
        list.push_back({path.filename(), function, "cuda"});
        continue;
      }
      if (path.filename() == coopFile || path.filename() == coopSharesFile ||
          path.filename() == roundsFile) {
        list.push_back({path.filename(), function, "vulkan"});
        continue;
      }
      for (const char *device : {"cpu", "cpu2", "vulkan", "cuda"})
        list.push_back({path.filename(), function, device});
      // What has code of its own for each width of vectors. How rows find their
      // experts is the same for all formats, and products are those of
      // blocks.mlir.
      const bool isOfEachWidth =
          path.filename() == "attention.mlir" ||
          path.filename() == blocksFile || path.filename() == "float8.mlir" ||
          path.filename() == "sample.mlir" ||
          (path.filename() == expertsFile &&
           (!namesBlocks(function) || function.ends_with("q4_k")));
      if (isOfEachWidth)
        for (const char *cpu :
             {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"})
          list.push_back({path.filename(), function, cpu});
      // Products of floats with 16 registers.
      if (path.filename() == "matmul.mlir")
        list.push_back({path.filename(), function, "x86-64-v3"});
      // Products of bytes by one instruction of NEON or another, or none.
      if (path.filename() == blocksFile)
        for (const char *cpu : {"x86-64-v3-f32", "cortex-a72", "neoverse-n2"})
          list.push_back({path.filename(), function, cpu});
      if (isOfEachWidth || path.filename() == "matmul.mlir" ||
          path.filename() == "rows.mlir")
        list.push_back({path.filename(), function, "cortex-a76"});
      // What depends on the types that a device has.
      if (path.filename() == "elementwise.mlir" ||
          path.filename() == "matmul.mlir" || path.filename() == blocksFile ||
          path.filename() == "float8.mlir")
        list.push_back({path.filename(), function, "vulkan_any"});
    }
  return list;
}

INSTANTIATE_TEST_SUITE_P(All, OpConformance, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case> &info) {
                           std::string device = info.param.device;
                           std::ranges::replace(device, '-', '_');
                           return info.param.file.substr(
                                      0, info.param.file.find('.')) +
                                  "_" + info.param.function + "_" + device;
                         });

} // namespace
