#include "jobs/experiment_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "core/data/data_loader.h"
#include "core/data/normaliser.h"
#include "core/device/device_network.h"
#include "core/device/visible_gpus.h"
#include "core/fair/dataset_groups.h"
#include "core/io/atomic_file.h"
#include "core/io/fingerprint.h"
#include "core/metrics/metric_options.h"
#include "core/ops/blas.h"
#include "core/runtime/log.h"
#include "core/throw_error.h"
#include "core/version.h"
#include "jobs/device_choice.h"
#include "jobs/saved_trial.h"
#include "jobs/settings/run_settings.h"
#include "models/baselines/baselines.h"
#include "models/files/model_file.h"
#include "models/linear/linear_belief.h"
#include "models/modules/module_model.h"
#include "models/neural/device_ranker.h"
#include "models/neural/ranker_network.h"
#include "models/ranker_factory.h"
#include "report/inspection.h"
#include "sim/trial_figures.h"
#include "sim/trial_settings.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

/// The settings as "key = value" lines, without the given keys.
std::string settings_without(const Schema& schema, const void* object,
                             const std::vector<std::string_view>& keys) {
  std::string text;
  for (const Setting& setting : schema.settings) {
    if (std::find(keys.begin(), keys.end(), setting.key) != keys.end()) continue;
    text += fmt::format("{} = {}\n", setting.key, to_toml(setting.read(object)));
  }
  return text;
}

int threads_of(const Configuration& configuration) {
  return configuration.run.threads > 0 ? static_cast<int>(configuration.run.threads) : available_threads();
}

const Dataset& evaluated_part(const DataParts& parts, const DataSettings& settings, std::int64_t fold) {
  const bool by_test = settings.evaluate == EvaluationPart::kTest;
  if (!by_test && !parts.vali) {
    throw_error<InvalidArgument>("data.evaluate is 'vali', but fold {} has no validation set.", fold);
  }
  const Dataset& eval_set = by_test ? parts.test : *parts.vali;
  if (eval_set.queries() == 0) {
    throw_error<InvalidArgument>(
        "The {} part of fold {} has no queries, so nothing can be evaluated on it.",
        name_of(settings.evaluate), fold);
  }
  return eval_set;
}

OfflineModel train_offline_model(const TrialData& data, std::int64_t fold, ExecutionContext& context) {
  OfflineModel offline;
  offline.theta = offline_linear_theta(LabelledQueries(data.train), data.train.features(), fold);
  offline.eval_scores.resize(data.eval_set.docs());
  const LinearModel model(data.train.features());
  model.score(context, offline.theta, data.eval_set.all_rows(), offline.eval_scores);
  return offline;
}

/// The part that the rounds' queries come from.
const Dataset& query_part(const DataParts& parts, bool validation, std::int64_t fold) {
  if (validation && !parts.vali)
    throw_error<InvalidArgument>("Fold {} has no validation set to calibrate on.", fold);
  const Dataset& query_data = validation ? *parts.vali : parts.train;
  if (query_data.queries() == 0) {
    throw_error<InvalidArgument>("The {} set of fold {} has no queries.",
                                 validation ? "validation" : "training", fold);
  }
  return query_data;
}

int max_grade_of(const DataParts& parts) {
  const int highest = std::max(parts.train.max_grade(), parts.test.max_grade());
  return parts.vali ? std::max(highest, parts.vali->max_grade()) : highest;
}

void check_start_models(const Configuration& configuration, const FittedNormaliser& normaliser) {
  for (const RankerSettings& ranker : configuration.rankers) {
    if (const auto start = start_model_of(ranker)) check_start_inputs(ranker, *start, normaliser);
  }
}

/// The groups of the part that queries come from, by raw values. Trials with other groups are other trials.
void add_groups(const GroupSettings& settings, const Dataset& train, const Dataset& query_data,
                FoldData& fold) {
  const GroupRule rule(settings, train);
  fold.data.groups = rule.groups_of(query_data).of_doc;
  fold.data.beta = rule.beta();
  Fingerprinter fingerprinter;
  fingerprinter.add(fold.data.groups.data(), fold.data.groups.size());
  fold.fingerprint =
      fmt::format(" groups {} beta {}", fingerprinter.value().hex(), fmt::join(rule.beta(), ", "));
}

