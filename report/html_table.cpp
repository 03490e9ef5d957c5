#include "report/html_table.h"

#include <fmt/format.h>

#include "report/markup.h"

namespace olrank {

HtmlTable::HtmlTable(std::string_view label, const std::vector<std::string>& titles) {
  html_ = fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table><thead><tr>",
      escape_html(label));
  for (const std::string& title : titles)
    html_ += fmt::format("<th scope=\"col\">{}</th>", escape_html(title));
  html_ += "</tr></thead><tbody>\n";
}

void HtmlTable::row(std::string_view header, const std::vector<std::string>& cells,
                    std::string_view whole) {
  const bool short_form = !whole.empty() && whole != header;
  html_ +=
      fmt::format("<tr><th scope=\"row\"{}>{}</th>",
                  short_form ? fmt::format(" title=\"{}\"", escape_html(whole)) : "", escape_html(header));
  for (const std::string& cell : cells) html_ += fmt::format("<td>{}</td>", cell);
  html_ += "</tr>\n";
}

std::string HtmlTable::html() const {
  return html_ + "</tbody></table></div>\n";
}

std::string html_list(const std::vector<std::string>& sentences) {
  if (sentences.empty()) return "";
  std::string html = "<ul class=\"notes\">";
  for (const std::string& sentence : sentences) html += "<li>" + escape_html(sentence) + "</li>";
  return html + "</ul>\n";
}

}  // namespace olrank
