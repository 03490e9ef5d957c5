#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/markup.h"
#include "report/plot.h"

namespace olrank {
namespace {

constexpr double kTop = 40.0;
constexpr double kLabelGap = 13.0;
constexpr double kLabelDistance = 6.5;
constexpr std::size_t kMarkers = 5;
/// Lines of more points are thinned out: the frame is not wider in pixels.
constexpr std::size_t kMostPoints = 300;

/// Everything that is drawn: the baseline first, below the others.
std::vector<const PlotSeries*> all_series(const Plot& plot) {
  std::vector<const PlotSeries*> all;
  if (!plot.baseline.points.empty()) all.push_back(&plot.baseline);
  for (const PlotSeries& series : plot.series) all.push_back(&series);
  return all;
}

/// A line with so many points is drawn by its last one and every stride-th.
std::size_t stride_of(std::size_t points) {
  return (points + kMostPoints - 1) / kMostPoints;
}

std::vector<PlotPoint> drawn_points(const std::vector<PlotPoint>& points) {
  const std::size_t stride = stride_of(points.size());
  if (stride < 2) return points;
  std::vector<PlotPoint> drawn;
  for (std::size_t i = 0; i < points.size(); i += stride) drawn.push_back(points[i]);
  if (drawn.back().x != points.back().x) drawn.push_back(points.back());
  return drawn;
}

/// Bands over two or three trials may dwarf the lines. They extend the y range by at most three quarters on
/// each side and are cut off beyond.
ValueRange range_of_lines(const Plot& plot) {
  ValueRange means;
  ValueRange bands;
  for (const PlotSeries* line : all_series(plot)) {
    for (const PlotPoint& point : line->points) {
      means.take(point.y);
      if (!plot.bands) continue;
      bands.take(point.low);
      bands.take(point.high);
    }
    for (const auto& part : line->parts) {
      for (const auto& [x, y] : part) means.take(y);
    }
  }
  if (means.empty()) return {0.0, 1.0};
  if (plot.logarithmic_y) return {means.low / 1.25, means.high * 1.25};
  ValueRange range = means;
  const double span = std::max(means.high - means.low, 0.02 * std::abs(means.high));
  if (plot.whole_intervals && !bands.empty()) {
    range = {std::min(means.low, bands.low), std::max(means.high, bands.high)};
  } else if (!bands.empty()) {
    range.low = std::min(means.low, std::max(bands.low, means.low - 0.75 * span));
    range.high = std::max(means.high, std::min(bands.high, means.high + 0.75 * span));
  }
  double margin = 0.04 * (range.high - range.low);
  if (range.is_flat()) margin = range.high == 0.0 ? 0.5 : 0.05 * std::abs(range.high);
  range.low = std::max(plot.lowest, range.low - margin);
  range.high = std::min(plot.highest, range.high + margin);
  if (range.low >= range.high) range = {range.low - margin, range.high + margin};
  return range;
}

/// Adds `share` of the span on each side, or of the value where all are equal.
ValueRange widened(ValueRange range, double share, double share_of_value) {
  double margin = share * (range.high - range.low);
  if (range.is_flat()) margin = range.high == 0.0 ? 0.5 : share_of_value * std::abs(range.high);
  return {range.low - margin, range.high + margin};
}

ValueRange range_of_points(const Plot& plot) {
  ValueRange range;
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& point : series.points) {
      range.take(point.y);
      if (!plot.whole_intervals || !(point.low <= point.high)) continue;
      range.take(point.low);
      range.take(point.high);
    }
    for (const auto& part : series.parts) {
      for (const auto& [x, y] : part) range.take(y);
    }
  }
  return widened(range, plot.whole_intervals ? 0.1 : 0.25, 0.1);
}

class LinesOrPoints {
 public:
  explicit LinesOrPoints(const Plot& plot)
      : plot_(plot),
        are_lines_(plot.kind == PlotKind::kLines),
        widest_label_(are_lines_ ? 104.0 : 130.0),
        series_(all_series(plot)),
        bottom_(kTop +
                (are_lines_ ? std::max(168.0, kLabelGap * static_cast<double>(series_.size())) : 200.0)),
        y_(vertical_scale()),
        left_(left_margin()),
        right_(kPlotWidth - (are_lines_ ? label_width() + 14.0 : 6.0)),
        x_(horizontal_scale()) {
    std::vector<std::string> names;
    for (const PlotSeries* series : series_) names.push_back(series->name);
    labels_ = distinct_labels(names, kPlotFont, widest_label_);
  }

  Drawing draw() {
    axes();
    are_lines_ ? lines() : points();
    return finished_drawing(plot_, bottom_ + kPlotBottom, std::move(body_), std::move(description_));
  }

