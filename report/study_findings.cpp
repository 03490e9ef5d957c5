#include "report/study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/statistics/t_tests.h"
#include "core/text/message_text.h"
#include "core/text/text_table.h"
#include "report/markup.h"
#include "report/plot.h"

namespace olrank {
namespace {

/// A larger study's seeds, which findings compare with those at hand.
constexpr std::size_t kManySeeds = 20;

std::string signed_number(double value, int digits) {
  return (value > 0.0 ? "+" : "") + fixed_number(value, digits);
}

class StudyWriter {
 public:
  StudyWriter(const Study& study, const StudyUser& user)
      : study_(study), user_(user), ndcg_(fmt::format("NDCG@{}", study.cutoff)) {}

  Findings write() const {
    Findings findings;
    findings.headline = headline();
    for (const std::string& name : structure_names(study_.plan)) {
      const std::string sentence = structure_sentence(name);
      if (!sentence.empty()) findings.sentences.push_back(sentence);
    }
    const std::string power = what_would_tell();
    if (!power.empty()) findings.sentences.push_back(power);
    return findings;
  }

 private:
  std::vector<const StudyRow*> rows_of(const std::string& name) const {
    std::vector<const StudyRow*> rows;
    for (const StudyRow& row : user_.rows) {
      if (structure_name(study_.plan, study_.cell_of(row)) == name) rows.push_back(&row);
    }
    return rows;
  }

  std::string headline() const {
    bool compared = false;
    bool tested = false;
    for (const StudyRow& row : user_.rows) {
      const StudyValue* value = study_.value(row, "offline-ndcg");
      compared = compared || value->minus_exact;
      tested = tested || (value->minus_exact && std::isfinite(value->minus_exact->test.t_p));
    }
    if (!compared) return fmt::format("No structure shares finished trials with {} yet.", kExactStructure);
    if (!tested) return "One seed cannot tell structures apart.";
    std::vector<std::string> sentences;
    for (const bool better : {true, false}) {
      const std::vector<std::string> offline = differing("offline-ndcg", better);
      const std::vector<std::string> online = differing("online-cndcg", better);
      if (offline == online) {
        add_verdict(sentences, offline, better, "offline and online " + ndcg_);
      } else {
        add_verdict(sentences, offline, better, "offline " + ndcg_);
        add_verdict(sentences, online, better, "online discounted " + ndcg_);
      }
    }
    if (!sentences.empty()) return fmt::format("{}", fmt::join(sentences, " "));
    return fmt::format("No structure differs significantly from {} in offline or online {}.",
                       kExactStructure, ndcg_);
  }

  /// The structures that are significantly better, or worse, with their sizes unless it is all: "none (m =
  /// 16)".
  std::vector<std::string> differing(const std::string& slug, bool better) const {
    std::vector<std::string> found;
    for (const std::string& name : structure_names(study_.plan)) {
      const std::vector<const StudyRow*> rows = rows_of(name);
      std::vector<std::string> sizes;
      for (const StudyRow* row : rows) {
        const StudyValue* value = study_.value(*row, slug);
        if (is_significant(value) && (value->minus_exact->test.difference.mean > 0.0) == better)
          sizes.push_back(size_name(study_.plan, study_.cell_of(*row)));
      }
      if (sizes.empty()) continue;
      found.push_back(sizes.size() == rows.size() ? name : fmt::format("{} ({})", name, joined(sizes)));
    }
    return found;
  }

  void add_verdict(std::vector<std::string>& sentences, const std::vector<std::string>& found, bool better,
                   const std::string& measure) const {
    if (found.empty()) return;
    std::vector<std::string> others = structure_names(study_.plan);
    std::erase(others, std::string(kExactStructure));
    const char* word = better ? "better" : "worse";
    sentences.push_back(found == others && others.size() > 1
                            ? fmt::format("Every other structure is significantly {} than {} in {}.", word,
                                          kExactStructure, measure)
                            : fmt::format("Significantly {} than {} in {}: {}.", word, kExactStructure,
                                          measure, joined(found)));
  }

