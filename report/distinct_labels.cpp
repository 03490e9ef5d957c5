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

/// The part [begin, size − rest) of a name, with the same begin and rest for all names of a group.
struct Window {
  std::size_t begin = 0;
  std::size_t rest = 0;
};

/// Where the names differ, by characters.
Window differing_part(const std::vector<std::string>& names) {
  const std::string& first = names.front();
  Window window{first.size(), first.size()};
  std::size_t shortest = first.size();
  for (const std::string& name : names) {
    shortest = std::min(shortest, name.size());
    std::size_t same = 0;
    while (same < window.begin && same < name.size() && name[same] == first[same]) ++same;
    window.begin = same;
  }
  while (window.begin > 0 && window.begin < first.size() && !starts_character(first[window.begin]))
    --window.begin;
  for (const std::string& name : names) {
    std::size_t same = 0;
    while (same < window.rest && same + window.begin < shortest &&
           name[name.size() - 1 - same] == first[first.size() - 1 - same])
      ++same;
    window.rest = same;
  }
  while (window.rest > 0 && !starts_character(first[first.size() - window.rest])) --window.rest;
  return window;
}

/// The window, larger on one side by a character or by a word with what separates it.
Window widened(const std::string& name, Window window, bool to_the_left, bool by_word) {
  const auto step = [&] {
    if (to_the_left) {
      while (!starts_character(name[--window.begin])) continue;
    } else {
      --window.rest;
      while (window.rest > 0 && !starts_character(name[name.size() - window.rest])) --window.rest;
    }
  };
  const auto more = [&] { return to_the_left ? window.begin > 0 : window.rest > 0; };
  const auto next = [&] { return to_the_left ? name[window.begin - 1] : name[name.size() - window.rest]; };
  if (!by_word) {
    if (more()) step();
    return window;
  }
  while (more() && !is_word(next())) step();
  while (more() && is_word(next())) step();
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

/// The window that shows the words in which the names differ; by characters where words are too long.
Window start_of(const std::vector<std::string>& names, double font_size, double width, bool& by_word) {
  const Window exact = differing_part(names);
  Window words = exact;
  const std::string& first = names.front();
  while (words.begin > 0 && is_word(first[words.begin - 1])) --words.begin;
  while (words.rest > 0 && is_word(first[first.size() - words.rest])) --words.rest;
  by_word = fits(names, words, font_size, width);
  return by_word ? words : exact;
}

std::vector<std::string> windows_of(const std::vector<std::string>& names, double font_size, double width) {
  bool by_word = true;
  Window window = start_of(names, font_size, width, by_word);
  std::vector<std::string> labels;
  if (!fits(names, window, font_size, width)) {
    const double room = width - text_width("……", font_size);
    std::vector<std::string> parts;
    parts.reserve(names.size());
    for (const std::string& name : names)
      parts.push_back(name.substr(window.begin, name.size() - window.rest - window.begin));
    // Where the parts are the whole names, nothing is gained; the caller numbers them.
    if (window.begin + window.rest > 0) parts = distinct_labels(parts, font_size, room);
    for (const std::string& part : parts) labels.push_back(shortened(part, font_size, width));
    return labels;
  }
  for (bool left = true, left_grows = true, right_grows = true; left_grows || right_grows; left = !left) {
    bool& grows = left ? left_grows : right_grows;
    const Window wider = widened(names.front(), window, left, by_word);
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
