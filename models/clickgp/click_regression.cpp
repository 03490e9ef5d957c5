#include "models/clickgp/click_regression.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "core/error.h"
#include "core/math/any_cpu.h"
#include "core/math/normal.h"
#include "core/ops/blas.h"

namespace olrank {
namespace {

constexpr double kConstantPrecision = 0.1;
constexpr double kCosineWidth = 4.0;
constexpr double kStartWidth = 16.0;
constexpr int kSiteSteps = 4;
constexpr double kLeastSiteStep = 1e-4;
constexpr int kPassSteps = 5;

void keep(const ClickSite& found, KnownQuery::Site& site) {
  site.departure.assign(found.departure.begin(), found.departure.end());
  site.curvature.assign(found.curvature.begin(), found.curvature.end());
  site.evidence.assign(found.evidence.begin(), found.evidence.end());
  site.query_departure = found.site.query_departure;
  site.coupling = found.site.coupling;
}

/// C ← alpha · AᵀB + C in the lower triangle.
void add_panels(ExecutionContext& context, std::int64_t width, std::int64_t rows, double alpha,
                const double* a, const double* b, AlignedVector<double>& c) {
  constexpr std::int64_t kPanel = 64;
  context.for_blocks(width, kPanel, [&](std::int64_t begin, std::int64_t end, int) {
    blas::add_gram(begin, end, rows, alpha, a, b, width, c.data(), width);
  });
}

/// Λ ← Λ + Σ w r rᵀ over the rows r.
void add_weighted(ExecutionContext& context, std::int64_t width, const AlignedVector<double>& rows,
                  std::span<const double> weights, AlignedVector<double>& precision) {
  AlignedVector<double> weighted(rows.size());
  for (std::size_t row = 0; row < weights.size(); ++row) {
    const auto begin = static_cast<std::int64_t>(row) * width;
    for (std::int64_t c = begin; c < begin + width; ++c) weighted[c] = weights[row] * rows[c];
  }
  add_panels(context, width, std::ssize(weights), 1.0, rows.data(), weighted.data(), precision);
}

/// Takes from the evidence of documents, v + M m = a − ρ h Σ a, what the query's other documents have in
/// it: a.
void find_own_evidence(const KnownQuery::Site& site, std::vector<double>& own) {
  double evidence = 0.0;
  double curvature = 0.0;
  for (std::size_t doc = 0; doc < site.evidence.size(); ++doc) {
    evidence += site.evidence[doc];
    curvature += site.curvature[doc];
  }
  const double pull = site.coupling * evidence / (1.0 - site.coupling * curvature);
  own = site.evidence;
  for (std::size_t doc = 0; doc < own.size(); ++doc) own[doc] += pull * site.curvature[doc];
}

/// Calls `use` with pieces of the queries that have at most so many numbers, or with one query, and with
/// the first document of each among the piece's, and the end.
template <class Use>
void for_chunks(std::span<const ClickMemory::Entry> queries, std::int64_t numbers_per_doc, const Use& use) {
  constexpr std::int64_t kChunkNumbers = 1 << 22;  // 32 MB at a time
  const std::int64_t most_rows = std::max<std::int64_t>(kChunkNumbers / numbers_per_doc, 256);
  while (!queries.empty()) {
    std::vector<std::int64_t> first = {0};
    for (const ClickMemory::Entry& entry : queries) {
      const std::int64_t end = first.back() + std::ssize(entry.known->docs);
      if (first.size() > 1 && end > most_rows) break;
      first.push_back(end);
    }
    use(queries.first(first.size() - 1), first);
    queries = queries.subspan(first.size() - 1);
  }
}

}  // namespace

double block_precision(double known, double squares, double expected) {
  return (known + 1.0) / (squares + 1.0 / expected);
}

double departure_variance(double squares, double known, double prior) {
  constexpr double kLeast = 1e-3;
  constexpr double kMost = 10.0;
  return std::clamp((squares + 0.5 * prior) / (known + prior), kLeast, kMost);
}

ClickRegression::ClickRegression(const ClickFeatures& features, const ClickSchedule& schedule,
                                 std::size_t number)
    : belief_(features),
      schedule_(schedule),
      number_(number),
      precision_(features.columns() * features.columns()),
      evidence_(features.columns()) {
  make_blocks();
}

double ClickRegression::expected(const Block& block) const {
  return block.is_start ? 1.0 / std::sqrt(first_precision(block) / block.width) : 0.0;
}

double ClickRegression::first_precision(const Block& block) const {
  // Features that never differ have no square but that of rounding, and any precision does for them.
  constexpr double kRounding = 1e-12;
  const double mean = documents_ > 0.0 ? block.squares / documents_ : 0.0;
  return mean > kRounding * static_cast<double>(block.end - block.begin) ? block.width * mean : 1.0;
}

void ClickRegression::see_documents(std::span<const double> rows) {
  const std::int64_t width = belief_.columns();
  const std::int64_t docs = std::ssize(rows) / width;
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const double* row = rows.data() + doc * width;
    for (Block& block : blocks_) {
      double squares = 0.0;
      for (std::int64_t c = block.begin; c < block.end; ++c) squares += row[c] * row[c];
      block.squares += squares;
    }
  }
  documents_ += static_cast<double>(docs);
}

