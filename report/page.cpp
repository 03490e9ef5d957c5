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
.answers{grid-template-columns:repeat(auto-fill,minmax(min(100%,390px),1fr))}
.large .chart,.answers .chart{max-width:620px}
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

constexpr char kInterviewStyle[] = R"css(
.answers{display:flex;flex-wrap:wrap;gap:.5rem;margin:.75rem 0}
button{font:inherit;padding:.45rem .9rem;border:1px solid currentColor;border-radius:.4rem;background:none;color:inherit;cursor:pointer}
button:hover:not(:disabled),button:focus-visible{text-decoration:underline}
button:disabled{opacity:.45;cursor:default}
#list{padding-left:2.5rem;font-variant-numeric:tabular-nums}
#list li{margin:.15rem 0}
.change{margin-left:.75rem;font-size:.85em;opacity:.75}
.new .change{font-weight:600;opacity:1}
details{margin:.2rem 0 .2rem .6rem;border-left:1px solid rgba(128,128,128,.4);padding-left:.6rem}
summary{cursor:pointer;font-weight:400}
.here>summary,.here.leaf{font-weight:600}
.leaf{margin:.2rem 0 .2rem .6rem;padding-left:.6rem;border-left:1px solid rgba(128,128,128,.4)}
)css";

// Texts enter the document as text nodes alone. Children of a node are made when it is opened first.
constexpr char kScript[] = R"js(
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const make = (tag, text, kind) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
};
const branchWords = ["≥", "<", "unknown"];
let path = [0];
const answered = [];

function changeOf(before, item, rank) {
  if (!before) return "";
  const was = before.findIndex((entry) => entry[0] === item);
  if (was < 0) return "new";
  return was > rank ? `up ${was - rank}` : was < rank ? `down ${rank - was}` : "";
}

function showList() {
  const node = data.user_tree[path[path.length - 1]];
  const before = path.length > 1 ? data.user_tree[path[path.length - 2]].list : null;
  byId("list").replaceChildren(...node.list.map(([item, score], rank) => {
    const change = changeOf(before, item, rank);
    const line = make("li", data.items[item], change === "new" ? "new" : "");
    line.title = `score ${score.toFixed(4)}`;
    if (change) line.append(make("span", change, "change"));
    return line;
  }));
}

function showQuestion() {
  const node = data.user_tree[path[path.length - 1]];
  const asks = node.children !== undefined;
  byId("question").textContent = asks ? data.question.replace("{}", () => node.subject)
    : "That was the last question. The list below is for somebody who answered like you.";
  byId("answers").replaceChildren(...(asks ? data.answers.map((text, branch) => {
    const button = make("button", text);
    button.type = "button";
    button.dataset.branch = branch;
    button.addEventListener("click", () => {
      answered.push(`${node.subject}: ${text}`);
      path.push(node.children[branch]);
      show();
      const next = byId("answers").querySelector("button");
      (next || byId("again")).focus();
    });
    return button;
  }) : []));
  byId("back").disabled = byId("again").disabled = path.length === 1;
  byId("given").replaceChildren(...answered.map((text) => make("li", text)));
  document.body.dataset.state = asks ? "asking" : "finished";
  document.body.dataset.node = path[path.length - 1];
}

function markPath() {
  for (const marked of document.querySelectorAll("#users .here")) marked.classList.remove("here");
  for (const number of path) {
    const shown = byId(`user-${number}`);
    if (!shown) break;
    shown.classList.add("here");
    if (shown.tagName === "DETAILS" && number !== path[path.length - 1]) {
      shown.open = true;
      fill(shown);
    }
  }
}

function show() {
  showQuestion();
  showList();
  markPath();
}

function fill(details) {
  if (details.filled) return;
  details.filled = true;
  const tree = details.tree;
  const node = tree.nodes[details.number];
  const at = node.threshold.toPrecision(3);
  const words = [`≥ ${at}`, `< ${at}`, branchWords[2]];
  node.children.forEach((child, branch) => details.append(nodeElement(tree, child, `${words[branch]} → `)));
}

function nodeElement(tree, number, prefix) {
  const node = tree.nodes[number];
  const counted = `${node.rows} ${node.rows === 1 ? tree.one : tree.many}`;
  if (node.children === undefined) {
    const names = (node.examples || node.list.slice(0, 3).map((entry) => entry[0])).map((item) => data.items[item]);
    const leaf = make("div", `${prefix}leaf ${number}, ${counted}${names.length ? `: ${names.join(", ")}${tree.more}` : ""}`, "leaf");
    leaf.id = `${tree.id}-${number}`;
    return leaf;
  }
  const details = make("details");
  details.id = `${tree.id}-${number}`;
  details.tree = tree;
  details.number = number;
  details.append(make("summary", `${prefix}${node.subject}? (${counted})`));
  details.addEventListener("toggle", () => { if (details.open) { fill(details); markPath(); } });
  return details;
}

byId("back").addEventListener("click", () => { path.pop(); answered.pop(); show(); });
byId("again").addEventListener("click", () => { path = [0]; answered.length = 0; show(); });
const trees = [
  {id: "user", holder: "users", nodes: data.user_tree, one: "user", many: "users", more: " first"},
  {id: "item", holder: "items", nodes: data.item_tree, one: "item", many: "items", more: " …"}];
for (const tree of trees) {
  if (!tree.nodes.length) { byId(tree.holder).closest("section").remove(); continue; }
  const root = nodeElement(tree, 0, "");
  byId(tree.holder).append(root);
  if (root.tagName === "DETAILS") { root.open = true; fill(root); }
}
show();
)js";

/// Nothing in a script element may look like its end.
std::string json_in_script(const std::string& json) {
  std::string safe;
  for (const char letter : json) safe += letter == '<' ? "\\u003c" : std::string(1, letter);
  return safe;
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
      "<title>{0} – {1}</title>\n<style>{2}{3}{4}</style></head>\n<body>\n"
      "<header><p class=\"soft\">{1}</p><h1{5}>{0}</h1>\n",
      escape_html(head.title), escape_html(head.program), drawing_style(":root"), kPageStyle, head.style,
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

std::string Page::finish(std::string_view scripts) {
  html_ += fmt::format(
      "</main>\n<footer class=\"note\"><p>Generated by olrank {} ({}).</p></footer>\n{}</body></html>\n",
      version(), revision(), scripts);
  return std::move(html_);
}

std::string interview_page(const InterviewPage& interview) {
  Page page({"olrank recommend", interview.title, {escape_html(interview.sentence)}, "", kInterviewStyle});
  page.add(
      "<section aria-live=\"polite\"><h2>Interview</h2>\n<p id=\"question\"></p>\n"
      "<div class=\"answers\" id=\"answers\"></div>\n"
      "<p><button type=\"button\" id=\"back\">Back</button> "
      "<button type=\"button\" id=\"again\">Start again</button></p>\n"
      "<ul id=\"given\"></ul>\n<h3>The list now</h3>\n<ol id=\"list\"></ol></section>\n");
  page.add(
      fmt::format("<section><h2>The users' tree</h2>\n<p class=\"soft\">{} The path of your answers is "
                  "bold.</p>\n<div id=\"users\"></div></section>\n",
                  escape_html(interview.users_note)));
  page.add(
      "<section><h2>The items' tree</h2>\n<p class=\"soft\">Each question splits items by praise minus "
      "complaints, as a share of what is said "
      "about them.</p>\n<div id=\"items\"></div></section>\n");
  return page.finish(
      fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n<script>{}</script>\n",
                  json_in_script(interview.data), kScript));
}

}  // namespace olrank
