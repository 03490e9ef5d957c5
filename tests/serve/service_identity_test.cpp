#include "serve/service_identity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/feedback/preference_pairs.h"
#include "core/io/state_archive.h"
#include "models/files/model_scorer.h"
#include "models/ranker_kinds.h"
#include "serve/access_log.h"
#include "serve/service_setup.h"
#include "serve/snapshot.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

RankerSettings ranker_with(Fairness fair, RankerKind kind = RankerKind::kPairRank) {
  RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kRecommended);
  settings.fair.fair = fair;
  return settings;
}

ServiceIdentity identity_with(const std::string& groups) {
  ServiceIdentity identity;
  identity.features = 3;
  identity.cutoff = 2;
  identity.ranker = RankerSettings::defaults(RankerKind::kPairRank, ProtocolName::kRecommended);
  if (!groups.empty()) identity.groups = parse_service_groups(groups, 2);
  return identity;
}

TEST(ServiceGroups, FillInTheExaminationOfDcg) {
  const GroupSettings groups = parse_service_groups("beta=1.5", 3);
  const ExposureRule rule = exposure_rule_of(groups);
  EXPECT_EQ(rule.beta.at(0), 1.5);
  EXPECT_EQ(rule.epsilon, 1.0);
  ASSERT_EQ(rule.examination.size(), 3U);
  for (int rank = 1; rank <= 3; ++rank)
    EXPECT_DOUBLE_EQ(rule.examination[rank - 1], 1.0 / std::log2(1.0 + rank));
}

TEST(ServiceGroups, AreAsManyAsTheirRatiosSay) {
  const GroupSettings groups = parse_service_groups("beta=[1.5,3],epsilon=0.5", 3);
  EXPECT_EQ(exposure_rule_of(groups).groups(), 3U);
  EXPECT_EQ(exposure_rule_of(groups).beta_of(1, 2), 2.0);
  RankerSettings exact = ranker_with(Fairness::kFairExp);
  exact.fair.template_search = TemplateSearch::kExact;
  const std::string refusal =
      message_of<InvalidArgument>([&] { check_service_fairness(exact, groups, 3); });
  EXPECT_TRUE(contains(refusal, "is for two groups, but there are 3"));
  const ServiceIdentity read =
      parse_identity(print_identity(identity_with("beta=[1.5,3]")), "service.toml");
  EXPECT_EQ(read.exposure()->groups(), 3U);
}

TEST(ServiceGroups, CountEpsilonInUnitsOfTheFirstProbability) {
  const ExposureRule rule =
      exposure_rule_of(parse_service_groups("epsilon=0.5,examination=[0.8,0.4,0.2],beta=2", 2));
  EXPECT_DOUBLE_EQ(rule.epsilon, 0.4);
  EXPECT_EQ(rule.examination, (std::vector<double>{0.8, 0.4, 0.2}));
}

TEST(ServiceGroups, RefuseWhatAServiceCannotFollow) {
  EXPECT_THROW(parse_service_groups("beta=1", 1001), InvalidArgument);
  expect_cases("serve/refusals.txt", "groups", [](const std::string& text) {
    return message_of<InvalidArgument>([&] { parse_service_groups(text, 2); });
  });
}

TEST(ServiceGroups, HaveAsManyRanksAsTheirListsCanBalance) {
  const GroupSettings groups = parse_service_groups("beta=1", 13);
  EXPECT_EQ(most_balanced_ranks(ranker_with(Fairness::kFairExp), groups), 12);
  EXPECT_EQ(most_balanced_ranks(ranker_with(Fairness::kFairCo), groups), 13);
}

