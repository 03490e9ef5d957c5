#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "core/data/data_loader.h"
#include "core/error.h"
#include "tests/core/data/letor_support.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

using nlohmann::json;

struct Outcome {
  int code = 0;
  std::string text;
};

Outcome run(std::vector<std::string> arguments, bool as_json = false) {
  CLI::App app;
  const Commands commands(app);
  arguments.insert(arguments.begin(), "data");
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
  OutputFlags output;
  output.json = as_json;
  testing::internal::CaptureStdout();
  try {
    const int code = commands.given().run(output);
    std::fflush(stdout);
    return {code, testing::internal::GetCapturedStdout()};
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
}

std::string some_text(int queries) {
  std::string text;
  for (int query = 0; query < queries; ++query) {
    for (int doc = 0; doc <= query % 4; ++doc) {
      text += std::to_string(doc % 3) + " qid:" + std::to_string(query) + " 1:" + std::to_string(query) +
              ".1 3:" + std::to_string(doc) + "e-7 # docid = D" + std::to_string(query) + "-" +
              std::to_string(doc) + "\n";
    }
  }
  return text;
}

TEST(DataInspect, RefusesWeightsThatAreNoFile) {
  const TemporaryFolder folder;
  const std::string in = (folder / "in.txt").string();
  const std::string weights = in + ".weight";
  write_file(in, some_text(5));
  const auto refusal = [&] { return message_of<Error>([&] { run({"inspect", in}); }); };
  const std::string sentence =
      ": This is a folder, a pipe, a device or a link to no file: remove or rename it, or make it a file "
      "with a "
      "weight for each document.";
  std::filesystem::create_directory(weights);
  EXPECT_EQ(refusal(), weights + sentence);
  std::filesystem::remove(weights);
  ASSERT_EQ(::mkfifo(weights.c_str(), 0600), 0);
  EXPECT_EQ(refusal(), weights + sentence);
  std::filesystem::remove(weights);
  std::filesystem::create_symlink("nowhere", weights);
  EXPECT_EQ(refusal(), weights + sentence);
  write_file(folder / "nowhere", "of another program\n");
  EXPECT_TRUE(refusal().starts_with(weights + ":1: A weight must be")) << refusal();
}

TEST(DataConvert, RoundTripsAreExact) {
  const TemporaryFolder folder;
  ThreadPool pool(1);
  const std::string in = (folder / "in.txt").string();
  write_file(in, some_text(50));
  std::string weights;
  for (int query = 0; query < 50; ++query) {
    for (int doc = 0; doc <= query % 4; ++doc) weights += std::to_string(query) + "e-1\n";
  }
  write_file(in + ".weight", weights);
  const Dataset expected = read_letor(in, {}, pool);
  std::string last = in;
  for (const char* name : {"a.olrank", "b.txt", "c.txt.gz", "d.olrank", "e.txt.zst", "f.txt"}) {
    const std::string out = (folder / name).string();
    EXPECT_EQ(run({"convert", last, out, "--threads", "1"}).code, 0);
    const Outcome seen = run({"inspect", out}, true);
    const json file = json::parse(seen.text)["files"][0];
    EXPECT_EQ(file["fingerprint"], expected.fingerprint().hex()) << name;
    EXPECT_EQ(file["weights"], (json{{"min", 0.0F}, {"max", 4.9F}}));
    last = out;
  }
  EXPECT_EQ(read_file(folder / "b.txt"), read_file(folder / "f.txt"));
  EXPECT_EQ(compression_of(read_file(folder / "c.txt.gz")), Compression::kGzip);
  EXPECT_EQ(compression_of(read_file(folder / "e.txt.zst")), Compression::kZstd);
  const ExpectedWarnings warnings;
  const Outcome sparse = run({"convert", in, "-", "--sparse"});
  ASSERT_EQ(warnings.messages().size(), 1U);
  EXPECT_TRUE(contains(warnings.messages()[0], "without the weights of its queries"));
  EXPECT_TRUE(same_content(read_text(sparse.text), read_text(some_text(50))));
  EXPECT_LT(sparse.text.size(), read_file(folder / "b.txt").size());
}

TEST(DataInspect, DrawsTheDiscriminantOfTheGrades) {
  const TemporaryFolder folder;
  const std::string picture = (folder / "plane.svg").string();
  const json seen = json::parse(run({"inspect", "synth:small", "--discriminant", picture}, true).text);
  EXPECT_GT(seen["separation"][0], seen["separation"][1]);
  const std::string drawn = read_file(picture);
  EXPECT_EQ(drawn.rfind("<svg", 0), 0U);
  for (const char* grade : {">grade 0<", ">grade 4<"}) EXPECT_TRUE(contains(drawn, grade)) << grade;
  EXPECT_EQ(message_of<InvalidArgument>([&] {
              run({"inspect", "synth:small", "synth:small", "--discriminant", picture});
            }),
            "--discriminant draws one data set, not 2. Name one PATH.");
}

TEST(DataConvert, KeepsTheOutputIfTheInputIsInvalid) {
  const TemporaryFolder folder;
  write_file(folder / "in.txt", "1 qid:1 0:1\n");
  write_file(folder / "out.txt", "earlier");
  EXPECT_THROW(run({"convert", (folder / "in.txt").string(), (folder / "out.txt").string()}), DataError);
  EXPECT_EQ(read_file(folder / "out.txt"), "earlier");
}

TEST(DataSplit, PartsAreDisjointAndComplete) {
  const TemporaryFolder folder;
  ExecutionContext context;
  write_file(folder / "in.txt", some_text(53));
  const Dataset all = read_text(some_text(53));
  for (const char* ending : {".txt", ".txt.gz", ".olrank"}) {
    const std::string out = (folder / (std::string("parts") + ending)).string();
    EXPECT_EQ(
        run({"split", (folder / "in.txt").string(), "--out", out, "--ending", ending, "--seed", "7"}).code,
        0);
    DataSettings settings;
    settings.source = out;
    settings.cache = "none";
    for (std::int64_t fold = 1; fold <= 5; ++fold) {
      const DataParts parts = load_parts(settings, fold, context);
      EXPECT_EQ(parts.train.queries() + parts.vali->queries() + parts.test.queries(), 53);
      EXPECT_EQ(parts.train.docs() + parts.vali->docs() + parts.test.docs(), all.docs());
      EXPECT_EQ(count_shared_queries(parts.test.contents().qids, parts.train.contents().qids) +
                    count_shared_queries(parts.vali->contents().qids, parts.train.contents().qids),
                0);
      EXPECT_NEAR(static_cast<double>(parts.test.queries()), 53 / 5.0, 1.0);
    }
  }
  // The seed determines the split.
  const auto first_part = [&](const char* seed, const char* name) {
    run({"split", (folder / "in.txt").string(), "--out", (folder / name).string(), "--seed", seed});
    return read_file(folder / name / "S1.txt");
  };
  EXPECT_EQ(first_part("7", "a"), read_file(folder / "parts.txt" / "S1.txt"));
  EXPECT_NE(first_part("8", "b"), read_file(folder / "parts.txt" / "S1.txt"));
}

TEST(DataSplit, SplitsByFractionsAndRefusesInvalidOnes) {
  const TemporaryFolder folder;
  const std::string in = (folder / "in.txt").string();
  write_file(in, some_text(20));
  const std::string out = (folder / "out").string();
  const Outcome outcome =
      run({"split", in, "--out", out, "--train", "0.7", "--vali", "0", "--test", "0.3"}, true);
  const json parts = json::parse(outcome.text);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0]["queries"], 14);
  EXPECT_EQ(parts[1]["queries"], 6);
  EXPECT_THROW(run({"split", in, "--out", out, "--train", "0.7", "--vali", "0", "--test", "0.3"}),
               InvalidArgument);
  EXPECT_THROW(run({"split", in, "--out", out + "2", "--train", "0.7"}), InvalidArgument);
  EXPECT_THROW(run({"split", in, "--out", out + "2", "--parts", "1"}), InvalidArgument);
  EXPECT_THROW(run({"split", in, "--out", out + "2", "--parts", "21"}), DataError);
  EXPECT_FALSE(std::filesystem::exists(out + "2"));
}

