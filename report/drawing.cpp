#include "report/drawing.h"

#include <fmt/format.h>

#include <array>

#include "report/markup.h"

namespace olrank {
namespace {

/// Distinct in luminance too, for colour-blind readers; after Okabe and Ito's palette.
constexpr std::array<const char*, kColours> kLight = {"#0072b2", "#c84e00", "#00805e", "#b0468a",
                                                      "#8f6500", "#4b4f58", "#6a45c2", "#7a3312"};
constexpr std::array<const char*, kColours> kDark = {"#56b4e9", "#ff9554", "#35d0a2", "#f09ace",
                                                     "#e9bd3a", "#c3c8d1", "#b7a1ff", "#dba988"};
constexpr std::array<const char*, 7> kDashes = {"none",     "7 3",     "2 2.5",  "9 3 2 3",
                                                "12 3 5 3", "4 2 1 2", "1 3 6 3"};
constexpr std::size_t kShapes = 6;
/// Neighbours differ in luminance. The first colour is dark and needs light text, the others dark text.
constexpr std::array<const char*, 7> kParts = {"#2b4a66", "#4fb3a5", "#d9c26a", "#9c8ad6",
                                               "#f2a65e", "#8fbce0", "#b9bdc4"};

std::string colours(const std::array<const char*, kColours>& of, std::string_view ink,
                    std::string_view soft, std::string_view grid, std::string_view ground) {
  std::string text = fmt::format("--ink:{};--soft:{};--grid:{};--ground:{};", ink, soft, grid, ground);
  for (std::size_t i = 0; i < of.size(); ++i) text += fmt::format("--c{}:{};", i, of[i]);
  return text;
}

std::string shape_path(std::size_t shape, double x, double y, double r) {
  const double wide = 1.15 * r;
  switch (shape) {
    case 0:
      return fmt::format("M{:.1f} {:.1f}a{r:.1f} {r:.1f} 0 1 0 {d:.1f} 0a{r:.1f} {r:.1f} 0 1 0 -{d:.1f} 0z",
                         x - r, y, fmt::arg("r", r), fmt::arg("d", 2.0 * r));
    case 1:
      return fmt::format("M{:.1f} {:.1f}h{d:.1f}v{d:.1f}h-{d:.1f}z", x - 0.9 * r, y - 0.9 * r,
                         fmt::arg("d", 1.8 * r));
    case 2:
      return fmt::format("M{:.1f} {:.1f}l{w:.1f} {h:.1f}h-{d:.1f}z", x, y - 1.2 * r, fmt::arg("w", wide),
                         fmt::arg("h", 2.0 * r), fmt::arg("d", 2.0 * wide));
    case 3:
      return fmt::format("M{:.1f} {:.1f}l{w:.1f} {w:.1f}l-{w:.1f} {w:.1f}l-{w:.1f} -{w:.1f}z", x,
                         y - 1.3 * r, fmt::arg("w", 1.3 * r));
    case 4:
      return fmt::format("M{:.1f} {:.1f}l{w:.1f} -{h:.1f}h-{d:.1f}z", x, y + 1.2 * r, fmt::arg("w", wide),
                         fmt::arg("h", 2.0 * r), fmt::arg("d", 2.0 * wide));
    default:  // a plus
      return fmt::format(
          "M{:.1f} {:.1f}h{a:.1f}v{b:.1f}h{b:.1f}v{a:.1f}h-{b:.1f}v{b:.1f}h-{a:.1f}v-{b:.1f}h-{b:.1f}"
          "v-{a:.1f}h{b:.1f}z",
          x - 0.45 * r, y - 1.25 * r, fmt::arg("a", 0.9 * r), fmt::arg("b", 0.8 * r));
  }
}

}  // namespace

std::string drawing_style(std::string_view scope) {
  const std::string light = colours(kLight, "#1b1e24", "#5a606b", "#e2e5ea", "#ffffff");
  const std::string dark = colours(kDark, "#eceef2", "#a8aebb", "#333943", "#15181d");
  std::string css =
      fmt::format("{0}{{{1}}}@media(prefers-color-scheme:dark){{{0}{{{2}}}}}@media print{{{0}{{{1}}}}}",
                  scope, light, dark);
  css +=
      ".chart text{font:11px system-ui,sans-serif;fill:var(--ink)}"
      ".chart .title{font-size:12.5px;font-weight:600}"
      ".chart .tick{fill:var(--soft)}"
      ".chart .grid{stroke:var(--grid);stroke-width:1}"
      ".chart .axis{stroke:var(--soft);stroke-width:1}"
      ".chart .lead{fill:none;stroke-width:1;stroke-dasharray:none}"
      ".chart .line,.key .line{fill:none;stroke-width:1.8;stroke-linejoin:round}"
      ".chart .base{stroke:var(--soft);stroke-width:1.2;stroke-dasharray:3 3}"
      ".chart .soft-line{stroke:var(--soft)}"
      ".chart .band{opacity:.16;stroke:none}.chart .many{opacity:.07}"
      ".chart .part{stroke:var(--ground);stroke-width:1}"
      ".chart .mark,.key .mark{stroke:var(--ground);stroke-width:.8}"
      ".chart .onlight{fill:#14171c}.chart .ondark{fill:#fff}";
  for (std::size_t i = 0; i < kColours; ++i)
    css += fmt::format(".s{0}{{stroke:var(--c{0})}}.f{0}{{fill:var(--c{0})}}", i);
  for (std::size_t i = 0; i < kDashes.size(); ++i)
    css += fmt::format(".d{}{{stroke-dasharray:{}}}", i, kDashes[i]);
  for (std::size_t i = 0; i < kParts.size(); ++i) css += fmt::format(".p{}{{fill:{}}}", i, kParts[i]);
  return css;
}

std::string inline_svg(const Drawing& drawing, const std::string& id) {
  return fmt::format(
      "<svg class=\"chart\" role=\"img\" aria-labelledby=\"{0}-t {0}-d\" viewBox=\"0 0 {1:.0f} {2:.0f}\">"
      "<title id=\"{0}-t\">{3}</title><desc id=\"{0}-d\">{4}</desc>{5}</svg>\n",
      id, drawing.width, drawing.height, escape_html(drawing.title), escape_html(drawing.description),
      drawing.body);
}

std::string standalone_svg(const Drawing& drawing) {
  constexpr double kPadding = 10.0;
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" aria-labelledby=\"t d\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"-{2:.0f} -{2:.0f} {0:.0f} {1:.0f}\">\n"
      "<title id=\"t\">{3}</title>\n<desc id=\"d\">{4}</desc>\n<style>{5}</style>\n"
      "<rect x=\"-{2:.0f}\" y=\"-{2:.0f}\" width=\"100%\" height=\"100%\" style=\"fill:var(--ground)\"/>\n"
      "{6}\n</svg>\n",
      drawing.width + 2.0 * kPadding, drawing.height + 2.0 * kPadding, kPadding, escape_html(drawing.title),
      escape_html(drawing.description), drawing_style("svg"), drawing.body);
}

