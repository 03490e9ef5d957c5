#pragma once

#include <Eigen/Dense>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ops/relu_network.h"
#include "models/neural/document_history.h"
#include "models/neural/ranker_network.h"
#include "tests/core/ops/network_fixture.h"

// Training of a network as one would write it down: in double, pair by pair, with g(x) as p numbers.
namespace olrank {

/// The model of a shape.
inline NetworkModel network_of(const NetworkShape& shape) {
  return {{.network = shape.depth == 1 ? NetworkForm::kLinear : NetworkForm::kMlp,
           .width = shape.width,
           .depth = shape.depth,
           .parameterisation = shape.biases ? Parameterisation::kStandard : Parameterisation::kNtk},
          shape.inputs};
}

/// f(x; θ), and g(x) = ∇_θ f where `gradient` is not null.
inline double plain_network(const NetworkShape& shape, const std::vector<double>& theta, const float* x,
                            std::vector<double>* gradient) {
  std::vector<std::vector<double>> h;
  const double score = slow_score(shape, theta, x, &h).score;
  if (gradient == nullptr) return score;
  gradient->assign(theta.size(), 0.0);
  std::vector<double> delta = {shape.output_scale};
  for (std::int64_t l = shape.depth - 1; l >= 0; --l) {
    const NetworkLayer layer = shape.layer(l);
    const std::vector<double>& input = h[l];
    std::vector<double> below(input.size(), 0.0);
    for (std::int64_t r = 0; r < layer.rows; ++r) {
      const double own = delta[r];
      for (std::int64_t c = 0; c < layer.columns; ++c) {
        const auto at = static_cast<std::size_t>(layer.weight + r * layer.columns + c);
        (*gradient)[at] = own * input[c];
        if (input[c] > 0.0) below[c] += own * theta[at];
      }
      if (layer.has_bias()) (*gradient)[layer.bias + r] = own;
    }
    delta = below;
  }
  return score;
}

/// label · (−log σ(z)) + (weight − label) · (−log σ(−z)), z = f(winner) − f(loser).
struct PlainPair {
  const float* winner = nullptr;
  const float* loser = nullptr;
  double label = 1.0;
  double weight = 1.0;
};

/// scale · Σ pairs + prior ‖θ − centre‖², and its gradient.
inline double plain_loss(const NetworkShape& shape, const std::vector<double>& theta,
                         std::span<const PlainPair> pairs, double scale, double prior,
                         std::span<const float> centre, std::vector<double>* gradient) {
  double loss = 0.0;
  std::vector<double> sum(theta.size(), 0.0);
  std::vector<double> up;
  std::vector<double> down;
  for (const PlainPair& pair : pairs) {
    const bool wanted = gradient != nullptr;
    const double z = plain_network(shape, theta, pair.winner, wanted ? &up : nullptr) -
                     plain_network(shape, theta, pair.loser, wanted ? &down : nullptr);
    loss += scale * (pair.label * std::log1p(std::exp(-z)) +
                     (pair.weight - pair.label) * (z + std::log1p(std::exp(-z))));
    if (!wanted) continue;
    const double slope = pair.weight / (1.0 + std::exp(-z)) - pair.label;
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += scale * slope * (up[k] - down[k]);
  }
  for (std::size_t k = 0; k < theta.size() && prior != 0.0; ++k) {
    const double distance = theta[k] - double{centre[k]};
    loss += prior * distance * distance;
    sum[k] += 2.0 * prior * distance;
  }
  if (gradient != nullptr) *gradient = sum;
  return loss;
}

/// λ_max(Σ g gᵀ)/4 of pairs at θ.
inline double plain_curvature(const NetworkShape& shape, const std::vector<double>& theta,
                              std::span<const PlainPair> pairs) {
  const auto p = static_cast<Eigen::Index>(theta.size());
  Eigen::MatrixXd rows(std::ssize(pairs), p);
  std::vector<double> up;
  std::vector<double> down;
  for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
    plain_network(shape, theta, pairs[pair].winner, &up);
    plain_network(shape, theta, pairs[pair].loser, &down);
    rows.row(static_cast<Eigen::Index>(pair)) = Eigen::Map<const Eigen::RowVectorXd>(up.data(), p) -
                                                Eigen::Map<const Eigen::RowVectorXd>(down.data(), p);
  }
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(rows.transpose() * rows).eigenvalues()[p - 1] / 4.0;
}

/// Adam by the formula, with β of 0.9 and 0.999.
struct PlainAdam {
  explicit PlainAdam(std::size_t parameters) : mean(parameters), square(parameters) {}

  template <class Parameter>
  void step(double rate, const std::vector<double>& gradient, std::vector<Parameter>& theta) {
    ++number;
    for (std::size_t k = 0; k < theta.size(); ++k) {
      mean[k] = 0.9 * mean[k] + 0.1 * gradient[k];
      square[k] = 0.999 * square[k] + 0.001 * gradient[k] * gradient[k];
      theta[k] = static_cast<Parameter>(
          theta[k] - rate * mean[k] / (1.0 - std::pow(0.9, number)) /
                         (std::sqrt(square[k] / (1.0 - std::pow(0.999, number))) + 1e-8));
    }
  }

  std::vector<double> mean;
  std::vector<double> square;
  int number = 0;
};

/// Documents of a few queries, and pairs of them that go into a history and into a plain list.
class PairWorld {
 public:
  PairWorld(std::uint64_t seed, std::int64_t queries, std::int64_t docs, std::int64_t features,
            double scale = 1.0)
      : docs_(docs),
        features_(features),
        values_(random_numbers(queries * docs * features, seed, scale)),
        queries_(queries),
        draws_(test_key(seed), 77) {}

  QueryDocs query(std::int64_t number) const {
    return {number, number * docs_, {values_.data() + number * docs_ * features_, docs_, features_}};
  }

  /// Random pairs, each a list of two of which the first was clicked. Some come several times.
  void add(DocumentHistory& history, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const QueryDocs asked = query(draws_.index(static_cast<std::uint32_t>(queries_)));
      const auto docs = static_cast<std::uint32_t>(docs_);
      const auto winner = static_cast<std::int32_t>(draws_.index(docs));
      const auto loser = static_cast<std::int32_t>(
          (static_cast<std::uint32_t>(winner) + 1 + draws_.index(docs - 1)) % docs);
      add_pair(history, asked, winner, loser);
    }
  }
  void add_pair(DocumentHistory& history, const QueryDocs& asked, std::int32_t winner, std::int32_t loser) {
    const std::vector<std::int32_t> shown = {winner, loser};
    const std::vector<std::uint8_t> clicks = {1, 0};
    const PreferencePair pair{winner, loser};
    history.add({++impressions_, asked, shown, clicks}, std::span(&pair, 1));
    pairs.push_back({asked.features.doc(winner).data(), asked.features.doc(loser).data(), 1.0, 1.0});
  }

  std::vector<PlainPair> pairs;  // in the order of observation

 private:
  std::int64_t docs_;
  std::int64_t features_;
  std::vector<float> values_;
  std::int64_t queries_;
  RngStream draws_;
  std::uint32_t impressions_ = 0;
};

inline std::vector<double> in_double(std::span<const float> theta) {
  return {theta.begin(), theta.end()};
}

inline double distance_of(std::span<const float> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += (double{a[k]} - b[k]) * (double{a[k]} - b[k]);
  return std::sqrt(sum);
}

}  // namespace olrank
