#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "core/data/dataset_cache.h"
#include "core/data/dataset_file.h"
#include "core/data/doc_table.h"
#include "core/data/join.h"
#include "core/data/normaliser.h"
#include "core/data/query_weights.h"
#include "core/error.h"
#include "tests/core/data/letor_support.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

constexpr const char* kText =
    "2 qid:10 1:0.5 2:-3 3:1e2 # docid = A\n0 qid:10 3:0.25\n1 qid:11 1:7 # docid = BC\n0 qid:x 2:-0\n";

std::int64_t files_in(const std::filesystem::path& folder) {
  std::error_code absent;
  return std::distance(std::filesystem::directory_iterator(folder, absent), {});
}

/// kText with a weight for each of its three queries.
Dataset weighted_text() {
  Dataset::Contents contents = read_text(kText).contents();
  contents.weights = {2.0F, 0.0F, 0.5F};
  ThreadPool pool(1);
  contents.fingerprint = content_fingerprint(contents, pool);
  return Dataset(std::move(contents));
}

TEST(DatasetFile, RoundTripIsExact) {
  const TemporaryFolder folder;
  ThreadPool pool(2);
  const auto written = [&](const Dataset& data) {
    write_dataset_file(data, {}, folder / "a.olrank");
    return read_dataset_file(folder / "a.olrank", pool);
  };
  const Dataset back = written(read_text(kText));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(back.all_features().values) % 64, 0U);
  EXPECT_FALSE(back.reordered());
  EXPECT_TRUE(written(read_text("1 qid:1 1:1\n0 qid:2 1:2\n0 qid:1 1:3\n")).reordered());
  for (const Dataset& data : {read_text(kText), read_text("0 qid:1 1:1\n"), weighted_text()})
    EXPECT_TRUE(same_content(written(data), data));
}

TEST(DatasetFile, RefusesWhatIsNoWeight) {
  ThreadPool pool(1);
  for (const float weight : {-1.0F, NAN, INFINITY}) {
    Dataset::Contents contents = read_text(kText).contents();
    contents.weights = {2.0F, weight, 0.5F};
    contents.fingerprint = content_fingerprint(contents, pool);
    const std::string bytes = binary_of(Dataset(std::move(contents)));
    EXPECT_EQ(message_of<DataError>([&] { read_binary(bytes); }),
              "data.olrank: This is not a valid olrank data file: a weight is below 0 or not finite.");
  }
}

TEST(DatasetFile, DetectsEveryDamagedByte) {
  const Dataset data = weighted_text();
  const std::string whole = binary_of(data);
  std::int64_t unharmed = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      try {
        // Only the padding between sections may change unnoticed, and then nothing else has changed.
        EXPECT_TRUE(same_content(read_binary(bytes), data)) << at;
        EXPECT_GE(at, 256U);
        EXPECT_EQ(whole[at], '\0');
        ++unharmed;
      } catch (const DataError&) {
      }
    }
  }
  EXPECT_LT(unharmed, 3 * 64 * 7);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(read_binary(whole.substr(0, size)), DataError) << size;
  }
  EXPECT_THROW(read_binary(whole + std::string(1, '\0')), DataError);
}

TEST(DatasetFile, RefusesHostileSizes) {
  const std::string whole = binary_of(read_text(kText));
  for (std::size_t field = 16; field < 96; field += 8) {
    for (const std::uint64_t number :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{5}, std::uint64_t{1} << 32,
          std::uint64_t{1} << 61, std::uint64_t{1} << 62, std::uint64_t{1} << 63, ~std::uint64_t{0},
          ~std::uint64_t{0} - 255}) {
      std::string bytes = whole;
      if (std::memcmp(bytes.data() + field, &number, 8) == 0) continue;
      std::memcpy(bytes.data() + field, &number, 8);
      std::memset(bytes.data() + 248, 0, 8);
      const std::uint64_t checksum = fingerprint_of(std::string_view(bytes).substr(0, 256)).low;
      std::memcpy(bytes.data() + 248, &checksum, 8);
      if (field > 72) {  // where the first missing value was says nothing about sizes
        EXPECT_NO_THROW(read_binary(bytes)) << field << " " << number;
      } else {
        EXPECT_THROW(read_binary(bytes), DataError) << field << " " << number;
      }
    }
  }
}

/// A cache beside a file a.txt.
class DatasetCacheTest : public testing::Test {
 protected:
  Dataset read() { return cache_.read(path_, {}, pool_); }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "a.txt";
  const DatasetCache cache_{folder_ / "cache"};
  ThreadPool pool_{1};
};

TEST_F(DatasetCacheTest, StoresAndUsesCopy) {
  write_file(path_, kText);
  const Dataset first = read();
  const std::filesystem::path copy = cache_.copy_of(path_);
  ASSERT_TRUE(std::filesystem::exists(copy));
  const auto written = std::filesystem::last_write_time(copy);
  const Dataset second = read();
  EXPECT_TRUE(same_content(first, second));
  EXPECT_EQ(std::filesystem::last_write_time(copy), written);
  EXPECT_EQ(files_in(folder_ / "cache"), 1);
  EXPECT_THROW(cache_.read(path_, {.max_bytes = 10}, pool_), DataError);
}

