#include "report/drawing.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "core/io/text_lines.h"
#include "report/markup.h"

namespace olrank {
namespace {

struct ThemeColour {
  std::string_view name;
  std::string_view light;
  std::string_view dark;
};

/// Line colours are distinct in luminance too, for colour-blind readers; after Okabe and Ito's palette.
constexpr std::array<ThemeColour, 4 + kColours> kThemeColours = {{{"ink", "#1b1e24", "#eceef2"},
                                                                  {"soft", "#5a606b", "#a8aebb"},
                                                                  {"grid", "#e2e5ea", "#333943"},
                                                                  {"ground", "#ffffff", "#15181d"},
                                                                  {"c0", "#0072b2", "#56b4e9"},
                                                                  {"c1", "#c84e00", "#ff9554"},
                                                                  {"c2", "#00805e", "#35d0a2"},
                                                                  {"c3", "#b0468a", "#f09ace"},
                                                                  {"c4", "#8f6500", "#e9bd3a"},
                                                                  {"c5", "#4b4f58", "#c3c8d1"},
                                                                  {"c6", "#6a45c2", "#b7a1ff"},
                                                                  {"c7", "#7a3312", "#dba988"}}};
constexpr std::array<const char*, kDashes> kDashPatterns = {"none",     "7 3",     "2 2.5",  "9 3 2 3",
                                                            "12 3 5 3", "4 2 1 2", "1 3 6 3"};

/// Properties of a class. "@ink" is the theme's colour of that name.
struct ClassStyle {
  std::string name;
  std::vector<std::pair<std::string, std::string>> properties;
};

/// Later styles override earlier ones.
const std::vector<ClassStyle>& class_styles() {
  static const std::vector<ClassStyle> styles = [] {
    std::vector<ClassStyle> all = {
        {"title", {{"font-size", "12.5px"}, {"font-weight", "600"}}},
        {"tick", {{"fill", "@soft"}}},
        {"grid", {{"stroke", "@grid"}, {"stroke-width", "1"}}},
        {"axis", {{"stroke", "@soft"}, {"stroke-width", "1"}}},
        {"lead", {{"fill", "none"}, {"stroke-width", "1"}, {"stroke-dasharray", "none"}}},
        {"line", {{"fill", "none"}, {"stroke-width", "1.8"}, {"stroke-linejoin", "round"}}},
        {"base", {{"stroke", "@soft"}, {"stroke-width", "1.2"}, {"stroke-dasharray", "3 3"}}},
        {"soft-line", {{"stroke", "@soft"}}},
        {"band", {{"fill-opacity", "0.16"}, {"stroke", "none"}}},
        {"many", {{"fill-opacity", "0.07"}}},
        {"mark", {{"stroke", "@ground"}, {"stroke-width", "0.8"}}},
        {"hollow", {{"fill", "@ground"}, {"stroke-width", "1.5"}}},
        {"bar", {{"fill", "none"}, {"stroke-width", "1.5"}}},
    };
    for (std::size_t i = 0; i < kColours; ++i) {
      all.push_back({fmt::format("s{}", i), {{"stroke", fmt::format("@c{}", i)}}});
      all.push_back({fmt::format("f{}", i), {{"fill", fmt::format("@c{}", i)}}});
    }
    for (std::size_t i = 0; i < kDashes; ++i)
      all.push_back({fmt::format("d{}", i), {{"stroke-dasharray", kDashPatterns[i]}}});
    return all;
  }();
  return styles;
}

std::string variables(Theme theme) {
  std::string text;
  for (const ThemeColour& colour : kThemeColours)
    text += fmt::format("--{}:{};", colour.name, theme == Theme::kDark ? colour.dark : colour.light);
  return text;
}

/// The presentation attributes of `classes`, which spaces separate.
std::string attributes(std::string_view classes, Theme theme) {
  std::vector<std::string_view> names;
  while (!classes.empty()) names.push_back(take_word(classes));
  std::vector<std::pair<std::string, std::string>> chosen;
  std::size_t known = 0;
  for (const ClassStyle& style : class_styles()) {
    if (std::find(names.begin(), names.end(), style.name) == names.end()) continue;
    ++known;
    for (const auto& [property, value] : style.properties) {
      const auto earlier = std::find_if(chosen.begin(), chosen.end(),
                                        [&key = property](const auto& one) { return one.first == key; });
      const std::string literal =
          value[0] == '@' ? std::string(theme_colour(value.substr(1), theme)) : value;
      if (earlier == chosen.end()) {
        chosen.emplace_back(property, literal);
      } else {
        earlier->second = literal;
      }
    }
  }
  if (known != names.size())
    throw std::logic_error(fmt::format("A class of '{}' has no style.", fmt::join(names, " ")));
  std::string text;
  for (const auto& [property, value] : chosen) text += fmt::format(" {}=\"{}\"", property, value);
  return text;
}

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

std::string_view theme_colour(std::string_view name, Theme theme) {
  for (const ThemeColour& colour : kThemeColours) {
    if (colour.name == name) return theme == Theme::kDark ? colour.dark : colour.light;
  }
  throw std::logic_error(fmt::format("There is no colour '{}'.", name));
}

std::string drawing_style(std::string_view scope) {
  const std::string light = variables(Theme::kLight);
  std::string css =
      fmt::format("{0}{{{1}}}@media(prefers-color-scheme:dark){{{0}{{{2}}}}}@media print{{{0}{{{1}}}}}",
                  scope, light, variables(Theme::kDark));
  css += fmt::format(".chart text{{font:11px {};fill:var(--ink)}}", kPageFont);
  for (const ClassStyle& style : class_styles()) {
    css += fmt::format(":is(.chart,.key) .{}{{", style.name);
    for (const auto& [property, value] : style.properties) {
      css += value[0] == '@' ? fmt::format("{}:var(--{});", property, value.substr(1))
                             : fmt::format("{}:{};", property, value);
    }
    css += "}";
  }
  return css;
}

std::string literal_styles(std::string_view elements, Theme theme) {
  // Quotes in names are escaped, so that this finds attributes only.
  constexpr std::string_view kAttribute = " class=\"";
  std::string styled;
  for (;;) {
    const std::size_t begin = elements.find(kAttribute);
    styled += elements.substr(0, begin);
    if (begin == std::string_view::npos) return styled;
    elements.remove_prefix(begin + kAttribute.size());
    const std::size_t end = elements.find('"');
    styled += attributes(elements.substr(0, end), theme);
    elements.remove_prefix(end + 1);
  }
}

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
