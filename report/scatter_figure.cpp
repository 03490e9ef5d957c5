#include "report/scatter_figure.h"

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
constexpr double kPlotHeight = 200.0;
constexpr double kBottom = 36.0;
constexpr double kFont = 11.0;
constexpr double kTitleFont = 13.5;  // what 12.5 px takes in bold letters
constexpr double kWidestLabel = 130.0;
constexpr double kLabelDistance = 6.5;

Scale vertical_scale(const ScatterFigure& figure) {
  double low = figure.points.front().y;
  double high = low;
  for (const ScatterPoint& point : figure.points) {
    low = std::min(low, point.y);
    high = std::max(high, point.y);
    if (!figure.whole_bars || !(point.low <= point.high)) continue;
    low = std::min(low, point.low);
    high = std::max(high, point.high);
  }
  double margin = (figure.whole_bars ? 0.1 : 0.25) * (high - low);
  if (margin <= 0.0) margin = high == 0.0 ? 0.5 : 0.1 * std::abs(high);
  return {low - margin, high + margin, kTop + kPlotHeight, kTop};
}

Scale horizontal_scale(const ScatterFigure& figure, double left) {
  double low = figure.points.front().x;
  double high = low;
  for (const ScatterPoint& point : figure.points) {
    low = std::min(low, point.x);
    high = std::max(high, point.x);
  }
  const double right = kWidth - 6.0;
  if (low > 0.0 && high / low > 10.0) return {low / 1.6, high * 1.6, left, right, true};
  double margin = 0.15 * (high - low);
  if (margin <= 0.0) margin = high == 0.0 ? 0.5 : 0.2 * std::abs(high);
  return {low - margin, high + margin, left, right};
}

double left_margin(const Scale& y) {
  double widest = 0.0;
  for (const Tick& tick : y.ticks(5)) widest = std::max(widest, text_width(tick.label, kFont));
  return widest + 8.0;
}

std::string axes(const ScatterFigure& figure, const Scale& x, const Scale& y, double left) {
  const double bottom = kTop + kPlotHeight;
  const double right = kWidth - 6.0;
  std::string body = svg_text(0.0, 13.0, shortened(figure.title, kTitleFont, kWidth), "title");
  body += svg_text(0.0, 28.0, shortened(figure.subtitle, kFont, kWidth), "tick");
  for (const Tick& tick : y.ticks(5)) {
    body += svg_line(left, y(tick.value), right, y(tick.value), "grid");
    body += svg_text(left - 5.0, y(tick.value) + 3.8, tick.label, "tick", Anchor::kEnd);
  }
  body += svg_line(left, bottom, right, bottom, "axis");
  for (const Tick& tick : x.ticks(5)) {
    const double half = 0.5 * text_width(tick.label, kFont);
    body += svg_line(x(tick.value), bottom, x(tick.value), bottom + 3.0, "axis");
    body += svg_text(std::min(x(tick.value), kWidth - half), bottom + 15.0, tick.label, "tick",
                     Anchor::kMiddle);
  }
  body += svg_text(0.5 * (left + right), bottom + 30.0, figure.x_name, "tick", Anchor::kMiddle);
  return body;
}

}  // namespace

Drawing draw_scatter(const ScatterFigure& figure) {
  const Scale y = vertical_scale(figure);
  const double left = left_margin(y);
  const Scale x = horizontal_scale(figure, left);
  std::string body = axes(figure, x, y, left);
  std::vector<LabelledPoint> wanted;
  std::string description;
  std::vector<std::string> names;
  for (const ScatterPoint& point : figure.points) names.push_back(point.name);
  names = distinct_labels(names, kFont, kWidestLabel);
  for (std::size_t i = 0; i < figure.points.size(); ++i) {
    const ScatterPoint& point = figure.points[i];
    const std::string& name = names[i];
    const auto inside = [&](double value) { return y(std::max(y.low(), std::min(y.high(), value))); };
    const bool barred = point.low <= point.high;
    wanted.push_back({x(point.x), y(point.y), text_width(name, kFont), 12.0,
                      barred ? inside(point.low) : y(point.y), barred ? inside(point.high) : y(point.y)});
    if (barred) {
      body += svg_line(wanted.back().x, wanted.back().low, wanted.back().x, wanted.back().high,
                       fmt::format("lead s{}", point.style % kColours));
    }
    description += fmt::format("{}: {} {}, {} {}. ", point.name, short_number(point.x), figure.x_name,
                               short_number(point.y), figure.y_name);
  }
  const auto places = place_labels(wanted, {left + 1.0, kTop - 4.0, kWidth - 1.0, kTop + kPlotHeight - 1.0},
                                   kLabelDistance);
  std::string labels;
  for (std::size_t i = 0; i < places.size(); ++i) {
    // Without room for a label, the legend identifies the point by colour and shape.
    if (!places[i]) continue;
    const LabelPlace& place = *places[i];
    labels += svg_label(place.box.left, place.box.bottom - 2.5, names[i], figure.points[i].name);
    if (place.needs_leader)
      body += svg_line(wanted[i].x, wanted[i].y, place.lead_x(wanted[i]), place.lead_y(wanted[i]), "axis");
  }
  for (std::size_t i = 0; i < figure.points.size(); ++i) {
    const ScatterPoint& point = figure.points[i];
    body += svg_marker(wanted[i].x, wanted[i].y, 4.5, point.style,
                       fmt::format("{}: {} {}, {} {}", point.name, short_number(point.x), figure.x_name,
                                   short_number(point.y), figure.y_name));
  }
  body += labels;
  return {kWidth, kTop + kPlotHeight + kBottom, std::move(body),
          figure.subtitle.empty() ? figure.title : figure.title + ", " + figure.subtitle,
          std::move(description)};
}

std::string scatter_csv(const ScatterFigure& figure) {
  std::string csv = fmt::format("ranker,{},{},low,high\n", csv_field(clean_utf8(figure.x_name)),
                                csv_field(clean_utf8(figure.y_name)));
  for (const ScatterPoint& point : figure.points) {
    csv += fmt::format("{},{},{},{},{}\n", csv_field(clean_utf8(point.name)), csv_number(point.x),
                       csv_number(point.y), csv_number(point.low), csv_number(point.high));
  }
  return csv;
}

}  // namespace olrank