TEST(DataInspect, ReportsUnreadableFiles) {
  const TemporaryFolder folder;
  const std::string bad = (folder / "bad.txt").string();
  const std::string worse = (folder / "worse.txt").string();
  write_file(bad, "1 qid:1 1:1 1:2\n");
  write_file(worse, "one\n");
  const auto refusal_of = [](std::vector<std::string> arguments) {
    try {
      run(std::move(arguments));
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::kFailed);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal_of({"inspect", bad}), bad + ":1:13: Feature 1 appears twice in this line.");
  EXPECT_EQ(
      refusal_of({"inspect", bad, worse}).rfind("2 of 2 files cannot be read. First error: " + bad, 0), 0U);
}

TEST(DataInspect, ReportsProblemsWithLineNumbers) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt",
             "# heading\n0 qid:1 1:1 2:5 4:2 # docid = x\n0 qid:2 1:2 2:5\n1 qid:1 1:1 2:5 4:2\n\n"
             "0 qid:1 1:3 2:5 # docid = x\n0 qid:2 1:2 2:5 4:0 # docid = y\n");
  write_file(folder / "b.txt", "1 qid:2 1:1\n2 qid:3 zwei:1\n");
  write_file(folder / "c.txt", "1 qid:2 1:1\n");
  const Outcome outcome = run(
      {"inspect", (folder / "a.txt").string(), (folder / "b.txt").string(), (folder / "c.txt").string()},
      true);
  EXPECT_EQ(outcome.code, 1);
  const json seen = json::parse(outcome.text);
  const json& a = seen["files"][0];
  EXPECT_EQ(a["queries"], 2);
  EXPECT_EQ(a["docs"], 5);
  EXPECT_EQ(a["grades"], json({{"0", 4}, {"1", 1}}));
  EXPECT_EQ(a["docs_per_query"]["median"], 2.5);
  EXPECT_EQ(a["queries_without_relevant"], 1);
  EXPECT_EQ(a["queries_scattered"], 2);
  EXPECT_EQ(a["missing_features"], json({3}));
  EXPECT_EQ(a["constant_features"], json({2}));
  EXPECT_EQ(a["duplicate_docs"], 2);
  EXPECT_EQ(a["contradicting_docs"], 1);
  EXPECT_EQ(a["duplicate_names"], 1);
  const auto line_of = [&](const std::string& words) {
    for (const json& finding : a["findings"]) {
      if (finding["sentence"].get<std::string>().find(words) != std::string::npos)
        return finding["line"].get<int>();
    }
    return -1;
  };
  EXPECT_EQ(line_of("same features as line 2, but grade 1 instead of 0"), 4);
  EXPECT_EQ(line_of("same document name as line 2"), 6);
  EXPECT_EQ(line_of("same features and grade as line 3"), 7);
  EXPECT_EQ(line_of("Query 1 continues after"), 4);
  EXPECT_TRUE(contains(seen["files"][1]["error"].get<std::string>(),
                       "b.txt:2:9: Expected a feature as number:value, not 'zwei:1'"));
  EXPECT_EQ(seen["shared_queries"][0]["queries"], 1);
  EXPECT_TRUE(contains(run({"inspect", (folder / "a.txt").string()}).text, "features always 0"));
}