void ClickRegression::read_list(const ClickView& view, std::span<const std::int32_t> shown,
                                std::span<const std::uint8_t> clicks, double worth,
                                Examination::Reading& reading) {
  std::vector<double> attraction(shown.size());
  const double log_worth = log_of(worth);
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    const double left = variance_left(belief_.departures(), view.curvature[shown[rank]], view.coupling);
    // The mean of σ over a normal score, by MacKay's approximation.
    const double narrowed = 1.0 + std::numbers::pi / 8.0 * left;
    attraction[rank] = click_probability((view.scores[shown[rank]] + view.query_departure - log_worth) /
                                         std::sqrt(narrowed));
  }
  examination_.learn(attraction, clicks, reading);
}

void ClickRegression::replace(const ClickView& view, const Change& change, KnownQuery& known) {
  KnownQuery::Site& site = known.sites[number_];
  KnownQuery::Site& before = work_.before;
  before = site;
  work_.site.model.clear();
  for (const std::int32_t row : change.now) work_.site.model.push_back(view.model[row]);
  belief_.find_site(known, number_, 1.0, kSiteSteps, kLeastSiteStep, work_.site);
  keep(work_.site, site);
  find_own_evidence(before, work_.own_before);
  find_own_evidence(site, work_.own_after);
  std::vector<double>& own = work_.own_after;
  double curvature_sum = 0.0;
  for (std::size_t doc = 0; doc < own.size(); ++doc) {
    const bool stays = doc < change.before.size() && change.before[doc] == change.now[doc];
    if (change.changed[doc] == 0 && stays) {
      site.curvature[doc] = before.curvature[doc];
      own[doc] = work_.own_before[doc];
    }
    curvature_sum += site.curvature[doc];
  }
  const double t2 = belief_.departures().query;
  site.coupling = t2 / (1.0 + t2 * curvature_sum);
  const double pull = site.coupling * std::accumulate(own.begin(), own.end(), 0.0);
  for (std::size_t doc = 0; doc < own.size(); ++doc)
    site.evidence[doc] = own[doc] - pull * site.curvature[doc];
  exchange(view, change, before, site);
}

void ClickRegression::take_out(const ClickView& view, Change change, KnownQuery& known) {
  std::fill(change.changed.begin(), change.changed.end(), 1);
  KnownQuery::Site& site = known.sites[number_];
  const KnownQuery::Site before = site;
  std::fill(site.curvature.begin(), site.curvature.end(), 0.0);
  std::fill(site.evidence.begin(), site.evidence.end(), 0.0);
  site.coupling = 0.0;
  exchange(view, change, before, site);
}

void ClickRegression::exchange(const ClickView& view, const Change& change, const KnownQuery::Site& before,
                               const KnownQuery::Site& after) {
  const std::int64_t width = belief_.columns();
  std::vector<double>& own_before = work_.own_before;
  std::vector<double>& own_after = work_.own_after;
  find_own_evidence(before, own_before);
  find_own_evidence(after, own_after);
  const std::size_t first = collected_weights_.size();
  if (first == 0) find_whole_evidence(solved_);
  work_.steps.clear();
  const auto collect = [&](const double* row, double weight, double step) {
    collected_.insert(collected_.end(), row, row + width);
    collected_weights_.push_back(weight);
    work_.steps.push_back(step);
  };
  const auto row_of = [&](std::int32_t row) { return view.rows.data() + row * width; };
  work_.weights_before.assign(view.model.size(), 0.0);
  work_.weights_after.assign(view.model.size(), 0.0);
  for (std::size_t doc = 0; doc < change.now.size(); ++doc) {
    const std::int32_t now = change.now[doc];
    const std::int32_t had = doc < change.before.size() ? change.before[doc] : now;
    work_.weights_before[had] += before.curvature[doc];
    work_.weights_after[now] += after.curvature[doc];
    if (had == now) {
      if (change.changed[doc] == 0) continue;
      collect(row_of(now), after.curvature[doc] - before.curvature[doc], own_after[doc] - own_before[doc]);
    } else {
      collect(row_of(had), -before.curvature[doc], -own_before[doc]);
      collect(row_of(now), after.curvature[doc], own_after[doc]);
    }
  }
  work_.pull.resize(width);
  const auto collect_pull = [&](const KnownQuery::Site& site, std::span<const double> weights,
                                std::span<const double> own, double sign) {
    blas::gemv(blas::Transpose::kYes, std::ssize(weights), width, 1.0, view.rows.data(), width,
               weights.data(), 0.0, work_.pull.data());
    const double sum = std::accumulate(own.begin(), own.end(), 0.0);
    collect(work_.pull.data(), -sign * site.coupling, -sign * site.coupling * sum);
  };
  collect_pull(before, work_.weights_before, own_before, -1.0);
  collect_pull(after, work_.weights_after, own_after, 1.0);
  blas::gemv(blas::Transpose::kYes, std::ssize(work_.steps), width, 1.0,
             collected_.data() + static_cast<std::int64_t>(first) * width, width, work_.steps.data(), 1.0,
             evidence_.data());
}

