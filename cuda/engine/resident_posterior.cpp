#include "cuda/engine/resident_posterior.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/mapped_array.h"
#include "cuda/engine/resident_pairs.h"
#include "cuda/engine/saved_values.h"
#include "cuda/ops/diagonal_covariance.h"
#include "cuda/ops/inverse_covariance.h"
#include "cuda/ops/inverse_factor.h"
#include "cuda/ops/tangent_kernel.h"
#include "cuda/ops/theory_alpha.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

/// A CovarianceStatus in device memory.
class Status {
 public:
  Status() { copy_to_device<CovarianceStatus>(std::span(&kFresh, 1), device_.data()); }

  CovarianceStatus* get() { return device_.data(); }
  const CovarianceStatus* get() const { return device_.data(); }
  void reset() { set({}); }
  void set(const CovarianceStatus& status) {
    copy_to_device<CovarianceStatus>(std::span(&status, 1), device_.data());
  }
  CovarianceStatus read() const {
    CovarianceStatus status;
    copy_to_host<CovarianceStatus>(device_.data(), std::span(&status, 1));
    return status;
  }

 private:
  static constexpr CovarianceStatus kFresh{};
  DeviceArray<CovarianceStatus> device_{1};
};

/// width_error() of w² = vᵀA⁻¹v, computed as `width_sq` or, without it, as vᵀy, for y ≈ A⁻¹v.
double error_of(ResidentPairs& pairs, Stream stream, const ResidentPosteriorSpec& spec,
                std::span<const double> v, std::span<const double> y, std::optional<double> width_sq) {
  const double v_y = std::inner_product(v.begin(), v.end(), y.begin(), 0.0);
  return width_error(width_sq.value_or(v_y), v_y,
                     quadratic_form(spec.lambda, spec.scale, y, pairs.products(stream, y)));
}

/// ‖g_0 − g_1‖²_{A⁻¹} from the lower triangle of M.
double width_sq_of(const DeviceArray<double>& m, double scale) {
  const std::vector<double> found = m.to_host();
  return (found[0] + found[3] - 2.0 * found[2]) / scale;
}

/// In dual form, by pairs: core/ops/inverse_factor.h.
class DualPosterior : public ResidentPosterior {
 public:
  explicit DualPosterior(const ResidentPosteriorSpec& spec) : spec_(spec), history_(spec.shape) {}

  void gram(Stream stream, const FactorRows& docs, double* m) override {
    gram_of(stream, history_.pairs(), docs, m);
  }

  void observe(Stream stream, const FactorRows& docs, const double* m, const PreferencePair* pairs,
               std::int64_t count) override {
    append(stream, history_.pairs(), docs, m, pairs, count);
    history_.append(stream, docs, pairs, count);
  }

  void rebuild(Stream stream) override {
    change_factor();
    OwnedStream::wait_for(stream);
    status_.reset();
    DeviceArray<double> m(ResidentPairs::kMostReplayed * ResidentPairs::kMostReplayed);
    std::int64_t n = 0;
    history_.replay(stream, [&](const FactorRows& docs, const PreferencePair* pairs, std::int64_t count) {
      gram_of(stream, n, docs, m.data());
      append(stream, n, docs, m.data(), pairs, count);
      n += count;
    });
  }

  const CovarianceStatus* status() const override { return status_.get(); }

  double error_along(Stream stream, std::span<const double> vector) override {
    return error_of(history_, stream, spec_, vector, solution_of(stream, vector), std::nullopt);
  }
  double error_of_pair(Stream stream, std::int64_t pair) override {
    DeviceArray<double> m(4);
    GrowingArray<double> solved;
    std::swap(solved, solved_);  // observe() reads the latest gram's
    gram_of(stream, history_.pairs(), history_.range(pair, 1), m.data());
    OwnedStream::wait_for(stream);
    std::swap(solved, solved_);
    const std::vector<double> gradient = history_.gradient(stream, pair);
    return error_of(history_, stream, spec_, gradient, solution_of(stream, gradient),
                    width_sq_of(m, spec_.scale));
  }

