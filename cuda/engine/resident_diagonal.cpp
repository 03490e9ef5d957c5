#include "cuda/engine/growing_array.h"
#include "cuda/engine/posterior_status.h"
#include "cuda/engine/resident_posterior.h"
#include "cuda/ops/diagonal_covariance.h"
#include "cuda/ops/theory_alpha.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

/// The diagonal of A alone, which nothing can make drift.
class ResidentDiagonal : public ResidentPosterior {
 public:
  ResidentDiagonal(const PosteriorSpec& spec, Stream stream)
      : ResidentPosterior(spec), diagonal_(spec.shape.parameters()), root_(spec.shape.parameters()) {
    reset_diagonal(stream, spec.shape, spec.lambda, spec.scale, state());
  }

  void gram(Stream stream, const FactorRows& docs, double* m) override {
    workspace_.reserve(stream, diagonal_gram_workspace(spec_.shape, docs.docs));
    diagonal_gram(stream, spec_.shape, docs, root_.data(), workspace_.data(), m);
  }

  void observe(Stream stream, const FactorRows& docs, const double*, const PreferencePair* pairs,
               std::int64_t count) override {
    add_to_diagonal(stream, spec_.shape, docs, pairs, count, spec_.scale, state());
    diagonal_log_det(stream, spec_.shape.parameters(), diagonal_.data(), spec_.lambda,
                     &status_.get()->log_det);
    pairs_ += count;
  }

  const CovarianceStatus* status() const override { return status_.get(); }
  std::int64_t pairs() const override { return pairs_; }
  std::int64_t bytes() const override {
    return 2 * spec_.shape.parameters() * static_cast<std::int64_t>(sizeof(double)) + workspace_.bytes();
  }

  void save(StateWriter& saved) const override {
    saved.put("device.diagonal_pairs", pairs_);
    saved.put("device.diagonal", diagonal_.to_host());
    saved.put("device.diagonal_root", root_.to_host());
    status_.save(saved);
  }
  void load(Stream, StateReader& saved) override {
    pairs_ = saved.get_one<std::int64_t>("device.diagonal_pairs");
    load_array(saved, "device.diagonal", diagonal_);
    load_array(saved, "device.diagonal_root", root_);
    status_.load(saved);
  }

 private:
  DiagonalState state() { return {diagonal_.data(), root_.data()}; }

  DeviceArray<double> diagonal_;
  DeviceArray<double> root_;
  GrowingArray<double> workspace_;
  PosteriorStatus status_;
  std::int64_t pairs_ = 0;
};

/// Every width is 0.
class ResidentNothing : public ResidentPosterior {
 public:
  using ResidentPosterior::ResidentPosterior;

  void gram(Stream stream, const FactorRows& docs, double* m) override {
    clear_numbers(stream, m, docs.docs * docs.docs);
  }
  void observe(Stream, const FactorRows&, const double*, const PreferencePair*,
               std::int64_t count) override {
    pairs_ += count;
  }
  const CovarianceStatus* status() const override { return status_.get(); }
  std::int64_t pairs() const override { return pairs_; }
  std::int64_t bytes() const override { return 0; }
  void save(StateWriter& state) const override { state.put("device.none_pairs", pairs_); }
  void load(Stream, StateReader& state) override {
    pairs_ = state.get_one<std::int64_t>("device.none_pairs");
  }

 private:
  PosteriorStatus status_;
  std::int64_t pairs_ = 0;
};

}  // namespace

std::unique_ptr<ResidentPosterior> make_resident_without_pairs(const PosteriorSpec& spec, Stream stream) {
  if (spec.covariance == Covariance::kDiagonal) return std::make_unique<ResidentDiagonal>(spec, stream);
  return std::make_unique<ResidentNothing>(spec);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
