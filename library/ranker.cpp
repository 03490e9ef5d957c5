#include "olrank/ranker.h"
#include "core/throw_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "core/data/normaliser.h"
#include "core/device/device_network.h"
#include "core/device/visible_gpus.h"
#include "core/io/atomic_file.h"
#include "core/io/fingerprint.h"
#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/runtime/device.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/progress.h"
#include "core/settings/enum_names.h"
#include "core/settings/setting_sources.h"
#include "core/settings/toml_document.h"
#include "core/settings/value.h"
#include "core/version.h"
#include "jobs/device_choice.h"
#include "jobs/saved_trial.h"
#include "jobs/settings/train_configuration.h"
#include "library/shown_list.h"
#include "models/files/model_file.h"
#include "models/neural/device_ranker.h"
#include "models/neural/network_rankers.h"
#include "models/neural/ranker_network.h"
#include "models/ranker_factory.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {
namespace {

constexpr std::string_view kOrigin = "Ranker";  // of settings, in messages
constexpr std::string_view kRestart = "create a new Ranker, from a model file by the setting start_from";

RankerSettings settings_of(const RankerOptions& options) {
  const auto protocol = parse_choice<ProtocolName>("protocol", options.protocol);
  parse_choice<RankerKind>("kind", options.kind);
  std::vector<SettingOverride> overrides = {{"ranker", "", "kind", options.kind, std::string(kOrigin)}};
  for (const auto& [key, text] : options.settings) {
    if (key == "kind" || key == "name") {
      throw_error<InvalidArgument>("RankerOptions::settings has the key '{}': use RankerOptions::kind.",
                                   key);
    }
    overrides.push_back({"ranker", options.kind, key, text, std::string(kOrigin)});
  }
  return resolve_rankers({}, overrides, protocol).front();
}

FittedNormaliser normaliser_of(const RankerOptions& options) {
  FittedNormaliser normaliser;
  normaliser.kind = parse_choice<Normalisation>("normalise", options.normalise);
  normaliser.features = options.features;
  if (normaliser.kind == Normalisation::kZscore || normaliser.kind == Normalisation::kLog1pZscore) {
    throw_error<InvalidArgument>(
        "normalise: '{}' needs the means and deviations of a data set: scale the features yourself and "
        "choose 'none', or choose 'query-minmax'.",
        options.normalise);
  }
  return normaliser;
}

TrialKeys keys_of(const RankerOptions& options) {
  if (options.user.empty()) return {.seed = options.seed, .fold = options.fold};
  return TrialKeys::of(options.seed, options.fold, options.user);
}

void require_at_least_one(std::string_view option, std::int64_t value) {
  if (value >= 1) return;
  throw_error<InvalidArgument>("{} must be at least 1, not {}.", option, value);
}

const RankerOptions& checked(const RankerOptions& options) {
  require_at_least_one("features", options.features);
  if (options.features > kMostModelFeatures) {
    throw_error<InvalidArgument>("features must be at most {}, not {}.", kMostModelFeatures,
                                 options.features);
  }
  require_at_least_one("cutoff", options.cutoff);
  require_at_least_one("threads", options.threads);
  return options;
}

/// Numbers the rankers of this process, so that none takes the list of one that is gone for its own.
std::uint64_t next_number() {
  static std::atomic<std::uint64_t> latest{0};
  return ++latest;
}

std::vector<double> widths_of(const RoundDetail& detail) {
  std::vector<double> widths(detail.width_sq.size());
  std::transform(detail.width_sq.begin(), detail.width_sq.end(), widths.begin(),
                 [](double width_sq) { return std::sqrt(width_sq); });
  return widths;
}

}  // namespace

struct Ranker::State {
  /// All but the ranker itself and its rounds.
  State(RankerSettings of_ranker, FittedNormaliser of_inputs, const TrialKeys& of_trial,
        std::int64_t of_list, int threads)
      : settings(std::move(of_ranker)),
        normaliser(std::move(of_inputs)),
        keys(of_trial),
        cutoff(of_list),
        execution(threads) {}
  ~State() {
    const CallersGpu kept = callers_gpu();
    intake.reset();
    ranker.reset();
  }

