#include "models/clickgp/click_belief.h"

#include <algorithm>
#include <cmath>

#include "core/math/host_device.h"
#include "core/ops/blas.h"

namespace olrank {
namespace {

constexpr double kFirstConstant = -0.5;
constexpr std::int64_t kLanes = 8;

/// a·b.
OLRANK_VECTOR_CLONES
double in_lanes(std::int64_t count, const double* a, const double* b) {
  double sums[kLanes] = {};
  const std::int64_t whole = count - count % kLanes;
  for (std::int64_t c = 0; c < whole; c += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[c + lane] * b[c + lane];
  }
  for (std::int64_t c = whole; c < count; ++c) sums[c - whole] += a[c] * b[c];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

/// B ← L⁻¹ B with L [n × n] lower triangular, B [n × kLanes]. A row of B stays in vector registers: BLAS
/// takes several times as long for so few columns.
OLRANK_VECTOR_CLONES
void solve_in_lanes(std::int64_t n, const double* l, double* b) {
  for (std::int64_t first = 0; first < n; first += 2) {
    const double* const rows[2] = {l + first * n, l + std::min(first + 1, n - 1) * n};
    double sums[2][kLanes] = {};
    for (std::int64_t k = 0; k < first; ++k) {
      for (std::int64_t row = 0; row < 2; ++row) {
        for (std::int64_t lane = 0; lane < kLanes; ++lane)
          sums[row][lane] += rows[row][k] * b[k * kLanes + lane];
      }
    }
    for (std::int64_t row = 0; row < std::min<std::int64_t>(2, n - first); ++row) {
      double* const solved = b + (first + row) * kLanes;
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        if (row == 1) sums[1][lane] += rows[1][first] * b[first * kLanes + lane];
        solved[lane] = (solved[lane] - sums[row][lane]) / rows[row][first + row];
      }
    }
  }
}

/// products = Σ_k a_k · row k of B, with B [n × kLanes] and a one of the lanes of such a matrix.
OLRANK_VECTOR_CLONES
void sum_of_lanes(std::int64_t n, const double* a, const double* b, double* products) {
  double sums[kLanes] = {};
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[k * kLanes] * b[k * kLanes + lane];
  }
  for (std::int64_t lane = 0; lane < kLanes; ++lane) products[lane] = sums[lane];
}

}  // namespace

ClickBelief::ClickBelief(const ClickFeatures& features) : features_(features), theta_(features.columns()) {
  theta_.front() = kFirstConstant;
  if (features.start() != nullptr) theta_[features.centred()] = 1.0;  // the start model's order
}

void ClickBelief::set_products(ProductPlaces products) {
  const ProductPlaces& before = *features_.products();
  const std::int64_t first = features_.products_column();
  if (products.size() != before.size()) factor_.reset();  // of another width
  theta_.resize(first + std::ssize(products));
  for (std::size_t p = 0; p < std::min(before.size(), products.size()); ++p) {
    if (products[p] != before[p]) theta_[first + static_cast<std::int64_t>(p)] = 0.0;
  }
  features_.set_products(std::move(products));
}

void ClickBelief::solve(std::shared_ptr<AlignedVector<double>> precision,
                        std::span<const double> evidence) {
  const std::int64_t size = columns();
  blas::cholesky(size, precision->data(), size);
  factor_ = std::move(precision);  // a frozen ranker may hold the old one
  theta_.assign(evidence.begin(), evidence.end());
  divide_by_precision(theta_);
}

void ClickBelief::divide_by_precision(std::span<double> x) const {
  const std::int64_t size = columns();
  blas::solve_lower(blas::Transpose::kNo, size, 1, factor_->data(), size, x.data(), 1);
  blas::solve_lower(blas::Transpose::kYes, size, 1, factor_->data(), size, x.data(), 1);
}

void ClickBelief::move(std::span<const double> direction, double step) {
  for (std::size_t c = 0; c < theta_.size(); ++c) theta_[c] += step * direction[c];
}

void ClickBelief::score_rows(std::span<const double> rows, std::span<double> scores) const {
  for (std::size_t doc = 0; doc < scores.size(); ++doc)
    scores[doc] =
        in_lanes(columns(), rows.data() + static_cast<std::int64_t>(doc) * columns(), theta_.data());
}

void ClickBelief::find_site(const KnownQuery& known, std::size_t model, double faded, int steps,
                            double least_step, ClickSite& found) const {
  const KnownQuery::Site& last = known.sites[model];
  const std::size_t docs = known.docs.size();
  found.departure = last.departure;
  found.curvature.resize(docs);
  found.evidence.resize(docs);
  found.site = {found.departure, found.curvature, found.evidence, last.query_departure};
  if (faded == 1.0)
    return solve_site(departures_, {last.examined, known.clicks, found.model}, steps, least_step,
                      found.site);
  std::vector<double> examined = last.examined;
  std::vector<double> clicks = known.clicks;
  for (double& count : examined) count *= faded;
  for (double& count : clicks) count *= faded;
  solve_site(departures_, {examined, clicks, found.model}, steps, least_step, found.site);
}