  std::int64_t pairs() const override { return history_.pairs(); }
  std::string_view form() const override { return "dual"; }
  std::int64_t bytes() const override {
    return history_.bytes() + factor_.bytes() + kernel_.bytes() + solved_.bytes() + workspace_.bytes();
  }
  ResidentPairs& history() { return history_; }

  void save(StateWriter& state) const override {
    history_.save(state);
    // The last block has room for more rows.
    const std::int64_t n = history_.pairs();
    state.put_growing<double>("device.factor", lineage_, DeviceSource(factor_.data(), latest_save_),
                              factor_row(n), {}, factor_numbers(n) - factor_row(n));
    state.put("device.log_det", status_.read().log_det);
  }
  void load(Stream stream, StateReader& state) override {
    history_.load(stream, state);
    std::vector<double> factor(factor_numbers(history_.pairs()));
    state.get_into("device.factor", std::span(factor));
    change_factor();
    factor_.reserve(stream, std::ssize(factor));
    OwnedStream::wait_for(stream);
    copy_to_device(std::span<const double>(factor), factor_.data());
    status_.set({state.get_one<double>("device.log_det"), 0});
  }

 private:
  /// To be called before rows that are there change.
  void change_factor() {
    latest_save_.release();
    lineage_.renew();
  }

  // A⁻¹v = (v − s Γᵀ (s K + λI)⁻¹ Γv)/λ, Γ's rows the g_s.
  std::vector<double> solution_of(Stream stream, std::span<const double> v) {
    const std::int64_t n = history_.pairs();
    const DeviceArray<double> products(std::span<const double>(history_.products(stream, v)));
    DeviceArray<double> half(n);
    DeviceArray<double> weights(n);
    DeviceArray<double> workspace(apply_factor_workspace(n, 1));
    apply_factor(stream, n, factor_.data(), 1, products.data(), workspace.data(), half.data(), 1);
    apply_factor_transposed(stream, n, factor_.data(), half.data(), weights.data());
    OwnedStream::wait_for(stream);
    std::vector<double> solution = history_.sum(stream, weights.to_host());
    for (std::size_t k = 0; k < v.size(); ++k)
      solution[k] = (v[k] - spec_.scale * solution[k]) / spec_.lambda;
    return solution;
  }

  /// M of the documents given the first n pairs; leaves S = L⁻¹K_nV in solved_.
  void gram_of(Stream stream, std::int64_t n, const FactorRows& docs, double* m) {
    doc_kernel(stream, spec_.shape, docs, spec_.scale, m);
    kernel_.reserve(stream, n * docs.docs);
    solved_.reserve(stream, n * docs.docs);
    workspace_.reserve(stream,
                       std::max(apply_factor_workspace(n, docs.docs), dual_gram_workspace(n, docs.docs)));
    if (n > 0) {
      pair_doc_kernel(stream, spec_.shape, history_.range(0, n), docs, spec_.scale, kernel_.data(),
                      docs.docs);
      apply_factor(stream, n, factor_.data(), docs.docs, kernel_.data(), workspace_.data(), solved_.data(),
                   docs.docs);
    }
    dual_gram(stream, n, docs.docs, solved_.data(), docs.docs, spec_.lambda, workspace_.data(), m);
  }

  void append(Stream stream, std::int64_t n, const FactorRows& docs, const double* m,
              const PreferencePair* pairs, std::int64_t count) {
    if (factor_.moves_to_hold(factor_numbers(n + count))) latest_save_.release();
    factor_.reserve(stream, factor_numbers(n + count), factor_numbers(n));
    workspace_.reserve(stream, append_workspace(n, count));
    append_pairs(stream, n, factor_.data(), docs.docs, solved_.data(), docs.docs, m, spec_.lambda, pairs,
                 count, workspace_.data(), status_.get());
  }