  static std::unique_ptr<State> before_round_1(const RankerOptions& options) {
    checked(options);
    const CallersGpu kept(parse_device(options.device).on_gpus());
    RankerSettings settings = settings_of(options);
    if (row_of(settings.kind).is_external)
      throw InvalidArgument("Ranker: the kind 'external' plays experiments only: choose another kind.");
    settings.network = with_module_file(settings.network);
    check_ranker(settings, options.cutoff);
    const FittedNormaliser normaliser = normaliser_of(options);
    const auto start = start_model_of(settings);
    if (start) check_start_inputs(settings, *start, normaliser);
    settings.start_from.clear();  // what it gives is in the parameters from here on
    auto state = std::make_unique<State>(std::move(settings), normaliser, keys_of(options), options.cutoff,
                                         options.threads);
    RankerDependencies dependencies;
    if (start) dependencies.first_thetas = start->thetas;
    if (start) dependencies.click_start = start->of_clicks;
    if (start && parse_device(options.device).on_gpus())
      throw InvalidArgument(
          "device: Rankers that start from a model run on the CPU: use device = \"cpu\".");
    state->place = ranker_device_for("device", std::string(options.device), state->settings);
    state->make(dependencies);
    return state;
  }

  CallersGpu callers_gpu() const { return CallersGpu(place.has_value()); }

  void make(RankerDependencies dependencies = {}) {
    if (place) dependencies.device = &*place;
    take(make_ranker(settings, normaliser.inputs(), keys, cutoff, dependencies));
  }

  void take(std::unique_ptr<OnlineRanker> made) {
    ranker = std::move(made);
    StateWriter written;
    put_recipe(written);
    recipe = written.fingerprint();
    learns_from_latest_list_only = !place && ranker->freeze() == nullptr;
    if (place && dynamic_cast<const DeviceRanker*>(ranker.get()) != nullptr)
      intake = make_device_intake(place->gpu);
  }

  std::string_view kind() const { return name_of(settings.kind); }

  std::vector<float> inputs_of(std::span<const float> docs) const {
    const std::int64_t features = normaliser.features;
    const auto values = std::ssize(docs);
    if (values == 0 || values % features != 0) {
      throw_error<InvalidArgument>(
          "There are {} feature values: give every document {}, one document at least.", values, features);
    }
    for (std::int64_t k = 0; k < values; ++k) {
      if (!std::isfinite(docs[k])) refuse_value(k / features, k % features);
    }
    const std::int64_t rows = values / features;
    std::vector<float> inputs(rows * normaliser.inputs());
    normaliser.apply({docs.data(), rows, features}, inputs.data());
    if (const auto bad = normaliser.find_bad_input(inputs.data(), rows))
      refuse_input(bad->doc, bad->feature, bad->value);
    return inputs;
  }

  [[noreturn]] static void refuse_value(std::int64_t doc, std::int64_t feature) {
    throw_error<InvalidArgument>("Feature {} of document {} is not finite.", feature + 1, doc);
  }
  [[noreturn]] static void refuse_input(std::int64_t doc, std::int64_t feature, float value) {
    throw_error<InvalidArgument>(
        "Feature {} of document {} gives the input {:g}, beyond the limit of ±{:g}: normalise the "
        "features.",
        feature + 1, doc, value, FittedNormaliser::kLargestInput);
  }

  std::shared_ptr<const DeviceDocs> inputs_there(const GpuDocs& docs) const {
    const std::int64_t features = normaliser.features;
    if (intake == nullptr) {
      throw InvalidArgument(
          "The documents lie on a GPU, and this ranker takes them from the host: create it with device = "
          "\"cuda\" and without a module, or copy them to the host.");
    }
    if (docs.gpu != place->gpu) {
      throw_error<InvalidArgument>(
          "The documents lie on cuda:{0}, and this ranker computes on cuda:{1}: copy them there, or create "
          "the ranker with device = \"cuda:{0}\".",
          docs.gpu, place->gpu);
    }
    const std::int64_t stride = docs.stride == 0 ? docs.features : docs.stride;
    if (docs.features != features || docs.docs < 1 || stride < features) {
      throw_error<InvalidArgument>(
          "There are {} documents of {} features, {} values apart: give every document {}, one document at "
          "least.",
          docs.docs, docs.features, stride, features);
    }
    const bool scale = normaliser.scales_queries();
    const float limit = scale ? std::numeric_limits<float>::max() : FittedNormaliser::kLargestInput;
    DeviceIntake::Taken taken = intake->take({docs.values, docs.docs, features, stride}, scale, limit);
    if (taken.not_finite >= 0) refuse_value(taken.not_finite / features, taken.not_finite % features);
    if (taken.beyond >= 0) {
      const auto row = static_cast<std::int32_t>(taken.beyond / features);
      std::vector<float> inputs(docs.docs * features);
      taken.docs->copy_rows(std::span(&row, 1), inputs.data());
      refuse_input(row, taken.beyond % features, inputs[taken.beyond]);
    }
    return std::move(taken.docs);
  }

