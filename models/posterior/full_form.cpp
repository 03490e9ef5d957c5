#include "models/posterior/full_posterior.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/math/any_cpu.h"
#include "core/math/pair_loss.h"
#include "core/ops/blas.h"
#include "core/ops/covariance.h"
#include "core/ops/gradient_products.h"
#include "core/ops/inverse_factor.h"
#include "core/ops/tangent_factors.h"

namespace olrank {
namespace {

/// It goes by parameters: A⁻¹ itself, p² numbers, updated by all pairs of a round at once. Widths take all
/// of it, or its diagonal alone.
class PrimalForm : public FullForm {
 public:
  PrimalForm(const TangentShape& shape, double lambda, double scale, bool by_diagonal)
      : FullForm(shape, lambda, scale),
        by_diagonal_(by_diagonal),
        inverse_(std::make_shared<Matrix>(shape.parameters() * shape.parameters())) {
    set_inverse_covariance(shape.parameters(), lambda, inverse_->data());
  }

  WidthHealth widths(ExecutionContext& context, const ObservedPairs&, TangentFactors docs,
                     std::span<double> width_sq) const override {
    if (by_diagonal_) {
      std::vector<double> diagonal(shape_.parameters());
      for (std::size_t k = 0; k < diagonal.size(); ++k)
        diagonal[k] = (*inverse_)[k * (diagonal.size() + 1)];
      diagonal_gram(context, shape_, docs, scale_, diagonal, width_sq.data());
    } else {
      inverse_covariance_gram(context, shape_, docs, scale_, inverse_->data(), width_sq.data());
    }
    return pair_width_sq(context, docs.docs, width_sq.data(), width_sq.data());
  }
  std::unique_ptr<FullForm> freeze() const override {
    shared_ = true;
    return std::make_unique<PrimalForm>(*this);
  }
  void observe(ExecutionContext& context, const ObservedPairs& history, std::int64_t first,
               TangentFactors /*docs*/, std::span<const PreferencePair> /*pairs*/) override {
    log_det_ += update_inverse_covariance(context, shape_, history.range(first, history.pairs() - first),
                                          scale_, writable());
  }
  void rebuild(ExecutionContext& context, const ObservedPairs& history) override {
    if (shared_) inverse_ = std::make_shared<Matrix>(inverse_->size());
    shared_ = false;
    log_det_ = inverse_covariance_of(context, shape_, history.all(), lambda_, scale_, inverse_->data());
  }
  void solve(ExecutionContext& context, const ObservedPairs&, std::span<const double> v,
             std::span<double> solution) const override {
    const std::int64_t p = shape_.parameters();
    context.for_blocks(p, 256, [&](std::int64_t begin, std::int64_t end, int) {
      blas::gemv(blas::Transpose::kNo, end - begin, p, 1.0, inverse_->data() + begin * p, p, v.data(), 0.0,
                 solution.data() + begin);
    });
  }

  double log_det() const override { return log_det_; }
  std::int64_t bytes() const override {
    return static_cast<std::int64_t>(inverse_->size() * sizeof(double));
  }
  void save(StateWriter& state) const override {
    state.put("primal_log_det", log_det_);
    state.put("primal_inverse", std::span<const double>(*inverse_));
  }
  void load(StateReader& state, const ObservedPairs&) override {
    log_det_ = state.get_one<double>("primal_log_det");
    state.get_into("primal_inverse", std::span<double>(writable(), inverse_->size()));
  }

 private:
  using Matrix = AlignedVector<double>;
  /// A⁻¹ to write to: copied first if a frozen form shares it.
  double* writable() {
    if (shared_) inverse_ = std::make_shared<Matrix>(*inverse_);
    shared_ = false;
    return inverse_->data();
  }

  bool by_diagonal_;
  std::shared_ptr<Matrix> inverse_;  // [p × p]
  mutable bool shared_ = false;      // with a frozen form
  double log_det_ = 0.0;             // log det(A)/det(λI)
};

/// It goes by pairs: L Lᵀ = s K_nn + λI with K the tangent kernel among pairs, S = s L⁻¹ K_nV, and M = (s
/// K_VV − SᵀS)/λ. No p × p matrix; n²/2 numbers. Pairs of the documents of the latest widths_for_update()
/// are observed by its S and M, without another pass over L⁻¹.
class DualForm : public FullForm {
 public:
  using FullForm::FullForm;

