#include "jobs/training/training_job.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/online/model_bytes.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

ordered_json point_json(const LabelTraining::Point& point, const MetricOptions& options) {
  ordered_json json = {{"epoch", point.epoch},
                       {"loss", point.loss ? number_or_null(*point.loss) : ordered_json(nullptr)}};
  if (!point.vali_loss) return json;
  json["vali"] = {{"loss", number_or_null(*point.vali_loss)}};
  json["vali"].update(metrics_json(point.vali, options));
  return json;
}

std::optional<double> real(const ordered_json& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

}  // namespace

ordered_json metrics_json(const MetricReport& report, const MetricOptions& options) {
  ordered_json json;
  for (std::size_t place = 0; place < options.cutoffs.size(); ++place)
    json[fmt::format("ndcg@{}", options.cutoffs[place])] = number_or_null(report.ndcg[place]);
  json["map"] = number_or_null(report.map);
  json["mrr"] = number_or_null(report.mrr);
  json[fmt::format("p@{}", options.precision_cutoff)] = number_or_null(report.precision);
  json[fmt::format("err@{}", options.err_cutoff)] = number_or_null(report.err);
  return json;
}

TrainingPoint training_point(const ordered_json& json) {
  TrainingPoint point;
  point.epoch = json.at("epoch").get<std::int64_t>();
  point.loss = real(json.value("loss", ordered_json(nullptr)));
  point.seconds = json.value("seconds", 0.0);
  if (!json.contains("vali")) return point;
  for (const auto& [name, value] : json["vali"].items()) {
    if (name == "loss") {
      point.vali_loss = real(value);
    } else if (const auto metric = real(value)) {
      point.vali.emplace_back(name, *metric);
    }
  }
  return point;
}

std::vector<TrainingPoint> read_training_curve(const fs::path& file) {
  std::vector<TrainingPoint> points;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    const auto json = try_parse_json(line);
    if (!json.is_object() || !json.contains("epoch")) break;
    points.push_back(training_point(json));
  }
  return points;
}

std::optional<ordered_json> TrainingJob::first_point() {
  return point_json(training_.evaluate_first(), training_.metric_options());
}

ordered_json TrainingJob::advance() {
  return point_json(training_.advance(), training_.metric_options());
}

void TrainingJob::finish(JobFolder& folder, const Recipe& recipe, const ModelMetadata& about,
                         ordered_json summary) {
  const std::array<ResultFile, 1> files = {
      {{JobFolder::kModelFile, model_bytes(training_.model().tensors(training_.theta()), about)}}};
  Fingerprinter fingerprint;
  fingerprint.add(untimed_curve());
  fingerprint.add(training_.theta());
  summary["seconds"] = folder.seconds();
  summary["result_fingerprint"] = fingerprint.value().hex();
  folder.finish(*this, recipe, files, std::move(summary));
}

}  // namespace olrank
