// The library's rankers and models on an emulated card.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "cuda/runtime/device_array.h"
#include "cuda/runtime/work.h"
#include "olrank/model.h"
#include "olrank/ranker.h"
#include "tests/cuda/emulation/device_memory.h"
#include "tests/cuda/emulation/device_work.h"
#include "tests/cuda/emulation/emulator.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

constexpr std::int64_t kFeatures = 6;

class LibraryOnCardTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { ::setenv("OLRANK_EMULATED_GPUS", "Card=8GB,Card=8GB", 1); }
};

RankerOptions options_on(const std::string& device, const std::string& kind, std::uint64_t seed = 1) {
  RankerOptions options;
  options.kind = kind;
  options.features = kFeatures;
  options.seed = seed;
  options.device = device;
  options.settings = {{"width", "8"}, {"steps", "5"}};
  return options;
}

/// The documents of a round: most queries are short, some are longer than a ranker has room for at first.
std::vector<float> docs_of(std::uint32_t round) {
  std::vector<float> docs((round % 7 == 3 ? 140 : 9 + round % 5) * kFeatures);
  std::uint32_t state = 12345 + 977 * (round % 4);
  for (float& value : docs) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 8) / 16777216.0F;
  }
  return docs;
}

std::vector<std::uint8_t> clicks_on(const ShownList& list, std::span<const float> docs) {
  std::vector<std::uint8_t> clicks;
  for (const std::int32_t doc : list.docs) clicks.push_back(docs[doc * kFeatures] > 0.6F ? 1 : 0);
  return clicks;
}

void play(Ranker& ranker, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t round = first; round <= last; ++round) {
    const std::vector<float> docs = docs_of(round);
    const ShownList list = ranker.rank(docs, "query " + std::to_string(round % 4));
    ranker.learn(list, clicks_on(list, docs));
  }
}

void expect_near(const std::vector<float>& scores, const std::vector<float>& expected) {
  ASSERT_EQ(scores.size(), expected.size());
  for (std::size_t doc = 0; doc < scores.size(); ++doc) EXPECT_NEAR(scores[doc], expected[doc], 2e-4);
}

/// The documents of a round where another library has them on the card, its rows some values apart.
struct TensorOnCard {
  explicit TensorOnCard(const std::vector<float>& docs, std::int64_t gap = 3) {
    const std::int64_t rows = std::ssize(docs) / kFeatures;
    std::vector<float> apart(rows * (kFeatures + gap), std::numeric_limits<float>::quiet_NaN());
    for (std::int64_t i = 0; i < std::ssize(docs); ++i)
      apart[i / kFeatures * (kFeatures + gap) + i % kFeatures] = docs[i];
    memory = emulated::DeviceArray<float>(std::span<const float>(apart));
    given = {0, memory.data(), rows, kFeatures, kFeatures + gap};
  }
  emulated::DeviceArray<float> memory;
  GpuDocs given;
};

