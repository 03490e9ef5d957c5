#include "models/posterior/posterior.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "core/math/any_cpu.h"
#include "core/online/retraining.h"
#include "core/throw_error.h"
#include "models/posterior/full_posterior.h"
#include "models/posterior/inducing_posterior.h"

namespace olrank {

void ObservedPairs::append(TangentFactors docs, std::span<const PreferencePair> pairs) {
  make_room(std::ssize(pairs));
  for (const PreferencePair& pair : pairs) {
    for (const std::int32_t doc : {pair.winner, pair.loser}) {
      assert(doc >= 0 && doc < docs.docs);
      const float* row = docs.row(shape_, doc);
      values_->insert(values_->end(), row, row + shape_.factors());
    }
  }
  first_ = values_->data();
  pairs_ += std::ssize(pairs);
}

void ObservedPairs::truncate(std::int64_t pairs) {
  pairs_ = pairs;
  values_->resize(pairs * 2 * shape_.factors());
}

/// Growing moves to new memory, as a copy may be reading the old one.
void ObservedPairs::make_room(std::int64_t pairs) {
  const std::size_t needed = values_->size() + static_cast<std::size_t>(pairs * 2 * shape_.factors());
  if (needed <= values_->capacity()) return;
  auto larger = std::make_shared<AlignedVector<float>>();
  larger->reserve(std::max(needed, 2 * values_->capacity()));
  larger->assign(values_->begin(), values_->end());
  values_ = std::move(larger);
}

void ObservedPairs::save(StateWriter& state) const {
  state.put_growing("history", lineage_, std::span<const float>(values_->data(), values_->size()),
                    std::ssize(*values_));
}

void ObservedPairs::load(StateReader& state) {
  const std::vector<float> values = state.get<float>("history");
  if (values.size() % static_cast<std::size_t>(2 * shape_.factors()) != 0) {
    state.fail("The history does not fit this network: its size is not a multiple of a pair's.");
  }
  values_ = std::make_shared<AlignedVector<float>>(values.begin(), values.end());
  lineage_.renew();
  first_ = values_->data();
  pairs_ = std::ssize(values) / (2 * shape_.factors());
}

double gradient_length_sq(const TangentShape& shape, const float* factors) {
  double sum = 0.0;
  for (const NetworkLayer& layer : shape.layers()) {
    double inputs = layer.has_bias() ? 1.0 : 0.0;
    for (std::int64_t k = 0; k < layer.columns; ++k)
      inputs += double{factors[layer.input + k]} * double{factors[layer.input + k]};
    double deltas = 0.0;
    for (std::int64_t k = 0; k < layer.rows; ++k)
      deltas += double{factors[layer.delta + k]} * double{factors[layer.delta + k]};
    sum += inputs * deltas;
  }
  return sum;
}

void mirror_lower(std::int64_t size, double* matrix) {
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t j = 0; j < i; ++j) matrix[j * size + i] = matrix[i * size + j];
  }
}

void require_information(const TangentShape& shape, double lambda, double scale, TangentFactors docs,
                         std::span<const PreferencePair> pairs) {
  for (const PreferencePair& pair : pairs) {
    for (const std::int32_t doc : {pair.winner, pair.loser})
      require_information(lambda, scale * gradient_length_sq(shape, docs.row(shape, doc)));
  }
}

namespace {

/// No covariance: every width is 0.
class NoPosterior : public Posterior {
 public:
  using Posterior::Posterior;

  void width_sq(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq) override {
    widths(context, docs, width_sq);
  }
  WidthHealth widths(ExecutionContext&, TangentFactors, std::span<double> width_sq) const override {
    std::fill(width_sq.begin(), width_sq.end(), 0.0);
    return {};
  }
  std::shared_ptr<const Posterior> freeze() const override {
    auto frozen = std::make_shared<NoPosterior>(spec_);
    frozen->pairs_ = pairs_;
    return frozen;
  }
  void observe(ExecutionContext&, TangentFactors, std::span<const PreferencePair> pairs) override {
    pairs_ += std::ssize(pairs);
  }
  std::int64_t pairs() const override { return pairs_; }
  double log_det() const override { return 0.0; }
  std::int64_t bytes() const override { return 0; }
  void fields(StateFields& state) override { state.numbers("none_pairs", pairs_); }

 private:
  std::int64_t pairs_ = 0;
};

/// The diagonal of A: p numbers, no history.
class DiagonalPosterior : public Posterior {
 public:
  explicit DiagonalPosterior(const PosteriorSpec& spec)
      : Posterior(spec), diagonal_(spec.shape.parameters(), spec.lambda), inverse_(diagonal_.size()) {
    invert();
  }

