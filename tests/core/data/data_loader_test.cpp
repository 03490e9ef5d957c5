#include "core/data/data_loader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/data/join.h"
#include "core/data/normaliser.h"
#include "core/error.h"
#include "tests/core/data/letor_support.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

std::vector<std::string> names(const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  for (const std::string& path : paths) out.push_back(std::filesystem::path(path).filename());
  return out;
}

DataSettings settings_of(const std::filesystem::path& folder) {
  DataSettings settings;
  settings.source = folder.string();
  settings.cache = "none";
  return settings;
}

void write_parts(const std::filesystem::path& folder, std::string_view train, std::string_view vali,
                 std::string_view test) {
  std::filesystem::create_directories(folder);
  write_file(folder / "train.txt", train);
  if (!vali.empty()) write_file(folder / "vali.txt", vali);
  write_file(folder / "test.txt", test);
}

class DataLoaderTest : public testing::Test {
 protected:
  DataParts load(std::int64_t fold = 1) { return load_parts(settings_, fold, context_); }
  std::string refusal_of_data() {
    return message_of<DataError>([&] { load(); });
  }

  const TemporaryFolder folder_;
  DataSettings settings_ = settings_of(folder_.path());
  ExecutionContext context_{2};
};

TEST(DataFolder, RotatesNumberedParts) {
  const TemporaryFolder folder;
  for (const char* name : {"S1.txt", "S2.txt.gz", "S3.txt.zst", "S4.olrank", "S5.txt"})
    write_file(folder / name, "x");
  EXPECT_EQ(count_folds(folder.path()), 5);
  const PartFiles first = find_part_files(folder.path(), 1);
  EXPECT_EQ(names(first.train), (std::vector<std::string>{"S1.txt", "S2.txt.gz", "S3.txt.zst"}));
  EXPECT_EQ(names(first.vali), (std::vector<std::string>{"S4.olrank"}));
  EXPECT_EQ(names(first.test), (std::vector<std::string>{"S5.txt"}));
  const PartFiles fourth = find_part_files(folder.path(), 4);
  EXPECT_EQ(names(fourth.train), (std::vector<std::string>{"S4.olrank", "S5.txt", "S1.txt"}));
  EXPECT_EQ(names(fourth.vali), (std::vector<std::string>{"S2.txt.gz"}));
  EXPECT_EQ(names(fourth.test), (std::vector<std::string>{"S3.txt.zst"}));
  EXPECT_TRUE(contains(message_of<InvalidArgument>([&] { find_part_files(folder.path(), 6); }),
                       "must be between 1 and 5, not 6"));
  std::filesystem::remove(folder / "S3.txt.zst");
  EXPECT_TRUE(contains(message_of<DataError>([&] { find_part_files(folder.path(), 1); }), "S3 is missing"));
}

TEST(DataFolder, FindsNamedPartsAndFolds) {
  const TemporaryFolder folder;
  write_parts(folder / "named", "x", "", "x");
  EXPECT_TRUE(find_part_files(folder / "named", 1).vali.empty());
  for (int fold = 1; fold <= 5; ++fold)
    write_parts(folder / fmt::format("folds/Fold{}", fold), "x", "x", "x");
  EXPECT_EQ(count_folds(folder / "folds"), 5);
  EXPECT_TRUE(contains(find_part_files(folder / "folds", 3).vali.at(0), "Fold3/vali.txt"));
  write_file(folder / "named/train.txt.gz", "x");
  EXPECT_TRUE(contains(message_of<DataError>([&] { find_part_files(folder / "named", 1); }),
                       "Remove or rename all but one"));
}

TEST_F(DataLoaderTest, RefusesAPartThatIsALinkToNothing) {
  write_parts(folder_.path(), "1 qid:1 1:1\n0 qid:1 1:2\n", "", "1 qid:2 1:1\n0 qid:2 1:2\n");
  std::filesystem::create_symlink("nowhere", folder_ / "vali.txt");
  EXPECT_TRUE(contains(message_of<IoError>([&] { load(); }), (folder_ / "vali.txt").string()));
}

TEST(DataFolder, ErrorListsKnownLayouts) {
  const TemporaryFolder folder;
  const std::string said = message_of<InvalidArgument>([&] { find_part_files(folder.path(), 1); });
  for (const char* name : {"train", "test", "vali", "Fold1", "S1", ".gz", ".zst"}) {
    EXPECT_TRUE(contains(said, name));
  }
  EXPECT_THROW(find_part_files(folder / "absent", 1), IoError);
}

