// Damaged and forged models and caches: refused in one sentence, or read to something that gives finite
// scores. Nothing crashes, and nothing takes memory out of proportion to the file.

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/data/dataset_cache.h"
#include "core/data/dataset_file.h"
#include "core/data/doc_table.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/metrics/score_files.h"
#include "core/online/online_ranker.h"
#include "jobs/experiment.h"
#include "jobs/rankings.h"
#include "jobs/study.h"
#include "models/export/export_format.h"
#include "models/files/model_scorer.h"
#include "models/ranker_factory.h"
#include "tests/core/data/letor_support.h"
#include "tests/fuzz/core_checks.h"
#include "tests/sim/small_trial.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/memory_limit.h"
#include "tests/support/mutated.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

using std::literals::operator""sv;

constexpr std::uint32_t kMutants = 500;
constexpr std::uint32_t kFlips = 300;  // of each kind of file
constexpr rlim_t kMoreMemory = 512'000'000;
constexpr std::int64_t kFeatures = 5;
constexpr std::string_view kTelling = "0123456789{}[]\":,.-eE\\\n \0\xFF"sv;
constexpr float kTellingValues[] = {
    std::numeric_limits<float>::quiet_NaN(),  std::numeric_limits<float>::infinity(),
    -std::numeric_limits<float>::max(),       std::numeric_limits<float>::max(),
    std::numeric_limits<float>::denorm_min(), -0.0F};

RngStream draws(std::uint32_t number) {
  return RngStream(make_key({.seed = 3, .purpose = Purpose::kProbe}), number);
}

std::string small_text() {
  std::string text;
  for (int doc = 0; doc < 40; ++doc) {
    text += fmt::format("{} qid:q{}", doc % 3, doc / 7);
    for (int feature = 1; feature <= kFeatures; ++feature)
      text += fmt::format(" {}:{}", feature, (doc * 7 + feature * 3) % 11 - 4);
    text += fmt::format(" # docid = d{}\n", doc);
  }
  return text;
}

/// An Error whose message is a sentence is a refusal; anything else leaves the test.
template <class Action>
bool refuses(const Action& action) {
  try {
    action();
    return false;
  } catch (const Error& error) {
    const std::string sentence = error.what();
    EXPECT_TRUE(sentence.ends_with('.') && sentence.size() < 2000 &&
                sentence.find('\n') == std::string::npos)
        << sentence;
    EXPECT_NE(error.exit_code(), ExitCode::kDone);
    return true;
  }
}

std::vector<std::string> models() {
  const LabelledQueries none;
  const ExecutionContext context;
  std::vector<std::string> files;
  for (const RankerKind kind : {RankerKind::kPairRank, RankerKind::kOlRankNet, RankerKind::kP2NeurRank}) {
    for (const Parameterisation parameterisation : {Parameterisation::kNtk, Parameterisation::kStandard}) {
      RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kRecommended);
      settings.network.width = 6;
      settings.network.depth = 3;
      settings.network.parameterisation = parameterisation;
      const auto ranker =
          make_ranker(settings, kFeatures - 1, TrialKeys::of(1, 1, "test"), 10, {.labels = &none});
      files.push_back(model_bytes(
          ranker->model(),
          {{"normalisation",
            R"({"kind":"zscore","features":5,"kept":[0,1,3,4],"means":[1,2,3,4,5],"scales":[1,1,2,1,1]})"},
           {"feature_names", R"(["a","b","c","d","e"])"}}));
    }
  }
  return files;
}

/// The file as earlier versions wrote it, so that what is forged in it is read.
std::string without_checksum(const std::string& file) {
  const SafetensorsContents model = parse_safetensors(file, "model");
  std::vector<NamedTensor> tensors;
  for (const auto& tensor : model.tensors) tensors.push_back({tensor.name, tensor.shape, tensor.values});
  return safetensors_bytes(tensors, model.metadata);
}

std::uint64_t header_bytes(std::string_view file) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, file.data(), sizeof bytes);
  return bytes;
}

