#include "report/plot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  }
  return {};
}

std::string csv_lines(const Plot& plot, const PlotSeries& series) {
  std::string csv;
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
    }
    csv += csv_line(fields);
  }
  return csv;
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

constexpr double kDifferencesTop = 50.0;
constexpr double kDifferenceRow = 15.0;
constexpr double kGap = 5.0;  // between rows of different names
constexpr double kWidestRowName = 132.0;

class Differences {
 public:
  explicit Differences(const Plot& plot)
      : plot_(plot),
        ratios_(plot.no_difference > 0.0),
        variants_(widest(&PlotSeries::variant)),
        left_(widest(&PlotSeries::name) + (variants_ > 0.0 ? variants_ + 10.0 : 0.0) + 10.0),
        bottom_(place_rows()),
        x_(scale()) {}

  Drawing draw() {
    body_ = plot_heading(plot_);
    axis();
    for (std::size_t i = 0; i < plot_.series.size(); ++i) row(i);
    return finished_drawing(plot_, bottom_ + kPlotBottom, std::move(body_), std::move(description_));
  }

 private:
  double widest(std::string PlotSeries::*text) const {
    double width = 0.0;
    for (const PlotSeries& row : plot_.series) width = std::max(width, text_width(row.*text, kPlotFont));
    return std::min(width, kWidestRowName);
  }

  bool is_named_like_the_last(std::size_t row) const {
    return row > 0 && plot_.series[row].name == plot_.series[row - 1].name;
  }

  /// Returns where the plot ends.
  double place_rows() {
    double y = kDifferencesTop + 0.5 * kDifferenceRow;
    for (std::size_t i = 0; i < plot_.series.size(); ++i) {
      if (i > 0 && !is_named_like_the_last(i)) y += kGap;
      places_.push_back(y);
      y += kDifferenceRow;
    }
    return y;
  }

  bool is_drawable(double value) const { return std::isfinite(value) && (value > 0.0 || !ratios_); }

  double distance(double value) const {
    return std::abs(ratios_ ? std::log(value / plot_.no_difference) : value - plot_.no_difference);
  }

  double at_distance(double distance) const {
    return ratios_ ? plot_.no_difference * std::exp(distance) : plot_.no_difference + distance;
  }

  /// Holds every difference, and intervals as far as they do not flatten the differences.
  Scale scale() const {
    double largest = 0.0;
    double widest = 0.0;
    for (const PlotSeries& row : plot_.series) {
      largest = std::max(largest, distance(row.points.front().y));
      for (const double end : {row.points.front().low, row.points.front().high}) {
        if (is_drawable(end)) widest = std::max(widest, distance(end));
      }
    }
    double low = plot_.no_difference;
    double high = plot_.no_difference;
    const double most = std::max(largest, std::min(widest, 3.0 * largest));
    for (const PlotSeries& row : plot_.series) {
      const PlotPoint& point = row.points.front();
      for (const double value : {point.y, point.low, point.high}) {
        if (!is_drawable(value)) continue;
        const bool below = value < plot_.no_difference;
        if (distance(value) > most) {
          (below ? low : high) = at_distance(below ? -most : most);
        } else {
          low = std::min(low, value);
          high = std::max(high, value);
        }
      }
    }
    const double right = kPlotWidth - 8.0;
    if (ratios_) {
      const double margin = std::max(1.05, std::pow(high / low, 0.06));
      return {low / margin, high * margin, left_, right, true};
    }
    const double margin = high > low ? 0.06 * (high - low) : 1.0;
    return {low - margin, high + margin, left_, right};
  }

  void axis() {
    for (const Tick& tick : x_.ticks(5)) {
      body_ += svg_line(x_(tick.value), kDifferencesTop, x_(tick.value), bottom_, "grid");
      body_ += x_tick_label(x_, tick, bottom_);
    }
    const double none = x_(plot_.no_difference);
    body_ += svg_line(none, kDifferencesTop - 4.0, none, bottom_, "axis");
    body_ += svg_text(0.5 * (left_ + kPlotWidth), bottom_ + 30.0, plot_.x_name, "tick", Anchor::kMiddle);
    if (variants_ > 0.0)
      body_ += svg_text(left_ - 10.0, kDifferencesTop - 4.0, plot_.variant_name, "tick", Anchor::kEnd);
  }

  double inside(double value) const { return x_(std::clamp(value, x_.low(), x_.high())); }

  void row(std::size_t at) {
    const PlotSeries& row = plot_.series[at];
    const PlotPoint& point = row.points.front();
    const double y = places_[at];
    if (!is_named_like_the_last(at))
      body_ += svg_text(0.0, y + 3.8, shortened(row.name, kPlotFont, kWidestRowName), "");
    if (!row.variant.empty()) body_ += svg_text(left_ - 10.0, y + 3.8, row.variant, "tick", Anchor::kEnd);
    std::string words = row.name;
    if (!row.variant.empty()) words += fmt::format(", {} {}", plot_.variant_name, row.variant);
    words += ": " + short_number(point.y);
    if (point.low <= point.high) {
      body_ += svg_line(inside(point.low), y, inside(point.high), y,
                        fmt::format("bar s{}", row.style % kColours));
      words += fmt::format(" ({} to {})", short_number(point.low), short_number(point.high));
    }
    if (row.significant) words += ", significant";
    body_ += svg_marker(inside(point.y), y, 3.8, row.style, words, !row.significant);
    description_ += words + ". ";
  }

  const Plot& plot_;
  bool ratios_;
  std::vector<double> places_;  // of rows; before bottom_, whose initialiser fills it
  double variants_;
  double left_;
  double bottom_;
  Scale x_;
  std::string body_;
  std::string description_;
};

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
  return plot.kind == PlotKind::kDifferences ? Differences(plot).draw() : draw_lines_or_points(plot);
}

std::string plot_csv(const Plot& plot) {
  std::string csv = csv_line(csv_titles(plot));
  for (const PlotSeries& series : plot.series) csv += csv_lines(plot, series);
  if (plot.kind == PlotKind::kLines) csv += csv_lines(plot, plot.baseline);
  return csv;
}

ReportFigure figure_of(std::string slug, const Plot& plot, std::string caption, FigureGroup group) {
  return {std::move(slug), draw(plot), std::move(caption), plot_csv(plot), group};
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
