#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ops/tangent_factors.h"
#include "models/modules/module_instance.h"

namespace olrank {

/// Tangent factors of a module's scores, from one backward pass. LibTorch's modules have no hooks in C++,
/// but the graph of backward functions has all that hooks would see: each function there that has a
/// parameter for an operand keeps its input h, and the gradient that reaches it is δ, for all documents at
/// once. It also shows whether that is everything: each parameter must be an operand once, of a function
/// that is known here.
class ModuleFactors {
 public:
  /// How the gradient of each of these parameters falls into factors, in a graph made from documents
  /// [V × d]; nothing if one of them is used in another way.
  static std::optional<ModuleFactors> find(const torch::Tensor& scores,
                                           std::span<const torch::Tensor> parameters);

  const TangentShape& shape() const { return shape_; }
  /// The factors of each document, [V × shape().factors()]: what gradients of Σ scores consist of, where
  /// no score depends on other documents. The graph is used up. False for a graph of other functions.
  bool extract(const torch::Tensor& scores, std::span<const torch::Tensor> parameters,
               float* factors) const;

 private:
  /// A role tells what a parameter is to the function that uses it.
  enum class Role { kTransposedMatrix, kMatrix, kBias, kGain, kTable };
  struct Use;
  /// A parameter's factors: of an outer product, or a vector in the row of several.
  struct Part {
    Role role = Role::kMatrix;
    std::int64_t layer = 0;
    std::int64_t column = 0;  // of a vector: where in its layer
    bool with_bias = false;   // the parameter is the layer's bias and needs no numbers
  };

  static std::optional<std::vector<Use>> find_uses(const torch::Tensor& scores,
                                                   std::span<const torch::Tensor> parameters);

  TangentShape shape_;
  std::vector<Part> parts_;
};

/// The whole gradient of each score in turn, [V × (p + 1)], with the 1 that TangentShape::of_rows() has at
/// the end: one backward pass each.
void find_gradient_rows(const torch::Tensor& scores, std::span<const torch::Tensor> parameters,
                        float* rows);

/// Σ_i weights[i] ∇_θ f_i on the host, in parts that follow each other: by parameters, or from a device in
/// one piece.
std::vector<torch::Tensor> gradients_of(const torch::Tensor& scores,
                                        std::span<const torch::Tensor> parameters,
                                        const torch::Tensor& weights);

/// ∇_θ f_i · v for every score: the derivative by u of (Σ_i u_i ∇_θ f_i) · v, since that is linear in u.
torch::Tensor multiply_by_gradients(const torch::Tensor& scores, std::span<const torch::Tensor> parameters,
                                    const torch::Tensor& v);

/// Trying a module shows these.
struct ModuleFindings {
  struct Parameter {
    std::string name;
    std::vector<std::int64_t> shape;
  };
  std::vector<Parameter> parameters;
  bool reads_lists = false;
  std::optional<ModuleFactors> factors;  // nothing: gradients are whole rows
  TangentShape rows;
  bool products_by_gradients = false;  // multiply_by_gradients() works, and factors are whole rows

  const TangentShape& shape() const { return factors ? factors->shape() : rows; }
};

/// θ of a module as it is.
std::vector<float> flat_parameters(const ScoringModule& module);

/// Tries a module on documents drawn from a fixed seed, in double: alone, together and in another order, at
/// its own parameters and near them; then likewise on the device where it is to compute. Throws
/// InvalidArgument, with what to change, for one that cannot be a ranker.
ModuleFindings check_module(const ModuleSource& source, const ModuleRequest& request,
                            const torch::Device& device);

}  // namespace olrank
