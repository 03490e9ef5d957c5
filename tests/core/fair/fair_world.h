#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/explore/certain_orders.h"
#include "core/explore/exploring_list.h"
#include "core/fair/fair_swap.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// A query with random scores, widths and groups.
struct FairWorld {
  std::vector<std::int32_t> by_score;
  std::vector<std::int32_t> ends;
  OrderBits orders;
  std::vector<DocGroup> groups;

  std::vector<std::int32_t> list;  // places in order

  GroupedBlocks blocks(bool uniform = true) const {
    return {by_score, ends, &orders, groups, list, uniform};
  }

  /// An order is certain where scores differ by more than a width, drawn in [0, `width`) for each pair.
  static FairWorld random(std::int64_t docs, double width, double share_of_a, std::uint32_t number) {
    RngStream random(make_key({.seed = 30, .purpose = Purpose::kProbe}), number);
    FairWorld world;
    std::vector<double> scores(docs);
    for (double& score : scores) score = random.uniform();
    world.by_score.resize(docs);
    std::iota(world.by_score.begin(), world.by_score.end(), 0);
    std::sort(world.by_score.begin(), world.by_score.end(),
              [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
    world.orders.reset(docs);
    for (std::int64_t a = 0; a < docs; ++a) {
      for (std::int64_t b = a + 1; b < docs; ++b) {
        const double difference = scores[world.by_score[a]] - scores[world.by_score[b]];
        if (difference > width * random.uniform()) world.orders.set(a, b);
      }
    }
    find_blocks(world.orders, world.ends);
    world.list.resize(docs);
    std::iota(world.list.begin(), world.list.end(), 0);
    for (std::int64_t doc = 0; doc < docs; ++doc)
      world.groups.push_back(random.uniform() < share_of_a ? DocGroup::kA : DocGroup::kB);
    return world;
  }

  /// The certain orders are those between blocks of these sizes.
  static FairWorld of_blocks(const std::vector<std::int64_t>& sizes, std::vector<DocGroup> groups) {
    FairWorld world;
    const auto docs = std::ssize(groups);
    world.groups = std::move(groups);
    world.by_score.resize(docs);
    std::iota(world.by_score.begin(), world.by_score.end(), 0);
    world.list = world.by_score;
    world.orders.reset(docs);
    std::int64_t end = 0;
    for (const std::int64_t size : sizes) {
      for (std::int64_t a = end; a < end + size; ++a) {
        for (std::int64_t b = end + size; b < docs; ++b) world.orders.set(a, b);
      }
      end += size;
      world.ends.push_back(static_cast<std::int32_t>(end));
    }
    return world;
  }

  std::int64_t count_of(DocGroup group) const { return std::count(groups.begin(), groups.end(), group); }
  TemplatePattern pattern_of(const std::vector<std::int32_t>& list, int length) const {
    TemplatePattern pattern = 0;
    for (int place = 0; place < length; ++place) {
      if (groups[by_score[list[place]]] == DocGroup::kA) pattern |= TemplatePattern{1} << place;
    }
    return pattern;
  }
};

inline PhiloxKey choice_key() {
  return make_key({.seed = 2, .purpose = Purpose::kTemplate});
}

inline ExposureRule rule_of(int places, const std::vector<double>& beta, double epsilon) {
  ExposureRule rule{{}, beta, epsilon};
  for (int rank = 1; rank <= places; ++rank) rule.examination.push_back(1.0 / std::sqrt(rank));
  return rule;
}

/// The obvious count of (i, j) with i certainly before j and j ranked before i.
inline std::int64_t slow_violated(const OrderBits& orders, const std::vector<std::int32_t>& list) {
  std::int64_t violated = 0;
  for (std::size_t first = 0; first < list.size(); ++first) {
    for (std::size_t second = first + 1; second < list.size(); ++second)
      violated += list[second] < list[first] && orders.certain(list[second], list[first]) ? 1 : 0;
  }
  return violated;
}

inline bool is_permutation_of_places(std::vector<std::int32_t> list, std::int64_t docs) {
  std::sort(list.begin(), list.end());
  for (std::int32_t place = 0; place < std::ssize(list); ++place) {
    if (list[place] != place) return false;
  }
  return std::ssize(list) == docs;
}

}  // namespace olrank
