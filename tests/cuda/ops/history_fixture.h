#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/random/rng_stream.h"
#include "cuda/ops/pair_training.h"
#include "tests/cuda/ops/kernel_test.h"

namespace olrank {

/// Terms with labels outside [0, weight] too, as noise makes them; the first document is in many.
inline std::vector<PairTerm> random_terms(std::int64_t docs, std::int64_t count, std::uint64_t seed) {
  std::vector<PairTerm> terms;
  RngStream draws(test_key(seed), 2);
  for (std::int64_t t = 0; t < count; ++t) {
    const auto n = static_cast<std::uint32_t>(docs);
    const auto first = t % 3 == 0 ? 0 : static_cast<std::int32_t>(draws.index(n));
    const auto second =
        static_cast<std::int32_t>((static_cast<std::uint32_t>(first) + 1 + draws.index(n - 1)) % n);
    terms.push_back({first, second, 1.0 + draws.index(5), 3.0 * draws.normal()});
  }
  return terms;
}

/// A history of random documents, on the host and on the device.
struct TestHistory {
  std::int64_t docs;
  std::vector<float> features;
  std::vector<PairTerm> terms;
  DeviceArray<float> features_there;
  DeviceArray<PairTerm> terms_there;
  DeviceArray<std::int32_t> offsets;
  DeviceArray<std::int32_t> ends;

  TestHistory(const NetworkShape& shape, std::int64_t doc_count, std::vector<PairTerm> all)
      : docs(doc_count),
        features(random_numbers(docs * shape.inputs, 63)),
        terms(std::move(all)),
        features_there(on_device(features)),
        terms_there(on_device(terms)),
        offsets(docs + 1),
        ends(unset_on_device<std::int32_t>(2 * count())) {
    DeviceArray<std::int32_t> workspace(device::incidence_workspace(docs, count()));
    device::find_incidence(nullptr, terms_there.data(), count(), docs, workspace.data(),
                           {offsets.data(), ends.data()});
    offsets.to_host();  // waits: the workspace goes
  }
  std::int64_t count() const { return std::ssize(terms); }
  device::PairHistoryView view() {
    return {features_there.data(), docs, terms_there.data(), count(), {offsets.data(), ends.data()}};
  }
};

}  // namespace olrank
