#include "report/drawing_style.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

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
/// Parts of bars, equal in both themes. Neighbours differ in luminance.
constexpr std::array<const char*, kParts> kPartColours = {"#2b4a66", "#4fb3a5", "#d9c26a", "#9c8ad6",
                                                          "#f2a65e", "#8fbce0", "#b9bdc4", "#8c2f4f",
                                                          "#a9d18e", "#5d4a8a", "#f4c7d0", "#5f6b2d"};

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
        {"part", {{"stroke", "@ground"}, {"stroke-width", "1"}}},
        {"mark", {{"stroke", "@ground"}, {"stroke-width", "0.8"}}},
        {"hollow", {{"fill", "@ground"}, {"stroke-width", "1.5"}}},
        {"bar", {{"fill", "none"}, {"stroke-width", "1.5"}}},
        {"onlight", {{"fill", "#14171c"}}},
        {"ondark", {{"fill", "#ffffff"}}},
    };
    for (std::size_t i = 0; i < kColours; ++i) {
      all.push_back({fmt::format("s{}", i), {{"stroke", fmt::format("@c{}", i)}}});
      all.push_back({fmt::format("f{}", i), {{"fill", fmt::format("@c{}", i)}}});
    }
    for (std::size_t i = 0; i < kDashes; ++i)
      all.push_back({fmt::format("d{}", i), {{"stroke-dasharray", kDashPatterns[i]}}});
    for (std::size_t i = 0; i < kParts; ++i)
      all.push_back({fmt::format("p{}", i), {{"fill", kPartColours[i]}}});
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
  while (!classes.empty()) {
    const std::size_t length = std::min(classes.find(' '), classes.size());
    names.push_back(classes.substr(0, length));
    classes.remove_prefix(std::min(length + 1, classes.size()));
  }
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

}  // namespace

std::string_view theme_colour(std::string_view name, Theme theme) {
  for (const ThemeColour& colour : kThemeColours) {
    if (colour.name == name) return theme == Theme::kDark ? colour.dark : colour.light;
  }
  throw std::logic_error(fmt::format("There is no colour '{}'.", name));
}

bool is_dark_part(std::size_t part) {
  const std::string_view colour = kPartColours[part % kParts];
  const auto channel = [&](std::size_t at) {
    return std::stoi(std::string(colour.substr(at, 2)), nullptr, 16);
  };
  return 299 * channel(1) + 587 * channel(3) + 114 * channel(5) < 110'000;
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

}  // namespace olrank
