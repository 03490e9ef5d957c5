#include <algorithm>

#include "bench/cases/case_list.h"
#include "core/ops/covariance.h"
#include "core/ops/inverse_factor.h"
#include "models/posterior/posterior.h"

namespace olrank {
namespace {

/// Operations of diagonal_gram: inactive units are skipped, which depends on the data, and one triangle of
/// the symmetric matrix is needed.
double diagonal_operations(const Documents& data) {
  double products = 0.0;
  for (std::int64_t l = 0; l < data.shape.depth; ++l) {
    const NetworkLayer layer = data.shape.layer(l);
    for (std::int64_t unit = 0; unit < layer.rows; ++unit) {
      double alive = 0.0;
      for (std::int64_t doc = 0; doc < data.docs; ++doc)
        alive += data.rows().row(data.shape, doc)[layer.delta + unit] != 0.0F ? 1.0 : 0.0;
      products += real(layer.columns) * 0.5 * alive * (alive + 1.0);
    }
  }
  return 2.0 * products;
}

/// A posterior after `pairs` pairs of random documents.
std::shared_ptr<Posterior> posterior_after(std::int64_t pairs, const NetworkShape& shape,
                                           const PosteriorSpec& spec, int threads) {
  constexpr std::int64_t kAtOnce = 500;
  std::shared_ptr<Posterior> posterior = make_posterior(spec);
  for (std::int64_t done = 0; done < pairs; done += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, pairs - done);
    Documents seen(shape, 2 * count, static_cast<std::uint32_t>(done + 7), threads);
    posterior->observe(seen.context, seen.rows(), pairs_of_rows(0, count));
  }
  return posterior;
}

struct WidthCase {
  std::string name;
  Covariance covariance = Covariance::kFull;
  CovarianceForm form = CovarianceForm::kAuto;
  std::int64_t pairs = 0;
  double operations = 0.0;
  double bytes = 0.0;  // of the posterior
};

/// The squared widths of all pairs of a query's documents: several operations in one.
void add_widths(CaseList& list, const NetworkShape& shape, const WidthCase& of) {
  const std::int64_t count = list.sizes.docs;
  PosteriorSpec spec;
  spec.shape = shape;
  spec.covariance = of.covariance;
  spec.form = of.form;
  spec.scale = 1.0 / real(shape.width);
  spec.checks.every = 0;
  const double written = kDouble * real(count * count);
  list.add(
      of.name, {{"n", of.pairs}, {"V", count}, {"m", shape.width}, {"d", shape.inputs}},
      {CeilingKind::kGemmDouble,
       of.operations,
       {of.bytes + kFloat * real(count * shape.factors()), 0.0, written}},
      [docs = list.docs(shape, count), shape, spec, pairs = of.pairs, threads = list.sizes.threads, count] {
        return [data = docs(), posterior = posterior_after(pairs, shape, spec, threads),
                width_sq = std::vector<double>(length(count * count))]() mutable {
          posterior->width_sq(data->context, data->rows(), width_sq);
        };
      });
}

void add_diagonal(CaseList& list, double operations) {
  const NetworkShape shape = list.shape;
  const std::int64_t p = shape.parameters();
  const std::int64_t count = list.sizes.docs;
  list.add("diagonal_covariance/add_to_diagonal", {{"k", kRoundPairs}, {"p", p}},
           {CeilingKind::kMemory, 6.0 * real(kRoundPairs * p), {0.0, kDouble * real(p), 0.0}},
           [fresh = list.docs(shape, 2 * kRoundPairs), p] {
             return [data = fresh(), diagonal = std::vector<double>(length(p), 10.0)]() mutable {
               add_to_diagonal(data->context, data->shape, data->rows(), 1e-6, diagonal);
             };
           });
  list.add(
      "diagonal_covariance/diagonal_gram", list.of_docs(),
      {CeilingKind::kGemmDouble,
       operations,
       {kDouble * real(p) + kFloat * real(count * shape.factors()), 0.0, kDouble * real(count * count)}},
      [docs = list.docs(shape, count), p, count] {
        return [data = docs(), weights = std::vector<double>(length(p), 0.1),
                m = std::vector<double>(length(count * count))]() mutable {
          diagonal_gram(data->context, data->shape, data->rows(), 1.0, weights, m.data());
        };
      });
}

}  // namespace

