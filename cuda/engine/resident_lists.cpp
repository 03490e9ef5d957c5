#include "cuda/engine/device_network.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "core/data/query_weights.h"
#include "core/math/optimizer_step.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/resident_history.h"
#include "cuda/ops/list_loss.h"
#include "cuda/ops/pair_training.h"
#include "cuda/ops/query_inputs.h"
#include "cuda/ops/replay.h"
#include "cuda/runtime/products.h"
#include "cuda/runtime/profiled_range.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

/// Documents of a block, unless one query alone has more: enough for every multiprocessor.
constexpr std::int64_t kDocsPerBlock = 16'384;

const DeviceListsSpec& on_device_of(const DeviceListsSpec& spec) {
  use_device(spec.device);
  return spec;
}

/// Returns the discounts of the ranks of the longest list.
std::vector<double> discounts_for(const DeviceListsSpec& spec) {
  std::int64_t longest = 0;
  for (std::size_t query = 0; query + 1 < spec.offsets.size(); ++query)
    longest = std::max(longest, spec.offsets[query + 1] - spec.offsets[query]);
  return discounts_of(longest);
}

/// Lists whose losses and gradients the device computes, batch by batch in one stream. Grades always stay
/// there. Documents do if they fit; else they come through two places, in a stream of their own.
class ResidentLists : public DeviceLists {
 public:
  explicit ResidentLists(const DeviceListsSpec& spec)
      : spec_(on_device_of(spec)),
        products_(plans_, stream_.get()),
        weights_(relative_weights(*spec.docs)),
        grades_(spec.grades),
        discounts_(std::span<const double>(discounts_for(spec))),
        theta_(spec.shape.parameters()),
        gradient_(theta_.size()),
        sum_(theta_.size()),
        position_(theta_.size()),
        first_moment_(theta_.size()),
        second_moment_(theta_.size()),
        step_(1),
        all_(spec.offsets.size() - 1) {
    std::iota(all_.begin(), all_.end(), 0);
    if (spec.docs->all_rows().bytes() <= spec.bytes_for_docs)
      docs_.emplace(spec.device, spec.docs->all_features());
  }
  ~ResidentLists() override { wait_before_freeing(spec_.device, {&copy_stream_, &stream_}); }