/// The header forged, with its length put right: a number replaced, or bytes damaged.
std::string with_forged_header(const std::string& file, const std::vector<std::string>& others,
                               RngStream& rng) {
  static const std::vector<std::string> kNumbers = {"0",
                                                    "1",
                                                    "-1",
                                                    "4",
                                                    "65536",
                                                    "10000000",
                                                    "4294967295",
                                                    "1e308",
                                                    "18446744073709551615",
                                                    "9999999999999999999999",
                                                    "0.5",
                                                    "null"};
  std::string header = file.substr(8, header_bytes(file));
  if (rng.index(2) == 0) {
    header = mutated(header, others, kTelling, rng);
  } else {
    std::size_t begin =
        header.find_first_of("0123456789", rng.index(static_cast<std::uint32_t>(header.size())));
    if (begin == std::string::npos) begin = header.find_first_of("0123456789");
    const std::size_t end = header.find_first_not_of("0123456789", begin);
    header.replace(begin, end - begin, kNumbers[rng.index(static_cast<std::uint32_t>(kNumbers.size()))]);
  }
  const std::uint64_t length = header.size();
  std::string forged(sizeof length, '\0');
  std::memcpy(forged.data(), &length, sizeof length);
  return forged + header + file.substr(8 + header_bytes(file));
}

std::string with_telling_values(std::string file, RngStream& rng) {
  const std::size_t begin = 8 + header_bytes(file);
  const auto values = static_cast<std::uint32_t>((file.size() - begin) / sizeof(float));
  for (std::uint32_t left = 1 + rng.index(3); left > 0; --left) {
    const float value = kTellingValues[rng.index(std::size(kTellingValues))];
    std::memcpy(file.data() + begin + rng.index(values) * sizeof value, &value, sizeof value);
  }
  return file;
}

std::string damaged_model(const std::vector<std::string>& files, std::uint32_t number) {
  RngStream rng = draws(number);
  const std::string& file = files[rng.index(static_cast<std::uint32_t>(files.size()))];
  switch (number % 4) {
    case 0:
      return mutated(file, files, kTelling, rng);
    case 1:
      return with_telling_values(file, rng);
    default:
      return with_forged_header(file, files, rng);
  }
}

TEST(ModelMutants, AreRefusedOrGiveFiniteScores) {
  const TemporaryFolder folder;
  const Dataset data = read_text(small_text());
  std::vector<std::string> files;
  for (const std::string& file : models()) files.push_back(without_checksum(file));
  const std::string path = (folder / "model.safetensors").string();
  ExecutionContext context;
  const MemoryLimit limit(kMoreMemory);
  int accepted = 0;
  for (std::uint32_t number = 0; number < kMutants; ++number) {
    SCOPED_TRACE(number);
    write_file(path, damaged_model(files, number));
    EvalRequest request;
    request.model = path;
    const bool refused = refuses([&] { evaluate_ranking(request, data, context); });
    std::vector<double> scores;
    refuses([&] {
      const ModelScorer scorer(load_model(path, ModelCode::kRefuse));
      const Dataset inputs = fitted_to_model(data, scorer.model(), "data", context);
      std::string lists;
      write_ranked(scorer, ListFormat::kScores, inputs, context,
                   [&](std::string_view text) { lists += text; });
      scores = read_scores(TextLines::of_memory(lists, "scores"), data).scores;
      for (const auto& [format, name] : EnumNames<ExportFormat>::values)
        refuses([&, form = format] { exported(scorer.model(), form, "model"); });
    });
    EXPECT_EQ(refused, scores.empty());
    for (const double score : scores) ASSERT_TRUE(std::isfinite(score));
    accepted += refused ? 0 : 1;
  }
  EXPECT_GT(accepted, 50);
  EXPECT_LT(accepted, 450);
}

