#include "jobs/experiment.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <latch>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/runtime/progress.h"
#include "jobs/job_folder.h"
#include "report/outputs.h"
#include "tests/sim/small_trial.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

/// Returns what makes such a ranker for each trial.
template <class Ranker, class... Arguments>
auto making(Arguments... arguments) {
  return [=](const RankerData& data, const TrialKeys&) {
    return std::make_unique<Ranker>(data.train.features, arguments...);
  };
}

/// Two rankers, two users, three seeds, one fold: twelve trials of 30 rounds.
ExperimentPlan small_plan(const std::filesystem::path& out) {
  ExperimentPlan plan;
  plan.out = out;
  for (const char* name : {"one", "two"}) {
    plan.rankers.push_back(
        {name, std::string("kind = ") + name + "\n", making<StubRanker>(name == std::string("two"))});
  }
  for (const std::string name : {"perfect", "informational"}) {
    plan.users.push_back({name,
                          [name](int max_grade) {
                            return make_user(name, ClickSettings::defaults(ProtocolName::kPaper), {},
                                             max_grade);
                          },
                          [name](int) { return name; }});
  }
  plan.folds = {1};
  plan.seeds = {1, 2, 7};
  plan.trial = {.rounds = 30, .cutoff = 10, .eval_every = 8};
  plan.protocol = "rounds = 30\n";
  plan.version = "test";
  plan.data = std::make_shared<FoldCache>([](std::int64_t) {
    return std::make_shared<const FoldData>(
        FoldData{small_trial_data("synth:small?queries=12&test_queries=5"), "data", {}, std::nullopt});
  });
  plan.checkpoint_every = 7;
  return plan;
}

/// Keeps the trials of the small plan's first ranker with its first user alone.
ExperimentPlan plan_of_one(const std::filesystem::path& out, std::vector<std::int64_t> seeds) {
  ExperimentPlan plan = small_plan(out);
  plan.rankers.resize(1);
  plan.users.resize(1);
  plan.seeds = std::move(seeds);
  return plan;
}

std::vector<std::string> lines_in(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

nlohmann::json summary_in(const std::filesystem::path& trial) {
  return nlohmann::json::parse(read_file(trial / "summary.json"));
}

TEST(ExperimentTest, OnlyRankersThatNeedLabelsGetGrades) {
  const TemporaryFolder folder;
  ExperimentPlan plan = small_plan(folder.path());
  plan.seeds = {1};
  plan.rankers[1].needs_labels = true;
  std::int64_t made[2] = {0, 0};
  for (std::size_t number = 0; number < 2; ++number) {
    plan.rankers[number].make = [number, &made, &plan](const RankerData& data, const TrialKeys&) {
      const LabelledQueries* labels = data.labels;
      ++made[number];
      EXPECT_EQ(labels != nullptr, number == 1);
      if (labels != nullptr) {
        const Dataset& train = plan.data->get(1)->data.train;
        EXPECT_EQ(labels->queries(), train.queries());
        EXPECT_EQ(labels->grades_of(3).of_doc.data(), train.grades_of(3).data());
        EXPECT_EQ(&labels->data(), &train);
      }
      return std::make_unique<StubRanker>(data.train.features);
    };
  }
  EXPECT_EQ(run_experiment(plan).finished, 4);
  EXPECT_EQ(made[0], 2);
  EXPECT_EQ(made[1], 2);
  // The ranker of a finished trial is not made again, as that may mean to train it.
  plan.existing = Existing::kResume;
  EXPECT_EQ(run_experiment(plan).finished_before, 4);
  EXPECT_EQ(made[1], 2);
}

std::string table_of(const std::filesystem::path& out) {
  const std::vector<TrialResults> trials = read_finished_trials(out);
  return summary_csv(finished_trials(trials));
}

/// A trial's curve without its seconds.
std::string curve_of(const std::filesystem::path& trial) {
  std::string kept;
  for (const std::string& line : lines_in(read_file(trial / "curve.jsonl")))
    kept += line.substr(0, line.find(",\"seconds\"")) + "\n";
  return kept;
}

/// Waits in its first learn() for the others.
class RankerThatMeetsOthers : public StubRanker {
 public:
  RankerThatMeetsOthers(std::int64_t features, std::latch& meet) : StubRanker(features), meet_(meet) {}
  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
    if (std::exchange(waits_, false)) meet_.arrive_and_wait();
    return StubRanker::learn(context, feedback);
  }

 private:
  std::latch& meet_;
  bool waits_ = true;
};