TEST_F(DatasetCacheTest, RebuildsStaleOrDamagedCopies) {
  write_file(path_, "1 qid:1 1:1\n");
  EXPECT_EQ(read().all_grades()[0], 1);
  // Same size, and the time of modification set back: the time of change tells.
  const auto time = std::filesystem::last_write_time(path_);
  ::usleep(20'000);
  write_file(path_, "2 qid:1 1:1\n");
  std::filesystem::last_write_time(path_, time);
  EXPECT_EQ(read().all_grades()[0], 2);
  const std::string whole = read_file(cache_.copy_of(path_));
  for (std::size_t at = 0; at < whole.size(); at += 23) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    write_file(cache_.copy_of(path_), bytes);
    EXPECT_EQ(read().all_grades()[0], 2);
    write_file(cache_.copy_of(path_), whole.substr(0, at));
    EXPECT_EQ(read().all_grades()[0], 2);
    EXPECT_EQ(read_file(cache_.copy_of(path_)), whole);
  }
  // A copy that belongs to another text.
  write_file(folder_ / "b.txt", "3 qid:1 1:1\n");
  std::filesystem::copy_file(cache_.copy_of(path_), cache_.copy_of((folder_ / "b.txt").string()));
  EXPECT_EQ(cache_.read((folder_ / "b.txt").string(), {}, pool_).all_grades()[0], 3);
}

TEST_F(DatasetCacheTest, LeavesNoCopyOfBadData) {
  write_file(path_, "1 qid:1 0:1\n");
  EXPECT_THROW(read(), DataError);
  EXPECT_EQ(files_in(folder_ / "cache"), 0);
}

TEST_F(DatasetCacheTest, RepeatsMissingValueWarningFromCopy) {
  write_file(path_, "1 qid:1 1:NULL 2:1\n");
  const ExpectedWarnings warnings;
  for (int i = 0; i < 2; ++i) read();
  ASSERT_EQ(warnings.messages().size(), 2U);
  EXPECT_EQ(warnings.messages()[0], warnings.messages()[1]);
}

TEST_F(DatasetCacheTest, WorksWhenCopyCannotBeWritten) {
  write_file(path_, kText);
  write_file(folder_ / "file", "");
  const ExpectedWarnings warnings;
  EXPECT_EQ(DatasetCache(folder_ / "file").read(path_, {}, pool_).docs(), 4);
  ASSERT_EQ(warnings.messages().size(), 1U);
  EXPECT_TRUE(contains(warnings.messages()[0], "Could not cache"));
  EXPECT_EQ(DatasetCache::of_setting("none").read(path_, {}, pool_).docs(), 4);
  EXPECT_EQ(files_in(folder_.path()), 2);
}

