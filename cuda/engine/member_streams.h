#pragma once

#include <cstdint>
#include <vector>

#include "core/runtime/function_ref.h"
#include "cuda/runtime/products.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// A stream per member, with its products; a single member needs none.
class MemberStreams {
 public:
  MemberStreams(ProductPlans& plans, std::int64_t members)
      : streams_(members > 1 ? members : 0), joins_(streams_.size()) {
    products_.reserve(streams_.size());
    for (const OwnedStream& stream : streams_) products_.emplace_back(plans, stream.get());
  }

  /// Starts work(products in the member's stream, member) for all members side by side, after the earlier
  /// and before the later work of the stream of `all`.
  void run(Products& all, FunctionRef<void(Products& of_member, std::int64_t member)> work) {
    if (streams_.empty()) {
      work(all, 0);
      return;
    }
    fork_.record(all.stream());
    for (std::size_t member = 0; member < streams_.size(); ++member) {
      const Stream own = streams_[member].get();
      fork_.hold(own);
      work(products_[member], static_cast<std::int64_t>(member));
      joins_[member].record(own);
      joins_[member].hold(all.stream());
    }
  }

  std::int64_t bytes() const {
    return products_.empty() ? 0 : std::ssize(products_) * products_.front().bytes();
  }

 private:
  std::vector<OwnedStream> streams_;
  std::vector<Products> products_;
  std::vector<Event> joins_;
  Event fork_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
