#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "models/skeleton/module_request.h"
#include "models/skeleton/width_shadow.h"

namespace olrank {

/// Where the metadata of model files has a TorchScript file, in base64.
inline constexpr std::string_view kTorchScriptKey = "torchscript";

/// Returns what a TorchScript file holds. Throws InvalidArgument for one that LibTorch cannot read or whose
/// forward does not take documents.
std::shared_ptr<const std::string> load_module_file(const std::string& path);

/// A LibTorch module as a scoring function. θ holds its parameters one after the other, in the order in
/// which they were registered; the first ones are what the module is made with, from LibTorch's generator
/// seeded by the key. `relu` draws as the closed form does, and a file brings its own. Scores and factors
/// are computed in double and rounded once; what trains, the other products, in float32. Every function may
/// run on several threads at once: each call uses a copy of the module alone.
class ModuleModel : public TangentModel {
 public:
  /// "hooks": factors of every layer, from one backward pass. "rows": whole gradients, a pass for each
  /// document.
  virtual std::string_view factors_by() const = 0;
  /// Covers the names and shapes of the parameters and the code of a file, as hex.
  virtual const std::string& fingerprint() const = 0;
  /// score() without its last rounding, on the calling thread.
  virtual void score_precisely(std::span<const float> theta, FeatureMatrix docs,
                               std::span<double> scores) const = 0;
};

/// Tries the module on documents drawn from a fixed seed. Throws InvalidArgument, with what to change, for
/// one that cannot be a ranker. It computes on the GPU with this number in LibTorch, if there is one; θ,
/// documents and results are the host's all the same. Each list is a pass of its own, for itself, if the
/// module reads lists.
std::unique_ptr<ModuleModel> open_module(const ModuleRequest& request,
                                         std::optional<int> gpu = std::nullopt);

/// The version and capabilities of the LibTorch in use.
struct LibtorchDescription {
  std::string version;
  bool cuda = false;           // whether its CUDA part is loaded, even without a GPU
  std::string cpu_capability;  // the vector instructions that its kernels use
};

LibtorchDescription describe_libtorch();

/// Limits LibTorch to the calling thread, because olrank does its own threading. Each thread that uses
/// LibTorch calls this once.
void use_one_libtorch_thread();

}  // namespace olrank