TEST_F(DatasetCacheTest, SupportsConcurrentProcesses) {
  std::string text;
  for (int doc = 0; doc < 5000; ++doc)
    text += "1 qid:" + std::to_string(doc / 10) + " 1:0.5 40:" + std::to_string(doc) + "\n";
  write_file(path_, text);
  const Dataset expected = read_text(text);
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      bool same = true;
      for (int i = 0; i < 5; ++i) {
        same = same && same_content(read(), expected);
        std::error_code ignored;
        if (child == 0) std::filesystem::remove(cache_.copy_of(path_), ignored);
      }
      ::_exit(same ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = -1;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_LE(files_in(folder_ / "cache"), 1);
}

TEST_F(DatasetCacheTest, ReadsBinaryFilesDirectly) {
  const Dataset data = read_text(kText);
  const std::string path = folder_ / "a.olrank";
  write_dataset_file(data, {}, path);
  EXPECT_TRUE(same_content(cache_.read(path, {}, pool_), data));
  EXPECT_EQ(files_in(folder_ / "cache"), 0);
  EXPECT_THROW(cache_.read(path, {.max_bytes = 10}, pool_), DataError);
}

using Weights = std::vector<float>;

/// The file a.txt with weights beside it.
class QueryWeightsTest : public DatasetCacheTest {
 protected:
  Dataset read(std::string_view text, std::string_view weights, const LetorOptions& options = {}) const {
    write_file(path_, text);
    write_file(path_ + ".weight", weights);
    return read_letor(path_, options, context_.pool());
  }

  mutable ExecutionContext context_;
};

constexpr const char* kDocs = "1 qid:a 1:1\n0 qid:b 1:2\n0 qid:a 1:3\n2 qid:b 1:4\n";

TEST_F(QueryWeightsTest, AreReadFromTheFileBesideTheText) {
  const Dataset data = read(kDocs, "0.5\r\n 3 \n5e-1\n3.0\n\n");
  EXPECT_EQ(data.contents().weights, (Weights{0.5F, 3.0F}));
  EXPECT_EQ(relative_weights(data), (std::vector<double>{0.5 / 1.75, 3.0 / 1.75}));
  EXPECT_FALSE(data.fingerprint() == read_text(kDocs).fingerprint());
  EXPECT_FALSE(data.fingerprint() == read(kDocs, "3\n.5\n3\n.5\n").fingerprint());
  EXPECT_EQ(read_text(kDocs).contents().weights, Weights());
}

TEST_F(QueryWeightsTest, OnesAreTheSameAsNone) {
  const Dataset data = read(kDocs, "1\n1\n1\n1\n");
  EXPECT_EQ(data.contents().weights, Weights());
  EXPECT_TRUE(data.fingerprint() == read_text(kDocs).fingerprint());
}

TEST_F(QueryWeightsTest, WhatIsNoWeightIsRefused) {
  const auto message = [&](std::string_view weights) {
    const std::string said = message_of<DataError>([&] { read(kDocs, weights); });
    return said.substr(said.find("a.txt.weight"));
  };
  EXPECT_EQ(message("1\n1\n1\n"), "a.txt.weight: The file has 3 weights, and " + path_ +
                                      " has 4 documents: give one weight for each, on a line of its own.");
  EXPECT_TRUE(contains(message(""), "The file has 0 weights"));
  EXPECT_EQ(message("1\n2\n3\n2\n"),
            "a.txt.weight:3: Query 'a' has documents of the weights 1 and 3: give them one weight, that of "
            "the query's list, or rename the file.");
  for (const char* word : {"-1", "nan", "inf", "1e39", "x", "", "1 2", "1,2"}) {
    EXPECT_EQ(
        message(std::string("1\n") + word + "\n1\n1\n"),
        std::string("a.txt.weight:2: A weight must be a finite number of at least 0, not '") + word + "'.");
  }
}

TEST_F(QueryWeightsTest, GoWithTheirQueries) {
  const Dataset data = read("1 qid:a 1:1\n0 qid:a 1:2\n1 qid:b 1:1\n0 qid:c 1:5\n", "2\n2\n0\n1\n");
  const Weights weights = {2.0F, 0.0F, 1.0F};
  EXPECT_EQ(select_queries(data, {2, 0}, context_).contents().weights, (Weights{1.0F, 2.0F}));
  EXPECT_EQ(select_queries(data, {2}, context_).contents().weights, Weights());
  EXPECT_EQ(widened(data, 3, context_).contents().weights, weights);
  EXPECT_EQ(as_sparse(data, context_.pool()).contents().weights, weights);
  const FittedNormaliser fitted = fit_normaliser(Normalisation::kQueryMinmax, data, false, context_);
  EXPECT_EQ(fitted.apply(data, context_).contents().weights, weights);
  const auto joined_with = [&](const char* text) { return join_parts({data, read_text(text)}, context_); };
  EXPECT_EQ(joined_with("1 qid:d 1:1\n1 qid:c 1:2\n").contents().weights,
            (Weights{2.0F, 0.0F, 1.0F, 1.0F}));
  EXPECT_EQ(
      message_of<InvalidArgument>([&] { joined_with("1 qid:a 1:1\n"); }),
      "Query 'a' has documents of the weights 2 and 1: give them one weight, that of the query's list.");
}

TEST_F(QueryWeightsTest, ACopyIsThatOfTheTextAndItsWeights) {
  const auto weights_now = [&] { return DatasetCacheTest::read().contents().weights; };
  read(kDocs, "2\n3\n2\n3\n");
  EXPECT_EQ(weights_now(), (Weights{2.0F, 3.0F}));
  ASSERT_TRUE(cache_.find(path_, {}, pool_).has_value());
  EXPECT_EQ(weights_now(), (Weights{2.0F, 3.0F}));
  write_file(path_ + ".weight", "2\n4\n2\n4\n");
  EXPECT_EQ(weights_now(), (Weights{2.0F, 4.0F}));
  std::filesystem::remove(path_ + ".weight");
  EXPECT_EQ(weights_now(), Weights());
}

TEST_F(QueryWeightsTest, AreWrittenForEachDocument) {
  const Dataset data = read(kDocs, "0.1\n3\n0.1\n3\n");
  const std::string out = (folder_ / "b.txt").string();
  const auto write = [&](const Dataset& written, std::string_view content) {
    AtomicFile text(out);
    text.write(content);
    commit_with_weights(written, text, out);
  };
  {
    AtomicFile unfinished(out);
    unfinished.write("half of it");
  }
  EXPECT_FALSE(std::filesystem::exists(out + ".weight"));
  write(data, "text");
  EXPECT_EQ(read_file(out + ".weight"), "0.1\n0.1\n3\n3\n");
  write(read_text(kDocs), "text without weights");  // the file belonged to the text before
  EXPECT_EQ(read_file(out), "text without weights");
  EXPECT_FALSE(std::filesystem::exists(out + ".weight"));
  write_file(out + ".weight", "1\n");
  std::filesystem::remove(out);
  EXPECT_EQ(message_of<InvalidArgument>([&] { write(read_text(kDocs), "text"); }),
            "'" + out + ".weight' has the weights of another text, and would give them to '" + out +
                "': remove it.");
}

}  // namespace
}  // namespace olrank
