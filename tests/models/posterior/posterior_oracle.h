#pragma once

#include <Eigen/Dense>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/posterior/posterior.h"
#include "tests/core/ops/network_fixture.h"

namespace olrank {

// The oracle: A written out and factorised afresh by Eigen, in long double (64 bits of mantissa), so that
// what differs is the posterior's rounding.
using WideMatrix = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

/// Rounds of a made-up trial: documents of a query at parameters that move, and pairs among them.
struct PosteriorRound {
  std::vector<float> factors;
  std::vector<PreferencePair> pairs;
};

class PosteriorRounds {
 public:
  /// Parameters begin symmetric where they can.
  PosteriorRounds(const NetworkShape& shape, std::uint64_t seed) : shape_(shape), seed_(seed) {
    theta_ = shape.depth > 1 && shape.width % 2 == 0 ? std::vector<float>(shape.parameters())
                                                     : random_theta(shape, seed);
    if (shape.depth > 1 && shape.width % 2 == 0) {
      initialise(shape, Initialisation::kSymmetric, test_key(seed), theta_);
    }
  }
  /// Parameters begin at random.
  PosteriorRounds(const NetworkShape& shape, std::uint64_t seed, std::int64_t docs_of_round, double step)
      : shape_(shape), seed_(seed), docs_(docs_of_round), step_(step), theta_(random_theta(shape, seed)) {}

  /// Documents with features in [0, 1], as normalised data have them.
  std::vector<float> docs(std::int64_t count, std::uint64_t seed) {
    std::vector<float> features(count * shape_.inputs);
    RngStream draws(test_key(seed_ + seed), 3);
    for (float& value : features) value = static_cast<float>(draws.uniform());
    return factors_of(shape_, theta_, features);
  }

  PosteriorRound round(std::int64_t pairs) {
    ++rounds_;
    const std::vector<float> step = random_numbers(shape_.parameters(), seed_ + 1000 + rounds_, step_);
    for (std::size_t k = 0; k < theta_.size(); ++k) theta_[k] += step[k];
    PosteriorRound round{docs(docs_, 5000 + rounds_), {}};
    const auto n = static_cast<std::uint32_t>(docs_);
    RngStream draws(test_key(seed_), static_cast<std::uint32_t>(rounds_));
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      const auto winner = static_cast<std::int32_t>(draws.index(n));
      const auto loser = static_cast<std::int32_t>((winner + 1 + draws.index(n - 1)) % docs_);
      round.pairs.push_back({winner, loser});
    }
    return round;
  }

 private:
  NetworkShape shape_;
  std::uint64_t seed_;
  std::int64_t docs_ = 20;
  double step_ = 0.02;
  std::uint64_t rounds_ = 0;
  std::vector<float> theta_;
};

inline void observe(Posterior& posterior, ExecutionContext& context, const TangentShape& shape,
                    const PosteriorRound& round) {
  posterior.observe(context, view_of(shape, round.factors), round.pairs);
}

/// log(det A / det λI).
inline double wide_log_det(const WideMatrix& a, double lambda) {
  const WideMatrix l = Eigen::LLT<WideMatrix>(a).matrixL();
  long double sum = 0.0L;
  for (std::int64_t k = 0; k < l.rows(); ++k)
    sum += 2.0L * std::log(l(k, k)) - std::log(static_cast<long double>(lambda));
  return static_cast<double>(sum);
}

class PosteriorOracle {
 public:
  PosteriorOracle(const NetworkShape& shape, double lambda, double scale)
      : PosteriorOracle(shape, lambda, scale,
                        WideMatrix::Identity(shape.parameters(), shape.parameters()) *
                            static_cast<long double>(lambda)) {}
  PosteriorOracle(const NetworkShape& shape, double lambda, double scale, WideMatrix a)
      : shape_(shape), lambda_(lambda), scale_(scale), a_(std::move(a)) {}

  void observe(const PosteriorRound& round) {
    const Eigen::MatrixXd g = slow_gradients(shape_, view_of(shape_, round.factors));
    WideMatrix rows(round.pairs.size(), shape_.parameters());
    for (std::size_t s = 0; s < round.pairs.size(); ++s) {
      rows.row(static_cast<std::int64_t>(s)) = (g.row(round.pairs[s].winner).cast<long double>() -
                                                g.row(round.pairs[s].loser).cast<long double>());
    }
    a_.noalias() += static_cast<long double>(scale_) * rows.transpose() * rows;
  }

