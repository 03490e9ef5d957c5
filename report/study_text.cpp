#include "report/study_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/text/columns.h"
#include "core/text/text_table.h"
#include "report/number_text.h"
#include "report/study_findings.h"

namespace olrank {
namespace {

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

/// The table's lines, and below them what they leave out.
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
    const StudyCell& cell = study.plan.cells[row.cell];
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
    table.add({study.plan.cells[row.cell].ranker, fmt::format("{}", row.parameters),
               mean_text(study.value(row, "milliseconds"), 3),
               known ? fmt::format("{:.2f}", bytes->estimate.mean / 1e6) : "–",
               mean_text(study.value(row, "decisions-differ"), 4), widths.empty() ? "–" : widths});
  }
  return fitted_text(table, columns);
}

}  // namespace

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
    const StudyFindings findings = study_findings(study, user);
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
