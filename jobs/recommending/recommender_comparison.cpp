#include "jobs/recommending/recommender_comparison.h"

#include <fmt/format.h>

#include <cassert>
#include <nlohmann/json.hpp>

#include "core/io/json.h"
#include "core/statistics/holm.h"
#include "core/statistics/paired_test.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

struct FigureTest {
  std::string name;
  double difference = 0.0;
  double p = 0.0;
};

void add_tests(const char* metric, const std::vector<std::int64_t>& cutoffs,
               const std::vector<std::vector<double>>& first, const std::vector<std::vector<double>>& other,
               std::vector<FigureTest>& tests) {
  for (std::size_t cutoff = 0; cutoff < cutoffs.size(); ++cutoff) {
    assert(first[cutoff].size() == other[cutoff].size());
    std::vector<double> differences = other[cutoff];
    for (std::size_t user = 0; user < differences.size(); ++user) differences[user] -= first[cutoff][user];
    tests.push_back(
        {fmt::format("{}@{}", metric, cutoffs[cutoff]), mean_of(differences), paired_t_p(differences)});
  }
}

}  // namespace

std::vector<ordered_json> compared_with_first(std::span<const RankingFigures> judged) {
  std::vector<FigureTest> tests;
  for (std::size_t other = 1; other < judged.size(); ++other) {
    add_tests("ndcg", judged[0].cutoffs, judged[0].ndcg, judged[other].ndcg, tests);
    add_tests("hit", judged[0].cutoffs, judged[0].hits, judged[other].hits, tests);
  }
  std::vector<double> p_values;
  p_values.reserve(tests.size());
  for (const FigureTest& test : tests) p_values.push_back(test.p);
  const std::vector<double> adjusted = holm_adjusted(p_values);
  std::vector<ordered_json> comparisons;
  for (std::size_t place = 0; place < tests.size(); ++place) {
    if (place % (2 * judged[0].cutoffs.size()) == 0) comparisons.emplace_back(ordered_json::object());
    comparisons.back()[tests[place].name] = {{"difference", number_or_null(tests[place].difference)},
                                             {"p", number_or_null(tests[place].p)},
                                             {"p_holm", number_or_null(adjusted[place])}};
  }
  return comparisons;
}

}  // namespace olrank
