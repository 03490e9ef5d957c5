#include "sim/trial_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "core/throw_error.h"

namespace olrank {

const Schema& ClickSettings::schema() {
  using S = ClickSettings;
  static const Schema schema =
      SchemaBuilder<S>("clicks", "The simulated users who click.")
          .field("models", &S::models,
                 "simulated users, each with its own trials: `perfect`, `navigational`, `informational`, "
                 "or the name of a `[[user]]` or of one that a program registers")
          .flag("clicks")
          .field("kind", &S::kind,
                 "click model: `dependent` scans from the top and may stop, `cascade` scans to the first "
                 "click, `position` examines by rank, `dbn` scans until a clicked document satisfies or "
                 "patience ends, `ubm` examines by rank and last click")
          .one_of({"dependent", "cascade", "position", "dbn", "ubm"})
          .field("stop", &S::stop,
                 "whether a `dependent` user may stop only after a click or after every document")
          .field("noise", &S::noise, "probability that the click on an examined document is flipped",
                 {0, 1})
          .field("position_bias", &S::position_bias,
                 "exponent of 1/rank, with ranks from 1, in the probability that a `position` user "
                 "examines the document at a rank; a `ubm` user has the distance to the last click in "
                 "place of the rank",
                 {0})
          .symbol("η")
          .field("perseverance", &S::perseverance,
                 "probability that a `dbn` user who is not satisfied examines the next document", {0, 1})
          .symbol("γ")
          .field("grades", &S::grades,
                 "number of grades in the built-in users' tables: 2, 3 or 5; 0 derives it from the largest "
                 "grade in the data",
                 {0, 5})
          .field(
              "grade_map", &S::grade_map,
              "grade of the built-in users' tables for each grade of the data, from grade 0: `[0, 0, 1, 1, "
              "2]` gives data of five grades the tables of three; if empty, every grade stays as it is",
              {0, 4})
          .build();
  return schema;
}

ClickSettings ClickSettings::defaults(ProtocolName protocol) {
  ClickSettings settings;
  if (protocol == ProtocolName::kReference) settings.stop = StopDraw::kEveryDoc;
  return settings;
}

const Schema& UserSettings::schema() {
  using S = UserSettings;
  static const Schema schema =
      SchemaBuilder<S>("user",
                       "A custom simulated user; any number of these tables. `clicks.models` refers to a "
                       "user by name. Keys that are left out take their values from `[clicks]`.")
          .repeated()
          .file_only()
          .field("name", &S::name,
                 "name used in `clicks.models` and in the folders of its trials; must be unique")
          .field("kind", &S::kind, "click model; default: that of `[clicks]`")
          .field("click", &S::click,
                 "P(click | grade) for grades 0, 1, …; must cover every grade in the data", {0, 1})
          .field("stop", &S::stop,
                 "P(stop | grade) for kind `dependent`, of the same length as `click`; if empty, the user "
                 "never stops",
                 {0, 1})
          .field("examination", &S::examination,
                 "P(examined) by rank from the top for kind `position`, by distance to the last click for "
                 "kind `ubm`; 0 beyond the end of the list; if empty, `position_bias` applies",
                 {0, 1})
          .field("stop_draw", &S::stop_draw,
                 "whether the user may stop only after a click or after every document; default: `stop` of "
                 "`[clicks]`")
          .field(
              "noise", &S::noise,
              "probability that the click on an examined document is flipped; default: that of `[clicks]`",
              {0, 1})
          .field("position_bias", &S::position_bias,
                 "exponent of 1/rank for kind `position`, of 1/distance for kind `ubm`; default: that of "
                 "`[clicks]`",
                 {0})
          .symbol("η")
          .field(
              "satisfaction", &S::satisfaction,
              "P(satisfied | clicked, grade) for kind `dbn`, of the same length as `click`; if empty, the "
              "user is never satisfied",
              {0, 1})
          .field("perseverance", &S::perseverance,
                 "probability that a `dbn` user who is not satisfied examines the next document; default: "
                 "that of `[clicks]`",
                 {0, 1})
          .symbol("γ")
          .field(
              "browsing", &S::browsing,
              "P(examined) for kind `ubm`, rank by rank: for rank r, the r probabilities for a last click "
              "at rank 0 (none), 1, …, r − 1; 0 beyond the last rank; replaces `examination`",
              {0, 1})
          .field("intents", &S::intents,
                 "users whose behaviour a user of kind `changing` takes, one after another; none of them "
                 "`changing`")
          .field("change_every", &S::change_every, "rounds until a `changing` user takes the next intent",
                 {0})
          .unit("rounds")
          .field("repeat", &S::repeat,
                 "whether a `changing` user starts again after the last intent, or keeps it")
          .build();
  return schema;
}

UserSettings UserSettings::defaults(const ClickSettings& clicks) {
  UserSettings user;
  user.kind = clicks.kind;
  user.stop_draw = clicks.stop;
  user.noise = clicks.noise;
  user.position_bias = clicks.position_bias;
  user.perseverance = clicks.perseverance;
  return user;
}

namespace {

constexpr std::string_view kProtocol = "protocol";
constexpr std::string_view kRounds = "rounds = ";

/// Begin and size of the protocol's line of rounds, without its newline; of size 0 without one.
std::pair<std::size_t, std::size_t> rounds_line(const std::string& protocol) {
  std::size_t begin = 0;
  while (begin < protocol.size()) {
    const std::size_t end = std::min(protocol.find('\n', begin), protocol.size());
    if (std::string_view(protocol).substr(begin).starts_with(kRounds)) return {begin, end - begin};
    begin = end + 1;
  }
  return {protocol.size(), 0};
}

/// "fold3" with prefix "fold" is 3.
std::optional<std::int64_t> numbered(const std::string& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data() + prefix.size(), end, number);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return number;
}

}  // namespace