  /// A query without a round. Documents on a GPU have no names yet.
  std::shared_ptr<ShownList::Query> query_of(std::span<const float> docs) const {
    auto query = std::make_shared<ShownList::Query>();
    query->inputs = inputs_of(docs);
    query->width = normaliser.inputs();
    query->docs = std::ssize(query->inputs) / query->width;
    return query;
  }
  std::shared_ptr<ShownList::Query> query_of(const GpuDocs& docs) const {
    const CallersGpu kept = callers_gpu();
    auto query = std::make_shared<ShownList::Query>();
    query->there = inputs_there(docs);
    query->width = normaliser.inputs();
    query->docs = docs.docs;
    return query;
  }

  void next_round(ShownList::Query& asked, std::string_view name) {
    asked.owner = number;
    asked.recipe = recipe;
    asked.name = name;
    asked.round = ++round;
    if (asked.there == nullptr) asked.give_names();
  }

  ShownList rank(std::shared_ptr<ShownList::Query> asked, std::string_view name, bool with_widths,
                 std::int64_t ranks);
  std::vector<float> score(const ShownList::Query& query) {
    const CallersGpu kept = callers_gpu();
    std::vector<float> scores(query.docs);
    ranker->score(execution, query.matrix(), scores);
    return scores;
  }
  std::vector<double> widths(const ShownList::Query& query);
  void check_ranks(std::int64_t ranks) const {
    if (ranks >= 0 && ranks <= cutoff) return;
    throw_error<InvalidArgument>("This ranker makes lists of {} ranks, not {}: create it with cutoff = {}.",
                                 cutoff, ranks, std::max<std::int64_t>(ranks, 1));
  }
  void check_has_widths() const {
    if (row_of(settings.kind).evidence == OrderEvidence::kWidths) return;
    throw_error<InvalidArgument>("A '{}' has no widths: {} have.", kind(), kinds_where([](const auto& row) {
                                   return row.evidence == OrderEvidence::kWidths;
                                 }));
  }

  void check_shown(std::span<const std::int32_t> shown, std::int64_t docs) const {
    if (shown.empty()) throw InvalidArgument("The list is empty: a list shows one document at least.");
    if (std::ssize(shown) > cutoff) {
      throw_error<InvalidArgument>(
          "The list shows {0} documents, but this ranker's lists have at most {1}: create the ranker with "
          "cutoff = {0}.",
          shown.size(), cutoff);
    }
    std::vector<bool> seen(docs);
    for (const std::int32_t doc : shown) {
      if (doc < 0 || doc >= docs)
        throw_error<InvalidArgument>(
            "The list shows document {}, but the query has {}: documents are numbered from 0.", doc, docs);
      if (seen[doc]) throw_error<InvalidArgument>("The list shows document {} twice.", doc);
      seen[doc] = true;
    }
  }

  void check_rewards(std::span<const double> rewards, std::size_t shown) const {
    if (!kind_has(settings.kind, "debias") && settings.kind != RankerKind::kClickGp)
      throw_error<InvalidArgument>("A '{}' learns from clicks alone: leave rewards out.", kind());
    if (rewards.size() != shown) {
      throw_error<InvalidArgument>("There are {} rewards for {} shown documents: give one for each rank.",
                                   rewards.size(), shown);
    }
    for (std::size_t rank = 0; rank < rewards.size(); ++rank) {
      if (rewards[rank] >= 0.0 && std::isfinite(rewards[rank])) continue;
      throw_error<InvalidArgument>("The reward at rank {} is {}: it must be a number of at least 0.",
                                   rank + 1, rewards[rank]);
    }
  }