  const WideMatrix& a() const { return a_; }

  Eigen::MatrixXd width_sq(const std::vector<float>& docs) const {
    const WideMatrix g = slow_gradients(shape_, view_of(shape_, docs)).cast<long double>();
    return of_differences(Eigen::LLT<WideMatrix>(a_).matrixL().solve(g.transpose()));
  }
  Eigen::MatrixXd width_sq(const std::vector<float>& docs, const WideMatrix& inverse_diagonal) const {
    const WideMatrix g = slow_gradients(shape_, view_of(shape_, docs)).cast<long double>();
    return of_differences(inverse_diagonal.cwiseSqrt().asDiagonal() * g.transpose());
  }
  double log_det() const { return wide_log_det(a_, lambda_); }

 private:
  /// s ‖h_i − h_j‖² from the difference itself, which loses no digits.
  Eigen::MatrixXd of_differences(const WideMatrix& half) const {
    Eigen::MatrixXd result(half.cols(), half.cols());
    for (std::int64_t i = 0; i < half.cols(); ++i) {
      for (std::int64_t j = 0; j < half.cols(); ++j) {
        result(i, j) = static_cast<double>(static_cast<long double>(scale_) *
                                           (half.col(i) - half.col(j)).squaredNorm());
      }
    }
    return result;
  }

  NetworkShape shape_;
  double lambda_;
  double scale_;
  WideMatrix a_;
};

inline double largest_relative_error(const std::vector<double>& actual, const Eigen::MatrixXd& expected) {
  double worst = 0.0;
  for (std::int64_t i = 0; i < expected.rows(); ++i) {
    for (std::int64_t j = 0; j < expected.cols(); ++j) {
      const double value = actual[i * expected.cols() + j];
      const double error = i == j ? std::abs(value) : std::abs(value - expected(i, j)) / expected(i, j);
      if (!(error <= worst)) worst = error;  // keeps a NaN
    }
  }
  return worst;
}

inline std::vector<double> posterior_widths(Posterior& posterior, ExecutionContext& context,
                                            const TangentShape& shape, const std::vector<float>& docs) {
  const TangentFactors view = view_of(shape, docs);
  std::vector<double> width_sq(view.docs * view.docs, -1.0);
  posterior.width_sq(context, view, width_sq);
  return width_sq;
}

inline PosteriorSpec posterior_spec(const NetworkShape& shape, CovarianceForm form, double lambda,
                                    double scale) {
  PosteriorSpec spec;
  spec.shape = shape;
  spec.form = form;
  spec.lambda = lambda;
  spec.scale = scale;
  return spec;
}

/// Two dozen rounds with widths, in which `auto` switches from pairs to parameters.
inline std::vector<std::vector<double>> trajectory(Posterior& posterior, ExecutionContext& context,
                                                   const NetworkShape& shape, int first, int last) {
  PosteriorRounds history(shape, 71);
  std::vector<std::vector<double>> widths;
  for (int round = 0; round < last; ++round) {
    const PosteriorRound made = history.round(6);
    if (round < first) continue;
    widths.push_back(posterior_widths(posterior, context, shape, made.factors));
    observe(posterior, context, shape, made);
    widths.push_back({posterior.log_det(), posterior.drift(context)});
  }
  return widths;
}

struct PosteriorVariant {
  Covariance covariance;
  CovarianceForm form;
};

inline constexpr PosteriorVariant kPosteriorVariants[] = {
    {Covariance::kFull, CovarianceForm::kDual},
    {Covariance::kFull, CovarianceForm::kPrimal},
    {Covariance::kFull, CovarianceForm::kAuto},
    {Covariance::kDiagonal, CovarianceForm::kAuto},
    {Covariance::kDiagonalOfInverse, CovarianceForm::kAuto},
    {Covariance::kInducing, CovarianceForm::kAuto},
    {Covariance::kNone, CovarianceForm::kAuto}};

inline PosteriorSpec posterior_spec(const NetworkShape& shape, const PosteriorVariant& variant) {
  PosteriorSpec spec = posterior_spec(shape, variant.form, 0.1, 0.1);
  spec.covariance = variant.covariance;
  spec.budget = 50;
  spec.checks.every = 40;
  return spec;
}

}  // namespace olrank