TEST(ModelMutants, FlippedBitsAreRefusedOrChangeNothing) {
  const Dataset data = read_text(small_text());
  ExecutionContext context;
  const auto scores_of = [&](const std::string& bytes) {
    return scores_of_all(ModelScorer(parse_model(bytes, "model", ModelCode::kRefuse)), data, context);
  };
  std::vector<std::string> files = models();
  files.push_back(model_bytes(
      additive_tensors(std::vector<float>{1, -2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3},
                       std::vector<InputPair>{{0, 3}}),
      {}));
  for (const std::string& file : files) {
    const std::vector<double> expected = scores_of(file);
    std::uint32_t refused = 0;
    for (std::uint32_t number = 0; number < kFlips; ++number) {
      RngStream rng = draws(number);
      std::vector<double> scores = expected;
      refused += refuses([&] { scores = scores_of(with_flipped_bit(file, rng)); }) ? 1 : 0;
      ASSERT_EQ(scores, expected) << number;
    }
    EXPECT_GT(refused, kFlips * 9 / 10);  // not of the checksum's own name
  }
}

/// Contents with one lie in them, under a fingerprint that is right for them.
Dataset forged_data(const Dataset& honest, std::vector<float>& values, std::vector<std::uint8_t>& grades,
                    std::vector<std::int64_t>& offsets, ThreadPool& pool, RngStream& rng) {
  Dataset::Contents contents = honest.contents();
  values.assign(contents.values.begin(), contents.values.end());
  grades.assign(contents.grades.begin(), contents.grades.end());
  offsets.assign(contents.offsets.begin(), contents.offsets.end());
  const auto any = [&](const auto& list) { return rng.index(static_cast<std::uint32_t>(list.size())); };
  switch (rng.index(4)) {
    case 0:
      values[any(values)] = kTellingValues[rng.index(std::size(kTellingValues))];
      break;
    case 1:
      grades[any(grades)] = static_cast<std::uint8_t>(rng.index(256));
      break;
    case 2:
      offsets[any(offsets)] = static_cast<std::int64_t>(rng.index(50)) - 5;
      break;
    default: {
      const std::string ids[] = {"", "a b", "a#b", "a\n0 qid:2 1:1", std::string("\0", 1), "q0", "fine"};
      contents.qids[any(contents.qids)] = ids[rng.index(std::size(ids))];
    }
  }
  contents.values = values;
  contents.grades = grades;
  contents.offsets = offsets;
  contents.fingerprint = content_fingerprint(contents, pool);
  return Dataset(std::move(contents));
}

TEST(CacheMutants, ForgedContentsAreRefusedOrSound) {
  const TemporaryFolder folder;
  ThreadPool pool(2);
  const Dataset honest = read_text(small_text());
  const std::string path = (folder / "data.olrank").string();
  std::vector<float> values;
  std::vector<std::uint8_t> grades;
  std::vector<std::int64_t> offsets;
  int refused = 0;
  for (std::uint32_t number = 0; number < kMutants; ++number) {
    SCOPED_TRACE(number);
    RngStream rng = draws(number);
    write_dataset_file(forged_data(honest, values, grades, offsets, pool, rng), {}, path);
    refused += refuses([&] { fuzz::check_dataset(DatasetCache().read(path, {}, pool)); }) ? 1 : 0;
  }
  EXPECT_GT(refused, 100);
  EXPECT_LT(refused, 450);
}

/// One trial of a real ranker, with everything that a resume reads.
ExperimentPlan trial_plan(const std::filesystem::path& out, std::int64_t rounds) {
  ExperimentPlan plan;
  plan.out = out;
  plan.rankers.push_back({"linear", "kind = linear\n", [](const RankerData& data, const TrialKeys& keys) {
                            return make_ranker(
                                RankerSettings::defaults(RankerKind::kPairRank, ProtocolName::kRecommended),
                                data.train.features, keys, 10);
                          }});
  plan.users.push_back({"perfect",
                        [](int max_grade) {
                          return make_user("perfect", ClickSettings::defaults(ProtocolName::kPaper), {},
                                           max_grade);
                        },
                        [](int) { return "perfect"; }});
  plan.folds = {1};
  plan.seeds = {1};
  plan.trial = {.rounds = rounds, .cutoff = 10, .eval_every = 2};
  plan.protocol = fmt::format("rounds = {}\n", rounds);
  plan.version = "test";
  static const auto fold = std::make_shared<const FoldData>(
      FoldData{small_trial_data("synth:small?queries=8&test_queries=3"), "data", {}, std::nullopt});
  plan.data = std::make_shared<FoldCache>([](std::int64_t) { return fold; });
  plan.existing = Existing::kResume;
  return plan;
}