std::shared_ptr<const FoldData> load_fold(const Configuration& configuration,
                                          const ExperimentRequest& request, std::int64_t fold) {
  ExecutionContext context(threads_of(configuration));
  const DataParts parts = load_parts(configuration.data, fold, context);
  const Dataset& eval_set = evaluated_part(parts, configuration.data, fold);
  const Dataset& query_data = query_part(parts, request.ask_validation, fold);
  require_model_features(parts.train.features());
  const FittedNormaliser normaliser =
      fit_normaliser(configuration.data.normalise, parts.train, configuration.data.drop_constant, context);
  check_start_models(configuration, normaliser);
  const int max_grade = max_grade_of(parts);
  std::optional<RecordedFeedback> recorded;
  if (!request.replay.empty())
    recorded = RecordedFeedback::read(request.replay, parts.train, allowed_bytes(configuration.data),
                                      parts.train.contents().store.get());
  auto data = std::make_shared<FoldData>(
      FoldData{{normaliser.apply(query_data, context), normaliser.apply(eval_set, context), max_grade},
               {},
               {{"normalisation", normaliser_text(normaliser)},
                {"feature_names", feature_names_beside(configuration.data.train, normaliser.features)}},
               std::move(recorded)});
  if (configuration.groups.are_set()) add_groups(configuration.groups, parts.train, query_data, *data);
  if (configuration.protocol.cosine == CosineReference::kOffline)
    data->data.offline = train_offline_model(data->data, fold, context);
  data->fingerprint = fmt::format("{} {} grades 0-{}", data->data.train.fingerprint().hex(),
                                  data->data.eval_set.fingerprint().hex(), max_grade) +
                      data->fingerprint;
  return data;
}

ordered_json part_json(const Dataset& data) {
  return {{"queries", data.queries()},
          {"docs", data.docs()},
          {"features", data.features()},
          {"max_grade", data.max_grade()},
          {"fingerprint", data.fingerprint().hex()}};
}

/// With `all_settings` also those that a ranker ignores.
ordered_json configuration_object(const Configuration& configuration, bool all_settings) {
  ordered_json json = {{"data", table_json(DataSettings::schema(), &configuration.data)},
                       {"protocol", table_json(ProtocolSettings::schema(), &configuration.protocol)},
                       {"clicks", table_json(ClickSettings::schema(), &configuration.clicks)}};
  if (configuration.groups.are_set())
    json["groups"] = table_json(GroupSettings::schema(), &configuration.groups);
  for (const UserSettings& user : configuration.users)
    json["user"].push_back(table_json(UserSettings::schema(), &user));
  for (const RankerSettings& ranker : configuration.rankers) {
    ordered_json table = table_json(RankerSettings::schema(), &ranker);
    for (const Setting& setting : RankerSettings::schema().settings)
      if (!all_settings && why_ignored(ranker, setting.key)) table.erase(setting.key);
    json["ranker"].push_back(std::move(table));
  }
  json["run"] = table_json(RunSettings::schema(), &configuration.run);
  return json;
}

void add_deviations(const Schema& schema, const void* object, const void* defaults,
                    const std::string& place, std::string_view protocol_name,
                    const std::vector<std::string_view>& free_keys, std::vector<std::string>& deviations) {
  for (const Setting& setting : schema.settings) {
    if (std::find(free_keys.begin(), free_keys.end(), setting.key) != free_keys.end()) continue;
    const std::string value = to_toml(setting.read(object));
    const std::string default_value = to_toml(setting.read(defaults));
    if (value != default_value)
      deviations.push_back(
          fmt::format("{}: {} = {} ({}: {})", place, setting.key, value, protocol_name, default_value));
  }
}