 private:
  Scale vertical_scale() const {
    const ValueRange range = are_lines_ ? range_of_lines(plot_) : range_of_points(plot_);
    return {range.low, range.high, bottom_, kTop, plot_.logarithmic_y};
  }

  Scale horizontal_scale() const {
    ValueRange range;
    for (const PlotSeries* series : series_) {
      for (const PlotPoint& point : series->points) range.take(point.x);
      if (are_lines_) continue;
      for (const auto& part : series->parts) {
        for (const auto& [x, y] : part) range.take(x);
      }
    }
    bool logarithmic = plot_.logarithmic_x;
    if (!are_lines_) {
      logarithmic = range.low > 0.0 && range.high / range.low > 10.0;
      range = logarithmic ? ValueRange{range.low / 1.6, range.high * 1.6} : widened(range, 0.15, 0.2);
    } else if (range.empty()) {
      range = {0.0, 1.0};
    } else if (range.low == range.high) {
      range = logarithmic ? ValueRange{0.5 * range.low, 2.0 * range.high}
                          : ValueRange{range.low - 1.0, range.high + 1.0};
    }
    return {range.low, range.high, left_, right_, logarithmic};
  }

  double left_margin() const {
    double widest = 0.0;
    for (const Tick& tick : y_.ticks(5)) widest = std::max(widest, text_width(tick.label, kPlotFont));
    return widest + 8.0;
  }

  double label_width() const {
    double widest = 0.0;
    for (const PlotSeries* series : series_) widest = std::max(widest, text_width(series->name, kPlotFont));
    return std::min(widest, widest_label_);
  }

  void axes() {
    body_ = plot_heading(plot_);
    for (const Tick& tick : y_.ticks(5)) {
      body_ += svg_line(left_, y_(tick.value), right_, y_(tick.value), "grid");
      body_ += svg_text(left_ - 5.0, y_(tick.value) + 3.8, tick.label, "tick", Anchor::kEnd);
    }
    body_ += svg_line(left_, bottom_, right_, bottom_, "axis");
    for (const Tick& tick : x_.ticks(are_lines_ ? 4 : 5)) {
      body_ += svg_line(x_(tick.value), bottom_, x_(tick.value), bottom_ + 3.0, "axis");
      body_ += x_tick_label(x_, tick, bottom_);
    }
    body_ += svg_text(0.5 * (left_ + right_), bottom_ + 30.0, plot_.x_name, "tick", Anchor::kMiddle);
  }

  /// The pixel of a value, which stays within the frame.
  double inside(double value) const { return y_(std::max(y_.low(), std::min(y_.high(), value))); }

  void lines() {
    for (const PlotSeries& line : plot_.series) {
      if (plot_.bands) band(line);
    }
    path(plot_.baseline, "line base");
    for (const PlotSeries& line : plot_.series) parts(line);
    for (const PlotSeries& line : plot_.series) path(line, line_class(line.style));
    for (const PlotSeries& line : plot_.series) markers(line);
    end_labels();
    for (const PlotSeries* line : series_) describe(*line);
  }

  void add_path(const std::string& attributes, const std::string& path) {
    body_ += fmt::format("<path class=\"{} d=\"{}\"/>", attributes, path);
  }

