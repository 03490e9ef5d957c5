#include "serve/page_figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "core/io/json.h"

namespace olrank {
namespace {

std::string share_json(std::int64_t certain_pairs, std::int64_t shown_pairs) {
  if (shown_pairs == 0) return "null";
  return fmt::format("{}", static_cast<double>(certain_pairs) / static_cast<double>(shown_pairs));
}

std::string ids_json(std::span<const DocId> docs) {
  std::string out = "[";
  for (const DocId& doc : docs) {
    if (out.size() > 1) out += ',';
    append_json_id(out, doc);
  }
  return out + "]";
}

void append_list(std::string& out, const RecentLists::List& list, RecentLists::Clock::time_point now) {
  out += fmt::format(
      "{{\"impression\":{},\"query\":{},\"seconds_ago\":{:.1f},\"round\":{},\"shown\":{},\"docs\":{},"
      "\"certain_share\":{},\"clicks\":{}}}",
      json_string(list.impression), json_string(list.query),
      std::chrono::duration<double>(now - list.since).count(), list.round, list.shown, ids_json(list.docs),
      list.certainty ? share_json(list.certainty->certain_pairs, list.certainty->shown_pairs) : "null",
      list.clicks ? fmt::format("[{}]", fmt::join(*list.clicks, ",")) : "null");
}

}  // namespace

void RecentLists::add(List list) {
  if (list.docs.size() > kDocs) list.docs.resize(kDocs);
  const std::lock_guard lock(mutex_);
  Period& period = periods_.next();
  if (list.certainty) period += {list.certainty->certain_pairs, list.certainty->shown_pairs};
  if (lists_.size() == kLists) lists_.pop_back();
  lists_.push_front(std::move(list));
}

void RecentLists::add_clicks(const std::string& impression, std::span<const std::uint8_t> clicks) {
  const std::lock_guard lock(mutex_);
  for (List& list : lists_) {
    if (list.impression != impression) continue;
    list.clicks.emplace(clicks.begin(), clicks.begin() + std::min(clicks.size(), list.docs.size()));
    return;
  }
}

std::string RecentLists::lists_json(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  std::string out = "[";
  for (const List& list : lists_) {
    if (out.size() > 1) out += ',';
    append_list(out, list, now);
  }
  return out + "]";
}

std::string RecentLists::history_json() const {
  const std::lock_guard lock(mutex_);
  std::string out = "[";
  std::uint64_t lists = 0;
  for (const Period& period : periods_.complete()) {
    out += fmt::format("{}{{\"lists\":{},\"certain_share\":{}}}", lists > 0 ? "," : "",
                       lists + periods_.length(), share_json(period.certain_pairs, period.shown_pairs));
    lists += periods_.length();
  }
  return out + "]";
}

void ClickCurve::Period::operator+=(const Period& other) {
  for (const auto& [name, more] : other.arms) {
    Sums& sums = arms[name];
    sums.lists += more.lists;
    sums.clicks += more.clicks;
    sums.squares += more.squares;
  }
}

void ClickCurve::count(std::string_view arm, std::span<const std::uint8_t> clicks) {
  const std::int64_t clicked = std::count(clicks.begin(), clicks.end(), 1);
  const std::lock_guard lock(mutex_);
  Period& period = periods_.next();
  auto place = period.arms.find(arm);
  if (place == period.arms.end()) place = period.arms.emplace(arm, Sums{}).first;
  ++place->second.lists;
  place->second.clicks += clicked;
  place->second.squares += clicked * clicked;
}

std::string ClickCurve::json() const {
  constexpr double kNormal95 = 1.959964;
  const std::lock_guard lock(mutex_);
  std::string out = "[";
  std::uint64_t lists = 0;
  for (const Period& period : periods_.complete()) {
    lists += periods_.length();
    out += fmt::format("{}{{\"lists\":{},\"arms\":{{", out.size() > 1 ? "," : "", lists);
    bool first = true;
    for (const auto& [name, sums] : period.arms) {
      if (sums.lists < 2) continue;
      const auto n = static_cast<double>(sums.lists);
      const double mean = static_cast<double>(sums.clicks) / n;
      const double variance = (static_cast<double>(sums.squares) - n * mean * mean) / (n - 1);
      const double half = kNormal95 * std::sqrt(std::max(variance, 0.0) / n);
      out += fmt::format("{}{}:{{\"lists\":{},\"clicks\":{:.4f},\"low\":{:.4f},\"high\":{:.4f}}}",
                         first ? "" : ",", json_string(name), sums.lists, mean, mean - half, mean + half);
      first = false;
    }
    out += "}}";
  }
  return out + "]";
}

void AskedQueries::count(const std::string& query, std::span<const DocId> docs,
                         std::span<const std::int32_t> best, std::span<const std::int32_t> own) {
  const auto ids = [&](std::span<const std::int32_t> list) {
    std::vector<DocId> names;
    for (const std::int32_t doc : list.first(std::min<std::size_t>(list.size(), kDocs)))
      names.push_back(docs[doc]);
    return names;
  };
  const std::lock_guard lock(mutex_);
  auto place = queries_.find(query);
  if (place == queries_.end()) {
    std::int64_t lists = 0;
    if (queries_.size() == kKept) {
      const auto rarest =
          std::min_element(queries_.begin(), queries_.end(),
                           [](const auto& a, const auto& b) { return a.second.lists < b.second.lists; });
      lists = rarest->second.lists;
      queries_.erase(rarest);
    }
    place = queries_.emplace(query, Query{lists, lists, {}, {}}).first;
  }
  ++place->second.lists;
  place->second.best = ids(best);
  place->second.own = ids(own);
}

std::string AskedQueries::json() const {
  const std::lock_guard lock(mutex_);
  std::vector<const std::pair<const std::string, Query>*> most;
  for (const auto& one : queries_) {
    if (2 * one.second.maybe <= one.second.lists) most.push_back(&one);
  }
  const auto sure = [](const Query& query) { return query.lists - query.maybe; };
  const auto end = most.begin() + static_cast<std::int64_t>(std::min(most.size(), kTold));
  std::partial_sort(most.begin(), end, most.end(), [&](const auto* a, const auto* b) {
    return std::pair(-sure(a->second), std::string_view(a->first)) <
           std::pair(-sure(b->second), std::string_view(b->first));
  });
  std::string out = "[";
  for (auto one = most.begin(); one != end; ++one) {
    const auto& [query, about] = **one;
    out += fmt::format("{}{{\"query\":{},\"lists\":{},\"best\":{},\"own\":{}}}", out.size() > 1 ? "," : "",
                       json_string(query), sure(about), ids_json(about.best),
                       about.own.empty() ? "null" : ids_json(about.own));
  }
  return out + "]";
}

void FeatureEffects::take(FeatureMatrix raw, Clock::time_point now) {
  const std::int64_t docs = std::min({raw.docs, kDocs, kValues / raw.features});
  if (docs < 2) return;
  const std::lock_guard lock(mutex_);
  if (taken_ && now - *taken_ < kInterval) return;
  taken_ = now;
  List list;
  list.docs = docs;
  for (std::int64_t doc = 0; doc < list.docs; ++doc) {
    const float* row = raw.values + doc * raw.docs / list.docs * raw.features;
    list.values.insert(list.values.end(), row, row + raw.features);
  }
  if (lists_.size() == kLists) lists_.pop_back();
  lists_.push_front(std::move(list));
}

std::vector<FeatureEffects::Effect> FeatureEffects::of(const ModelScorer& model) const {
  std::deque<List> lists;
  {
    const std::lock_guard lock(mutex_);
    lists = lists_;
  }
  const std::int64_t features = model.features();
  struct Sums {
    double squares = 0.0;  // of what the feature adds
    double value_squares = 0.0;
    double products = 0.0;
  };
  // A score of another program's model takes about as many steps as a hundred numbers.
  std::int64_t of_score = model.model().external ? 100 : features;
  for (const std::vector<float>& member : model.model().members) of_score += std::ssize(member);
  std::vector<Sums> sums(features);
  Scratch scratch;
  std::int64_t left = kProducts;
  for (const List& list : lists) {
    const std::int64_t docs = list.docs;
    const std::int64_t size = docs * features;
    if (std::ssize(list.values) != size) continue;  // it was asked for before the features changed
    if (size > left / of_score) break;
    left -= size * of_score;
    for (std::int64_t begin = 0; begin < features; begin += kColumns) {
      const std::int64_t columns = std::min(kColumns, features - begin);
      // The list as it is, and once for each of the columns with the column's mean in it.
      std::vector<float> rows;
      std::vector<std::int64_t> offsets = {0};
      std::vector<double> means(columns);
      for (std::int64_t copy = 0; copy <= columns; ++copy) {
        rows.insert(rows.end(), list.values.begin(), list.values.end());
        offsets.push_back(offsets.back() + docs);
        if (copy == 0) continue;
        const std::int64_t column = begin + copy - 1;
        double& mean = means[copy - 1];
        for (std::int64_t doc = 0; doc < docs; ++doc)
          mean += list.values[doc * features + column] / static_cast<double>(docs);
        for (std::int64_t doc = 0; doc < docs; ++doc)
          rows[copy * size + doc * features + column] = static_cast<float>(mean);
      }
      std::vector<double> scores(offsets.back());
      model.score(scratch, {rows.data(), offsets.back(), features}, offsets, scores);
      for (std::int64_t copy = 1; copy <= columns; ++copy) {
        std::vector<double> added(docs);
        for (std::int64_t doc = 0; doc < docs; ++doc) added[doc] = scores[doc] - scores[copy * docs + doc];
        const double usual = std::accumulate(added.begin(), added.end(), 0.0) / static_cast<double>(docs);
        Sums& sum = sums[begin + copy - 1];
        for (std::int64_t doc = 0; doc < docs; ++doc) {
          const double more = added[doc] - usual;
          const double value = list.values[doc * features + begin + copy - 1] - means[copy - 1];
          sum.squares += more * more;
          sum.value_squares += value * value;
          sum.products += more * value;
        }
      }
    }
  }
  double all = 0.0;
  for (const Sums& sum : sums) all += std::sqrt(sum.squares);
  std::vector<Effect> effects;
  for (std::int64_t feature = 0; feature < features && all > 0.0; ++feature) {
    const Sums& sum = sums[feature];
    const double scale = std::sqrt(sum.squares * sum.value_squares);
    if (sum.squares > 0.0)
      effects.push_back({feature, std::sqrt(sum.squares) / all, scale > 0.0 ? sum.products / scale : 0.0});
  }
  std::stable_sort(effects.begin(), effects.end(),
                   [](const Effect& a, const Effect& b) { return a.share > b.share; });
  return effects;
}

}  // namespace olrank
