#include "cuda/engine/resident_posterior.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/log.h"
#include "cuda/engine/drift_check.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/resident_pairs.h"
#include "cuda/ops/certain_orders.h"
#include "cuda/ops/covariance_matrix.h"
#include "cuda/ops/inverse_factor.h"
#include "cuda/runtime/factorisation.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

/// Whether `factorise` has succeeded, in the memory that is left.
bool in_memory(std::int64_t n, FunctionRef<bool()> factorise) {
  constexpr std::int64_t kMost = 16'384;  // rows: 2 GiB
  if (n == 0 || n > kMost) return false;
  finish_queued_work();  // whose failures are not of this memory
  try {
    if (Factorisation::has_room(n)) return factorise();
  } catch (const OutOfDeviceMemory&) {
    // Another trial was faster.
  }
  log_detail("The GPU's memory has no room to factorise {0} × {0} numbers.", n);
  return false;
}

/// The Cholesky factor of a covariance's matrix, formed from all observed pairs at once and factorised by a
/// library, so that it shares no rounding with what grew pair by pair. Rebuilds take it over, and drift
/// checks compare with it. It exists for a moment only, since a matrix takes twice the memory of a packed
/// L⁻¹; larger matrices, or those without room in the memory that is free, are left to other ways, which
/// give the same to rounding. All calls wait.
class FreshFactor {
 public:
  /// Writes the lower triangle of the matrix [n × n].
  using Fill = FunctionRef<void(double* workspace, double* matrix)>;

  /// Null if n is 0 or too large, if memory has no room, or if rounding has made the matrix indefinite.
  static std::unique_ptr<FreshFactor> of(Stream stream, std::int64_t n, std::int64_t workspace, Fill fill) {
    std::unique_ptr<FreshFactor> made;
    const bool found = in_memory(n, [&] {
      made.reset(new FreshFactor(n));
      return fill_and_factorise(stream, workspace, made->library_, made->values_.data(), fill);
    });
    if (!found) made.reset();
    return made;
  }

  /// Factorises in memory of the caller, which then holds the inverse of the matrix, both triangles; `see`
  /// is shown the factor before. Returns false, with the memory's contents lost, where of() returns null.
  static bool replace_by_inverse(Stream stream, std::int64_t n, std::int64_t workspace, double* matrix,
                                 Fill fill, FunctionRef<void(const double* l)> see) {
    return in_memory(n, [&] {
      Factorisation library(n);
      if (!fill_and_factorise(stream, workspace, library, matrix, fill)) return false;
      see(matrix);
      library.invert_from_factor(stream, matrix);
      mirror_lower(stream, n, matrix);
      return true;
    });
  }

  /// L [n × n], or L⁻¹ after invert().
  const double* values() const { return values_.data(); }
  /// Returns false, with L lost, if memory is full.
  bool invert(Stream stream) {
    try {
      library_.invert_factor(stream, values_.data());
      return true;
    } catch (const OutOfDeviceMemory&) {
      return false;
    }
  }
  /// x [columns × n] ← the matrix's inverse times each, before invert().
  void solve(Stream stream, std::int64_t columns, double* x) {
    library_.solve(stream, values_.data(), columns, x);
  }

 private:
  explicit FreshFactor(std::int64_t n) : values_(n * n), library_(n) {}

  static bool fill_and_factorise(Stream stream, std::int64_t workspace_size, Factorisation& library,
                                 double* matrix, Fill fill) {
    DeviceArray<double> workspace(workspace_size);
    fill(workspace.data(), matrix);
    return library.factorise(stream, matrix);
  }

  DeviceArray<double> values_;
  Factorisation library_;
};

/// Both forms of a full covariance share the observed pairs, and drift checks by solutions of A y = v.
class ExactPosterior : public ResidentPosterior {
 public:
  ExactPosterior(const PosteriorSpec& spec, ResidentPairs history)
      : ResidentPosterior(spec), history_(std::move(history)), check_(spec.shape) {}

