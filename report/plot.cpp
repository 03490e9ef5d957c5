#include "report/plot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "core/text/text_table.h"

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

double round_step(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1.0 - 1e-9)) return factor * power;
  }
  return 10.0 * power;
}

std::string tick_label(double value, double step) {
  const double size = std::abs(value);
  if (value == 0.0) return "0";
  if (size >= 1e6 || step >= 1e6) return with_minus(fmt::format("{:g}M", value / 1e6));
  if (size >= 1e4) return with_minus(fmt::format("{:g}k", value / 1e3));
  const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  if (digits > 6) return with_minus(fmt::format("{:.2g}", value));
  return fixed_number(value, digits);
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

Scale::Scale(double low, double high, double first_pixel, double last_pixel, bool logarithmic)
    : low_(low),
      high_(high),
      first_pixel_(first_pixel),
      last_pixel_(last_pixel),
      logarithmic_(logarithmic) {}

double Scale::operator()(double value) const {
  const double share =
      logarithmic_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
  return first_pixel_ + share * (last_pixel_ - first_pixel_);
}

std::vector<Tick> Scale::ticks(int wanted) const {
  std::vector<Tick> found;
  if (logarithmic_) {
    const double decades = std::log10(high_ / low_);
    for (double power = std::pow(10.0, std::floor(std::log10(low_))); power <= high_; power *= 10.0) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double value = factor * power;
        if (factor > 1.0 && decades > 3.0) continue;
        if (value >= low_ * (1.0 - 1e-9) && value <= high_ * (1.0 + 1e-9))
          found.push_back({value, value < 1e4 ? short_number(value) : tick_label(value, value)});
      }
    }
    return found;
  }
  const double step = round_step((high_ - low_) / wanted);
  for (double multiple = std::ceil(low_ / step - 1e-9); multiple * step <= high_ + 1e-9 * step;
       ++multiple) {
    const double value = multiple * step + 0.0;  // avoids negative zero
    found.push_back({value, tick_label(value, step)});
  }
  return found;
}

}  // namespace olrank