  /// All that decides how the ranker goes on but what it has learned.
  void put_recipe(StateWriter& state, bool with_names = false) const {
    std::string text = print_settings(RankerSettings::schema(), &settings);
    if (place) text += kComputedOnGpu;
    state.put_text("library.settings", text);
    state.put_text("library.normalise", normaliser_text(normaliser));
    if (with_names && !feature_names.empty())
      state.put_text("library.feature_names", feature_names_text(feature_names));
    state.put("library.cutoff", cutoff);
    state.put("library.seed", keys.seed);
    state.put("library.fold", keys.fold);
    state.put("library.user", keys.click_model);
    if (settings.network.module_file)
      state.put_text("library.module", fingerprint_of(*settings.network.module_file).hex());
  }
  /// Names change nothing that is computed, and a fingerprint is made without them.
  void put(StateWriter& state, bool with_names) const {
    const CallersGpu kept = callers_gpu();
    put_recipe(state, with_names);
    state.put("library.round", round);
    ranker->save(state);
  }

  static std::unique_ptr<State> get(StateReader& reader, int threads, bool trust_code,
                                    std::string_view device) {
    RankerSettings settings;
    const std::string text = reader.get_text("library.settings");
    const bool on_gpu = text.ends_with(kComputedOnGpu);
    if (device == "auto") device = on_gpu ? "cuda" : "cpu";
    if (parse_device(device).on_gpus() != on_gpu) {
      throw_error<InvalidArgument>(
          "device: The saved ranker computed on {0}, and its state continues only there: load the ranker "
          "with device = \"{1}\".",
          on_gpu ? "a GPU" : "the CPU", on_gpu ? "cuda" : "cpu");
    }
    const CallersGpu kept(on_gpu);
    const TomlDocument written = parse_toml(text, "settings");
    for (const auto& table : written.tables)
      SettingSources::apply_table(RankerSettings::schema(), &settings, table);
    if (has_module_file(settings.network) && !trust_code) {
      throw_error<InvalidArgument>(
          "The saved ranker uses the TorchScript module '{}', whose code can read and write your files: if "
          "you trust its source, set trust_code.",
          settings.network.module);
    }
    settings.trust_code = settings.trust_code && trust_code;
    settings.network = with_module_file(settings.network);
    const FittedNormaliser normaliser = parse_normaliser(reader.get_text("library.normalise"), "ranker");
    std::vector<std::string> names;
    if (reader.is_next("library.feature_names"))
      names = parse_feature_names(reader.get_text("library.feature_names"));
    const auto cutoff = reader.get_one<std::int64_t>("library.cutoff");
    TrialKeys keys;
    keys.seed = reader.get_one<std::uint64_t>("library.seed");
    keys.fold = reader.get_one<std::uint64_t>("library.fold");
    keys.click_model = reader.get_one<std::uint64_t>("library.user");
    if (settings.network.module_file &&
        reader.get_text("library.module") != fingerprint_of(*settings.network.module_file).hex()) {
      reader.fail(
          fmt::format("The module '{}' is not the one that the saved ranker uses: restore the file.",
                      settings.network.module));
    }
    require_at_least_one("threads", threads);
    auto state = std::make_unique<State>(std::move(settings), normaliser, keys, cutoff, threads);
    state->place = ranker_device_for("device", std::string(device), state->settings);
    state->make();
    if (!names.empty()) require_feature_names(names, normaliser.features, "ranker");
    state->feature_names = std::move(names);
    state->round = reader.get_one<std::uint32_t>("library.round");
    state->ranker->load(reader);
    reader.require_end();
    return state;
  }

  static std::unique_ptr<State> of_trial(const std::filesystem::path& folder, int threads,
                                         bool trust_code) {
    require_at_least_one("threads", threads);
    const std::filesystem::path file = model_file_of(folder.string());
    const LoadedModel model = load_model(file, code_if(trust_code));
    SavedTrial trial = load_saved_trial(file, model, code_if(trust_code));
    auto state = std::make_unique<State>(std::move(trial.settings), model.normaliser.without_terms(),
                                         trial.keys, trial.cutoff, threads);
    state->take(std::move(trial.ranker));
    state->round = static_cast<std::uint32_t>(trial.rounds);
    if (model.feature_names != plain_feature_names(model.normaliser.features))
      state->feature_names = model.feature_names;
    return state;
  }

  const std::uint64_t number = next_number();
  RankerSettings settings;
  FittedNormaliser normaliser;
  std::vector<std::string> feature_names;  // empty where they are unknown
  TrialKeys keys;
  std::int64_t cutoff;
  ExecutionContext execution;
  StageClock clock;
  std::optional<RankerDevice> place;  // a GPU
  std::unique_ptr<OnlineRanker> ranker;
  std::shared_ptr<DeviceIntake> intake;  // where the ranker's rounds run on a GPU
  Fingerprint recipe;
  bool learns_from_latest_list_only = false;
  std::uint32_t round = 0;
};