TEST(ServiceGroups, ArePartOfTheIdentity) {
  const ServiceIdentity with = identity_with("beta=1.5,epsilon=0.25");
  const std::string text = print_identity(with);
  const ServiceIdentity read = parse_identity(text, "service.toml");
  EXPECT_EQ(read.exposure(), with.exposure());
  EXPECT_EQ(print_identity(read), text);
  EXPECT_EQ(identity_difference(with, read), "");
  EXPECT_EQ(identity_difference(with, identity_with("beta=2,epsilon=0.25")), "beta is 1.5, not 2.0");
  EXPECT_EQ(identity_difference(with, identity_with("")), "groups are on, not off");
  EXPECT_EQ(identity_difference(identity_with(""), with), "groups are off, not on");
  // A service without groups has the file that it had before there were any.
  EXPECT_FALSE(contains(print_identity(identity_with("")), "[groups]"));
  EXPECT_EQ(parse_identity(print_identity(identity_with("")), "service.toml").exposure(), std::nullopt);
  EXPECT_THROW(parse_identity("[groups]\nepsilon = 1.0\n", "service.toml"), InvalidArgument);
}

TEST(ServiceIdentity, TellsEverySettingOfTheRanker) {
  ServiceIdentity requested = identity_with("");
  requested.ranker = RankerSettings::defaults(RankerKind::kOlRankNet, ProtocolName::kReference);
  ServiceIdentity earlier = requested;
  earlier.ranker.trainer.restart = Restart::kFirst;
  const ServiceIdentity read = parse_identity(print_identity(earlier), "service.toml");
  EXPECT_EQ(identity_difference(read, earlier), "");
  EXPECT_EQ(identity_difference(read, requested), "restart is \"first\", not \"fresh\"");
  // Without a floor of exploration a service has the file that it had before there was one.
  EXPECT_FALSE(contains(print_identity(earlier), "explore_floor"));
  earlier.ranker.click.explore_floor = 0.1;
  EXPECT_EQ(identity_difference(requested, parse_identity(print_identity(earlier), "service.toml")),
            "restart is \"fresh\", not \"first\"; explore_floor is 0.0, not 0.1");
}