/// Marks GPU rankers: their results differ from the CPU's by rounding, and their checkpoints in format.
std::string ranker_recipe(const RankerSettings& ranker, const DeviceChoice& device) {
  std::vector<std::string_view> elsewhere = {"name", "start_from", "trust_code"};
  for (const Setting& setting : RankerSettings::schema().settings) {
    if (is_left_out_of_recipe(ranker, setting.key)) elsewhere.emplace_back(setting.key);
  }
  std::string recipe = settings_without(RankerSettings::schema(), &ranker, elsewhere);
  if (const auto start = start_model_of(ranker))
    recipe += fmt::format("# starts from the model {}\n", start->fingerprint);
  // A module of another content plays another trial.
  if (const auto& file = ranker.network.module_file)
    recipe +=
        fmt::format("# module {} has the content {}\n", ranker.network.module, fingerprint_of(*file).hex());
  // The rankers of a program are as it describes them.
  if (row_of(ranker.kind).is_external)
    recipe += fmt::format("# registered: {}\n", registered_ranker(ranker.name, ranker.own).description);
  if (device.takes(ranker)) recipe += kComputedOnGpu;
  return recipe;
}

/// Advises what makes a ranker explore more, or learn less from each noisy click.
std::string exploration_advice(const RankerSettings& ranker, const DataSettings& data) {
  const RankerKindRow& row = row_of(ranker.kind);
  std::vector<std::string> ways;
  if (row.evidence == OrderEvidence::kVotes) {
    ways.push_back(fmt::format("a larger noise_variance than {}", ranker.posterior.noise_variance));
  } else if (row.evidence == OrderEvidence::kClickCounts) {
    ways.push_back(fmt::format("more rounds a query, or a larger delta than {}", ranker.explore.delta));
  } else if (row.evidence == OrderEvidence::kProbabilities) {
    ways.emplace_back("more rounds");
  } else if (row.is_external) {
    ways.emplace_back("more exploration");
  } else if (ranker.kind == RankerKind::kFairCo) {
    ways.push_back(fmt::format("a smaller fair_gain than {}", ranker.fair.fair_gain));
  } else if (row.evidence == OrderEvidence::kNone) {
    ways.push_back(fmt::format("a smaller learning_rate than {}", ranker.trainer.learning_rate));
  } else if (ranker.posterior.covariance == Covariance::kNone) {
    ways.emplace_back("another covariance than none");
  } else if (ranker.explore.alpha_schedule == AlphaSchedule::kTheory) {
    ways.push_back(fmt::format("a larger c1 than {}", ranker.explore.c1));
  } else {
    ways.push_back(fmt::format("a larger alpha than {}", ranker.explore.alpha));
  }
  if (row.pairs != PairUse::kOwnPairs && ranker.feedback.pairs == PairRule::kAdjacent)
    ways.emplace_back("pairs = \"matched\"");
  if (data.normalise == Normalisation::kNone) ways.emplace_back("normalised features");
  return fmt::format("{}", fmt::join(ways, " or "));
}

/// Returns what is known of the rankers' modules once they are tried. The log tells it, too.
ordered_json modules_json(const Configuration& configuration, std::int64_t features) {
  ordered_json modules = ordered_json::array();
  std::set<std::string> told;
  for (const RankerSettings& ranker : configuration.rankers) {
    if (ranker.network.network != NetworkForm::kModule) continue;
    const auto module = make_module_model(ranker.network, features);
    modules.push_back({{"ranker", ranker.name},
                       {"module", ranker.network.module},
                       {"parameters", module->parameters()},
                       {"factors_by", module->factors_by()},
                       {"fingerprint", module->fingerprint()}});
    if (!told.insert(ranker.network.module).second) continue;
    log_info("Module '{}' has {} parameters; its gradients come {}.", ranker.network.module,
             module->parameters(),
             module->factors_by() == "hooks" ? "as factors of its layers, from one backward pass (hooks)"
                                             : "whole, from a backward pass for each document (rows)");
  }
  return modules;
}