  void width_sq(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq) override {
    const WidthHealth health = widths(context, docs, width_sq);
    if (health.lost > 0) throw_lost_widths(spec_.name());
    negative_widths_ += health.negative;
  }
  WidthHealth widths(ExecutionContext& context, TangentFactors docs,
                     std::span<double> width_sq) const override {
    assert(std::ssize(width_sq) == docs.docs * docs.docs);
    diagonal_gram(context, spec_.shape, docs, spec_.scale, inverse_, width_sq.data());
    return pair_width_sq(context, docs.docs, width_sq.data(), width_sq.data());
  }
  std::shared_ptr<const Posterior> freeze() const override {
    return std::make_shared<DiagonalPosterior>(*this);
  }
  void observe(ExecutionContext& context, TangentFactors docs,
               std::span<const PreferencePair> pairs) override {
    if (pairs.empty()) return;
    ObservedPairs added(spec_.shape);
    added.append(docs, pairs);
    const AlignedVector<double> before = diagonal_;
    add_to_diagonal(context, spec_.shape, added.all(), spec_.scale, diagonal_);
    if (!std::all_of(diagonal_.begin(), diagonal_.end(),
                     [](double value) { return std::isfinite(value); })) {
      diagonal_ = before;
      throw NumericError("The gradients of the pairs to observe are not finite.");
    }
    invert();
    pairs_ += added.pairs();
  }

  std::int64_t pairs() const override { return pairs_; }
  /// Σ_k log(A_kk/λ).
  double log_det() const override {
    double sum = 0.0;
    for (const double value : diagonal_) sum += log_of(value / spec_.lambda);
    return sum;
  }
  std::int64_t bytes() const override {
    return static_cast<std::int64_t>((diagonal_.size() + inverse_.size()) * sizeof(double));
  }

  void fields(StateFields& state) override {
    state.numbers("diagonal_pairs", pairs_);
    state.numbers("diagonal_negative_widths", negative_widths_);
    state.sized("diagonal", diagonal_);
    if (state.reads()) invert();
  }

 private:
  void invert() {
    for (std::size_t k = 0; k < diagonal_.size(); ++k) inverse_[k] = 1.0 / diagonal_[k];
  }

  AlignedVector<double> diagonal_;  // A_kk
  AlignedVector<double> inverse_;   // 1/A_kk
  std::int64_t pairs_ = 0;
};

}  // namespace

std::int64_t covariance_memory(const PosteriorSettings& settings, std::int64_t memory) {
  return settings.has_shadow() && settings.covariance == Covariance::kDiagonalOfInverse ? memory / 2
                                                                                        : memory;
}

Posterior::Posterior(const PosteriorSpec& spec) : spec_(spec), monitor_(spec.checks) {
  if (spec_.memory <= 0) spec_.memory = available_memory();
}

double Posterior::drift(ExecutionContext& context) const {
  const double drift = measured_drift(context);
  monitor_.warn(name(), drift);
  return drift;
}

std::unique_ptr<Posterior> make_posterior(const PosteriorSpec& spec) {
  if (!(spec.lambda > 0.0)) {
    throw_error<InvalidArgument>(
        "lambda must be greater than 0, not {}: otherwise the covariance of unseen directions is infinite.",
        spec.lambda);
  }
  if (spec.covariance == Covariance::kNone) return std::make_unique<NoPosterior>(spec);
  if (spec.covariance == Covariance::kDiagonal) return std::make_unique<DiagonalPosterior>(spec);
  if (spec.covariance == Covariance::kInducing) return std::make_unique<InducingPosterior>(spec);
  return std::make_unique<FullPosterior>(spec);
}

const Schema& PosteriorSettings::schema() {
  using S = PosteriorSettings;
  static const Schema schema =
      SchemaBuilder<S>("ranker", "What is known about the parameters: a covariance or an ensemble.")
          .field("covariance", &S::covariance,
                 "structure of the covariance: `full` is exact, `inducing` exact on `budget` observed "
                 "pairs and careful elsewhere, `diagonal` within each parameter, `none` has no widths; "
                 "docs/BENCHMARKS.md compares them")
          .field("form", &S::form,
                 "representation of the full covariance: `dual` over pairs, `primal` over parameters, "
                 "`auto` whichever is cheaper")
          .one_of({"auto", "dual", "primal"})
          .field("budget", &S::budget, "pairs that stand for all observed ones in the inducing covariance",
                 {1, 65536})
          .symbol("D")
          .unit("pairs")
          .field("shadow", &S::shadow,
                 "`full` also maintains an exact full covariance, which decides nothing, and compares its "
                 "widths with the ranker's (olranknet and ollambdarank with another covariance)")
          .field("observe_at", &S::observe_at,
                 "parameters at which a round's pairs enter the covariance: those `before` the round's "
                 "training, which made the list, or those `after` the training, which cost another pass "
                 "over the query's documents")
          .field("lambda", &S::lambda, "strength of the prior in loss and covariance", above(0))
          .symbol("λ")
          .field("members", &S::members, "ensemble size", {1, 1024})
          .symbol("N")
          .field("noise_variance", &S::noise_variance, "variance of the label noise in an ensemble", {0})
          .symbol("ν²")
          .field("prior_noise", &S::prior_noise,
                 "whether a member's prior is perturbed like its labels: its centre is drawn around θ₀ "
                 "with variance ν²/(mλ), again for each training on the whole history")
          .build();
  return schema;
}

}  // namespace olrank