  std::string structure_sentence(const std::string& name) const {
    const std::vector<const StudyRow*> rows = rows_of(name);
    std::vector<std::string> parts;
    std::size_t significant = 0;
    std::size_t compared = 0;
    for (const StudyRow* row : rows) {
      const StudyValue* value = study_.value(*row, "offline-ndcg");
      compared += value->minus_exact ? 1 : 0;
      significant += is_significant(value) ? 1 : 0;
    }
    if (compared == 0) return "";
    const std::string sizes = compared > 1 ? fmt::format(" over {}", counted(compared, "size")) : "";
    std::string quality = difference(rows, "offline-ndcg", 4);
    if (significant == 0) {
      quality += compared > 1 ? ", never significant" : ", not significant";
    } else if (significant < compared) {
      quality += fmt::format(", significant at {}", significant);
    }
    parts.push_back(fmt::format("offline {} {}", ndcg_, quality));
    parts.push_back("online discounted " + difference(rows, "online-cndcg", 1));
    if (const std::string share = difference(rows, "certain-share", 3); !share.empty())
      parts.push_back("certain share " + share);
    for (const std::string& part : {faithfulness(rows), times(rows)}) {
      if (!part.empty()) parts.push_back(part);
    }
    return fmt::format("{} − {}{}: {}.", name, kExactStructure, sizes, fmt::join(parts, "; "));
  }

  /// "−0.0021 ± 0.0017", or "−0.0030 to +0.0010" over several sizes.
  std::string difference(const std::vector<const StudyRow*>& rows, const std::string& slug,
                         int digits) const {
    ValueRange span;
    const StudyValue* only = nullptr;
    int found = 0;
    for (const StudyRow* row : rows) {
      const StudyValue* value = study_.value(*row, slug);
      if (value == nullptr || !value->minus_exact) continue;
      span.take(value->minus_exact->test.difference.mean);
      found += std::isfinite(value->minus_exact->test.difference.mean) ? 1 : 0;
      only = value;
    }
    if (found == 0) return "";
    if (found == 1) return estimate_text(only->minus_exact->test.difference, digits, true);
    const std::string low = signed_number(span.low, digits);
    const std::string high = signed_number(span.high, digits);
    return low == high ? low : low + " to " + high;
  }

  /// "widths 1.02 to 1.21 times the exact ones", from the lowest 10th percentile to the highest 90th.
  std::string faithfulness(const std::vector<const StudyRow*>& rows) const {
    ValueRange span;
    for (const StudyRow* row : rows) {
      const StudyWidths* widths = final_widths(*row, study_.cell_of(*row));
      if (widths == nullptr) continue;
      span.take(widths->low);
      span.take(widths->high);
    }
    if (span.empty()) return "";
    return fmt::format("widths {} to {} times the exact ones", fixed_number(span.low, 2),
                       fixed_number(span.high, 2));
  }

  std::string times(const std::vector<const StudyRow*>& rows) const {
    ValueRange span;
    for (const StudyRow* row : rows) span.take(std::exp(row->log_time.mean));
    if (span.empty()) return "";
    const std::string low = fmt::format("{:.2g}", span.low);
    const std::string high = fmt::format("{:.2g}", span.high);
    if (low == "1" && high == "1") return "a round takes as long";
    return fmt::format("a round takes {} times as long", low == high ? low : low + " to " + high);
  }