/// Adds what each user's trials on a fold measure fairness by.
void add_fairness(const Configuration& configuration, const ExperimentPlan& plan, std::int64_t fold,
                  const Dataset& train, int max_grade, ordered_json& fairness) {
  const GroupRule rule(configuration.groups, train);
  for (const RankerSettings& ranker : configuration.rankers)
    check_group_count(ranker.fair, rule.beta().size() + 1, ranker.name);
  const auto group_json = [](const GroupSummary& summary) -> ordered_json {
    return {{"docs", summary.docs}, {"mean_grade", summary.mean_grade}};
  };
  for (const ExperimentUser& user : plan.users) {
    const PlannedFairness planned =
        make_trial_fairness(configuration.groups, rule.beta(), *user.make(max_grade), train,
                            configuration.protocol.cutoff, fold, user.name);
    ordered_json entry = {{"user", user.name},
                          {"fold", fold},
                          {"examination", planned.examination.by_rank},
                          {"examination_lists", planned.examination.lists},
                          {"beta", one_or_all(rule.beta())},
                          {"epsilon", planned.fairness.rule.epsilon}};
    for (std::size_t group = 0; group < rule.of_train().summaries.size(); ++group) {
      const std::string letter(1, letter_of(static_cast<DocGroup>(group)));
      entry["groups"][letter] = group_json(rule.of_train().summaries[group]);
    }
    if (configuration.groups.feature > 0) entry["threshold"] = one_or_all(rule.thresholds());
    fairness.push_back(std::move(entry));
  }
}

/// Parallel trials share the available memory equally.
ExperimentRanker::Make maker_on_cpu(const RankerSettings& ranker, std::int64_t cutoff, std::int64_t jobs) {
  return [ranker, cutoff, memory = available_memory() / jobs, start = start_model_of(ranker)](
             const RankerData& data, const TrialKeys& keys) {
    RankerDependencies dependencies{
        .labels = data.labels, .memory = memory, .sparse = data.train.is_sparse()};
    if (start) dependencies.first_thetas = start->thetas;
    if (start) dependencies.click_start = start->of_clicks;
    return make_ranker(ranker, data.train.features, keys, cutoff, dependencies);
  };
}

/// The batches of an experiment whose GPUs play several trials at once; each is made when a trial needs it.
class GpuBatches {
 public:
  explicit GpuBatches(const GpuSlots& slots) : slots_(slots) {}

  std::shared_ptr<DeviceBatch> of_slot(std::int64_t slot) {
    const std::int64_t place = slot % std::ssize(slots_.gpus());
    if (slots_.slots_on(place) == 1) return nullptr;
    const std::lock_guard lock(mutex_);
    std::shared_ptr<DeviceBatch>& batch = batches_[place];
    if (!batch) batch = make_device_batch(slots_.gpu_of(slot).index, slots_.slots_on(place));
    return batch;
  }

 private:
  GpuSlots slots_;
  std::mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<DeviceBatch>> batches_;
};

ExperimentRanker::Make maker_on_gpus(const RankerSettings& ranker, std::int64_t cutoff,
                                     const GpuSlots& slots, std::int64_t folds,
                                     const std::shared_ptr<GpuBatches>& batches) {
  return [ranker, cutoff, slots, folds, batches](const RankerData& data, const TrialKeys& keys) {
    const std::int64_t documents = data.train.bytes() + data.eval_docs.bytes();
    const std::int64_t memory = slots.bytes_on(slots.tightest(documents, folds), documents, folds);
    const RankerDevice place{slots.gpu_of(data.slot).index,
                             data.train,
                             data.most_docs,
                             data.eval_docs,
                             std::max<std::int64_t>(1, memory),
                             batches->of_slot(data.slot)};
    return make_ranker(ranker, data.train.features, keys, cutoff,
                       {.device = &place, .sparse = data.train.is_sparse()});
  };
}

}  // namespace

