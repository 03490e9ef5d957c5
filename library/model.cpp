#include "olrank/model.h"
#include "core/data/normaliser.h"
#include "core/settings/value.h"
#include "core/throw_error.h"

#include <cmath>

#include "core/device/visible_gpus.h"
#include "core/io/atomic_file.h"
#include "core/online/online_ranker.h"
#include "core/runtime/device.h"
#include "core/runtime/execution_context.h"
#include "core/settings/enum_names.h"
#include "jobs/device_choice.h"
#include "jobs/saved_trial.h"
#include "jobs/training/train_data.h"
#include "logs/log_training.h"
#include "models/files/model_file.h"
#include "models/files/model_scorer.h"
#include "option_names.h"

namespace olrank {
Model::Model(std::string bytes, const std::string& origin, bool trust_code)
    : bytes_(std::make_shared<const std::string>(std::move(bytes))),
      scorer_(std::make_shared<const ModelScorer>(parse_model(*bytes_, origin, code_if(trust_code)))) {}

Model Model::load(const std::filesystem::path& file, bool trust_code) {
  const std::filesystem::path found = model_file_of(file.string());
  return Model(read_file(found), found.string(), trust_code);
}

Model Model::from_bytes(std::string bytes, bool trust_code) {
  return Model(std::move(bytes), "model", trust_code);
}

std::int64_t Model::features() const {
  return scorer_->features();
}

const std::vector<std::string>& Model::feature_names() const {
  return scorer_->model().feature_names;
}

bool Model::normalises_by_query() const {
  return scorer_->model().normaliser.scales_queries();
}

std::vector<double> Model::score(std::span<const float> docs, std::span<const std::int64_t> offsets,
                                 std::span<const std::string> queries,
                                 std::span<const std::string> ids) const {
  std::vector<double> scores(std::ssize(docs) / features());
  score_into(docs, offsets, scores, queries, ids);
  return scores;
}

std::vector<double> Model::score(const RankingData& data) const {
  ExecutionContext context(1);
  return scores_of_all(*scorer_, fitted_to_model(data.dataset(), scorer_->model(), "data", context),
                       context);
}

void Model::score_into(std::span<const float> docs, std::span<const std::int64_t> offsets,
                       std::span<double> scores, std::span<const std::string> queries,
                       std::span<const std::string> ids) const {
  const std::int64_t width = features();
  const std::int64_t rows = std::ssize(docs) / width;
  if (docs.empty() || std::ssize(docs) % width != 0) {
    throw_error<InvalidArgument>(
        "There are {} feature values: give every document {}, one document at least.", docs.size(), width);
  }
  for (std::size_t i = 0; i < docs.size(); ++i) {
    if (std::isfinite(docs[i])) continue;
    const auto place = static_cast<std::int64_t>(i);
    throw_error<InvalidArgument>("Feature {} of document {} is not finite.", place % width + 1,
                                 place / width);
  }
  const std::int64_t whole[] = {0, rows};
  if (offsets.empty()) offsets = whole;
  bool rising = offsets.front() == 0 && offsets.back() == rows;
  for (std::size_t query = 1; query < offsets.size(); ++query)
    rising = rising && offsets[query] >= offsets[query - 1];
  if (!rising) {
    throw_error<InvalidArgument>("The offsets of queries must rise from 0 to the {} documents.", rows);
  }
  if (std::ssize(scores) != rows) {
    throw_error<InvalidArgument>("There is room for {} scores of {} documents: give one place for each.",
                                 scores.size(), rows);
  }
  if ((!queries.empty() && queries.size() + 1 != offsets.size()) ||
      (!ids.empty() && std::ssize(ids) != rows)) {
    throw_error<InvalidArgument>(
        "There are {} names of {} queries and {} IDs of {} documents: give one for each.", queries.size(),
        offsets.size() - 1, ids.size(), rows);
  }
  QueryNames names;
  if (!queries.empty())
    names.query = [&](std::int64_t query) -> std::string_view { return queries[query]; };
  if (!ids.empty()) names.doc = [&](std::int64_t doc) -> std::string_view { return ids[doc]; };
  // A thread keeps the memory for few documents: asking for it costs a sixth of the time of a single one.
  constexpr std::size_t kFewValues = 1 << 15;
  thread_local Scratch kept;
  Scratch own;
  scorer_->score(docs.size() <= kFewValues ? kept : own, {docs.data(), rows, width}, offsets, scores,
                 names);
}

const std::string& Model::bytes() const {
  return *bytes_;
}

void Model::save(const std::filesystem::path& file) const {
  write_file_atomically(file, *bytes_);
}

namespace {

Model fit(const std::optional<RankingData>& train, const std::optional<RankingData>& validation,
          const FitOptions& options) {
  std::vector<SettingOverride> overrides = {{"data", "", "normalise", options.normalise, "normalise"}};
  for (const auto& [key, text] : options.settings) {
    if (key == "seeds")
      throw InvalidArgument("FitOptions::settings has the key 'seeds': use FitOptions::seed.");
    overrides.push_back({"train", "", key, text, "fit"});
  }
  const TrainConfiguration configuration = resolve_train_configuration(std::nullopt, overrides);
  const bool from_log = !options.log.empty();
  if (!train && !from_log) throw InvalidArgument("There are no training data: give some, or a log.");
  const CallersGpu kept(parse_device(options.device).on_gpus());
  const int threads = options.threads > 0 ? options.threads : available_threads();
  ExecutionContext context(threads);
  if (validation && train && validation->features() != train->features()) {
    throw_error<InvalidArgument>("The training part has {} features and the validation part {}.",
                                 train->features(), validation->features());
  }
  if (!train && (validation || configuration.train.patience > 0))
    throw InvalidArgument("A log has no validation part: set patience = 0, and give no validation part.");
  constexpr std::int64_t kFold = 1;
  const auto loaded = [&]() -> LogFold {
    if (!train) return fold_of_log(options.log, context);
    DataParts parts{train->dataset(), std::nullopt, no_queries(train->features())};
    if (validation) parts.vali = validation->dataset();
    return {train_fold_of(configuration, parts, kFold, context, !from_log), ""};
  }();
  const TrainFold& fold = loaded.fold;
  const auto seed = static_cast<std::int64_t>(options.seed);
  LogTrainingRequest request;
  std::optional<ClickTargets> clicks;
  if (from_log) {
    request.log = options.log;
    request.clip = options.clip;
    request.choose(options.estimator, options.click_model);
    request.check(configuration.train, parse_device(options.device).on_gpus());
    const LogLists lists = read_log_lists(request, fold.train, !train);
    clicks =
        click_targets(request, lists, fold.train, configuration.train, training_keys(kFold, seed), threads);
  }
  std::optional<LabelDevice> device;
  if (const auto gpu = gpu_for(options.device)) device = label_device(*gpu, gpu->free_bytes);
  LabelTraining training(configuration.train, fold.parts(clicks ? &*clicks : nullptr),
                         training_keys(kFold, seed), {}, threads, device);
  training.evaluate_first();
  while (!training.finished()) {
    training.advance();
    if (options.stopped && options.stopped()) throw Error("The training was stopped.");
  }
  ModelMetadata metadata = model_metadata(configuration, fold, training, kFold, seed);
  if (from_log) describe_log(request, loaded.feature_names, metadata);
  if (!options.feature_names.empty()) {
    require_feature_names(options.feature_names, fold.normaliser.features, "feature_names");
    for (auto& [key, text] : metadata)
      if (key == "feature_names") text = feature_names_text(options.feature_names);
  }
  return Model::from_bytes(model_bytes(training.model().tensors(training.theta()), metadata), true);
}

}  // namespace

Model fit_model(const std::optional<RankingData>& train, const std::optional<RankingData>& validation,
                const FitOptions& options) {
  return with_option_names([&] { return fit(train, validation, options); });
}

}  // namespace olrank
