#include "report/plot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text/csv.h"
#include "report/plot_frame.h"

namespace olrank {
namespace {

std::string csv_line(const std::vector<std::string>& fields) {
  return fmt::format("{}\n", fmt::join(fields, ","));
}

std::vector<std::string> csv_titles(const Plot& plot) {
  const std::string x = csv_text(plot.x_name);
  switch (plot.kind) {
    case PlotKind::kLines:
      return {"ranker", x, "mean", "low", "high", "trials"};
    case PlotKind::kScatter:
      return {"ranker", x, csv_text(plot.y_name), "low", "high"};
    case PlotKind::kDifferences:
      return {"name", plot.variant_name.empty() ? "variant" : csv_text(plot.variant_name),
              x,      "low",
              "high", "significant"};
    case PlotKind::kBars:
      break;
  }
  std::vector<std::string> titles = {"ranker"};
  for (const std::string& bar : plot.bars) titles.push_back(csv_text(bar));
  return titles;
}

std::string csv_lines(const Plot& plot, const PlotSeries& series) {
  std::string csv;
  std::vector<std::string> bars = {csv_text(series.name)};
  for (const PlotPoint& point : series.points) {
    std::vector<std::string> fields = {csv_text(series.name), csv_number(point.x), csv_number(point.y),
                                       csv_number(point.low), csv_number(point.high)};
    switch (plot.kind) {
      case PlotKind::kLines:
        fields.push_back(std::to_string(point.trials));
        break;
      case PlotKind::kScatter:
        break;
      case PlotKind::kDifferences:
        fields[1] = csv_text(series.variant);
        fields.emplace_back(series.significant ? "1" : "0");
        break;
      case PlotKind::kBars:
        bars.push_back(csv_number(point.y));
        continue;
    }
    csv += csv_line(fields);
  }
  return plot.kind == PlotKind::kBars ? csv_line(bars) : csv;
}

}  // namespace

PlotPoint plot_point(double x, const MeanInterval& estimate) {
  return {x, estimate.mean, estimate.mean - estimate.half_width, estimate.mean + estimate.half_width,
          estimate.values};
}

bool spans_x(const Plot& plot) {
  const PlotPoint* first = nullptr;
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& point : series.points) {
      if (first == nullptr) first = &point;
      if (point.x != first->x) return true;
    }
  }
  return false;
}

Drawing draw(const Plot& plot) {
  switch (plot.kind) {
    case PlotKind::kBars:
      return draw_bars(plot);
    case PlotKind::kDifferences:
      return draw_differences(plot);
    default:
      return draw_lines_or_points(plot);
  }
}

std::string plot_csv(const Plot& plot) {
  std::string csv = csv_line(csv_titles(plot));
  for (const PlotSeries& series : plot.series) csv += csv_lines(plot, series);
  if (plot.kind == PlotKind::kLines) csv += csv_lines(plot, plot.baseline);
  return csv;
}

}  // namespace olrank
