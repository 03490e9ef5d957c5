#include "report/distinct_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>

#include "report/drawing.h"
#include "report/markup.h"

namespace olrank {
namespace {

using Group = std::vector<std::size_t>;  // indices of names

bool starts_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;
}

/// Letters, digits and the point of a number; what is left separates the words of a name.
bool is_word(char c) {
  return static_cast<unsigned char>(c) >= 0x80 || std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         c == '.';
}

/// The part [begin, size − rest) of each name is where the names of a group differ, in whole words.
struct Window {
  std::size_t begin = 0;
  std::size_t rest = 0;
};

Window differing_part(const std::vector<std::string>& names) {
  const std::string& first = names.front();
  std::size_t shortest = first.size();
  Window window{first.size(), first.size()};
  for (const std::string& name : names) {
    shortest = std::min(shortest, name.size());
    std::size_t same = 0;
    while (same < window.begin && same < name.size() && name[same] == first[same]) ++same;
    window.begin = same;
  }
  for (const std::string& name : names) {
    std::size_t same = 0;
    while (same < window.rest && same < shortest - std::min(shortest, window.begin) &&
           name[name.size() - 1 - same] == first[first.size() - 1 - same])
      ++same;
    window.rest = same;
  }
  while (window.begin > 0 && is_word(first[window.begin - 1])) --window.begin;
  while (window.rest > 0 && is_word(first[first.size() - window.rest])) --window.rest;
  return window;
}

std::string label_in(const std::string& name, const Window& window) {
  return (window.begin > 0 ? "…" : "") +
         name.substr(window.begin, name.size() - window.rest - window.begin) + (window.rest > 0 ? "…" : "");
}

bool fits(const std::vector<std::string>& names, const Window& window, double font_size, double width) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return text_width(label_in(name, window), font_size) <= width;
  });
}

/// The window, larger by a character on one side.
Window widened(const std::string& name, Window window, bool to_the_left) {
  if (to_the_left) {
    while (window.begin > 0 && !starts_character(name[--window.begin])) continue;
  } else {
    while (window.rest > 0 && --window.rest > 0 && !starts_character(name[name.size() - window.rest]))
      continue;
  }
  return window;
}

std::vector<std::string> windows_of(const std::vector<std::string>& names, double font_size, double width) {
  Window window = differing_part(names);
  std::vector<std::string> labels;
  if (!fits(names, window, font_size, width)) {
    const double room = width - text_width("……", font_size);
    std::vector<std::string> parts;
    for (const std::string& name : names)
      parts.push_back(name.substr(window.begin, name.size() - window.rest - window.begin));
    // Where the parts are the whole names, nothing is gained; the caller numbers them.
    if (window.begin + window.rest > 0) parts = distinct_labels(parts, font_size, room);
    for (const std::string& part : parts) labels.push_back(shortened(part, font_size, width));
    return labels;
  }
  for (bool left = true, left_grows = true, right_grows = true; left_grows || right_grows; left = !left) {
    bool& grows = left ? left_grows : right_grows;
    const Window wider = widened(names.front(), window, left);
    grows = grows && (wider.begin != window.begin || wider.rest != window.rest) &&
            fits(names, wider, font_size, width);
    if (grows) window = wider;
  }
  labels.reserve(names.size());
  for (const std::string& name : names) labels.push_back(label_in(name, window));
  return labels;
}

/// The names that share a label, by label; names that are equal are the same name.
std::map<std::string, Group> clashes(const std::vector<std::string>& names,
                                     const std::vector<std::string>& labels) {
  std::map<std::string, Group> groups;
  for (std::size_t i = 0; i < labels.size(); ++i) groups[labels[i]].push_back(i);
  std::erase_if(groups, [&](const auto& entry) {
    const Group& group = entry.second;
    return std::all_of(group.begin(), group.end(),
                       [&](std::size_t i) { return names[i] == names[group.front()]; });
  });
  return groups;
}

}  // namespace

std::vector<std::string> distinct_labels(const std::vector<std::string>& names, double font_size,
                                         double width) {
  std::vector<std::string> cleaned;
  std::vector<std::string> labels;
  for (const std::string& name : names) {
    cleaned.push_back(clean_utf8(name));
    labels.push_back(shortened(name, font_size, width));
  }
  for (const auto& [label, group] : clashes(cleaned, labels)) {
    std::vector<std::string> alike;
    for (const std::size_t i : group) alike.push_back(cleaned[i]);
    const std::vector<std::string> told_apart = windows_of(alike, font_size, width);
    for (std::size_t i = 0; i < group.size(); ++i) labels[group[i]] = told_apart[i];
  }
  for (const auto& [label, group] : clashes(cleaned, labels)) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::string number = fmt::format(" #{}", i + 1);
      labels[group[i]] =
          shortened(names[group[i]], font_size, width - text_width(number, font_size)) + number;
    }
  }
  return labels;
}

std::string svg_label(double x, double y, const std::string& label, const std::string& name) {
  std::string text = svg_text(x, y, label, "");
  if (label == clean_utf8(name)) return text;
  return text.insert(text.find('>') + 1, fmt::format("<title>{}</title>", escape_html(name)));
}

}  // namespace olrank
