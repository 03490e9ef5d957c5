#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "bench/device/bench_tensors.h"
#include "bench/device/libtorch_forms.h"
#include "core/error.h"
#include "core/online/online_ranker.h"
#include "cuda/ops/certain_orders.h"
#include "cuda/ops/pair_corner.h"
#include "cuda/ops/score_order.h"

namespace olrank {

constexpr double kLambda = 10.0;
constexpr double kGramTolerance = 1e-9;  // sums in double, in another order, through differences
constexpr CertaintyRule kRule{0.03, 0.0};

inline std::vector<PreferencePair> round_pairs() {
  std::vector<PreferencePair> pairs;
  for (std::int32_t s = 0; s < kRoundPairs; ++s) pairs.push_back({2 * s, 2 * s + 1});
  return pairs;
}

/// Bytes of the factors of documents.
inline double rows_bytes(const NetworkShape& shape, double docs) {
  return kFloatBytes * docs * real(shape.factors());
}

/// A query under one network, with the arrays of its widths.
struct Query {
  DeviceSizes sizes;
  std::shared_ptr<MadeDocs> docs;
  double scale;
  at::Tensor m;
  at::Tensor offsets;
  at::Tensor order;
  at::Tensor bits;
  at::Tensor rule;
  at::Tensor pairs;
  at::Tensor status;

  Query(const DeviceSizes& of, Stream stream)
      : sizes(of),
        docs(make_docs(of, stream, of.docs)),
        scale(1.0 / real(of.width)),
        m(empty_tensor(of, at::kDouble, {of.docs, of.docs})),
        offsets(uploaded(of, std::vector<std::int64_t>{0, of.docs})),
        order(empty_tensor(of, at::kInt, {of.docs})),
        bits(empty_tensor(of, at::kLong, {of.docs, OrderBits::words(of.docs)})),
        rule(uploaded(of, std::vector<CertaintyRule>{kRule})),
        pairs(uploaded(of, round_pairs())),
        status(uploaded(of, std::vector<device::CovarianceStatus>(1))) {}

  const NetworkShape& shape() const { return docs->shape; }
  at::Tensor rows() const { return docs->rows.select(0, 0); }
  const PreferencePair* pair_list() const { return data<PreferencePair>(pairs); }
  device::CovarianceStatus* state() const { return data<device::CovarianceStatus>(status); }

  /// From M to bits.
  void finish(Stream on) const {
    device::order_by_score(on, 1, data<std::int64_t>(offsets), data<float>(docs->scores),
                           data<std::int32_t>(order), nullptr);
    device::certain_by_width(on,
                             {sizes.docs, data<float>(docs->scores), data<float>(docs->magnitudes),
                              data<std::int32_t>(order), data<double>(m)},
                             data<CertaintyRule>(rule), data<std::uint64_t>(bits), nullptr, nullptr);
  }
  at::Tensor finish_in_libtorch(const at::Tensor& full) const {
    return libtorch::certain_by_width(full, docs->scores.select(0, 0), docs->magnitudes.select(0, 0),
                                      kRule);
  }

  /// The disagreement of M alone, in its lower triangle.
  double gram_disagreement(const at::Tensor& full) const {
    return disagreement_of(at::tril(m), at::tril(full));
  }
  /// The disagreement of M, or NaN if more than one bit in a thousand differs: single bits may depend on
  /// the last place.
  double disagreement(const at::Tensor& full) const {
    const at::Tensor certain = finish_in_libtorch(full).to(at::kCPU);
    const at::Tensor words = bits.to(at::kCPU);
    std::int64_t different = 0;
    for (std::int64_t a = 0; a < sizes.docs; ++a) {
      for (std::int64_t b = a + 1; b < sizes.docs; ++b) {
        const auto word = static_cast<std::uint64_t>(words[a][b / 64].item<std::int64_t>());
        different += ((word >> (b % 64) & 1U) != 0) != certain[a][b].item<bool>() ? 1 : 0;
      }
    }
    if (real(different) > 1e-3 * real(sizes.docs * sizes.docs)) return std::nan("");
    return gram_disagreement(full);
  }
  void require_sound() const {
    device::CovarianceStatus now;
    std::memcpy(&now, status.to(at::kCPU).data_ptr(), sizeof now);
    if (now.failed != 0) throw NumericError("The measured pairs give an indefinite covariance.");
  }
};

/// Widths from factors to bits, with a function that computes M.
template <class OfForm>
DeviceWork whole_widths(const std::shared_ptr<OfForm>& query, const std::function<void(Stream)>& gram) {
  const auto own = [=](Stream on) {
    gram(on);
    query->finish(on);
  };
  DeviceWork work = alone(own);
  work.libtorch = [=] { query->finish_in_libtorch(query->gram_in_libtorch()); };
  work.disagreement = [=](Stream on) {
    own(on);
    return query->disagreement(query->gram_in_libtorch());
  };
  work.tolerance = kGramTolerance;
  return work;
}

}  // namespace olrank
