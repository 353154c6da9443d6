//===- EngineEmbeddingTest.cpp - Rows of the last layer -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EngineFixture.h"

#include "runtime/engine/Generation.h"

#include <algorithm>
#include <set>

using namespace kf;
using namespace kf::test;

namespace {

/// A reading that expects the embeddings of `ids` from number `first` on.
class Embedded {
public:
  Embedded(std::unique_ptr<Sequence> sequence, std::vector<int32_t> ids,
           size_t first)
      : sequence(std::move(sequence)), ids(std::move(ids)), first(first),
        next(first) {}

  Status read() {
    before.assign(sequence->tokens().begin(), sequence->tokens().end());
    Reading reading;
    reading.ids = ids;
    reading.firstEmbedding = first;
    reading.onEmbedding = [this](size_t index, std::span<const float> row) {
      EXPECT_EQ(index, next++);
      std::vector<int32_t> text = before;
      text.insert(text.end(), ids.begin(),
                  ids.begin() + static_cast<ptrdiff_t>(index) + 1);
      EXPECT_TRUE(std::ranges::equal(row, fakeEmbedding(text))) << index;
      return index == failsAt ? Status::error("enough") : Status();
    };
    reading.done = answer.take();
    return sequence->read(std::move(reading));
  }
  /// Whether all of them came.
  bool isWhole() const {
    return answer.outcome && answer.outcome->ok() && !**answer.outcome &&
           next == std::max(first, ids.size());
  }

  std::unique_ptr<Sequence> sequence;
  std::vector<int32_t> ids, before; ///< and what was read before them
  size_t first, next;
  size_t failsAt = SIZE_MAX;
  Answer answer;
};

TEST(EngineEmbedding, RowsComeInOrder) {
  Fixture fixture;
  for (size_t count : {1, 5, 16, 40})
    for (size_t first : {size_t(0), count / 2, count - 1, count}) {
      Embedded text(fixture.sequence(), tokens(count, count), first);
      ASSERT_TRUE(text.read().ok());
      fixture.runAll();
      EXPECT_TRUE(text.isWhole()) << text.answer.error();
    }
  // What follows goes on from what was read.
  Embedded text(fixture.sequence(), tokens(30, 4), 0);
  ASSERT_TRUE(text.read().ok());
  fixture.runAll();
  EXPECT_TRUE(expectLogits(*text.sequence, tokens(7)).ok());
}

/// What makes embeddings is asked for where they are wanted, and no head is.
TEST(EngineEmbedding, ProgramsAreAskedForWhenNeeded) {
  using Names = std::vector<std::string>;
  Fixture fixture;
  auto read = [&](size_t count, size_t first) {
    Embedded text(fixture.sequence(), tokens(count, count), first);
    EXPECT_TRUE(text.read().ok());
    fixture.runAll();
    EXPECT_TRUE(text.isWhole());
    return fixture.asked;
  };
  EXPECT_EQ(read(5, 4), Names({"embed_1", "body_16"}));
  EXPECT_EQ(read(6, 0), Names({"embed_1", "body_16", "embed_16"}));
  // What is there serves, rather than being compiled for.
  EXPECT_EQ(read(6, 3).size(), 3u);
  EXPECT_EQ(read(70, 0).at(3), "embed_512");
  for (const StepShape &shape : fixture.engine->shapesToPrepare())
    EXPECT_NE(shape.part, StepPart::Embed);
}

/// A step has more rows than its program has room for, and steps fewer than a
/// text.
TEST(EngineEmbedding, ChunksDoNotMatter) {
  Fixture few({}, true,
              {{StepPart::Body, 1},
               {StepPart::Body, 16},
               {StepPart::Head, 1},
               {StepPart::Choose, 1},
               {StepPart::Embed, 1},
               {StepPart::Embed, 4}});
  Fixture slow({.rowsPerStep = 7, .reusesPrefixes = false});
  for (Fixture *fixture : {&few, &slow})
    for (size_t first : {0, 3, 36}) {
      Embedded text(fixture->sequence(), tokens(37, first), first);
      ASSERT_TRUE(text.read().ok());
      fixture->runAll();
      EXPECT_TRUE(text.isWhole()) << text.answer.error();
    }
  EXPECT_EQ(std::ranges::count(few.asked, "embed_4"), 1);
  EXPECT_EQ(slow.engine->counts().steps, 3 * 6);
}

/// Without a program for them, embeddings are an error of who wants them, and
/// of nobody else in the step.
TEST(EngineEmbedding, ProgramsMayLackThem) {
  Fixture fixture({.parallel = 2});
  fixture.device.behavior.varies = true;
  fixture.change = [](Executable &program) {
    if (program.programName.starts_with("embed"))
      program.outputs.clear();
  };
  Text text(fixture.sequence(), {}, 20);
  ASSERT_TRUE(text.read(tokens(20, 1)).ok());
  Embedded other(fixture.sequence(), tokens(5), 4);
  ASSERT_TRUE(other.read().ok());
  fixture.runAll();
  EXPECT_NE(other.answer.error().find("'embed_1'"), std::string::npos)
      << other.answer.error();
  EXPECT_EQ(other.sequence->position(), 0);
  EXPECT_EQ(text.chosen,
            expected(tokens(20, 1), {}, 20, fixture.device.behavior));
}

/// They share steps with those that generate, and change nothing of them.
TEST(EngineEmbedding, BesideTextsThatGenerate) {
  for (bool runsAhead : {false, true}) {
    Fixture fixture({.parallel = 8, .rowsPerStep = 48, .runsAhead = runsAhead});
    fixture.device.behavior.varies = true;
    std::vector<std::unique_ptr<Text>> texts;
    for (size_t i = 0; i < 4; ++i) {
      texts.push_back(
          std::make_unique<Text>(fixture.sequence(), optionsOf(i), 40));
      ASSERT_TRUE(texts.back()->read(tokens(20, i)).ok());
    }
    std::vector<std::unique_ptr<Embedded>> others;
    for (size_t step = 0; fixture.engine->step(); ++step)
      if (step % 5 == 4 && others.size() < 6) {
        const size_t count = 30 + 25 * others.size();
        others.push_back(
            std::make_unique<Embedded>(fixture.sequence(), tokens(count, step),
                                       others.size() % 2 ? count - 1 : 0));
        ASSERT_TRUE(others.back()->read().ok());
      }
    EXPECT_EQ(others.size(), 6u);
    for (const auto &other : others)
      EXPECT_TRUE(other->isWhole()) << other->answer.error();
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(texts[i]->error.message(), "");
      EXPECT_EQ(texts[i]->chosen, expected(tokens(20, i), optionsOf(i), 40,
                                           fixture.device.behavior));
    }
    // Prompts and tokens went in the same steps.
    EXPECT_LT(fixture.engine->counts().steps, 60);
    EXPECT_EQ(fixture.engine->counts().ahead > 0, runsAhead);
  }
}

