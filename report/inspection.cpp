#include "report/inspection.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>

#include "core/metrics/list_metrics.h"
#include "core/ops/blas.h"
#include "core/throw_error.h"
#include "report/markup.h"

namespace olrank {

namespace {

using nlohmann::ordered_json;

double share_of_docs(const GroupRule& rule, const GroupSummary& group) {
  return static_cast<double>(group.docs) / static_cast<double>(rule.of_train().of_doc.size());
}

/// Added to the variance within grades of each standardised feature, because features may be sums of
/// others.
constexpr double kRidge = 1e-6;
constexpr std::int64_t kBlock = 1024;

/// Standardised features, of which only those that vary are left.
class Standardised {
 public:
  explicit Standardised(FeatureMatrix docs) : docs_(docs) {
    const auto count = static_cast<double>(docs.docs);
    std::vector<double> mean(docs.features);
    std::vector<double> square(docs.features);
    for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
      for (std::int64_t k = 0; k < docs.features; ++k) mean[k] += double{docs.doc(doc)[k]} / count;
    }
    for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
      for (std::int64_t k = 0; k < docs.features; ++k) {
        const double off = double{docs.doc(doc)[k]} - mean[k];
        square[k] += off * off / count;
      }
    }
    for (std::int64_t k = 0; k < docs.features; ++k) {
      // A constant's mean is off by rounding.
      if (!(square[k] > 1e-20 * mean[k] * mean[k]) || !(square[k] > 0.0)) continue;
      kept_.push_back(k);
      mean_.push_back(mean[k]);
      scale_.push_back(1.0 / std::sqrt(square[k]));
    }
  }

  std::int64_t features() const { return std::ssize(kept_); }
  void write(std::int64_t doc, double* row) const {
    const auto values = docs_.doc(doc);
    for (std::size_t k = 0; k < kept_.size(); ++k)
      row[k] = (double{values[kept_[k]]} - mean_[k]) * scale_[k];
  }

 private:
  FeatureMatrix docs_;
  std::vector<std::int64_t> kept_;
  std::vector<double> mean_;
  std::vector<double> scale_;
};

/// The two largest eigenvalues of a small symmetric matrix and their vectors, by Jacobi's rotations.
struct Leading {
  std::array<double, 2> values{};
  std::array<std::vector<double>, 2> vectors;
};

Leading leading_eigenvectors(std::vector<double> a, std::size_t n) {
  std::vector<double> v(n * n);
  for (std::size_t i = 0; i < n; ++i) v[i * n + i] = 1.0;
  constexpr int kSweeps = 30;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        if (a[p * n + q] == 0.0) continue;
        const double half = (a[q * n + q] - a[p * n + p]) / (2.0 * a[p * n + q]);
        const double t = std::copysign(1.0, half) / (std::abs(half) + std::sqrt(half * half + 1.0));
        const double c = 1.0 / std::sqrt(t * t + 1.0);
        const double s = t * c;
        const auto rotate = [&](double& x, double& y) {
          const double before = x;
          x = c * before - s * y;
          y = s * before + c * y;
        };
        for (std::size_t k = 0; k < n; ++k) rotate(a[k * n + p], a[k * n + q]);
        for (std::size_t k = 0; k < n; ++k) rotate(a[p * n + k], a[q * n + k]);
        for (std::size_t k = 0; k < n; ++k) rotate(v[k * n + p], v[k * n + q]);
      }
    }
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return a[i * n + i] > a[j * n + j]; });
  Leading leading;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    leading.values[axis] = a[order[axis] * n + order[axis]];
    for (std::size_t k = 0; k < n; ++k) leading.vectors[axis].push_back(v[k * n + order[axis]]);
  }
  return leading;
}

constexpr std::int64_t kMostShown = 3000;
/// It is in standard deviations within grades, from the mean of all documents.
constexpr double kFarthest = 6.0;

}  // namespace

ordered_json one_or_all(const std::vector<double>& values) {
  return values.size() == 1 ? ordered_json(values.front()) : ordered_json(values);
}