void ClickRegression::add_collected(ExecutionContext& context) {
  add_weighted(context, belief_.columns(), collected_, collected_weights_, precision_);
  collected_.clear();
  collected_weights_.clear();
}

void ClickRegression::retire(ExecutionContext& context, std::span<const KnownQuery* const> queries,
                             std::uint64_t learned) {
  if (retired_precision_.empty()) {
    retired_precision_.resize(precision_.size());
    retired_evidence_.resize(evidence_.size());
    retired_at_ = learned;
  }
  const std::int64_t width = belief_.columns();
  for (const KnownQuery* known : queries) {
    const KnownQuery::Site& site = known->sites[number_];
    const auto docs = std::ssize(known->docs);
    AlignedVector<double> rows((docs + 1) * width);  // Σ h φ comes last
    belief_.features().expand(known->scaled, known->means, std::span(rows).first(docs * width));
    blas::gemv(blas::Transpose::kYes, docs, width, 1.0, rows.data(), width, site.curvature.data(), 0.0,
               rows.data() + docs * width);
    std::vector<double> weights = site.curvature;
    weights.push_back(-site.coupling);
    add_weighted(context, width, rows, weights, retired_precision_);
    blas::gemv(blas::Transpose::kYes, docs, width, 1.0, rows.data(), width, site.evidence.data(), 1.0,
               retired_evidence_.data());
  }
}

void ClickRegression::solve(ExecutionContext& context) {
  add_collected(context);
  const std::int64_t width = belief_.columns();
  if (!has_evidence_) {
    for (Block& block : blocks_) block.precision = first_precision(block);
  }
  auto sum = std::make_shared<AlignedVector<double>>(precision_);
  sum->front() += kConstantPrecision;
  for (const Block& block : blocks_) {
    const std::int64_t size = block.end - block.begin;
    for (std::int64_t c = block.begin; c < block.end; ++c) {
      if (!block.is_vector) {
        (*sum)[c * width + c] += block.precision;
        continue;
      }
      const double* row = prior_.data() + (c - block.begin) * size;
      for (std::int64_t other = block.begin; other <= c; ++other)
        (*sum)[c * width + other] += block.precision * row[other - block.begin];
    }
  }
  find_whole_evidence(work_.slope);
  belief_.solve(std::move(sum), work_.slope);
}

void ClickRegression::find_whole_evidence(AlignedVector<double>& evidence) const {
  evidence = evidence_;
  for (const Block& block : blocks_) {
    const double of_prior = block.precision * expected(block);
    for (std::int64_t c = block.begin; c < block.end; ++c) evidence[c] += of_prior;
  }
}

void ClickRegression::correct() {
  const auto rows = std::ssize(collected_weights_);
  if (rows == 0 || !belief_.has_factor()) return;
  const std::int64_t width = belief_.columns();
  AlignedVector<double>& slope = work_.slope;  // η − (A + Σ w r rᵀ) θ̂
  find_whole_evidence(slope);
  for (std::int64_t c = 0; c < width; ++c) slope[c] -= solved_[c];
  AlignedVector<double>& of_rows = work_.of_rows;
  of_rows.resize(rows);
  blas::gemv(blas::Transpose::kNo, rows, width, 1.0, collected_.data(), width, belief_.theta().data(), 0.0,
             of_rows.data());
  for (std::int64_t row = 0; row < rows; ++row) of_rows[row] *= collected_weights_[row];
  blas::gemv(blas::Transpose::kYes, rows, width, -1.0, collected_.data(), width, of_rows.data(), 1.0,
             slope.data());
  AlignedVector<double>& direction = work_.direction;
  direction = slope;
  belief_.divide_by_precision(direction);
  const double descent = std::inner_product(slope.begin(), slope.end(), direction.begin(), 0.0);
  double curvature = descent;
  blas::gemv(blas::Transpose::kNo, rows, width, 1.0, collected_.data(), width, direction.data(), 0.0,
             of_rows.data());
  for (std::int64_t row = 0; row < rows; ++row)
    curvature += collected_weights_[row] * of_rows[row] * of_rows[row];
  if (!(descent > 0.0 && curvature > 0.0)) return;
  const double step = descent / curvature;
  belief_.move(direction, step);
  for (std::int64_t c = 0; c < width; ++c) solved_[c] += step * slope[c];
}