std::filesystem::path TrialIdentity::path() const {
  return std::filesystem::path("trials") / ranker / user / fmt::format("fold{}", fold) /
         fmt::format("seed{}", seed);
}

std::optional<TrialIdentity> identity_of(const std::filesystem::path& path) {
  const std::vector<std::string> parts(path.begin(), path.end());
  if (parts.size() != 5) return std::nullopt;
  const auto fold = numbered(parts[3], "fold");
  const auto seed = numbered(parts[4], "seed");
  if (!fold || !seed) return std::nullopt;
  TrialIdentity identity{parts[1], parts[2], *fold, *seed};
  // Whatever is not written as path() writes it is not a trial's folder: "..", "fold007".
  const bool leaves = parts[1] == ".." || parts[2] == ".." || parts[1] == "." || parts[2] == ".";
  if (leaves || identity.path() != path) return std::nullopt;
  return identity;
}

std::int64_t rounds_of(const Recipe& recipe) {
  const std::string& protocol = text_of(recipe, kProtocol);
  const auto [begin, size] = rounds_line(protocol);
  if (size == 0) return 0;
  return numbered(protocol.substr(begin, size), kRounds).value_or(0);
}

Recipe without_rounds(Recipe recipe) {
  for (auto& [name, text] : recipe) {
    if (name != kProtocol) continue;
    const auto [begin, size] = rounds_line(text);
    text.erase(begin, size);
  }
  return recipe;
}

std::vector<TrialIdentity> trials_in(const std::filesystem::path& experiment) {
  std::vector<TrialIdentity> found;
  const auto folders_in = [&](const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> folders;
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator(experiment / folder, failed)) {
      std::error_code unknown;
      if (entry.is_directory(unknown)) folders.push_back(folder / entry.path().filename());
    }
    return folders;
  };
  for (const std::filesystem::path& ranker : folders_in("trials")) {
    for (const std::filesystem::path& user : folders_in(ranker)) {
      for (const std::filesystem::path& fold : folders_in(user)) {
        for (const std::filesystem::path& seed : folders_in(fold)) {
          if (const auto identity = identity_of(seed)) found.push_back(*identity);
        }
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool is_finished(const std::filesystem::path& experiment, const TrialIdentity& identity) {
  return std::filesystem::exists(experiment / identity.path() / kSummaryFile);
}

const Schema& ProtocolSettings::schema() {
  using S = ProtocolSettings;
  static const Schema schema =
      SchemaBuilder<S>("protocol", "How trials are run and evaluated.")
          .field("name", &S::name,
                 "`recommended` has the settings that serve best, `paper` follows the papers' text, "
                 "`reference` their authors' code; sets the defaults of other keys")
          .flag("protocol")
          .field("rounds", &S::rounds, "rounds per trial", {0, 4294967295.0})
          .symbol("T")
          .flag("rounds")
          .field("cutoff", &S::cutoff, "documents shown per round; also the k of NDCG@k", {1})
          .symbol("k")
          .flag("cutoff")
          .field("eval_every", &S::eval_every, "rounds between evaluations", {1})
          .symbol("E")
          .unit("rounds")
          .flag("eval-every")
          .field("seeds", &S::seeds, "seeds; one trial per seed, ranker, user and fold", {0})
          .flag("seeds")
          .field(
              "empty_queries", &S::empty_queries,
              "how queries without relevant documents count in offline metrics: as 0, as 1, or not at all")
          .field("discount", &S::discount, "discount factor per round of the online metric, cNDCG",
                 above(0, 1))
          .symbol("γ")
          .field("cosine", &S::cosine,
                 "`offline` reports the model's cosine similarity to a linear RankNet trained on all "
                 "labels of the fold")
          .field("metrics", &S::metrics,
                 "further offline metrics of every evaluation: `ndcg@K`, `dcg@K`, `err@K`, `p@K`, `map`, "
                 "`map@K`, `mrr`, `mrr@K`, `arp`, `pair_accuracy`")
          .flag("metrics")
          .build();
  return schema;
}

ProtocolSettings ProtocolSettings::defaults(ProtocolName name) {
  ProtocolSettings settings;
  settings.name = name;
  if (name == ProtocolName::kReference) settings.empty_queries = EmptyQueries::kSkip;
  return settings;
}

RankerData ranker_data(const TrialData& data, const LabelledQueries* labels, std::int64_t slot) {
  RankerData known{data.train.all_rows(), 0, data.eval_set.all_rows(), labels, slot};
  for (std::int64_t query = 0; query < data.train.queries(); ++query)
    known.most_docs = std::max(known.most_docs, data.train.offset(query + 1) - data.train.offset(query));
  return known;
}

UniformQueries::UniformQueries(PhiloxKey key, std::int64_t queries)
    : key_(key), queries_(static_cast<std::uint32_t>(queries)) {
  if (queries >= 1 && queries <= std::numeric_limits<std::uint32_t>::max()) return;
  throw_error<InvalidArgument>("The training part must have between 1 and 2^32 - 1 queries, not {}.",
                               queries);
}

std::int64_t UniformQueries::query_of(std::uint32_t round) const {
  return RngStream(key_, round).index(queries_);
}

}  // namespace olrank