ExperimentPlan make_plan(const Configuration& configuration, const ExperimentRequest& request) {
  if (configuration.data.source.empty() && configuration.data.train.empty()) {
    throw InvalidArgument("No data given: name a folder or \"synth:NAME\" with --data.");
  }
  if (configuration.run.same_bits_on == SameBitsOn::kAnyCpu) blas::compute_as_on_any_cpu();
  const DeviceChoice device = choose_device(configuration);
  if (!request.replay.empty() && configuration.data.folds.size() != 1) {
    throw InvalidArgument("--replay works on one fold; choose it with --fold.");
  }
  ExperimentPlan plan;
  plan.out = configuration.run.out;
  const std::int64_t cutoff = configuration.protocol.cutoff;
  const auto folds = std::ssize(configuration.data.folds);
  const GpuSlots slots = GpuSlots::of(configuration, device);
  const std::int64_t jobs = device.on_gpus() ? slots.jobs() : configuration.run.jobs;
  if (jobs >= available_threads()) {
    for (const GpuDescription& gpu : device.gpus) sleep_while_waiting(gpu);
  }
  const auto batches = std::make_shared<GpuBatches>(slots);
  for (const RankerSettings& given : configuration.rankers) {
    RankerSettings ranker = given;
    ranker.network = with_module_file(given.network);
    // Throws before anything is read or written.
    check_ranker(ranker, cutoff);
    const bool on_gpus = device.takes(ranker);
    plan.rankers.push_back({ranker.name, ranker_recipe(ranker, device),
                            on_gpus ? maker_on_gpus(ranker, cutoff, slots, folds, batches)
                                    : maker_on_cpu(ranker, cutoff, jobs),
                            row_of(ranker.kind).needs_labels,
                            exploration_advice(ranker, configuration.data)});
  }
  if (request.replay.empty()) {
    for (const std::string& name : configuration.clicks.models) {
      plan.users.push_back({name,
                            [&configuration, name](int max_grade) {
                              return make_user(name, configuration.clicks, configuration.users, max_grade);
                            },
                            [&configuration, name](int max_grade) {
                              return describe_user(name, configuration.clicks, configuration.users,
                                                   max_grade);
                            }});
    }
  } else {
    plan.users.push_back({"recorded", {}, {}});
  }
  plan.folds = configuration.data.folds;
  plan.seeds = configuration.protocol.seeds;
  plan.trial = {configuration.protocol.rounds,
                cutoff,
                configuration.protocol.eval_every,
                configuration.protocol.discount,
                configuration.protocol.empty_queries,
                parse_metrics(configuration.protocol.metrics, "protocol.metrics")};
  std::vector<std::string_view> elsewhere = {"seeds"};
  // Trials of versions without this setting stay as they are.
  if (configuration.protocol.metrics.empty()) elsewhere.emplace_back("metrics");
  plan.protocol = settings_without(ProtocolSettings::schema(), &configuration.protocol, elsewhere);
  for (const NamedMetric& metric : plan.trial.metrics) {
    if (metric.kind == MetricKind::kOwn)
      plan.protocol += fmt::format("# metric {}: {}\n", metric.name(), own_metric_description(metric));
  }
  if (const std::string restriction = blas::restriction(); !restriction.empty())
    plan.protocol += restriction + "\n";
  if (configuration.groups.are_set()) {
    if (!request.replay.empty()) {
      throw InvalidArgument(
          "[groups] measures the exposure of lists that rankers show, and --replay takes the lists of a "
          "recording: remove [groups] or --replay.");
    }
    plan.groups = configuration.groups;
    plan.protocol += settings_without(GroupSettings::schema(), &configuration.groups, {"file"});
  }
  plan.version = std::string(version());
  plan.data = request.data;
  if (!plan.data)
    plan.data = std::make_shared<FoldCache>(
        [configuration, request](std::int64_t fold) { return load_fold(configuration, request, fold); });
  plan.data_difference = [&configuration] { return data_difference(configuration); };
  plan.checkpoint_every = configuration.run.checkpoint_every;
  plan.keep_checkpoints = static_cast<int>(configuration.run.keep_checkpoints);
  plan.jobs = static_cast<int>(jobs);
  plan.asked_jobs = request.asked_jobs;
  plan.threads = threads_of(configuration);
  plan.shard = request.shard;
  plan.existing = request.existing;
  return plan;
}