void ClickRegression::follow(ExecutionContext& context, ClickMemory& memory, std::uint64_t learned,
                             double half_life) {
  const std::uint64_t lists = learned - begun_at_;
  if (lists < next_refresh_) {
    if (lists % schedule_.solve_interval(lists) != 0) {
      correct();
      return;
    }
    try {
      solve(context);
      return;
    } catch (const NumericError&) {
      // Rounding has eaten a digit too many: the sums are found again below.
    }
  }
  refresh(context, memory, learned, half_life);
  const auto now = static_cast<double>(lists);
  const double growth = ClickSchedule::is_late(lists) ? schedule_.late_growth : schedule_.growth;
  const double next =
      std::max(now + schedule_.least_interval, std::min(now * growth, now + schedule_.longest_interval));
  next_refresh_ = static_cast<std::uint64_t>(next);
}

void ClickRegression::forget_all(ExecutionContext& context, ClickMemory& memory, std::uint64_t learned,
                                 double half_life) {
  examination_.forget(1.0);
  retired_precision_.clear();
  retired_evidence_.clear();
  begun_at_ = learned;
  next_refresh_ = kFirstRefresh;
  refresh(context, memory, learned, half_life);
}

void ClickRegression::refresh(ExecutionContext& context, ClickMemory& memory, std::uint64_t learned,
                              double half_life) {
  const std::vector<ClickMemory::Entry> queries = memory.edit_all();
  for (const ClickMemory::Entry& entry : queries) entry.known->fade_to(learned, half_life);
  if (half_life > 0.0 && !retired_precision_.empty()) {
    const double factor = std::exp2(-static_cast<double>(learned - retired_at_) / half_life);
    for (double& value : retired_precision_) value *= factor;
    for (double& value : retired_evidence_) value *= factor;
    retired_at_ = learned;
  }
  SiteSums sums = find_all_sites(context, queries);
  if (find_vector(queries)) sums = find_all_sites(context, queries);
  if (choose_products(context, queries)) sums = find_all_sites(context, queries);
  find_prior();
  solve(context);
  set_hyperparameters(sums);
  solve(context);
}

ClickRegression::SiteSums ClickRegression::find_all_sites(ExecutionContext& context,
                                                          std::span<const ClickMemory::Entry> queries) {
  collected_.clear();
  collected_weights_.clear();
  if (retired_precision_.empty()) {
    std::fill(precision_.begin(), precision_.end(), 0.0);
    std::fill(evidence_.begin(), evidence_.end(), 0.0);
  } else {
    precision_ = retired_precision_;
    evidence_ = retired_evidence_;
  }
  SiteSums total;
  for_chunks(queries, belief_.columns(), [&](auto chunk, std::span<const std::int64_t> first) {
    std::vector<SiteSums> of_chunk(chunk.size());
    add_chunk(context, chunk, first, of_chunk);
    for (const SiteSums& one : of_chunk) {
      total.document_squares += one.document_squares;
      total.document_known += one.document_known;
      total.query_squares += one.query_squares;
      total.query_known += one.query_known;
    }
  });
  return total;
}

bool ClickRegression::find_vector(std::span<const ClickMemory::Entry> queries) {
  const ClickFeatures& features = belief_.features();
  const std::int64_t inputs = features.inputs();
  if (vector_end_ > 0 || inputs <= ClickFeatures::kMostCosineInputs || features.has_cosines() ||
      blocks_.empty())
    return false;
  std::int64_t docs = 0;
  for (const ClickMemory::Entry& entry : queries) docs += std::ssize(entry.known->docs);
  const std::int64_t width = belief_.columns();
  const double* sums = precision_.data() + width + 1;
  std::vector<double> alike(inputs);  // mean squared correlation with the other inputs
  for (std::int64_t a = 0; a < inputs; ++a) {
    for (std::int64_t b = 0; b < a; ++b) {
      const double squares = sums[a * width + a] * sums[b * width + b];
      const double share = squares > 0.0 ? sums[a * width + b] * sums[a * width + b] / squares /
                                               static_cast<double>(inputs - 1)
                                         : 0.0;
      alike[a] += share;
      alike[b] += share;
    }
  }
  // By chance it is about 1/docs. That of embeddings is about 0.03, and that of groups of five among 300
  // 0.01.
  const double least = 0.01 + 1.2 / static_cast<double>(std::max<std::int64_t>(docs, 1));
  constexpr std::int64_t kShortest = 64;
  std::int64_t begin = 0;
  double sum = 0.0;
  double best = 0.0;
  for (std::int64_t c = 0; c < inputs; ++c) {
    if (sum <= 0.0) begin = c;
    sum = std::max(sum, 0.0) + alike[c] - least;
    if (sum <= best || c + 1 - begin < kShortest) continue;
    best = sum;
    vector_begin_ = begin;
    vector_end_ = c + 1;
  }
  if (vector_end_ == 0 || best < 0.004 * static_cast<double>(vector_end_ - vector_begin_)) {
    vector_begin_ = vector_end_ = 0;
    return false;
  }
  make_blocks();
  const std::vector<std::int32_t> ordinary = ordinary_inputs();
  if (features.products() == nullptr || std::ssize(ordinary) > ClickFeatures::kMostOrdinary) return true;
  if (!features.products()->empty() && !retired_precision_.empty()) return true;  // they keep their places
  ProductPlaces places;
  for (const std::int32_t input : ordinary) {
    for (int term = 0; term < HigherCosines::kTerms; ++term) places.push_back({input, -2 - term});
  }
  while (std::ssize(places) % ClickFeatures::kPlacesAtOnce != 0) places.push_back({-1, -1});
  set_products(std::move(places), queries);
  return true;
}

