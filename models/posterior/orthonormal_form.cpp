#include "models/posterior/full_posterior.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/math/any_cpu.h"
#include "core/ops/blas.h"

namespace olrank {
namespace {

using blas::Transpose;

constexpr std::int64_t kPairsAtOnce = 32;
constexpr std::int64_t kRoom = 128;        // memory grows by so many basis vectors
constexpr std::int64_t kBasisRows = 64;    // of Q per task
constexpr std::int64_t kParameters = 256;  // per task
constexpr std::int64_t kDocs = 16;         // per task

/// A new direction whose information is below this share of λ is left out, and one that is this short next
/// to its gradient: it is rounding.
constexpr double kLeastInformation = 1e-12;
constexpr double kLeastLength = 1e-14;
/// Squared widths below this share of M_ii + M_jj are computed from the difference itself.
constexpr double kCancelled = 1e-6;

double distance_sq(const double* a, const double* b, std::int64_t count) {
  double sum = 0.0;
  for (std::int64_t k = 0; k < count; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sum;
}

void subtract(double factor, const double* from, std::int64_t count, double* values) {
  for (std::int64_t k = 0; k < count; ++k) values[k] -= factor * from[k];
}

double inner_product(const double* a, const double* b, std::int64_t count) {
  double sum = 0.0;
  for (std::int64_t k = 0; k < count; ++k) sum += a[k] * b[k];
  return sum;
}

/// By an orthonormal basis Q [r × p] of the observed gradients, r ≤ min(n, p), for features of very
/// different scale:
///
/// A = λ(I − QᵀQ) + Qᵀ L Lᵀ Q, and ‖g‖²_{A⁻¹} = ‖g − QᵀQg‖²/λ + ‖L⁻¹Qg‖².
///
/// The dual form factorises K + λI and the primal one A, so their widths lose the digits of A's condition
/// number. Here L is a factor of the pairs' coordinates themselves, updated by rotations; nothing is
/// squared before it is factorised, and widths lose half as many digits. Gradients are taken relative to
/// the query's first document, and widths from differences where M would cancel. A query costs 4rp
/// operations per document, twice the primal form's where r = p.
class OrthonormalForm : public FullForm {
 public:
  using FullForm::FullForm;

  WidthHealth widths(ExecutionContext& context, const ObservedPairs&, TangentFactors docs,
                     std::span<double> width_sq) const override {
    const std::int64_t count = docs.docs;
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    const auto rest = scratch.take<double>(count * parameters_);
    context.for_blocks(parameters_, kParameters, [&](std::int64_t begin, std::int64_t end, int) {
      expand_docs(shape_, docs, 1.0, begin, end, rest.data() + begin, parameters_);
      for (std::int64_t doc = count; doc-- > 0;) {
        for (std::int64_t k = begin; k < end; ++k) rest[doc * parameters_ + k] -= rest[k];
      }
    });
    const auto known = scratch.take<double>(count * rank_);
    std::fill(known.begin(), known.end(), 0.0);
    project(context, count, rest.data(), known.data(), rank_);
    // A complete basis leaves only rounding.
    const std::int64_t unknown = rank_ < parameters_ ? parameters_ : 0;
    // Rows of L⁻¹Qg.
    context.for_blocks(count, kDocs, [&](std::int64_t begin, std::int64_t end, int worker) {
      Scratch& own = context.scratch(worker);
      const Scratch::Frame own_frame(own);
      const std::int64_t columns = end - begin;
      const auto solved = own.take<double>(rank_ * columns);
      for (std::int64_t r = 0; r < rank_; ++r) {
        for (std::int64_t i = 0; i < columns; ++i) solved[r * columns + i] = known[(begin + i) * rank_ + r];
      }
      blas::solve_lower(Transpose::kNo, rank_, columns, root(), stride_, solved.data(), columns);
      for (std::int64_t r = 0; r < rank_; ++r) {
        for (std::int64_t i = 0; i < columns; ++i) known[(begin + i) * rank_ + r] = solved[r * columns + i];
      }
    });
    context.for_blocks(count, kDocs, [&](std::int64_t begin, std::int64_t end, int) {
      double* m = width_sq.data() + begin * count;
      blas::gemm(Transpose::kNo, Transpose::kYes, end - begin, end, rank_, scale_,
                 known.data() + begin * rank_, rank_, known.data(), rank_, 0.0, m, count);
      blas::gemm(Transpose::kNo, Transpose::kYes, end - begin, end, unknown, scale_ / lambda_,
                 rest.data() + begin * parameters_, parameters_, rest.data(), parameters_, 1.0, m, count);
    });
    const auto own = scratch.take<double>(count);
    for (std::int64_t i = 0; i < count; ++i) own[i] = width_sq[i * (count + 1)];
    WidthHealth health = pair_width_sq(context, count, width_sq.data(), width_sq.data());
    health.negative = 0;
    const std::size_t row_bytes = static_cast<std::size_t>(shape_.factors()) * sizeof(float);
    context.for_blocks(count, 1, [&](std::int64_t i, std::int64_t, int) {
      for (std::int64_t j = 0; j < i; ++j) {
        double& found = width_sq[i * count + j];
        if (found > kCancelled * (own[i] + own[j]) || !std::isfinite(own[i] + own[j])) continue;
        found = 0.0;
        if (std::memcmp(docs.row(shape_, i), docs.row(shape_, j), row_bytes) == 0) continue;
        found = scale_ * (distance_sq(&known[i * rank_], &known[j * rank_], rank_) +
                          distance_sq(&rest[i * parameters_], &rest[j * parameters_], unknown) / lambda_);
      }
    });
    mirror_lower(count, width_sq.data());
    return health;
  }
  std::unique_ptr<FullForm> freeze() const override {
    shared_ = true;
    return std::make_unique<OrthonormalForm>(*this);
  }
  void observe(ExecutionContext& context, const ObservedPairs& history, std::int64_t first, TangentFactors,
               std::span<const PreferencePair>) override {
    for (std::int64_t begin = first; begin < history.pairs(); begin += kPairsAtOnce)
      take(context, history, begin, std::min(kPairsAtOnce, history.pairs() - begin));
    log_det_ = 0.0;
    for (std::int64_t r = 0; r < rank_; ++r)
      log_det_ += 2.0 * log_of(root()[r * (stride_ + 1)]) - log_of(lambda_);
  }
  void rebuild(ExecutionContext& context, const ObservedPairs& history) override {
    rank_ = 0;
    basis_.reset();
    root_.reset();
    stride_ = 0;
    shared_ = false;
    observe(context, history, 0, {}, {});
  }
  void solve(ExecutionContext& context, const ObservedPairs&, std::span<const double> v,
             std::span<double> solution) const override {
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    const auto known = scratch.take<double>(rank_);
    std::fill(known.begin(), known.end(), 0.0);
    std::copy(v.begin(), v.end(), solution.begin());
    for (int pass = 0; pass < 2; ++pass) project(context, 1, solution.data(), known.data(), rank_);
    blas::solve_lower(Transpose::kNo, rank_, 1, root(), stride_, known.data(), 1);
    blas::solve_lower(Transpose::kYes, rank_, 1, root(), stride_, known.data(), 1);
    const double weight = rank_ < parameters_ ? 1.0 / lambda_ : 0.0;
    for (double& value : solution) value *= weight;
    context.for_blocks(parameters_, kParameters, [&](std::int64_t begin, std::int64_t end, int) {
      blas::gemm(Transpose::kNo, Transpose::kNo, 1, end - begin, rank_, 1.0, known.data(), rank_,
                 basis() + begin, parameters_, 1.0, solution.data() + begin, parameters_);
    });
  }

  double log_det() const override { return log_det_; }
  std::int64_t bytes() const override {
    return rank_ * (parameters_ + rank_) * static_cast<std::int64_t>(sizeof(double));
  }
  void save(StateWriter& state) const override {
    state.put("orthonormal_rank", rank_);
    state.put("orthonormal_room", stride_);  // the BLAS may round differently for other strides
    state.put("orthonormal_log_det", log_det_);
    state.put("orthonormal_basis", std::span<const double>(basis(), rank_ * parameters_));
    std::vector<double> root;
    for (std::int64_t r = 0; r < rank_; ++r)
      root.insert(root.end(), this->root() + r * stride_, this->root() + r * stride_ + r + 1);
    state.put("orthonormal_root", root);
  }
  void load(StateReader& state, const ObservedPairs&) override {
    const auto rank = state.get_one<std::int64_t>("orthonormal_rank");
    const auto room = state.get_one<std::int64_t>("orthonormal_room");
    if (rank < 0 || room < rank || room > parameters_)
      state.fail(fmt::format("The covariance has {} directions of {} parameters and room for {}.", rank,
                             parameters_, room));
    const auto log_det = state.get_one<double>("orthonormal_log_det");
    const std::vector<double> basis = state.get<double>("orthonormal_basis");
    const std::vector<double> root = state.get<double>("orthonormal_root");
    if (std::ssize(basis) != rank * parameters_ || std::ssize(root) != rank * (rank + 1) / 2)
      state.fail("The directions of the covariance do not fit their number.");
    basis_ = std::make_shared<Matrix>(room * parameters_);
    root_ = std::make_shared<Matrix>(room * room);
    std::copy(basis.begin(), basis.end(), basis_->begin());
    const double* next = root.data();
    for (std::int64_t r = 0; r < rank; ++r) {
      std::copy_n(next, r + 1, root_->data() + r * room);
      next += r + 1;
    }
    rank_ = rank;
    stride_ = room;
    shared_ = false;
    log_det_ = log_det;
  }

 private:
  using Matrix = AlignedVector<double>;

  const double* basis() const { return basis_ ? basis_->data() : nullptr; }
  const double* root() const { return root_ ? root_->data() : nullptr; }
  /// Makes room for at least so many basis vectors, and L writable.
  void make_room(std::int64_t vectors) {
    if (vectors > stride_) {
      const std::int64_t room = std::min(parameters_, (vectors / kRoom + 1) * kRoom);
      auto basis = std::make_shared<Matrix>(room * parameters_);
      auto root = std::make_shared<Matrix>(room * room);
      std::copy_n(this->basis(), rank_ * parameters_, basis->data());
      for (std::int64_t r = 0; r < rank_; ++r)
        std::copy_n(this->root() + r * stride_, rank_, root->data() + r * room);
      basis_ = std::move(basis);
      root_ = std::move(root);
      stride_ = room;
    } else if (shared_) {
      root_ = std::make_shared<Matrix>(*root_);
    }
    shared_ = false;
  }
  /// Takes in pairs `first` to `first + count`. With finite gradients nothing can fail.
  void take(ExecutionContext& context, const ObservedPairs& history, std::int64_t first,
            std::int64_t count) {
    make_room(std::min(parameters_, rank_ + count));
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    const auto rest = scratch.take<double>(count * parameters_);
    const std::int64_t width = rank_ + count;
    const auto coordinates = scratch.take<double>(count * width);
    std::fill(coordinates.begin(), coordinates.end(), 0.0);
    context.for_blocks(parameters_, kParameters, [&](std::int64_t begin, std::int64_t end, int) {
      expand_pairs(shape_, history.range(first, count), 1.0, begin, end, rest.data() + begin, parameters_);
    });
    std::vector<double> length_sq(count);
    for (std::int64_t i = 0; i < count; ++i) {
      const double* row = rest.data() + i * parameters_;
      length_sq[i] = inner_product(row, row, parameters_);
    }
    // Gram–Schmidt twice: once leaves parts of the basis in the rest.
    for (int pass = 0; pass < 2; ++pass) project(context, count, rest.data(), coordinates.data(), width);
    const std::int64_t before = rank_;
    RootUpdate update;
    for (std::int64_t i = 0; i < count; ++i) {
      double* row = rest.data() + i * parameters_;
      double* own = coordinates.data() + i * width;
      for (int pass = 0; pass < 2; ++pass) {
        for (std::int64_t r = before; r < rank_; ++r) {
          const double* vector = basis() + r * parameters_;
          const double along = inner_product(row, vector, parameters_);
          own[r] += along;
          subtract(along, vector, parameters_, row);
        }
      }
      const double length = std::sqrt(inner_product(row, row, parameters_));
      if (rank_ < parameters_ && scale_ * length * length > kLeastInformation * lambda_ &&
          length > kLeastLength * std::sqrt(length_sq[i])) {
        double* vector = basis_->data() + rank_ * parameters_;
        for (std::int64_t k = 0; k < parameters_; ++k) vector[k] = row[k] / length;
        // A rest that is mostly rounding is not orthogonal yet.
        for (int pass = 0; pass < 2; ++pass) {
          project(context, 1, vector, nullptr, 0);
          const double again = std::sqrt(inner_product(vector, vector, parameters_));
          for (std::int64_t k = 0; k < parameters_; ++k) vector[k] /= again;
        }
        double* root = root_->data() + rank_ * stride_;
        std::fill_n(root, rank_, 0.0);
        root[rank_] = std::sqrt(lambda_);
        own[rank_++] = length;
      }
      for (std::int64_t r = 0; r < rank_; ++r) own[r] *= std::sqrt(scale_);
      update.add({own, static_cast<std::size_t>(rank_)}, root_->data(), stride_);
    }
  }
  /// Splits vectors [count × p] into coordinates [count × rank_], which are added to unless null, and the
  /// rest.
  void project(ExecutionContext& context, std::int64_t count, double* vectors, double* coordinates,
               std::int64_t stride) const {
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    const auto step = scratch.take<double>(count * rank_);
    context.for_blocks(rank_, kBasisRows, [&](std::int64_t begin, std::int64_t end, int) {
      blas::gemm(Transpose::kNo, Transpose::kYes, count, end - begin, parameters_, 1.0, vectors,
                 parameters_, basis() + begin * parameters_, parameters_, 0.0, step.data() + begin, rank_);
    });
    context.for_blocks(parameters_, kParameters, [&](std::int64_t begin, std::int64_t end, int) {
      blas::gemm(Transpose::kNo, Transpose::kNo, count, end - begin, rank_, -1.0, step.data(), rank_,
                 basis() + begin, parameters_, 1.0, vectors + begin, parameters_);
    });
    if (coordinates == nullptr) return;
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t r = 0; r < rank_; ++r) coordinates[i * stride + r] += step[i * rank_ + r];
    }
  }

