#include "core/fair/dataset_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "core/io/text_lines.h"
#include "core/throw_error.h"

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

GroupLine parse_group_line(const TextLines& lines, std::size_t groups) {
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
    lines.fail(digits, "The document must be its number within the query, from 0, not {}.", quoted(digits));
  }
  const auto group = group_named(fields[2], groups);
  if (!group) lines.fail(fields[2], "The group must be {}, not {}.", letters_of(groups), quoted(fields[2]));
  line.group = *group;
  return line;
}

/// Queries of other parts are passed over: one file may serve all folds.
std::vector<DocGroup> read_groups(const std::string& file, const Dataset& part, std::size_t most) {
  std::unordered_map<std::string_view, std::int64_t> query_of;
  for (std::int64_t query = 0; query < part.queries(); ++query) query_of.emplace(part.qid(query), query);
  std::vector<DocGroup> groups(part.docs());
  std::vector<std::int64_t> line_of(part.docs(), 0);  // that named the document; 0 for none
  TextLines lines = TextLines::of_file(file);
  while (lines.next()) {
    if (lines.blank() || (lines.number() == 1 && trimmed_field(lines.line()).starts_with("qid"))) continue;
    const GroupLine line = parse_group_line(lines, most);
    const auto query = query_of.find(line.qid);
    if (query == query_of.end()) continue;
    const std::int64_t docs = part.docs_of(query->second);
    if (line.doc >= docs) {
      lines.refuse("Query {} has the documents 0 to {}, so there is no document {}.", quoted(line.qid),
                   docs - 1, line.doc);
    }
    const std::int64_t doc = part.offset(query->second) + line.doc;
    if (line_of[doc] != 0 && groups[doc] != line.group) {
      lines.refuse(
          "Document {} of query {} is in group {} here, but in group {} in "
          "line {}.",
          line.doc, quoted(line.qid), letter_of(line.group), letter_of(groups[doc]), line_of[doc]);
    }
    groups[doc] = line.group;
    line_of[doc] = lines.number();
  }
  for (std::int64_t query = 0; query < part.queries(); ++query) {
    for (std::int64_t doc = part.offset(query); doc < part.offset(query + 1); ++doc) {
      if (line_of[doc] != 0) continue;
      throw_data_error(file, lines.number(), 0,
                       "The file ends without a group for document {} of query {}.",
                       doc - part.offset(query), quoted(part.qid(query)));
    }
  }
  return groups;
}

std::vector<GroupSummary> summarise(std::span<const DocGroup> groups, std::size_t count,
                                    std::span<const std::uint8_t> grades) {
  std::vector<GroupSummary> summaries(count);
  std::vector<std::int64_t> sums(count, 0);
  for (std::size_t doc = 0; doc < groups.size(); ++doc) {
    const std::size_t group = index_of(groups[doc]);
    ++summaries[group].docs;
    sums[group] += grades[doc];
  }
  for (std::size_t group = 0; group < count; ++group) {
    if (summaries[group].docs > 0)
      summaries[group].mean_grade =
          static_cast<double>(sums[group]) / static_cast<double>(summaries[group].docs);
  }
  return summaries;
}

/// There are as many as the last letter says, but at least two.
std::size_t groups_among(std::span<const DocGroup> groups) {
  const auto last = std::max_element(groups.begin(), groups.end());
  return last == groups.end() ? 2 : std::max<std::size_t>(2, index_of(*last) + 1);
}

}  // namespace

GroupRule::GroupRule(const GroupSettings& settings, const Dataset& train) : settings_(settings) {
  if (settings.feature > train.features()) {
    throw_error<InvalidArgument>("groups.feature is {}, but the data has the features 1 to {}.",
                                 settings.feature, train.features());
  }
  if (settings.file.empty()) thresholds_ = fit_thresholds(train);
  groups_ =
      settings.count() ? *settings.count() : groups_among(read_groups(settings.file, train, kMostGroups));
  train_ = groups_of(train);
  for (std::size_t group = 0; group < groups_; ++group) {
    if (train_.summaries[group].docs > 0) continue;
    const char letter = letter_of(static_cast<DocGroup>(group));
    if (!settings.file.empty()) {
      throw_data_error(settings.file, 0, 0, "No document of the training part is in group {}.", letter);
    }
    // The group has the values between the thresholds around its place.
    std::string where;
    if (group > 0) where += fmt::format("above {}", thresholds_[group - 1]);
    if (group < thresholds_.size())
      where += fmt::format("{}at most {}", where.empty() ? "" : " and ", thresholds_[group]);
    const auto& given = settings.threshold ? *settings.threshold : *settings.quantile;
    throw_error<InvalidArgument>(
        "groups.{} = {} leaves group {} empty: no value of feature {} in the training part is {}.",
        settings.threshold ? "threshold" : "quantile", fmt::join(given, ", "), letter, settings.feature,
        where);
  }
  beta_ = settings.beta ? *settings.beta : fit_beta();
}