std::vector<std::int32_t> ClickRegression::ordinary_inputs() const {
  std::vector<std::int32_t> inputs(belief_.features().inputs());
  std::iota(inputs.begin(), inputs.end(), 0);
  inputs.erase(inputs.begin() + vector_begin_, inputs.begin() + vector_end_);
  return inputs;
}

void ClickRegression::make_blocks() {
  const ClickFeatures& features = belief_.features();
  const std::vector<Block> before = std::exchange(blocks_, {});
  const std::int64_t bounds[] = {0, vector_begin_, vector_end_, features.inputs()};
  for (int part = 0; part < 3 && features.used() != ClickInputs::kNone; ++part) {
    if (bounds[part] == bounds[part + 1]) continue;
    blocks_.push_back({1 + bounds[part], 1 + bounds[part + 1], 1.0});
    blocks_.back().is_vector = part == 1;
  }
  if (features.has_cosines())
    blocks_.push_back({1 + features.inputs(), 1 + features.terms(), kCosineWidth});
  if (features.start() != nullptr) {
    blocks_.push_back({1 + features.terms(), features.products_column(), kStartWidth});
    blocks_.back().is_start = true;
  }
  if (features.products() != nullptr) blocks_.push_back({features.products_column(), features.columns()});
  // Parts of a block begin with its precision and their share of its squares.
  for (std::size_t b = 0; b < blocks_.size() && !before.empty(); ++b) {
    Block& block = blocks_[b];
    const Block& of = before[b - std::min(b, blocks_.size() - before.size())];
    const double share = static_cast<double>(block.end - block.begin) /
                         static_cast<double>(std::max<std::int64_t>(of.end - of.begin, 1));
    block.squares = of.squares * share;
    block.precision = of.precision;
  }
}

void ClickRegression::find_prior() {
  if (vector_end_ == 0) return;
  constexpr double kLeast = 0.01;
  const std::int64_t size = vector_end_ - vector_begin_;
  const std::int64_t width = belief_.columns();
  const double* sums = precision_.data() + (vector_begin_ + 1) * (width + 1);
  double trace = 0.0;
  double squares = 0.0;
  for (std::int64_t row = 0; row < size; ++row) {
    trace += sums[row * width + row];
    for (std::int64_t c = 0; c <= row; ++c)
      squares += (c < row ? 2.0 : 1.0) * sums[row * width + c] * sums[row * width + c];
  }
  if (!(trace > 0.0)) return;  // all is forgotten: what is known of documents stays
  // Scaled so that scores have the variance that independent weights of precision 1 would give them.
  const double floor = kLeast * trace / static_cast<double>(size);
  const double scale = trace / (squares + floor * trace);
  prior_.resize(size * size);
  for (std::int64_t row = 0; row < size; ++row) {
    for (std::int64_t c = 0; c <= row; ++c)
      prior_[row * size + c] = scale * (sums[row * width + c] + (row == c ? floor : 0.0));
  }
  blas::cholesky(size, prior_.data(), size);
  blas::inverse_from_cholesky(size, prior_.data(), size);
}