  std::int64_t parameters_ = shape_.parameters();
  std::int64_t rank_ = 0;          // r
  std::shared_ptr<Matrix> basis_;  // Q; rows are appended, and a copy reads those that it knows
  std::shared_ptr<Matrix> root_;   // L, lower triangle, rows stride_ numbers apart
  std::int64_t stride_ = 0;        // the rows of both that fit into memory
  mutable bool shared_ = false;    // L, with a frozen form
  double log_det_ = 0.0;           // log det(A)/det(λI)
};

}  // namespace

std::unique_ptr<FullForm> make_orthonormal_form(const TangentShape& shape, double lambda, double scale) {
  return std::make_unique<OrthonormalForm>(shape, lambda, scale);
}

void RootUpdate::add(std::span<const double> c, double* l, std::int64_t stride) {
  const auto n = std::ssize(c);
  cosine_.resize(n);
  sine_.resize(n);
  for (std::int64_t i = 0; i < n; ++i) {
    double* row = l + i * stride;
    double carried = c[i];
    for (std::int64_t j = 0; j < i; ++j) {
      const double old = row[j];
      row[j] = cosine_[j] * old + sine_[j] * carried;
      carried = cosine_[j] * carried - sine_[j] * old;
    }
    const double length = blas::length(row[i], carried);
    cosine_[i] = row[i] / length;
    sine_[i] = carried / length;
    row[i] = length;
  }
}

}  // namespace olrank