TEST(ExperimentTest, ParallelTrialsHaveSlotsOfTheirOwn) {
  const TemporaryFolder folder;
  ExperimentPlan plan = plan_of_one(folder.path(), {1, 2, 7});
  plan.jobs = 3;  // as many as trials
  std::latch meet(plan.jobs);
  std::mutex mutex;
  std::multiset<std::int64_t> slots;
  plan.rankers[0].make = [&](const RankerData& data, const TrialKeys&) {
    const std::lock_guard lock(mutex);
    slots.insert(data.slot);
    return std::make_unique<RankerThatMeetsOthers>(data.train.features, meet);
  };
  EXPECT_EQ(run_experiment(plan).finished, 3);
  EXPECT_EQ(slots, (std::multiset<std::int64_t>{0, 1, 2}));
}

/// Scores with a copy of what it knew when it was asked, and takes its time.
class JudgedBeside : public StubRanker {
 public:
  JudgedBeside(std::int64_t features, bool certain, std::int64_t* rounds_of_all)
      : StubRanker(features, certain), rounds_of_all_(rounds_of_all) {}
  bool begin_scores(FeatureMatrix docs) override {
    begun_.resize(docs.docs);
    ExecutionContext context;
    score(context, docs, begun_);
    asked_ = 0;
    return true;
  }
  bool scores_ready() override { return ++asked_ > 3; }
  void finish_scores(std::span<float> scores) override {
    std::copy(begun_.begin(), begun_.end(), scores.begin());
  }
  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
    if (rounds_of_all_ != nullptr && ++*rounds_of_all_ % 29 == 0) std::raise(SIGTERM);
    return StubRanker::learn(context, feedback);
  }

 private:
  std::int64_t* rounds_of_all_;
  std::vector<float> begun_;
  int asked_ = 0;
};

TEST(ExperimentTest, ScoringInParallelAndInterruptionsKeepCurves) {
  const TemporaryFolder folder;
  ExperimentPlan plain = small_plan(folder / "plain");
  run_experiment(plain);
  for (const bool stopped : {false, true}) {
    ExperimentPlan beside = small_plan(folder / (stopped ? "stopped" : "beside"));
    beside.existing = Existing::kResume;
    std::int64_t rounds = 0;
    for (ExperimentRanker& ranker : beside.rankers)
      ranker.make = making<JudgedBeside>(ranker.name == "two", stopped ? &rounds : nullptr);
    int runs = 1;
    while (run_experiment(beside).signal != 0) ASSERT_LT(++runs, 40);
    EXPECT_EQ(runs > 5, stopped);
    EXPECT_EQ(rounds, stopped ? 12 * 30 : 0);  // no round was played twice
    for (const TrialIdentity& identity : trials_of(plain)) {
      EXPECT_EQ(curve_of(beside.out / identity.path()), curve_of(plain.out / identity.path()))
          << identity.path() << stopped;
    }
    EXPECT_EQ(table_of(beside.out), table_of(plain.out));
  }
}

TEST(ExperimentTest, OtherRecipeDoesNotCountAsFinished) {
  const TemporaryFolder folder;
  ExperimentPlan plan = small_plan(folder.path());
  run_experiment(plan);
  plan.version = "another";  // which alone is no difference
  EXPECT_EQ(run_experiment(plan).finished_before, 12);
  plan.rankers[0].settings = "kind = three\n";
  const std::string message = message_of<InvalidArgument>([&] { run_experiment(plan); });
  EXPECT_TRUE(contains(message, "differs in the ranker: 'kind = one' there, 'kind = three' here"));
}