  double losses(std::span<const float> theta, std::span<const std::int64_t> queries,
                std::span<double> gradient) override {
    const ProfiledRange range("train");
    use_device(spec_.device);
    copy_to_device(theta, theta_.data());
    batches_.clear();
    split(queries, 0, std::ssize(queries));
    plan(queries);
    const Stream stream = stream_.get();
    clear_numbers(stream, sum_.data(), sum_.size());
    for (const Batch& batch : batches_) {
      const Lists lists = bring(batch, queries);
      find_slopes(lists, batch);
      if (!gradient.empty()) {
        score_gradient(products_, network(), lists.documents, slopes_.data(), 1.0, workspace(),
                       gradient_.data());
        add_numbers(stream, sum_.size(), gradient_.data(), sum_.data());
      }
      if (!docs_) places_[1 - place_].used.record(stream);
    }
    const double sum = sum_of_losses(std::ssize(queries));
    copy_to_host(sum_.data(), gradient);
    return sum;
  }
  double adam_pass(const AdamPass& pass, const AdamState& state) override {
    const ProfiledRange range("train");
    use_device(spec_.device);
    copy_to_device(std::span<const float>(state.theta), theta_.data());
    copy_to_device(std::span<const double>(state.position), position_.data());
    copy_to_device(std::span<const double>(state.moments.first), first_moment_.data());
    copy_to_device(std::span<const double>(state.moments.second), second_moment_.data());
    copy_to_device(std::span<const double>(&pass.step, 1), step_.data());
    std::vector<StepRates> rates;
    std::vector<std::size_t> ends;  // among batches_, of each step
    batches_.clear();
    for (std::int64_t number = 0; number < pass.steps(); ++number) {
      const std::int64_t begin = number * pass.batch;
      split(pass.order, begin, begin + std::min(pass.batch, std::ssize(pass.order) - begin));
      ends.push_back(batches_.size());
      rates.push_back(step_rates(pass.steps_before + number + 1, pass.decay));
    }
    rates_.assign(stream_.get(), rates);
    plan(pass.order);
    std::size_t first = 0;
    for (std::size_t number = 0; number < ends.size(); ++number) {
      take_step(pass, std::span(batches_).subspan(first, ends[number] - first), rates_.data() + number);
      first = ends[number];
    }
    const double sum = sum_of_losses(std::ssize(pass.order));
    copy_to_host(theta_.data(), state.theta);
    copy_to_host(position_.data(), state.position);
    copy_to_host(first_moment_.data(), state.moments.first);
    copy_to_host(second_moment_.data(), state.moments.second);
    return sum;
  }
  double score(std::span<const float> theta, std::span<float> scores) override {
    const ProfiledRange range("eval");
    use_device(spec_.device);
    copy_to_device(theta, theta_.data());
    batches_.clear();
    split(all_, 0, std::ssize(all_));
    plan(all_);
    const Stream stream = stream_.get();
    all_scores_.reserve(stream, std::ssize(scores));
    std::int64_t first = 0;
    for (const Batch& batch : batches_) {
      Lists lists = bring(batch, all_);
      lists.graded.weights = nullptr;
      find_slopes(lists, batch);
      if (!docs_) places_[1 - place_].used.record(stream);
      copy_numbers(stream, all_scores_.data() + first, scores_.data(), batch.docs);
      first += batch.docs;
    }
    const double sum = sum_of_losses(std::ssize(all_));
    copy_to_host(all_scores_.data(), scores);
    return sum;
  }
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
  void split(std::span<const std::int64_t> queries, std::int64_t begin, std::int64_t end) {
    Batch batch{begin, begin, 0};
    for (std::int64_t place = begin; place < end; ++place) {
      batch.docs += docs_of(queries[place]);
      batch.end = place + 1;
      if (batch.docs < kDocsPerBlock) continue;
      batches_.push_back(batch);
      batch = {place + 1, place + 1, 0};
    }
    if (batch.begin < batch.end) batches_.push_back(batch);
  }
  /// Takes the places of batches_ to the device and makes room for the largest.
  void plan(std::span<const std::int64_t> queries) {
    std::vector<std::int64_t> first_docs;
    std::vector<std::int64_t> ends;
    std::vector<double> weights;
    std::int64_t most_docs = 0;
    for (const Batch& batch : batches_) {
      std::int64_t docs = 0;
      for (const std::int64_t query : queries.subspan(batch.begin, batch.queries())) {
        docs += docs_of(query);
        first_docs.push_back(spec_.offsets[query]);
        ends.push_back(docs);
        if (!weights_.empty()) weights.push_back(weights_[query]);
      }
      most_docs = std::max(most_docs, docs);
    }
    const Stream stream = stream_.get();
    first_docs_.assign(stream, first_docs);
    ends_.assign(stream, ends);
    if (!weights_.empty()) query_weights_.assign(stream, weights);
    losses_.reserve(stream, std::ssize(ends));
    const TrainingSizes sizes = training_sizes(spec_.shape, 1, most_docs, 0);
    if (docs_) features_.reserve(stream, most_docs * spec_.shape.inputs);
    batch_grades_.reserve(stream, most_docs);
    list_numbers_.reserve(stream, most_docs);
    slopes_.reserve(stream, most_docs);
    rows_.reserve(stream, sizes.rows);
    scores_.reserve(stream, sizes.scores);
    partial_.reserve(stream, most_partial_sums(spec_.shape, 1, most_docs));
    if (docs_) return;
    const std::int64_t numbers = most_docs * spec_.shape.inputs;
    for (Place& place : places_) {
      place.on_host.reserve(static_cast<std::size_t>(numbers) * sizeof(float));
      place.on_device.reserve(copy_stream_.get(), numbers);
    }
  }
  Lists bring(const Batch& batch, std::span<const std::int64_t> queries) {
    const std::int64_t first = queries[batch.begin];
    const std::int64_t* ends = ends_.data() + batch.begin;
    Lists lists;
    lists.documents.docs = batch.docs;
    lists.graded = {batch.queries(), batch.docs, ends, batch_grades_.data(), discounts_.data()};
    if (!weights_.empty()) lists.graded.weights = query_weights_.data() + batch.begin;
    bool adjacent = true;
    for (std::int64_t place = batch.begin; place < batch.end; ++place)
      adjacent = adjacent && queries[place] == first + place - batch.begin;
    if (docs_ && adjacent) {
      lists.documents.features = docs_->data() + spec_.offsets[first] * spec_.shape.inputs;
      lists.graded.grades = grades_.data() + spec_.offsets[first];
      return lists;
    }
    lists.documents.features = docs_ ? features_.data() : bring_documents(batch, queries);
    gather_lists(stream_.get(), {batch.queries(), first_docs_.data() + batch.begin, ends},
                 spec_.shape.inputs, docs_ ? docs_->data() : nullptr, grades_.data(), features_.data(),
                 batch_grades_.data());
    return lists;
  }
  const float* bring_documents(const Batch& batch, std::span<const std::int64_t> queries) {
    const ProfiledRange range("copy");
    const std::int64_t columns = spec_.shape.inputs;
    const auto bytes = static_cast<std::size_t>(batch.docs * columns) * sizeof(float);
    Place& place = places_[place_];
    place_ = 1 - place_;
    place.arrived.wait();  // what it held is on the device
    auto* to = reinterpret_cast<float*>(place.on_host.data());
    for (const std::int64_t query : queries.subspan(batch.begin, batch.queries())) {
      to = std::copy_n(spec_.docs->features_of(query).values, docs_of(query) * columns, to);
    }
    place.used.hold(copy_stream_.get());
    copy_bytes(copy_stream_.get(), place.on_device.data(), place.on_host.data(), bytes);
    place.arrived.record(copy_stream_.get());
    place.arrived.hold(stream_.get());
    return place.on_device.data();
  }
  NetworkStack network() const { return {spec_.shape, theta_.data()}; }
  TrainingWorkspace workspace() { return {rows_.data(), scores_.data(), partial_.data(), nullptr}; }
  /// Losses, and slopes by the scores.
  void find_slopes(const Lists& lists, const Batch& batch) {
    forward_history(products_, network(), lists.documents, workspace());
    list_losses(stream_.get(), spec_.form, lists.graded, scores_.data(), list_numbers_.data(),
                losses_.data() + batch.begin, slopes_.data());
  }
  /// A step of Adam on the mean loss of these batches' queries.
  void take_step(const AdamPass& pass, std::span<const Batch> batches, const StepRates* rates) {
    const Stream stream = stream_.get();
    const double share = 1.0 / static_cast<double>(batches.back().end - batches.front().begin);
    const bool is_one = batches.size() == 1;
    if (!is_one) clear_numbers(stream, sum_.data(), sum_.size());
    for (const Batch& batch : batches) {
      const Lists lists = bring(batch, pass.order);
      find_slopes(lists, batch);
      score_gradient(products_, network(), lists.documents, slopes_.data(), share, workspace(),
                     gradient_.data());
      if (!is_one) add_numbers(stream, sum_.size(), gradient_.data(), sum_.data());
      if (!docs_) places_[1 - place_].used.record(stream);
    }
    optimizer_step(stream, Step::kAdam, 1, theta_.size(), rates, is_one ? gradient_.data() : sum_.data(),
                   step_.data(), {position_.data(), first_moment_.data(), second_moment_.data()},
                   theta_.data());
  }
  double sum_of_losses(std::int64_t queries) {
    const std::vector<double> losses = losses_.to_host(stream_.get(), queries);
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  }

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

}  // namespace