/// What the cache has is taken over up to the first row that is wanted.
TEST(EngineEmbedding, WantedRowsAreComputed) {
  Fixture fixture;
  const std::vector<int32_t> ids = tokens(200);
  ASSERT_TRUE(readAll(*fixture.sequence(), ids).ok());
  for (size_t first : {0, 70, 199}) {
    Embedded text(fixture.sequence(), ids, first);
    ASSERT_TRUE(text.read().ok());
    fixture.runAll();
    EXPECT_TRUE(text.isWhole()) << text.answer.error();
    EXPECT_LE(text.sequence->reusedTokens(), static_cast<int64_t>(first));
    EXPECT_EQ(text.sequence->reusedTokens() > 0, first > 0);
  }
}

/// Rows that came before a sequence lost its pages do not come again.
TEST(EngineEmbedding, LostPagesAreReadAgain) {
  for (const auto &[reusesPrefixes, before] :
       {std::pair(false, size_t(0)), std::pair(true, size_t(0)),
        std::pair(false, size_t(30)), std::pair(true, size_t(70))}) {
    Fixture fixture({.contextLength = 640,
                     .parallel = 2,
                     .pages = 8,
                     .rowsPerStep = 2,
                     .reusesPrefixes = reusesPrefixes});
    fixture.device.behavior.varies = true;
    // The text comes to need what the other one has, when that has come far.
    Text text(fixture.sequence(), {}, 400);
    ASSERT_TRUE(text.read(tokens(20, 1)).ok());
    Embedded other(fixture.sequence(), tokens(256 - before, 2), 0);
    if (before > 0)
      ASSERT_TRUE(readAll(*other.sequence, tokens(before, 5)).ok());
    ASSERT_TRUE(other.read().ok());
    size_t known = 0;
    while (fixture.engine->step()) {
      if (fixture.engine->counts().preemptions == 0)
        known = other.next;
      if (text.isDone())
        text.sequence.reset(); // with its pages
    }
    EXPECT_GT(fixture.engine->counts().preemptions, 0);
    EXPECT_GT(known, 50u);
    EXPECT_LT(known, other.ids.size());
    EXPECT_TRUE(other.isWhole()) << other.answer.error();
    EXPECT_EQ(text.chosen,
              expected(tokens(20, 1), {}, 400, fixture.device.behavior));
  }
}