std::vector<double> GroupRule::fit_thresholds(const Dataset& train) const {
  if (settings_.threshold) return *settings_.threshold;
  const FeatureMatrix all = train.all_features();
  std::vector<double> thresholds(settings_.quantile->size(), 0.0);
  if (all.docs == 0) return thresholds;
  std::vector<float> values(all.docs);
  for (std::int64_t doc = 0; doc < all.docs; ++doc)
    values[doc] = all.values[doc * all.features + settings_.feature - 1];
  for (std::size_t one = 0; one < thresholds.size(); ++one) {
    // The least value that at least this share of the documents does not exceed.
    const auto wanted = std::ceil((*settings_.quantile)[one] * static_cast<double>(all.docs));
    const auto place = std::clamp<std::int64_t>(static_cast<std::int64_t>(wanted) - 1, 0, all.docs - 1);
    std::nth_element(values.begin(), values.begin() + place, values.end());
    thresholds[one] = values[place];
  }
  return thresholds;
}

std::vector<double> GroupRule::fit_beta() const {
  const double a = train_.summaries[0].mean_grade;
  std::vector<double> beta;
  for (std::size_t group = 1; group < groups_; ++group) {
    const double other = train_.summaries[group].mean_grade;
    if (!(a > 0.0 && other > 0.0)) {
      throw_error<InvalidArgument>(
          "groups.beta = \"auto\" is the ratio of the groups' mean grades, but they are {} for A and {} "
          "for {}: set groups.beta to {}.",
          a, other, letter_of(static_cast<DocGroup>(group)),
          groups_ == 2 ? "a number" : fmt::format("{} numbers", groups_ - 1));
    }
    beta.push_back(a / other);
  }
  return beta;
}

DatasetGroups GroupRule::groups_of(const Dataset& part) const {
  DatasetGroups groups;
  if (!settings_.file.empty()) {
    groups.of_doc = read_groups(settings_.file, part, groups_);
  } else {
    const FeatureMatrix all = part.all_features();
    groups.of_doc.resize(all.docs);
    for (std::int64_t doc = 0; doc < all.docs; ++doc) {
      const double value = all.values[doc * all.features + settings_.feature - 1];
      const auto below = std::count_if(thresholds_.begin(), thresholds_.end(),
                                       [&](double threshold) { return value > threshold; });
      groups.of_doc[doc] = static_cast<DocGroup>(below);
    }
  }
  groups.summaries = summarise(groups.of_doc, groups_, part.all_grades());
  return groups;
}

std::optional<std::size_t> GroupSettings::count() const {
  for (const auto& values : {threshold, quantile, beta}) {
    if (values) return values->size() + 1;
  }
  return std::nullopt;
}

void GroupSettings::check(std::int64_t cutoff) const {
  check_groups();
  if (!are_set()) {
    if (threshold || quantile)
      throw InvalidArgument(
          "[groups] has a threshold but no feature: name the feature with groups.feature.");
    return;
  }
  if (feature > 0 && !file.empty()) {
    throw_error<InvalidArgument>("[groups] has both feature = {} and file = \"{}\": remove one of them.",
                                 feature, file);
  }
  if (feature > 0 && threshold.has_value() == quantile.has_value()) {
    throw_error<InvalidArgument>(
        "[groups] has feature = {} and {}: give either a threshold or a quantile.", feature,
        threshold ? "both a threshold and a quantile" : "neither threshold nor quantile");
  }
  if (!file.empty() && (threshold || quantile)) {
    throw_error<InvalidArgument>(
        "[groups] has file = \"{}\", which names each document's group: remove the {}.", file,
        threshold ? "threshold" : "quantile");
  }
  if (!examination.empty() && std::ssize(examination) < cutoff) {
    throw_error<InvalidArgument>(
        "groups.examination has {} probabilities, but lists show {} ranks: give one for each rank.",
        examination.size(), cutoff);
  }
  if (!examination.empty() && examination.front() <= 0.0)
    throw InvalidArgument(
        "groups.examination begins with 0, but the first rank must be examined sometimes.");
}