  ResidentPosteriorSpec spec_;
  ResidentPairs history_;
  MappedArray<double> factor_;  // L⁻¹, row blocks one after another
  Lineage lineage_;             // of its rows
  mutable LatestSave latest_save_;
  GrowingArray<double> kernel_;  // s K_nV
  GrowingArray<double> solved_;  // L⁻¹ of it
  GrowingArray<double> workspace_;
  Status status_;
};

/// In primal form, by parameters: core/ops/inverse_covariance.h. Widths use A⁻¹ or its diagonal alone.
class PrimalPosterior : public ResidentPosterior {
 public:
  PrimalPosterior(const ResidentPosteriorSpec& spec, bool by_diagonal, Stream stream, ResidentPairs history)
      : spec_(spec),
        by_diagonal_(by_diagonal),
        parameters_(spec.shape.parameters()),
        history_(std::move(history)),
        inverse_(parameters_ * parameters_),
        root_(by_diagonal ? parameters_ : 0),
        delta_places_(parameters_),
        input_places_(parameters_) {
    fill_parameter_table(stream, spec.shape, table());
    // The part above the diagonal is never written, but saved with the rest.
    fill_bytes(stream, inverse_.data(), 0,
               static_cast<std::size_t>(parameters_ * parameters_) * sizeof(double));
    rebuild(stream);
  }

  void gram(Stream stream, const FactorRows& docs, double* m) override {
    if (!by_diagonal_) {
      gram_of(stream, docs, m);
      return;
    }
    workspace_.reserve(stream, diagonal_gram_workspace(spec_.shape, docs.docs));
    diagonal_gram(stream, spec_.shape, docs, root_.data(), workspace_.data(), m);
  }

  void observe(Stream stream, const FactorRows& docs, const double* m, const PreferencePair* pairs,
               std::int64_t count) override {
    if (by_diagonal_) {
      exact_m_.reserve(stream, docs.docs * docs.docs);
      gram_of(stream, docs, exact_m_.data());
      m = exact_m_.data();
    }
    update(stream, docs, m, pairs, count);
    find_roots(stream);
    history_.append(stream, docs, pairs, count);
  }

  void rebuild(Stream stream) override {
    OwnedStream::wait_for(stream);
    status_.reset();
    reset_inverse_covariance(stream, parameters_, spec_.lambda, inverse_.data());
    DeviceArray<double> m(ResidentPairs::kMostReplayed * ResidentPairs::kMostReplayed);
    history_.replay(stream, [&](const FactorRows& docs, const PreferencePair* pairs, std::int64_t count) {
      gram_of(stream, docs, m.data());
      update(stream, docs, m.data(), pairs, count);
    });
    find_roots(stream);
  }

  const CovarianceStatus* status() const override { return status_.get(); }

  double error_along(Stream stream, std::span<const double> vector) override {
    if (by_diagonal_) return error_at_largest(stream, vector);
    return error_of(history_, stream, spec_, vector, solution_of(stream, vector), std::nullopt);
  }
  double error_of_pair(Stream stream, std::int64_t pair) override {
    const std::vector<double> gradient = history_.gradient(stream, pair);
    if (by_diagonal_) return error_at_largest(stream, gradient);
    DeviceArray<double> m(4);
    GrowingArray<double> products;
    std::swap(products, products_);  // observe() reads the latest gram's
    gram_of(stream, history_.range(pair, 1), m.data());
    OwnedStream::wait_for(stream);
    std::swap(products, products_);
    return error_of(history_, stream, spec_, gradient, solution_of(stream, gradient),
                    width_sq_of(m, spec_.scale));
  }

  std::int64_t pairs() const override { return history_.pairs(); }
  std::string_view form() const override { return by_diagonal_ ? "diagonal-of-inverse" : "primal"; }
  std::int64_t bytes() const override {
    return history_.bytes() + parameters_ * parameters_ * static_cast<std::int64_t>(sizeof(double)) +
           products_.bytes() + workspace_.bytes();
  }