void add_width_cases(CaseList& list) {
  const NetworkShape shape = list.shape;
  const std::int64_t count = list.sizes.docs;
  const double square = real(count * count);
  const double diagonal = diagonal_operations(Documents(shape, count, 1, 1));
  add_diagonal(list, diagonal);
  list.add("pair_width/pair_width_sq", {{"V", count}},
           {CeilingKind::kMemory, 1.5 * square, {kDouble * 0.5 * square, 0.0, kDouble * square}},
           [context = list.context(), count] {
             std::vector<double> m = uniform<double>(count * count, 4);
             for (std::int64_t i = 0; i < count; ++i) m[length(i * count + i)] += 2.0;
             return [of = context(), count, m, width_sq = std::vector<double>(m.size())]() mutable {
               pair_width_sq(*of, count, m.data(), width_sq.data());
             };
           });
  add_widths(list, shape,
             {"widths/diagonal", Covariance::kDiagonal, CovarianceForm::kAuto, 100, diagonal,
              kDouble * real(shape.parameters())});
  const std::int64_t pairs = list.sizes.pairs;
  const double n = real(pairs);
  const double of_pairs = real(count) * pair_doc_operations(shape);
  add_widths(list, shape,
             {"widths/full", Covariance::kFull, CovarianceForm::kDual, pairs,
              n * (n + 1.0) * real(count) + n * of_pairs + n * real(count * (count + 1)),
              kDouble * 0.5 * n * n + kFloat * 2.0 * n * real(shape.factors())});
  const double p = real(list.narrow.parameters());
  add_widths(list, list.narrow,
             {"widths/full-primal", Covariance::kFull, CovarianceForm::kPrimal, 100,
              p * p * real(count) + p * real(count * (count + 1)), kDouble * 0.5 * p * p});
}

namespace {

/// Diagonally dominant, and so are its extensions by small numbers.
void fill_corner(std::vector<double>& corner, std::int64_t added) {
  std::fill(corner.begin(), corner.end(), 0.01);
  for (std::int64_t i = 0; i < added; ++i) corner[length(i * added + i)] = 4.0;
}

std::vector<double> small_cross(std::int64_t count, std::uint32_t place) {
  std::vector<double> cross = uniform<double>(count, place);
  for (double& value : cross) value *= 1e-3;
  return cross;
}

struct GrownFactor {
  GrownFactor(std::shared_ptr<ExecutionContext> of, std::int64_t pairs) : context(std::move(of)) {
    while (factor.size() < pairs) {
      const std::int64_t added = std::min(factor.room(), pairs - factor.size());
      std::vector<double> corner(length(added * added));
      fill_corner(corner, added);
      append(*context, factor, added, small_cross(factor.size() * added, 5).data(), added, corner.data(),
             added);
    }
  }

  std::shared_ptr<ExecutionContext> context;
  InverseFactor factor;
};

/// Appends the same rows repeatedly to an unchanged factor.
CaseList::Body appending(const std::shared_ptr<GrownFactor>& grown) {
  const std::int64_t n = grown->factor.size();
  const std::int64_t added = std::min(kRoundPairs, grown->factor.room());
  return [grown, added, cross = small_cross(n * added, 6),
          corner = std::vector<double>(length(added * added))]() mutable {
    fill_corner(corner, added);
    InverseFactor copy = grown->factor;
    append(*grown->context, copy, added, cross.data(), added, corner.data(), added);
  };
}

}  // namespace

