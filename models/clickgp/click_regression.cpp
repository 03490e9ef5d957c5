#include "models/clickgp/click_regression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
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

}  // namespace

double block_precision(double known, double squares, double first) {
  constexpr double kPrior = 4.0;
  return (known + kPrior) / (squares + kPrior / first);
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
  if (features.used() != ClickInputs::kNone) blocks_.push_back({1, 1 + features.inputs(), 1.0});
  if (features.is_additive())
    blocks_.push_back({1 + features.inputs(), 1 + features.terms(), kCosineWidth});
  if (features.start() != nullptr)
    blocks_.push_back({1 + features.terms(), features.products_column(), kStartWidth, true});
  if (features.products() != nullptr) blocks_.push_back({features.products_column(), features.columns()});
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
                                std::span<const std::uint8_t> clicks, Examination::Reading& reading) {
  std::vector<double> attraction(shown.size());
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    const double left = variance_left(belief_.departures(), view.curvature[shown[rank]], view.coupling);
    // The mean of σ over a normal score, by MacKay's approximation.
    const double narrowed = 1.0 + std::numbers::pi / 8.0 * left;
    attraction[rank] =
        click_probability((view.scores[shown[rank]] + view.query_departure) / std::sqrt(narrowed));
  }
  examination_.learn(attraction, clicks, reading);
}

ClickRegression::Part ClickRegression::part_of(const KnownQuery& known, AlignedVector<double> rows) const {
  const KnownQuery::Site& site = known.sites[number_];
  Part part;
  part.rows = std::move(rows);
  part.curvature = site.curvature;
  part.evidence = site.evidence;
  part.coupling = site.coupling;
  return part;
}

void ClickRegression::replace(ExecutionContext& context, const Part& before, bool same_rows,
                              KnownQuery& known) {
  KnownQuery::Site& site = known.sites[number_];
  ClickSite found;
  if (same_rows) found.rows = before.rows;
  belief_.find_site(known, number_, 1.0, kSiteSteps, kLeastSiteStep, found);
  keep(found, site);
  add_change(context, before, {std::move(found.rows), site.curvature, site.evidence, site.coupling},
             same_rows, precision_, evidence_);
}

void ClickRegression::add_change(ExecutionContext& context, const Part& before, const Part& after,
                                 bool same_rows, AlignedVector<double>& precision,
                                 AlignedVector<double>& evidence) const {
  const std::int64_t width = belief_.columns();
  const std::size_t docs_before = before.curvature.size();
  const std::size_t docs_after = after.curvature.size();
  // Documents that look as before count once, with the difference.
  const std::size_t docs = same_rows ? docs_after : docs_before + docs_after;
  AlignedVector<double> rows((docs + 2) * width);  // φ, and Σ h φ before and after
  AlignedVector<double> weighted(rows.size());
  std::vector<double> weights(docs + 2);
  std::vector<double> steps(docs);  // of the evidence
  const auto put = [&](const Part& part, double sign, std::size_t first, std::size_t pull_row) {
    std::copy(part.rows.begin(), part.rows.end(), rows.begin() + static_cast<std::int64_t>(first) * width);
    double* pull = rows.data() + static_cast<std::int64_t>(pull_row) * width;
    for (std::size_t doc = 0; doc < part.curvature.size(); ++doc) {
      weights[first + doc] += sign * part.curvature[doc];
      steps[first + doc] += sign * part.evidence[doc];
      const double* row = part.rows.data() + static_cast<std::int64_t>(doc) * width;
      for (std::int64_t c = 0; c < width; ++c) pull[c] += part.curvature[doc] * row[c];
    }
    weights[pull_row] = -sign * part.coupling;
  };
  put(before, -1.0, 0, docs);
  put(after, 1.0, same_rows ? 0 : docs_before, docs + 1);
  for (std::size_t row = 0; row < docs + 2; ++row) {
    const auto begin = static_cast<std::int64_t>(row) * width;
    for (std::int64_t c = begin; c < begin + width; ++c) weighted[c] = weights[row] * rows[c];
  }
  add_panels(context, width, static_cast<std::int64_t>(docs + 2), 1.0, rows.data(), weighted.data(),
             precision);
  blas::gemv(blas::Transpose::kYes, static_cast<std::int64_t>(docs), width, 1.0, rows.data(), width,
             steps.data(), 1.0, evidence.data());
}

