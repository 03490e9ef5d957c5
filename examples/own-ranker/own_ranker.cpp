// The whole of olrank with one more user and one more ranker:
//   own_ranker run own.toml --out runs/own
#include <olrank/external_ranker.h>
#include <olrank/external_user.h>
#include <olrank/program.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>

/// Examines half of the documents, and clicks on the relevant ones.
class Careful : public olrank::ExternalUser {
  std::vector<std::uint8_t> click(const olrank::ShownToUser& list) const override {
    std::vector<std::uint8_t> clicks;
    for (std::int32_t doc : list.shown)
      clicks.push_back(list.grades[doc] > 0 &&
                       list.coins.uniform(doc, olrank::UserDecision::kExamination) < 0.5);
    return clicks;
  }
};

/// A weight for each feature. A clicked document beats the shown ones without a click.
class MyRanker : public olrank::ExternalRanker {
 public:
  explicit MyRanker(const olrank::ExternalRankerRequest& request) : weights_(request.features) {}

  std::vector<std::int32_t> rank(const olrank::ExternalQuery& query) override {
    std::vector<float> scores(query.docs);
    score(query.inputs, query.docs, query.features, scores);
    std::vector<std::int32_t> order(query.docs);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return scores[a] > scores[b]; });
    return order;
  }
  void learn(const olrank::ExternalQuery& query, std::span<const std::int32_t> shown,
             std::span<const std::uint8_t> clicks) override {
    for (std::size_t clicked = 0; clicked < shown.size(); ++clicked) {
      for (std::size_t other = 0; clicks[clicked] != 0 && other < shown.size(); ++other) {
        if (clicks[other] == 0) prefer(query, shown[clicked], shown[other]);
      }
    }
  }
  void score(std::span<const float> inputs, std::int64_t docs, std::int64_t features,
             std::span<float> scores) const override {
    for (std::int64_t doc = 0; doc < docs; ++doc)
      scores[doc] =
          std::inner_product(weights_.begin(), weights_.end(), inputs.begin() + doc * features, 0.0F);
  }
  std::string save() const override {
    return {reinterpret_cast<const char*>(weights_.data()), weights_.size() * sizeof(float)};
  }
  void load(std::string_view state) override { std::memcpy(weights_.data(), state.data(), state.size()); }

 private:
  /// A step on the loss of the pair, the smaller the surer the weights are of it.
  void prefer(const olrank::ExternalQuery& query, std::int32_t winner, std::int32_t loser) {
    const float* const better = query.inputs.data() + winner * query.features;
    const float* const worse = query.inputs.data() + loser * query.features;
    float margin = 0.0F;
    for (std::int64_t k = 0; k < query.features; ++k) margin += weights_[k] * (better[k] - worse[k]);
    const float step = 0.02F / (1.0F + std::exp(margin));
    for (std::int64_t k = 0; k < query.features; ++k) weights_[k] += step * (better[k] - worse[k]);
  }

  std::vector<float> weights_;
};

int main(int argc, char** argv) {
  olrank::register_user("careful", "examines half, version 1", std::make_shared<Careful>());
  olrank::register_ranker("mine", "my ranker, version 1", [](const olrank::ExternalRankerRequest& request) {
    return std::make_unique<MyRanker>(request);
  });
  return olrank::run_program(argc, argv);
}
