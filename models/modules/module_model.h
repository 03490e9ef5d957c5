#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/skeleton/module_request.h"
#include "models/skeleton/width_shadow.h"

namespace olrank {

/// Where the metadata of model files has a TorchScript file, in base64.
inline constexpr std::string_view kTorchScriptKey = "torchscript";

/// Returns what a TorchScript file holds. Throws InvalidArgument for one that LibTorch cannot read or whose
/// forward does not take documents.
std::shared_ptr<const std::string> load_module_file(const std::string& path, ModuleState state);

/// A LibTorch module as a scoring function. θ holds its parameters one after the other, in the order in
/// which they were registered. Scores and factors are computed in double and rounded once; what trains, the
/// other products, in float32. Every function may run on several threads at once: each call uses a copy of
/// the module alone.
class ModuleModel : public TangentModel {
 public:
  /// Tries the module on documents drawn from a fixed seed. Throws InvalidArgument, with what to change,
  /// for one that cannot be a ranker. It computes on the GPU with this number in LibTorch, if there is one;
  /// θ, documents and results are the host's all the same.
  explicit ModuleModel(const ModuleRequest& request, std::optional<int> gpu = std::nullopt);
  ~ModuleModel() override;

  /// Each list then is a pass of its own, for itself.
  bool reads_lists() const override;
  /// "hooks": factors of every layer, from one backward pass. "rows": whole gradients, a pass for each
  /// document.
  std::string_view factors_by() const;
  /// Covers the names and shapes of the parameters and the code of a file, as hex.
  const std::string& fingerprint() const;

  std::int64_t features() const override;
  std::int64_t parameters() const override;
  double largest_parameter() const override;
  void score(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
             std::span<float> scores) const override;
  ModelTensors tensors(std::span<const float> theta) const override;

  /// score() without its last rounding, on the calling thread.
  void score_precisely(std::span<const float> theta, FeatureMatrix docs, std::span<double> scores) const;

  const TangentShape& tangent_shape() const override;
  std::shared_ptr<const void> keep_docs(FeatureMatrix docs) const override;
  /// Returns what the module is made with, from LibTorch's generator seeded by the key; `relu` draws as the
  /// closed form does, and a file brings its own.
  std::vector<float> first_parameters(PhiloxKey key) const override;
  void score_with_magnitudes(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                             std::span<float> scores, std::span<float> magnitudes) const override;
  void find_factors(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                    std::span<float> factors, std::span<float> scores,
                    std::span<float> magnitudes) const override;
  void multiply_gradients(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                          std::span<const double> v, std::span<double> products) const override;
  void add_gradient_of_scores(
      ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
      FunctionRef<void(std::span<const float> scores, std::span<double> weights)> weigh,
      std::span<double> gradient) const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

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