TEST_F(DataLoaderTest, TrainingPartDeterminesFeatureCount) {
  write_parts(folder_.path(), "1 qid:1 5:1\n0 qid:1 1:1\n", "1 qid:2 1:1\n0 qid:2 2:3\n",
              "1 qid:3 5:1\n0 qid:3 1:1\n");
  const DataParts parts = load();
  EXPECT_EQ(parts.vali->features(), 5);
  EXPECT_EQ(parts.vali->all_features().doc(1)[1], 3.0F);
  EXPECT_EQ(parts.vali->fingerprint(), read_text("1 qid:2 1:1 5:0\n0 qid:2 2:3\n").fingerprint());
  write_file(folder_ / "test.txt", "1 qid:3 8:1\n0 qid:3 1:1\n");
  EXPECT_TRUE(contains(refusal_of_data(), "test part has 8 features, but the training part has only 5"));
}

TEST_F(DataLoaderTest, WarnsAboutSharedQueriesAndConstantGrades) {
  write_parts(folder_.path(), "1 qid:1 1:1\n1 qid:2 1:1\n", "", "1 qid:2 1:1\n0 qid:1 1:1\n0 qid:4 1:1\n");
  const ExpectedWarnings warnings;
  load();
  ASSERT_EQ(warnings.messages().size(), 2U);
  EXPECT_TRUE(contains(warnings.messages()[0], "2 of the test part's 3 queries"));
  EXPECT_TRUE(contains(warnings.messages()[1], "All 2 documents of the training part have grade 1"));
}

TEST_F(DataLoaderTest, LoadsSingleFilesAndRefusesContradictorySettings) {
  write_parts(folder_.path(), "1 qid:1 1:1\n0 qid:1 1:1\n", "", "1 qid:2 1:1\n0 qid:3 1:1\n");
  settings_.source.clear();
  EXPECT_THROW(load(), InvalidArgument);
  settings_.train = (folder_ / "train.txt").string();
  EXPECT_THROW(load(), InvalidArgument);
  settings_.test = (folder_ / "test.txt").string();
  EXPECT_EQ(load().test.queries(), 2);
  EXPECT_THROW(load(2), InvalidArgument);
  settings_.max_memory = "7";
  EXPECT_THROW(load(), DataError);
  settings_.max_memory = "much";
  EXPECT_THROW(load(), InvalidArgument);
  settings_.max_memory = "1 GiB";
  EXPECT_EQ(allowed_bytes(settings_), std::int64_t{1} << 30);
}

TEST_F(DataLoaderTest, RefusesPartsThatAreTooLargeAtTheWidthOfAnother) {
  const std::string narrow = "1 qid:2 1:1\n0 qid:3 1:1\n1 qid:3 1:2\n0 qid:3 1:3\n";
  write_parts(folder_.path(), "1 qid:1 1000:1\n0 qid:1 1:1\n", "", narrow);
  EXPECT_EQ(load().test.features(), 1000);
  settings_.max_memory = "9kB";
  EXPECT_TRUE(
      contains(refusal_of_data(),
               "train.txt, 4 documents become a dense matrix of 16.0 kB, more than --max-memory allows."));
  // Parts that are joined.
  std::filesystem::remove(folder_ / "train.txt");
  std::filesystem::remove(folder_ / "test.txt");
  for (int part = 1; part <= 5; ++part)
    write_file(folder_ / fmt::format("S{}.txt", part),
               part == 2 ? "1 qid:a 1000:1\n0 qid:a 1:1\n" : narrow);
  const std::string joined = refusal_of_data();
  EXPECT_TRUE(contains(joined, "With feature 1000 of "));
  EXPECT_TRUE(contains(joined, "S2.txt, 10 documents become a dense matrix of 40.0 kB"));
}

/// Files without a name whose pages this process has as memory.
std::ptrdiff_t unnamed_files() {
  std::ifstream maps("/proc/self/maps");
  std::ptrdiff_t count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("/features-") != std::string::npos && line.ends_with("(deleted)") ? 1 : 0;
  return count;
}

TEST_F(DataLoaderTest, GivesTheSameBitsInMemoryAndInFiles) {
  for (int part = 1; part <= 5; ++part) {
    std::string text;
    std::string weights;
    for (int doc = 0; doc < 300; ++doc) {  // queries are scattered
      weights += fmt::format("{}\n", 1 + doc * 7 % 40 % 3);
      text += fmt::format("{} qid:{}", doc % 3, doc * 7 % 40 + (part == 5 ? 100 : 0));
      for (int feature = 1; feature <= 15 + part % 2; ++feature)
        text += fmt::format(" {}:{}.5", feature, doc * feature % 11);
      text += fmt::format(" # docid = d{}\n", doc);
    }
    write_file(folder_ / fmt::format("S{}.txt", part), text);
    write_file(folder_ / fmt::format("S{}.txt.weight", part), weights);
  }
  settings_.weights = true;
  const auto fingerprints = [&](std::ptrdiff_t files) {
    std::vector<std::string> all;
    const DataParts raw = load();
    const FittedNormaliser fitted = fit_normaliser(Normalisation::kZscore, raw.train, false, context_);
    const Dataset train = fitted.apply(raw.train, context_);
    EXPECT_EQ(unnamed_files(), files);
    for (const Dataset* data : {&raw.train, &*raw.vali, &raw.test, &train})
      all.push_back(data->fingerprint().hex());
    all.push_back(select_queries(raw.train, {3, 1}, context_).fingerprint().hex());
    return all;
  };
  const std::vector<std::string> dense = fingerprints(0);
  settings_.max_memory = "3kB";
  EXPECT_EQ(fingerprints(4), dense);
  settings_.cache = (folder_ / "copies").string();
  EXPECT_EQ(fingerprints(4), dense);
  EXPECT_EQ(fingerprints(3), dense);  // the copy of the test part is memory of its own file
  settings_.source = "synth:small";
  settings_.max_memory = "auto";
  EXPECT_THROW(load(2), InvalidArgument);
  const std::vector<std::string> generated = fingerprints(0);
  settings_.max_memory = "3kB";
  EXPECT_EQ(fingerprints(4), generated);
}