void ClickRegression::retire(ExecutionContext& context, std::span<const KnownQuery* const> queries,
                             std::uint64_t learned) {
  if (retired_precision_.empty()) {
    retired_precision_.resize(precision_.size());
    retired_evidence_.resize(evidence_.size());
    retired_at_ = learned;
  }
  for (const KnownQuery* known : queries) {
    AlignedVector<double> rows(known->docs.size() * belief_.columns());
    belief_.features().expand(known->scaled, known->means, rows);
    add_change(context, {}, part_of(*known, std::move(rows)), false, retired_precision_, retired_evidence_);
  }
}

void ClickRegression::solve() {
  const std::int64_t width = belief_.columns();
  if (!has_evidence_) {
    for (Block& block : blocks_) block.precision = first_precision(block);
  }
  auto sum = std::make_shared<AlignedVector<double>>(precision_);
  sum->front() += kConstantPrecision;
  AlignedVector<double> evidence = evidence_;
  for (const Block& block : blocks_) {
    for (std::int64_t c = block.begin; c < block.end; ++c) {
      (*sum)[c * width + c] += block.precision;
      evidence[c] += block.precision * expected(block);
    }
  }
  belief_.solve(std::move(sum), evidence);
}

void ClickRegression::follow(ExecutionContext& context, ClickMemory& memory, std::uint64_t learned,
                             double half_life) {
  const std::uint64_t lists = learned - begun_at_;
  if (lists < next_refresh_) {
    if (lists % schedule_.solve_interval(lists) != 0) return;
    try {
      solve();
      return;
    } catch (const NumericError&) {
      // Rounding has eaten a digit too many: the sums are found again below.
    }
  }
  refresh(context, memory, learned, half_life);
  const auto now = static_cast<double>(lists);
  const double next = std::max(now + schedule_.least_interval,
                               std::min(now * schedule_.refresh_growth, now + schedule_.longest_interval));
  next_refresh_ = static_cast<std::uint64_t>(next);
}

void ClickRegression::forget(double share) {
  examination_.forget(share);
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
  SiteSums sums;
  for (int pass = 0; pass < schedule_.passes; ++pass) {
    sums = find_all_sites(context, queries);
    if (choose_products(context, queries)) sums = find_all_sites(context, queries);
    solve();
  }
  set_hyperparameters(sums);
  if (schedule_.passes > 1) find_all_sites(context, queries);
  solve();
}

ClickRegression::SiteSums ClickRegression::find_all_sites(ExecutionContext& context,
                                                          std::span<const ClickMemory::Entry> queries) {
  if (retired_precision_.empty()) {
    std::fill(precision_.begin(), precision_.end(), 0.0);
    std::fill(evidence_.begin(), evidence_.end(), 0.0);
  } else {
    precision_ = retired_precision_;
    evidence_ = retired_evidence_;
  }
  SiteSums total;
  for_chunks(queries, belief_.columns(), [&](std::span<const ClickMemory::Entry> chunk) {
    std::vector<SiteSums> of_chunk(chunk.size());
    add_chunk(context, chunk, of_chunk);
    for (const SiteSums& one : of_chunk) {
      total.document_squares += one.document_squares;
      total.document_known += one.document_known;
      total.query_squares += one.query_squares;
      total.query_known += one.query_known;
    }
  });
  return total;
}