  WidthHealth widths(ExecutionContext& context, const ObservedPairs& history, TangentFactors docs,
                     std::span<double> width_sq) const override {
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    const auto solved = scratch.take<double>(factor_.size() * docs.docs);
    find_gram(context, history, docs, solved.data(), width_sq.data());
    return pair_width_sq(context, docs.docs, width_sq.data(), width_sq.data());
  }
  WidthHealth widths_for_update(ExecutionContext& context, const ObservedPairs& history,
                                TangentFactors docs, std::span<double> width_sq) override {
    find_latest(context, history, docs);
    return pair_width_sq(context, docs.docs, latest_.m.data(), width_sq.data());
  }
  std::unique_ptr<FullForm> freeze() const override {
    auto frozen = std::make_unique<DualForm>(shape_, lambda_, scale_);
    frozen->factor_ = factor_;
    frozen->log_det_ = log_det_;
    return frozen;
  }
  void observe(ExecutionContext& context, const ObservedPairs& history, std::int64_t first,
               TangentFactors docs, std::span<const PreferencePair> pairs) override {
    assert(first == factor_.size());
    const auto columns = std::ssize(pairs);
    if (columns > InverseFactor::kBlock) {
      append(context, history, first);
      return;
    }
    const std::int64_t n = factor_.size();
    const std::int64_t count = docs.docs;
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    // A ranker may learn without having ranked; the result depends on the feedback alone.
    if (!is_latest(docs)) find_latest(context, history, docs);
    const auto u = scratch.take<double>(n * columns);
    const auto corner = scratch.take<double>(columns * columns);
    // U = L⁻¹ (s K_n,winners − s K_n,losers).
    for (std::int64_t i = 0; i < n; ++i) {
      const double* of_docs = latest_.solved.data() + i * count;
      double* row = u.data() + i * columns;
      for (const PreferencePair& pair : pairs) *row++ = of_docs[pair.winner] - of_docs[pair.loser];
    }
    // The Schur complement of the new rows of s K_nn + λI: λ (I + Δ M Δᵀ), Δ = e_winner − e_loser.
    const auto m = [&](std::int64_t i, std::int64_t j) {
      return latest_.m[std::max(i, j) * count + std::min(i, j)];
    };
    for (std::int64_t i = 0; i < columns; ++i) {
      const PreferencePair& a = pairs[i];
      for (std::int64_t j = 0; j <= i; ++j) {
        const PreferencePair& b = pairs[j];
        const double known = pair_product(m(a.winner, b.winner), m(a.winner, b.loser), m(a.loser, b.winner),
                                          m(a.loser, b.loser));
        corner[i * columns + j] = lambda_ * (known + (i == j ? 1.0 : 0.0));
      }
    }
    log_det_ += append_solved(context, factor_, columns, u.data(), columns, corner.data(), columns) -
                static_cast<double>(columns) * log_of(lambda_);
    latest_.pairs = -1;
  }
  void rebuild(ExecutionContext& context, const ObservedPairs& history) override {
    factor_.clear();
    lineage_.renew();
    latest_ = {};
    log_det_ = 0.0;
    append(context, history, 0);
  }
  // A⁻¹ = (I − s Γᵀ (s K + λI)⁻¹ Γ)/λ, Γ's rows the g_s.
  void solve(ExecutionContext& context, const ObservedPairs& history, std::span<const double> v,
             std::span<double> solution) const override {
    const auto n = static_cast<std::size_t>(factor_.size());
    std::vector<double> pairs(n);
    std::vector<double> half(n);
    pair_gradient_products(context, shape_, history.all(), v, pairs);
    apply(context, factor_, 1, pairs.data(), half.data(), 1);
    apply_from_right(context, factor_, 1, half.data(), pairs.data(), factor_.size());
    pair_gradient_sum(context, shape_, history.all(), pairs, solution);
    for (std::size_t k = 0; k < v.size(); ++k) solution[k] = (v[k] - scale_ * solution[k]) / lambda_;
  }