bool ClickRegression::choose_products(ExecutionContext& context,
                                      std::span<const ClickMemory::Entry> queries) {
  const ClickFeatures& features = belief_.features();
  const std::vector<std::int32_t> candidates = ordinary_inputs();
  const auto inputs = std::ssize(candidates);
  if (features.products() == nullptr || inputs < 2) return false;
  AlignedVector<double> slopes(inputs * inputs);   // Σ v φ of every product φ, lower triangles
  AlignedVector<double> squares(inputs * inputs);  // Σ h φ²
  for_chunks(queries, 4 * inputs, [&](auto chunk, std::span<const std::int64_t> first) {
    AlignedVector<double> x(first.back() * inputs);  // 2x − 1
    AlignedVector<double> vx(x.size());
    AlignedVector<double> xx(x.size());
    AlignedVector<double> hxx(x.size());
    context.for_blocks(std::ssize(chunk), 8, [&](std::int64_t begin, std::int64_t end, int) {
      std::vector<double> taken;  // what the products in use add
      for (std::int64_t q = begin; q < end; ++q) {
        const KnownQuery& known = *chunk[q].known;
        const KnownQuery::Site& site = known.sites[number_];
        const auto docs = std::ssize(known.docs);
        taken.assign(docs, 0.0);
        double pull = 0.0;  // h·taken
        for (std::int64_t doc = 0; doc < docs; ++doc) {
          for (std::size_t p = 0; p < features.products()->size(); ++p) {
            const auto [a, b] = (*features.products())[p];
            const float* of_doc = known.scaled.data() + doc * features.seen();
            if (b >= 0)
              taken[doc] += belief_.theta()[features.products_column() + static_cast<std::int64_t>(p)] *
                            centred_product(of_doc[a], of_doc[b]);
          }
          pull += site.curvature[doc] * taken[doc];
        }
        for (std::int64_t doc = 0; doc < docs; ++doc) {
          const double h = site.curvature[doc];
          // A model without products has this value, so that those there are judged as others are.
          const double v =
              site.departure[doc] / belief_.departures().document + h * (taken[doc] - site.coupling * pull);
          const std::int64_t out = (first[q] + doc) * inputs;
          for (std::int64_t f = 0; f < inputs; ++f) {
            const double centred = 2.0 * double{known.scaled[doc * features.seen() + candidates[f]]} - 1.0;
            x[out + f] = centred;
            vx[out + f] = v * centred;
            xx[out + f] = centred * centred;
            hxx[out + f] = h * centred * centred;
          }
        }
      }
    });
    add_panels(context, inputs, first.back(), 1.0, x.data(), vx.data(), slopes);
    add_panels(context, inputs, first.back(), 1.0, xx.data(), hxx.data(), squares);
  });

  // Some pair, whichever it is, is taken by mistake once in twenty times.
  constexpr double kMistakes = 0.05;
  const std::int32_t with_itself = features.has_cosines() || vector_end_ > 0 ? 0 : 1;
  const double pairs =
      0.5 * static_cast<double>(inputs) * static_cast<double>(inputs - 1 + 2 * with_itself);
  const double least = -normal_quantile(0.5 * kMistakes / pairs);
  std::vector<std::pair<double, InputPair>> found;
  for (std::int32_t a = 0; a < inputs; ++a) {
    for (std::int32_t b = 0; b < a + with_itself; ++b) {
      const double square = squares[a * inputs + b];
      const double z = square > 0.0 ? std::abs(slopes[a * inputs + b]) / std::sqrt(square) : 0.0;
      if (z > least) found.push_back({z, {candidates[a], candidates[b]}});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  found.resize(std::min<std::size_t>(found.size(), ClickFeatures::kMostProducts));
  // Products that stay keep their places, as do those that forgotten queries may have spoken for.
  ProductPlaces products = *features.products();
  std::int64_t cosines = 0;
  for (InputPair& place : products) {
    if (place.second < -1) {
      ++cosines;
      continue;
    }
    const auto same =
        std::find_if(found.begin(), found.end(), [&](const auto& one) { return one.second == place; });
    if (same != found.end()) {
      found.erase(same);
    } else if (retired_precision_.empty()) {
      place = {-1, -1};
    }
  }
  const auto free =
      std::count_if(products.begin(), products.end(), [](InputPair place) { return place.first < 0; });
  if (const std::ptrdiff_t missing = std::ssize(found) - free; missing > 0) {
    constexpr std::int64_t kAtOnce = ClickFeatures::kPlacesAtOnce;
    const std::int64_t wanted = (std::ssize(products) + missing + kAtOnce - 1) / kAtOnce * kAtOnce;
    const std::int64_t of_cosines = (cosines + kAtOnce - 1) / kAtOnce * kAtOnce;
    products.resize(std::min(wanted, ClickFeatures::kMostProducts + of_cosines), {-1, -1});
  }
  auto next = found.begin();
  for (InputPair& place : products) {
    if (place.first < 0 && next != found.end()) place = (next++)->second;
  }
  if (products == *features.products()) return false;
  set_products(std::move(products), queries);
  return true;
}

void ClickRegression::set_products(ProductPlaces products, std::span<const ClickMemory::Entry> queries) {
  const ProductPlaces before = *belief_.features().products();
  const std::int64_t width = belief_.columns();
  double squares = 0.0;
  double docs = 0.0;
  for (const ClickMemory::Entry& entry : queries) {
    const KnownQuery& known = *entry.known;
    docs += static_cast<double>(known.docs.size());
    for (std::size_t doc = 0; doc < known.docs.size(); ++doc) {
      const float* x = known.scaled.data() + static_cast<std::int64_t>(doc) * belief_.features().seen();
      for (const InputPair place : products) {
        const double value = ClickFeatures::in_place(place, x);
        squares += value * value;
      }
    }
  }
  Block& block = blocks_.back();
  block.squares = docs > 0.0 ? squares / docs * documents_ : 0.0;
  const bool had_none =
      std::all_of(before.begin(), before.end(), [](InputPair pair) { return pair.first < 0; });
  if (had_none) block.precision = first_precision(block);
  belief_.set_products(std::move(products));
  widen(width);
}

void ClickRegression::widen(std::int64_t before) {
  const std::int64_t width = belief_.columns();
  if (width == before) return;
  blocks_.back().end = width;
  precision_.assign(width * width, 0.0);
  evidence_.assign(width, 0.0);
  if (retired_precision_.empty()) return;
  AlignedVector<double> wider(width * width);
  for (std::int64_t row = 0; row < before; ++row)
    std::copy_n(retired_precision_.begin() + row * before, before, wider.begin() + row * width);
  retired_precision_ = std::move(wider);
  retired_evidence_.resize(width);
}

void ClickRegression::add_chunk(ExecutionContext& context, std::span<const ClickMemory::Entry> queries,
                                std::span<const std::int64_t> first, std::vector<SiteSums>& sums) {
  const std::int64_t width = belief_.columns();
  const std::int64_t docs = first.back();
  AlignedVector<double> rows(docs * width);                  // √h φ
  AlignedVector<double> pulls(std::ssize(queries) * width);  // √ρ Σ h φ
  AlignedVector<double> evidence(docs);                      // (v + M m) / √h
  const Departures departures = belief_.departures();
  context.for_blocks(std::ssize(queries), 8, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t q = begin; q < end; ++q) {
      KnownQuery& known = *queries[q].known;
      ClickSite found;
      KnownQuery::Site& site = known.sites[number_];
      const std::span<double> own =
          std::span(rows).subspan(first[q] * width, (first[q + 1] - first[q]) * width);
      belief_.features().expand(known.scaled, known.means, own);
      found.model.resize(known.docs.size());
      belief_.score_rows(own, found.model);
      belief_.find_site(known, number_, 1.0, kPassSteps, 0.0, found);
      keep(found, site);
      double* pull = pulls.data() + q * width;
      SiteSums& sum = sums[q];
      for (std::size_t doc = 0; doc < known.docs.size(); ++doc) {
        const double h = site.curvature[doc];
        const double root = std::sqrt(h);
        double* row = own.data() + static_cast<std::int64_t>(doc) * width;
        for (std::int64_t c = 0; c < width; ++c) {
          pull[c] += h * row[c];
          row[c] *= root;
        }
        // A site that has faded altogether says nothing.
        evidence[first[q] + static_cast<std::int64_t>(doc)] = root > 0.0 ? site.evidence[doc] / root : 0.0;
        sum.document_squares += site.departure[doc] * site.departure[doc];
        sum.document_known += departures.document * (h - site.coupling * h * h);
      }
      const double root = std::sqrt(site.coupling);
      for (std::int64_t c = 0; c < width; ++c) pull[c] *= root;
      const double h = found.site.curvature_sum;
      sum.query_squares = site.query_departure * site.query_departure;
      sum.query_known = departures.query * (h - site.coupling * h * h);
    }
  });
  add_panels(context, width, docs, 1.0, rows.data(), rows.data(), precision_);
  add_panels(context, width, std::ssize(queries), -1.0, pulls.data(), pulls.data(), precision_);
  blas::gemv(blas::Transpose::kYes, docs, width, 1.0, rows.data(), width, evidence.data(), 1.0,
             evidence_.data());
}

