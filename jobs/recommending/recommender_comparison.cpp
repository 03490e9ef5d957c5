#include "jobs/recommending/recommender_comparison.h"

#include <fmt/format.h>

#include <cassert>
#include <nlohmann/json.hpp>

#include "core/io/json.h"
#include "report/paired_comparison.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

void add_tests(const std::vector<std::vector<double>>& first, const std::vector<std::vector<double>>& other,
               std::vector<PairedComparison>& tests) {
  for (std::size_t cutoff = 0; cutoff < first.size(); ++cutoff) {
    assert(first[cutoff].size() == other[cutoff].size());
    std::vector<double> differences = other[cutoff];
    for (std::size_t user = 0; user < differences.size(); ++user) differences[user] -= first[cutoff][user];
    tests.push_back(compared(1, 0, {std::move(differences)}));
  }
}

}  // namespace

std::vector<ordered_json> compared_with_first(std::span<const RankingFigures> judged) {
  std::vector<PairedComparison> tests;
  for (std::size_t other = 1; other < judged.size(); ++other) {
    add_tests(judged[0].ndcg, judged[other].ndcg, tests);
    add_tests(judged[0].hits, judged[other].hits, tests);
  }
  correct(tests);
  std::vector<ordered_json> comparisons;
  auto test = tests.begin();
  for (std::size_t other = 1; other < judged.size(); ++other) {
    ordered_json& comparison = comparisons.emplace_back(ordered_json::object());
    for (const char* metric : {"ndcg", "hit"}) {
      for (const std::int64_t cutoff : judged[0].cutoffs) {
        comparison[fmt::format("{}@{}", metric, cutoff)] = {
            {"difference", number_or_null(test->test.difference.mean)},
            {"p", number_or_null(test->test.t_p)},
            {"p_holm", number_or_null(test->t_holm)}};
        ++test;
      }
    }
  }
  return comparisons;
}

}  // namespace olrank
