#pragma once

#include <ATen/Context.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"
#include "core/random/rng_stream.h"
#include "core/throw_error.h"
#include "models/modules/module_registry.h"
#include "models/skeleton/module_request.h"

namespace olrank {

/// Numbers of the host as tensors, which are only read.
template <class Number>
torch::Tensor on_host(std::span<const Number> values) {
  return torch::from_blob(const_cast<Number*>(values.data()), {std::ssize(values)},
                          c10::CppTypeToScalarType<Number>::value);
}
inline torch::Tensor on_host(FeatureMatrix docs) {
  return torch::from_blob(const_cast<float*>(docs.values), {docs.docs, docs.features}, torch::kFloat);
}

/// A module in one precision, on one device, whose parameters are a flat array. A call uses it alone.
class ModuleInstance {
 public:
  /// `precision` is kDouble or kFloat.
  ModuleInstance(ScoringModule module, torch::Dtype precision, torch::Device device = torch::kCPU)
      : module_(std::move(module)) {
    const torch::NoGradGuard no_gradient;
    std::int64_t size = 0;
    for (const ScoringModule::Parameter& parameter : module_.parameters) size += parameter.value.numel();
    flat_ = torch::empty({size}, torch::dtype(precision).device(device));
    std::int64_t place = 0;
    for (ScoringModule::Parameter& parameter : module_.parameters) {
      const torch::Tensor view =
          flat_.narrow(0, place, parameter.value.numel()).view(parameter.value.sizes());
      view.copy_(parameter.value);
      parameter.value.set_data(view);
      parameters_.push_back(parameter.value);
      place += parameter.value.numel();
    }
    for (auto& [name, buffer] : module_.buffers) {
      const torch::Tensor here =
          buffer.to(device, buffer.is_floating_point() ? precision : buffer.scalar_type());
      if (!here.is_same(buffer)) buffer.set_data(here);
    }
  }

  void set_parameters(std::span<const float> theta) {
    if (!flat_.is_cpu()) {
      flat_.copy_(on_host(theta));
    } else if (flat_.scalar_type() == torch::kDouble) {
      std::copy(theta.begin(), theta.end(), flat_.data_ptr<double>());
    } else {
      std::copy(theta.begin(), theta.end(), flat_.data_ptr<float>());
    }
  }

  /// Documents in the module's precision, on its device.
  torch::Tensor documents(FeatureMatrix docs) const { return here(on_host(docs)); }
  /// Numbers in the module's precision, on its device.
  torch::Tensor here(const torch::Tensor& values) const {
    return values.to(flat_.device()).to(flat_.scalar_type());  // fewer bytes on the way
  }
  torch::Tensor forward(const torch::Tensor& docs) { return module_.forward(docs); }

  std::span<const torch::Tensor> parameters() const { return parameters_; }
  const torch::Tensor& flat() const { return flat_; }
  const ScoringModule& module() const { return module_; }

 private:
  ScoringModule module_;
  torch::Tensor flat_;
  std::vector<torch::Tensor> parameters_;
};

/// Where the copies of a module compute: the CPU, or a GPU in a stream of the module's own, so that trials
/// on one GPU do not wait for each other.
class ModuleDevice {
 public:
  /// `gpu` as LibTorch numbers them. Throws NotBuiltWithCuda.
  explicit ModuleDevice(std::optional<int> gpu) {
    if (!gpu) return;
    if (!at::Context::hasCUDA()) throw NotBuiltWithCuda("A LibTorch module on a GPU");
    device_ = torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(*gpu));
    stream_ = c10::impl::VirtualGuardImpl(torch::kCUDA).getStreamFromGlobalPool(device_);
  }

  const torch::Device& get() const { return device_; }
  bool is_cpu() const { return device_.is_cpu(); }
  /// Where the calling thread starts its work while it has an OptionalStreamGuard of it; none on the CPU.
  const std::optional<c10::Stream>& stream() const { return stream_; }

 private:
  torch::Device device_{torch::kCPU};
  std::optional<c10::Stream> stream_;
};

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
  /// Finds them in float32; none unless they are part of kept ones.
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

/// The first sentence of what LibTorch says, without the trace of calls.
inline std::string reason_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  // The interpreter of TorchScript ends its trace of calls with the error itself.
  constexpr std::string_view kBeforeReason = "Error: ";
  const std::size_t last = text.rfind(kBeforeReason);
  if (last != std::string::npos) text.erase(0, last + kBeforeReason.size());
  text.erase(std::min(text.find('\n'), text.size()));
  while (text.ends_with('.') || text.ends_with(' ')) text.pop_back();
  return text;
}

/// body(), with what LibTorch throws as an Error of olrank.
template <class Body>
auto told(const ModuleRequest& request, std::int64_t docs, const Body& body) {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw_error<Error>("Module '{}' failed on {} documents: {}.", request.module, docs, reason_of(error));
  }
}

/// Where modules of a request come from: a registered factory, or a TorchScript file that is read once.
class ModuleSource {
 public:
  /// Throws InvalidArgument, with the names, for an unknown one, and for a file that is no module.
  explicit ModuleSource(const ModuleRequest& request);

  /// A module with parameters of its own. What it draws from LibTorch's generator follows from the seed.
  ScoringModule make(std::uint64_t seed) const;
  /// The code of a module from a file; empty for others.
  const std::string& code() const { return code_; }
  /// Returns what the file holds; null for others.
  const std::shared_ptr<const std::string>& file() const { return file_; }

 private:
  std::function<ScoringModule()> make_;
  std::string code_;
  std::shared_ptr<const std::string> file_;
};

/// A key as the seed of LibTorch's generator, and back.
inline std::uint64_t seed_of_key(PhiloxKey key) {
  return std::uint64_t{key.word[1]} << 32U | key.word[0];
}
inline PhiloxKey key_of_seed(std::uint64_t seed) {
  return {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)}};
}

}  // namespace olrank