ordered_json inspection_json(const InspectedFile& inspected) {
  if (!inspected.found) return {{"file", inspected.path}, {"error", inspected.failure}};
  const Inspection& found = *inspected.found;
  ordered_json grades = ordered_json::object();
  for (std::size_t grade = 0; grade < found.grades.size(); ++grade) {
    if (found.grades[grade] > 0) grades[std::to_string(grade)] = found.grades[grade];
  }
  ordered_json weights;
  if (found.weights) weights = {{"min", found.weights->first}, {"max", found.weights->second}};
  ordered_json findings = ordered_json::array();
  for (const auto& finding : found.findings) {
    findings.push_back({{"line", finding.line > 0 ? ordered_json(finding.line) : ordered_json(nullptr)},
                        {"sentence", finding.sentence}});
  }
  return {{"file", inspected.path},
          {"queries", found.queries},
          {"docs", found.docs},
          {"features", found.features},
          {"named_docs", found.named_docs},
          {"grades", grades},
          {"docs_per_query",
           {{"min", found.fewest_docs}, {"median", found.median_docs}, {"max", found.most_docs}}},
          {"queries_without_relevant", found.queries_without_relevant},
          {"queries_scattered", found.queries_scattered},
          {"missing_features", found.missing_features},
          {"constant_features", found.constant_features},
          {"duplicate_docs", found.duplicate_docs},
          {"contradicting_docs", found.contradicting_docs},
          {"duplicate_names", found.duplicate_names},
          {"null_values", found.null_values.count},
          {"weights", weights},
          {"fingerprint", found.fingerprint.hex()},
          {"findings", findings}};
}

std::string inspection_text(const InspectedFile& inspected) {
  std::string text = inspected.path + "\n";
  const Inspection& found = *inspected.found;
  const auto row = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<22}{}\n", name, value);
  };
  row("queries", fmt::format("{}", found.queries));
  row("documents", fmt::format("{} ({} named)", found.docs, found.named_docs));
  row("features", fmt::format("{}", found.features));
  std::string grades;
  for (std::size_t grade = 0; grade < found.grades.size(); ++grade) {
    if (found.grades[grade] == 0) continue;
    grades +=
        fmt::format("{}{}: {} ({:.1f} %)", grades.empty() ? "" : ", ", grade, found.grades[grade],
                    100.0 * static_cast<double>(found.grades[grade]) / static_cast<double>(found.docs));
  }
  row("grades", grades);
  row("documents per query",
      fmt::format("{} to {}, median {}", found.fewest_docs, found.most_docs, found.median_docs));
  row("no relevant document", fmt::format("{} queries", found.queries_without_relevant));
  if (found.weights)
    row("weights of queries", fmt::format("{} to {}", found.weights->first, found.weights->second));
  if (!found.missing_features.empty()) row("features always 0", runs_text(found.missing_features, "-"));
  if (!found.constant_features.empty()) row("constant features", runs_text(found.constant_features, "-"));
  if (found.null_values.count > 0) row("NULL values", fmt::format("{}", found.null_values.count));
  if (found.duplicate_docs > 0) {
    row("duplicate documents",
        fmt::format("{}, {} with a different grade", found.duplicate_docs, found.contradicting_docs));
  }
  if (found.duplicate_names > 0) row("duplicate names", fmt::format("{}", found.duplicate_names));
  if (found.queries_scattered > 0) row("scattered queries", fmt::format("{}", found.queries_scattered));
  row("fingerprint", found.fingerprint.hex());
  for (const auto& finding : found.findings) {
    text += fmt::format("  {}{}\n",
                        finding.line > 0 ? fmt::format("{}:{}: ", inspected.path, finding.line) : "",
                        finding.sentence);
  }
  return text;
}

ordered_json groups_json(const std::string& path, const GroupSettings& settings, const GroupRule& rule) {
  ordered_json json = {{"source", path}};
  if (settings.feature > 0) {
    json["feature"] = settings.feature;
    json["threshold"] = one_or_all(rule.thresholds());
  } else {
    json["file"] = settings.file;
  }
  for (std::size_t group = 0; group < rule.of_train().summaries.size(); ++group) {
    const GroupSummary& summary = rule.of_train().summaries[group];
    json[std::string(1, letter_of(static_cast<DocGroup>(group)))] = {
        {"docs", summary.docs},
        {"share", share_of_docs(rule, summary)},
        {"mean_grade", summary.mean_grade}};
  }
  json["beta"] = one_or_all(rule.beta());
  return json;
}

std::string groups_text(const std::string& path, const GroupSettings& settings, const GroupRule& rule) {
  std::string text = path + "\n";
  if (settings.feature > 0)
    text += fmt::format("  {:<22}feature {}, threshold {}\n", "groups by", settings.feature,
                        fmt::join(rule.thresholds(), ", "));
  for (std::size_t group = 0; group < rule.of_train().summaries.size(); ++group) {
    const GroupSummary& summary = rule.of_train().summaries[group];
    text += fmt::format("  group {:<16}{} documents ({:.2f} %), mean grade {:.4f}\n",
                        letter_of(static_cast<DocGroup>(group)), summary.docs,
                        100.0 * share_of_docs(rule, summary), summary.mean_grade);
  }
  text += fmt::format("  {:<22}{:.4f}{}\n", "β", fmt::join(rule.beta(), ", "),
                      settings.beta ? "" : ", the ratio of the mean grades");
  return text;
}