Ranker::Ranker(const RankerOptions& options) : state_(State::before_round_1(options)) {}
Ranker::Ranker(std::unique_ptr<State> state) : state_(std::move(state)) {}
Ranker::~Ranker() = default;
Ranker::Ranker(Ranker&&) noexcept = default;
Ranker& Ranker::operator=(Ranker&&) noexcept = default;

ShownList Ranker::rank(std::span<const float> docs, std::string_view query, bool with_widths,
                       std::int64_t ranks) {
  state_->check_ranks(ranks);
  return state_->rank(state_->query_of(docs), query, with_widths, ranks);
}

ShownList Ranker::rank(const GpuDocs& docs, std::string_view query, bool with_widths, std::int64_t ranks) {
  state_->check_ranks(ranks);
  return state_->rank(state_->query_of(docs), query, with_widths, ranks);
}

int Ranker::gpu() const {
  return state_->intake == nullptr ? -1 : state_->place->gpu;
}

void* Ranker::gpu_stream() {
  return state_->intake == nullptr ? nullptr : state_->intake->stream();
}

ShownList Ranker::State::rank(std::shared_ptr<ShownList::Query> asked, std::string_view name,
                              bool with_widths, std::int64_t ranks) {
  const CallersGpu kept = callers_gpu();
  next_round(*asked, name);
  const QueryDocs query_docs = asked->query_docs();

  RoundContext context{execution, clock};
  const RankedList ranked = ranker->rank(context, query_docs, asked->round);
  ShownList list;
  const std::int64_t shown = std::min(ranks > 0 ? ranks : cutoff, query_docs.docs());
  list.docs.assign(ranked.docs.begin(), ranked.docs.begin() + shown);
  // A list that is cut keeps the probabilities of its ranks.
  if (!ranked.propensity.empty())
    list.propensity.assign(ranked.propensity.begin(), ranked.propensity.begin() + shown);
  const auto is_shown = [&](std::int32_t doc) {
    return std::find(list.docs.begin(), list.docs.end(), doc) != list.docs.end();
  };
  const bool all = shown == std::min(cutoff, query_docs.docs());
  for (const CertainOrder& order : ranked.certain_orders) {
    if (all || (is_shown(order.first) && is_shown(order.second)))
      list.certain.push_back({order.first, order.second});
  }
  RoundDetail detail;
  ranker->describe(query_docs, with_widths, detail);
  list.scores.assign(detail.scores.begin(), detail.scores.end());
  if (with_widths) list.widths = widths_of(detail);
  list.query = std::move(asked);
  return list;
}

ShownList Ranker::shown_list(std::span<const float> docs, std::span<const std::int32_t> shown,
                             std::string_view query) {
  state_->check_shown(shown, std::ssize(docs) / state_->normaliser.features);
  ShownList list;
  list.query = state_->query_of(docs);
  state_->next_round(*list.query, query);
  list.docs.assign(shown.begin(), shown.end());
  list.scores = state_->score(*list.query);
  return list;
}

std::int64_t Ranker::learn(const ShownList& list, std::span<const std::uint8_t> clicks,
                           std::span<const double> rewards) {
  const auto continues = [&](const ShownList::Query& query) {
    return query.owner == 0 && query.recipe == state_->recipe && query.round <= state_->round &&
           std::ssize(query.inputs) == query.docs * state_->normaliser.inputs();
  };
  if (list.query == nullptr || (list.query->owner != state_->number && !continues(*list.query)))
    throw InvalidArgument("This list is not from this ranker: give it to the ranker whose rank() made it.");
  ShownList::Query& query = *list.query;
  if (query.answered) throw_error<InvalidArgument>("List {} was answered already.", query.round);
  if (clicks.size() != list.docs.size()) {
    throw_error<InvalidArgument>(
        "There are {} clicks for {} shown documents: give one value for each rank, 0 or 1.", clicks.size(),
        list.docs.size());
  }
  if (std::ssize(list.docs) > state_->cutoff) {
    throw_error<InvalidArgument>("The list shows {} documents, but this ranker's lists have at most {}.",
                                 list.docs.size(), state_->cutoff);
  }
  for (std::size_t rank = 0; rank < clicks.size(); ++rank) {
    if (clicks[rank] <= 1) continue;
    throw_error<InvalidArgument>("The click at rank {} is {}: it must be 0 or 1.", rank + 1, clicks[rank]);
  }
  if (!rewards.empty()) state_->check_rewards(rewards, clicks.size());
  if (state_->learns_from_latest_list_only && query.round != state_->round) {
    throw_error<InvalidArgument>("A '{}' learns from its latest list only, which is {}, not {}.",
                                 state_->kind(), state_->round, query.round);
  }
  const CallersGpu kept = state_->callers_gpu();
  query.bring(list.docs);
  RoundContext context{state_->execution, state_->clock};
  const LearnReport report =
      state_->ranker->learn(context, {query.round, query.query_docs(), list.docs, clicks, rewards});
  query.answered = true;
  return std::ssize(report.pairs);
}

