#include "olrank/ranker.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "core/data/normaliser.h"
#include "core/data/normaliser_text.h"
#include "core/error.h"
#include "core/feedback/doc_number.h"
#include "core/io/atomic_file.h"
#include "core/io/fingerprint.h"
#include "core/io/state_archive.h"
#include "core/online/model_bytes.h"
#include "core/online/online_ranker.h"
#include "core/online/trial_keys.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/stage_clock.h"
#include "core/settings/choice.h"
#include "core/version.h"
#include "models/neural/ranker_network.h"
#include "models/ranker_factory.h"
#include "models/ranker_settings.h"

namespace olrank {
namespace {

RankerSettings settings_of(const RankerOptions& options) {
  const auto protocol = parse_choice<ProtocolName>("RankerOptions::protocol", options.protocol);
  const auto kind = parse_choice<RankerKind>("RankerOptions::kind", options.kind);
  const auto apply = [&](RankerSettings& settings) {
    for (const auto& [key, text] : options.settings) {
      if (key == "kind" || key == "name")
        throw InvalidArgument(
            fmt::format("RankerOptions::settings has the key '{}': use RankerOptions::kind.", key));
      assign_setting_text(RankerSettings::schema(), &settings, key, text, "RankerOptions::settings");
    }
  };
  RankerSettings probe;
  apply(probe);
  RankerSettings settings = RankerSettings::defaults(kind, protocol, probe.bandit.interleaving);
  settings.name = options.kind;
  apply(settings);
  return settings;
}

FittedNormaliser normaliser_of(const RankerOptions& options) {
  FittedNormaliser normaliser;
  normaliser.kind = parse_choice<Normalisation>("RankerOptions::normalise", options.normalise);
  normaliser.features = options.features;
  if (normaliser.kind == Normalisation::kZscore || normaliser.kind == Normalisation::kLog1pZscore) {
    throw InvalidArgument(fmt::format(
        "RankerOptions::normalise: '{}' needs the means and deviations of a data set: scale the "
        "features yourself and choose 'none', or choose 'query-minmax'.",
        options.normalise));
  }
  return normaliser;
}

void require_at_least_one(std::string_view option, std::int64_t value) {
  if (value >= 1) return;
  throw InvalidArgument(fmt::format("RankerOptions::{} must be at least 1, not {}.", option, value));
}

RankerOptions checked(const RankerOptions& options) {
  require_at_least_one("features", options.features);
  require_at_least_one("cutoff", options.cutoff);
  require_at_least_one("threads", options.threads);
  return options;
}

}  // namespace

struct ShownList::Query {
  const void* owner = nullptr;  // the ranker that made the list
  std::uint32_t round = 0;
  std::string name;
  std::vector<float> inputs;  // [V × d], normalised
  std::int64_t docs = 0;
  bool answered = false;
};

struct Ranker::State {
  explicit State(const RankerOptions& wanted)
      : options(checked(wanted)),
        settings(settings_of(options)),
        normaliser(normaliser_of(options)),
        execution(options.threads) {
    if (row_of(settings.kind).is_external)
      throw InvalidArgument("RankerOptions::kind 'external' plays experiments only: choose another kind.");
    settings.network = with_module_file(settings.network);
    check_ranker(settings, options.cutoff);
    ranker = make_ranker(settings, options.features, TrialKeys{.seed = options.seed}, options.cutoff);
    learns_from_latest_list_only = ranker->freeze() == nullptr;
  }

  std::vector<float> inputs_of(std::span<const float> docs) const {
    const std::int64_t features = options.features;
    const auto values = std::ssize(docs);
    if (values == 0 || values % features != 0) {
      throw InvalidArgument(fmt::format(
          "There are {} feature values: give every document {}, one document at least.", values, features));
    }
    for (std::int64_t k = 0; k < values; ++k) {
      if (std::isfinite(docs[k])) continue;
      throw InvalidArgument(
          fmt::format("Feature {} of document {} is not finite.", k % features + 1, k / features));
    }
    std::vector<float> inputs(docs.begin(), docs.end());
    normaliser.apply({docs.data(), values / features, features}, inputs.data());
    if (const auto bad = normaliser.find_bad_input(inputs.data(), values / features)) {
      throw InvalidArgument(
          fmt::format("Feature {} of document {} gives the input {:g}, beyond the limit of ±{:g}: "
                      "normalise the features.",
                      bad->feature + 1, bad->doc, bad->value, FittedNormaliser::kLargestInput));
    }
    return inputs;
  }

