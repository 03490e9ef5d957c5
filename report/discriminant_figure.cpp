#include "report/discriminant_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/metrics/list_metrics.h"

namespace olrank {
namespace {

constexpr std::int64_t kMostShown = 3000;
/// In standard deviations within grades, from the mean of all documents.
constexpr double kFarthest = 6.0;

}  // namespace

Plot discriminant_figure(const Discriminant& discriminant, std::span<const std::uint8_t> grades,
                         const std::string& source) {
  Plot plot;
  plot.kind = PlotKind::kScatter;
  plot.title = "Linear discriminant of the grades";
  plot.subtitle = source;
  plot.x_name = "first direction";
  plot.y_name = "second direction";
  const GradeCounts counts = count_grades(grades);
  const auto docs = static_cast<std::int64_t>(grades.size());
  const std::int64_t stride = std::max<std::int64_t>(1, docs / kMostShown);
  for (std::size_t grade = 0; grade < counts.size(); ++grade) {
    if (counts[grade] == 0) continue;
    PlotSeries series{fmt::format("grade {}", grade), plot.series.size(), {PlotPoint{}}, {{}}};
    for (std::int64_t doc = 0; doc < docs; ++doc) {
      if (grades[doc] != grade) continue;
      const auto& [x, y] = discriminant.docs[doc];
      series.points.front().x += x / static_cast<double>(counts[grade]);
      series.points.front().y += y / static_cast<double>(counts[grade]);
      if (doc % stride == 0 && std::hypot(x, y) < kFarthest) series.parts.front().emplace_back(x, y);
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

}  // namespace olrank