  void save(StateWriter& state) const override {
    history_.save(state);
    state.put("device.inverse", inverse_.to_host());
    state.put("device.log_det", status_.read().log_det);
  }
  void load(Stream stream, StateReader& state) override {
    history_.load(stream, state);
    std::vector<double> inverse(parameters_ * parameters_);
    state.get_into("device.inverse", std::span(inverse));
    OwnedStream::wait_for(stream);
    copy_to_device(std::span<const double>(inverse), inverse_.data());
    status_.set({state.get_one<double>("device.log_det"), 0});
    find_roots(stream);
  }

 private:
  std::vector<double> solution_of(Stream stream, std::span<const double> v) {
    const DeviceArray<double> vector(v);
    DeviceArray<double> solution(parameters_);
    apply_inverse_covariance(stream, parameters_, inverse_.data(), vector.data(), solution.data());
    OwnedStream::wait_for(stream);
    return solution.to_host();
  }
  /// Widths by the diagonal ask for single (A⁻¹)_kk.
  double error_at_largest(Stream stream, std::span<const double> v) {
    const std::vector<double> unit = unit_at_largest(v);
    return error_of(history_, stream, spec_, unit, solution_of(stream, unit), std::nullopt);
  }

  ParameterTable table() { return {delta_places_.data(), input_places_.data()}; }

  /// M by A⁻¹ itself; leaves G A⁻¹ in products_.
  void gram_of(Stream stream, const FactorRows& docs, double* m) {
    products_.reserve(stream, docs.docs * parameters_);
    workspace_.reserve(stream, inverse_gram_workspace(spec_.shape, docs.docs));
    inverse_covariance_gram(stream, spec_.shape, table(), docs, spec_.scale, inverse_.data(),
                            workspace_.data(), products_.data(), m);
  }
  void update(Stream stream, const FactorRows& docs, const double* m, const PreferencePair* pairs,
              std::int64_t count) {
    workspace_.reserve(stream, inverse_update_workspace(parameters_, count));
    update_inverse_covariance(stream, parameters_, docs.docs, products_.data(), m, spec_.scale, pairs,
                              count, workspace_.data(), inverse_.data(), status_.get());
  }
  void find_roots(Stream stream) {
    if (by_diagonal_) roots_of_inverse(stream, parameters_, spec_.scale, inverse_.data(), root_.data());
  }

  ResidentPosteriorSpec spec_;
  bool by_diagonal_;
  std::int64_t parameters_;
  ResidentPairs history_;
  DeviceArray<double> inverse_;  // A⁻¹, lower triangle
  DeviceArray<double> root_;     // √(s A⁻¹_kk)
  DeviceArray<std::int32_t> delta_places_;
  DeviceArray<std::int32_t> input_places_;
  GrowingArray<double> products_;  // G A⁻¹
  GrowingArray<double> exact_m_;
  GrowingArray<double> workspace_;
  Status status_;
};

/// The diagonal of A alone.
class DiagonalPosterior : public ResidentPosterior {
 public:
  DiagonalPosterior(const ResidentPosteriorSpec& spec, Stream stream)
      : spec_(spec), diagonal_(spec.shape.parameters()), root_(spec.shape.parameters()) {
    reset_diagonal(stream, spec.shape, spec.lambda, spec.scale, state());
  }

  void gram(Stream stream, const FactorRows& docs, double* m) override {
    workspace_.reserve(stream, diagonal_gram_workspace(spec_.shape, docs.docs));
    diagonal_gram(stream, spec_.shape, docs, root_.data(), workspace_.data(), m);
  }

