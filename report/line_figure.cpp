#include "report/line_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text/csv.h"
#include "report/distinct_labels.h"
#include "report/label_layout.h"
#include "report/markup.h"
#include "report/number_text.h"
#include "report/ticks.h"

namespace olrank {
namespace {

constexpr double kWidth = 400.0;
constexpr double kTop = 40.0;
constexpr double kBottom = 36.0;
constexpr double kLabelGap = 13.0;
constexpr double kFont = 11.0;
constexpr double kTitleFont = 13.5;  // what 12.5 px takes in bold letters
constexpr double kWidestLabel = 104.0;
constexpr std::size_t kMarkers = 5;
/// More points than this are thinned out: the frame is not wider in pixels.
constexpr std::size_t kMostPoints = 300;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

/// Everything that is drawn: the baseline first, below the others.
std::vector<const FigureLine*> all_lines(const LineFigure& figure) {
  std::vector<const FigureLine*> lines;
  if (!figure.baseline.points.empty()) lines.push_back(&figure.baseline);
  for (const FigureLine& line : figure.lines) lines.push_back(&line);
  return lines;
}

/// Every so many points of a line are drawn, and the last one.
std::size_t stride_of(std::size_t points) {
  return (points + kMostPoints - 1) / kMostPoints;
}

std::vector<LinePoint> drawn_points(const std::vector<LinePoint>& points) {
  const std::size_t stride = stride_of(points.size());
  if (stride < 2) return points;
  std::vector<LinePoint> drawn;
  for (std::size_t i = 0; i < points.size(); i += stride) drawn.push_back(points[i]);
  if (drawn.back().x != points.back().x) drawn.push_back(points.back());
  return drawn;
}

/// Bands over two or three trials may dwarf the lines. They extend the y range by at most three quarters on
/// each side and are cut off beyond.
Range vertical_range(const LineFigure& figure) {
  Range means;
  Range bands;
  for (const FigureLine* line : all_lines(figure)) {
    for (const LinePoint& point : line->points) {
      means.take(point.y);
      if (!figure.bands) continue;
      bands.take(point.low);
      bands.take(point.high);
    }
    for (const auto& part : line->parts) {
      for (const auto& [x, y] : part) means.take(y);
    }
  }
  if (means.empty()) return {0.0, 1.0};
  if (figure.logarithmic_y) return {means.low / 1.25, means.high * 1.25};
  Range range = means;
  const double span = std::max(means.high - means.low, 0.02 * std::abs(means.high));
  if (figure.whole_bands && !bands.empty()) {
    range = {std::min(means.low, bands.low), std::max(means.high, bands.high)};
  } else if (!bands.empty()) {
    range.low = std::min(means.low, std::max(bands.low, means.low - 0.75 * span));
    range.high = std::max(means.high, std::min(bands.high, means.high + 0.75 * span));
  }
  double margin = 0.04 * (range.high - range.low);
  if (margin <= 0.0) margin = range.high == 0.0 ? 0.5 : 0.05 * std::abs(range.high);
  range.low = std::max(figure.lowest, range.low - margin);
  range.high = std::min(figure.highest, range.high + margin);
  if (range.low >= range.high) range = {range.low - margin, range.high + margin};
  return range;
}

Range horizontal_range(const LineFigure& figure) {
  Range range;
  for (const FigureLine* line : all_lines(figure)) {
    for (const LinePoint& point : line->points) range.take(point.x);
  }
  if (range.empty()) return {0.0, 1.0};
  if (range.low == range.high && figure.logarithmic_x) return {0.5 * range.low, 2.0 * range.high};
  if (range.low == range.high) return {range.low - 1.0, range.high + 1.0};
  return range;
}

class LineDrawing {
 public:
  explicit LineDrawing(const LineFigure& figure)
      : figure_(figure),
        plot_height_(std::max(168.0, kLabelGap * static_cast<double>(all_lines(figure).size()))),
        vertical_range_(vertical_range(figure)),
        horizontal_range_(horizontal_range(figure)),
        left_(left_margin()),
        right_(kWidth - label_width() - 14.0),
        x_(horizontal_range_.low, horizontal_range_.high, left_, right_, figure.logarithmic_x),
        y_(vertical_range_.low, vertical_range_.high, kTop + plot_height_, kTop, figure.logarithmic_y) {
    std::vector<std::string> names;
    for (const FigureLine* line : all_lines(figure)) names.push_back(line->name);
    labels_ = distinct_labels(names, kFont, kWidestLabel);
  }