bool ClickRegression::choose_products(ExecutionContext& context,
                                      std::span<const ClickMemory::Entry> queries) {
  const ClickFeatures& features = belief_.features();
  const std::int64_t inputs = features.inputs();
  if (features.products() == nullptr || inputs < 2) return false;
  AlignedVector<double> slopes(inputs * inputs);   // Σ v φ of every product φ, lower triangles
  AlignedVector<double> squares(inputs * inputs);  // Σ h φ²
  for_chunks(queries, 4 * inputs, [&](std::span<const ClickMemory::Entry> chunk) {
    std::vector<std::int64_t> first(chunk.size() + 1);
    for (std::size_t q = 0; q < chunk.size(); ++q)
      first[q + 1] = first[q] + std::ssize(chunk[q].known->docs);
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
            if (a >= 0)
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
            const double centred = 2.0 * double{known.scaled[doc * features.seen() + f]} - 1.0;
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
  const double pairs = 0.5 * static_cast<double>(inputs) * static_cast<double>(inputs - 1);
  const double least = -normal_quantile(0.5 * kMistakes / pairs);
  std::vector<std::pair<double, InputPair>> found;
  for (std::int32_t a = 0; a < inputs; ++a) {
    for (std::int32_t b = 0; b < a; ++b) {
      const double square = squares[a * inputs + b];
      const double z = square > 0.0 ? std::abs(slopes[a * inputs + b]) / std::sqrt(square) : 0.0;
      if (z > least) found.push_back({z, {a, b}});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  found.resize(std::min<std::size_t>(found.size(), ClickFeatures::kMostProducts));
  // Products that stay keep their places, as do those that forgotten queries may have spoken for.
  ProductPlaces products = *features.products();
  for (InputPair& place : products) {
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
    products.resize(std::min(wanted, ClickFeatures::kMostProducts), {-1, -1});
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
      const float* x = known.scaled.data() + static_cast<std::int64_t>(doc) * belief_.features().inputs();
      for (const auto [a, b] : products) {
        const double product = a < 0 ? 0.0 : centred_product(x[a], x[b]);
        squares += product * product;
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

template <class Use>
void ClickRegression::for_chunks(std::span<const ClickMemory::Entry> queries, std::int64_t numbers_per_doc,
                                 const Use& use) const {
  constexpr std::int64_t kChunkNumbers = 1 << 22;  // 32 MB at a time
  const std::int64_t most_rows = std::max<std::int64_t>(kChunkNumbers / numbers_per_doc, 256);
  for (std::size_t begin = 0; begin < queries.size();) {
    std::size_t end = begin;
    std::int64_t rows = 0;
    while (end < queries.size() &&
           (end == begin || rows + std::ssize(queries[end].known->docs) <= most_rows))
      rows += std::ssize(queries[end++].known->docs);
    use(queries.subspan(begin, end - begin));
    begin = end;
  }
}

void ClickRegression::add_chunk(ExecutionContext& context, std::span<const ClickMemory::Entry> queries,
                                std::vector<SiteSums>& sums) {
  const std::int64_t width = belief_.columns();
  std::vector<std::int64_t> first(queries.size() + 1);
  for (std::size_t q = 0; q < queries.size(); ++q)
    first[q + 1] = first[q] + std::ssize(queries[q].known->docs);
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
      belief_.find_site(known, number_, 1.0, kPassSteps, 0.0, found);
      keep(found, site);
      double* pull = pulls.data() + q * width;
      SiteSums& sum = sums[q];
      for (std::size_t doc = 0; doc < known.docs.size(); ++doc) {
        const double h = site.curvature[doc];
        const double root = std::sqrt(h);
        const double* row = found.rows.data() + static_cast<std::int64_t>(doc) * width;
        double* out = rows.data() + (first[q] + static_cast<std::int64_t>(doc)) * width;
        for (std::int64_t c = 0; c < width; ++c) {
          out[c] = root * row[c];
          pull[c] += h * row[c];
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
    for (std::int64_t c = block.begin; c < block.end; ++c) {
      known += 1.0 - block.precision * inverse[c * width + c];
      const double distance = belief_.theta()[c] - expected(block);
      squares += distance * distance;
    }
    block.precision = block_precision(known, squares, first_precision(block));
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
}

void ClickRegression::set_products(const StateFields& state, std::span<const std::int64_t> numbers) {
  state.require(std::ssize(numbers) % (2 * ClickFeatures::kPlacesAtOnce) == 0 &&
                    std::ssize(numbers) <= 2 * ClickFeatures::kMostProducts,
                "It has another number of products.");
  ProductPlaces products(numbers.size() / 2);
  for (std::size_t p = 0; p < products.size(); ++p) {
    products[p] = {static_cast<std::int32_t>(numbers[2 * p]),
                   static_cast<std::int32_t>(numbers[2 * p + 1])};
    const bool is_free = numbers[2 * p] < 0;
    for (const std::int64_t number : {numbers[2 * p], numbers[2 * p + 1]}) {
      state.require(is_free ? number == -1 : number >= 0 && number < belief_.features().inputs(),
                    "It has a product of an input that is not there.");
    }
  }
  belief_.set_products(std::move(products));
  blocks_.back().end = belief_.columns();
}

}  // namespace olrank
