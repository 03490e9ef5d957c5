#include "report/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/text/message_text.h"
#include "report/final_tables.h"
#include "report/markup.h"

namespace olrank {
namespace {

/// A ranker's name of more characters breaks into lines, so that one user's table fits a column.
constexpr std::size_t kLongestName = 22;
constexpr const char* kNameColumn = "p{0.34\\columnwidth}";
constexpr const char* kPlusMinus = " \\pm ";
/// A data set's name of more is shortened in the heading of its rows.
constexpr double kDataWidth = 22.0;

std::vector<std::string> users_of(const Report& report) {
  std::vector<std::string> users;
  for (const DataResults& data : report.data) {
    for (const UserResults& user : data.users) {
      if (std::find(users.begin(), users.end(), user.user) == users.end()) users.push_back(user.user);
    }
  }
  return users;
}

/// The name with places where a line may end, which paths and lists of settings lack.
std::string breakable(std::string_view name) {
  std::string text;
  while (!name.empty()) {
    const std::size_t length = std::min(name.find_first_of("/+=_.,:?&") + 1, name.size());
    text += escape_latex(name.substr(0, length == 0 ? name.size() : length));
    name.remove_prefix(length == 0 ? name.size() : length);
    if (!name.empty()) text += "\\allowbreak{}";
  }
  return text;
}

std::string label_of(const std::vector<std::string>& users) {
  std::string label = "tab:olrank";
  for (const std::string& user : users) label += "-" + name_slug(user);
  return label;
}

/// Writes comments: they are too long for a caption.
std::string deviations(const Report& report) {
  std::string text;
  for (std::size_t i = 0; i < report.experiments.size(); ++i) {
    for (const std::string& deviation : conventions_of(report.experiments[i].run).deviations)
      text += fmt::format("% {}, deviation from the protocol: {}\n", clean_utf8(report.labels[i]),
                          clean_utf8(deviation));
  }
  return text;
}

class LatexTable {
 public:
  LatexTable(const Report& report, std::vector<std::string> users)
      : report_(report), users_(std::move(users)) {
    for (const DataResults& data : report.data) {
      blocks_.push_back({&data, {}, {}});
      for (const std::string& name : users_) add_user(blocks_.back(), name);
    }
    columns_ = measures_.size() * users_.size();
    if (columns_ == 2) separators_ = "\\setlength{\\tabcolsep}{4pt}\n";
  }

  std::string write(const std::string& label) {
    const char* environment = users_.size() > 1 ? "table*" : "table";
    text_ = fmt::format("\\begin{{{}}}\n\\centering\n\\footnotesize\n{}", environment, separators_);
    text_ += fmt::format("\\begin{{tabular}}{{@{{}}{}{}@{{}}}}\n\\toprule\n", name_column(),
                         std::string(columns_, 'r'));
    heading();
    for (const Block& block : blocks_) rows(block);
    text_ += "\\bottomrule\n\\end{tabular}\n";
    text_ += fmt::format("\\caption{{{}}}\n\\label{{{}}}\n\\end{{{}}}\n", caption(), label, environment);
    return std::move(text_);
  }

 private:
  struct Block {
    const DataResults* data;
    std::vector<FinalTable> tables;  // by user
    std::set<std::size_t> rankers;
  };

  void add_user(Block& block, const std::string& name) {
    const auto& users = block.data->users;
    const auto user =
        std::find_if(users.begin(), users.end(), [&](const UserResults& one) { return one.user == name; });
    block.tables.push_back(user == users.end() ? FinalTable{} : final_table(*user, block.data->cutoff));
    block.rankers.insert(block.tables.back().rows.begin(), block.tables.back().rows.end());
    if (user == users.end()) return;
    for (const NamedMetric& metric : user->metrics(block.data->cutoff)) {
      const bool known =
          std::find(measures_.begin(), measures_.end(), measure_of(metric)) != measures_.end();
      if (metric.kind == MetricKind::kOwn && !known) measures_.push_back(measure_of(metric));
    }
  }

  std::string name_column() const {
    for (const Block& block : blocks_) {
      for (const std::size_t ranker : block.rankers) {
        if (clean_utf8(report_.rankers[ranker].name).size() > kLongestName) return kNameColumn;
      }
    }
    return "l";
  }

  std::string ranker_name(std::size_t ranker) const {
    const std::string& name = report_.rankers[ranker].name;
    return name_column() == "l" ? escape_latex(name) : "\\raggedright " + breakable(name);
  }

  void heading() {
    if (users_.size() > 1) {
      std::string rules;
      for (std::size_t i = 0; i < users_.size(); ++i) {
        const std::size_t measures = measures_.size();
        text_ += fmt::format(" & \\multicolumn{{{}}}{{c}}{{{}}}", measures, escape_latex(users_[i]));
        rules += fmt::format("\\cmidrule(lr){{{}-{}}}", 2 + measures * i, 1 + measures * (i + 1));
      }
      text_ += " \\\\\n" + rules + "\n";
    }
    text_ += "ranker";
    for (std::size_t i = 0; i < users_.size(); ++i) {
      text_ += " & offline & online";
      for (std::size_t own = 2; own < measures_.size(); ++own)
        text_ += " & " + escape_latex(metric_of(measures_[own])->title());
    }
    text_ += " \\\\\n";
  }