TEST(ExperimentTest, SummariesHaveDocumentedFields) {
  const TemporaryFolder folder;
  ExperimentPlan plan = small_plan(folder.path());
  plan.seeds = {7};
  run_experiment(plan);
  const auto trial = folder.path() / TrialIdentity{"two", "perfect", 1, 7}.path();
  const auto summary = summary_in(trial);
  std::vector<nlohmann::json> lines;
  for (const std::string& line : lines_in(read_file(trial / "curve.jsonl")))
    lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 5U);  // 0, 8, 16, 24, 30
  auto last = lines.back();
  last.erase("seconds");
  EXPECT_EQ(summary.at("last"), last);
  EXPECT_EQ(summary.at("rounds"), 30);
  EXPECT_EQ(summary.at("recipe").at("trial"), "fold 1, seed 7");
  // The area under the curve by trapezoids, over the rounds; six numbers below 30 in double.
  for (const char* side : {"offline", "online"}) {
    double area = 0.0;
    for (std::size_t i = 1; i < lines.size(); ++i) {
      const double width = lines[i].at("round").get<double>() - lines[i - 1].at("round").get<double>();
      area += width * 0.5 *
              (lines[i].at(side).at("ndcg@10").get<double>() +
               lines[i - 1].at(side).at("ndcg@10").get<double>());
    }
    EXPECT_TRUE(std::fabs(summary.at("area").at(side).get<double>() - area / 30.0) <= 1e-14) << side;
  }
  for (const char* key : {"parameters", "seconds", "rounds_per_second", "seconds_by_stage",
                          "peak_memory_bytes", "result_fingerprint", "version", "commit"}) {
    EXPECT_TRUE(summary.contains(key)) << key;
  }
  EXPECT_TRUE(std::filesystem::exists(trial / "model.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(trial / "checkpoint"));
}

// The set-up of a trial is no stage of its rounds.
TEST(ExperimentTest, SecondsIncludeSetUpAndEarlierRuns) {
  static constexpr double kSetUp = 0.03;
  const TemporaryFolder folder;
  ExperimentPlan plan = plan_of_one(folder.path(), {7});
  plan.rankers[0].make = [](const RankerData& data, const TrialKeys&) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kSetUp));
    return std::make_unique<StubRanker>(data.train.features, false);
  };
  const auto summary_of_run = [&] {
    EXPECT_EQ(run_experiment(plan).finished, 1);
    return summary_in(folder.path() / TrialIdentity{"one", "perfect", 1, 7}.path());
  };
  const auto first = summary_of_run();
  double stages = 0.0;
  for (const auto& stage : first.at("seconds_by_stage")) stages += stage.get<double>();
  const double seconds = first.at("seconds");
  EXPECT_GE(seconds, stages + kSetUp);
  EXPECT_DOUBLE_EQ(first.at("rounds_per_second"), 30.0 / seconds);
  plan.existing = Existing::kResume;
  plan.trial.rounds = 34;
  plan.protocol = "rounds = 34\n";
  EXPECT_GE(summary_of_run().at("seconds").get<double>(), seconds + kSetUp);
}

/// Takes its time whenever its state is saved.
class SlowToSave : public StubRanker {
 public:
  static constexpr double kSave = 0.05;
  SlowToSave(std::int64_t features, int* saves) : StubRanker(features), saves_(saves) {}
  void save(StateWriter& state) const override {
    ++*saves_;
    std::this_thread::sleep_for(std::chrono::duration<double>(kSave));
    StubRanker::save(state);
  }

 private:
  int* saves_;
};

