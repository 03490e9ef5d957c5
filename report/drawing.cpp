#include "report/drawing.h"

#include <fmt/format.h>

#include <cmath>

#include "report/markup.h"

namespace olrank {
namespace {

constexpr std::size_t kShapes = 6;

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

std::string inline_svg(const Drawing& drawing, const std::string& id) {
  return fmt::format(
      "<svg class=\"chart\" role=\"img\" aria-labelledby=\"{0}-t {0}-d\" viewBox=\"0 0 {1:.0f} {2:.0f}\">"
      "<title id=\"{0}-t\">{3}</title><desc id=\"{0}-d\">{4}</desc>{5}</svg>\n",
      id, drawing.width, drawing.height, escape_html(drawing.title), escape_html(drawing.description),
      drawing.body);
}

std::string standalone_svg(const Drawing& drawing, Theme theme) {
  constexpr double kPadding = 10.0;
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-labelledby=\"t d\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"-{2:.0f} -{2:.0f} {0:.0f} {1:.0f}\">\n"
      "<title id=\"t\">{3}</title>\n<desc id=\"d\">{4}</desc>\n"
      "<rect x=\"-{2:.0f}\" y=\"-{2:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"{5}\"/>\n"
      "<g font-family=\"{6}\" font-size=\"11px\" fill=\"{7}\">\n{8}\n</g>\n</svg>\n",
      std::ceil(drawing.width + 2.0 * kPadding), std::ceil(drawing.height + 2.0 * kPadding), kPadding,
      escape_html(drawing.title), escape_html(drawing.description), theme_colour("ground", theme),
      kFileFont, theme_colour("ink", theme), literal_styles(drawing.body, theme));
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
  return fmt::format("line s{} d{}", style % kColours, style % kDashes);
}

std::string fill_class(std::size_t style) {
  return fmt::format("f{}", style % kColours);
}

std::string part_class(std::size_t part) {
  return fmt::format("p{}", part % kParts);
}

std::string on_part_class(std::size_t part) {
  return is_dark_part(part) ? "ondark" : "onlight";
}

std::string svg_marker(double x, double y, double radius, std::size_t style, std::string_view tooltip,
                       bool hollow) {
  const std::string path = shape_path(style % kShapes, x, y, radius);
  const std::string kind =
      hollow ? fmt::format("hollow s{}", style % kColours) : "mark " + fill_class(style);
  if (tooltip.empty()) return fmt::format("<path class=\"{}\" d=\"{}\"/>", kind, path);
  return fmt::format("<path class=\"{}\" d=\"{}\"><title>{}</title></path>", kind, path,
                     escape_html(tooltip));
}

std::string style_key(std::size_t style) {
  return fmt::format(
      "<svg class=\"key\" aria-hidden=\"true\" viewBox=\"0 0 34 12\" width=\"34\" height=\"12\">{}{}</svg>",
      svg_line(1, 6, 33, 6, line_class(style)), svg_marker(17, 6, 3.6, style));
}

}  // namespace olrank
