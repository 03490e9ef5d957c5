#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>

#include "report/drawing.h"
#include "report/markup.h"

namespace olrank {
namespace {

/// Adjacent labels, `gap` apart, around a common centre.
struct Cluster {
  double centre = 0.0;
  std::size_t count = 0;

  double first(double gap) const { return centre - 0.5 * gap * static_cast<double>(count - 1); }
  double last(double gap) const { return centre + 0.5 * gap * static_cast<double>(count - 1); }
};

void keep_within(Cluster& cluster, double gap, double low, double high) {
  const double half = 0.5 * gap * static_cast<double>(cluster.count - 1);
  cluster.centre = std::max(low + half, std::min(high - half, cluster.centre));
}

class LabelPlacer {
 public:
  LabelPlacer(const std::vector<LabelledPoint>& points, const Box& frame, double distance)
      : frame_(frame), distance_(distance), radius_(0.75 * distance) {
    for (const LabelledPoint& point : points) {
      taken_.push_back({point.x - radius_, point.y - radius_, point.x + radius_, point.y + radius_});
      lines_.push_back({point.x - 2.0, point.high, point.x + 2.0, point.low});
    }
  }

  /// Tries places at a multiple of the basic distance.
  std::optional<LabelPlace> place(const LabelledPoint& point, double distances) {
    for (const Box& box : boxes_around(point, distances * distance_)) {
      const LabelPlace place{box, distances > 1.0};
      if (!box.within(frame_) || meets_any(box, lines_) || meets_any(box, taken_)) continue;
      const std::vector<Box> lead = lead_to(place, point);
      const auto crosses = [&](const Box& dot) { return meets_any(dot, taken_); };
      if (std::any_of(lead.begin(), lead.end(), crosses)) continue;
      taken_.push_back(box);
      taken_.insert(taken_.end(), lead.begin(), lead.end());
      return place;
    }
    return std::nullopt;
  }

 private:
  static bool meets_any(const Box& box, const std::vector<Box>& others) {
    return std::any_of(others.begin(), others.end(), [&](const Box& other) { return box.meets(other); });
  }

  static std::array<Box, 8> boxes_around(const LabelledPoint& point, double distance) {
    const double w = point.width;
    const double h = point.height;
    const double middle = point.y - 0.5 * h;
    const double above = point.y - distance - h;
    const double below = point.y + distance;
    const double right = point.x + distance;
    const double left = point.x - distance - w;
    const double centred = point.x - 0.5 * w;
    const auto box = [&](double x, double y) { return Box{x, y, x + w, y + h}; };
    return {box(right, middle), box(left, middle), box(centred, above), box(centred, below),
            box(right, above),  box(right, below), box(left, above),    box(left, below)};
  }

  /// The leader line as dots, starting outside the point.
  std::vector<Box> lead_to(const LabelPlace& place, const LabelledPoint& point) const {
    std::vector<Box> dots;
    if (!place.needs_leader) return dots;
    const double dx = place.lead_x(point) - point.x;
    const double dy = place.lead_y(point) - point.y;
    const double length = std::hypot(dx, dy);
    for (double at = 1.5 * radius_ + 2.0; at < length - 1.0; at += 2.0) {
      const double x = point.x + dx * at / length;
      const double y = point.y + dy * at / length;
      dots.push_back({x - 1.0, y - 1.0, x + 1.0, y + 1.0});
    }
    return dots;
  }

  Box frame_;
  double distance_;
  double radius_;           // of a point
  std::vector<Box> lines_;  // the points' vertical lines; leader lines may cross them
  std::vector<Box> taken_;  // by points, labels and leader lines
};

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
    const auto end = std::ranges::mismatch(first, name).in1;
    window.begin = std::min(window.begin, static_cast<std::size_t>(end - first.begin()));
  }
  while (window.begin > 0 && window.begin < first.size() && !starts_character(first[window.begin]))
    --window.begin;
  window.rest = std::min(window.rest, shortest - std::min(shortest, window.begin));
  for (const std::string& name : names) {
    const auto begin = std::mismatch(first.rbegin(), first.rend(), name.rbegin(), name.rend()).first;
    window.rest = std::min(window.rest, static_cast<std::size_t>(begin - first.rbegin()));
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

std::vector<std::string> windows_of(const std::vector<std::string>& names, double font_size, double width) {
  // The window shows the words in which the names differ; by characters where words are too long.
  const Window exact = differing_part(names);
  Window window = exact;
  const std::string& first = names.front();
  while (window.begin > 0 && is_word(first[window.begin - 1])) --window.begin;
  while (window.rest > 0 && is_word(first[first.size() - window.rest])) --window.rest;
  const bool by_word = fits(names, window, font_size, width);
  if (!by_word) window = exact;
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

std::vector<double> spread_labels(const std::vector<double>& wanted, double gap, double low, double high) {
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
  std::vector<Cluster> clusters;
  for (const std::size_t label : order) {
    clusters.push_back({wanted[label], 1});
    keep_within(clusters.back(), gap, low, high);
    while (clusters.size() > 1) {
      Cluster& above = clusters[clusters.size() - 2];
      const Cluster& below = clusters.back();
      if (above.last(gap) + gap <= below.first(gap) + 1e-9) break;
      const auto a = static_cast<double>(above.count);
      const auto b = static_cast<double>(below.count);
      above.centre = (a * above.centre + b * below.centre) / (a + b);
      above.count += below.count;
      clusters.pop_back();
      keep_within(clusters.back(), gap, low, high);
    }
  }
  std::vector<double> placed(wanted.size());
  std::size_t next = 0;
  for (const Cluster& cluster : clusters) {
    for (std::size_t i = 0; i < cluster.count; ++i)
      placed[order[next++]] = cluster.first(gap) + gap * static_cast<double>(i);
  }
  return placed;
}

std::vector<std::optional<LabelPlace>> place_labels(const std::vector<LabelledPoint>& points,
                                                    const Box& frame, double distance) {
  LabelPlacer placer(points, frame, distance);
  std::vector<std::optional<LabelPlace>> places(points.size());
  for (const double distances : {1.0, 2.0, 3.0, 4.5, 6.0, 8.0, 11.0}) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!places[i]) places[i] = placer.place(points[i], distances);
    }
  }
  return places;
}

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