TEST(ExperimentTest, CheckpointsAreAStageAndTheLastStateIsNoTimeOfTheTrial) {
  for (const std::int64_t checkpoint_every : {10, 1000}) {
    const TemporaryFolder folder;
    ExperimentPlan plan = plan_of_one(folder.path(), {7});
    plan.checkpoint_every = checkpoint_every;
    int saves = 0;
    plan.rankers[0].make = making<SlowToSave>(&saves);
    const Stopwatch watch;
    EXPECT_EQ(run_experiment(plan).finished, 1);
    const double all = watch.seconds();
    const auto summary = summary_in(folder.path() / TrialIdentity{"one", "perfect", 1, 7}.path());
    const int on_the_way = checkpoint_every == 10 ? 2 : 0;
    EXPECT_EQ(saves, on_the_way + 2);
    EXPECT_GE(all - summary.at("seconds").get<double>(), 2 * SlowToSave::kSave);
    const auto& stages = summary.at("seconds_by_stage");
    EXPECT_EQ(stages.contains("save"), on_the_way > 0);
    EXPECT_GE(stages.value("save", 0.0), on_the_way * SlowToSave::kSave);
  }
}

TEST(ExperimentTest, ReplacesOnlyTrialsThatTheManifestLists) {
  const TemporaryFolder folder;
  ExperimentPlan plan = small_plan(folder.path());
  const OutputFolder out(folder.path(), FolderKind::kExperiment);
  run_experiment(plan);
  plan.existing = Existing::kReplace;
  out.write_manifest(nlohmann::ordered_json::object(), "test", {trials_of(plan).front()});
  EXPECT_TRUE(contains(message_of<InvalidArgument>([&] { settle_existing(plan, out); }), "does not list"));
  EXPECT_EQ(read_finished_trials(folder.path()).size(), 12U);
  out.write_manifest(nlohmann::ordered_json::object(), "test", trials_of(plan));
  const auto trial = folder.path() / trials_of(plan).front().path();
  write_file_atomically(trial / "thesis.txt", "mine");
  write_file_atomically(trial / "checkpoint/.thesis.txt.tmp-1-2", "mine");
  write_file_atomically(trial / ".curve.jsonl.tmp-1-2", "a killed run's");
  settle_existing(plan, out);
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path() / "trials"))
    if (entry.is_regular_file()) left.insert(entry.path().filename());
  EXPECT_EQ(left, (std::set<std::string>{"thesis.txt", ".thesis.txt.tmp-1-2"}));
}

TEST(ExperimentTest, ReplacesNothingBehindSymbolicLinks) {
  for (const char* linked : {"trials", "trials/one/perfect", "trials/one/perfect/fold1/seed1"}) {
    const TemporaryFolder folder;
    ExperimentPlan plan = plan_of_one(folder / "out", {1, 2});
    const OutputFolder out(plan.out, FolderKind::kExperiment);
    run_experiment(plan);
    out.write_manifest(nlohmann::ordered_json::object(), "test", trials_of(plan));
    std::filesystem::rename(plan.out / linked, folder / "elsewhere");
    std::filesystem::create_symlink(folder / "elsewhere", plan.out / linked);
    plan.existing = Existing::kReplace;
    EXPECT_TRUE(
        contains(message_of<InvalidArgument>([&] { settle_existing(plan, out); }), "is a symbolic link"));
    EXPECT_THROW(remove_job(plan.out, trials_of(plan).front().path()), IoError);  // a link that comes later
    EXPECT_EQ(read_finished_trials(plan.out).size(), 2U);
  }
}

TEST(ExperimentTest, ContinuesWithSameResultsAfterKill) {
  // An error of another kind leaves the trial as a kill would: with the checkpoint of some rounds ago,
  // and maybe an evaluation behind it. Checkpoints fall on rounds 7, 14, …; evaluations on 8, 16, 24
  // and 30.
  struct Dying : StubRanker {
    Dying(std::int64_t features, std::uint32_t round) : StubRanker(features), last(round) {}
    LearnReport learn(RoundContext& context, const Feedback& feedback) override {
      if (feedback.round == last) throw std::runtime_error("gone");
      return StubRanker::learn(context, feedback);
    }
    std::uint32_t last;
  };
  const TemporaryFolder folder;
  const auto dying = [&](const std::string& out, std::uint32_t dies_in) {
    ExperimentPlan plan = plan_of_one(folder / out, {2});
    plan.existing = Existing::kResume;
    plan.rankers[0].make = making<Dying>(dies_in);
    return plan;
  };
  const TrialIdentity identity{"one", "perfect", 1, 2};
  run_experiment(dying("whole", 0));
  const std::string whole = curve_of(folder / "whole" / identity.path());
  EXPECT_EQ(std::count(whole.begin(), whole.end(), '\n'), 5);
  for (std::uint32_t round = 1; round <= 30; ++round) {
    const std::string out = std::to_string(round);
    EXPECT_THROW(run_experiment(dying(out, round)), std::runtime_error);
    EXPECT_TRUE(read_finished_trials(folder / out).empty());
    EXPECT_EQ(run_experiment(dying(out, 0)).finished, 1);
    ASSERT_EQ(curve_of(folder / out / identity.path()), whole) << round;
    ASSERT_EQ(table_of(folder / out), table_of(folder / "whole")) << round;
  }
}

