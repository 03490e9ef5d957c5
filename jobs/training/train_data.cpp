#include "jobs/training/train_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/io/fingerprint.h"
#include "core/runtime/log.h"
#include "core/throw_error.h"
#include "core/version.h"
#include "jobs/device_choice.h"
#include "jobs/output_folder.h"
#include "jobs/training/training_job.h"
#include "models/files/model_file.h"
#include "models/neural/ranker_network.h"

namespace olrank {

using nlohmann::ordered_json;

namespace {

/// The settings of the model of one seed.
std::string settings_text(LabelSettings settings, std::int64_t seed, bool on_gpu) {
  settings.seeds = {seed};
  return print_label_settings(settings) + (on_gpu ? std::string(kComputedOnGpu) : "");
}

}  // namespace

TrainFold load_train_fold(const TrainConfiguration& configuration, std::int64_t fold,
                          ExecutionContext& context, bool graded) {
  DataSettings data = configuration.data;
  data.weights = graded;
  const DataParts raw = load_parts(data, fold, context);
  if (!raw.train.contents().weights.empty())
    log_info("Fold {}: the training loss weighs queries as the data say; figures of parts do not.", fold);
  return train_fold_of(configuration, raw, fold, context, graded);
}

TrainFold train_fold_of(const TrainConfiguration& configuration, const DataParts& raw, std::int64_t fold,
                        ExecutionContext& context, bool graded) {
  if (configuration.train.patience > 0 && !raw.vali) {
    throw_error<InvalidArgument>(
        "Fold {} has no validation part, which patience = {} needs: add one, or set patience = 0.", fold,
        configuration.train.patience);
  }
  if (raw.train.queries() == 0)
    throw_error<InvalidArgument>("The training part of fold {} has no queries.", fold);
  if (graded) require_order(LabelledQueries(raw.train));
  require_model_features(raw.train.features());
  FittedNormaliser normaliser =
      fit_normaliser(configuration.data.normalise, raw.train, configuration.data.drop_constant, context);
  int most_grade = std::max(raw.train.max_grade(), raw.test.max_grade());
  if (raw.vali) most_grade = std::max(most_grade, raw.vali->max_grade());
  std::optional<Dataset> vali;
  if (raw.vali) vali = normaliser.apply(*raw.vali, context);
  Dataset train = normaliser.apply(raw.train, context);
  Dataset test = normaliser.apply(raw.test, context);
  return {std::move(train), std::move(vali), std::move(test), most_grade, std::move(normaliser)};
}

Dataset no_queries(std::int64_t features) {
  static constexpr std::int64_t kNoOffset[] = {0};
  Dataset::Contents contents;
  contents.offsets = kNoOffset;
  contents.features = features;
  return Dataset(std::move(contents));
}

LabelDevice label_device(const GpuDescription& gpu, std::int64_t bytes) {
  constexpr double kShareOfDocs = 0.8;
  LabelDevice device;
  device.gpu = gpu.index;
  device.bytes_for_docs = static_cast<std::int64_t>(kShareOfDocs * static_cast<double>(bytes));
  return device;
}

std::string faster_training_device(const TrainConfiguration& configuration, const Dataset& train,
                                   int threads, const std::filesystem::path& out, bool resumed) {
  const GpuSurvey survey = visible_gpus();
  if (!survey.built_with_cuda) return "auto";
  const LabelSettings& settings = configuration.train;
  if (const auto before = resumed ? recorded_device(out) : std::nullopt) return device_of_resumed(*before);
  DeviceAdvice advice;
  if (train.is_sparse() || settings.smooth_at > 1 || settings.optimizer == LabelOptimizer::kOgdAverage ||
      settings.network.network == NetworkForm::kModule) {
    advice.why = "The CPU computes this, as no GPU was timed with these settings.";
  } else {
    const auto models = std::ssize(configuration.data.folds) * std::ssize(settings.seeds);
    advice = faster_device(
        times_of_training(train.docs(), model_size(settings.network, train.features()).parameters(),
                          models * settings.most_epochs(), threads),
        survey);
  }
  log_info("{}", advice.why);
  return advice.device;
}

TrialKeys training_keys(std::int64_t fold, std::int64_t seed) {
  return {static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(fold), 0};
}

Recipe training_recipe(const TrainConfiguration& configuration, const TrainFold& data, std::int64_t fold,
                       std::int64_t seed, bool on_gpu) {
  std::string text = settings_text(configuration.train, seed, on_gpu);
  if (has_module_file(configuration.train.network)) {
    const NetworkSettings network = with_module_file(configuration.train.network);
    text += fmt::format("# module {} has the content {}\n", network.module,
                        fingerprint_of(*network.module_file).hex());
  }
  return {{"version", std::string(version())},
          {"train", text},
          {"data", fmt::format("{} {} {} grades 0-{}", data.train.fingerprint().hex(),
                               data.vali ? data.vali->fingerprint().hex() : "none",
                               data.test.fingerprint().hex(), data.most_grade)},
          {"fold", fmt::format("{}", fold)}};
}

ModelMetadata model_metadata(const TrainConfiguration& configuration, const TrainFold& data,
                             const LabelTraining& training, std::int64_t fold, std::int64_t seed) {
  return {{"normalisation", normaliser_text(data.normaliser)},
          {"feature_names", feature_names_beside(configuration.data.train, data.normaliser.features)},
          {"trained_by", "olrank train"},
          {"train_settings", settings_text(configuration.train, seed, training.on_gpu())},
          {"fold", fmt::format("{}", fold)},
          {"seed", fmt::format("{}", seed)},
          {"epochs", fmt::format("{}", training.theta_epoch())},
          {"olrank", std::string(version())}};
}

ordered_json training_summary(LabelTraining& training, const TrainFold& data, std::int64_t fold,
                              std::int64_t seed) {
  const MetricOptions& options = training.metric_options();
  ordered_json summary = {{"fold", fold},
                          {"seed", seed},
                          {"epochs", training.epoch()},
                          {"kept_epoch", training.theta_epoch()},
                          {"converged", training.converged()},
                          {"loss", training.final_objective()}};
  const auto part = [&](const Dataset& dataset) {
    const LabelTraining::Evaluation found = training.evaluate(dataset);
    ordered_json json = {{"queries", dataset.queries()}, {"docs", dataset.docs()}, {"loss", found.loss}};
    json.update(metrics_json(found.metrics, options));
    return json;
  };
  summary["train"] = part(data.train);
  if (data.vali) summary["vali"] = part(*data.vali);
  if (data.test.queries() > 0) summary["test"] = part(data.test);
  summary["conventions"] = describe_conventions(options);
  summary["features"] = data.normaliser.features;
  summary["parameters"] = training.model().parameters();
  return summary;
}

}  // namespace olrank
