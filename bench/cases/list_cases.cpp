#include <algorithm>

#include "bench/cases/case_list.h"
#include "core/math/dcg.h"
#include "core/math/host_device.h"
#include "core/math/pair_loss.h"
#include "core/math/portable_exp.h"
#include "core/ops/blas.h"
#include "core/ops/list_loss.h"
#include "core/ops/tangent_factors.h"

namespace olrank {
namespace {

constexpr std::int64_t kQueries = 100;
constexpr std::int64_t kChunk = 512;             // of a ceiling, within the first cache
constexpr std::int64_t kTimesOfListMle = 45;     // of the integral
constexpr double kExponentialOperations = 31.0;  // of portable_exp_nonpositive()

/// Queries of V/2 to 3V/2 documents with grades from 0 to 4.
struct Lists {
  explicit Lists(std::int64_t docs_per_query) {
    const auto lengths = uniform<double>(kQueries, 12);
    std::int64_t docs = 0;
    for (const double length : lengths) {
      docs += std::max<std::int64_t>(1, static_cast<std::int64_t>((0.5 + length) * real(docs_per_query)));
      ends.push_back(docs);
    }
    scores = uniform<float>(docs, 13);
    for (float& score : scores) score = 6.0F * score - 3.0F;
    for (const double grade : uniform<double>(docs, 14)) {
      grades.push_back(static_cast<std::uint8_t>(5.0 * grade));
    }
    slopes.resize(length(docs));
  }

  std::int64_t pairs() const {
    std::int64_t sum = 0;
    for (std::size_t query = 0; query < ends.size(); ++query) {
      const std::int64_t first = query == 0 ? 0 : ends[query - 1];
      sum +=
          graded_pairs(count_grades(std::span(grades).subspan(length(first), length(ends[query] - first))));
    }
    return sum;
  }