std::unique_ptr<DeviceLists> make_lists(const DeviceListsSpec& spec) {
  return std::make_unique<ResidentLists>(spec);
}

namespace {

using Key = std::tuple<const float*, std::int64_t, std::int64_t>;  // address, documents, features

/// The copies on one device. A copy is freed under the lock, so that a new one is never made beside it.
struct DeviceCopies {
  std::mutex mutex;
  std::map<Key, SharedDocuments::Copy> of_matrix;
};

DeviceCopies& copies_on(int device) {
  static std::mutex mutex;
  static std::map<int, DeviceCopies> devices;
  const std::lock_guard lock(mutex);
  return devices[device];
}

Key key_of(const FeatureMatrix& docs) {
  return {docs.values, docs.docs, docs.features};
}

}  // namespace

SharedDocuments::SharedDocuments(int device, const FeatureMatrix& docs) : device_(device), docs_(docs) {
  DeviceCopies& copies = copies_on(device_);
  const std::lock_guard lock(copies.mutex);
  auto found = copies.of_matrix.find(key_of(docs_));
  if (found == copies.of_matrix.end()) {
    const std::span<const float> values(docs.values, static_cast<std::size_t>(docs.docs * docs.features));
    found = copies.of_matrix.emplace(key_of(docs_), Copy{DeviceArray<float>(values)}).first;
  }
  copy_ = &found->second;
  ++copy_->users;
}

SharedDocuments::~SharedDocuments() {
  DeviceCopies& copies = copies_on(device_);
  const std::lock_guard lock(copies.mutex);
  if (--copy_->users == 0) copies.of_matrix.erase(key_of(docs_));
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