void ClickBelief::look(const KnownQuery* known, std::size_t model, std::span<const std::int32_t> places,
                       std::span<const std::int32_t> known_rows, double faded, ClickView& view) const {
  const std::size_t docs = places.size();
  const std::int64_t width = columns();
  view.scores.assign(view.model.begin(), view.model.begin() + static_cast<std::ptrdiff_t>(docs));
  view.curvature.assign(docs, 0.0);
  view.pull.assign(width, 0.0);
  view.coupling = 0.0;
  view.query_departure = 0.0;
  view.departures.clear();
  if (known == nullptr) return;
  constexpr int kSteps = 2;
  constexpr double kLeastStep = 1e-4;
  ClickSite& found = view.site;
  found.model.clear();
  for (const std::int32_t row : known_rows) found.model.push_back(view.model[row]);
  find_site(*known, model, faded, kSteps, kLeastStep, found);
  view.coupling = found.site.coupling;
  view.query_departure = found.site.query_departure;
  for (std::size_t doc = 0; doc < docs; ++doc) {
    if (places[doc] < 0) continue;
    view.curvature[doc] = found.curvature[places[doc]];
    view.scores[doc] += found.departure[places[doc]];
  }
  view.weights.assign(view.model.size(), 0.0);
  for (std::size_t place = 0; place < known_rows.size(); ++place)
    view.weights[known_rows[place]] += found.curvature[place];
  blas::gemv(blas::Transpose::kYes, std::ssize(view.weights), width, 1.0, view.rows.data(), width,
             view.weights.data(), 0.0, view.pull.data());
  view.departures = found.departure;
}

void ClickBelief::sample(const ClickView& view, double scale, PhiloxKey key, std::uint32_t round,
                         ScoreDraw& draw) const {
  const std::size_t docs = view.scores.size();
  for (std::vector<double>* values : {&draw.common, &draw.own, &draw.other}) values->assign(docs, 0.0);
  if (!factor_) return;
  const std::int64_t size = columns();
  AlignedVector<double>& shift = draw.shift;
  shift.resize(size);
  RngStream draws(key, round);
  for (double& value : shift) value = draws.normal();
  blas::solve_lower(blas::Transpose::kYes, size, 1, factor_->data(), size, shift.data(), 1);
  AlignedVector<double>& moved = draw.moved;
  moved.resize(docs);
  blas::gemv(blas::Transpose::kNo, std::ssize(moved), size, 1.0, view.rows.data(), size, shift.data(), 0.0,
             moved.data());
  double pulled = 0.0;
  for (std::int64_t c = 0; c < size; ++c) pulled += view.pull[c] * shift[c];
  for (std::size_t doc = 0; doc < docs; ++doc) {
    const double h = view.curvature[doc];
    const double left = std::max(variance_left(departures_, h, view.coupling), 0.0);
    RngStream own(key, round, static_cast<std::uint32_t>(doc + 1));
    draw.common[doc] =
        scale * (moved[doc] - departures_.document * h * (moved[doc] - view.coupling * pulled));
    draw.own[doc] = scale * std::sqrt(left) * own.normal();
    draw.other[doc] = scale * std::sqrt(left) * own.normal();
  }
}

void ClickBelief::difference_variances(const ClickView& view, std::span<const std::int32_t> docs,
                                       std::span<double> variances) const {
  const std::int64_t size = columns();
  const auto count = std::ssize(docs);
  const double s2 = departures_.document;
  // L⁻¹ Jᵀ, J = (1 − σ²h) φ + σ²ρh Σ h φ, in blocks of documents: [blocks × D × kLanes].
  const std::int64_t stride = (count + kLanes - 1) / kLanes * kLanes;
  AlignedVector<double> jacobian(size * stride);
  const auto column = [&](std::int64_t i) {
    return jacobian.data() + i / kLanes * size * kLanes + i % kLanes;
  };
  for (std::int64_t i = 0; i < count; ++i) {
    const double h = view.curvature[docs[i]];
    const double own = 1.0 - s2 * h;
    const double common = s2 * view.coupling * h;
    const double* row = view.rows.data() + docs[i] * size;
    double* const of_doc = column(i);
    for (std::int64_t c = 0; c < size; ++c) of_doc[c * kLanes] = own * row[c] + common * view.pull[c];
  }
  for (std::int64_t first = 0; first < count; first += kLanes)
    solve_in_lanes(size, factor_->data(), column(first));
  std::vector<double> covariance(count * stride);
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t first = 0; first < count; first += kLanes)
      sum_of_lanes(size, column(i), column(first), covariance.data() + i * stride + first);
    const double h = view.curvature[docs[i]];
    for (std::int64_t j = 0; j < count; ++j) {
      const double of_site = (i == j ? h : 0.0) - view.coupling * h * view.curvature[docs[j]];
      covariance[i * stride + j] += (i == j ? s2 : 0.0) - s2 * s2 * of_site;
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j < count; ++j) {
      variances[i * count + j] =
          covariance[i * stride + i] + covariance[j * stride + j] - 2.0 * covariance[i * stride + j];
    }
  }
}

void ClickBelief::fields(StateFields& state, const std::string& prefix) {
  state.sized(prefix + "theta", theta_);
  state.numbers(prefix + "departures", departures_.document, departures_.query);
  const std::int64_t size = factor_ || state.reads() ? columns() : 0;
  std::vector<double> triangle;
  for (std::int64_t row = 0; row < size && !state.reads(); ++row) {
    const double* values = factor_->data() + row * size;
    triangle.insert(triangle.end(), values, values + row + 1);
  }
  state.any(prefix + "factor", triangle);
  if (!state.reads()) return;
  factor_.reset();
  if (triangle.empty()) return;
  state.require(std::ssize(triangle) == size * (size + 1) / 2, "Its factor has another size.");
  factor_ = std::make_shared<AlignedVector<double>>(size * size);
  auto next = triangle.begin();
  for (std::int64_t row = 0; row < size; ++row) {
    std::copy_n(next, row + 1, factor_->begin() + row * size);
    next += row + 1;
  }
}

}  // namespace olrank