  std::vector<std::int64_t> ends;
  std::vector<float> scores;
  std::vector<std::uint8_t> grades;
  std::vector<double> slopes;
};

OLRANK_VECTOR_CLONES
void bare_exponentials(const double* x, std::int64_t count, double* exps) {
  for (std::int64_t k = 0; k < count; ++k) exps[k] = portable_exp_nonpositive(x[k]);
}

OLRANK_VECTOR_CLONES
void bare_hinges(const double* x, std::int64_t count, double* slopes) {
  for (std::int64_t k = 0; k < count; ++k) slopes[k] += hinge_slope(x[k] - 0.5);
}

OLRANK_VECTOR_CLONES
void bare_pair_terms(const double* x, std::int64_t count, double* terms) {
  for (std::int64_t k = 0; k < count; ++k) terms[k] = misorder_loss(x[k]) + sigmoid(x[k]);
}

/// No form of a loss can do without this: `count` times `bare` on numbers between `low` and `high` in the
/// first cache.
template <class Bare>
std::function<void()> bare_loop(std::int64_t count, double low, double high, Bare bare) {
  std::vector<double> x = uniform<double>(kChunk, 15);
  for (double& value : x) value = low + (high - low) * value;
  return [count, bare, x = std::move(x), found = std::vector<double>(length(kChunk))]() mutable {
    for (std::int64_t begin = 0; begin < count; begin += kChunk)
      bare(x.data(), std::min(kChunk, count - begin), found.data());
  };
}

}  // namespace

void add_list_cases(CaseList& list) {
  const std::int64_t docs_per_query = list.sizes.docs;
  const Lists lists(docs_per_query);
  const auto docs = std::ssize(lists.scores);
  const std::int64_t pairs = lists.pairs();
  const MemoryTraffic traffic{(kFloat + 1.0) * real(docs), 0.0, kDouble * real(docs)};
  for (const auto& [loss, name] : EnumNames<ListLoss>::values) {
    const std::int64_t terms = has_pairs(loss) ? pairs : docs;
    // kListMle has two for each document above the lowest grade at each time.
    const std::int64_t exps = loss == ListLoss::kListNet   ? 2 * terms
                              : loss == ListLoss::kListMle ? 2 * kTimesOfListMle * terms
                                                           : terms;
    BenchCase work;
    work.name = "list_loss/list_losses_" + std::string(name);
    work.parameters = {{"queries", kQueries}, {"V", docs_per_query}};
    if (list.sizes.threads > 1) work.parameters.emplace_back("threads", list.sizes.threads);
    work.traffic = traffic;
    work.prepare = [context = list.context(), docs_per_query, form = ListLossForm{.loss = loss}] {
      return [of = context(), data = Lists(docs_per_query), form]() mutable {
        list_losses(*of, form, data.scores, data.grades, data.ends, data.slopes);
      };
    };
    work.ceiling = CeilingKind::kOwn;
    if (loss == ListLoss::kRankCosine) {
      work.ceiling = CeilingKind::kMemory;
      work.operations = 10.0 * real(docs);
    } else if (loss == ListLoss::kRankSvm) {
      work.operations = 4.0 * real(pairs);
      work.own_name = "hinges";
      work.own_body = bare_loop(pairs, 0.0, 1.0, bare_hinges);
    } else if (loss == ListLoss::kLambdaRank) {
      work.operations =
          (2.0 * kExponentialOperations + 6.0) * real(pairs);  // with the series of log(1 + x)
      work.own_name = "logistic pairs";
      work.own_body = bare_loop(pairs, -3.0, 3.0, bare_pair_terms);
    } else {
      work.operations = kExponentialOperations * real(exps);
      work.own_name = "exponentials";
      work.own_body = bare_loop(exps, -6.0, 0.0, bare_exponentials);
    }
    list.cases.push_back(std::move(work));
  }
}

/// Both documents of a pair in every layer except the last, where their difference is enough.
double pair_doc_operations(const NetworkShape& shape) {
  const NetworkLayer last = shape.layer(shape.depth - 1);
  return 2.0 * (2.0 * real(shape.factors() - last.columns - 1) + real(last.columns));
}

void add_kernel_cases(CaseList& list) {
  const NetworkShape shape = list.shape;
  const std::int64_t count = list.sizes.docs;
  const std::int64_t pairs = list.sizes.pairs;
  const double row = kFloat * real(shape.factors());
  const auto docs = list.docs(shape, count);
  const auto history = list.docs(shape, 2 * pairs, 2);
  // A symmetric matrix: one triangle is needed. An inner product of two gradients takes a multiplication
  // and an addition per number of a row of tangent factors.
  list.add("tangent_kernel/doc_kernel", list.of_docs(),
           {CeilingKind::kGemmDouble,
            real(count * (count + 1)) * real(shape.factors()),
            {row * real(count), 0.0, kDouble * real(count * count)}},
           [docs, count] {
             return [data = docs(), kernel = std::vector<double>(length(count * count))]() mutable {
               doc_kernel(data->context, data->shape, data->rows(), 1.0, kernel.data());
             };
           });
  CaseList::Parameters parameters = list.of_pairs();
  parameters.insert(parameters.begin() + 1, {"V", count});
  list.add("tangent_kernel/pair_doc_kernel", parameters,
           {CeilingKind::kGemmDouble,
            real(pairs * count) * pair_doc_operations(shape),
            {row * real(2 * pairs + count), 0.0, kDouble * real(pairs * count)}},
           [docs, history, pairs, count] {
             return [data = docs(), seen = history(), kernel = std::vector<double>(length(pairs * count)),
                     count]() mutable {
               pair_doc_kernel(data->context, data->shape, seen->rows(), data->rows(), 1.0, kernel.data(),
                               count);
             };
           });
}

namespace {

using blas::Transpose;

template <class Number>
void add_product(CaseList& list, const std::string& name, CeilingKind ceiling) {
  const std::int64_t side = list.sizes.docs;
  const double square = real(side * side) * sizeof(Number);
  list.add(name, {{"side", side}}, {ceiling, 2.0 * real(side * side * side), {square, 0.0, square}},
           [side] {
             return [side, a = uniform<Number>(side * side, 1),
                     c = std::vector<Number>(length(side * side))]() mutable {
               blas::gemm(Transpose::kNo, Transpose::kNo, side, side, side, Number{1}, a.data(), side,
                          a.data(), side, Number{0}, c.data(), side);
             };
           });
}

/// Each of these maps the identity to itself, so that calls can be repeated.
void add_factorisations(CaseList& list) {
  const std::int64_t side = list.sizes.docs;
  const double cube = real(side * side * side);
  const double square = kDouble * real(side * side);
  std::vector<double> identity(length(side * side));
  for (std::int64_t i = 0; i < side; ++i) identity[length(i * side + i)] = 1.0;
  list.add("blas/solve_lower", {{"side", side}},
           {CeilingKind::kGemmDouble, cube, {0.5 * square, square, 0.0}}, [side, identity] {
             return [side, l = identity, b = uniform<double>(side * side, 1)]() mutable {
               blas::solve_lower(Transpose::kNo, side, side, l.data(), side, b.data(), side);
             };
           });
  list.add("blas/cholesky", {{"side", side}},
           {CeilingKind::kGemmDouble, cube / 3.0, {0.0, 0.5 * square, 0.0}}, [side, identity] {
             return [side, a = identity]() mutable { blas::cholesky(side, a.data(), side); };
           });
  list.add("blas/inverse_from_cholesky", {{"side", side}},
           {CeilingKind::kGemmDouble, 2.0 * cube / 3.0, {0.0, 0.5 * square, 0.0}}, [side, identity] {
             return [side, l = identity]() mutable { blas::inverse_from_cholesky(side, l.data(), side); };
           });
}

}  // namespace

void add_product_cases(CaseList& list) {
  add_product<float>(list, "blas/gemm_float", CeilingKind::kGemmFloat);
  add_product<double>(list, "blas/gemm_double", CeilingKind::kGemmDouble);
  const std::int64_t rows = list.sizes.pairs;
  const std::int64_t columns = list.sizes.docs;
  list.add("blas/gemv", {{"rows", rows}, {"columns", columns}},
           {CeilingKind::kMemory, 2.0 * real(rows * columns), {kDouble * real(rows * columns), 0.0, 0.0}},
           [rows, columns] {
             return [rows, columns, a = uniform<double>(rows * columns, 1), x = uniform<double>(columns, 2),
                     y = std::vector<double>(length(rows))]() mutable {
               blas::gemv(Transpose::kNo, rows, columns, 1.0, a.data(), columns, x.data(), 0.0, y.data());
             };
           });
  list.add("blas/add_gram", {{"rows", rows}, {"columns", columns}},
           {CeilingKind::kGemmDouble,
            2.0 * real(rows * columns * columns),
            {kDouble * real(rows * columns), kDouble * real(columns * columns), 0.0}},
           [rows, columns] {
             return [rows, columns, a = uniform<double>(rows * columns, 1),
                     c = std::vector<double>(length(columns * columns))]() mutable {
               blas::add_gram(0, columns, rows, 1.0, a.data(), a.data(), columns, c.data(), columns);
             };
           });
  add_factorisations(list);
}

}  // namespace olrank
