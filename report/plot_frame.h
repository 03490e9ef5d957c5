#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "report/markup.h"
#include "report/plot.h"
#include "report/ticks.h"

namespace olrank {

// The drawings of every kind of plot share these.

inline constexpr double kPlotWidth = 400.0;
inline constexpr double kPlotBottom = 36.0;
inline constexpr double kPlotFont = 11.0;

/// Title and subtitle, with which the body of a drawing begins.
inline std::string plot_heading(const Plot& plot) {
  return svg_text(0.0, 13.0, shortened(plot.title, kTitleFont, kPlotWidth), "title") +
         svg_text(0.0, 28.0, shortened(plot.subtitle, kPlotFont, kPlotWidth), "tick");
}

/// The label of a tick of the x axis, which stays within the drawing.
inline std::string x_tick_label(const Scale& x, const Tick& tick, double bottom) {
  const double half = 0.5 * text_width(tick.label, kPlotFont);
  return svg_text(std::min(x(tick.value), kPlotWidth - half), bottom + 15.0, tick.label, "tick",
                  Anchor::kMiddle);
}

inline Drawing finished_drawing(const Plot& plot, double height, std::string body,
                                std::string description) {
  return {kPlotWidth, height, std::move(body),
          plot.subtitle.empty() ? plot.title : plot.title + ", " + plot.subtitle, std::move(description)};
}

Drawing draw_lines_or_points(const Plot& plot);
Drawing draw_bars(const Plot& plot);
Drawing draw_differences(const Plot& plot);

}  // namespace olrank
