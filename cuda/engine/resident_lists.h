#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/data/dataset.h"
#include "core/device/device_network.h"
#include "core/math/optimizer_step.h"
#include "cuda/engine/growing_array.h"
#include "cuda/ops/list_batch.h"
#include "cuda/ops/list_loss.h"
#include "cuda/ops/pair_training.h"
#include "cuda/runtime/device_array.h"
#include "cuda/runtime/products.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Documents in the memory of a device: one copy for everything there that uses the same matrix, from any
/// thread, until the last of its users is gone. The matrix is recognised by its address, so it has to
/// outlive them.
class SharedDocuments {
 public:
  /// The device has to be the calling thread's, here and in the destructor.
  SharedDocuments(int device, const FeatureMatrix& docs);
  ~SharedDocuments();
  SharedDocuments(const SharedDocuments&) = delete;
  SharedDocuments& operator=(const SharedDocuments&) = delete;

  const float* data() const;
  std::int64_t size() const;  // numbers

  struct Copy {
    DeviceArray<float> values;
    std::int64_t users = 0;
  };

 private:
  int device_;
  FeatureMatrix docs_;
  Copy* copy_ = nullptr;
};

/// Lists whose losses and gradients the device computes, batch by batch in one stream. Grades always stay
/// there. Documents do if they fit; else they come through two places, in a stream of their own.
class ResidentLists : public DeviceLists {
 public:
  explicit ResidentLists(const DeviceListsSpec& spec);
  ~ResidentLists() override;

  double losses(std::span<const float> theta, std::span<const std::int64_t> queries,
                std::span<double> gradient) override;
  double adam_pass(const AdamPass& pass, const AdamState& state) override;
  double score(std::span<const float> theta, std::span<float> scores) override;
  bool docs_stay() const override { return docs_.has_value(); }

 private:
  /// Queries that are computed at once.
  struct Batch {
    std::int64_t begin = 0;  // places within the queries asked for
    std::int64_t end = 0;
    std::int64_t docs = 0;

    std::int64_t queries() const { return end - begin; }
  };
  /// Where documents come in that do not stay.
  struct Place {
    PinnedBytes on_host;
    GrowingArray<float> on_device;
    Event arrived;
    Event used;
  };
  /// A batch on the device.
  struct Lists {
    PairHistoryView documents;
    GradedLists graded;
  };

  std::int64_t docs_of(std::int64_t query) const { return spec_.offsets[query + 1] - spec_.offsets[query]; }
  /// Adds the queries of these places to batches_, in blocks of at least kDocsPerBlock documents.
  void split(std::span<const std::int64_t> queries, std::int64_t begin, std::int64_t end);
  /// Takes the places of batches_ to the device and makes room for the largest.
  void plan(std::span<const std::int64_t> queries);
  Lists bring(const Batch& batch, std::span<const std::int64_t> queries);
  const float* bring_documents(const Batch& batch, std::span<const std::int64_t> queries);
  NetworkStack network() const;
  TrainingWorkspace workspace();
  /// Losses, and slopes by the scores.
  void find_slopes(const Lists& lists, const Batch& batch);
  void take_step(const AdamPass& pass, std::span<const Batch> batches, const StepRates* rates);
  double sum_of_losses(std::int64_t queries);

  DeviceListsSpec spec_;
  OwnedStream stream_;
  OwnedStream copy_stream_;
  ProductPlans plans_;
  Products products_;
  std::optional<SharedDocuments> docs_;
  std::vector<double> weights_;  // relative ones; empty without weights
  DeviceArray<std::uint8_t> grades_;
  DeviceArray<double> discounts_;  // of the longest list
  DeviceArray<float> theta_;       // [p], as the next five
  DeviceArray<double> gradient_;
  DeviceArray<double> sum_;
  DeviceArray<double> position_;
  DeviceArray<double> first_moment_;
  DeviceArray<double> second_moment_;
  DeviceArray<double> step_;
  GrowingArray<StepRates> rates_;  // of the steps of a pass

  // These belong to the queries asked for.
  std::vector<Batch> batches_;
  std::vector<std::int64_t> all_;
  GrowingArray<std::int64_t> first_docs_;
  GrowingArray<std::int64_t> ends_;  // within each batch
  GrowingArray<double> query_weights_;
  GrowingArray<double> losses_;

  GrowingArray<float> all_scores_;

  // These belong to a batch.
  GrowingArray<float> features_;
  GrowingArray<std::uint8_t> batch_grades_;
  GrowingArray<double> list_numbers_;
  GrowingArray<double> slopes_;
  GrowingArray<float> rows_;
  GrowingArray<float> scores_;
  GrowingArray<float> partial_;
  std::array<Place, 2> places_;
  std::size_t place_ = 0;  // that the next documents take
};

/// make_device_lists() calls this in a CUDA build; the tests make the emulated one.
std::unique_ptr<DeviceLists> make_lists(const DeviceListsSpec& spec);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
