#include "core/fair/dataset_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/error.h"
#include "core/metrics/text_lines.h"

namespace olrank {
namespace {

std::string_view trimmed_field(std::string_view field) {
  while (!field.empty() && (field.back() == ' ' || field.back() == '\t' || field.back() == '\r'))
    field.remove_suffix(1);
  return take_word(field);
}

struct GroupLine {
  std::string_view qid;
  std::int64_t doc = 0;
  DocGroup group = DocGroup::kA;
};

GroupLine parse_group_line(const TextLines& lines) {
  std::array<std::string_view, 3> fields;
  std::string_view rest = lines.line();
  for (std::size_t field = 0; field < 3; ++field) {
    const std::size_t comma = rest.find(',');
    if ((comma == std::string_view::npos) != (field == 2))
      lines.fail(rest, "A line of groups must be 'qid,doc,group', such as '17,0,A'.");
    fields[field] = trimmed_field(rest.substr(0, comma));
    if (field < 2) rest.remove_prefix(comma + 1);
  }
  GroupLine line{.qid = fields[0]};
  const std::string_view digits = fields[1];
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), line.doc);
  if (error != std::errc() || end != digits.data() + digits.size() || line.doc < 0) {
    lines.fail(digits, fmt::format("The document must be its number within the query, from 0, not {}.",
                                   quoted(digits)));
  }
  if (fields[2] != "A" && fields[2] != "B")
    lines.fail(fields[2], fmt::format("The group must be A or B, not {}.", quoted(fields[2])));
  line.group = fields[2] == "A" ? DocGroup::kA : DocGroup::kB;
  return line;
}

/// Queries of other parts are passed over: one file may serve all folds.
std::vector<DocGroup> read_groups(const std::string& file, const Dataset& part) {
  std::unordered_map<std::string_view, std::int64_t> query_of;
  for (std::int64_t query = 0; query < part.queries(); ++query) query_of.emplace(part.qid(query), query);
  std::vector<DocGroup> groups(part.docs());
  std::vector<std::int64_t> line_of(part.docs(), 0);  // that named the document; 0 for none
  TextLines lines = TextLines::of_file(file);
  while (lines.next()) {
    if (lines.blank() || (lines.number() == 1 && trimmed_field(lines.line()).starts_with("qid"))) continue;
    const GroupLine line = parse_group_line(lines);
    const auto query = query_of.find(line.qid);
    if (query == query_of.end()) continue;
    const std::int64_t docs = part.docs_of(query->second);
    if (line.doc >= docs) {
      lines.fail(lines.line(),
                 fmt::format("Query {} has the documents 0 to {}, so there is no document {}.",
                             quoted(line.qid), docs - 1, line.doc));
    }
    const std::int64_t doc = part.offset(query->second) + line.doc;
    if (line_of[doc] != 0 && groups[doc] != line.group) {
      lines.fail(lines.line(),
                 fmt::format("Document {} of query {} is in group {} here, but in group {} in "
                             "line {}.",
                             line.doc, quoted(line.qid), letter_of(line.group), letter_of(groups[doc]),
                             line_of[doc]));
    }
    groups[doc] = line.group;
    line_of[doc] = lines.number();
  }
  for (std::int64_t query = 0; query < part.queries(); ++query) {
    for (std::int64_t doc = part.offset(query); doc < part.offset(query + 1); ++doc) {
      if (line_of[doc] != 0) continue;
      throw DataError(file, lines.number(), 0,
                      fmt::format("The file ends without a group for document {} of query {}.",
                                  doc - part.offset(query), quoted(part.qid(query))));
    }
  }
  return groups;
}

std::array<GroupSummary, 2> summarise(std::span<const DocGroup> groups,
                                      std::span<const std::uint8_t> grades) {
  std::array<GroupSummary, 2> summaries;
  std::array<std::int64_t, 2> sums = {0, 0};
  for (std::size_t doc = 0; doc < groups.size(); ++doc) {
    const auto group = static_cast<std::size_t>(groups[doc]);
    ++summaries[group].docs;
    sums[group] += grades[doc];
  }
  for (std::size_t group = 0; group < 2; ++group) {
    if (summaries[group].docs > 0)
      summaries[group].mean_grade =
          static_cast<double>(sums[group]) / static_cast<double>(summaries[group].docs);
  }
  return summaries;
}

}  // namespace

GroupRule::GroupRule(const GroupSettings& settings, const Dataset& train) : settings_(settings) {
  if (settings.feature > train.features()) {
    throw InvalidArgument(fmt::format("groups.feature is {}, but the data has the features 1 to {}.",
                                      settings.feature, train.features()));
  }
  if (settings.file.empty()) threshold_ = fit_threshold(train);
  train_ = groups_of(train);
  for (const DocGroup group : {DocGroup::kA, DocGroup::kB}) {
    if (train_.summaries[static_cast<std::size_t>(group)].docs > 0) continue;
    if (!settings.file.empty()) {
      throw DataError(settings.file, 0, 0,
                      fmt::format("No document of the training part is in group {}.", letter_of(group)));
    }
    throw InvalidArgument(fmt::format(
        "groups.{} = {} leaves group {} empty: no value of feature {} in the training part is {} {}.",
        settings.threshold ? "threshold" : "quantile",
        settings.threshold ? *settings.threshold : *settings.quantile, letter_of(group), settings.feature,
        (group == DocGroup::kA) == (settings.group_a == GroupSide::kAtMost) ? "at most" : "above",
        threshold_));
  }
  beta_ = settings.beta ? *settings.beta : fit_beta();
}

double GroupRule::fit_threshold(const Dataset& train) const {
  if (settings_.threshold) return *settings_.threshold;
  const FeatureMatrix all = train.all_features();
  if (all.docs == 0) return 0.0;
  std::vector<float> values(all.docs);
  for (std::int64_t doc = 0; doc < all.docs; ++doc)
    values[doc] = all.values[doc * all.features + settings_.feature - 1];
  // The least value that at least this share of the documents does not exceed.
  const auto wanted = std::ceil(*settings_.quantile * static_cast<double>(all.docs));
  const auto place = std::clamp<std::int64_t>(static_cast<std::int64_t>(wanted) - 1, 0, all.docs - 1);
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[place];
}

double GroupRule::fit_beta() const {
  const double a = train_.summaries[0].mean_grade;
  const double b = train_.summaries[1].mean_grade;
  if (a > 0.0 && b > 0.0) return a / b;
  throw InvalidArgument(fmt::format(
      "groups.beta = \"auto\" is the ratio of the groups' mean grades, but they are {} for A and {} for B: "
      "set groups.beta to a number.",
      a, b));
}

DatasetGroups GroupRule::groups_of(const Dataset& part) const {
  DatasetGroups groups;
  if (!settings_.file.empty()) {
    groups.of_doc = read_groups(settings_.file, part);
  } else {
    const FeatureMatrix all = part.all_features();
    const bool a_is_above = settings_.group_a == GroupSide::kAbove;
    groups.of_doc.resize(all.docs);
    for (std::int64_t doc = 0; doc < all.docs; ++doc) {
      const bool above = double{all.values[doc * all.features + settings_.feature - 1]} > threshold_;
      groups.of_doc[doc] = above == a_is_above ? DocGroup::kA : DocGroup::kB;
    }
  }
  groups.summaries = summarise(groups.of_doc, part.all_grades());
  return groups;
}

}  // namespace olrank