/// How many there are, whatever decides a document's group.
void GroupSettings::check_groups() const {
  using List = std::pair<const char*, const std::optional<std::vector<double>>&>;
  for (const auto& [key, values] :
       {List("threshold", threshold), List("quantile", quantile), List("beta", beta)}) {
    if (!values) continue;
    if (values->size() + 1 > kMostGroups) {
      throw_error<InvalidArgument>(
          "groups.{} has {} values, which makes {} groups, but there can be at most {}.", key,
          values->size(), values->size() + 1, kMostGroups);
    }
    if (values->size() + 1 != *count()) {
      throw_error<InvalidArgument>(
          "groups.{} must have as many values as groups.{}, one less than there are groups, but has {}, "
          "not {}.",
          key, threshold ? "threshold" : "quantile", values->size(), *count() - 1);
    }
    if (values != beta && !std::is_sorted(values->begin(), values->end(), std::less_equal<>())) {
      throw_error<InvalidArgument>("groups.{} must increase from value to value, but is {}.", key,
                                   to_toml(*values));
    }
  }
}

GroupSettings parse_group_settings(std::string_view text, std::string_view origin) {
  GroupSettings settings;
  while (!text.empty()) {
    // A value may be a list in brackets.
    std::size_t comma = 0;
    for (int depth = 0; comma < text.size() && (text[comma] != ',' || depth > 0); ++comma)
      depth += text[comma] == '[' ? 1 : text[comma] == ']' ? -1 : 0;
    const std::string_view item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      throw_error<InvalidArgument>("{}: '{}' must be key=value, such as feature=128,quantile=0.65.", origin,
                                   item);
    }
    const std::string_view key = item.substr(0, equals);
    assign_setting_text(GroupSettings::schema(), &settings, key, item.substr(equals + 1),
                        fmt::format("{} {}", origin, key));
  }
  return settings;
}

const Schema& GroupSettings::schema() {
  using S = GroupSettings;
  static const Schema schema =
      SchemaBuilder<S>(
          "groups",
          "Groups of documents, A, B and up to four more, whose exposure is measured and may be "
          "kept in balance (docs/FAIRNESS.md); off without a feature or a file.")
          .field("feature", &S::feature,
                 "the feature that decides a document's group by its raw value, counted from 1; 0 for none",
                 {0})
          .field("threshold", &S::threshold,
                 "the value that separates the groups A and B, or an increasing list of the values that "
                 "separate more groups; `auto` computes it from `quantile`")
          .field("quantile", &S::quantile,
                 "the share of the training part's values that are at most the threshold, or an increasing "
                 "list of shares; `auto` leaves the choice to `threshold`",
                 {0.0, 1.0})
          .field(
              "file", &S::file,
              "a CSV file `qid,doc,group` instead of a feature: `doc` counts the documents of a query from "
              "0, `group` is a letter from A on")
          .field("beta", &S::beta,
                 "the fair ratio of A's exposure to B's; for more groups, a list of the ratios of A to B, "
                 "A to C and so on, from which the ratios of the other pairs follow; `auto`: the ratios of "
                 "the groups' mean grades in the training part",
                 above(0.0, 1e6))
          .symbol("β")
          .field("epsilon", &S::epsilon, "the unfairness of two groups that is still fair", {0.0})
          .unit("P(1)")
          .symbol("ε")
          .field("exposure", &S::exposure,
                 "a shown document's exposure: its rank's probability of examination (`position`), or 1 if "
                 "the simulated user examined it (`examined`)")
          .field("examination", &S::examination,
                 "probability that each rank is examined, from the first rank on; if empty, the simulated "
                 "user's probabilities",
                 {0.0, 1.0})
          .build();
  return schema;
}

}  // namespace olrank
