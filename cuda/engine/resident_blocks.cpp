#include <algorithm>
#include <cmath>
#include <vector>

#include "core/covariance/block_probes.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/posterior_status.h"
#include "cuda/engine/resident_forms.h"
#include "cuda/ops/block_covariance.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

std::vector<double> directions_of(const BlockTable& blocks) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t index = 0; index < blocks.count(); ++index) sizes.push_back(blocks.block(index).size);
  return block_directions(sizes);
}

class ResidentBlocks : public ResidentPosterior {
 public:
  ResidentBlocks(const PosteriorSpec& spec, Stream stream)
      : ResidentPosterior(spec),
        blocks_(spec.shape, first_layer_of(spec.covariance, spec.shape)),
        roots_(blocks_.numbers),
        directions_(std::span<const double>(directions_of(blocks_))),
        products_(directions_.size()),
        energies_(kBlockProbes * blocks_.count()),
        found_(energies_.size()) {
    reset_block_roots(stream, blocks_, 1.0 / std::sqrt(spec.lambda), roots_.data());
    // A = λI.
    std::vector<double> products = directions_.to_host();
    for (double& value : products) value *= spec.lambda;
    copy_to_device(std::span<const double>(products), products_.data());
    const std::vector<double> energies(energies_.size(), spec.lambda);
    copy_to_device(std::span<const double>(energies), energies_.data());
  }

  void gram(Stream stream, const FactorRows& docs, double* m) override {
    find_rows(stream, docs);
    workspace_.reserve(stream, block_gram_workspace(blocks_, docs.docs));
    block_gram(stream, blocks_, docs, w_.data(), spec_.scale, workspace_.data(), m);
  }

  void observe(Stream stream, const FactorRows& docs, const double*, const PreferencePair* pairs,
               std::int64_t count) override {
    workspace_.reserve(stream, update_block_roots_workspace(blocks_, std::min(count, kMostPairsOfBlocks)));
    for (std::int64_t first = 0; first < count; first += kMostPairsOfBlocks) {
      if (first > 0) find_rows(stream, docs);  // the roots have changed
      update_block_roots(stream, blocks_, docs, w_.data(), pairs + first,
                         std::min(kMostPairsOfBlocks, count - first), spec_.scale, workspace_.data(),
                         roots_.data(), probes(), status_.get());
    }
    pairs_ += count;
  }

  const CovarianceStatus* status() const override { return status_.get(); }
  bool can_rebuild() const override { return false; }
  double own_drift(Stream stream) override {
    block_energies(stream, blocks_, roots_.data(), probes(), found_.data());
    OwnedStream::wait_for(stream);
    return worst_of_energies(found_.to_host(), energies_.to_host());
  }

  std::int64_t pairs() const override { return pairs_; }
  std::int64_t bytes() const override {
    const std::int64_t fixed =
        roots_.size() + directions_.size() + products_.size() + energies_.size() + found_.size();
    return fixed * static_cast<std::int64_t>(sizeof(double)) + w_.bytes() + workspace_.bytes();
  }

  void save(StateWriter& state) const override {
    state.put("device.block_pairs", pairs_);
    state.put("device.block_roots", roots_.to_host());
    state.put("device.block_products", products_.to_host());
    state.put("device.block_energies", energies_.to_host());
    status_.save(state);
  }
  void load(Stream stream, StateReader& state) override {
    pairs_ = state.get_one<std::int64_t>("device.block_pairs");
    OwnedStream::wait_for(stream);
    const auto load_into = [&](std::string_view name, DeviceArray<double>& to) {
      std::vector<double> numbers(to.size());
      state.get_into(name, std::span(numbers));
      copy_to_device(std::span<const double>(numbers), to.data());
    };
    load_into("device.block_roots", roots_);
    load_into("device.block_products", products_);
    load_into("device.block_energies", energies_);
    status_.load(state);
  }

 private:
  void find_rows(Stream stream, const FactorRows& docs) {
    w_.reserve(stream, docs.docs * blocks_.parameters);
    block_rows(stream, blocks_, docs, roots_.data(), w_.data());
  }

  BlockProbes probes() { return {kBlockProbes, directions_.data(), products_.data(), energies_.data()}; }

  BlockTable blocks_;
  DeviceArray<double> roots_;
  DeviceArray<double> directions_;  // of the probes: they are always the same
  DeviceArray<double> products_;
  DeviceArray<double> energies_;
  DeviceArray<double> found_;  // of a drift check
  GrowingArray<double> w_;     // rows S g of the latest gram()
  GrowingArray<double> workspace_;
  PosteriorStatus status_;
  std::int64_t pairs_ = 0;
};

}  // namespace

std::unique_ptr<ResidentPosterior> make_resident_blocks(const PosteriorSpec& spec, Stream stream) {
  return std::make_unique<ResidentBlocks>(spec, stream);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
