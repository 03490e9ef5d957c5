#include "models/clickgp/click_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "core/online/model_bytes.h"
#include "core/random/rng_stream.h"
#include "models/clickgp/clickgp.h"
#include "models/model_file.h"
#include "models/ranker_factory.h"
#include "tests/models/small_world.h"

namespace olrank {
namespace {

constexpr std::int64_t kProductQueries = 40;
constexpr std::int64_t kProductDocs = 15;
constexpr std::int64_t kProductInputs = 5;
constexpr std::int64_t kProductShown = 6;

/// Documents that are relevant where inputs 1 and 3 are both large or both small.
struct ProductWorld {
  std::vector<float> values;

  ProductWorld() {
    RngStream draws(make_key({.seed = 12, .purpose = Purpose::kSynthetic}), 0);
    for (std::int64_t i = 0; i < kProductQueries * kProductDocs * kProductInputs; ++i)
      values.push_back(static_cast<float>(draws.uniform()));
  }

  QueryDocs query(std::int64_t number) const {
    return {number,
            number * kProductDocs,
            {values.data() + number * kProductDocs * kProductInputs, kProductDocs, kProductInputs}};
  }
  double relevance(std::int64_t query, std::int64_t doc) const {
    const float* row = values.data() + (query * kProductDocs + doc) * kProductInputs;
    return (2.0 * row[1] - 1.0) * (2.0 * row[3] - 1.0);
  }
};

const ProductWorld& product_world() {
  static const ProductWorld made;
  return made;
}

std::unique_ptr<OnlineRanker> make_product_ranker(ClickTerms terms, double memory_limit = 0.0) {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kClickGp, ProtocolName::kPaper);
  settings.name = "clicks";
  settings.click.terms = terms;
  settings.click.memory_limit = memory_limit;
  return make_ranker(settings, kProductInputs, TrialKeys::of(3, 1, "clicks"), kProductShown);
}

void play_products(OnlineRanker& ranker, std::uint32_t first, std::uint32_t last, int threads = 1) {
  ExecutionContext execution(threads);
  StageClock clock;
  RoundContext context{execution, clock};
  for (std::uint32_t round = first; round <= last; ++round) {
    const QueryDocs query = product_world().query(round % kProductQueries);
    const RankedList list = ranker.rank(context, query, round);
    const std::vector<std::int32_t> shown(list.docs.begin(), list.docs.begin() + kProductShown);
    RngStream coins(make_key({.seed = 8, .purpose = Purpose::kProbe}), round);
    std::vector<std::uint8_t> clicks;
    for (const std::int32_t doc : shown) {
      const bool relevant = product_world().relevance(query.query, doc) > 0.05;
      clicks.push_back(coins.uniform() < (relevant ? 0.9 : 0.1) ? 1 : 0);
    }
    ranker.learn(context, {round, query, shown, clicks});
  }
}

std::string product_state_of(const OnlineRanker& ranker) {
  StateWriter state;
  ranker.save(state);
  return state.bytes();
}

/// The share of pairs of documents, of different relevance, that the model orders well.
double ordered_share(const OnlineRanker& ranker) {
  ExecutionContext context;
  double right = 0.0;
  double pairs = 0.0;
  for (std::int64_t query = 0; query < kProductQueries; ++query) {
    std::vector<float> scores(kProductDocs);
    ranker.score(context, product_world().query(query).features, scores);
    for (std::int64_t i = 0; i < kProductDocs; ++i) {
      for (std::int64_t j = 0; j < kProductDocs; ++j) {
        if (product_world().relevance(query, i) < product_world().relevance(query, j) + 0.1) continue;
        pairs += 1.0;
        right += scores[i] > scores[j] ? 1.0 : 0.0;
      }
    }
  }
  return right / pairs;
}

TEST(ClickProductsTest, ExplainsWhatNoSingleInputDoes) {
  const auto additive = make_product_ranker(ClickTerms::kAdditive);
  const auto products = make_product_ranker(ClickTerms::kProducts);
  play_products(*additive, 1, 300);
  play_products(*products, 1, 300);
  EXPECT_LT(ordered_share(*additive), 0.7);
  EXPECT_GT(ordered_share(*products), 0.9);
}

TEST(ClickProductsTest, ThreadsAndRestartsChangeNothing) {
  const auto whole = make_product_ranker(ClickTerms::kProducts);
  play_products(*whole, 1, 90);
  const auto threads = make_product_ranker(ClickTerms::kProducts);
  play_products(*threads, 1, 90, 3);
  EXPECT_EQ(product_state_of(*whole), product_state_of(*threads));
  for (const std::uint32_t stop : {3U, 21U, 57U}) {
    const auto first = make_product_ranker(ClickTerms::kProducts);
    play_products(*first, 1, stop);
    const auto second = make_product_ranker(ClickTerms::kProducts);
    StateReader state(product_state_of(*first), "test");
    second->load(state);
    state.require_end();
    play_products(*second, stop + 1, 90);
    EXPECT_EQ(product_state_of(*whole), product_state_of(*second)) << stop;
  }
}

TEST(ClickProductsTest, ModelIsTheScoreThatIsExported) {
  const auto ranker = make_product_ranker(ClickTerms::kProducts);
  play_products(*ranker, 1, 120);
  const ModelTensors model = ranker->model();
  ASSERT_EQ(model.tensors.size(), 3U);
  const LoadedModel loaded = parse_model(model_bytes(model, {}), "test");
  ASSERT_FALSE(loaded.normaliser.products.empty());
  const QueryDocs query = product_world().query(7);
  std::vector<float> scores(kProductDocs);
  ExecutionContext context;
  ranker->score(context, query.features, scores);
  std::vector<float> inputs(kProductDocs * loaded.normaliser.inputs());
  loaded.normaliser.apply(query.features, inputs.data());
  for (std::int64_t doc = 0; doc < kProductDocs; ++doc) {
    const auto row = inputs.begin() + doc * loaded.normaliser.inputs();
    const double sum =
        std::inner_product(row, row + loaded.normaliser.inputs(), loaded.members.front().begin(), 0.0);
    EXPECT_NEAR(scores[doc], sum, 1e-5);
  }
}

TEST(ClickProductsTest, RemembersWhatForgottenQueriesTaught) {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kClickGp, ProtocolName::kPaper);
  settings.click.terms = ClickTerms::kProducts;
  const double of_query = clickgp_bytes(settings, kProductInputs, kProductShown + 3, 1.0);
  const auto ranker = make_product_ranker(ClickTerms::kProducts, 25.0 * of_query / 1e6);
  play_products(*ranker, 1, 400);
  EXPECT_GT(ordered_share(*ranker), 0.85);
}

