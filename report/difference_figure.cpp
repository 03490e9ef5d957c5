#include "report/difference_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text/csv.h"
#include "report/markup.h"
#include "report/number_text.h"
#include "report/ticks.h"

namespace olrank {
namespace {

constexpr double kWidth = 400.0;
constexpr double kTop = 50.0;
constexpr double kRow = 15.0;
constexpr double kGap = 5.0;  // between rows of different names
constexpr double kBottom = 36.0;
constexpr double kFont = 11.0;
constexpr double kWidestName = 132.0;

class DifferenceDrawing {
 public:
  explicit DifferenceDrawing(const DifferenceFigure& figure)
      : figure_(figure),
        names_(widest([](const DifferenceRow& row) { return row.name; }, kWidestName)),
        variants_(widest([](const DifferenceRow& row) { return row.variant; }, kWidestName)),
        left_(names_ + (variants_ > 0.0 ? variants_ + 10.0 : 0.0) + 10.0),
        bottom_(row_places()),
        x_(scale()) {}

  Drawing draw() {
    body_ += svg_text(0.0, 13.0, shortened(figure_.title, 12.5, kWidth), "title");
    body_ += svg_text(0.0, 28.0, shortened(figure_.subtitle, kFont, kWidth), "tick");
    axis();
    for (std::size_t i = 0; i < figure_.rows.size(); ++i) row(i);
    return {kWidth, bottom_ + kBottom, std::move(body_),
            figure_.subtitle.empty() ? figure_.title : figure_.title + ", " + figure_.subtitle,
            std::move(description_)};
  }

 private:
  template <class Text>
  double widest(Text&& text, double limit) const {
    double width = 0.0;
    for (const DifferenceRow& row : figure_.rows) width = std::max(width, text_width(text(row), kFont));
    return std::min(width, limit);
  }

  /// Returns where the plot ends.
  double row_places() {
    double y = kTop + 0.5 * kRow;
    for (std::size_t i = 0; i < figure_.rows.size(); ++i) {
      if (i > 0 && figure_.rows[i].name != figure_.rows[i - 1].name) y += kGap;
      places_.push_back(y);
      y += kRow;
    }
    return y;
  }

  /// Holds every difference, and intervals as far as they do not flatten the differences.
  Scale scale() const {
    const auto distance = [&](double value) {
      return figure_.logarithmic ? std::abs(std::log(value / figure_.none))
                                 : std::abs(value - figure_.none);
    };
    double largest = 0.0;
    double widest = 0.0;
    for (const DifferenceRow& row : figure_.rows) {
      largest = std::max(largest, distance(row.value));
      for (const double end : {row.low, row.high}) {
        if (std::isfinite(end) && (end > 0.0 || !figure_.logarithmic))
          widest = std::max(widest, distance(end));
      }
    }
    double low = figure_.none;
    double high = figure_.none;
    const double most = std::max(largest, std::min(widest, 3.0 * largest));
    for (const DifferenceRow& row : figure_.rows) {
      for (const double value : {row.value, row.low, row.high}) {
        if (!std::isfinite(value) || (figure_.logarithmic && !(value > 0.0))) continue;
        if (distance(value) > most) {
          (value < figure_.none ? low : high) = beyond(value < figure_.none ? -most : most);
        } else {
          low = std::min(low, value);
          high = std::max(high, value);
        }
      }
    }
    const double right = kWidth - 8.0;
    if (figure_.logarithmic) {
      const double margin = std::max(1.05, std::pow(high / low, 0.06));
      return {low / margin, high * margin, left_, right, true};
    }
    const double margin = high > low ? 0.06 * (high - low) : 1.0;
    return {low - margin, high + margin, left_, right};
  }

  double beyond(double distance) const {
    return figure_.logarithmic ? figure_.none * std::exp(distance) : figure_.none + distance;
  }

  void axis() {
    for (const Tick& tick : x_.ticks(5)) {
      body_ += svg_line(x_(tick.value), kTop, x_(tick.value), bottom_, "grid");
      body_ += svg_text(std::min(x_(tick.value), kWidth - 0.5 * text_width(tick.label, kFont)),
                        bottom_ + 15.0, tick.label, "tick", Anchor::kMiddle);
    }
    body_ += svg_line(x_(figure_.none), kTop - 4.0, x_(figure_.none), bottom_, "axis");
    body_ += svg_text(0.5 * (left_ + kWidth), bottom_ + 30.0, figure_.x_name, "tick", Anchor::kMiddle);
    if (variants_ > 0.0)
      body_ += svg_text(left_ - 10.0, kTop - 4.0, figure_.variant_name, "tick", Anchor::kEnd);
  }

  double inside(double value) const { return x_(std::clamp(value, x_.low(), x_.high())); }

  void row(std::size_t at) {
    const DifferenceRow& row = figure_.rows[at];
    const double y = places_[at];
    if (at == 0 || figure_.rows[at - 1].name != row.name)
      body_ += svg_text(0.0, y + 3.8, shortened(row.name, kFont, kWidestName), "");
    if (!row.variant.empty()) body_ += svg_text(left_ - 10.0, y + 3.8, row.variant, "tick", Anchor::kEnd);
    const bool barred = row.low <= row.high;
    if (barred)
      body_ +=
          svg_line(inside(row.low), y, inside(row.high), y, fmt::format("bar s{}", row.style % kColours));
    std::string words = row.variant.empty()
                            ? row.name
                            : fmt::format("{}, {} {}", row.name, figure_.variant_name, row.variant);
    words += ": " + short_number(row.value);
    if (barred) words += fmt::format(" ({} to {})", short_number(row.low), short_number(row.high));
    if (row.significant) words += ", significant";
    body_ += svg_marker(inside(row.value), y, 3.8, row.style, words, !row.significant);
    description_ += words + ". ";
  }

  const DifferenceFigure& figure_;
  std::vector<double> places_;  // of rows; before bottom_, whose initialiser fills it
  double names_;
  double variants_;
  double left_;
  double bottom_;
  Scale x_;
  std::string body_;
  std::string description_;
};

}  // namespace

Drawing draw_differences(const DifferenceFigure& figure) {
  return DifferenceDrawing(figure).draw();
}

std::string differences_csv(const DifferenceFigure& figure) {
  std::string csv = fmt::format("name,{},{},low,high,significant\n",
                                figure.variant_name.empty() ? "variant" : csv_field(figure.variant_name),
                                csv_field(clean_utf8(figure.x_name)));
  for (const DifferenceRow& row : figure.rows) {
    csv += fmt::format("{},{},{},{},{},{:d}\n", csv_field(clean_utf8(row.name)), csv_field(row.variant),
                       csv_number(row.value), csv_number(row.low), csv_number(row.high), row.significant);
  }
  return csv;
}

}  // namespace olrank
