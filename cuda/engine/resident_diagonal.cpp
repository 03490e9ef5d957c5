#include <vector>

#include "cuda/engine/growing_array.h"
#include "cuda/engine/posterior_status.h"
#include "cuda/engine/resident_forms.h"
#include "cuda/ops/diagonal_covariance.h"
#include "cuda/ops/theory_alpha.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

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
    std::vector<double> numbers(spec_.shape.parameters());
    saved.get_into("device.diagonal", std::span(numbers));
    copy_to_device(std::span<const double>(numbers), diagonal_.data());
    saved.get_into("device.diagonal_root", std::span(numbers));
    copy_to_device(std::span<const double>(numbers), root_.data());
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

}  // namespace

std::unique_ptr<ResidentPosterior> make_resident_diagonal(const PosteriorSpec& spec, Stream stream) {
  return std::make_unique<ResidentDiagonal>(spec, stream);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