/// Sites of random documents, as a belief without a weight but the constant's finds them.
KnownQuery random_known(RngStream& draws, std::int64_t inputs, std::int64_t docs) {
  KnownQuery known;
  known.sites.resize(1);
  KnownQuery::Site& site = known.sites.front();
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    known.add(doc, inputs);
    site.curvature.push_back(0.1 + draws.uniform());
    site.evidence.push_back(draws.normal());
    site.coupling = 0.05;
  }
  site.departure.assign(docs, 0.0);
  site.examined.assign(docs, 1.0);
  for (float& value : known.scaled) value = static_cast<float>(draws.uniform());
  known.means.assign(inputs, 0.4F);
  return known;
}

TEST(ClickProductsTest, TakesTheSteepestPairsAndKeepsTheirPlaces) {
  constexpr std::int64_t kInputs = 4;
  RngStream draws(make_key({.seed = 2, .purpose = Purpose::kProbe}), 0);
  std::vector<KnownQuery> known;
  for (std::int64_t query = 0; query < 30; ++query)
    known.push_back(random_known(draws, kInputs, 1 + query % 7));
  // Two products tell the evidence.
  std::vector<ClickMemory::Entry> entries;
  for (KnownQuery& query : known) {
    for (std::size_t doc = 0; doc < query.docs.size(); ++doc) {
      const float* x = query.scaled.data() + doc * kInputs;
      query.sites.front().evidence[doc] +=
          9.0 * (x[0] - 0.5) * (x[2] - 0.5) - 7.0 * (x[1] - 0.5) * (x[3] - 0.5);
    }
    entries.push_back({std::ssize(entries), &query});
  }

  std::vector<double> centres(kInputs);
  double docs = 0.0;
  for (const KnownQuery& query : known) {
    for (std::size_t i = 0; i < query.scaled.size(); ++i) centres[i % kInputs] += query.scaled[i];
    docs += static_cast<double>(query.docs.size());
  }
  for (double& centre : centres) centre /= docs;
  std::vector<std::tuple<double, std::int32_t, std::int32_t>> slow;
  constexpr double kConstant = -0.5;  // m of every document
  for (std::int32_t i = 0; i < kInputs; ++i) {
    for (std::int32_t j = i; j < kInputs; ++j) {
      double gradient = 0.0;
      double square = 0.0;
      for (const KnownQuery& query : known) {
        const KnownQuery::Site& site = query.sites.front();
        const double pulled =
            kConstant * std::accumulate(site.curvature.begin(), site.curvature.end(), 0.0);
        for (std::size_t doc = 0; doc < query.docs.size(); ++doc) {
          const float* x = query.scaled.data() + doc * kInputs;
          const double v = site.evidence[doc] - site.curvature[doc] * (kConstant - site.coupling * pulled);
          const double part = v * (x[i] - centres[i]) * (x[j] - centres[j]);
          gradient += part;
          square += part * part;
        }
      }
      slow.emplace_back(std::abs(gradient) / std::sqrt(square), i, j);
    }
  }
  std::sort(slow.rbegin(), slow.rend());
  const double level = std::sqrt(2.0 * std::log(20.0 * 10.0));
  ASSERT_GT(std::get<0>(slow[1]), level);

  ExecutionContext context;
  ClickBelief belief(ClickFeatures(kInputs, false, 2));
  const std::vector<ClickProduct> found = find_products(context, belief, 0, entries);
  ASSERT_EQ(found.size(), 2U);
  for (std::size_t unit = 0; unit < 2; ++unit) {
    EXPECT_EQ(found[unit].first, std::get<1>(slow[unit]));
    EXPECT_EQ(found[unit].second, std::get<2>(slow[unit]));
    EXPECT_NEAR(found[unit].first_centre, centres[found[unit].first], 1e-12);
    EXPECT_NEAR(found[unit].second_centre, centres[found[unit].second], 1e-12);
  }

  // The second of them had a place already, the other place is free.
  ClickProduct held = found[1];
  held.first_centre = 0.25;
  belief.set_products(std::vector<ClickProduct>{held, {}});
  const std::vector<ClickProduct> again = find_products(context, belief, 0, entries);
  EXPECT_EQ(again[0], held);
  EXPECT_EQ(again[1], found[0]);

  ClickBelief many(ClickFeatures(kInputs, false, 12));
  const std::vector<ClickProduct> all = find_products(context, many, 0, entries);
  const auto used =
      std::count_if(all.begin(), all.end(), [](const ClickProduct& unit) { return unit.is_used(); });
  EXPECT_EQ(used, std::count_if(slow.begin(), slow.end(),
                                [&](const auto& pair) { return std::get<0>(pair) > level; }));
  EXPECT_TRUE(find_products(context, many, 0, {}) == std::vector<ClickProduct>(12));
}

}  // namespace
}  // namespace olrank