  void observe(Stream stream, const FactorRows& docs, const double*, const PreferencePair* pairs,
               std::int64_t count) override {
    add_to_diagonal(stream, spec_.shape, docs, pairs, count, spec_.scale, state());
    diagonal_log_det(stream, spec_.shape.parameters(), diagonal_.data(), spec_.lambda,
                     &status_.get()->log_det);
    pairs_ += count;
  }

  const CovarianceStatus* status() const override { return status_.get(); }
  std::int64_t pairs() const override { return pairs_; }
  std::string_view form() const override { return "diagonal"; }
  std::int64_t bytes() const override {
    return 2 * spec_.shape.parameters() * static_cast<std::int64_t>(sizeof(double)) + workspace_.bytes();
  }

  void save(StateWriter& saved) const override {
    saved.put("device.diagonal_pairs", pairs_);
    saved.put("device.diagonal", diagonal_.to_host());
    saved.put("device.diagonal_root", root_.to_host());
    saved.put("device.log_det", status_.read().log_det);
  }
  void load(Stream, StateReader& saved) override {
    pairs_ = saved.get_one<std::int64_t>("device.diagonal_pairs");
    std::vector<double> numbers(spec_.shape.parameters());
    saved.get_into("device.diagonal", std::span(numbers));
    copy_to_device(std::span<const double>(numbers), diagonal_.data());
    saved.get_into("device.diagonal_root", std::span(numbers));
    copy_to_device(std::span<const double>(numbers), root_.data());
    status_.set({saved.get_one<double>("device.log_det"), 0});
  }

 private:
  DiagonalState state() { return {diagonal_.data(), root_.data()}; }

  ResidentPosteriorSpec spec_;
  DeviceArray<double> diagonal_;
  DeviceArray<double> root_;
  GrowingArray<double> workspace_;
  Status status_;
  std::int64_t pairs_ = 0;
};

/// Every width is 0.
class NoPosterior : public ResidentPosterior {
 public:
  void gram(Stream stream, const FactorRows& docs, double* m) override {
    fill_bytes(stream, m, 0, static_cast<std::size_t>(docs.docs * docs.docs) * sizeof(double));
  }
  void observe(Stream, const FactorRows&, const double*, const PreferencePair*,
               std::int64_t count) override {
    pairs_ += count;
  }
  const CovarianceStatus* status() const override { return status_.get(); }
  std::int64_t pairs() const override { return pairs_; }
  std::string_view form() const override { return "none"; }
  std::int64_t bytes() const override { return 0; }
  void save(StateWriter& state) const override { state.put("device.none_pairs", pairs_); }
  void load(Stream, StateReader& state) override {
    pairs_ = state.get_one<std::int64_t>("device.none_pairs");
  }

 private:
  Status status_;
  std::int64_t pairs_ = 0;
};

}  // namespace

std::unique_ptr<ResidentPosterior> make_resident_posterior(DeviceCovariance covariance,
                                                           const ResidentPosteriorSpec& spec,
                                                           Stream stream) {
  switch (covariance) {
    case DeviceCovariance::kDual:
      return std::make_unique<DualPosterior>(spec);
    case DeviceCovariance::kPrimal:
    case DeviceCovariance::kDiagonalOfInverse:
      return std::make_unique<PrimalPosterior>(spec, covariance == DeviceCovariance::kDiagonalOfInverse,
                                               stream, ResidentPairs(spec.shape));
    case DeviceCovariance::kDiagonal:
      return std::make_unique<DiagonalPosterior>(spec, stream);
    case DeviceCovariance::kNone:
      break;
  }
  return std::make_unique<NoPosterior>();
}

std::unique_ptr<ResidentPosterior> make_primal_of(std::unique_ptr<ResidentPosterior> dual,
                                                  const ResidentPosteriorSpec& spec, Stream stream) {
  ResidentPairs history = std::move(dynamic_cast<DualPosterior&>(*dual).history());
  dual.reset();
  return std::make_unique<PrimalPosterior>(spec, false, stream, std::move(history));
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