  Drawing draw() {
    axes();
    for (const FigureLine& line : figure_.lines) {
      if (figure_.bands) band(line);
    }
    path(figure_.baseline, "line base");
    for (const FigureLine& line : figure_.lines) parts(line);
    for (const FigureLine& line : figure_.lines) path(line, line_class(line.style));
    for (const FigureLine& line : figure_.lines) markers(line);
    labels();
    Drawing drawing{kWidth, kTop + plot_height_ + kBottom, std::move(body_), figure_.title, description()};
    if (!figure_.subtitle.empty()) drawing.title += ", " + figure_.subtitle;
    return drawing;
  }

 private:
  double left_margin() const {
    double widest = 0.0;
    for (const Tick& tick :
         Scale(vertical_range_.low, vertical_range_.high, 0.0, 1.0, figure_.logarithmic_y).ticks(5))
      widest = std::max(widest, text_width(tick.label, kFont));
    return widest + 8.0;
  }

  double label_width() const {
    double widest = 0.0;
    for (const FigureLine* line : all_lines(figure_))
      widest = std::max(widest, text_width(line->name, kFont));
    return std::min(widest, kWidestLabel);
  }

  void axes() {
    body_ += svg_text(0.0, 13.0, shortened(figure_.title, kTitleFont, kWidth), "title");
    body_ += svg_text(0.0, 28.0, shortened(figure_.subtitle, kFont, kWidth), "tick");
    const double bottom = kTop + plot_height_;
    for (const Tick& tick : y_.ticks(5)) {
      body_ += svg_line(left_, y_(tick.value), right_, y_(tick.value), "grid");
      body_ += svg_text(left_ - 5.0, y_(tick.value) + 3.8, tick.label, "tick", Anchor::kEnd);
    }
    body_ += svg_line(left_, bottom, right_, bottom, "axis");
    for (const Tick& tick : horizontal_ticks()) {
      body_ += svg_line(x_(tick.value), bottom, x_(tick.value), bottom + 3.0, "axis");
      body_ += svg_text(x_(tick.value), bottom + 15.0, tick.label, "tick", Anchor::kMiddle);
    }
    body_ += svg_text(0.5 * (left_ + right_), bottom + 30.0, figure_.x_name, "tick", Anchor::kMiddle);
  }

  std::vector<Tick> horizontal_ticks() const {
    if (figure_.x_ticks.empty()) return x_.ticks(4);
    std::vector<Tick> ticks;
    for (const double value : figure_.x_ticks) ticks.push_back({value, short_number(value)});
    return ticks;
  }

  /// A y coordinate clamped to the frame.
  double inside(double value) const {
    return y_(std::max(vertical_range_.low, std::min(vertical_range_.high, value)));
  }

  void band(const FigureLine& line) {
    const std::vector<LinePoint> points = drawn_points(line.points);
    const bool many = figure_.lines.size() > 5;  // lighter, so that bands do not hide each other
    const auto has_band = [](const LinePoint& point) { return point.low <= point.high; };
    for (auto begin = std::find_if(points.begin(), points.end(), has_band); begin != points.end();) {
      const auto end = std::find_if_not(begin, points.end(), has_band);
      if (end - begin > 1) {
        std::string path;
        for (auto point = begin; point != end; ++point)
          path +=
              fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_(point->x), inside(point->high));
        for (auto point = end; point-- != begin;)
          path += fmt::format("L{:.1f} {:.1f}", x_(point->x), inside(point->low));
        body_ += fmt::format("<path class=\"band{} {}\" d=\"{}z\"/>", many ? " many" : "",
                             fill_class(line.style), path);
      }
      begin = std::find_if(end, points.end(), has_band);
    }
  }

