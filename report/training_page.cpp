#include "report/training_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/number_text.h"
#include "report/page.h"

namespace olrank {
namespace {

using Value = std::optional<double> TrainingPagePoint::*;

/// A line over passes: of one model itself, of several their mean as far as all have come, with each thin
/// behind it. No points where no model has the value.
PlotSeries line_of(const std::vector<TrainingPageModel>& models, const std::string& name, std::size_t style,
                   Value value) {
  PlotSeries line{name, style, {}, {}};
  std::vector<std::vector<std::pair<double, double>>> curves;
  for (const TrainingPageModel& model : models) {
    auto& curve = curves.emplace_back();
    for (const TrainingPagePoint& point : model.points) {
      if (point.*value) curve.emplace_back(static_cast<double>(point.epoch), *(point.*value));
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

}  // namespace

std::string training_page(const TrainingPage& training) {
  Page page({"olrank train", training.title, {escape_html(training.sentence)}});
  const std::vector<TrainingPageModel>& models = training.models;
  const std::string several =
      models.size() > 1 ? fmt::format(" Mean of {} models; thin lines are the models.", models.size())
                        : std::string();
  std::vector<ReportFigure> figures;
  add_figure(figures, fmt::format("{} on the validation part", training.ndcg_name), "By passes." + several,
             {line_of(models, "validation", 0, &TrainingPagePoint::vali_ndcg)});
  add_figure(figures, "Loss",
             "Training: the objective with its penalties. Validation: the mean loss." + several,
             {line_of(models, "training", 1, &TrainingPagePoint::loss),
              line_of(models, "validation", 0, &TrainingPagePoint::vali_loss)});
  page.section("Learning curves");
  page.figures(figures);
  page.end_section();
  page.section("Test part");
  if (!models.empty()) {
    std::vector<std::string> titles = {"model", "passes"};
    for (const auto& [name, value] : models.front().figures) titles.push_back(name);
    HtmlTable table("Figures on the test part", titles);
    for (const TrainingPageModel& model : models) {
      std::vector<std::string> cells = {fmt::format("{}", model.kept_epoch)};
      for (const auto& [name, value] : model.figures) cells.push_back(fixed_number(value, 4));
      table.row(model.name, cells);
    }
    page.add(table.html());
  }
  page.end_section();
  page.section("Settings");
  page.preformatted(training.configuration);
  page.end_section();
  return page.finish();
}

}  // namespace olrank
