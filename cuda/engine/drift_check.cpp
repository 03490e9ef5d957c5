#include "cuda/engine/drift_check.h"

#include <cstring>
#include <span>

#include "cuda/ops/gradient_products.h"
#include "cuda/ops/tangent_factors.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

void DriftCheck::bring(Stream stream, const DriftProbes& probes, ResidentPairs& kept) {
  const auto pairs = std::ssize(probes.pairs);
  columns_.parameters = shape_.parameters();
  columns_.vectors = std::ssize(probes.vectors) / columns_.parameters;
  columns_.pairs = pairs;
  const std::size_t of_pairs = probes.pairs.size() * sizeof(PreferencePair);
  // A library wants the vectors at a multiple of 16 bytes.
  const std::size_t of_signs = (2 * probes.pairs.size() + 1) * probes.pairs.size() * sizeof(double);
  const std::size_t sent = of_pairs + of_signs + std::span(probes.vectors).size_bytes();
  static_assert(sizeof(PreferencePair) == sizeof(double));
  host_.reserve(sent);
  std::byte* to = host_.data();
  std::memset(to, 0, of_pairs + of_signs);
  auto* docs = reinterpret_cast<PreferencePair*>(to);
  auto* signs = reinterpret_cast<double*>(to + of_pairs);
  for (std::int64_t s = 0; s < pairs; ++s) {
    const auto winner = static_cast<std::int32_t>(2 * probes.pairs[static_cast<std::size_t>(s)]);
    docs[s] = {winner, winner + 1};
    signs[s * 2 * pairs + 2 * s] = 1.0;
    signs[s * 2 * pairs + 2 * s + 1] = -1.0;
  }
  if (!probes.vectors.empty())
    std::memcpy(to + of_pairs + of_signs, probes.vectors.data(), std::span(probes.vectors).size_bytes());

  const std::int64_t p = columns_.parameters;
  packet_.reserve(stream, static_cast<std::int64_t>(sent + pairs * p * sizeof(double)));
  copy_bytes(stream, packet_.data(), host_.data(), sent);
  auto* v = reinterpret_cast<double*>(packet_.data() + of_pairs + of_signs);
  columns_.v = v;
  own_.reserve(stream, numbers());
  figures_.reserve(stream, columns());
  if (pairs == 0) return;
  rows_.reserve(stream, 2 * pairs * shape_.factors());
  m_.reserve(stream, 4 * pairs * pairs);
  weights_.reserve(stream, gradient_sum_workspace(shape_, 2 * pairs, pairs));
  gather_pairs(stream, kept.all(), reinterpret_cast<const std::int32_t*>(packet_.data()), pairs,
               rows_.data());
  gradient_sum(stream, shape_, pair_docs(), reinterpret_cast<const double*>(packet_.data() + of_pairs),
               weights_.data(), v + columns_.vectors * p, nullptr, pairs);
}

std::vector<double> DriftCheck::errors(Stream stream, const double* y, DriftColumns of_a) {
  of_a.parameters = columns_.parameters;
  of_a.vectors = columns_.vectors;
  of_a.pairs = columns_.pairs;
  of_a.v = columns_.v;
  of_a.own = own_.data();
  of_a.m = m_.data();
  of_a.y = y;
  drift_figures(stream, of_a, figures_.data());
  const std::size_t bytes = static_cast<std::size_t>(columns()) * sizeof(DriftFigure);
  host_figures_.reserve(bytes);
  copy_bytes(stream, host_figures_.data(), figures_.data(), bytes);
  OwnedStream::wait_for(stream);
  const auto* figures = reinterpret_cast<const DriftFigure*>(host_figures_.data());
  std::vector<double> errors;
  for (std::int64_t i = 0; i < columns(); ++i)
    errors.push_back(width_error(figures[i].width_sq, figures[i].v_y, figures[i].y_a_y));
  return errors;
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
