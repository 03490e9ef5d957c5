#include "report/inspection_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "report/markup.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

double share_of_docs(const GroupRule& rule, const GroupSummary& group) {
  return static_cast<double>(group.docs) / static_cast<double>(rule.of_train().of_doc.size());
}

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

}  // namespace olrank