// Documents of the host and of the card have the same bits there, and the lists of the CPU.
TEST_F(LibraryOnCardTest, AnyQueryHasTheListOfTheCpuWhereverItsDocumentsLie) {
  for (const auto& [kind, normalise] :
       {std::pair{"olranknet", "query-minmax"}, std::pair{"ollambdarank", "none"},
        std::pair{"p2neurrank", "query-minmax"}}) {
    SCOPED_TRACE(kind);
    RankerOptions options = options_on("cuda", kind);
    options.normalise = normalise;
    Ranker there(options);
    Ranker from_host(options);
    options.device = "cpu";
    Ranker on_cpu(options);
    const bool has_widths = options.kind != "p2neurrank";
    ShownList open[3];
    for (std::uint32_t round = 1; round <= 12; ++round) {
      const std::vector<float> docs = docs_of(round);
      const std::string name = "query " + std::to_string(round % 4);
      ShownList list = there.rank(TensorOnCard(docs).given, name, has_widths);
      const ShownList expected = from_host.rank(docs, name, has_widths);
      const ShownList of_cpu = on_cpu.rank(docs, name);
      EXPECT_EQ(list.docs, expected.docs);
      EXPECT_EQ(list.scores, expected.scores);
      EXPECT_EQ(list.widths, expected.widths);
      ASSERT_EQ(list.docs, of_cpu.docs) << round;
      EXPECT_EQ(list.certain.size(), of_cpu.certain.size());
      expect_near(list.scores, of_cpu.scores);
      if (round == 2) {  // answered when the card's memory has had others
        open[0] = list;
        open[1] = expected;
        open[2] = of_cpu;
        continue;
      }
      if (round == 3) {
        EXPECT_EQ(list.bytes(), expected.bytes());
        list = ShownList::from_bytes(list.bytes());
      }
      const std::vector<std::uint8_t> clicks = clicks_on(list, docs);
      // Nothing is scored again, and of the documents the shown ones alone are copied.
      const std::int64_t before = emulation::counts.starts;
      from_host.learn(expected, clicks);
      const std::int64_t from_there = emulation::counts.starts;
      EXPECT_EQ(there.learn(list, clicks), on_cpu.learn(of_cpu, clicks));
      if (round > 3) {
        EXPECT_EQ(emulation::counts.starts - from_there, from_there - before + std::ssize(list.docs));
      }
      if (round != 5) continue;
      const std::vector<std::uint8_t> late = clicks_on(open[0], docs_of(2));
      from_host.learn(open[1], late);
      EXPECT_EQ(there.learn(open[0], late), on_cpu.learn(open[2], late));
    }
    const std::vector<float> docs = docs_of(9);
    EXPECT_EQ(there.score(TensorOnCard(docs).given), from_host.score(docs));
    expect_near(from_host.score(docs), on_cpu.score(docs));
    if (has_widths) {
      EXPECT_EQ(there.widths(TensorOnCard(docs, 0).given), from_host.widths(docs));
    }
    EXPECT_EQ(there.fingerprint(), from_host.fingerprint());
  }
}

// The host waits for nothing that another library has started, only the stream does.
TEST_F(LibraryOnCardTest, DocumentsAreReadOnceTheyAreThere) {
  emulation::machine.schedule = emulation::Schedule::kBackward;
  const std::vector<float> docs = docs_of(1);
  Ranker ranker(options_on("cuda", "olranknet"));
  const std::vector<float> expected = ranker.score(docs);
  emulated::DeviceArray<float> memory(std::ssize(docs));
  emulated::PinnedBytes host(docs.size() * sizeof(float));
  std::memcpy(host.data(), docs.data(), host.size());
  emulated::OwnedStream theirs;
  emulated::copy_bytes(theirs.get(), memory.data(), host.data(), host.size());
  emulated::Event written;
  written.record(theirs.get());
  written.hold(static_cast<Stream>(ranker.gpu_stream()));
  EXPECT_EQ(ranker.score({0, memory.data(), std::ssize(docs) / kFeatures, kFeatures}), expected);
  emulation::machine.schedule = emulation::Schedule::kForward;
}

TEST_F(LibraryOnCardTest, DocumentsThatCannotBeReadThereAreRefusedInOneSentence) {
  RankerOptions options = options_on("cuda", "olranknet");
  options.normalise = "none";
  Ranker ranker(options);
  const std::string before = ranker.fingerprint();
  const auto refusal = [&](const GpuDocs& docs) {
    return message_of<InvalidArgument>([&] { ranker.rank(docs); });
  };
  std::vector<float> docs(5 * kFeatures, 0.5F);
  docs[27] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refusal(TensorOnCard(docs).given), "Feature 4 of document 4 is not finite.");
  docs[27] = -2e12F;
  EXPECT_EQ(refusal(TensorOnCard(docs).given),
            "Feature 4 of document 4 gives the input -2e+12, beyond the limit of ±1e+12: normalise the "
            "features.");
  TensorOnCard good(docs_of(1));
  GpuDocs other = good.given;
  other.gpu = ranker.gpu() + 1;
  EXPECT_TRUE(contains(refusal(other), "lie on cuda:1, and this ranker computes on cuda:0"));
  other = good.given;
  other.stride = kFeatures - 1;
  EXPECT_TRUE(contains(refusal(other), "5 values apart"));
  other = good.given;
  other.features = kFeatures + 1;
  EXPECT_TRUE(contains(refusal(other), "of 7 features"));
  EXPECT_EQ(ranker.rounds(), 0U);
  EXPECT_EQ(ranker.fingerprint(), before);
  Ranker on_cpu(options_on("cpu", "olranknet"));
  EXPECT_EQ(on_cpu.gpu_stream(), nullptr);
  EXPECT_EQ(on_cpu.gpu(), -1);
  EXPECT_TRUE(
      contains(message_of<InvalidArgument>([&] { on_cpu.score(good.given); }), "device = \"cuda\""));
}

