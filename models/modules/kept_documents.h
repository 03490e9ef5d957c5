#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "models/modules/module_device.h"
#include "models/modules/module_instance.h"

namespace olrank {

/// Documents that stay where a module computes while a training goes over them again and again: they go
/// there once, not with every pass.
class KeptDocuments {
 public:
  explicit KeptDocuments(const ModuleDevice& device) : device_(device) {}

  /// Until the result is destroyed, which must be before this object is, these documents do not change.
  std::shared_ptr<const void> keep(FeatureMatrix docs) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(kept_, [](const std::weak_ptr<const Kept>& one) { return one.expired(); });
    for (const std::weak_ptr<const Kept>& one : kept_) {
      std::shared_ptr<const Kept> kept = one.lock();
      if (kept && kept->docs.values == docs.values && kept->docs.docs == docs.docs) return kept;
    }
    const c10::OptionalStreamGuard in_stream(device_.stream());
    auto kept = std::make_shared<const Kept>(Kept{docs, on_host(docs).to(device_.get())});
    kept_.push_back(kept);
    return kept;
  }
  /// In float32; none unless they are part of kept ones.
  std::optional<torch::Tensor> find(FeatureMatrix docs) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::weak_ptr<const Kept>& one : kept_) {
      const std::shared_ptr<const Kept> kept = one.lock();
      if (!kept || kept->docs.features != docs.features) continue;
      const float* begin = kept->docs.values;
      const float* end = begin + kept->docs.docs * docs.features;
      const std::less_equal<const float*> before;
      if (!before(begin, docs.values) || !before(docs.values + docs.docs * docs.features, end)) continue;
      if ((docs.values - begin) % docs.features != 0) continue;
      return kept->there.narrow(0, (docs.values - begin) / docs.features, docs.docs);
    }
    return std::nullopt;
  }

 private:
  struct Kept {
    FeatureMatrix docs;
    torch::Tensor there;
  };

  const ModuleDevice& device_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<const Kept>> kept_;
};

}  // namespace olrank
