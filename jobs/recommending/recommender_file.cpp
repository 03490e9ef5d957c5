#include "jobs/recommending/recommender_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/io/state_archive.h"
#include "core/settings/toml_document.h"
#include "core/text/nearest.h"
#include "jobs/recommending/recommend_configuration.h"
#include "recommend/recommender_kinds.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTrainAgain = "train it again";

/// The nearest of many names; without searching all of very many.
std::string nearest_of(const NameTable& table, const std::string& name) {
  constexpr std::int64_t kSearched = 20'000;
  std::vector<std::string> names;
  for (std::int64_t number = 0; number < std::min(table.size(), kSearched); ++number)
    names.emplace_back(table[number]);
  const std::string near = near_name(name, names);
  return near.empty() ? std::string() : fmt::format(" Did you mean '{}'?", near);
}

RatingRows read_seen(StateReader& state, const ReviewCounts& counts) {
  RatingRows seen;
  seen.ends = state.get<std::int64_t>("seen.ends");
  seen.others = state.get<std::int32_t>("seen.items");
  const bool valid = std::ssize(seen.ends) == counts.users + 1 && seen.ends.front() == 0 &&
                     seen.ends.back() == std::ssize(seen.others) &&
                     std::is_sorted(seen.ends.begin(), seen.ends.end()) &&
                     std::all_of(seen.others.begin(), seen.others.end(),
                                 [&](std::int32_t item) { return item >= 0 && item < counts.items; });
  if (!valid) state.fail("The list of what users have seen is damaged.");
  return seen;
}

}  // namespace

std::int64_t LoadedRecommender::user(const std::string& name) const {
  const auto number = names.users.find(name);
  if (!number) {
    throw InvalidArgument(
        fmt::format("The model knows no user '{}'.{}", name, nearest_of(names.users, name)));
  }
  if (seen.count(*number) == 0)
    throw InvalidArgument(fmt::format("User '{}' has no review in the training part of this model.", name));
  return *number;
}

std::int64_t LoadedRecommender::item(const std::string& name) const {
  const auto number = names.items.find(name);
  if (number) return *number;
  throw InvalidArgument(
      fmt::format("The model knows no item '{}'.{}", name, nearest_of(names.items, name)));
}

std::string recommender_bytes(const Recommender& model) {
  StateWriter state;
  model.save(state);
  return state.bytes();
}

std::string recommender_file(const RecommendSettings& settings, const ReviewParts& parts,
                             const std::string& model) {
  StateWriter state;
  state.put_text("olrank.recommender", "1");
  state.put_text("settings", print_recommend_settings(settings));
  state.put_text("fingerprint", parts.fingerprint.hex());
  parts.reviews.names.users.save(state, "users");
  parts.reviews.names.items.save(state, "items");
  parts.reviews.names.features.save(state, "features");
  parts.reviews.names.phrases.save(state, "phrases");
  state.put("seen.ends", parts.training.by_user.ends);
  state.put("seen.items", parts.training.by_user.others);
  state.put_text("model", model);
  return state.bytes();
}

std::unique_ptr<Recommender> recommender_of_bytes(const std::string& bytes, const std::string& origin,
                                                  RecommenderKind kind, const ReviewCounts& counts) {
  StateReader state(bytes, origin, kTrainAgain);
  std::unique_ptr<Recommender> model = recommender_kind(kind).read(state, counts);
  state.require_end();
  return model;
}

LoadedRecommender read_recommender(const fs::path& path) {
  std::error_code ignored;
  const fs::path file = fs::is_directory(path, ignored) ? path / "model.safetensors" : path;
  StateReader state = read_state_file(file, kTrainAgain);
  if (!state.is_next("olrank.recommender")) state.fail("This is not a model of 'olrank recommend train'.");
  state.get_text("olrank.recommender");
  LoadedRecommender loaded;
  loaded.settings = resolve_recommend_settings(parse_toml(state.get_text("settings"), file.string()), {});
  loaded.fingerprint = state.get_text("fingerprint");
  loaded.names.users.load(state, "users");
  loaded.names.items.load(state, "items");
  loaded.names.features.load(state, "features");
  loaded.names.phrases.load(state, "phrases");
  const ReviewCounts counts = {loaded.names.users.size(),
                               loaded.names.items.size(),
                               loaded.names.features.size(),
                               loaded.names.phrases.size(),
                               0,
                               0};
  loaded.seen = read_seen(state, counts);
  loaded.model = recommender_of_bytes(state.get_text("model"), file.string(), loaded.settings.kind, counts);
  return loaded;
}

}  // namespace olrank
