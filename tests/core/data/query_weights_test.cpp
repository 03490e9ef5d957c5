#include "core/data/query_weights.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/data/dataset_cache.h"
#include "core/data/dataset_file.h"
#include "core/data/doc_table.h"
#include "core/data/join.h"
#include "core/data/normaliser.h"
#include "core/error.h"
#include "tests/core/data/letor_support.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

using Weights = std::vector<float>;

/// A file of a.txt in a folder, with weights beside it.
class QueryWeightsTest : public testing::Test {
 protected:
  Dataset read(std::string_view text, std::string_view weights, const LetorOptions& options = {}) const {
    write_file(path_, text);
    write_file(path_ + ".weight", weights);
    return read_letor(path_, options, context_.pool());
  }

  const TemporaryFolder folder_;
  const std::string path_ = (folder_ / "a.txt").string();
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
  EXPECT_NE(message("").find("The file has 0 weights"), std::string::npos);
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
  const DatasetCache cache(folder_ / "cache");
  const auto weights_now = [&] { return cache.read(path_, {}, context_.pool()).contents().weights; };
  read(kDocs, "2\n3\n2\n3\n");
  EXPECT_EQ(weights_now(), (Weights{2.0F, 3.0F}));
  ASSERT_TRUE(cache.find(path_, {}, context_.pool()).has_value());
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