  std::vector<double> errors_of(Stream stream, const DriftProbes& probes) override {
    check_.bring(stream, probes, history_);
    const std::int64_t columns = check_.columns();
    std::swap(checked_, latest_);  // observe() reads the latest gram's
    gram(stream, check_.pair_docs(), check_.m());
    std::swap(checked_, latest_);
    solve(stream, fresh_ == nullptr ? columns : check_.vectors(), nullptr, check_.own());
    double* y = check_.own();
    if (fresh_ != nullptr) {
      y = check_.fresh(stream);
      solve(stream, columns, fresh_.get(), y);
    }
    const std::int64_t n = history_.pairs();
    given_.reserve(stream, columns * n);
    history_.products(stream, columns, y, 1.0, {given_.data(), columns, 1});
    return check_.errors(stream, y,
                         {.rows = n,
                          .left = given_.data(),
                          .right = given_.data(),
                          .lambda = spec_.lambda,
                          .factor = spec_.scale,
                          .scale = spec_.scale});
  }
  bool factorise_afresh(Stream stream) override {
    fresh_ = fresh_factor(stream);
    return fresh_ != nullptr;
  }
  void drop_fresh_factor() override { fresh_.reset(); }

  std::int64_t pairs() const override { return history_.pairs(); }
  std::int64_t bytes() const override {
    return bytes_of(history_, latest_, workspace_, checked_, given_, solution_, check_);
  }
  ResidentPairs& history() { return history_; }

 protected:
  /// y = A⁻¹v for the first columns of check_, by a fresh factor, or by the form's own numbers where that
  /// is null.
  virtual void solve(Stream stream, std::int64_t columns, FreshFactor* fresh, double* y) = 0;
  /// Null where FreshFactor gives none.
  virtual std::unique_ptr<FreshFactor> fresh_factor(Stream stream) = 0;

  ResidentPairs history_;
  GrowingArray<double> latest_;  // L⁻¹K_nV or G A⁻¹ of the latest gram, for observe()
  GrowingArray<double> workspace_;
  // Drift checks use these, kept because freeing memory waits for the whole device.
  DriftCheck check_;
  GrowingArray<double> checked_;  // the same for its probes, [n × columns] like the next two
  GrowingArray<double> given_;
  GrowingArray<double> solution_;

 private:
  std::unique_ptr<FreshFactor> fresh_;
};

/// It is in dual form, by pairs: core/ops/inverse_factor.h.
class DualPosterior : public ExactPosterior {
 public:
  explicit DualPosterior(const PosteriorSpec& spec) : ExactPosterior(spec, ResidentPairs(spec.shape)) {}

  void gram(Stream stream, const FactorRows& docs, double* m) override {
    gram_of(stream, history_.pairs(), docs, m);
  }

  void observe(Stream stream, const FactorRows& docs, const double* m, const PreferencePair* pairs,
               std::int64_t count) override {
    append(stream, history_.pairs(), docs, m, pairs, count);
    history_.append(stream, docs, pairs, count);
  }