/// Fails in round 12.
template <class Failure>
class Failing : public StubRanker {
 public:
  using StubRanker::StubRanker;
  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
    if (feedback.round == 12) throw Failure("The round has failed.");
    return StubRanker::learn(context, feedback);
  }
};

template <class Failure>
void expect_only_its_trials_end() {
  const TemporaryFolder folder;
  ExperimentPlan plan = small_plan(folder.path());
  plan.rankers[1].make = making<Failing<Failure>>();
  const ExpectedWarnings warnings;
  const ExperimentOutcome outcome = run_experiment(plan);
  EXPECT_EQ(outcome.finished, 6);
  ASSERT_EQ(outcome.failures.size(), 6U);
  EXPECT_EQ(warnings.messages().size(), 6U);
  EXPECT_EQ(outcome.failures[0], "trials/two/perfect/fold1/seed1: The round has failed.");
  EXPECT_EQ(read_finished_trials(folder.path()).size(), 6U);
  // The checkpoint that was saved before is still there.
  EXPECT_TRUE(has_checkpoint(folder.path() / "trials/two/perfect/fold1/seed1"));
}

TEST(ExperimentTest, NumericErrorsAndFullGpusEndOnlyTheirTrials) {
  expect_only_its_trials_end<NumericError>();
  expect_only_its_trials_end<OutOfDeviceMemory>();
}

TEST(ExperimentTest, EstimateRunsInMemory) {
  const TemporaryFolder folder;
  const ExperimentPlan plan = small_plan(folder / "never");
  const auto fold = plan.data->get(1);
  const TrialEstimate estimate = estimate_trial(plan, trials_of(plan)[0], *fold, 3600.0);
  EXPECT_EQ(estimate.rounds_tried, 30);  // all of them, since an hour is enough
  EXPECT_EQ(estimate.parameters, fold->data.train.features());
  EXPECT_GT(estimate.seconds, 0.0);
  EXPECT_GT(estimate.state_bytes, 4 * fold->data.train.features());
  EXPECT_FALSE(std::filesystem::exists(plan.out));
  EXPECT_EQ(estimate_trial(plan, trials_of(plan)[0], *fold, 0.0).rounds_tried, 0);
}

TEST(SummaryTableTest, IndependentOfWriteOrder) {
  const TemporaryFolder folder;
  ExperimentPlan plan = small_plan(folder / "forward");
  run_experiment(plan);
  ExperimentPlan backward = small_plan(folder / "backward");
  std::reverse(backward.rankers.begin(), backward.rankers.end());
  std::reverse(backward.users.begin(), backward.users.end());
  std::reverse(backward.seeds.begin(), backward.seeds.end());
  run_experiment(backward);
  EXPECT_EQ(table_of(backward.out), table_of(plan.out));
  const std::vector<TrialResults> trials = read_finished_trials(plan.out);
  ASSERT_EQ(trials.size(), 12U);
  EXPECT_TRUE(
      std::is_sorted(trials.begin(), trials.end(),
                     [](const TrialResults& a, const TrialResults& b) { return a.identity < b.identity; }));
  // Users and seeds differ, so results do.
  std::set<std::string> results;
  for (const TrialResults& trial : trials) results.insert(trial.fingerprint);
  EXPECT_EQ(results.size(), 12U);
}

