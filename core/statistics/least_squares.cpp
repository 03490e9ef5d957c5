#include "core/statistics/least_squares.h"

#include <cassert>
#include <cmath>
#include <cstddef>
#include <utility>

namespace olrank {
namespace {

/// A column that keeps less than this share of its squares once the others are taken out depends on them.
constexpr double kLeastShare = 1e-10;

std::vector<double> centred(std::span<const double> values, double& mean) {
  mean = 0.0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  std::vector<double> result(values.begin(), values.end());
  for (double& value : result) value -= mean;
  return result;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

std::vector<double> fit_least_squares(std::span<const double> y,
                                      const std::vector<std::vector<double>>& columns) {
  const std::size_t count = columns.size();
  std::vector<double> undecided(count + 1, std::nan(""));
  if (y.size() < count + 1) return undecided;
  double y_mean = 0.0;
  std::vector<double> rest = centred(y, y_mean);
  // Gram–Schmidt, from which the triangular system R c = Qᵀy follows.
  std::vector<std::vector<double>> basis;
  std::vector<std::vector<double>> shares(count, std::vector<double>(count, 0.0));
  std::vector<double> means(count);
  std::vector<double> targets(count);
  for (std::size_t k = 0; k < count; ++k) {
    assert(columns[k].size() == y.size());
    std::vector<double> column = centred(columns[k], means[k]);
    const double whole = dot(column, column);
    for (std::size_t j = 0; j < k; ++j) {
      shares[j][k] = dot(basis[j], column);
      for (std::size_t i = 0; i < column.size(); ++i) column[i] -= shares[j][k] * basis[j][i];
    }
    const double left = dot(column, column);
    if (!(left > kLeastShare * whole)) return undecided;
    shares[k][k] = std::sqrt(left);
    for (double& value : column) value /= shares[k][k];
    targets[k] = dot(column, rest);
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= targets[k] * column[i];
    basis.push_back(std::move(column));
  }
  std::vector<double> coefficients(count + 1);
  for (std::size_t k = count; k-- > 0;) {
    double value = targets[k];
    for (std::size_t j = k + 1; j < count; ++j) value -= shares[k][j] * coefficients[j + 1];
    coefficients[k + 1] = value / shares[k][k];
  }
  coefficients[0] = y_mean;
  for (std::size_t k = 0; k < count; ++k) coefficients[0] -= coefficients[k + 1] * means[k];
  return coefficients;
}

double curve_area(std::span<const double> rounds, std::span<const double> values) {
  assert(rounds.size() == values.size());
  if (values.empty()) return std::nan("");
  if (values.size() == 1) return values.front();
  double area = 0.0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    area += 0.5 * (rounds[i] - rounds[i - 1]) * (values[i] + values[i - 1]);
  }
  return area / (rounds.back() - rounds.front());
}

}  // namespace olrank