void ClickRegression::set_hyperparameters(const SiteSums& sums) {
  const std::int64_t width = belief_.columns();
  AlignedVector<double> inverse(belief_.factor(), belief_.factor() + width * width);
  blas::inverse_from_cholesky(width, inverse.data(), width);
  for (Block& block : blocks_) {
    double known = 0.0;  // γ_B
    double squares = 0.0;
    const std::int64_t size = block.end - block.begin;
    for (std::int64_t c = 0; block.is_vector && c < std::ssize(prior_); ++c) {
      const std::int64_t row = block.begin + c / size;
      const std::int64_t other = block.begin + c % size;
      if (other > row) continue;
      const double weight = (row == other ? 1.0 : 2.0) * prior_[c];
      known += (row == other ? 1.0 : 0.0) - block.precision * weight * inverse[row * width + other];
      squares += weight * belief_.theta()[row] * belief_.theta()[other];
    }
    for (std::int64_t c = block.begin; c < block.end && !block.is_vector; ++c) {
      known += 1.0 - block.precision * inverse[c * width + c];
      const double distance = belief_.theta()[c] - expected(block);
      squares += distance * distance;
    }
    // One weight knows too little of its own spread: that of the start model stays.
    const double first = first_precision(block);
    block.precision = block.is_start ? first : block_precision(known, squares, 2.0 * first);
  }
  has_evidence_ = true;
  constexpr double kDocumentPrior = 20.0;
  constexpr double kQueryPrior = 10.0;
  belief_.set_departures({departure_variance(sums.document_squares, sums.document_known, kDocumentPrior),
                          departure_variance(sums.query_squares, sums.query_known, kQueryPrior)});
}

std::string ClickRegression::prefix() const {
  return fmt::format("clickgp.{}.", number_);
}