std::string svg_text(double x, double y, std::string_view text, std::string_view kind, Anchor anchor) {
  const char* anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
  const std::string of_kind = kind.empty() ? "" : fmt::format(" class=\"{}\"", kind);
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}{}>{}</text>", x, y, of_kind,
                     anchors[static_cast<int>(anchor)], escape_html(text));
}

std::string svg_line(double x1, double y1, double x2, double y2, std::string_view kind) {
  return fmt::format("<path class=\"{}\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>", kind, x1, y1, x2, y2);
}

std::string line_class(std::size_t style) {
  return fmt::format("line s{} d{}", style % kColours, style % kDashes.size());
}

std::string fill_class(std::size_t style) {
  return fmt::format("f{}", style % kColours);
}

std::string part_class(std::size_t part) {
  return fmt::format("p{}", part % kParts.size());
}

std::string on_part_class(std::size_t part) {
  return part % kParts.size() == 0 ? "ondark" : "onlight";
}

std::string svg_marker(double x, double y, double radius, std::size_t style, std::string_view tooltip) {
  const std::string path = shape_path(style % kShapes, x, y, radius);
  if (tooltip.empty()) return fmt::format("<path class=\"mark {}\" d=\"{}\"/>", fill_class(style), path);
  return fmt::format("<path class=\"mark {}\" d=\"{}\"><title>{}</title></path>", fill_class(style), path,
                     escape_html(tooltip));
}

std::string style_key(std::size_t style) {
  return fmt::format(
      "<svg class=\"key\" aria-hidden=\"true\" viewBox=\"0 0 34 12\" width=\"34\" height=\"12\">{}{}</svg>",
      svg_line(1, 6, 33, 6, line_class(style)), svg_marker(17, 6, 3.6, style));
}

}  // namespace olrank
