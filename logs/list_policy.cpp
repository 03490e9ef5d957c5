#include "logs/list_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "core/error.h"

namespace olrank {

ListPolicy ListPolicy::parse(const std::string& text) {
  if (text == "greedy") return {Kind::kGreedy};
  if (text == "plackett-luce") return {Kind::kPlackettLuce};
  if (text == "incumbent") return {Kind::kIncumbent};
  if (text == "candidate") return {Kind::kCandidate};
  constexpr std::string_view kEpsilon = "epsilon=";
  if (text.starts_with(kEpsilon)) {
    char* end = nullptr;
    const double epsilon = std::strtod(text.c_str() + kEpsilon.size(), &end);
    if (*end == '\0' && end != text.c_str() + kEpsilon.size() && epsilon >= 0.0 && epsilon <= 1.0)
      return {Kind::kEpsilon, epsilon};
    throw InvalidArgument(fmt::format("--policy {}: ε must be a number from 0 to 1.", text));
  }
  throw InvalidArgument(
      fmt::format("--policy must be greedy, plackett-luce, epsilon=0.1, incumbent or candidate, not '{}': "
                  "other lists have no "
                  "probabilities that follow from scores.",
                  text));
}

std::string ListPolicy::name() const {
  switch (kind) {
    case Kind::kGreedy:
      return "greedy";
    case Kind::kPlackettLuce:
      return "plackett-luce";
    case Kind::kEpsilon:
      return fmt::format("epsilon={}", epsilon);
    case Kind::kIncumbent:
      return "incumbent";
    case Kind::kCandidate:
      return "candidate";
  }
  return "";
}

void ListPolicy::probabilities(std::span<const double> scores, std::span<const std::int32_t> list,
                               std::span<double> probabilities) const {
  std::vector<bool> placed(scores.size(), false);
  for (std::size_t rank = 0; rank < list.size(); ++rank) {
    const auto left = static_cast<double>(scores.size() - rank);
    double sum = 0.0;    // of e^(score − that of the list's document) over those left
    double equal = 0.0;  // documents left with its score; any of them may come first
    bool best = true;
    const double mine = scores[list[rank]];
    for (std::size_t doc = 0; doc < scores.size(); ++doc) {
      if (placed[doc]) continue;
      if (kind == Kind::kPlackettLuce) sum += std::exp(scores[doc] - mine);
      equal += scores[doc] == mine ? 1.0 : 0.0;
      best = best && scores[doc] <= mine;
    }
    placed[list[rank]] = true;
    if (kind == Kind::kPlackettLuce) {
      probabilities[rank] = 1.0 / sum;
    } else {
      probabilities[rank] = (best ? (1.0 - epsilon) / equal : 0.0) + epsilon / left;
    }
  }
}

void ListPolicy::draw(std::span<const double> scores, RngStream& coins,
                      std::span<std::int32_t> list) const {
  // Plackett-Luce lists are in the order of scores with Gumbel noise (Yellott 1977); a second key orders
  // equal scores by chance.
  std::vector<std::pair<double, double>> keys;
  keys.reserve(scores.size());
  for (const double score : scores) {
    const double coin = coins.uniform();
    keys.emplace_back(kind == Kind::kPlackettLuce ? score - std::log(-std::log1p(-coin)) : score, coin);
  }
  std::vector<std::int32_t> left(scores.size());
  for (std::size_t doc = 0; doc < left.size(); ++doc) left[doc] = static_cast<std::int32_t>(doc);
  const auto is_before = [&](std::int32_t a, std::int32_t b) { return keys[a] > keys[b]; };
  const auto sorted = kind == Kind::kEpsilon ? left.size() : std::min(list.size(), left.size());
  std::partial_sort(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(sorted), left.end(),
                    is_before);
  for (std::size_t rank = 0; rank < list.size(); ++rank) {
    if (kind == Kind::kEpsilon && coins.uniform() < epsilon) {
      const auto chosen =
          left.begin() +
          static_cast<std::ptrdiff_t>(rank + coins.index(static_cast<std::uint32_t>(left.size() - rank)));
      std::rotate(left.begin() + static_cast<std::ptrdiff_t>(rank), chosen, chosen + 1);
    }
    list[rank] = left[rank];
  }
}

}  // namespace olrank
