#include "report/bar_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/text/csv.h"
#include "report/distinct_labels.h"
#include "report/markup.h"
#include "report/number_text.h"

namespace olrank {
namespace {

constexpr double kWidth = 400.0;
constexpr double kTop = 38.0;
constexpr double kRow = 34.0;
constexpr double kBar = 14.0;
constexpr double kFont = 11.0;
constexpr double kTitleFont = 13.5;  // what 12.5 px takes in bold letters

double total_of(const Bar& bar) {
  return std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0);
}

std::string total_text(const BarFigure& figure, const Bar& bar) {
  return fmt::format("{} {}", short_number(total_of(bar)), figure.unit);
}

/// The names, each beside the bar's total.
std::vector<std::string> labels_of(const BarFigure& figure) {
  double room = kWidth;
  std::vector<std::string> names;
  for (const Bar& bar : figure.bars) {
    room = std::min(room, kWidth - text_width(total_text(figure, bar), kFont) - 10.0);
    names.push_back(bar.name);
  }
  return distinct_labels(names, kFont, room);
}

std::string draw_row(const BarFigure& figure, const Bar& bar, const std::string& label, double top,
                     double scale) {
  std::string body = svg_label(0.0, top + 11.0, label, bar.name);
  body += svg_text(kWidth, top + 11.0, total_text(figure, bar), "tick", Anchor::kEnd);
  double left = 0.0;
  for (std::size_t i = 0; i < bar.parts.size(); ++i) {
    const double width = bar.parts[i] * scale;
    if (width < 0.05) continue;
    body += fmt::format(
        "<rect class=\"part {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{}\"><title>{}</title></rect>",
        part_class(i), left, top + 15.0, width, kBar,
        escape_html(fmt::format("{}, {}: {} {}", bar.name, figure.parts[i], short_number(bar.parts[i]),
                                figure.unit)));
    if (text_width(figure.parts[i], kFont) + 6.0 < width)
      body += svg_text(left + 4.0, top + 26.0, figure.parts[i], on_part_class(i));
    left += width;
  }
  return body;
}

/// Draws the legend, in as many lines as it needs. Returns its height.
double draw_legend(const BarFigure& figure, double top, std::string& body) {
  double x = 0.0;
  double y = top;
  for (std::size_t i = 0; i < figure.parts.size(); ++i) {
    const double width = 14.0 + text_width(figure.parts[i], kFont) + 12.0;
    if (x + width > kWidth && x > 0.0) {
      x = 0.0;
      y += 16.0;
    }
    body += fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\"/>",
                        part_class(i), x, y);
    body += svg_text(x + 14.0, y + 9.0, figure.parts[i], "");
    x += width;
  }
  return y - top + 16.0;
}

}  // namespace

Drawing draw_bars(const BarFigure& figure) {
  double largest = 0.0;
  for (const Bar& bar : figure.bars) largest = std::max(largest, total_of(bar));
  const double scale = largest > 0.0 ? kWidth / largest : 0.0;
  std::string body = svg_text(0.0, 13.0, shortened(figure.title, kTitleFont, kWidth), "title");
  body += svg_text(0.0, 28.0, shortened(figure.subtitle, kFont, kWidth), "tick");
  double top = kTop;
  std::string description;
  const std::vector<std::string> labels = labels_of(figure);
  for (std::size_t i = 0; i < figure.bars.size(); ++i) {
    const Bar& bar = figure.bars[i];
    body += draw_row(figure, bar, labels[i], top, scale);
    top += kRow;
    description += fmt::format("{}: {} {}", bar.name, short_number(total_of(bar)), figure.unit);
    for (std::size_t part = 0; part < bar.parts.size(); ++part)
      description += fmt::format(", {} {}", figure.parts[part], short_number(bar.parts[part]));
    description += ". ";
  }
  top += 4.0;
  top += draw_legend(figure, top, body);
  return {kWidth, top, std::move(body),
          figure.subtitle.empty() ? figure.title : figure.title + ", " + figure.subtitle,
          std::move(description)};
}

std::string bars_csv(const BarFigure& figure) {
  std::string csv = "ranker";
  for (const std::string& part : figure.parts) csv += "," + csv_field(clean_utf8(part));
  csv += "\n";
  for (const Bar& bar : figure.bars) {
    csv += csv_field(clean_utf8(bar.name));
    for (const double value : bar.parts) csv += "," + csv_number(value);
    csv += "\n";
  }
  return csv;
}

}  // namespace olrank