/// Shows the documents by ascending grade: as bad as it gets.
class BackwardRanker : public StubRanker {
 public:
  BackwardRanker(std::int64_t features, std::shared_ptr<const FoldData> fold)
      : StubRanker(features), fold_(std::move(fold)) {}
  RankedList rank(RoundContext&, const QueryDocs& query, std::uint32_t) override {
    const auto grades = fold_->data.train.grades_of(query.query);
    list_.resize(grades.size());
    std::iota(list_.begin(), list_.end(), 0);
    std::stable_sort(list_.begin(), list_.end(),
                     [&](std::int32_t a, std::int32_t b) { return grades[a] < grades[b]; });
    return {list_, std::nullopt};
  }

 private:
  std::shared_ptr<const FoldData> fold_;
  std::vector<std::int32_t> list_;
};

TEST(ExperimentTest, TellsOfTrialsThatAreWorseThanRandom) {
  const TemporaryFolder folder;
  ExperimentPlan plan = small_plan(folder / "whole");
  plan.seeds = {1};
  plan.trial.rounds = 230;
  plan.checkpoint_every = 100;
  plan.rankers[1].make = making<BackwardRanker>(plan.data->get(1));
  plan.rankers[1].advice = "a larger alpha than 0.25";
  std::vector<std::string> told;
  {
    const ExpectedWarnings warnings;
    EXPECT_EQ(run_experiment(plan).finished, 4);
    told = warnings.messages();
  }
  ASSERT_EQ(told.size(), 2U);
  EXPECT_TRUE(
      contains(told[0], "trials/two/perfect/fold1/seed1: The mean NDCG@10 of the last 200 lists, 0."))
      << told[0];
  EXPECT_TRUE(told[0].ends_with("; try a larger alpha than 0.25.")) << told[0];
  const std::vector<TrialResults> results = read_finished_trials(plan.out);
  const TrialList trials = finished_trials(results);
  ASSERT_EQ(trials.size(), 4U);
  for (const TrialResults* trial : trials) {
    EXPECT_EQ(trial->notes.size(), trial->identity.ranker == "two" ? 1U : 0U);
    const double random = trial->last[Measure::kRandomOfflineNdcg];
    EXPECT_TRUE(random > 0.0 && random < 1.0);
  }
  const std::string table = summary_text(trials, {"paper", "zero", {1}, {}});
  EXPECT_TRUE(contains(table, "Note: " + told[0] + "\n"));
  EXPECT_TRUE(contains(table, "informational  (random order)"));
  EXPECT_TRUE(contains(table, "perfect        (random order)"));
  const auto means = nlohmann::json::parse(summary_means_json(trials, {"paper", "zero", {1}, {}}));
  EXPECT_EQ(means[1].at("notes").size(), 1U);
  EXPECT_EQ(means[1].at("random_offline_ndcg").at("mean"),
            results.front().last[Measure::kRandomOfflineNdcg]);
}

