#pragma once

#include <memory>
#include <span>

#include "core/device/device_posterior.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/watched_posterior.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// A covariance of documents whose factors the host uploads: one stream, and one wait per round, when M
/// comes down.
class UploadedPosterior : public DevicePosterior {
 public:
  UploadedPosterior(int device, const PosteriorSpec& spec);
  ~UploadedPosterior() override;

  void gram(TangentFactors docs, std::span<double> m) override;
  void repair() override;
  void trust() override { posterior_.trust(); }
  void observe(TangentFactors docs, std::span<const PreferencePair> pairs) override;
  void switch_to_primal() override;

  std::int64_t pairs() const override { return pairs_; }
  double log_det() override;
  double drift() override;
  const PosteriorSpec& spec() const override { return posterior_.spec(); }
  std::int64_t bytes() const override;
  bool grows_in_place() const override;

  void save(StateWriter& state) override;
  void load(StateReader& state) override;

 private:
  /// Pinned memory on its way to the device, which may be written again after the next wait.
  struct Upload {
    PinnedBytes bytes;
    bool started = false;
  };

  FactorRows rows() { return {rows_.data(), docs_, shape_.factors()}; }
  bool is_latest(TangentFactors docs) const;
  void send(Upload& upload, const void* from, std::size_t bytes, void* to);
  /// Starts the upload of the factors, unless they are those of the latest gram, and computes M on the
  /// device.
  void start_gram(TangentFactors docs);
  /// M is not that of the covariance any more.
  void forget_gram() { has_gram_ = false; }
  void wait();

  TangentShape shape_;
  int device_;
  OwnedStream stream_;
  ProductPlans plans_;
  Products products_;  // in stream_
  WatchedPosterior posterior_;
  std::int64_t docs_ = 0;  // of rows_
  GrowingArray<float> rows_;
  GrowingArray<double> m_;
  GrowingArray<PreferencePair> new_pairs_;
  Upload factors_;
  Upload sent_pairs_;
  PinnedBytes answer_;  // the status, then M
  std::int64_t pairs_ = 0;
  double log_det_ = 0.0;
  bool knows_log_det_ = true;
  bool has_gram_ = false;  // m_ is M of rows_ under the covariance as it is
};

/// What make_device_posterior() makes in a CUDA build; the tests make the emulated one.
std::unique_ptr<DevicePosterior> make_posterior(int device, const PosteriorSpec& spec);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