TEST(EngineEmbedding, ErrorsEndTheReading) {
  Fixture fixture({.parallel = 2});
  fixture.device.behavior.poison = 9;
  // A callback's own, and rows that are not finite, which never come.
  Embedded enough(fixture.sequence(), {1, 2, 3, 4}, 0);
  enough.failsAt = 2;
  Embedded poisoned(fixture.sequence(), {1, 2, 9, 4}, 0);
  Embedded sound(fixture.sequence(), {1, 2, 3}, 0);
  for (Embedded *text : {&enough, &poisoned, &sound})
    ASSERT_TRUE(text->read().ok());
  fixture.runAll();
  EXPECT_EQ(enough.answer.error(), "enough");
  EXPECT_EQ(enough.next, 3u);
  EXPECT_EQ(poisoned.answer.error(),
            "model 'the fake': what the last layer makes of token 2 is not "
            "finite");
  EXPECT_EQ(poisoned.next, 2u);
  EXPECT_TRUE(sound.isWhole());
  for (Embedded *text : {&enough, &poisoned})
    EXPECT_EQ(text->sequence->position(), 0);
  fixture.cancelled = true;
  Embedded cancelled(fixture.sequence(), {1, 2, 3}, 0);
  ASSERT_TRUE(cancelled.read().ok());
  fixture.runAll();
  EXPECT_TRUE(cancelled.answer.outcome->status().isCancelled());
}

//===----------------------------------------------------------------------===//
// Embeddings of texts
//===----------------------------------------------------------------------===//

Result<GenerationResult> embed(Fixture &fixture, std::vector<int32_t> ids,
                               const EmbeddingOptions &options) {
  Sampler sampler = *Sampler::create({});
  GenerationOptions wanted;
  wanted.embedding = options;
  const std::unique_ptr<Sequence> sequence = fixture.sequence();
  return generate(*sequence, sampler, nullptr, ids, std::move(wanted));
}

TEST(EngineEmbedding, OfATextIsPooled) {
  Fixture fixture({.rowsPerStep = 16});
  const std::vector<int32_t> ids = tokens(37);
  auto rowOf = [&](size_t index) {
    return fakeEmbedding(std::span(ids).first(index + 1));
  };
  using Row = std::vector<float>;
  auto of = [&](Pooling pooling) {
    const auto result = embed(fixture, ids, {pooling, /*normalizes=*/false});
    EXPECT_TRUE(result.ok()) << result.message();
    EXPECT_EQ(result->reason, StopReason::Complete);
    EXPECT_EQ(result->promptTokens, 37);
    EXPECT_TRUE(result->ids.empty());
    return result->embedding;
  };
  const auto first = rowOf(0), last = rowOf(36);
  EXPECT_EQ(of(Pooling::Cls), Row(first.begin(), first.end()));
  EXPECT_EQ(of(Pooling::Last), Row(last.begin(), last.end()));
  Row all, mean;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto row = rowOf(i);
    all.insert(all.end(), row.begin(), row.end());
  }
  EXPECT_EQ(of(Pooling::None), all);
  for (size_t column = 0; column < kHidden; ++column) {
    double sum = 0;
    for (size_t i = 0; i < ids.size(); ++i)
      sum += rowOf(i)[column];
    mean.push_back(static_cast<float>(sum / 37));
  }
  EXPECT_EQ(of(Pooling::Mean), mean);
  // Of the first token, no other one is read.
  const int64_t rows = fixture.engine->counts().rows;
  (void)of(Pooling::Cls);
  EXPECT_EQ(fixture.engine->counts().rows, rows + 1);
}

TEST(EngineEmbedding, WrongOnesAreErrors) {
  Fixture fixture;
  EXPECT_EQ(embed(fixture, {}, {}).message(),
            "there are no tokens to read; begin with the begin-of-text token");
  EXPECT_EQ(embed(fixture, {1}, {.dimensions = 4}).message(),
            "embeddings of 4 dimensions are not possible; the model's have 3");
  EXPECT_EQ(embed(fixture, {1}, {.dimensions = 3})->embedding.size(), 3u);
  EXPECT_NE(embed(fixture, {kVocab}, {}).message().find("vocabulary"),
            std::string::npos);
}

} // namespace
