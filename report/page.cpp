#include "report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/version.h"
#include "report/drawing.h"
#include "report/markup.h"

namespace olrank {
namespace {

/// The style of every page; the styles of drawings come before it.
constexpr const char* kPageStyle = R"css(
:root{color-scheme:light dark;--shade:#f4f5f7;--warn:#fff4dc;--edge:#d3a63a}
@media(prefers-color-scheme:dark){:root{--shade:#1e2229;--warn:#33290f;--edge:#b88f2b}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1280px;padding:20px 16px 48px;background:var(--ground);color:var(--ink);
  font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 4px}
h2{font-size:1.25rem;margin:40px 0 8px;padding-top:12px;border-top:1px solid var(--grid)}
h3{font-size:1.05rem;margin:28px 0 8px}
p{margin:6px 0}
.verdict,.verdicts{font-size:1.15rem;line-height:1.4;font-weight:600;margin:6px 0 8px}
.verdicts{list-style:none;padding:0}
.verdicts li{margin:4px 0}
.verdicts .soft{font-weight:400}
.soft,figcaption,.note{color:var(--soft)}
.note,figcaption{font-size:.84rem}
.warn{background:var(--warn);border-left:4px solid var(--edge);padding:8px 12px;margin:12px 0}
.warn ul,.notes{margin:4px 0;padding-left:20px}
dl{display:grid;grid-template-columns:minmax(80px,max-content) 1fr;gap:2px 16px;margin:8px 0;font-size:.9rem}
dt{color:var(--soft)}
dd{margin:0;min-width:0}
code{font:.88em ui-monospace,monospace}
.legend{display:flex;flex-wrap:wrap;gap:4px 20px;list-style:none;padding:0;margin:8px 0;font-size:.9rem}
.legend li{min-width:0}
.key{vertical-align:-1px;margin-right:6px}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,360px),1fr));gap:24px 28px}
.large{grid-template-columns:repeat(auto-fill,minmax(min(100%,480px),1fr))}
.large .chart{max-width:620px}
figure{margin:0;min-width:0;break-inside:avoid}
.chart{display:block;width:100%;height:auto;max-width:460px}
.scroll{overflow-x:auto;max-width:100%;margin:8px 0}
.scroll:focus-visible{outline:2px solid var(--c0)}
table{border-collapse:separate;border-spacing:0;font-size:.82rem;font-variant-numeric:tabular-nums}
th,td{padding:4px 8px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}
thead th{vertical-align:bottom;white-space:normal;min-width:76px;border-bottom:1px solid var(--soft)}
th:first-child,td:first-child,td.text{text-align:left}
tr>*{background:var(--ground)}
tbody tr:nth-child(even)>*{background:var(--shade)}
tr>:first-child{position:sticky;left:0;z-index:1;border-right:1px solid var(--grid)}
tbody th{font-weight:600}
td strong{font-weight:700}
.near{display:inline-block;width:1.1em;text-align:right}
.half{color:var(--soft);font-weight:400}
details{margin:8px 0}
summary{cursor:pointer}
summary{font-weight:600;padding:4px 0}
@media(max-width:500px){tbody th{white-space:normal;min-width:112px}
  th,td{padding:4px 6px}}
@media print{html{font-size:11px}body{max-width:none;padding:0;font-size:11px}.figures,.large{grid-template-columns:1fr 1fr}
  .scroll{overflow:visible}.half{white-space:nowrap}.near{width:auto}td{vertical-align:top}table{width:100%;font-size:8px}th,td,tbody th{white-space:normal;min-width:0;
  max-width:none;padding:2px 4px}tr>:first-child{position:static}tr,figure{break-inside:avoid}
  h2,h3,summary{break-after:avoid}}
)css";

std::string titled(std::string_view hint) {
  return hint.empty() ? "" : fmt::format(" title=\"{}\"", escape_html(hint));
}

}  // namespace

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
  html_ += fmt::format("<tr><th scope=\"row\"{}>{}</th>", whole == header ? "" : titled(whole),
                       escape_html(header));
  for (const std::string& cell : cells) html_ += fmt::format("<td>{}</td>", cell);
  html_ += "</tr>\n";
}

std::string HtmlTable::html() const {
  return html_ + "</tbody></table></div>\n";
}

std::string estimate_html(const MeanInterval& estimate, int digits, bool with_sign) {
  std::string html = (with_sign && estimate.mean > 0.0 ? "+" : "") + fixed_number(estimate.mean, digits);
  if (std::isfinite(estimate.half_width))
    html += fmt::format(" <span class=\"half\">± {}</span>", fixed_number(estimate.half_width, digits));
  return html;
}

Page::Page(const PageHead& head) {
  html_ = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0} – {1}</title>\n<style>{2}{3}</style></head>\n<body>\n"
      "<header><p class=\"soft\">{1}</p><h1{4}>{0}</h1>\n",
      escape_html(head.title), escape_html(head.program), drawing_style(":root"), kPageStyle,
      titled(head.hint));
  for (const std::string& paragraph : head.paragraphs) html_ += fmt::format("<p>{}</p>\n", paragraph);
  html_ += "</header>\n<main>\n";
}

void Page::section(std::string_view title, std::string_view beside, std::string_view hint) {
  html_ += "<section><h2>" + escape_html(title);
  if (!beside.empty())
    html_ += fmt::format(" <span class=\"soft\"{}>{}</span>", titled(hint), escape_html(beside));
  html_ += "</h2>\n";
}

void Page::fold(std::string_view summary) {
  html_ += fmt::format("<details><summary>{}</summary>\n", escape_html(summary));
}

void Page::note(std::string_view text) {
  html_ += fmt::format("<p class=\"note\">{}</p>\n", escape_html(text));
}

void Page::list(const std::vector<std::string>& sentences) {
  if (sentences.empty()) return;
  html_ += "<ul class=\"notes\">";
  for (const std::string& sentence : sentences) html_ += "<li>" + escape_html(sentence) + "</li>";
  html_ += "</ul>\n";
}

void Page::preformatted(std::string_view lines) {
  html_ += "<pre>";
  while (!lines.empty()) {  // escape_html() would replace line ends
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    html_ += escape_html(lines.substr(0, end)) + "\n";
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  html_ += "</pre>";
}

void Page::figures(const std::vector<ReportFigure>& figures, std::string_view frame) {
  html_ += fmt::format("<div class=\"{}\">\n", frame);
  for (const ReportFigure& figure : figures) {
    html_ += fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n",
                         inline_svg(figure.drawing, fmt::format("f{}", ++figures_)),
                         escape_html(figure.caption));
  }
  html_ += "</div>\n";
}

std::string Page::finish() {
  html_ += fmt::format(
      "</main>\n<footer class=\"note\"><p>Generated by olrank {} ({}).</p></footer>\n</body></html>\n",
      version(), revision());
  return std::move(html_);
}

}  // namespace olrank