TEST_F(DataLoaderTest, ReadsTheWeightsOfTheTrainingPartWhereTheyAreAskedFor) {
  for (int part = 1; part <= 5; ++part)
    write_file(folder_ / fmt::format("S{}.txt", part), fmt::format("0 qid:{0} 1:1\n1 qid:{0} 1:2\n", part));
  write_file(folder_ / "S2.txt.weight", "3\n3\n");
  write_file(folder_ / "S5.txt.weight", "of the test part\n");
  settings_.cache = (folder_ / "copies").string();
  EXPECT_TRUE(load().train.contents().weights.empty());
  settings_.weights = true;
  for (int turn = 0; turn < 2; ++turn) {  // from the texts, and from their copies
    const ExpectedWarnings warnings;
    const DataParts parts = load();
    EXPECT_EQ(parts.train.contents().weights, (std::vector<float>{1.0F, 3.0F, 1.0F}));
    EXPECT_TRUE(parts.test.contents().weights.empty());
    ASSERT_EQ(warnings.messages().size(), 1U);
    EXPECT_TRUE(contains(warnings.messages()[0], "S1.txt.weight', and other files of its part have one"));
  }
  settings_.weights = false;
  EXPECT_TRUE(load().train.contents().weights.empty());
}

TEST_F(DataLoaderTest, ASparsePartMakesTheOthersSparse) {
  write_parts(folder_.path(), "1 qid:1 2:1 20000:4\n0 qid:1 5:1\n", "1 qid:1 2:1\n0 qid:1 5:1\n",
              "1 qid:2 3:1\n0 qid:2 5:1\n");
  const DataParts parts = load();
  for (const Dataset* part : {&parts.train, &*parts.vali, &parts.test}) {
    EXPECT_TRUE(part->is_sparse());
    EXPECT_EQ(part->features(), 20'000);
  }
}

TEST(Join, EqualsReadingConcatenatedTexts) {
  ExecutionContext context(2);
  const std::string a = "1 qid:1 1:1 # docid = x\n0 qid:2 3:1\n";
  const std::string b = "2 qid:3 1:2 2:5\n1 qid:1 1:3\n";
  EXPECT_TRUE(same_content(join_parts({read_text(a), read_text(b)}, context), read_text(a + b)));
  EXPECT_TRUE(same_content(select_queries(read_text(a + b), {2, 1}, context),
                           read_text("2 qid:3 1:2 2:5 3:0\n0 qid:2 3:1\n")));
}

TEST(RealData, FoldsHavePublishedCounts) {
  OLRANK_NEED_REAL_DATA();
  ExecutionContext context(2);
  const struct {
    const char* name;
    std::int64_t queries;
    std::int64_t docs;
    std::int64_t features;
    int max_grade;
  } sets[] = {{"mq2008", 784, 15'211, 46, 2},
              {"clueweb09-webis", 61, 26'646, 42, 4},
              {"mslr-sample", 90, 5'555 + 1'734 + 1'900, 136, 4}};
  for (const auto& set : sets) {
    const std::string folder = real_data_folder() + "/" + set.name;
    for (std::int64_t fold = 1; fold <= count_folds(folder); ++fold) {
      const DataParts parts = load_parts(settings_of(folder), fold, context);
      ASSERT_TRUE(parts.vali.has_value());
      EXPECT_EQ(parts.train.queries() + parts.vali->queries() + parts.test.queries(), set.queries)
          << set.name;
      EXPECT_EQ(parts.train.docs() + parts.vali->docs() + parts.test.docs(), set.docs) << set.name;
      EXPECT_EQ(parts.train.features(), set.features);
      EXPECT_EQ(std::max({parts.train.max_grade(), parts.vali->max_grade(), parts.test.max_grade()}),
                set.max_grade);
    }
  }
}

}  // namespace
}  // namespace olrank