  void rebuild(Stream stream) override {
    factor_saves_.change();
    tail_saves_.change();
    if (const auto fresh = fresh_factor(stream)) {
      const std::int64_t n = history_.pairs();
      const FactorTail tail(n, tail_.data());
      const double* rows = fresh->values() + tail.head * n;
      status_of_factor(stream, n, fresh->values(), spec_.lambda, status_.get());
      clear_numbers(stream, tail.values, tail.numbers());
      copy_matrix(stream, tail.rows, tail.head, {rows, n}, tail.values, tail.stride());
      if (fresh->invert(stream)) {
        copy_matrix(stream, tail.rows, tail.rows, {rows + tail.head, n}, tail.values + tail.head,
                    tail.stride(), true);
        pack_factor(stream, tail.head, fresh->values(), n, factor_.data());
        OwnedStream::wait_for(stream);  // `fresh` is freed
        return;
      }
    }
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

  std::int64_t bytes() const override {
    return ExactPosterior::bytes() + bytes_of(factor_, tail_, kernel_);
  }

  void save(StateWriter& state) const override {
    history_.save(state);
    const FactorTail tail(history_.pairs());
    factor_saves_.put(state, "device.factor", factor_.data(), factor_numbers(tail.head));
    tail_saves_.put(state, "device.tail", tail_.data(), tail.rows * tail.stride());
    status_.save(state);
  }
  void load(Stream stream, StateReader& state) override {
    history_.load(stream, state);
    const FactorTail tail(history_.pairs());
    std::vector<double> factor = state.get<double>("device.factor");
    const bool has_tail = state.is_next("device.tail");
    std::vector<double> newest(tail.rows * tail.stride());
    if (has_tail && std::ssize(factor) != factor_numbers(tail.head))
      state.fail("The covariance's factor does not have the size that its pairs need.");
    if (has_tail) state.get_into("device.tail", std::span(newest));
    factor_saves_.change();
    tail_saves_.change();
    factor_.reserve(stream, factor_numbers(tail.head));
    tail_.reserve(stream, tail.numbers());
    status_.load(state);
    if (!has_tail) {  // of an earlier version
      rebuild(stream);
      return;
    }
    OwnedStream::wait_for(stream);
    copy_to_device(std::span<const double>(factor), factor_.data());
    copy_to_device(std::span<const double>(newest), tail_.data());
  }

 private:
  /// Factorises s K + λI.
  std::unique_ptr<FreshFactor> fresh_factor(Stream stream) override {
    const std::int64_t n = history_.pairs();
    return FreshFactor::of(stream, n, pair_kernel_workspace(n), [&](double* workspace, double* matrix) {
      pair_kernel(stream, spec_.shape, history_.all(), spec_.scale, spec_.lambda, workspace, matrix);
    });
  }

  // A⁻¹v = (v − s Γᵀ (s K + λI)⁻¹ Γv)/λ, Γ's rows the g_s, by L⁻¹ or by a fresh factor.
  void solve(Stream stream, std::int64_t columns, FreshFactor* fresh, double* y) override {
    const std::int64_t n = history_.pairs();
    solution_.reserve(stream, columns * n);
    const PairColumns solved{solution_.data(), 1, n};
    if (fresh != nullptr) {
      history_.products(stream, columns, check_.v(), 1.0, solved);
      fresh->solve(stream, columns, solution_.data());
    } else {
      given_.reserve(stream, columns * n);
      checked_.reserve(stream, columns * n);
      const FactorTail tail(n, tail_.data());
      workspace_.reserve(stream, std::max({apply_factor_workspace(tail.head, columns),
                                           tail_workspace(tail, columns, false),
                                           apply_factor_transposed_workspace(tail.head, columns)}));
      history_.products(stream, columns, check_.v(), 1.0, {given_.data(), columns, 1});
      apply_factor(stream, tail.head, factor_.data(), columns, given_.data(), workspace_.data(),
                   checked_.data(), columns);
      apply_tail(stream, tail, columns, given_.data(), workspace_.data(), checked_.data(), columns);
      apply_factor_transposed(stream, tail, factor_.data(), columns, checked_.data(), workspace_.data(),
                              solution_.data());
    }
    history_.sum(stream, columns, solved, y);
    finish_solutions(stream, columns * spec_.shape.parameters(), check_.v(), spec_.scale, spec_.lambda, y);
  }

  /// M of the documents given the first n pairs; leaves S = L⁻¹K_nV in latest_.
  void gram_of(Stream stream, std::int64_t n, const FactorRows& docs, double* m) {
    kernel_.reserve(stream, n * docs.docs);
    latest_.reserve(stream, n * docs.docs);
    const FactorTail tail(n, tail_.data());
    workspace_.reserve(stream, std::max(apply_factor_workspace(tail.head, docs.docs),
                                        tail_workspace(tail, docs.docs, true)));
    query_kernels(stream, spec_.shape, docs, history_.range(0, n), spec_.scale, m, kernel_.data(),
                  docs.docs);
    apply_factor(stream, tail.head, factor_.data(), docs.docs, kernel_.data(), workspace_.data(),
                 latest_.data(), docs.docs);
    dual_gram(stream, tail, docs.docs, kernel_.data(), latest_.data(), docs.docs, spec_.lambda,
              workspace_.data(), m);
  }

  void append(Stream stream, std::int64_t n, const FactorRows& docs, const double* m,
              const PreferencePair* pairs, std::int64_t count) {
    const FactorTail before(n);
    const FactorTail after(n + count);
    if (factor_.moves_to_hold(factor_numbers(after.head))) factor_saves_.release();
    factor_.reserve(stream, factor_numbers(after.head), factor_numbers(before.head));
    // Rows that became rows of L⁻¹ make room for others.
    if (after.head > before.head || tail_.moves_to_hold(after.numbers())) tail_saves_.change();
    tail_.reserve(stream, after.numbers(), before.rows * before.stride());
    workspace_.reserve(stream, append_workspace(n, count));
    append_pairs(stream, n, factor_.data(), tail_.data(), docs.docs, latest_.data(), docs.docs, m,
                 spec_.lambda, pairs, count, workspace_.data(), status_.get());
  }

  MappedArray<double> factor_;  // L⁻¹, row blocks one after another
  ArraySaves factor_saves_;
  MappedArray<double> tail_;  // the newest rows, FactorTail
  ArraySaves tail_saves_;
  GrowingArray<double> kernel_;  // s K_nV
};

/// The primal form goes by parameters: core/ops/covariance.h. Widths use A⁻¹ or its diagonal alone.
class PrimalPosterior : public ExactPosterior {
 public:
  PrimalPosterior(const PosteriorSpec& spec, Products& products, ResidentPairs history)
      : ExactPosterior(spec, std::move(history)),
        library_(&products),
        parameters_(spec.shape.parameters()),
        inverse_(parameters_ * parameters_),
        tail_(DelayedInverse::kRows * parameters_) {
    rebuild(products.stream());
  }

