#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "core/explore/certain_orders.h"
#include "core/ops/relu_network.h"

// The operations of the cuda folder in LibTorch calls, without kernels of our own: on the device of the
// tensors, without autograd. Rows are tangent factors, [docs × factors].
namespace olrank::libtorch {

struct Factors {
  at::Tensor rows;    // [members × docs × factors]
  at::Tensor scores;  // [members × docs]
};
Factors tangent_factors(const NetworkShape& shape, const at::Tensor& theta, const at::Tensor& features);

/// Σ_k root[k]² g_ik g_jk.
at::Tensor diagonal_gram(const NetworkShape& shape, const at::Tensor& rows, const at::Tensor& root);

/// scale · g(x_i)·g(x_j), and for pairs, rows 2s and 2s + 1, scale · g_s·g(x_j).
at::Tensor doc_kernel(const NetworkShape& shape, const at::Tensor& rows, double scale);
at::Tensor pair_doc_kernel(const NetworkShape& shape, const at::Tensor& pairs, const at::Tensor& docs,
                           double scale);

/// (K_VV − sᵀs)/λ.
at::Tensor dual_gram(const at::Tensor& kernel, const at::Tensor& s, double lambda);

/// w = G A⁻¹ and m = scale · w Gᵀ, where A⁻¹ = inverse − qᵀq.
struct InverseGram {
  at::Tensor w;
  at::Tensor m;
};
InverseGram inverse_gram(const NetworkShape& shape, const at::Tensor& rows, const at::Tensor& inverse,
                         const at::Tensor& q, double scale);

/// Certain orders by place, from a full M.
at::Tensor certain_by_width(const at::Tensor& m, const at::Tensor& scores, const at::Tensor& magnitudes,
                            const CertaintyRule& rule);

/// One step of gradient descent on the pair loss, for N networks side by side.
class TrainingStep {
 public:
  /// Documents of terms as 64-bit numbers; weights and labels in float32, centre [members × p].
  struct History {
    at::Tensor features;
    at::Tensor first;
    at::Tensor second;
    at::Tensor weights;
    at::Tensor labels;
    at::Tensor centre;
    double prior_weight = 0.0;
  };

  TrainingStep(const NetworkShape& shape, History history) : shape_(shape), history_(std::move(history)) {}

  /// [members × p].
  at::Tensor gradient(const at::Tensor& theta) const;
  void take(const at::Tensor& theta, double step) const { theta.add_(gradient(theta), -step); }

 private:
  NetworkShape shape_;
  History history_;
};

}  // namespace olrank::libtorch
