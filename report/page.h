#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/statistics/t_tests.h"
#include "report/plot.h"

namespace olrank {

/// An HTML table in a region that scrolls sideways where it is too wide; the first column stays in view.
class HtmlTable {
 public:
  /// `label` names the region to screen readers. Titles are plain text.
  HtmlTable(std::string_view label, const std::vector<std::string>& titles);

  /// The row's header is plain text, its cells are HTML. A header that is not the whole name has that as
  /// its title.
  void row(std::string_view header, const std::vector<std::string>& cells, std::string_view whole = {});

  std::string html() const;

 private:
  std::string html_;
};

/// "0.4914 ± 0.0081", the interval in a quieter colour; without it if there is none.
std::string estimate_html(const MeanInterval& estimate, int digits, bool with_sign = false);

struct PageHead {
  std::string program;  // the command that writes the page
  std::string title;
  std::vector<std::string> paragraphs;  // HTML
  std::string hint = {};                // what a pointer on the title shows
};

/// One self-contained HTML page, made from top to bottom: no network; light and dark mode; readable in
/// print and on a phone. Arguments are plain text unless they say that they are HTML.
class Page {
 public:
  explicit Page(const PageHead& head);

  void add(std::string_view html) { html_ += html; }
  /// Begins a section. `beside` stands in a quieter colour beside the title and shows `hint` to a pointer.
  void section(std::string_view title, std::string_view beside = {}, std::string_view hint = {});
  void end_section() { add("</section>\n"); }
  /// Begins a part that is folded away under its summary.
  void fold(std::string_view summary);
  void end_fold() { add("</details>\n"); }
  void note(std::string_view text);
  /// An item per sentence; nothing without sentences.
  void list(const std::vector<std::string>& sentences);
  /// Lines as they are.
  void preformatted(std::string_view lines);
  /// Figures in a frame of this class.
  void figures(const std::vector<ReportFigure>& figures, std::string_view frame = "figures");

  std::string finish();

 private:
  std::string html_;
  int figures_ = 0;
};

}  // namespace olrank
