#include "report/interview_page.h"

#include <fmt/format.h>

#include "report/page.h"

namespace olrank {
namespace {

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
