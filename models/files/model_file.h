#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/normaliser.h"
#include "core/io/safetensors.h"
#include "core/online/online_ranker.h"
#include "core/ops/relu_network.h"
#include "models/skeleton/network_settings.h"

namespace olrank {

class ModelScorer;
class ModuleModel;
struct ExternalModel;

/// Whether a model file may bring code, that of a TorchScript module. LibTorch runs it with all rights of
/// its user, so that a file from somebody else can read and write others.
enum class ModelCode { kRefuse, kTrust };
inline ModelCode code_if(bool trusted) {
  return trusted ? ModelCode::kTrust : ModelCode::kRefuse;
}

/// The header of a file with more could not hold their names.
inline constexpr std::int64_t kMostModelFeatures = 10'000'000;
/// Throws InvalidArgument for data whose models no file could hold.
void require_model_features(std::int64_t features);

/// A model as its file describes it.
struct LoadedModel {
  NetworkSettings settings;                       // of a linear model, only `network` counts
  NetworkShape shape;                             // of modules but relu, only its sizes count
  std::shared_ptr<const ModuleModel> module;      // null for linear models and built-in networks
  std::shared_ptr<const ExternalModel> external;  // another program's, in place of all that is above
  std::vector<std::vector<float>> members;        // θ of each member of an ensemble; one θ otherwise
  std::shared_ptr<const ModelScorer> start;  // whose score of the same inputs is added, if there is one,
  float start_weight = 0.0F;                 // times this
  /// It scores the documents of a snapshot with what that remembers of them; null in other files.
  std::shared_ptr<const FrozenRanker> memory;
  bool names_by_content = false;           // its documents are known by their inputs, not by IDs
  FittedNormaliser normaliser;             // from raw features to the network's inputs, all terms included
  std::vector<std::string> feature_names;  // of the raw features; empty where the file has none
  ModelMetadata metadata;                  // of the whole file, normalisation included

  /// Also of an additive model, which is linear in its inputs.
  bool is_linear() const { return settings.network == NetworkForm::kLinear; }
  bool is_additive() const { return normaliser.cosines > 0; }
  /// Whether `shape` is all that is needed to compute scores.
  bool has_closed_form() const { return !module || settings.module == "relu"; }
};

/// Throws InvalidArgument for a model of another program or with the score of another model, which `use`
/// cannot hold.
void require_own_function(const LoadedModel& model, std::string_view use);

/// Reads a model.safetensors of a trial, the trees of LightGBM or XGBoost, ONNX where there is a
/// reader, or a snapshot. Throws DataError
/// for a damaged file and for an unknown architecture: every tensor must be present in its shape, and no
/// other; InvalidArgument for code where it is refused. Without a normalisation in the file, inputs are
/// used unchanged.
LoadedModel load_model(const std::filesystem::path& path, ModelCode code);
/// Reads the model from the bytes of such a file, which messages call `origin`.
LoadedModel parse_model(std::string_view bytes, const std::string& origin, ModelCode code);

/// Whether a file begins as the trees of LightGBM, in text, or of XGBoost, in JSON, do.
bool is_tree_file(std::string_view bytes);
/// Throws DataError, naming `origin`, for a file that is damaged or has trees of another kind.
ExternalModel read_trees(std::string_view bytes, const std::string& origin);

/// The tensors of the file; member n of an ensemble has the prefix members.n. in each name.
std::vector<ModelTensors::Tensor> tensors_of(const LoadedModel& model);

/// θ = (w, c₂, c₃, c₄, p) of f(x) = Σ_j w_j x_j + Σ_k Σ_j c_kj cos(kπx_j) + Σ_ij p_ij (2x_i − 1)(2x_j − 1),
/// x scaled to [0, 1] within its query, as the tensors of a model file. p has the pairs of `products`.
ModelTensors additive_tensors(std::span<const float> theta, std::span<const InputPair> products = {});

/// Adds the score of another model, whose file this is, times a weight.
void add_start(std::string_view file, float weight, ModelTensors& model);

/// Pairs as the text in a model file: [[i, j], …].
std::string pairs_text(std::span<const InputPair> pairs);

}  // namespace olrank
