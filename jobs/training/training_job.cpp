#include "jobs/training/training_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <sstream>

#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/online/online_ranker.h"
#include "core/statistics/t_tests.h"
#include "core/text/message_text.h"
#include "jobs/settings/run_settings.h"
#include "report/page.h"

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

std::string ndcg_key(const TrainConfiguration& configuration) {
  return fmt::format("ndcg@{}", configuration.train.cutoff);
}

std::string data_name(const TrainConfiguration& configuration) {
  const std::string& source =
      configuration.data.source.empty() ? configuration.data.train : configuration.data.source;
  if (source.starts_with("synth:")) return source;
  const fs::path path(source);
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

std::string network_name(const NetworkSettings& network) {
  if (network.network == NetworkForm::kModule) return "module " + network.module;
  return std::string(name_of(network.network));
}

/// The objective, then the figures of the test part.
std::vector<std::pair<std::string, double>> figures_of(const TrainedModel& model) {
  const auto number = [](const ordered_json& value) { return real(value).value_or(std::nan("")); };
  std::vector<std::pair<std::string, double>> figures = {{"objective", number(model.summary.at("loss"))}};
  if (!model.summary.contains("test")) return figures;
  for (const auto& [name, value] : model.summary["test"].items()) {
    const bool is_metric = name != "loss" && name != "queries" && name != "docs";
    if (is_metric) figures.emplace_back(name, number(value));
  }
  return figures;
}

/// The mean over all models of each figure, where seeds of a fold count as one.
std::vector<std::pair<std::string, MeanInterval>> means_of(const std::vector<TrainedModel>& models) {
  std::vector<std::pair<std::string, MeanInterval>> means;
  for (std::size_t place = 0; place < figures_of(models.front()).size(); ++place) {
    std::vector<double> values;
    values.reserve(models.size());
    for (const TrainedModel& model : models) values.push_back(figures_of(model).at(place).second);
    means.emplace_back(figures_of(models.front())[place].first, mean_interval({values}));
  }
  return means;
}

ordered_json several_json(const std::vector<TrainedModel>& models) {
  ordered_json json = {{"models", models.size()}};
  for (const auto& [name, interval] : means_of(models)) {
    if (name == "objective") {
      json["loss"] = number_or_null(interval.mean);
    } else {
      json["test"][name] = number_or_null(interval.mean);
      json["half_width_95"][name] = number_or_null(interval.half_width);
    }
  }
  for (const TrainedModel& model : models) {
    ordered_json entry = {{"fold", model.fold},
                          {"seed", model.seed},
                          {"folder", fmt::format("fold{}/seed{}", model.fold, model.seed)},
                          {"loss", model.summary.at("loss")}};
    if (model.summary.contains("test")) entry["test"] = model.summary["test"];
    json["by_model"].push_back(entry);
  }
  return json;
}

/// "NDCG@10 on the test part: 0.4914 ± 0.0081 (95 % interval over 5 models)."; empty without a test part.
std::string result_sentence(const TrainConfiguration& configuration,
                            const std::vector<TrainedModel>& models) {
  for (const auto& [name, interval] : means_of(models)) {
    if (name != ndcg_key(configuration)) continue;
    std::string sentence =
        fmt::format("NDCG@{} on the test part: {:.4f}", configuration.train.cutoff, interval.mean);
    if (std::isfinite(interval.half_width))
      sentence += fmt::format(" ± {:.4f} (95 % interval over {})", interval.half_width,
                              counted(models.size(), "model"));
    return sentence + ".";
  }
  return "";
}

/// The settings with numbers where 0 stands for them.
std::string shown_settings(TrainConfiguration configuration) {
  LabelSettings& train = configuration.train;
  train.epochs = train.most_epochs();
  if (train.optimizer == LabelOptimizer::kAdam && train.learning_rate == 0.0)
    train.learning_rate = LabelSettings::kAdamStep;
  return print_train_configuration(configuration);
}

using PointValue = std::function<std::optional<double>(const TrainingPoint&)>;

/// A line over passes: of one model itself, of several their mean as far as all have come, with each thin
/// behind it. No points where no model has the value.
PlotSeries line_of(const std::vector<TrainedModel>& models, const std::string& name, std::size_t style,
                   const PointValue& value) {
  PlotSeries line{name, style, {}, {}};
  std::vector<std::vector<std::pair<double, double>>> curves;
  for (const TrainedModel& model : models) {
    auto& curve = curves.emplace_back();
    for (const TrainingPoint& point : model.curve) {
      if (const auto known = value(point)) curve.emplace_back(static_cast<double>(point.epoch), *known);
    }
  }
  std::size_t shortest = curves.empty() ? 0 : curves.front().size();
  for (const auto& curve : curves) shortest = std::min(shortest, curve.size());
  for (std::size_t place = 0; place < shortest; ++place) {
    double sum = 0.0;
    for (const auto& curve : curves) sum += curve[place].second;
    line.points.push_back({.x = curves.front()[place].first,
                           .y = sum / static_cast<double>(curves.size()),
                           .trials = curves.size()});
  }
  if (curves.size() > 1) line.parts = std::move(curves);
  return line;
}

/// Adds a figure of the lines that have points.
void add_figure(std::vector<ReportFigure>& figures, const std::string& title, const std::string& caption,
                std::vector<PlotSeries> lines) {
  std::erase_if(lines, [](const PlotSeries& line) { return line.points.empty(); });
  if (lines.empty()) return;
  Plot plot;
  plot.title = title;
  plot.x_name = "pass";
  plot.bands = false;
  plot.series = std::move(lines);
  figures.push_back(figure_of("", plot, caption));
}

std::vector<ReportFigure> curves_of(const TrainConfiguration& configuration,
                                    const std::vector<TrainedModel>& models) {
  const auto ndcg = [key = ndcg_key(configuration)](const TrainingPoint& point) -> std::optional<double> {
    for (const auto& [name, value] : point.vali) {
      if (name == key) return value;
    }
    return std::nullopt;
  };
  const std::string several =
      models.size() > 1 ? fmt::format(" Mean of {} models; thin lines are the models.", models.size())
                        : std::string();
  std::vector<ReportFigure> figures;
  add_figure(figures, fmt::format("NDCG@{} on the validation part", configuration.train.cutoff),
             "By passes." + several, {line_of(models, "validation", 0, ndcg)});
  add_figure(figures, "Loss",
             "Training: the objective with its penalties. Validation: the mean loss." + several,
             {line_of(models, "training", 1, &TrainingPoint::loss),
              line_of(models, "validation", 0, &TrainingPoint::vali_loss)});
  return figures;
}

/// Learning curves and test figures, in the style of reports.
std::string training_page(const TrainConfiguration& configuration,
                          const std::vector<TrainedModel>& models) {
  Page page({"olrank train",
             fmt::format("{}, {}, on {}", name_of(configuration.train.loss),
                         network_name(configuration.train.network), data_name(configuration)),
             {escape_html(result_sentence(configuration, models))}});
  page.section("Learning curves");
  page.figures(curves_of(configuration, models));
  page.end_section();
  page.section("Test part");
  std::vector<std::string> titles = {"model", "passes"};
  for (const auto& [name, value] : figures_of(models.front())) titles.push_back(name);
  HtmlTable table("Figures on the test part", titles);
  for (const TrainedModel& model : models) {
    std::vector<std::string> cells = {
        fmt::format("{}", model.summary.value("kept_epoch", std::int64_t{0}))};
    for (const auto& [name, value] : figures_of(model)) cells.push_back(fixed_number(value, 4));
    table.row(model_name(configuration, model.fold, model.seed), cells);
  }
  page.add(table.html());
  page.end_section();
  page.section("Settings");
  page.preformatted(shown_settings(configuration));
  page.end_section();
  return page.finish();
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

TrainedModel read_trained_model(const fs::path& folder, std::int64_t fold, std::int64_t seed) {
  return {fold, seed, JobFolder(folder, {.noun = "training"}).summary(),
          read_training_curve(folder / "curve.jsonl")};
}

std::string model_name(const TrainConfiguration& configuration, std::int64_t fold, std::int64_t seed) {
  if (configuration.train.seeds.size() == 1) return fmt::format("fold {}", fold);
  if (configuration.data.folds.size() == 1) return fmt::format("seed {}", seed);
  return fmt::format("fold {}, seed {}", fold, seed);
}

ordered_json train_configuration_json(const TrainConfiguration& configuration) {
  return {{DataSettings::schema().table, table_json(DataSettings::schema(), &configuration.data)},
          {LabelSettings::schema().table, table_json(LabelSettings::schema(), &configuration.train)}};
}

void write_training_results(const fs::path& out, const TrainConfiguration& configuration,
                            const std::vector<TrainedModel>& models) {
  if (models.size() > 1)
    write_file_atomically(out / "summary.json", dump_json(several_json(models), 2) + "\n");
  write_file_atomically(out / "report.html", training_page(configuration, models));
}

std::string training_results_output(const TrainConfiguration& configuration,
                                    const std::vector<TrainedModel>& models, const OutputForm& form) {
  if (form.json)
    return dump_json(models.size() > 1 ? several_json(models) : models.front().summary, 2) + "\n";
  std::vector<TextTable::Column> columns = {{"model", true}, {"passes"}};
  std::int64_t dropped = 0;
  for (const auto& [name, value] : figures_of(models.front())) {
    const bool stays = name == "objective" || name == ndcg_key(configuration);
    columns.push_back({name, false, stays ? 0 : ++dropped});
  }
  TextTable table(columns);
  for (const TrainedModel& model : models) {
    std::vector<std::string> cells = {
        model_name(configuration, model.fold, model.seed),
        fmt::format("{}", model.summary.value("kept_epoch", std::int64_t{0}))};
    for (const auto& [name, value] : figures_of(model))
      cells.push_back(std::isfinite(value) ? fmt::format("{:.4f}", value) : "–");
    table.add(std::move(cells));
  }
  if (models.size() > 1) {
    std::vector<std::string> cells = {"mean", ""};
    for (const auto& [name, interval] : means_of(models))
      cells.push_back(fmt::format("{:.4f}", interval.mean));
    table.add(std::move(cells));
  }
  const TextTable::Fitted fitted = table.fitted(form.columns);
  return fitted.text + hidden_columns_text(fitted.hidden, form.columns);
}

}  // namespace olrank