  double log_det() const override { return log_det_; }
  std::int64_t bytes() const override { return factor_.bytes(); }
  void save(StateWriter& state) const override {
    state.put("dual_pairs", factor_.size());
    state.put("dual_log_det", log_det_);
    for (std::int64_t b = 0; b < factor_.blocks(); ++b) {
      const std::int64_t rows = std::min(InverseFactor::kBlock, factor_.size() - b * InverseFactor::kBlock);
      const std::int64_t numbers = rows * InverseFactor::stride(b);
      // Rows of L are replaced by rows of L⁻¹ once their block is full.
      const bool settled = (b + 1) * InverseFactor::kBlock <= factor_.inverted();
      state.put_growing("dual_rows", lineage_, std::span<const double>(factor_.block(b), numbers),
                        settled ? numbers : 0);
    }
  }
  void load(StateReader& state, const ObservedPairs& history) override {
    const auto pairs = state.get_one<std::int64_t>("dual_pairs");
    if (pairs < 0) state.fail("The number of pairs in the covariance is negative.");
    if (pairs != history.pairs())
      state.fail(
          fmt::format("The covariance has {} pairs and the history has {}.", pairs, history.pairs()));
    log_det_ = state.get_one<double>("dual_log_det");
    factor_.clear();
    lineage_.renew();
    latest_ = {};
    // Block by block, so that a damaged count allocates no more than the state holds.
    for (std::int64_t b = 0; b * InverseFactor::kBlock < pairs; ++b) {
      const std::int64_t rows = std::min(InverseFactor::kBlock, pairs - b * InverseFactor::kBlock);
      factor_.grow(b * InverseFactor::kBlock + rows);
      state.get_into("dual_rows", std::span<double>(factor_.block(b), rows * InverseFactor::stride(b)));
    }
  }

 private:
  /// The documents of the latest find_latest(), their S and their M.
  struct LatestGram {
    std::int64_t pairs = -1;  // when it was called; -1: no documents
    std::vector<float> factors;
    AlignedVector<double> solved;
    std::vector<double> m;
  };

  /// M [docs × docs] (lower triangle) and S [n × docs].
  void find_gram(ExecutionContext& context, const ObservedPairs& history, TangentFactors docs,
                 double* solved, double* m) const {
    const std::int64_t n = factor_.size();
    const std::int64_t count = docs.docs;
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    const auto kernel = scratch.take<double>(n * count);
    doc_kernel(context, shape_, docs, scale_, m);
    pair_doc_kernel(context, shape_, history.range(0, n), docs, scale_, kernel.data(), count);
    apply(context, factor_, count, kernel.data(), solved, count);
    subtract_gram(context, n, count, solved, count, m, count);
    for (std::int64_t i = 0; i < count * count; ++i) m[i] /= lambda_;
  }
  void find_latest(ExecutionContext& context, const ObservedPairs& history, TangentFactors docs) {
    latest_.pairs = -1;
    latest_.solved.resize(factor_.size() * docs.docs);
    latest_.m.resize(docs.docs * docs.docs);
    find_gram(context, history, docs, latest_.solved.data(), latest_.m.data());
    latest_.factors.assign(docs.values, docs.values + docs.docs * shape_.factors());
    latest_.pairs = factor_.size();
  }
  bool is_latest(TangentFactors docs) const {
    const auto numbers = static_cast<std::size_t>(docs.docs * shape_.factors());
    return latest_.pairs == factor_.size() && latest_.factors.size() == numbers &&
           std::memcmp(latest_.factors.data(), docs.values, numbers * sizeof(float)) == 0;
  }
  void append(ExecutionContext& context, const ObservedPairs& history, std::int64_t first) {
    for (std::int64_t n = first; n < history.pairs();) {
      const std::int64_t columns = std::min(factor_.room(), history.pairs() - n);
      Scratch& scratch = context.scratch();
      const Scratch::Frame frame(scratch);
      const auto cross = scratch.take<double>(n * columns);
      const auto corner = scratch.take<double>(columns * columns);
      const TangentFactors added = history.range(n, columns);
      pair_kernel(context, shape_, history.range(0, n), added, scale_, cross.data(), columns);
      pair_kernel(context, shape_, added, added, scale_, corner.data(), columns);
      for (std::int64_t i = 0; i < columns; ++i) corner[i * (columns + 1)] += lambda_;
      log_det_ += olrank::append(context, factor_, columns, cross.data(), columns, corner.data(), columns) -
                  static_cast<double>(columns) * log_of(lambda_);
      n += columns;
    }
  }

  InverseFactor factor_;
  Lineage lineage_;       // of its full blocks
  double log_det_ = 0.0;  // 2 Σ log L_ii − n log λ
  LatestGram latest_;
};

}  // namespace

std::unique_ptr<FullForm> make_full_form(CovarianceForm form, const TangentShape& shape, double lambda,
                                         double scale, bool by_diagonal) {
  if (form == CovarianceForm::kDual) return std::make_unique<DualForm>(shape, lambda, scale);
  if (form == CovarianceForm::kOrthonormal) return make_orthonormal_form(shape, lambda, scale);
  return std::make_unique<PrimalForm>(shape, lambda, scale, by_diagonal);
}

}  // namespace olrank
