#include "models/posterior/block_posterior.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/covariance/block_probes.h"
#include "core/error.h"
#include "core/online/numeric_errors.h"
#include "core/ops/blas.h"
#include "core/text/byte_size.h"
#include "models/posterior/gradient_length.h"
#include "models/posterior/observed_pairs.h"
#include "models/posterior/posterior_memory.h"

namespace olrank {
namespace {

/// Calls body(place in θ relative to the first block's layer, place in block order, length) for the runs of
/// a block's parameters: its weights and its bias.
template <class Body>
void for_runs(const UnitBlock& block, std::int64_t begin, const Body& body) {
  const NetworkLayer& layer = block.layer;
  body(layer.weight + block.unit * layer.columns - begin, block.first, layer.columns);
  if (layer.has_bias()) body(layer.bias + block.unit - begin, block.first + layer.columns, std::int64_t{1});
}

}  // namespace

BlockPosterior::BlockPosterior(const PosteriorSpec& spec)
    : Posterior(spec), blocks_(blocks_of(spec.shape, spec.covariance)) {
  const auto available = static_cast<double>(spec_.memory);
  const double needed = block_bytes({spec.shape}, spec.covariance);
  if (needed > available) {
    throw InvalidArgument(fmt::format(
        "The {} covariance of {} parameters needs {} of memory, and {} may be used: choose the {} or a "
        "smaller network.",
        spec.name(), blocks_.parameters(), readable_bytes(needed), readable_bytes(available),
        spec.covariance == Covariance::kUnitBlocks ? "last-layer or the diagonal covariance"
                                                   : "diagonal covariance"));
  }
  std::vector<std::int64_t> sizes;
  for (std::int64_t index = 0; index < blocks_.count(); ++index) sizes.push_back(blocks_.block(index).size);
  directions_ = std::make_shared<const std::vector<double>>(block_directions(sizes));
  roots_ = std::make_shared<Matrix>(blocks_.root_size());
  products_ = *directions_;
  for (double& value : products_) value *= spec.lambda;
  energies_.assign(kBlockProbes * blocks_.count(), spec.lambda);
  double* roots = roots_->data();
  for (std::int64_t index = 0; index < blocks_.count(); ++index) {
    const UnitBlock block = blocks_.block(index);
    for (std::int64_t k = 0; k < block.size; ++k)
      roots[block.offset + k * (block.size + 1)] = 1.0 / std::sqrt(spec.lambda);
  }
}

std::shared_ptr<const Posterior> BlockPosterior::freeze() const {
  shared_ = true;
  return std::make_shared<BlockPosterior>(*this);
}

double* BlockPosterior::writable() {
  if (shared_) roots_ = std::make_shared<Matrix>(*roots_);
  shared_ = false;
  return roots_->data();
}

WidthHealth BlockPosterior::widths(ExecutionContext& context, TangentFactors docs,
                                   std::span<double> width_sq) const {
  assert(std::ssize(width_sq) == docs.docs * docs.docs);
  block_width_sq(context, blocks_, docs, spec_.scale, roots_->data(), width_sq.data());
  WidthHealth health;
  for (double& value : width_sq) {
    if (std::isfinite(value)) continue;
    ++health.lost;
    value = 0.0;
  }
  return health;
}

void BlockPosterior::width_sq(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq) {
  if (widths(context, docs, width_sq).lost > 0) throw_lost_widths(spec_.name());
}

void BlockPosterior::observe(ExecutionContext& context, TangentFactors docs,
                             std::span<const PreferencePair> pairs) {
  if (pairs.empty()) return;
  require_information(spec_.shape, spec_.lambda, spec_.scale, docs, pairs);
  ObservedPairs added(spec_.shape);
  added.append(docs, pairs);
  log_det_ += update_block_roots(context, blocks_, added.all(), spec_.scale, writable());
  add_to_probes(added.all());
  pairs_ += added.pairs();
  const bool checks = monitor_.will_be_due(added.pairs(), pairs_);
  monitor_.add(added.pairs(), pairs_);
  if (checks) monitor_.warn(name(), measured_drift(context));
}

void BlockPosterior::add_to_probes(TangentFactors added) {
  const std::int64_t parameters = blocks_.parameters();
  const std::int64_t begin = spec_.shape.parameters() - parameters;
  std::vector<double> gradient(parameters);
  for (std::int64_t pair = 0; pair < added.docs / 2; ++pair) {
    expand_pairs(spec_.shape, {added.row(spec_.shape, 2 * pair), 2}, 1.0, begin, begin + parameters,
                 gradient.data(), parameters);
    for (std::int64_t probe = 0; probe < kBlockProbes; ++probe) {
      const double* direction = directions_->data() + probe * parameters;
      double* product = products_.data() + probe * parameters;
      double* energies = energies_.data() + probe * blocks_.count();
      for (std::int64_t index = 0; index < blocks_.count(); ++index) {
        const UnitBlock block = blocks_.block(index);
        double along = 0.0;
        for_runs(block, begin, [&](std::int64_t from, std::int64_t to, std::int64_t length) {
          for (std::int64_t c = 0; c < length; ++c) along += gradient[from + c] * direction[to + c];
        });
        if (along == 0.0) continue;
        energies[index] += spec_.scale * along * along;
        for_runs(block, begin, [&](std::int64_t from, std::int64_t to, std::int64_t length) {
          for (std::int64_t c = 0; c < length; ++c)
            product[to + c] += spec_.scale * along * gradient[from + c];
        });
      }
    }
  }
}

double BlockPosterior::measured_drift(ExecutionContext& context) const {
  const std::int64_t count = blocks_.count();
  std::vector<double> found(energies_.size());
  context.for_blocks(count, 1, [&](std::int64_t index, std::int64_t, int) {
    const UnitBlock block = blocks_.block(index);
    std::vector<double> half(block.size);
    for (std::int64_t probe = 0; probe < kBlockProbes; ++probe) {
      blas::gemv(blas::Transpose::kNo, block.size, block.size, 1.0, roots_->data() + block.offset,
                 block.size, products_.data() + probe * blocks_.parameters() + block.first, 0.0,
                 half.data());
      found[probe * count + index] = std::inner_product(half.begin(), half.end(), half.begin(), 0.0);
    }
  });
  return worst_of_energies(found, energies_);
}

std::int64_t BlockPosterior::bytes() const {
  return static_cast<std::int64_t>((roots_->size() + 2 * products_.size() + energies_.size()) *
                                   sizeof(double));
}

void BlockPosterior::save(StateWriter& state) const {
  state.put("blocks_pairs", pairs_);
  state.put("blocks_log_det", log_det_);
  state.put("blocks_unchecked", monitor_.unchecked());
  state.put("blocks_roots", std::span<const double>(*roots_));
  state.put("blocks_products", products_);
  state.put("blocks_energies", energies_);
}

void BlockPosterior::load(StateReader& state) {
  pairs_ = state.get_one<std::int64_t>("blocks_pairs");
  log_det_ = state.get_one<double>("blocks_log_det");
  monitor_.set_unchecked(state.get_one<std::int64_t>("blocks_unchecked"));
  state.get_into("blocks_roots", std::span<double>(writable(), roots_->size()));
  state.get_into("blocks_products", std::span(products_));
  state.get_into("blocks_energies", std::span(energies_));
}

}  // namespace olrank