void add_factor_cases(CaseList& list) {
  const std::int64_t pairs = list.sizes.pairs;
  const std::int64_t docs = list.sizes.docs;
  const double n = real(pairs);
  const double triangle = kDouble * 0.5 * n * (n + 1.0);
  const auto context = list.context();
  const auto grown = [context, pairs] { return std::make_shared<GrownFactor>(context(), pairs); };
  list.add("inverse_factor/apply", {{"n", pairs}, {"V", docs}},
           {CeilingKind::kGemmDouble,
            n * (n + 1.0) * real(docs),
            {triangle + kDouble * n * real(docs), 0.0, kDouble * n * real(docs)}},
           [grown, pairs, docs] {
             return [of = grown(), x = uniform<double>(pairs * docs, 3),
                     y = std::vector<double>(length(pairs * docs)),
                     docs]() mutable { apply(*of->context, of->factor, docs, x.data(), y.data(), docs); };
           });
  list.add("inverse_factor/subtract_gram", {{"n", pairs}, {"V", docs}},
           {CeilingKind::kGemmDouble,
            n * real(docs * (docs + 1)),
            {kDouble * n * real(docs), kDouble * 0.5 * real(docs * docs), 0.0}},
           [context, pairs, docs] {
             return [of = context(), x = uniform<double>(pairs * docs, 3),
                     c = std::vector<double>(length(docs * docs)), pairs,
                     docs]() mutable { subtract_gram(*of, pairs, docs, x.data(), docs, c.data(), docs); };
           });
  // Must read L⁻¹.
  list.add("inverse_factor/append", {{"n", pairs}, {"k", kRoundPairs}},
           {CeilingKind::kMemory,
            n * (n + 1.0) * real(kRoundPairs),
            {triangle + kDouble * n * real(kRoundPairs), 0.0, kDouble * n * real(kRoundPairs)}},
           [grown] { return appending(grown()); });
}

namespace {

std::vector<double> prior_inverse(const NetworkShape& shape) {
  std::vector<double> inverse(length(shape.parameters() * shape.parameters()));
  set_inverse_covariance(shape.parameters(), 10.0, inverse.data());
  return inverse;
}

}  // namespace

void add_inverse_cases(CaseList& list) {
  const NetworkShape shape = list.narrow;
  const std::int64_t parameters = shape.parameters();
  const std::int64_t count = list.sizes.docs;
  const double scale = 1.0 / real(shape.width);
  const double p = real(parameters);
  const double square = p * p;
  const auto fresh = list.docs(shape, 2 * kRoundPairs);
  const auto docs = list.docs(shape, count);
  // A⁻¹ is read for P; then one half of it is updated and the other written.
  list.add("inverse_covariance/update_inverse_covariance", {{"k", kRoundPairs}, {"p", parameters}},
           {CeilingKind::kMemory,
            3.0 * square * real(kRoundPairs),
            {kDouble * square, kDouble * 0.5 * square, kDouble * 0.5 * square}},
           [fresh, shape, scale] {
             return [data = fresh(), inverse = prior_inverse(shape), scale]() mutable {
               update_inverse_covariance(data->context, data->shape, data->rows(), scale, inverse.data());
             };
           });
  // Half of the symmetric A⁻¹ is multiplied.
  list.add("inverse_covariance/inverse_covariance_gram", {{"V", count}, {"p", parameters}},
           {CeilingKind::kGemmDouble,
            square * real(count) + p * real(count * (count + 1)),
            {kDouble * 0.5 * square, 0.0, kDouble * real(count * count)}},
           [docs, shape, scale, count] {
             return [data = docs(), inverse = prior_inverse(shape), scale,
                     m = std::vector<double>(length(count * count))]() mutable {
               inverse_covariance_gram(data->context, data->shape, data->rows(), scale, inverse.data(),
                                       m.data());
             };
           });
}

}  // namespace olrank