  FeatureMatrix matrix(const std::vector<float>& inputs) const {
    return {inputs.data(), std::ssize(inputs) / options.features, options.features};
  }

  void put(StateWriter& state) const {
    state.put_text("library.kind", options.kind);
    state.put_text("library.protocol", options.protocol);
    state.put_text("library.normalise", options.normalise);
    state.put("library.features", options.features);
    state.put("library.cutoff", options.cutoff);
    state.put("library.seed", options.seed);
    std::string settings_text;
    for (const auto& [key, text] : options.settings) settings_text += fmt::format("{}={}\n", key, text);
    state.put_text("library.settings", settings_text);
    state.put_text("library.resolved", print_settings(RankerSettings::schema(), &settings));
    if (settings.network.module_file)
      state.put_text("library.module", fingerprint_of(*settings.network.module_file).hex());
    state.put("library.round", round);
    ranker->save(state);
  }

  RankerOptions options;
  RankerSettings settings;
  FittedNormaliser normaliser;
  ExecutionContext execution;
  StageClock clock;
  std::unique_ptr<OnlineRanker> ranker;
  bool learns_from_latest_list_only = false;
  std::uint32_t round = 0;
};

Ranker::Ranker(const RankerOptions& options) : state_(std::make_unique<State>(options)) {}
Ranker::~Ranker() = default;
Ranker::Ranker(Ranker&&) noexcept = default;
Ranker& Ranker::operator=(Ranker&&) noexcept = default;

ShownList Ranker::rank(std::span<const float> docs, std::string_view query, bool with_widths) {
  auto asked = std::make_shared<ShownList::Query>();
  asked->owner = state_.get();
  asked->name = query;
  asked->inputs = state_->inputs_of(docs);
  asked->round = ++state_->round;
  const QueryDocs query_docs{asked->round, 0, state_->matrix(asked->inputs)};
  asked->docs = query_docs.docs();

  RoundContext context{state_->execution, state_->clock};
  const RankedList ranked = state_->ranker->rank(context, query_docs, asked->round);
  ShownList list;
  const std::int64_t shown = std::min(state_->options.cutoff, query_docs.docs());
  list.docs.assign(ranked.docs.begin(), ranked.docs.begin() + shown);
  for (const CertainOrder& order : ranked.certain_orders)
    list.certain.push_back({order.first, order.second});
  RoundDetail detail;
  state_->ranker->describe(query_docs, with_widths, detail);
  list.scores.assign(detail.scores.begin(), detail.scores.end());
  if (with_widths) {
    list.widths.resize(detail.width_sq.size());
    for (std::size_t i = 0; i < list.widths.size(); ++i) list.widths[i] = std::sqrt(detail.width_sq[i]);
  }
  list.query = std::move(asked);
  return list;
}

std::int64_t Ranker::learn(const ShownList& list, std::span<const std::uint8_t> clicks) {
  if (list.query == nullptr || list.query->owner != state_.get())
    throw InvalidArgument("This list is not from this ranker: give it to the ranker whose rank() made it.");
  ShownList::Query& query = *list.query;
  if (query.answered) throw InvalidArgument(fmt::format("List {} was answered already.", query.round));
  if (clicks.size() != list.docs.size()) {
    throw InvalidArgument(
        fmt::format("There are {} clicks for {} shown documents: give one value for each "
                    "rank, 0 or 1.",
                    clicks.size(), list.docs.size()));
  }
  for (std::size_t rank = 0; rank < clicks.size(); ++rank) {
    if (clicks[rank] <= 1) continue;
    throw InvalidArgument(
        fmt::format("The click at rank {} is {}: it must be 0 or 1.", rank + 1, clicks[rank]));
  }
  if (state_->learns_from_latest_list_only && query.round != state_->round) {
    throw InvalidArgument(fmt::format("A '{}' learns from its latest list only, which is {}, not {}.",
                                      state_->options.kind, state_->round, query.round));
  }
  const FeatureMatrix docs = state_->matrix(query.inputs);
  std::vector<std::int64_t> numbers;
  numbers.reserve(docs.docs);
  for (std::int64_t doc = 0; doc < docs.docs; ++doc)
    numbers.push_back(doc_number(query.name, docs.doc(doc)));
  RoundContext context{state_->execution, state_->clock};
  const LearnReport report = state_->ranker->learn(
      context, {query.round, QueryDocs{query.round, 0, docs, numbers}, list.docs, clicks});
  query.answered = true;
  return std::ssize(report.pairs);
}

std::vector<float> Ranker::score(std::span<const float> docs) {
  const std::vector<float> inputs = state_->inputs_of(docs);
  const FeatureMatrix matrix = state_->matrix(inputs);
  std::vector<float> scores(matrix.docs);
  state_->ranker->score(state_->execution, matrix, scores);
  return scores;
}

std::int64_t Ranker::features() const {
  return state_->options.features;
}

std::int64_t Ranker::parameters() const {
  return state_->ranker->parameters();
}

std::uint32_t Ranker::rounds() const {
  return state_->round;
}

std::string Ranker::fingerprint() const {
  StateWriter state;
  state_->put(state);
  return state.fingerprint().hex();
}

void Ranker::save(const std::filesystem::path& file) const {
  StateWriter state;
  state_->put(state);
  state.write(file);
}

Ranker Ranker::load(const std::filesystem::path& file, int threads) {
  StateReader state = read_state_file(file, "create a new Ranker");
  RankerOptions options;
  options.kind = state.get_text("library.kind");
  options.protocol = state.get_text("library.protocol");
  options.normalise = state.get_text("library.normalise");
  options.features = state.get_one<std::int64_t>("library.features");
  options.cutoff = state.get_one<std::int64_t>("library.cutoff");
  options.seed = state.get_one<std::uint64_t>("library.seed");
  options.threads = threads;
  const std::string settings = state.get_text("library.settings");
  for (std::size_t begin = 0; begin < settings.size();) {
    const std::size_t equals = settings.find('=', begin);
    const std::size_t end = settings.find('\n', begin);
    if (equals == std::string::npos || end == std::string::npos || equals > end)
      state.fail("The saved settings are not lines of key=value.");
    options.settings[settings.substr(begin, equals - begin)] =
        settings.substr(equals + 1, end - equals - 1);
    begin = end + 1;
  }
  Ranker loaded(options);
  if (state.get_text("library.resolved") !=
      print_settings(RankerSettings::schema(), &loaded.state_->settings)) {
    state.fail(
        "This version of olrank has other defaults than the one that saved the ranker: use that one.");
  }
  if (const auto& module = loaded.state_->settings.network.module_file) {
    if (state.get_text("library.module") != fingerprint_of(*module).hex()) {
      state.fail(fmt::format("The module '{}' is not the one that the saved ranker uses: restore the file.",
                             loaded.state_->settings.network.module));
    }
  }
  loaded.state_->round = state.get_one<std::uint32_t>("library.round");
  loaded.state_->ranker->load(state);
  state.require_end();
  return loaded;
}

void Ranker::save_model(const std::filesystem::path& file) const {
  const ModelMetadata metadata = {{"normalisation", normaliser_text(state_->normaliser)},
                                  {"ranker", state_->options.kind},
                                  {"rounds", fmt::format("{}", state_->round)}};
  write_file_atomically(file, model_bytes(state_->ranker->model(), metadata));
}

std::string library_version() {
  return std::string(version());
}

}  // namespace olrank
