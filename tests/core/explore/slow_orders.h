#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/explore/certain_orders.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// 0, 1, 2, … up to so many documents or places.
inline std::vector<std::int32_t> first_places(std::size_t count) {
  std::vector<std::int32_t> places(count);
  std::iota(places.begin(), places.end(), 0);
  return places;
}

/// Certain orders as a table: certain[a][b] by place.
using OrderTable = std::vector<std::vector<bool>>;

inline OrderTable table_of(const OrderBits& orders) {
  const auto docs = static_cast<std::size_t>(orders.docs());
  OrderTable table(docs, std::vector<bool>(docs, false));
  for (std::size_t a = 0; a < docs; ++a) {
    for (std::size_t b = 0; b < docs; ++b) table[a][b] = orders.certain(a, b);
  }
  return table;
}

inline OrderBits bits_of(const OrderTable& table) {
  OrderBits orders;
  orders.reset(std::ssize(table));
  for (std::size_t a = 0; a < table.size(); ++a) {
    for (std::size_t b = a + 1; b < table.size(); ++b)
      if (table[a][b]) orders.set(a, b);
  }
  return orders;
}

/// Each order that the scores allow is certain with probability `share`.
inline OrderTable random_table(RngStream& coins, std::size_t docs, double share) {
  OrderTable table(docs, std::vector<bool>(docs, false));
  for (std::size_t a = 0; a < docs; ++a) {
    for (std::size_t b = a + 1; b < docs; ++b) table[a][b] = coins.uniform() < share;
  }
  return table;
}

/// The places of [begin, end) that are not taken and that no other such place is certainly before.
inline std::vector<std::int32_t> slow_available(const OrderTable& table, const std::vector<bool>& taken,
                                                std::size_t begin, std::size_t end) {
  std::vector<std::int32_t> found;
  for (std::size_t place = begin; place < end; ++place) {
    bool free = !taken[place];
    for (std::size_t above = begin; above < place; ++above)
      free = free && (taken[above] || !table[above][place]);
    if (free) found.push_back(static_cast<std::int32_t>(place));
  }
  return found;
}

/// Warshall, "A theorem on Boolean matrices", JACM 1962.
inline OrderTable slow_closure(OrderTable table) {
  for (std::size_t via = 0; via < table.size(); ++via) {
    for (std::size_t a = 0; a < table.size(); ++a) {
      if (!table[a][via]) continue;
      for (std::size_t b = 0; b < table.size(); ++b) {
        if (table[via][b]) table[a][b] = true;
      }
    }
  }
  return table;
}

/// Blocks by their definition, top first, each with rising places: connected components of uncertain pairs,
/// a graph of certain orders between components, its cycles contracted, what remains in topological order.
inline std::vector<std::vector<std::int32_t>> slow_blocks(const OrderTable& table) {
  const std::size_t docs = table.size();
  std::vector<std::size_t> component(docs);
  std::iota(component.begin(), component.end(), std::size_t{0});
  const auto join = [&](std::size_t from, std::size_t to) {
    for (std::size_t& of : component) of = of == from ? to : of;
  };
  for (std::size_t a = 0; a < docs; ++a) {
    for (std::size_t b = 0; b < docs; ++b) {
      if (a != b && !table[a][b] && !table[b][a] && component[a] != component[b]) {
        join(component[a], component[b]);
      }
    }
  }
  OrderTable reaches(docs, std::vector<bool>(docs, false));
  for (std::size_t a = 0; a < docs; ++a) {
    for (std::size_t b = 0; b < docs; ++b) {
      if (table[a][b] && component[a] != component[b]) reaches[component[a]][component[b]] = true;
    }
  }
  reaches = slow_closure(reaches);
  for (std::size_t a = 0; a < docs; ++a) {
    for (std::size_t b = 0; b < docs; ++b) {
      const std::size_t p = component[a];
      const std::size_t q = component[b];
      if (p != q && reaches[p][q] && reaches[q][p]) {
        join(p, q);
        for (std::size_t c = 0; c < docs; ++c) {
          if (reaches[p][c]) reaches[q][c] = true;
          if (reaches[c][p]) reaches[c][q] = true;
        }
      }
    }
  }
  std::vector<std::vector<std::int32_t>> blocks;
  for (std::size_t label = 0; label < docs; ++label) {
    std::vector<std::int32_t> members;
    for (std::size_t a = 0; a < docs; ++a) {
      if (component[a] == label) members.push_back(static_cast<std::int32_t>(a));
    }
    if (!members.empty()) blocks.push_back(members);
  }
  // A topological order: whatever is reached by nothing that is left comes next.
  std::vector<std::vector<std::int32_t>> sorted;
  while (!blocks.empty()) {
    const auto next = std::find_if(blocks.begin(), blocks.end(), [&](const auto& block) {
      const std::size_t own = component[block.front()];
      return std::none_of(blocks.begin(), blocks.end(), [&](const auto& other) {
        const std::size_t above = component[other.front()];
        return above != own && reaches[above][own];
      });
    });
    if (next == blocks.end()) return {};  // a cycle is left: equal to no partition
    sorted.push_back(*next);
    blocks.erase(next);
  }
  return sorted;
}

}  // namespace olrank