/// Returns what the trial says, without its seconds.
std::vector<std::string> results_of(const std::filesystem::path& trial) {
  std::string curve;
  const std::string timed = read_file(trial / "curve.jsonl");
  for (std::size_t begin = 0; begin < timed.size(); begin = timed.find('\n', begin) + 1)
    curve += timed.substr(begin, timed.find(",\"seconds\"", begin) - begin) + "\n";
  const auto summary = parse_ordered_json(read_file(trial / "summary.json"));
  return {curve,
          read_file(trial / "queries.csv"),
          read_file(trial / "model.safetensors"),
          summary.at("last").dump(),
          summary.at("area").dump(),
          summary.at("result_fingerprint").dump()};
}

// A resume of the same rounds skips the finished trial, and one of more rounds goes on from its checkpoint.
TEST(TrialMutants, FlippedBitsAreRefusedOrChangeNothing) {
  constexpr std::int64_t kRounds = 4;
  const TemporaryFolder folder;
  const auto play = [&](const std::string& name, std::int64_t rounds) {
    const ExperimentPlan plan = trial_plan(folder / name, rounds);
    check_existing(plan);
    run_experiment(plan);
  };
  const std::filesystem::path inside = TrialIdentity{"linear", "perfect", 1, 1}.path();
  for (const std::int64_t rounds : {kRounds, 2 * kRounds}) {
    const std::string whole = fmt::format("whole{}", rounds);
    play(whole, rounds);
    const std::vector<std::string> expected = results_of(folder / whole / inside);
    for (const char* name : {"curve.jsonl", "summary.json", "queries.csv", "model.safetensors",
                             "checkpoint/state.safetensors"}) {
      SCOPED_TRACE(fmt::format("{} to round {}", name, rounds));
      std::uint32_t refused = 0;
      for (std::uint32_t number = 0; number < kFlips; ++number) {
        std::filesystem::remove_all(folder / "flipped");
        std::filesystem::copy(folder / fmt::format("whole{}", kRounds), folder / "flipped",
                              std::filesystem::copy_options::recursive);
        const std::filesystem::path file = folder / "flipped" / inside / name;
        RngStream rng = draws(number);
        write_file(file, with_flipped_bit(read_file(file), rng));
        if (refuses([&] { play("flipped", rounds); })) {
          ++refused;
        } else {
          ASSERT_EQ(results_of(folder / "flipped" / inside), expected) << number;
        }
      }
      // Only a trial that goes on reads its checkpoint. Some bytes of a file say nothing.
      const bool is_read = rounds > kRounds || !std::string_view(name).starts_with("checkpoint");
      EXPECT_GE(refused, is_read ? kFlips * 8 / 10 : 0);
    }
  }
}

TEST(CellMutants, FlippedBitsAreRefusedOrChangeNothing) {
  const TemporaryFolder folder;
  const WorkCells store(folder.path(),
                        {"olrank bench generalisation", "recipe", [](auto) { return true; }});
  const WorkCell cell{"one", "of these sizes"};
  const nlohmann::ordered_json result = {{"recipe", cell.recipe}, {"rows", {1.5, 2.25, 1e-3}}};
  store.write(cell, result);
  const std::string file = read_file(folder / "cells/one.json");
  std::uint32_t refused = 0;
  for (std::uint32_t number = 0; number < kFlips; ++number) {
    RngStream rng = draws(number);
    write_file(folder / "cells/one.json", with_flipped_bit(file, rng));
    nlohmann::ordered_json read;
    if (refuses([&] { read = store.read(cell); })) {
      ++refused;
    } else {
      ASSERT_EQ(read["rows"], result["rows"]) << number;
    }
  }
  EXPECT_GT(refused, kFlips * 8 / 10);
}

}  // namespace
}  // namespace olrank
