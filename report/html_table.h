#pragma once

#include <string>
#include <string_view>
#include <vector>

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

/// A list with an item of plain text per sentence; empty without sentences.
std::string html_list(const std::vector<std::string>& sentences);

}  // namespace olrank
