#include "core/clicks/attraction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "core/error.h"
#include "core/math/pair_loss.h"

namespace olrank {
namespace {

class AttractionByDocument final : public Attraction {
 public:
  AttractionByDocument(std::int64_t docs, double level)
      : Attraction(docs, level), prior_{2.0 * level, 2.0 * (1.0 - level)} {}

  void maximise() override {
    for (Coin& coin : coins_) coin.maximise(prior_);
  }
  double log_prior() const override {
    double sum = 0.0;
    for (const Coin& coin : coins_) sum += coin.log_prior(prior_);
    return sum;
  }

 private:
  CoinPrior prior_;
};

class CertainAttraction final : public Attraction {
 public:
  explicit CertainAttraction(std::int64_t docs) : Attraction(docs, 1.0) {}
  void maximise() override {}
  double log_prior() const override { return 0.0; }
};

/// Logistic regression on expected counts. A step solves with a bound of the curvature that holds for all
/// parameters, ¼ Σ nₓ x xᵀ + I, so that no step can lead downwards (Böhning and Lindsay, "Monotonicity of
/// quadratic-approximation algorithms", AISM 1988) and one factor serves all of them.
class AttractionByInputs final : public Attraction {
 public:
  AttractionByInputs(const ClickDocs& docs, const ClickLists& lists, double level)
      : Attraction(docs.count, level), docs_(docs), size_(docs.columns + 1), weights_(size_, 0.0) {
    if (docs.columns > kMostColumns) {
      throw InvalidArgument(fmt::format(
          "The documents have {} inputs, and two-tower takes at most {}: choose another --model.",
          docs.columns, kMostColumns));
    }
    weights_.back() = std::log(level / (1.0 - level));
    bound_curvature(lists);
    factorise();
  }

  void maximise() override {
    constexpr int kSteps = 5;
    for (int step = 0; step < kSteps; ++step) take_step();
    set_probabilities();
    for (Coin& coin : coins_) coin.yes = coin.no = 0.0;
  }

  double log_prior() const override {
    double sum = 0.0;
    for (std::int64_t k = 0; k + 1 < size_; ++k) sum -= 0.5 * weights_[k] * weights_[k];
    return sum;
  }

 private:
  static constexpr std::int64_t kMostColumns = 2000;

  std::span<const float> row(std::int64_t doc) const {
    return std::span(docs_.inputs).subspan(doc * docs_.columns, docs_.columns);
  }
  double logit(std::span<const float> row) const {
    double sum = weights_.back();
    for (std::size_t k = 0; k < row.size(); ++k) sum += weights_[k] * row[k];
    return sum;
  }

  void bound_curvature(const ClickLists& lists) {
    std::vector<double> times(docs_.count, 0.0);
    for (std::int64_t list = 0; list < lists.size(); ++list) {
      for (const std::int32_t doc : lists[list].docs) times[doc] += 1.0;
    }
    factor_.assign(size_ * size_, 0.0);
    for (std::int64_t doc = 0; doc < docs_.count; ++doc) {
      if (times[doc] == 0.0) continue;
      const auto x = row(doc);
      for (std::int64_t i = 0; i < size_; ++i) {
        const double scaled = 0.25 * times[doc] * (i + 1 < size_ ? x[i] : 1.0);
        if (scaled == 0.0) continue;
        double* target = &factor_[i * size_];
        for (std::int64_t j = 0; j < i; ++j) target[j] += scaled * x[j];
        target[i] += scaled * (i + 1 < size_ ? x[i] : 1.0);
      }
    }
    for (std::int64_t i = 0; i + 1 < size_; ++i) factor_[i * size_ + i] += 1.0;
  }

  /// Cholesky, in the lower triangle. The matrix is positive definite: but for b, it has I.
  void factorise() {
    for (std::int64_t i = 0; i < size_; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        double sum = factor_[i * size_ + j];
        for (std::int64_t k = 0; k < j; ++k) sum -= factor_[i * size_ + k] * factor_[j * size_ + k];
        factor_[i * size_ + j] = j == i ? std::sqrt(std::max(sum, 1e-12)) : sum / factor_[j * size_ + j];
      }
    }
  }

  void take_step() {
    step_.assign(size_, 0.0);
    for (std::int64_t doc = 0; doc < docs_.count; ++doc) {
      const Coin& coin = coins_[doc];
      const double weight = coin.yes + coin.no;
      if (weight == 0.0) continue;
      const auto x = row(doc);
      const double slope = -pair_term_slope(sigmoid(logit(x)), weight, coin.yes);
      for (std::size_t k = 0; k < x.size(); ++k) step_[k] += slope * x[k];
      step_.back() += slope;
    }
    for (std::int64_t k = 0; k + 1 < size_; ++k) step_[k] -= weights_[k];
    for (std::int64_t i = 0; i < size_; ++i) {
      for (std::int64_t k = 0; k < i; ++k) step_[i] -= factor_[i * size_ + k] * step_[k];
      step_[i] /= factor_[i * size_ + i];
    }
    for (std::int64_t i = size_; i-- > 0;) {
      for (std::int64_t k = i + 1; k < size_; ++k) step_[i] -= factor_[k * size_ + i] * step_[k];
      step_[i] /= factor_[i * size_ + i];
    }
    for (std::int64_t k = 0; k < size_; ++k) weights_[k] += step_[k];
  }

  void set_probabilities() {
    constexpr double kLeast = 1e-9;
    for (std::int64_t doc = 0; doc < docs_.count; ++doc)
      coins_[doc].probability = std::clamp(sigmoid(logit(row(doc))), kLeast, 1.0 - kLeast);
  }

  const ClickDocs& docs_;
  std::int64_t size_;            // inputs, and one for b
  std::vector<double> weights_;  // w, then b
  std::vector<double> factor_;   // [size_ × size_]
  std::vector<double> step_;
};

}  // namespace

std::unique_ptr<Attraction> make_attraction_by_document(std::int64_t docs, double level) {
  return std::make_unique<AttractionByDocument>(docs, level);
}

std::unique_ptr<Attraction> make_certain_attraction(std::int64_t docs) {
  return std::make_unique<CertainAttraction>(docs);
}

std::unique_ptr<Attraction> make_attraction_by_inputs(const ClickDocs& docs, const ClickLists& lists,
                                                      double level) {
  return std::make_unique<AttractionByInputs>(docs, lists, level);
}

}  // namespace olrank
