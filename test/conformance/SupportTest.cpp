//===- SupportTest.cpp - What each device takes ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// docs/Dialect/Support.md has a table of all ops in test/conformance/ops with
// the element types that each target has code for. This test compiles the
// functions, down to what the device runs, makes the table of what that gives
// and compares; KF_UPDATE_SUPPORT=1 writes it. What does not compile are the
// functions of MissingKernels.h, and no others. Of the reference and of CPUs
// the suite of conformance finds that on every machine, so that here they
// compile only what it has for GPUs alone.
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Pipelines/Compiler.h"
#include "kf/Pipelines/Registration.h"
#include "runtime/program/Executable.h"
#include "test/conformance/MissingKernels.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

using namespace mlir;

namespace {

const std::string page = KF_SOURCE_DIR "/docs/Dialect/Support.md";
constexpr StringLiteral begin = "<!-- table: made by SupportTest -->\n";
constexpr StringLiteral end = "<!-- end of table -->\n";

struct Column {
  const char *device, *target;
  bool isGpu;
};
constexpr Column columns[] = {
    {"reference", "reference", false},
    {"cpu", "cpu:x86-64-v4", false},
    {"vulkan",
     "#kf.vulkan_target<threads = 256, memory = 16384, types = [f16, "
     "i8, i16, i64]>",
     true},
    {"cuda", "cuda:sm_80", true}};

/// Element types of an op's first tensor, by op and column.
using Types = std::map<std::string, std::array<std::set<std::string>, 4>>;

/// What a cell calls the elements of `type`: blocks of any format "blocks".
std::string elementOf(Type type) {
  if (auto cache = dyn_cast<mlir::kf::KVCacheType>(type))
    return elementOf(cache.getType());
  Type element = getElementTypeOrSelf(type);
  if (isa<mlir::kf::QuantType>(element))
    return "blocks";
  std::string name;
  llvm::raw_string_ostream(name) << element;
  return name;
}

/// Ops whose result says more than their operands do.
bool isListed(Operation &op) {
  return !isa<func::ReturnOp>(op) && op.getNumOperands() > 0 &&
         !op.getOperand(0).getType().isIndex() &&
         op.getName().getStringRef() != "tensor.dim";
}

/// The first operands of the ops that function `name` has, by the ops' names.
std::vector<std::pair<std::string, std::string>> opsOf(ModuleOp file,
                                                       StringRef name) {
  std::vector<std::pair<std::string, std::string>> ops;
  auto function = file.lookupSymbol<func::FuncOp>(name);
  for (Operation &op : function.getBody().front())
    if (isListed(op))
      ops.emplace_back(op.getName().getStringRef().str(),
                       elementOf(op.getOperand(0).getType()));
  return ops;
}

/// Why function `name` does not become an Executable for `target`; empty if it
/// does.
std::string errorOf(ModuleOp file, StringRef name, const char *target) {
  OwningOpRef<ModuleOp> module = file.clone();
  for (auto function :
       llvm::make_early_inc_range(module->getOps<func::FuncOp>()))
    if (function.getName() != name)
      function.erase();
  mlir::kf::CompileOptions options;
  options.target = target;
  auto executable = mlir::kf::compile(*module, options);
  return executable ? "" : llvm::toString(executable.takeError());
}

void addFunction(ModuleOp file, const std::string &fileName, StringRef name,
                 Types &types) {
  const auto ops = opsOf(file, name);
  for (auto [number, column] : llvm::enumerate(columns)) {
    SCOPED_TRACE(name.str() + " of " + fileName + " on " + column.device);
    const std::string missing =
        ::kf::test::missingKernel(column.device, fileName, name.str());
    if (column.isGpu || fileName == "block_tiles.mlir") {
      const std::string error = errorOf(file, name, column.target);
      EXPECT_EQ(error.empty(), missing.empty()) << error;
      EXPECT_NE(error.find(missing), std::string::npos) << error;
    }
    for (const auto &[op, element] : ops) {
      auto &cells = types[op];
      if (missing.empty())
        cells[number].insert(element);
    }
  }
}

std::string tableOf(const Types &types) {
  std::ostringstream table;
  table << "| op |";
  for (const Column &column : columns)
    table << " " << column.device << " |";
  table << "\n| --- | --- | --- | --- | --- |\n";
  for (const auto &[op, cells] : types) {
    table << "| `" << op << "` |";
    for (const auto &cell : cells) {
      std::string list;
      for (const std::string &element : cell)
        list += (list.empty() ? "" : ", ") + element;
      table << " " << (list.empty() ? "-" : list) << " |";
    }
    table << "\n";
  }
  return table.str();
}

/// The first line in which `found` is not `wanted`, and what it should be.
std::string differenceOf(StringRef found, StringRef wanted) {
  if (found == wanted)
    return "";
  const size_t at = std::ranges::mismatch(found, wanted).in1 - found.begin();
  const StringRef before = found.take_front(at);
  auto lineOf = [&](StringRef text) {
    return text.substr(before.rfind('\n') + 1).split('\n').first;
  };
  return ("line " + Twine(before.count('\n') + 1) + " is '" + lineOf(found) +
          "', not '" + lineOf(wanted) + "'")
      .str();
}

TEST(Support, PageSaysWhatEachDeviceTakes) {
#ifdef KF_SANITIZERS
  GTEST_SKIP() << "the suite of conformance compiles the same functions";
#endif
  DialectRegistry registry;
  mlir::kf::registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  Types types;
  for (const auto &entry : std::filesystem::directory_iterator(
           KF_SOURCE_DIR "/test/conformance/ops")) {
    OwningOpRef<ModuleOp> file =
        parseSourceFile<ModuleOp>(entry.path().string(), &context);
    ASSERT_TRUE(file) << entry.path();
    for (auto function : file->getOps<func::FuncOp>())
      addFunction(*file, entry.path().filename(), function.getName(), types);
  }
  std::stringstream stream;
  stream << std::ifstream(page).rdbuf();
  std::string text = stream.str();
  size_t from = text.find(begin), to = text.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos) << page;
  std::string wanted =
      text.substr(0, from + begin.size()) + tableOf(types) + text.substr(to);
  if (std::getenv("KF_UPDATE_SUPPORT"))
    std::ofstream(page) << wanted;
  else
    EXPECT_EQ(differenceOf(text, wanted), "")
        << "run this test with KF_UPDATE_SUPPORT=1";
}

} // namespace
