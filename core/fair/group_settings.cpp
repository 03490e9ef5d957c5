#include "core/fair/group_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/fair/doc_group.h"

namespace olrank {

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
    throw InvalidArgument(fmt::format(
        "[groups] has both feature = {} and file = \"{}\": remove one of them.", feature, file));
  }
  if (feature > 0 && threshold.has_value() == quantile.has_value()) {
    throw InvalidArgument(
        fmt::format("[groups] has feature = {} and {}: give either a threshold or a quantile.", feature,
                    threshold ? "both a threshold and a quantile" : "neither threshold nor quantile"));
  }
  if (!file.empty() && (threshold || quantile)) {
    throw InvalidArgument(
        fmt::format("[groups] has file = \"{}\", which names each document's group: remove the {}.", file,
                    threshold ? "threshold" : "quantile"));
  }
  if (!examination.empty() && std::ssize(examination) < cutoff) {
    throw InvalidArgument(fmt::format(
        "groups.examination has {} probabilities, but lists show {} ranks: give one for each rank.",
        examination.size(), cutoff));
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
      throw InvalidArgument(
          fmt::format("groups.{} has {} values, which makes {} groups, but there can be at most {}.", key,
                      values->size(), values->size() + 1, kMostGroups));
    }
    if (values->size() + 1 != *count()) {
      throw InvalidArgument(
          fmt::format("groups.{} must have as many values as groups.{}, one less than there are groups, "
                      "but has {}, not {}.",
                      key, threshold ? "threshold" : "quantile", values->size(), *count() - 1));
    }
    if (values != beta && !std::is_sorted(values->begin(), values->end(), std::less_equal<>())) {
      throw InvalidArgument(
          fmt::format("groups.{} must increase from value to value, but is {}.", key, to_toml(*values)));
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
      throw InvalidArgument(
          fmt::format("{}: '{}' must be key=value, such as feature=128,quantile=0.65.", origin, item));
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
                 "the feature that decides a document's group by its raw value, counted from 1; 0 for none")
          .at_least(0)
          .field("threshold", &S::threshold,
                 "the value that separates the groups A and B, or an increasing list of the values that "
                 "separate more groups; `auto` computes it from `quantile`")
          .field("quantile", &S::quantile,
                 "the share of the training part's values that are at most the threshold, or an increasing "
                 "list of shares; `auto` leaves the choice to `threshold`")
          .at_least(0.0)
          .at_most(1.0)
          .field(
              "file", &S::file,
              "a CSV file `qid,doc,group` instead of a feature: `doc` counts the documents of a query from "
              "0, `group` is a letter from A on")
          .field("beta", &S::beta,
                 "the fair ratio of A's exposure to B's; for more groups, a list of the ratios of A to B, "
                 "A to C and so on, from which the ratios of the other pairs follow; `auto`: the ratios of "
                 "the groups' mean grades in the training part")
          .symbol("β")
          .above(0.0)
          .at_most(1e6)
          .field("epsilon", &S::epsilon, "the unfairness of two groups that is still fair")
          .unit("P(1)")
          .symbol("ε")
          .at_least(0.0)
          .field("exposure", &S::exposure,
                 "a shown document's exposure: its rank's probability of examination (`position`), or 1 if "
                 "the simulated user examined it (`examined`)")
          .field("examination", &S::examination,
                 "probability that each rank is examined, from the first rank on; if empty, the simulated "
                 "user's probabilities")
          .at_least(0.0)
          .at_most(1.0)
          .build();
  return schema;
}

}  // namespace olrank
