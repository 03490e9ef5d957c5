#include "serve/page_parts.h"

#include <fmt/format.h>

namespace olrank {
namespace {

constexpr std::string_view kBeforeTitle = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M2 3h12M2 8h8M2 13h5' stroke='%231f6fb2' stroke-width='3'/%3E%3C/svg%3E">
)html";

constexpr std::string_view kStyleOfPages = R"css(
:root{color-scheme:light dark;--ground:#fff;--ink:#1c2026;--soft:#5a626e;--grid:#dde0e5;--shade:#f4f5f7;
  --line:#1f6fb2;--warn:#fff4dc;--edge:#d3a63a;--mark:#d9eadb}
@media(prefers-color-scheme:dark){:root{--ground:#14171b;--ink:#e6e8eb;--soft:#a0a8b4;--grid:#353b44;
  --shade:#1e2229;--line:#6db3f2;--warn:#33290f;--edge:#b88f2b;--mark:#24442a}}
*{box-sizing:border-box}
[hidden]{display:none!important}
body{margin:0 auto;padding:20px 16px 48px;background:var(--ground);color:var(--ink);
  font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.25;margin:0}
.soft{color:var(--soft)}
.warn{background:var(--warn);border-left:4px solid var(--edge);padding:8px 12px})css";

constexpr std::string_view kScriptOfPages = R"js(
'use strict';
const at = id => document.getElementById(id);
const make = (tag, text, name) => {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (name) node.className = name;
  return node;
};)js";

}  // namespace

std::string page_head(std::string_view title, std::string_view style) {
  return fmt::format("{}<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n", kBeforeTitle, title,
                     kStyleOfPages, style);
}

std::string page_script(std::string_view script) {
  return fmt::format("<script>{}{}</script>\n</body>\n</html>\n", kScriptOfPages, script);
}

}  // namespace olrank