void ClickRegression::fields(StateFields& state) {
  const std::string prefix = this->prefix();
  if (const ProductPlaces* known = belief_.features().products()) {
    std::vector<std::int64_t> numbers;
    for (const auto [a, b] : *known) numbers.insert(numbers.end(), {a, b});
    state.any(prefix + "products", numbers);
    if (state.reads()) set_products(state, numbers);
  }
  belief_.fields(state, prefix);
  examination_.fields(state, prefix);
  // Earlier versions know no vectors.
  if (state.reads()) vector_begin_ = vector_end_ = 0;
  if (state.reads() ? state.reader().is_next(prefix + "vector") : vector_end_ > 0) {
    state.numbers(prefix + "vector", vector_begin_, vector_end_);
    state.require(
        0 <= vector_begin_ && vector_begin_ < vector_end_ && vector_end_ <= belief_.features().inputs(),
        "It has a vector of inputs that are not there.");
    const std::int64_t size = vector_end_ - vector_begin_;
    if (state.reads()) prior_.resize(size * size);
    state.sized(prefix + "prior", prior_);
  }
  if (state.reads()) {
    blocks_.clear();
    make_blocks();
  }
  std::vector<double> numbers = {documents_};
  for (const Block& block : blocks_) numbers.insert(numbers.end(), {block.squares, block.precision});
  state.sized(prefix + "blocks", numbers);
  if (state.reads()) {
    documents_ = numbers[0];
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      blocks_[b].squares = numbers[1 + 2 * b];
      blocks_[b].precision = numbers[2 + 2 * b];
    }
  }
  std::uint64_t has_evidence = has_evidence_ ? 1 : 0;
  state.numbers(prefix + "schedule", next_refresh_, has_evidence, retired_at_, begun_at_);
  if (state.reads()) has_evidence_ = has_evidence != 0;
  const std::int64_t width = belief_.columns();
  const auto sums = [&](const std::string& name, AlignedVector<double>& matrix,
                        AlignedVector<double>& vector) {
    std::vector<double> values;
    if (!state.reads()) values.assign(vector.begin(), vector.end());
    for (std::int64_t row = 0; row < (state.reads() || matrix.empty() ? 0 : width); ++row)
      values.insert(values.end(), matrix.begin() + row * width, matrix.begin() + row * width + row + 1);
    state.any(prefix + name, values);
    if (!state.reads()) return;
    matrix.clear();
    vector.clear();
    if (values.empty()) return;
    state.require(std::ssize(values) == width + width * (width + 1) / 2, "Its sums have another size.");
    vector.assign(values.begin(), values.begin() + width);
    matrix.assign(width * width, 0.0);
    auto next = values.begin() + width;
    for (std::int64_t row = 0; row < width; ++row) {
      std::copy_n(next, row + 1, matrix.begin() + row * width);
      next += row + 1;
    }
  };
  sums("sums", precision_, evidence_);
  sums("retired", retired_precision_, retired_evidence_);
  state.require(!precision_.empty(), "Its sums are missing.");
  collected_fields(state);
}

void ClickRegression::collected_fields(StateFields& state) {
  const std::string name = prefix() + "collected";
  const std::int64_t width = belief_.columns();
  std::vector<double> values;
  if (!state.reads()) {
    if (collected_weights_.empty()) return;  // as in earlier versions, which collect nothing
    for (const auto* numbers : {&solved_, &collected_})
      values.insert(values.end(), numbers->begin(), numbers->end());
    values.insert(values.end(), collected_weights_.begin(), collected_weights_.end());
    state.writer().put(name, values);
    return;
  }
  if (state.reader().is_next(name)) values = state.reader().get<double>(name);
  const std::int64_t rows = values.empty() ? 0 : (std::ssize(values) - width) / (1 + width);
  state.require(values.empty() || (rows > 0 && std::ssize(values) == width + rows * (1 + width)),
                "Its collected rows have another size.");
  const auto first_row = values.begin() + (values.empty() ? 0 : width);
  solved_.assign(values.begin(), first_row);
  collected_.assign(first_row, first_row + rows * width);
  collected_weights_.assign(first_row + rows * width, values.end());
}

void ClickRegression::set_products(const StateFields& state, std::span<const std::int64_t> numbers) {
  state.require(std::ssize(numbers) % (2 * ClickFeatures::kPlacesAtOnce) == 0 &&
                    std::ssize(numbers) <= 2 * belief_.features().most_places(),
                "It has another number of products.");
  ProductPlaces products(numbers.size() / 2);
  for (std::size_t p = 0; p < products.size(); ++p) {
    products[p] = {static_cast<std::int32_t>(numbers[2 * p]),
                   static_cast<std::int32_t>(numbers[2 * p + 1])};
    const bool is_free = numbers[2 * p] < 0;
    const std::int64_t least = belief_.features().has_cosines() ? 0 : -1 - HigherCosines::kTerms;
    for (const auto& [number, lowest] :
         {std::pair{numbers[2 * p], std::int64_t{0}}, {numbers[2 * p + 1], least}}) {
      state.require(
          is_free ? number == -1 : number >= lowest && number != -1 && number < belief_.features().inputs(),
          "It has a product of an input that is not there.");
    }
  }
  belief_.set_products(std::move(products));
  blocks_.back().end = belief_.columns();
}

}  // namespace olrank