class TokenFile : public testing::Test {
 protected:
  std::string token_in(const std::string& bytes) {
    std::ofstream(folder_ / "token", std::ios::binary) << bytes;
    return read_token(folder_ / "token");
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(TokenFile, HoldsOneLine) {
  for (const char* bytes : {"s3cret token", "s3cret token\n", "s3cret token\r\n", "s3cret token  \n"})
    EXPECT_EQ(token_in(bytes), "s3cret token");
  EXPECT_EQ(token_in(std::string(4096, 'x') + "\n").size(), 4096U);
}

TEST_F(TokenFile, RefusesMoreThanOneLineAndControlCharacters) {
  expect_cases("serve/refusals.txt", "token", [this](const std::string& bytes) {
    return message_of<InvalidArgument>([&] { token_in(bytes); }) == kNoError ? "taken" : "refused";
  });
  EXPECT_THROW(token_in(std::string(5000, 'x')), InvalidArgument);
}

TEST_F(TokenFile, RefusesWhatIsNoFile) {
  const std::string missing = message_of<IoError>([] { read_token("/nonexistent/token"); });
  EXPECT_TRUE(contains(missing, "No such file or directory"));
  const std::string folder = message_of<IoError>([] { read_token("/"); });
  EXPECT_TRUE(contains(folder, "Is a directory"));
  EXPECT_THROW(read_token("/dev/zero"), InvalidArgument);
}

struct Lists {
  std::vector<std::vector<float>> scores;
  std::vector<std::vector<std::int32_t>> lists;
  std::vector<std::vector<double>> propensities;

  friend bool operator==(const Lists&, const Lists&) = default;
};

Lists lists_of(const FrozenRanker& ranker) {
  Lists made;
  ExecutionContext context;
  Ranking ranking;
  for (int number = 1; number <= 20; ++number) {
    const FeedbackRecord query = liked_first_feature(number, 8);
    std::vector<std::int64_t> names(8);
    for (std::int64_t doc = 0; doc < 8; ++doc) names[doc] = name_number(query.docs[doc].text);
    RankingTask task{query.features(), 5, static_cast<std::uint32_t>(1000 + number), number % 2 == 0};
    task.identity = {name_number(query.query), names};
    ranker.rank(context, task, ranking);
    made.scores.push_back(ranking.scores);
    made.lists.push_back(ranking.list);
    made.propensities.push_back(ranking.propensity);
  }
  return made;
}

TEST(SnapshotTest, EveryKindMakesTheSameListsInAnotherProcess) {
  const std::string kinds = kinds_of_services() + "|";
  std::size_t begin = 0;
  int tried = 0;
  for (std::size_t end = kinds.find('|'); end != std::string::npos;
       begin = end + 1, end = kinds.find('|', begin)) {
    const std::string name = kinds.substr(begin, end - begin);
    const RankerKind kind = *value_named<RankerKind>(name);
    if (row_of(kind).needs_labels || name == "fairco") continue;  // its lists need groups
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    FileLog log(folder / "log", 10);
    for (int number = 1; number <= 40; ++number) log.append(liked_first_feature(number));
    Learner learner(make_served(kind), log, {folder / "checkpoint", "identity", 1000});
    const RankerSource::Snapshot before = learner.snapshot();
    const Lists first = lists_of(*learner.latest()->ranker);
    learner.learn_all();
    const RankerSource::Snapshot after = learner.snapshot();
    const Lists second = lists_of(*learner.latest()->ranker);
    EXPECT_EQ(before.round, 0U);
    EXPECT_EQ(after.round, 40U);

    SnapshotReader reader(make_served(kind), std::nullopt);
    const auto early = reader.read(before.bytes, "early");
    const auto late = reader.read(after.bytes, "late");
    EXPECT_EQ(early->round, 0U);
    EXPECT_EQ(late->round, 40U);
    EXPECT_EQ(late->pairs, learner.latest()->pairs);
    EXPECT_TRUE(lists_of(*late->ranker) == second);
    EXPECT_TRUE(lists_of(*early->ranker) == first);  // and the later one has not changed it
    EXPECT_FALSE(first.scores == second.scores);
    ++tried;
  }
  EXPECT_GE(tried, 6);
}

TEST(SnapshotTest, LeavesOutWhatOnlyLearningNeeds) {
  const TemporaryFolder folder;
  FileLog log(folder / "log", 10);
  Learner learner(make_served(RankerKind::kPairRank), log, {folder / "checkpoint", "identity", 1000});
  for (int number = 1; number <= 5; ++number) log.append(liked_first_feature(number));
  learner.learn_all();
  const std::size_t few = learner.snapshot().bytes.size();
  for (int number = 6; number <= 200; ++number) log.append(liked_first_feature(number, 40));
  learner.learn_all();
  learner.write_checkpoint();
  EXPECT_LT(learner.snapshot().bytes.size(), few + 200);  // figures vary
  EXPECT_GT(std::filesystem::file_size(folder / "checkpoint"), 2 * few);
}

TEST(SnapshotTest, RefusesOtherFormatsSettingsAndDamage) {
  const TemporaryFolder folder;
  FileLog log(folder / "log", 10);
  Learner learner(make_served(), log, {folder / "checkpoint", "identity", 1000});
  const std::string bytes = learner.snapshot().bytes;
  SnapshotReader reader(make_served(), std::nullopt);
  std::string cut = bytes;
  cut.resize(cut.size() / 2);
  EXPECT_THROW(reader.read(cut, "cut"), IoError);
  EXPECT_THROW(reader.read("", "empty"), IoError);
  SnapshotReader other(make_served(RankerKind::kPairRank), std::nullopt);
  EXPECT_THROW(other.read(bytes, "another kind"), IoError);
  StateWriter future;
  future.put("snapshot.format", std::int64_t{99});
  future.put_text("snapshot.version", "99.0");
  const std::string refusal = message_of<IoError>([&] { reader.read(future.bytes(), "the prefix"); });
  EXPECT_TRUE(contains(refusal, "olrank 99.0 made this model in format 99"));
  EXPECT_EQ(reader.read(bytes, "again")->round, 0U);
}

/// A service of kind clickgp that has learned, and what it tells those who ask for its snapshot.
class SnapshotFiles : public testing::Test {
 protected:
  SnapshotFiles() {
    for (int number = 1; number <= 41; ++number) log_.append(liked_first_feature(number));
    learner_.learn_all();
  }

  static ServiceIdentity identity(RankerKind kind = RankerKind::kClickGp) {
    ServiceIdentity identity;
    identity.features = kServedFeatures;
    identity.cutoff = 5;
    identity.normalisation = R"({"kind":"none","features":4})";
    identity.feature_names = R"(["a","b","c","d"])";
    identity.ranker = RankerSettings::defaults(kind, ProtocolName::kRecommended);
    identity.ranker.name = "served";
    return identity;
  }
  std::string bytes() { return followed_bytes(print_identity(identity()), "", learner_.snapshot().bytes); }
  std::string file(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  /// How the file scores eight documents of a query, of which the service has shown five.
  static std::vector<double> scores_by(const std::string& file, int number, bool with_names = true) {
    const ModelScorer scorer(parse_model(file, "the snapshot", ModelCode::kRefuse));
    const FeedbackRecord query = liked_first_feature(number, 8);
    std::vector<double> scores(8);
    const std::int64_t offsets[] = {0, 8};
    Scratch scratch;
    QueryNames names{[&](std::int64_t) -> std::string_view { return query.query; },
                     [&](std::int64_t doc) -> std::string_view { return query.docs[doc].text; }};
    scorer.score(scratch, query.features(), offsets, scores, with_names ? names : QueryNames{});
    return scores;
  }
  static std::vector<double> scores_by(const FrozenRanker& ranker, int number) {
    const FeedbackRecord query = liked_first_feature(number, 8);
    std::vector<std::int64_t> names;
    for (const DocId& doc : query.docs) names.push_back(name_number(doc.text));
    std::vector<double> scores(8);
    EXPECT_TRUE(ranker.score_known(query.features(), {name_number(query.query), names}, scores));
    return scores;
  }

  TemporaryFolder folder_;
  FileLog log_{folder_ / "log", 10};
  Learner learner_{make_served(RankerKind::kClickGp), log_, {folder_ / "checkpoint", "identity", 1000}};
};

TEST_F(SnapshotFiles, ScoreAsTheServiceDoesWithoutExploration) {
  const std::string file = bytes();
  const std::string plain = model_bytes(learner_.model().tensors, model_metadata(identity()));
  ExecutionContext context;
  for (int number = 1; number <= 7; ++number) {
    const std::vector<double> scores = scores_by(file, number);
    EXPECT_EQ(scores, scores_by(*learner_.latest()->ranker, number));
    const FeedbackRecord query = liked_first_feature(number, 8);
    std::vector<std::int64_t> names;
    for (const DocId& doc : query.docs) names.push_back(name_number(doc.text));
    RankingTask task{query.features(), 5, 1, false};
    task.identity = {name_number(query.query), names};
    Ranking ranking;
    learner_.latest()->ranker->rank(context, task, ranking);
    EXPECT_EQ(ranking.scores, std::vector<float>(scores.begin(), scores.end()));
    // Without names the order is the model's.
    const std::vector<double> unnamed = scores_by(file, number, false);
    const std::vector<double> of_model = scores_by(plain, number);
    EXPECT_NE(scores, unnamed);
    for (std::size_t doc = 1; doc < 8; ++doc)
      EXPECT_NEAR(unnamed[doc] - unnamed[0], of_model[doc] - of_model[0], 1e-5);
  }
  const LoadedModel model = parse_model(file, "the snapshot", ModelCode::kRefuse);
  EXPECT_EQ(model.feature_names, (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(tensors_of(model).front().values, learner_.model().tensors.tensors.front().values);
}

TEST_F(SnapshotFiles, KeepTheQueriesThatWereLearnedLast) {
  // A query of five documents takes some 1,400 bytes of memory, so that two of seven have room.
  const std::string whole = bytes();
  const std::string few = limited_snapshot(whole, "the snapshot", 0.004);
  EXPECT_LT(few.size(), whole.size());
  int kept = 0;
  for (int number = 35; number <= 41; ++number) {  // the last list of each
    const bool knows = scores_by(few, number) != scores_by(few, number, false);
    EXPECT_TRUE(knows || kept == 0) << number;
    kept += knows ? 1 : 0;
  }
  EXPECT_GE(kept, 1);
  EXPECT_LE(kept, 3);
  EXPECT_EQ(scores_by(limited_snapshot(whole, "the snapshot", 100.0), 3), scores_by(whole, 3));
}

TEST_F(SnapshotFiles, AreGoneOnFromByAService) {
  const std::string model = file("shop.snapshot", bytes());
  const StateFolder folder(folder_ / "state");
  ServiceRequest request;
  request.model = model;
  ResolvedService service = resolve_service(folder, request);
  EXPECT_EQ(service.identity.ranker.kind, RankerKind::kClickGp);
  EXPECT_EQ(service.identity.cutoff, 5);
  EXPECT_EQ(service.identity.feature_names, identity().feature_names);
  const auto ranker = make_service_ranker(service, 0);
  EXPECT_TRUE(lists_of(*ranker->freeze()) == lists_of(*learner_.latest()->ranker));

  // A restart has the file in the folder, and a follower of the service needs none.
  folder.begin(service.identity, service.model);
  const ResolvedService again = resolve_service(folder, {});
  EXPECT_TRUE(lists_of(*make_service_ranker(again, 0)->freeze()) == lists_of(*ranker->freeze()));
  service.model.clear();
  service.model_file.clear();
  EXPECT_FALSE(lists_of(*make_service_ranker(service, 0)->freeze()) == lists_of(*ranker->freeze()));

  const StateFolder other(folder_ / "other");
  request.ranker = {{"ranker", "", "memory_limit", "20", "--memory-limit"}};
  EXPECT_EQ(resolve_service(other, request).identity.ranker.click.memory_limit, 20.0);
  request.ranker = {{"ranker", "", "terms", "linear", "--terms"}};
  const std::string terms = message_of<InvalidArgument>([&] { resolve_service(other, request); });
  EXPECT_TRUE(contains(terms, "here a clickgp with terms = \"products\""));
  request.ranker = {{"ranker", "", "kind", "pairrank", "--ranker"}};
  EXPECT_THROW(resolve_service(other, request), InvalidArgument);
}

TEST_F(SnapshotFiles, AreRefusedWithASentence) {
  const auto refusal = [](const std::string& file) {
    return message_of<IoError>([&] { parse_model(file, "shop.snapshot", ModelCode::kRefuse); });
  };
  const std::string good = bytes();
  for (const std::size_t size : {good.size() - 1, good.size() / 2, std::size_t{60}})
    EXPECT_TRUE(contains(refusal(good.substr(0, size)), "take the snapshot again")) << size;
  for (std::size_t at = 100; at < good.size(); at += 397) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    EXPECT_THROW(parse_model(damaged, "shop.snapshot", ModelCode::kRefuse), Error) << at;
  }
  StateWriter future;
  future.put("snapshot.format", std::int64_t{99});
  future.put_text("snapshot.version", "99.0");
  EXPECT_EQ(refusal(followed_bytes(print_identity(identity()), "", future.bytes()))
                .find("shop.snapshot: olrank 99.0 made"),
            0U);
  EXPECT_TRUE(contains(refusal(learner_.snapshot().bytes), "This is a checkpoint: "));
  Learner pairs(make_served(RankerKind::kPairRank), log_, {folder_ / "pairs", "identity", 1000});
  EXPECT_TRUE(contains(
      refusal(followed_bytes(print_identity(identity(RankerKind::kPairRank)), "", pairs.snapshot().bytes)),
      "Only a clickgp remembers documents"));
  // Settings with other features are not those of the state.
  ServiceIdentity wider = identity();
  wider.normalisation = R"({"kind":"none","features":5})";
  EXPECT_TRUE(contains(refusal(followed_bytes(print_identity(wider), "", learner_.snapshot().bytes)),
                       "another shape"));
  wider.normalisation = R"({"kind":"none","features":9000000})";
  EXPECT_TRUE(contains(refusal(followed_bytes(print_identity(wider), "", learner_.snapshot().bytes)),
                       "not those of its state"));
}

}  // namespace
}  // namespace olrank
