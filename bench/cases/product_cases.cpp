#include "bench/cases/case_list.h"
#include "core/ops/blas.h"

namespace olrank {
namespace {

using blas::Transpose;

template <class Number>
void add_product(CaseList& list, const std::string& name, CeilingKind ceiling,
                 std::vector<Number> (*numbers)(std::int64_t, std::uint32_t)) {
  const std::int64_t side = list.sizes().docs;
  const double square = real(side * side) * sizeof(Number);
  list.add(name, {{"side", side}}, {ceiling, 2.0 * real(side * side * side), {square, 0.0, square}},
           [side, numbers] {
             return [side, a = numbers(side * side, 1),
                     c = std::vector<Number>(length(side * side))]() mutable {
               blas::gemm(Transpose::kNo, Transpose::kNo, side, side, side, Number{1}, a.data(), side,
                          a.data(), side, Number{0}, c.data(), side);
             };
           });
}

/// Each of these maps the identity to itself, so that calls can be repeated.
void add_factorisations(CaseList& list) {
  const std::int64_t side = list.sizes().docs;
  const double cube = real(side * side * side);
  const double square = kDouble * real(side * side);
  std::vector<double> identity(length(side * side));
  for (std::int64_t i = 0; i < side; ++i) identity[length(i * side + i)] = 1.0;
  list.add("blas/solve_lower", {{"side", side}},
           {CeilingKind::kGemmDouble, cube, {0.5 * square, square, 0.0}}, [side, identity] {
             return [side, l = identity, b = uniform_doubles(side * side, 1)]() mutable {
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
  add_product<float>(list, "blas/gemm_float", CeilingKind::kGemmFloat, uniform_floats);
  add_product<double>(list, "blas/gemm_double", CeilingKind::kGemmDouble, uniform_doubles);
  const std::int64_t rows = list.sizes().pairs;
  const std::int64_t columns = list.sizes().docs;
  list.add("blas/gemv", {{"rows", rows}, {"columns", columns}},
           {CeilingKind::kMemory, 2.0 * real(rows * columns), {kDouble * real(rows * columns), 0.0, 0.0}},
           [rows, columns] {
             return [rows, columns, a = uniform_doubles(rows * columns, 1), x = uniform_doubles(columns, 2),
                     y = std::vector<double>(length(rows))]() mutable {
               blas::gemv(Transpose::kNo, rows, columns, 1.0, a.data(), columns, x.data(), 0.0, y.data());
             };
           });
  list.add("blas/add_gram", {{"rows", rows}, {"columns", columns}},
           {CeilingKind::kGemmDouble,
            2.0 * real(rows * columns * columns),
            {kDouble * real(rows * columns), kDouble * real(columns * columns), 0.0}},
           [rows, columns] {
             return [rows, columns, a = uniform_doubles(rows * columns, 1),
                     c = std::vector<double>(length(columns * columns))]() mutable {
               blas::add_gram(0, columns, rows, 1.0, a.data(), a.data(), columns, c.data(), columns);
             };
           });
  add_factorisations(list);
}

}  // namespace olrank