  void rows(const Block& block) {
    text_ += "\\midrule\n";
    if (blocks_.size() > 1) {
      text_ += fmt::format("\\multicolumn{{{}}}{{@{{}}l}}{{\\emph{{{}}}, NDCG@{}}} \\\\\n", 1 + columns_,
                           escape_latex(shortened(block.data->data, 1.0, kDataWidth)), block.data->cutoff);
    }
    for (const std::size_t ranker : block.rankers) {
      text_ += ranker_name(ranker);
      std::string differences;
      for (const FinalTable& table : block.tables) {
        for (const Measure measure : measures_) cell(table, ranker, measure, differences);
      }
      text_ += " \\\\\n";
      if (differences.find('$') != std::string::npos) text_ += differences + " \\\\[2pt]\n";
    }
  }

  /// Appends the value to the row, and its difference from the baseline to the row below.
  void cell(const FinalTable& table, std::size_t ranker, Measure measure, std::string& differences) {
    differences += " & ";
    const auto row = static_cast<std::size_t>(std::find(table.rows.begin(), table.rows.end(), ranker) -
                                              table.rows.begin());
    const FinalColumn* column = table.column(measure);
    if (column == nullptr || row == table.rows.size() || std::isnan(column->cells[row].estimate.mean)) {
      text_ += " & --";
      return;
    }
    const FinalCell& value = column->cells[row];
    const int digits = column->measure.digits;
    std::string text = plain_estimate(value.estimate, digits, false, kPlusMinus);
    const std::string mean = text.substr(0, text.find(' '));
    if (value.best) text.replace(0, mean.size(), "\\mathbf{" + mean + "}");
    if (value.not_worse) text.replace(0, mean.size(), "\\underline{" + mean + "}");
    const std::optional<std::size_t> baseline = baseline_row(report_, table);
    if (baseline == row) text += "^{\\dagger}";
    text_ += " & $" + text + "$";
    if (!baseline || baseline == row) return;
    const PairedComparison* pair = comparison_of(column->pairs, row, *baseline);
    if (pair == nullptr) return;
    differences += fmt::format("{{\\scriptsize ${}{}$}}",
                               plain_estimate(pair->difference_of(row), digits, true, kPlusMinus),
                               pair->significant() ? "^{*}" : "");
  }

  std::string caption() const {
    std::string text = "Offline NDCG and discounted online NDCG";
    if (blocks_.size() == 1) {
      text = fmt::format("Offline NDCG@{0} and discounted online NDCG@{0} on {1}",
                         blocks_.front().data->cutoff, breakable(blocks_.front().data->data));
    }
    if (users_.size() == 1) text += fmt::format(", {} user", escape_latex(users_.front()));
    text += ". " + interval_text();
    if (is_tested()) {
      text +=
          " Small: the paired difference from the ranker marked $\\dagger$; $*$: significant. The best "
          "value is bold; values not significantly worse are underlined (paired $t$ test, Holm's "
          "correction over all pairs of rankers, level 5\\,\\%).";
    }
    for (std::size_t i = 0; i < report_.experiments.size(); ++i) {
      ResultConventions about = conventions_of(report_.experiments[i].run);
      about.deviations.clear();  // in comments
      const std::string name = report_.experiments.size() > 1 ? report_.labels[i] : "Conventions";
      text += fmt::format(" {}: {}.", escape_latex(name), escape_latex(conventions_text(about)));
    }
    return text;
  }

  std::string interval_text() const {
    for (const Block& block : blocks_) {
      for (const FinalTable& table : block.tables) {
        if (table.most_trials > 1)
          return fmt::format(
              "$\\pm$ is half the width of the 95\\,\\% $t$ interval of the mean over {} {}.",
              table.most_trials, table.over_folds ? "trials" : "seeds of one fold");
      }
    }
    return "A single seed gives no intervals.";
  }

  bool is_tested() const {
    return std::any_of(blocks_.begin(), blocks_.end(), [](const Block& block) {
      return std::any_of(block.tables.begin(), block.tables.end(),
                         [](const FinalTable& table) { return table.tested; });
    });
  }

  const Report& report_;
  std::vector<std::string> users_;
  std::vector<Measure> measures_ = {Measure::kOfflineNdcg,
                                    Measure::kDiscountedNdcg};  // and a program's own
  std::size_t columns_ = 0;
  std::vector<Block> blocks_;
  std::string separators_;
  std::string text_;
};

}  // namespace

std::string report_latex(const Report& report, const std::vector<std::vector<std::string>>& users) {
  const std::vector<std::string> known = users_of(report);
  std::vector<std::vector<std::string>> tables = users;
  if (tables.empty()) {
    for (const std::string& user : known) tables.push_back({user});
  }
  std::string text = "% Needs \\usepackage{booktabs}.\n" + deviations(report);
  std::set<std::string> taken;
  for (const std::vector<std::string>& group : tables) {
    for (const std::string& user : group) {
      if (std::find(known.begin(), known.end(), user) == known.end())
        throw InvalidArgument("A user of --latex-users " + must_be_one_of(user, known));
    }
    std::string label = label_of(group);
    for (std::size_t number = 2; !taken.insert(label).second; ++number)
      label = fmt::format("{}-{}", label_of(group), number);
    text += LatexTable(report, group).write(label);
  }
  return text;
}

}  // namespace olrank
