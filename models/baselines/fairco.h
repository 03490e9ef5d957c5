#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "models/skeleton/ranker_settings.h"
#include "models/skeleton/score_model_ranker.h"

namespace olrank {

/// FairCo: Morik, Singh, Hong and Joachims, "Controlling fairness and bias in dynamic learning-to-rank",
/// SIGIR 2020. It estimates relevance by inverse propensity scoring, R̂ = argmin Σ_t Σ_{d shown} R̂(d)² +
/// (c/P(rank)) (c − 2R̂(d)) + λ‖θ‖², which for clicks c of 0 and 1 is the square loss towards c/P(rank), and
/// ranks by R̂(d) + fair_control(). A linear R̂ is the exact solution after each round; a network takes
/// `steps` steps of Adam on `batch` shown documents drawn from all so far.
class FairCo : public ScoreModelRanker {
 public:
  FairCo(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
         std::vector<float> first_theta);

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;
  void fields(StateFields& state) override;

 private:
  ScoreLists lists() const override;

  void remember(const QueryDocs& query, std::int32_t doc, double target);
  void solve();
  void take_steps(ExecutionContext& context, std::uint32_t round);

  double gain_;    // λ_c
  double lambda_;  // λ
  bool linear_;
  std::int64_t features_;
  std::int64_t steps_a_round_;
  std::int64_t batch_;

  // Linear: the normal equations.
  std::vector<double> matrix_;  // λI + Σ x xᵀ, lower triangle
  std::vector<double> target_;  // Σ x c/P
  std::vector<double> factor_;

  // Network: each shown document, by its row among the distinct ones.
  std::vector<std::int64_t> doc_numbers_;
  std::vector<float> docs_;  // [distinct × features]
  std::vector<std::int32_t> shown_rows_;
  std::vector<float> shown_targets_;
  std::unordered_map<std::int64_t, std::int32_t> row_of_;
  std::int64_t steps_ = 0;
  std::vector<double> position_;
  std::vector<double> first_;
  std::vector<double> second_;

  std::vector<float> batch_docs_;
  std::vector<double> gradient_;
  std::vector<double> row_;
};

std::unique_ptr<OnlineRanker> make_fairco(const RankerRequest& request);
void set_fairco_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