// The largest pieces of the memory that lists give back are kept.
TEST_F(LibraryOnCardTest, ListsThatAreGoneLeaveTheirMemoryToLongerOnes) {
  Ranker ranker(options_on("cuda", "olranknet"));
  const TensorOnCard few(docs_of(1));
  const TensorOnCard many(docs_of(3));
  ranker.score(docs_of(3));  // the network's memory grows
  std::vector<ShownList> open;
  for (int list = 0; list < 5; ++list) open.push_back(ranker.rank(few.given));
  open.clear();
  ranker.rank(many.given);
  const std::int64_t before = emulation::counts.allocations;
  ranker.rank(many.given);
  EXPECT_EQ(emulation::counts.allocations, before);
}

/// Does what a program may do with a ranker on the second card.
void use_second_card(const std::function<void()>& after_each_call) {
  auto ranker = std::make_unique<Ranker>(options_on("cuda:1", "olranknet"));
  after_each_call();
  const std::vector<float> docs = docs_of(1);
  const ShownList list = ranker->rank(docs, "q");
  after_each_call();
  ranker->learn(list, clicks_on(list, docs));
  after_each_call();
  ranker->score(docs);
  after_each_call();
  ranker->widths(docs);
  after_each_call();
  Ranker again = Ranker::from_bytes(ranker->bytes(), 1, false, "cuda:1");
  after_each_call();
  ranker.reset();
  after_each_call();
}

TEST_F(LibraryOnCardTest, TheCallerKeepsItsCard) {
  emulation::select_device(0);
  use_second_card([] { ASSERT_EQ(emulation::selected_device(), 0); });
}

// To select a card makes a context there, which takes memory.
TEST_F(LibraryOnCardTest, NoContextIsMadeOnACardThatIsNotUsed) {
  emulation::set_device_count(2);
  std::thread([] { use_second_card([] { ASSERT_FALSE(emulation::has_context(0)); }); }).join();
}

TEST_F(LibraryOnCardTest, StatesAreLoadedOnTheKindOfDeviceThatTheyAreOf) {
  const TemporaryFolder folder;
  Ranker whole(options_on("cuda", "olranknet"));
  play(whole, 1, 6);
  whole.save(folder.path() / "state");
  EXPECT_TRUE(
      contains(message_of<InvalidArgument>([&] { Ranker::load(folder.path() / "state", 1, false, "cpu"); }),
               "load the ranker with device = \"cuda\""));
  Ranker on_cpu(options_on("cpu", "olranknet"));
  on_cpu.save(folder.path() / "cpu");
  EXPECT_THROW(Ranker::load(folder.path() / "cpu", 1, false, "cuda"), InvalidArgument);
  EXPECT_NO_THROW(Ranker::load(folder.path() / "cpu"));
}

TEST_F(LibraryOnCardTest, RankersInManyThreadsDoNotDisturbEachOther) {
  constexpr int kThreads = 4;
  std::vector<std::string> found(kThreads);
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&found, number] {
      Ranker ranker(options_on("cuda", number % 2 == 0 ? "olranknet" : "p2neurrank", 5));
      play(ranker, 1, 6);
      found[number] = ranker.fingerprint();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found[0], found[2]);
  EXPECT_EQ(found[1], found[3]);
  Ranker alone(options_on("cuda", "olranknet", 5));
  play(alone, 1, 6);
  EXPECT_EQ(alone.fingerprint(), found[0]);
}

TEST_F(LibraryOnCardTest, WhatCannotRunThereIsRefusedInOneSentence) {
  RankerOptions options = options_on("cuda", "clickgp");
  options.settings.clear();
  EXPECT_TRUE(contains(message_of<InvalidArgument>([&] { Ranker ranker(options); }),
                       "'clickgp' cannot run on a GPU"));
  EXPECT_THROW(Ranker(options_on("cuda:2", "olranknet")), InvalidArgument);
  EXPECT_THROW(Ranker(options_on("gpu", "olranknet")), InvalidArgument);
}

}  // namespace
}  // namespace olrank
