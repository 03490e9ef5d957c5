#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/data/normaliser.h"
#include "core/error.h"
#include "logs/log_view.h"
#include "models/ranker_factory.h"
#include "serve/service_identity.h"
#include "serve/service_setup.h"
#include "serve/snapshot.h"
#include "serve/state_folder.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/promise.h"
#include "tests/fuzz/state_bytes.h"

namespace olrank::fuzz {

inline constexpr std::int64_t kSnapshotFeatures = 2;
inline constexpr std::array kSnapshotKinds = {RankerKind::kPairRank, RankerKind::kPdgd,
                                              RankerKind::kClickGp, RankerKind::kOlRankNet};

inline std::unique_ptr<OnlineRanker> snapshot_ranker(RankerKind kind) {
  RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kRecommended);
  settings.name = "served";
  settings.network.width = 2;
  settings.trainer.steps = 2;
  return make_ranker(settings, kSnapshotFeatures, TrialKeys::of(1, 1, "service"), 3);
}

/// A published ranker makes lists of different documents, or says why not.
inline void check_published(const PublishedRanker& published) {
  static constexpr std::array kValues = {0.0F, 1.0F, 0.5F, -1.0F, 2.0F, 0.0F};
  static constexpr std::array<std::int64_t, 3> kNames = {1, 2, 3};
  promise(published.ranker != nullptr);
  ExecutionContext context;
  Ranking ranking;
  for (const bool explore : {false, true}) {
    RankingTask task{{kValues.data(), 3, kSnapshotFeatures}, 2, 7, explore};
    task.identity = {1, kNames};
    try {
      published.ranker->rank(context, task, ranking);
      const std::set<std::int32_t> docs(ranking.list.begin(), ranking.list.end());
      promise(docs.size() == ranking.list.size() && docs.size() >= 2 && *docs.begin() >= 0 &&
              *docs.rbegin() < 3);
    } catch (const Error& error) {
      check_sentence(error.what());
    }
  }
}

/// The model that a replica gets: an IoError, or a ranker that makes lists; and the next good model is
/// taken up as if nothing had been. With the first byte odd, the bytes are entries.
inline void check_snapshot(unsigned choice, std::string_view bytes) {
  const RankerKind kind = kSnapshotKinds[choice / 2 % kSnapshotKinds.size()];
  StateWriter state;
  if (choice % 2 != 0) put_entries(state, bytes);
  static std::map<RankerKind, std::string> good;
  if (!good.contains(kind)) {
    const std::unique_ptr<OnlineRanker> ranker = snapshot_ranker(kind);
    good[kind] = snapshot_bytes(*ranker, {ranker->freeze()}, std::nullopt);
  }
  SnapshotReader reader(snapshot_ranker(kind), std::nullopt);
  is_taken<IoError>(
      [&] { check_published(*reader.read(choice % 2 != 0 ? state.bytes() : std::string(bytes), "fuzz")); });
  const auto next = reader.read(good[kind], "next");
  const std::unique_ptr<OnlineRanker> fresh = snapshot_ranker(kind);
  promise(next->round == 0 && snapshot_bytes(*fresh, {fresh->freeze()}, std::nullopt) == good[kind]);
  promise(model_bytes(next->ranker->model(), {}) == model_bytes(fresh->freeze()->model(), {}));
}

/// The settings of a state folder or of a followed service: refused, or settings that their own text
/// reproduces.
inline void check_identity(std::string_view bytes) {
  is_taken<InvalidArgument>([&] {
    const std::string text = print_identity(parse_identity(bytes, "fuzz"));
    const ServiceIdentity again = parse_identity(text, "again");
    promise(print_identity(again) == text && identity_difference(again, again).empty());
  });
}

/// Lines for --import-log: a DataError with its place, or a log without a fault. The first byte chooses
/// what the service needs of them.
inline void check_import_log(unsigned choice, std::string_view bytes) {
  static const MemoryFolder folder;
  folder.clear();
  const MemoryFile lines(bytes);
  FittedNormaliser normaliser;
  normaliser.kind = Normalisation::kNone;
  normaliser.features = 2;
  is_taken<DataError>([&] {
    StateFolder state(folder.path() / "state");
    std::uint64_t rounds = 0;
    {
      ImportedLog imported(state, {lines.path(), {}}, normaliser, (choice & 1U) != 0, (choice & 2U) != 0);
      rounds = imported.rounds();
      imported.commit();
    }
    const LogSurvey survey = survey_log(LogText(state.log()), 1);
    promise(survey.rest == LogSurvey::Rest::kNone && survey.records == rounds);
  });
}

using std::literals::operator""sv;
inline constexpr Target kTargets[] = {
    {"snapshot", with_choice<check_snapshot>, "0123456789: cdflLiIB\0\x01\x80\x3F\xFF"sv, 2'000},
    {"identity", check_identity, "0123456789{}[]\"'=,.-_#\\\n\t nfu\xFF"sv, 4'000},
    {"import_log", with_choice<check_import_log>, "0123456789{}[]\":,.-eE\\u\n \0\xFF"sv, 4'000}};

}  // namespace olrank::fuzz
