#include "report/study_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/markup.h"

namespace olrank {
namespace {

struct Column {
  const char* slug;
  const char* title;
  int digits;
  bool tested;
};

constexpr Column kColumns[] = {{"offline-ndcg", "offline NDCG − full", 4, true},
                               {"online-cndcg", "online discounted NDCG − full", 1, true},
                               {"certain-share", "certain share − full", 3, false},
                               {"false-certain", "false certainty − full", 4, true}};

class StudyTable {
 public:
  StudyTable(const Study& study, const StudyUser& user) : study_(study), user_(user) {}

  std::string write() {
    std::vector<std::string> titles = {"structure", "size", "offline NDCG"};
    for (const Column& column : kColumns) {
      if (has(column)) titles.emplace_back(column.title);
    }
    if (has_widths()) titles.emplace_back("width / exact");
    if (has_decisions()) titles.emplace_back("decisions differ");
    titles.insert(titles.end(), {"ms per round", "time / full", "posterior MB", "posterior / full"});
    HtmlTable table(fmt::format("Paired differences from full, {} user", user_.user), titles);
    for (const StudyRow& row : user_.rows)
      table.row(structure_name(study_.plan, study_.plan.cells[row.cell]), cells(row));
    return table.html();
  }

 private:
  bool has(const Column& column) const {
    for (const StudyRow& row : user_.rows) {
      const StudyValue* value = study_.value(row, column.slug);
      if (value != nullptr && value->minus_exact) return true;
    }
    return false;
  }

  std::vector<std::string> cells(const StudyRow& row) const {
    std::vector<std::string> cells = {escape_html(size_name(study_.plan, study_.plan.cells[row.cell])),
                                      fixed_number(study_.value(row, "offline-ndcg")->estimate.mean, 4)};
    for (const Column& column : kColumns) {
      if (has(column)) cells.push_back(difference(study_.value(row, column.slug), column));
    }
    if (has_widths()) cells.push_back(width_ratios(row));
    if (has_decisions()) cells.push_back(plain(study_.value(row, "decisions-differ"), 1.0, 4));
    cells.push_back(plain(study_.value(row, "milliseconds"), 1.0, 2));
    cells.push_back(ratio(std::exp(row.log_time.mean)));
    cells.push_back(plain(study_.value(row, "posterior-bytes"), 1e-6, 2));
    cells.push_back(memory(row));
    return cells;
  }

  static std::string difference(const StudyValue* value, const Column& column) {
    if (value == nullptr || !value->minus_exact) return "–";
    const MeanInterval& estimate = value->minus_exact->test.difference;
    return estimate_html(estimate, column.digits, true) +
           fmt::format("<span class=\"near\">{}</span>", column.tested && is_significant(value) ? "*" : "");
  }

  const StudyCell& cell_of(const StudyRow& row) const { return study_.plan.cells[row.cell]; }

  bool has_widths() const {
    return std::any_of(user_.rows.begin(), user_.rows.end(),
                       [&](const StudyRow& row) { return final_widths(row, cell_of(row)) != nullptr; });
  }

  bool has_decisions() const {
    return std::any_of(user_.rows.begin(), user_.rows.end(), [&](const StudyRow& row) {
      return std::isfinite(study_.value(row, "decisions-differ")->estimate.mean);
    });
  }

  /// The median, and the 10th and 90th percentiles.
  std::string width_ratios(const StudyRow& row) const {
    const StudyWidths* widths = final_widths(row, cell_of(row));
    if (widths == nullptr) return "–";
    return fmt::format("{} <span class=\"half\">{}–{}</span>", fixed_number(widths->median, 2),
                       fixed_number(widths->low, 2), fixed_number(widths->high, 2));
  }

  static std::string plain(const StudyValue* value, double unit, int digits) {
    const bool known = value != nullptr && std::isfinite(value->estimate.mean);
    return known ? fixed_number(unit * value->estimate.mean, digits) : "–";
  }

  static std::string ratio(double value) {
    return std::isfinite(value) ? fmt::format("{:.2g}", value) : "–";
  }

  std::string memory(const StudyRow& row) const {
    const StudyCell* exact = study_.plan.exact_of(study_.plan.cells[row.cell]);
    for (const StudyRow& other : user_.rows) {
      if (&study_.plan.cells[other.cell] != exact || &other == &row) continue;
      return ratio(study_.value(row, "posterior-bytes")->estimate.mean /
                   study_.value(other, "posterior-bytes")->estimate.mean);
    }
    return "–";
  }

  const Study& study_;
  const StudyUser& user_;
};

std::string interval_note(const StudyUser& user) {
  std::size_t trials = 0;
  bool over_folds = false;
  for (const StudyRow& row : user.rows) {
    for (const StudyValue& value : row.values) {
      if (!value.minus_exact) continue;
      trials = std::max(trials, value.minus_exact->test.difference.values);
      over_folds = value.minus_exact->test.difference.over_folds;
    }
  }
  if (trials < 2) return "A single seed gives no intervals and no tests.";
  return fmt::format(
      "Each row is a structure minus full of the same size, paired by fold and seed. ± is half the width "
      "of the 95 % t interval of the mean over {} {}; * differs from 0 at 5 % after Holm's correction over "
      "the column. Certain share and times are not tested. Width / exact is the median over shown pairs at "
      "the last evaluation, with the 10th and 90th percentiles. Time leaves out evaluation and the "
      "comparison of widths.",
      trials, over_folds ? "trials" : "seeds of one fold");
}

}  // namespace

void add_study(Page& page, const Study& study, const std::string& label) {
  page.section("Comparison of covariances", "in " + label);
  if (study.users.empty()) page.add("<p>No trial has finished yet.</p>\n");
  for (const StudyUser& user : study.users) {
    const StudyFindings findings = study_findings(study, user);
    page.add(fmt::format("<h3>{} user</h3>\n<p><strong>{}</strong></p>\n", escape_html(user.user),
                         escape_html(findings.headline)));
    page.list(findings.sentences);
    page.add(StudyTable(study, user).write());
    page.note(interval_note(user));
  }
  page.add(
      "<p class=\"note\">study.csv and study.json hold every measure of every structure, compared with "
      "full.</p>");
  page.end_section();
}

}  // namespace olrank
