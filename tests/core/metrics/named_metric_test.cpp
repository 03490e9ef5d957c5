#include "core/metrics/metric_options.h"

#include <gtest/gtest.h>

#include "core/metrics/evaluator.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

TEST(NamedMetric, ReadsBackEveryName) {
  for (const char* name :
       {"ndcg@5", "dcg@1", "err@10", "p@3", "map", "map@10", "mrr", "mrr@10", "arp", "pair_accuracy"}) {
    const auto metric = metric_named(name);
    ASSERT_TRUE(metric) << name;
    EXPECT_EQ(metric->name(), name);
  }
}

TEST(NamedMetric, SortsByKindAndThenByCutoff) {
  EXPECT_LT(*metric_named("ndcg@5"), *metric_named("ndcg@10"));
  EXPECT_LT(*metric_named("ndcg@10"), *metric_named("map"));
}

TEST(NamedMetric, RefusesOtherNamesWithTheValidOnes) {
  const auto message = [](const std::string& name) {
    return message_of<InvalidArgument>([&] { parse_metrics(std::vector{name}, "protocol.metrics"); });
  };
  EXPECT_EQ(
      message("ndgc@5"),
      "protocol.metrics: Unknown metric 'ndgc@5'. Did you mean 'ndcg'? The metrics are ndcg@K, dcg@K, "
      "err@K, p@K, map, map@K, mrr, mrr@K, arp and pair_accuracy, with a cutoff K of at least 1.");
  EXPECT_EQ(message("ndcg"), "protocol.metrics: 'ndcg' needs a cutoff: write ndcg@10, for example.");
  EXPECT_EQ(message("arp@3"), "protocol.metrics: 'arp@3' has no cutoff: write arp.");
  for (const char* name : {"ndcg@0", "ndcg@-1", "ndcg@", "map@x", "p@5x", "err@99999999999999999999"})
    EXPECT_NE(message(name).find("must be an integer from 1 to 1000000000"), std::string::npos) << name;
  const std::vector<std::string> twice = {"map", "mrr", "map"};
  EXPECT_EQ(message_of<InvalidArgument>([&] { parse_metrics(twice, "x"); }),
            "x: The metric 'map' is listed twice. Remove one of them.");
}

}  // namespace
}  // namespace olrank