  void append(std::string& path, double x, double y) const {
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_(x), inside(y));
  }

  void band(const PlotSeries& line) {
    const std::vector<PlotPoint> points = drawn_points(line.points);
    const bool many = plot_.series.size() > 5;  // lighter, so that bands do not hide each other
    const auto has_band = [](const PlotPoint& point) { return point.low <= point.high; };
    for (auto begin = std::find_if(points.begin(), points.end(), has_band); begin != points.end();) {
      const auto end = std::find_if_not(begin, points.end(), has_band);
      if (end - begin > 1) {
        std::string path;
        for (auto point = begin; point != end; ++point) append(path, point->x, point->high);
        for (auto point = end; point-- != begin;) append(path, point->x, point->low);
        add_path(fmt::format("band{} {}\"", many ? " many" : "", fill_class(line.style)), path + "z");
      }
      begin = std::find_if(end, points.end(), has_band);
    }
  }

  void parts(const PlotSeries& line) {
    for (const auto& part : line.parts) {
      const std::size_t stride = stride_of(part.size());
      std::string path;
      for (std::size_t i = 0; i < part.size(); ++i) {
        if (i % stride == 0 || i + 1 == part.size()) append(path, part[i].first, part[i].second);
      }
      if (part.size() > 1)
        add_path(fmt::format("lead s{}\" opacity=\"0.55\"", line.style % kColours), path);
    }
  }

  void path(const PlotSeries& line, const std::string& kind) {
    std::string path;
    for (const PlotPoint& point : drawn_points(line.points)) append(path, point.x, point.y);
    if (line.points.size() > 1) add_path(kind + "\"", path);
  }

  /// A few markers per line, offset by style so that coinciding lines both stay visible.
  void markers(const PlotSeries& line) {
    const std::size_t count = line.points.size();
    const std::size_t step = std::max<std::size_t>(1, count / kMarkers);
    for (std::size_t i = line.style % step; i < count; i += step) {
      const PlotPoint& point = line.points[i];
      std::string tooltip = fmt::format("{}, {} {}: {}", clean_utf8(line.name), plot_.x_name,
                                        short_number(point.x), short_number(point.y));
      if (point.low <= point.high)
        tooltip += fmt::format(" ({} to {})", short_number(point.low), short_number(point.high));
      body_ += svg_marker(x_(point.x), inside(point.y), 3.2, line.style, tooltip);
    }
  }

  void end_labels() {
    std::vector<double> wanted;
    std::vector<std::size_t> drawn;
    for (std::size_t i = 0; i < series_.size(); ++i) {
      if (series_[i]->points.empty()) continue;
      wanted.push_back(inside(series_[i]->points.back().y));
      drawn.push_back(i);
    }
    const std::vector<double> placed = spread_labels(wanted, kLabelGap, kTop + 4.0, bottom_ - 2.0);
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      const PlotSeries& line = *series_[drawn[i]];
      const std::string colour =
          &line == &plot_.baseline ? "soft-line" : fmt::format("s{}", line.style % kColours);
      add_path(fmt::format("lead {}\"", colour),
               fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}h3", x_(line.points.back().x), wanted[i],
                           right_ + 7.0, placed[i]));
      body_ += svg_label(right_ + 12.0, placed[i] + 3.8, labels_[drawn[i]], line.name);
    }
  }

  void describe(const PlotSeries& line) {
    if (line.points.empty()) return;
    const PlotPoint& first = line.points.front();
    const PlotPoint& last = line.points.back();
    description_ +=
        fmt::format("{}: {} at {} {}, {} at {} {}", line.name, short_number(first.y), plot_.x_name,
                    short_number(first.x), short_number(last.y), plot_.x_name, short_number(last.x));
    if (last.low <= last.high)
      description_ += fmt::format(" (interval {} to {})", short_number(last.low), short_number(last.high));
    description_ += ". ";
  }

  void dots(const PlotSeries& series) {
    std::string path;
    for (const auto& part : series.parts) {
      for (const auto& [x, y] : part)
        path += fmt::format("M{:.1f} {:.1f}h2v2h-2z", x_(x) - 1.0, y_(y) - 1.0);
    }
    if (!path.empty()) add_path(fmt::format("{}\" opacity=\"0.4\"", fill_class(series.style)), path);
  }

  void points() {
    for (const PlotSeries* series : series_) dots(*series);
    std::vector<LabelledPoint> wanted;
    std::string markers;
    for (std::size_t i = 0; i < series_.size(); ++i) {
      const PlotSeries& series = *series_[i];
      const PlotPoint& point = series.points.front();
      const bool barred = point.low <= point.high;
      wanted.push_back({x_(point.x), y_(point.y), text_width(labels_[i], kPlotFont), 12.0,
                        inside(barred ? point.low : point.y), inside(barred ? point.high : point.y)});
      const LabelledPoint& at = wanted.back();
      if (barred)
        body_ += svg_line(at.x, at.low, at.x, at.high, fmt::format("lead s{}", series.style % kColours));
      const std::string words = fmt::format("{}: {} {}, {} {}", series.name, short_number(point.x),
                                            plot_.x_name, short_number(point.y), plot_.y_name);
      description_ += words + ". ";
      markers += svg_marker(at.x, at.y, 4.5, series.style, words);
    }
    const auto places =
        place_labels(wanted, {left_ + 1.0, kTop - 4.0, kPlotWidth - 1.0, bottom_ - 1.0}, kLabelDistance);
    std::string labels;
    for (std::size_t i = 0; i < places.size(); ++i) {
      // Without room for a label, the legend identifies the point by colour and shape.
      if (!places[i]) continue;
      const LabelPlace& place = *places[i];
      labels += svg_label(place.box.left, place.box.bottom - 2.5, labels_[i], series_[i]->name);
      if (place.needs_leader)
        body_ +=
            svg_line(wanted[i].x, wanted[i].y, place.lead_x(wanted[i]), place.lead_y(wanted[i]), "axis");
    }
    body_ += markers + labels;
  }

  const Plot& plot_;
  bool are_lines_;
  double widest_label_;
  std::vector<const PlotSeries*> series_;
  double bottom_;
  Scale y_;
  double left_;
  double right_;
  Scale x_;
  std::vector<std::string> labels_;  // of series_
  std::string body_;
  std::string description_;
};

}  // namespace

Drawing draw_lines_or_points(const Plot& plot) {
  return LinesOrPoints(plot).draw();
}

}  // namespace olrank
