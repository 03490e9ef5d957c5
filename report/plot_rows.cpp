#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/labels.h"
#include "report/markup.h"
#include "report/plot.h"

namespace olrank {
namespace {

constexpr double kBarsTop = 38.0;
constexpr double kBarRow = 34.0;

double total_of(const PlotSeries& bar) {
  double total = 0.0;
  for (const PlotPoint& part : bar.points) total += part.y;
  return total;
}

std::string total_text(const Plot& plot, const PlotSeries& bar) {
  return fmt::format("{} {}", short_number(total_of(bar)), plot.y_name);
}

/// The names, each beside the bar's total.
std::vector<std::string> bar_labels(const Plot& plot) {
  double room = kPlotWidth;
  std::vector<std::string> names;
  for (const PlotSeries& bar : plot.series) {
    room = std::min(room, kPlotWidth - text_width(total_text(plot, bar), kPlotFont) - 10.0);
    names.push_back(bar.name);
  }
  return distinct_labels(names, kPlotFont, room);
}

std::string draw_bar(const Plot& plot, const PlotSeries& bar, const std::string& label, double top,
                     double scale) {
  std::string body = svg_label(0.0, top + 11.0, label, bar.name);
  body += svg_text(kPlotWidth, top + 11.0, total_text(plot, bar), "tick", Anchor::kEnd);
  double left = 0.0;
  for (std::size_t i = 0; i < bar.points.size(); ++i) {
    const double size = bar.points[i].y;
    const double width = size * scale;
    if (width < 0.05) continue;
    body += fmt::format(
        "<rect class=\"part {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"14\"><title>{}</title></rect>",
        part_class(i), left, top + 15.0, width,
        escape_html(fmt::format("{}, {}: {} {}", bar.name, plot.bars[i], short_number(size), plot.y_name)));
    if (text_width(plot.bars[i], kPlotFont) + 6.0 < width)
      body += svg_text(left + 4.0, top + 26.0, plot.bars[i], on_part_class(i));
    left += width;
  }
  return body;
}

/// Draws the legend, in as many lines as it needs. Returns its height.
double draw_legend(const Plot& plot, double top, std::string& body) {
  double x = 0.0;
  double y = top;
  for (std::size_t i = 0; i < plot.bars.size(); ++i) {
    const double width = 14.0 + text_width(plot.bars[i], kPlotFont) + 12.0;
    if (x + width > kPlotWidth && x > 0.0) {
      x = 0.0;
      y += 16.0;
    }
    body += fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\"/>",
                        part_class(i), x, y);
    body += svg_text(x + 14.0, y + 9.0, plot.bars[i], "");
    x += width;
  }
  return y - top + 16.0;
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

Drawing draw_bars(const Plot& plot) {
  double largest = 0.0;
  for (const PlotSeries& bar : plot.series) largest = std::max(largest, total_of(bar));
  const double scale = largest > 0.0 ? kPlotWidth / largest : 0.0;
  std::string body = plot_heading(plot);
  std::string description;
  const std::vector<std::string> labels = bar_labels(plot);
  double top = kBarsTop;
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    const PlotSeries& bar = plot.series[i];
    body += draw_bar(plot, bar, labels[i], top, scale);
    top += kBarRow;
    description += fmt::format("{}: {}", bar.name, total_text(plot, bar));
    for (std::size_t part = 0; part < bar.points.size(); ++part)
      description += fmt::format(", {} {}", plot.bars[part], short_number(bar.points[part].y));
    description += ". ";
  }
  top += 4.0;
  top += draw_legend(plot, top, body);
  return finished_drawing(plot, top, std::move(body), std::move(description));
}

Drawing draw_differences(const Plot& plot) {
  return Differences(plot).draw();
}

}  // namespace olrank