  void parts(const FigureLine& line) {
    for (const auto& part : line.parts) {
      const std::size_t stride = stride_of(part.size());
      std::string path;
      for (std::size_t i = 0; i < part.size(); ++i) {
        if (i % stride != 0 && i + 1 < part.size()) continue;
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_(part[i].first),
                            inside(part[i].second));
      }
      if (part.size() > 1)
        body_ += fmt::format("<path class=\"lead s{}\" opacity=\"0.55\" d=\"{}\"/>", line.style % kColours,
                             path);
    }
  }

  void path(const FigureLine& line, const std::string& kind) {
    std::string path;
    for (const LinePoint& point : drawn_points(line.points))
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_(point.x), inside(point.y));
    if (line.points.size() > 1) body_ += fmt::format("<path class=\"{}\" d=\"{}\"/>", kind, path);
  }

  /// A few markers per line, offset by style so that coinciding lines both stay visible.
  void markers(const FigureLine& line) {
    const std::size_t count = line.points.size();
    const std::size_t step = std::max<std::size_t>(1, count / kMarkers);
    for (std::size_t i = line.style % step; i < count; i += step) {
      const LinePoint& point = line.points[i];
      std::string tooltip = fmt::format("{}, {} {}: {}", clean_utf8(line.name), figure_.x_name,
                                        short_number(point.x), short_number(point.y));
      if (point.low <= point.high)
        tooltip += fmt::format(" ({} to {})", short_number(point.low), short_number(point.high));
      body_ += svg_marker(x_(point.x), inside(point.y), 3.2, line.style, tooltip);
    }
  }

  void labels() {
    std::vector<double> wanted;
    std::vector<const FigureLine*> drawn;
    std::vector<std::string> names;
    std::size_t number = 0;
    for (const FigureLine* line : all_lines(figure_)) {
      const std::string& name = labels_[number++];
      if (line->points.empty()) continue;
      wanted.push_back(inside(line->points.back().y));
      drawn.push_back(line);
      names.push_back(name);
    }
    const std::vector<double> placed =
        spread_labels(wanted, kLabelGap, kTop + 4.0, kTop + plot_height_ - 2.0);
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      const FigureLine& line = *drawn[i];
      const double end = x_(line.points.back().x);
      const std::string colour =
          &line == &figure_.baseline ? "soft-line" : fmt::format("s{}", line.style % kColours);
      body_ += fmt::format("<path class=\"lead {}\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}h3\"/>", colour, end,
                           wanted[i], right_ + 7.0, placed[i]);
      body_ += svg_label(right_ + 12.0, placed[i] + 3.8, names[i], line.name);
    }
  }

  std::string description() const {
    std::string text;
    for (const FigureLine* each : all_lines(figure_)) {
      const FigureLine& line = *each;
      if (line.points.empty()) continue;
      const LinePoint& first = line.points.front();
      const LinePoint& last = line.points.back();
      text +=
          fmt::format("{}: {} at {} {}, {} at {} {}", line.name, short_number(first.y), figure_.x_name,
                      short_number(first.x), short_number(last.y), figure_.x_name, short_number(last.x));
      if (last.low <= last.high)
        text += fmt::format(" (interval {} to {})", short_number(last.low), short_number(last.high));
      text += ". ";
    }
    return text;
  }

  const LineFigure& figure_;
  double plot_height_;
  Range vertical_range_;
  Range horizontal_range_;
  double left_;
  double right_;
  Scale x_;
  Scale y_;
  std::vector<std::string> labels_;  // of all_lines()
  std::string body_;
};

}  // namespace

Drawing draw_lines(const LineFigure& figure) {
  return LineDrawing(figure).draw();
}

std::string lines_csv(const LineFigure& figure) {
  std::string csv = fmt::format("ranker,{},mean,low,high,trials\n", figure.x_name);
  std::vector<const FigureLine*> lines = all_lines(figure);
  if (!figure.baseline.points.empty()) std::rotate(lines.begin(), lines.begin() + 1, lines.end());
  for (const FigureLine* each : lines) {
    const FigureLine& line = *each;
    for (const LinePoint& point : line.points) {
      csv += fmt::format("{},{},{},{},{},{}\n", csv_field(clean_utf8(line.name)), csv_number(point.x),
                         csv_number(point.y), csv_number(point.low), csv_number(point.high), point.trials);
    }
  }
  return csv;
}

}  // namespace olrank