std::vector<std::string> deviations(const Configuration& configuration) {
  const ProtocolName protocol = configuration.protocol.name;
  const std::string_view protocol_name = name_of(protocol);
  std::vector<std::string> found;
  const auto protocol_defaults = ProtocolSettings::defaults(protocol);
  add_deviations(ProtocolSettings::schema(), &configuration.protocol, &protocol_defaults, "protocol",
                 protocol_name, {"name", "rounds", "eval_every", "seeds", "metrics"}, found);
  const auto click_defaults = ClickSettings::defaults(protocol);
  add_deviations(ClickSettings::schema(), &configuration.clicks, &click_defaults, "clicks", protocol_name,
                 {"models"}, found);
  for (const RankerSettings& ranker : configuration.rankers) {
    const auto defaults = RankerSettings::defaults(ranker, protocol);
    add_deviations(RankerSettings::schema(), &ranker, &defaults, "ranker " + ranker.name, protocol_name,
                   {"name", "kind"}, found);
  }
  return found;
}

std::string configuration_json(const Configuration& configuration) {
  return configuration_object(configuration, false).dump();
}

void write_manifest(const Configuration& configuration, const ExperimentPlan& plan,
                    const OutputFolder& folder, const std::string& command) {
  const bool recorded = !plan.users.front().make;
  ExperimentPlan whole = plan;
  whole.shard = {};
  ordered_json data = {
      {"source", configuration.data.source.empty() ? configuration.data.train : configuration.data.source}};
  ExecutionContext context(threads_of(configuration));
  std::int64_t features = 1;
  ordered_json fairness = ordered_json::array();
  for (const std::int64_t fold : configuration.data.folds) {
    const DataParts parts = load_parts(configuration.data, fold, context);
    evaluated_part(parts, configuration.data, fold);
    // A user whose table is too short is refused before the first round.
    for (const ExperimentUser& user : plan.users) {
      if (!recorded) user.describe(max_grade_of(parts));
    }
    features = parts.train.features();
    if (configuration.groups.are_set())
      add_fairness(configuration, plan, fold, parts.train, max_grade_of(parts), fairness);
    ordered_json entry = {{"fold", fold}, {"train", part_json(parts.train)}};
    if (parts.vali) entry["vali"] = part_json(*parts.vali);
    entry["test"] = part_json(parts.test);
    data["folds"].push_back(entry);
  }
  MetricOptions offline;
  offline.empty_queries = configuration.protocol.empty_queries;
  const std::vector<TrialIdentity> trials = trials_of(whole);
  const LibtorchDescription libtorch = describe_libtorch();
  const GpuSurvey gpus = visible_gpus();
  ordered_json libraries = ordered_json::object();
  for (const DeviceLibrary& library : gpus.libraries) libraries[library.name] = library.version;
  ordered_json description = {
      {"recorded", recorded},
      {"trials", trials.size()},
      {"config", configuration_object(configuration, true)},
      {"protocol", name_of(configuration.protocol.name)},
      {"deviations", deviations(configuration)},
      {"seeds", configuration.protocol.seeds},
      {"device", choose_device(configuration).name()},
      {"libtorch", libtorch.version},
      {"cuda", gpus.built_with_cuda ? ordered_json(gpus.runtime_version) : ordered_json(nullptr)},
      {"cuda_libraries", libraries},
      {"blas", blas::library_name()},
      {"data", data},
      {"conventions",
       {{"offline", describe_conventions(offline)},
        {"empty_queries", name_of(configuration.protocol.empty_queries)},
        {"online", "an empty query counts 0; regret counts mis-ordered pairs of the whole list"}}}};
  const ordered_json modules = modules_json(configuration, features);
  if (!modules.empty()) description["modules"] = modules;
  if (fairness.size() == 1) {
    for (const char* key : {"examination", "examination_lists", "beta", "epsilon"})
      description[key] = fairness.front()[key];
  }
  if (!fairness.empty()) description["fairness"] = fairness;
  folder.write_manifest(description, command, trials);
}

void write_configuration(const Configuration& configuration, const std::filesystem::path& file) {
  write_file_atomically(file, print_configuration(configuration));
}

}  // namespace olrank