Discriminant linear_discriminant(const Dataset& data, ExecutionContext& context) {
  const GradeCounts counts = count_grades(data.all_grades());
  std::vector<std::size_t> class_of(counts.size());
  std::vector<double> docs_of;
  for (std::size_t grade = 0; grade < counts.size(); ++grade) {
    class_of[grade] = docs_of.size();
    if (counts[grade] > 0) docs_of.push_back(static_cast<double>(counts[grade]));
  }
  const auto classes = std::ssize(docs_of);
  const Standardised features(data.all_features());
  const std::int64_t d = features.features();
  if (classes < 3 || d < 2) {
    throw_error<InvalidArgument>(
        "A discriminant plane needs three grades and two features that vary, but these data have {} and "
        "{}.",
        classes, d);
  }
  const auto count = static_cast<double>(data.docs());
  const auto class_at = [&](std::int64_t doc) { return class_of[data.all_grades()[doc]]; };

  std::vector<double> means(classes * d);
  std::vector<double> row(d);
  for (std::int64_t doc = 0; doc < data.docs(); ++doc) {
    features.write(doc, row.data());
    double* mean = means.data() + static_cast<std::int64_t>(class_at(doc)) * d;
    for (std::int64_t k = 0; k < d; ++k) mean[k] += row[k] / docs_of[class_at(doc)];
  }
  std::vector<double> within(d * d);
  for (std::int64_t k = 0; k < d; ++k) within[k * (d + 1)] = kRidge;
  std::vector<double> block(kBlock * d);
  for (std::int64_t first = 0; first < data.docs(); first += kBlock) {
    const std::int64_t rows = std::min(kBlock, data.docs() - first);
    for (std::int64_t i = 0; i < rows; ++i) {
      features.write(first + i, block.data() + i * d);
      const double* mean = means.data() + static_cast<std::int64_t>(class_at(first + i)) * d;
      for (std::int64_t k = 0; k < d; ++k) block[i * d + k] -= mean[k];
    }
    context.for_blocks(d, 64, [&](std::int64_t begin, std::int64_t end, int) {
      blas::add_gram(begin, end, rows, 1.0 / count, block.data(), block.data(), d, within.data(), d);
    });
  }
  blas::cholesky(d, within.data(), d);

  // Between grades, seen where the covariance within them is the identity: B Bᵀ, B [d × classes].
  std::vector<double> between(d * classes);
  for (std::int64_t c = 0; c < classes; ++c) {
    for (std::int64_t k = 0; k < d; ++k)
      between[k * classes + c] = std::sqrt(docs_of[c] / count) * means[c * d + k];
  }
  blas::solve_lower(blas::Transpose::kNo, d, classes, within.data(), d, between.data(), classes);
  std::vector<double> gram(classes * classes);
  blas::gemm(blas::Transpose::kYes, blas::Transpose::kNo, classes, classes, d, 1.0, between.data(), classes,
             between.data(), classes, 0.0, gram.data(), classes);
  const Leading leading = leading_eigenvectors(gram, static_cast<std::size_t>(classes));

  std::vector<double> axes(d * 2);
  for (std::int64_t k = 0; k < d; ++k) {
    for (std::size_t axis = 0; axis < 2; ++axis) {
      for (std::int64_t c = 0; c < classes; ++c)
        axes[k * 2 + axis] += between[k * classes + c] * leading.vectors[axis][c];
      axes[k * 2 + axis] /= std::sqrt(std::max(leading.values[axis], 1e-300));
    }
  }
  blas::solve_lower(blas::Transpose::kYes, d, 2, within.data(), d, axes.data(), 2);

  Discriminant found;
  found.separation = leading.values;
  found.docs.resize(data.docs());
  double mean_grade = 0.0;
  for (const std::uint8_t grade : data.all_grades()) mean_grade += grade / count;
  std::array<double, 2> trend{};
  for (std::int64_t doc = 0; doc < data.docs(); ++doc) {
    features.write(doc, row.data());
    for (std::size_t axis = 0; axis < 2; ++axis) {
      double at = 0.0;
      for (std::int64_t k = 0; k < d; ++k) at += row[k] * axes[k * 2 + axis];
      found.docs[doc][axis] = at;
      trend[axis] += at * (data.all_grades()[doc] - mean_grade);
    }
  }
  for (auto& at : found.docs) {
    for (std::size_t axis = 0; axis < 2; ++axis) at[axis] = trend[axis] < 0.0 ? -at[axis] : at[axis];
  }
  return found;
}

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