std::vector<float> Ranker::score(std::span<const float> docs) {
  return state_->score(*state_->query_of(docs));
}

std::vector<float> Ranker::score(const GpuDocs& docs) {
  return state_->score(*state_->query_of(docs));
}

std::vector<double> Ranker::widths(std::span<const float> docs) {
  state_->check_has_widths();
  return state_->widths(*state_->query_of(docs));
}

std::vector<double> Ranker::widths(const GpuDocs& docs) {
  state_->check_has_widths();
  return state_->widths(*state_->query_of(docs));
}

std::vector<double> Ranker::State::widths(const ShownList::Query& query) {
  const CallersGpu kept = callers_gpu();
  // Ranking changes nothing that later rounds depend on.
  const QueryDocs docs{0, 0, query.matrix()};
  RoundContext context{execution, clock};
  ranker->rank(context, docs, round + 1);
  RoundDetail detail;
  ranker->describe(docs, true, detail);
  return widths_of(detail);
}

std::string Ranker::kind() const {
  return std::string(state_->kind());
}

std::int64_t Ranker::features() const {
  return state_->normaliser.features;
}

std::int64_t Ranker::cutoff() const {
  return state_->cutoff;
}

std::int64_t Ranker::parameters() const {
  return state_->ranker->parameters();
}

std::uint32_t Ranker::rounds() const {
  return state_->round;
}

std::vector<std::string> Ranker::feature_names() const {
  return state_->feature_names;
}

void Ranker::name_features(std::vector<std::string> names) {
  require_feature_names(names, features(), "feature_names");
  state_->feature_names = std::move(names);
}

std::string Ranker::fingerprint() const {
  StateWriter state = StateWriter::digester();
  state_->put(state, false);
  return state.fingerprint().hex();
}

std::string Ranker::settings() const {
  const RankerSettings& settings = state_->settings;
  return print_settings(RankerSettings::schema(), &settings,
                        [&](const Setting& setting) { return !why_ignored(settings, setting.key); });
}

void Ranker::save(const std::filesystem::path& file) const {
  StateWriter state;
  state_->put(state, true);
  state.write(file);
}

Ranker Ranker::load(const std::filesystem::path& file, int threads, bool trust_code,
                    std::string_view device) {
  if (std::filesystem::is_directory(file)) {
    if (parse_device(device).on_gpus())
      throw InvalidArgument(
          "device: The ranker of a trial continues on the CPU only: use device = \"cpu\".");
    return Ranker(State::of_trial(file, threads, trust_code));
  }
  StateReader state = read_state_file(file, kRestart);
  return Ranker(State::get(state, threads, trust_code, device));
}

std::string Ranker::bytes() const {
  StateWriter state;
  state_->put(state, true);
  return state.bytes();
}

Ranker Ranker::from_bytes(std::string bytes, int threads, bool trust_code, std::string_view device) {
  StateReader state(std::move(bytes), "ranker", kRestart);
  return Ranker(State::get(state, threads, trust_code, device));
}

void Ranker::save_model(const std::filesystem::path& file) const {
  const CallersGpu kept = state_->callers_gpu();
  ModelMetadata metadata = {{"normalisation", normaliser_text(state_->normaliser)},
                            {"ranker", std::string(state_->kind())},
                            {"rounds", fmt::format("{}", state_->round)}};
  if (!state_->feature_names.empty())
    metadata.emplace_back("feature_names", feature_names_text(state_->feature_names));
  write_file_atomically(file, model_bytes(state_->ranker->model(), metadata));
}

std::string library_version() {
  return std::string(version());
}

}  // namespace olrank