  void gram(Stream stream, const FactorRows& docs, double* m) override {
    latest_.reserve(stream, docs.docs * parameters_);
    workspace_.reserve(stream, inverse_gram_workspace(spec_.shape, docs.docs));
    inverse_covariance_gram(*library_, spec_.shape, docs, spec_.scale, delayed(), workspace_.data(),
                            latest_.data(), m);
  }

  void observe(Stream stream, const FactorRows& docs, const double* m, const PreferencePair* pairs,
               std::int64_t count) override {
    update(stream, docs, m, pairs, count);
    history_.append(stream, docs, pairs, count);
  }

  void rebuild(Stream stream) override {
    change_inverse();
    tail_rows_ = 0;
    clear_numbers(stream, tail_.data(), tail_.size());
    if (invert_afresh(stream)) return;
    OwnedStream::wait_for(stream);
    status_.reset();
    reset_inverse_covariance(stream, parameters_, spec_.lambda, inverse_.data());
    DeviceArray<double> m(ResidentPairs::kMostReplayed * ResidentPairs::kMostReplayed);
    history_.replay(stream, [&](const FactorRows& docs, const PreferencePair* pairs, std::int64_t count) {
      gram(stream, docs, m.data());
      update(stream, docs, m.data(), pairs, count);
    });
  }

  std::int64_t bytes() const override { return ExactPosterior::bytes() + bytes_of(inverse_, tail_); }

  void save(StateWriter& state) const override {
    history_.save(state);
    inverse_saves_.put(state, "device.whole_inverse", inverse_.data(), inverse_.size());
    tail_saves_.put(state, "device.inverse_tail", tail_.data(), tail_rows_ * parameters_);
    status_.save(state);
  }
  void load(Stream stream, StateReader& state) override {
    history_.load(stream, state);
    if (state.is_next("device.inverse")) {  // of an earlier version
      state.get<double>("device.inverse");
      status_.load(state);
      rebuild(stream);
      return;
    }
    OwnedStream::wait_for(stream);
    change_inverse();
    load_array(state, "device.whole_inverse", inverse_);
    std::vector<double> rows = state.get<double>("device.inverse_tail");
    if (std::ssize(rows) > tail_.size() || std::ssize(rows) % parameters_ != 0)
      state.fail("The newest rows of the covariance's inverse are not whole, or too many.");
    tail_rows_ = std::ssize(rows) / parameters_;
    rows.resize(static_cast<std::size_t>(tail_.size()));
    copy_to_device(std::span<const double>(rows), tail_.data());
    status_.load(state);
  }

 private:
  std::unique_ptr<FreshFactor> fresh_factor(Stream stream) override {
    return FreshFactor::of(stream, parameters_, pair_covariance_workspace(parameters_),
                           [&](double* workspace, double* matrix) { find_covariance(workspace, matrix); });
  }
  void find_covariance(double* workspace, double* matrix) {
    pair_covariance(*library_, spec_.shape, history_.all(), spec_.scale, spec_.lambda, workspace, matrix);
  }

  void solve(Stream stream, std::int64_t columns, FreshFactor* fresh, double* y) override {
    if (fresh == nullptr) {
      workspace_.reserve(stream, columns * DelayedInverse::kRows);
      apply_inverse(*library_, parameters_, columns, check_.v(), delayed(), workspace_.data(), y);
      return;
    }
    copy_numbers(stream, y, check_.v(), columns * parameters_);
    fresh->solve(stream, columns, y);
  }

  /// A⁻¹ from A, in the place of A⁻¹, if a replay would do more work: p³ operations against four passes of
  /// p² for each pair. Returns whether it has succeeded.
  bool invert_afresh(Stream stream) {
    if (4 * history_.pairs() < parameters_) return false;
    return FreshFactor::replace_by_inverse(
        stream, parameters_, pair_covariance_workspace(parameters_), inverse_.data(),
        [&](double* workspace, double* matrix) { find_covariance(workspace, matrix); },
        [&](const double* l) { status_of_factor(stream, parameters_, l, spec_.lambda, status_.get()); });
  }