TEST(SummaryTableTest, FieldsMatchHeader) {
  TrialResults trial;
  trial.identity = {"full", "perfect", 2, 3};
  trial.rounds = 100;
  trial.pairs = 50;
  trial.cutoff = 5;
  trial.parameters = 46;
  trial.last[Measure::kOfflineNdcg] = 0.1;
  trial.last[Measure::kOnlineNdcg] = 1.0 / 3.0;
  trial.last[Measure::kRegret] = 7;
  trial.last[Measure::kBlocks] = 2.5;
  trial.offline_area = 0.25;
  trial.online_area = 0.5;
  trial.fingerprint = "abc";
  EXPECT_EQ(summary_csv({&trial}),
            "ranker,clicks,fold,seed,rounds,pairs,parameters,offline_ndcg@5,online_ndcg@5,cndcg@5,regret,"
            "certain_share,blocks,offline_area,online_area,result_fingerprint,random_offline_ndcg@5,"
            "random_online_ndcg@5,random_cndcg@5\n"
            "full,perfect,2,3,100,50,46,0.1,0.3333333333333333,,7,,2.5,0.25,0.5,abc,,,\n");
  const ResultConventions about = {"paper", "zero", {3, 4}, {"ranker full: alpha = 1 (paper: 0.1)"}};
  const ResultConventions more = {
      "paper",
      "zero",
      {3},
      {"clicks: noise = 1 (paper: 0)", "ranker a: x = 1 (paper: 2)", "ranker a: y = 3 (paper: 4)"}};
  EXPECT_TRUE(contains(summary_text({&trial}, more),
                       "  clicks: noise = 1 (paper: 0)\n  ranker a: x = 1 (paper: 2), y = 3 (paper: 4)\n"));
  EXPECT_EQ(conventions_text(about),
            "protocol paper, queries without a relevant document: zero, seeds 3, 4; ranker full: alpha = 1 "
            "(paper: 0.1)");
  const std::string table = summary_text({&trial}, about);
  for (const char* told :
       {"Protocol paper", "document: zero", "seeds 3, 4", "no intervals, because there is only one seed",
        "  ranker full: alpha = 1 (paper: 0.1)\n"})
    EXPECT_TRUE(contains(table, told)) << told;
  EXPECT_EQ(summary_text({}, about), "No trial has finished yet.\n");
  TrialResults other = trial;
  other.identity.seed = 4;
  other.last[Measure::kOfflineNdcg] = 0.3;
  const auto means = nlohmann::json::parse(summary_means_json({&trial, &other}, about));
  ASSERT_EQ(means.size(), 1U);
  EXPECT_EQ(means[0].at("trials"), 2);
  EXPECT_EQ(means[0].at("protocol"), "paper");
  EXPECT_EQ(means[0].at("empty_queries"), "zero");
  EXPECT_EQ(means[0].at("seeds"), nlohmann::json({3, 4}));
  EXPECT_EQ(means[0].at("deviations").size(), 1U);
  EXPECT_TRUE(std::fabs(means[0].at("offline_ndcg").at("mean").get<double>() - 0.2) <= 1e-15);
  // Two values differ from their mean by 0.1 each: √(0.02/1).
  EXPECT_TRUE(std::fabs(means[0].at("offline_ndcg").at("sd").get<double>() - std::sqrt(0.02)) <= 1e-15);
  EXPECT_TRUE(
      nlohmann::json::parse(summary_means_json({&trial}, about))[0].at("offline_ndcg").at("sd").is_null());
}

TEST(SummaryTest, AddedMetricsAreColumnsAfterTheOthers) {
  const auto trial_of = [](std::int64_t seed, const std::map<std::string, double>& metrics) {
    TrialResults trial;
    trial.identity = {"full", "perfect", 2, seed};
    trial.cutoff = 10;
    for (const auto& [name, value] : metrics) trial.last[measure_of(*metric_named(name))] = value;
    return trial;
  };
  const TrialResults trial = trial_of(3, {{"map", 0.25}, {"ndcg@10", 0.5}, {"ndcg@5", 0.75}});
  const TrialResults other = trial_of(4, {{"map", 0.75}, {"mrr", 0.125}});
  const TrialResults plain = trial_of(3, {});
  const std::vector<std::string> lines = lines_in(summary_csv({&trial, &other}));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(lines[0].ends_with(",random_cndcg@10,offline_ndcg@5,offline_map,offline_mrr")) << lines[0];
  EXPECT_TRUE(lines[1].ends_with(",0.75,0.25,")) << lines[1];
  EXPECT_TRUE(lines[2].ends_with(",,0.75,0.125")) << lines[2];
  const auto means = nlohmann::json::parse(summary_means_json({&trial, &other}, {}));
  EXPECT_EQ(means[0].at("metrics").at("map").at("mean"), 0.5);
  EXPECT_FALSE(means[0].at("metrics").contains("ndcg@10"));
  EXPECT_FALSE(nlohmann::json::parse(summary_means_json({&plain}, {}))[0].contains("metrics"));
}

}  // namespace
}  // namespace olrank