  /// The size of differences that these seeds find, and that more would.
  std::string what_would_tell() const {
    double squares = 0.0;
    std::size_t comparisons = 0;
    const MeanInterval* any = nullptr;
    for (const StudyRow& row : user_.rows) {
      const StudyValue* value = study_.value(row, "offline-ndcg");
      if (!value->minus_exact || !value->minus_exact->tested()) continue;
      squares += std::pow(value->minus_exact->deviation(), 2.0);
      ++comparisons;
      any = &value->minus_exact->test.difference;
    }
    if (comparisons == 0 || squares == 0.0 || any->over_folds) return "";
    const auto count = static_cast<double>(comparisons);
    const double deviation = std::sqrt(squares / count);
    const double level = kSignificance / count;
    const std::string now = fixed_number(detectable_difference(any->units, deviation, level), 4);
    if (any->units >= kManySeeds)
      return fmt::format("{} find differences of {} in offline {}.", counted(any->units, "seed"), now,
                         ndcg_);
    return fmt::format("{} show differences of {} and more in offline {}; {} would show {}.",
                       counted(any->units, "seed"), now, ndcg_, kManySeeds,
                       fixed_number(detectable_difference(kManySeeds, deviation, level), 4));
  }

  const Study& study_;
  const StudyUser& user_;
  std::string ndcg_;
};

std::string mean_text(const StudyValue* value, int digits) {
  if (value == nullptr || !std::isfinite(value->estimate.mean)) return "–";
  return fmt::format("{:.{}f}", value->estimate.mean, digits);
}

/// "−0.0021 ± 0.0017", with a star if significant after Holm's correction.
std::string difference_text(const StudyValue* value, int digits) {
  if (value == nullptr || !value->minus_exact) return "–";
  return plain_estimate(value->minus_exact->test.difference, digits) +
         (value->minus_exact->significant() ? "*" : "");
}

std::string scope_text(const Study& study, const StudyUser& user) {
  std::size_t trials = 0;
  bool over_folds = false;
  for (const StudyRow& row : user.rows) {
    trials = std::max(trials, row.values.front().estimate.values);
    over_folds = over_folds || row.values.front().estimate.over_folds;
  }
  if (trials < 2) return "no intervals, because there is only one seed";
  return over_folds
             ? fmt::format("95 % t intervals over {} trials", trials)
             : fmt::format("95 % t intervals over {} seeds of fold {}, which hold for this fold only",
                           trials, study.run.folds.front());
}

std::string fitted_text(const TextTable& table, std::int64_t columns) {
  const TextTable::Fitted fitted = table.fitted(columns);
  return fitted.text + hidden_columns_text(fitted.hidden, columns);
}

std::string quality_table(const Study& study, const StudyUser& user, std::int64_t columns) {
  const std::string ndcg = fmt::format("ndcg@{}", study.cutoff);
  TextTable table({{.header = "ranker", .is_name = true},
                   {.header = "α", .dropped = 2},
                   {.header = "offline " + ndcg, .dropped = 6},
                   {.header = "offline − full"},
                   {.header = "online c" + ndcg, .dropped = 5},
                   {.header = "online − full"},
                   {.header = "regret − full", .dropped = 1},
                   {.header = "certain"},
                   {.header = "false", .dropped = 4},
                   {.header = "false − full", .dropped = 3}});
  for (const StudyRow& row : user.rows) {
    const StudyCell& cell = study.cell_of(row);
    const auto value = [&](const char* slug) { return study.value(row, slug); };
    table.add({cell.ranker, cell.alpha ? fmt::format("{:.4g}", *cell.alpha) : "–",
               mean_text(value("offline-ndcg"), 4), difference_text(value("offline-ndcg"), 4),
               mean_text(value("online-cndcg"), 1), difference_text(value("online-cndcg"), 1),
               difference_text(value("regret"), 0), mean_text(value("certain-share"), 3),
               mean_text(value("false-certain"), 4), difference_text(value("false-certain"), 4)});
  }
  return fitted_text(table, columns);
}

/// The evaluated rounds among 10, 100, 1,000, …, and the last one.
std::vector<StudyWidths> printed_widths(const std::vector<StudyWidths>& widths) {
  std::vector<StudyWidths> printed;
  std::int64_t power = 10;
  for (const StudyWidths& at : widths) {
    while (power < at.round) power *= 10;
    if (at.round == power || &at == &widths.back()) printed.push_back(at);
  }
  return printed;
}

std::string cost_table(const Study& study, const StudyUser& user, std::int64_t columns) {
  TextTable table({{.header = "ranker", .is_name = true},
                   {.header = "parameters", .dropped = 3},
                   {.header = "ms per round"},
                   {.header = "posterior MB"},
                   {.header = "decisions differ", .dropped = 2},
                   {.header = "width / exact width: p10, median, p90", .dropped = 1}});
  for (const StudyRow& row : user.rows) {
    std::string widths;
    for (const StudyWidths& at : printed_widths(row.widths)) {
      widths += fmt::format("{}t={}: {:.2f} {:.2f} {:.2f}", widths.empty() ? "" : "; ", at.round, at.low,
                            at.median, at.high);
    }
    const StudyValue* bytes = study.value(row, "posterior-bytes");
    const bool known = bytes != nullptr && std::isfinite(bytes->estimate.mean);
    table.add({study.cell_of(row).ranker, fmt::format("{}", row.parameters),
               mean_text(study.value(row, "milliseconds"), 3),
               known ? fmt::format("{:.2f}", bytes->estimate.mean / 1e6) : "–",
               mean_text(study.value(row, "decisions-differ"), 4), widths.empty() ? "–" : widths});
  }
  return fitted_text(table, columns);
}

}  // namespace

std::string structure_name(const StudyPlan& plan, const StudyCell& cell) {
  const bool noises = std::any_of(plan.cells.begin(), plan.cells.end(), [&](const StudyCell& other) {
    return other.noise_variance && other.noise_variance != cell.noise_variance;
  });
  return cell.noise_variance && noises ? fmt::format("{}, ν² {:g}", cell.structure, *cell.noise_variance)
                                       : cell.structure;
}

std::vector<std::string> structure_names(const StudyPlan& plan) {
  std::vector<std::string> names;
  for (const StudyCell& cell : plan.cells) {
    const std::string name = structure_name(plan, cell);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string size_name(const StudyPlan& plan, const StudyCell& cell) {
  const bool deep = std::any_of(plan.cells.begin(), plan.cells.end(),
                                [&](const StudyCell& other) { return other.depth != cell.depth; });
  return deep ? fmt::format("m = {}, {} layers", cell.width, cell.depth)
              : fmt::format("m = {}", cell.width);
}

bool is_significant(const StudyValue* value) {
  return value != nullptr && value->minus_exact && value->minus_exact->significant();
}

const StudyWidths* final_widths(const StudyRow& row, const StudyCell& cell) {
  return cell.alpha && !row.widths.empty() ? &row.widths.back() : nullptr;
}

Findings study_findings(const Study& study, const StudyUser& user) {
  return StudyWriter(study, user).write();
}

std::string study_text(const Study& study, std::int64_t columns) {
  std::string text;
  const auto add = [&](const std::string& line, std::int64_t indent) {
    text += wrapped(std::string(indent, ' ') + line, columns, indent) + "\n";
  };
  for (const StudyUser& user : study.users) {
    if (!text.empty()) text += "\n";
    add(fmt::format("{} user, {} rounds on {}; {}", user.user, study.run.rounds, study.run.data,
                    scope_text(study, user)),
        0);
    const Findings findings = study_findings(study, user);
    add(findings.headline, 0);
    for (const std::string& sentence : findings.sentences) add(sentence, 2);
    text += "\n" + quality_table(study, user, columns) + "\n" + cost_table(study, user, columns);
  }
  if (text.empty()) return "No trial has finished yet.\n";
  text += "\n";
  add("Differences are paired by fold and seed: this ranker minus full of the same width and depth.", 0);
  add("± is half the width of the 95 % t interval of the mean.", 0);
  add("* significant at the 5 % level after Holm's correction over the column.", 0);
  return text;
}

}  // namespace olrank