  /// It has to be called before the inverse changes, or rows of the tail that are there.
  void change_inverse() {
    inverse_saves_.change();
    tail_saves_.change();
  }
  DelayedInverse delayed() { return {inverse_.data(), tail_.data(), tail_rows_}; }

  void update(Stream stream, const FactorRows& docs, const double* m, const PreferencePair* pairs,
              std::int64_t count) {
    DelayedInverse a = delayed();
    if (a.rows + count > DelayedInverse::kRows) {
      change_inverse();
      close_inverse(*library_, parameters_, a);
    }
    workspace_.reserve(stream, 2 * count * count);
    observe_in_inverse(stream, parameters_, docs.docs, latest_.data(), m, spec_.scale, pairs, count,
                       workspace_.data(), a, status_.get());
    tail_rows_ = a.rows;
  }

  Products* library_;
  std::int64_t parameters_;
  DeviceArray<double> inverse_;  // DelayedInverse
  ArraySaves inverse_saves_;
  DeviceArray<double> tail_;
  std::int64_t tail_rows_ = 0;
  ArraySaves tail_saves_;
};

/// The diagonal of A alone, which nothing can make drift.
class ResidentDiagonal : public ResidentPosterior {
 public:
  ResidentDiagonal(const PosteriorSpec& spec, Stream stream)
      : ResidentPosterior(spec), diagonal_(spec.shape.parameters()), root_(spec.shape.parameters()) {
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

  std::int64_t pairs() const override { return pairs_; }
  std::int64_t bytes() const override { return bytes_of(diagonal_, root_, workspace_); }

  void save(StateWriter& saved) const override {
    saved.put("device.diagonal_pairs", pairs_);
    saved.put("device.diagonal", diagonal_.to_host());
    saved.put("device.diagonal_root", root_.to_host());
    status_.save(saved);
  }
  void load(Stream, StateReader& saved) override {
    pairs_ = saved.get_one<std::int64_t>("device.diagonal_pairs");
    load_array(saved, "device.diagonal", diagonal_);
    load_array(saved, "device.diagonal_root", root_);
    status_.load(saved);
  }

 private:
  DiagonalState state() { return {diagonal_.data(), root_.data()}; }

  DeviceArray<double> diagonal_;
  DeviceArray<double> root_;
  GrowingArray<double> workspace_;
  std::int64_t pairs_ = 0;
};

/// Every width is 0.
class ResidentNothing : public ResidentPosterior {
 public:
  using ResidentPosterior::ResidentPosterior;

  void gram(Stream stream, const FactorRows& docs, double* m) override {
    clear_numbers(stream, m, docs.docs * docs.docs);
  }
  void observe(Stream, const FactorRows&, const double*, const PreferencePair*,
               std::int64_t count) override {
    pairs_ += count;
  }
  std::int64_t pairs() const override { return pairs_; }
  std::int64_t bytes() const override { return 0; }
  void save(StateWriter& state) const override { state.put("device.none_pairs", pairs_); }
  void load(Stream, StateReader& state) override {
    pairs_ = state.get_one<std::int64_t>("device.none_pairs");
  }

 private:
  std::int64_t pairs_ = 0;
};

}  // namespace

std::unique_ptr<ResidentPosterior> make_resident_posterior(const PosteriorSpec& spec, Products& products) {
  if (spec.covariance == Covariance::kFull) {
    if (spec.is_dual()) return std::make_unique<DualPosterior>(spec);
    return std::make_unique<PrimalPosterior>(spec, products, ResidentPairs(spec.shape));
  }
  if (spec.covariance == Covariance::kDiagonal)
    return std::make_unique<ResidentDiagonal>(spec, products.stream());
  return std::make_unique<ResidentNothing>(spec);  // others are the CPU's alone: why_not_on_device()
}

std::unique_ptr<ResidentPosterior> make_primal_of(std::unique_ptr<ResidentPosterior> dual,
                                                  Products& products) {
  PosteriorSpec spec = dual->spec();
  spec.form = CovarianceForm::kPrimal;
  ResidentPairs history = std::move(dynamic_cast<DualPosterior&>(*dual).history());
  dual.reset();
  return std::make_unique<PrimalPosterior>(spec, products, std::move(history));
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