TEST(DataInspect, CountsLinesPastMarksCommentsAndLineEnds) {
  const TemporaryFolder folder;
  const std::string text =
      "# qid:9 in a comment\r\n \t\r\n0 qid:1 1:1 # qid:7\r\n  # 0 qid:8 1:1\r\n0\tqid:1#\r\n0 qid:1 1:1";
  for (const std::string mark : {"", "\xEF\xBB\xBF"}) {
    write_file(folder / "a.txt", mark + text);
    const json seen = json::parse(run({"inspect", (folder / "a.txt").string()}, true).text)["files"][0];
    EXPECT_EQ(seen["queries_scattered"], 0);
    ASSERT_EQ(seen["findings"].size(), 2U) << seen;
    EXPECT_EQ(seen["findings"][1]["line"], 6);
    EXPECT_EQ(seen["findings"][1]["sentence"], "Query 1, document 3: same features and grade as line 3.");
  }
}

TEST(DataSynth, WritesTheDataThatRunsGenerate) {
  const TemporaryFolder folder;
  ExecutionContext context;
  const std::string out = (folder / "small").string();
  const Outcome outcome = run({"synth", "small?queries=5&seed=3", "--out", out}, true);
  EXPECT_EQ(outcome.code, 0);
  DataSettings settings;
  settings.cache = "none";
  settings.source = "synth:small?queries=5&seed=3";
  const DataParts generated = load_parts(settings, 1, context);
  settings.source = out;
  const DataParts read = load_parts(settings, 1, context);
  EXPECT_EQ(read.train.fingerprint(), generated.train.fingerprint());
  EXPECT_EQ(read.vali.value().fingerprint(), generated.vali.value().fingerprint());
  EXPECT_EQ(read.test.fingerprint(), generated.test.fingerprint());
  EXPECT_EQ(json::parse(outcome.text)[0]["fingerprint"], generated.train.fingerprint().hex());
  EXPECT_THROW(run({"synth", "small?queries=5", "--out", out}), InvalidArgument);  // the files exist
  EXPECT_THROW(run({"synth", "smal", "--out", (folder / "x").string()}), InvalidArgument);
}

TEST(DataSynth, OverwritesOnlyWithForce) {
  const TemporaryFolder folder;
  const std::string out = (folder / "made").string();
  const std::vector<std::string> made = {"synth", "small?queries=8&test_queries=4", "--out", out};
  const std::string told = run(made).text;
  EXPECT_EQ(told.find("Wrote " + out + "/train.txt: 8 queries, "), 0U) << told;
  EXPECT_THROW(run(made), InvalidArgument);
  std::vector<std::string> again = {"synth", "small?queries=9&test_queries=4", "--out", out, "--force"};
  EXPECT_EQ(run(again).text.find("Wrote " + out + "/train.txt: 9 queries, "), 0U);
}

TEST(DataInspect, ComparesFeaturesOfParts) {
  const TemporaryFolder folder;
  write_file(folder / "train.txt", "1 qid:1 1:1 2:3\n0 qid:1 2:1\n");
  write_file(folder / "test.txt", "0 qid:2 5:1\n1 qid:2 1:1\n");
  const Outcome wider = run({"inspect", folder.path().string()});
  EXPECT_EQ(wider.code, 1);
  EXPECT_TRUE(contains(wider.text, "The test set has 5 features, 3 more than the training set (2)"));
  write_file(folder / "test.txt", "0 qid:2 1:1\n1 qid:2 1:2\n");
  const Outcome narrower = run({"inspect", folder.path().string()}, true);
  EXPECT_EQ(narrower.code, 0);
  EXPECT_EQ(json::parse(narrower.text)["widths"].size(), 1U);
}

}  // namespace
}  // namespace olrank
