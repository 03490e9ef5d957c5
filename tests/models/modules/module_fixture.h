#pragma once

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/types.h>

#include <Eigen/Dense>
#include <filesystem>
#include <string>
#include <vector>

#include "models/modules/module_model.h"
#include "models/modules/module_registry.h"
#include "tests/core/ops/network_fixture.h"

// Modules in tests, and what autograd says about them.
namespace olrank {

/// Features from 0 to 1.
inline std::vector<float> module_docs(std::int64_t docs, std::int64_t features, std::uint64_t seed) {
  RngStream draws(test_key(seed), 1);
  std::vector<float> values(docs * features);
  for (float& value : values) value = static_cast<float>(draws.uniform());
  return values;
}

/// Parameters near the first ones.
inline std::vector<float> moved_parameters(const ModuleModel& model, std::uint64_t seed) {
  std::vector<float> theta = model.first_parameters(test_key(seed));
  const std::vector<float> steps = random_numbers(std::ssize(theta), seed + 1, 0.1);
  for (std::size_t k = 0; k < theta.size(); ++k) theta[k] += steps[k];
  return theta;
}

inline constexpr const char* kTanhScript =
    "  h = torch.tanh(torch.matmul(docs, self.w.t()))\n"
    "  return torch.matmul(h, self.v) + self.constant.forward()\n";

/// A TorchScript file of a network with four hidden units and a module with a buffer inside it; `code` is
/// the body of its forward.
inline void write_script(const std::filesystem::path& path, std::int64_t inputs,
                         const std::string& code = kTanhScript, std::uint64_t seed = 1) {
  torch::jit::Module module("Scorer");
  module.register_parameter(
      "w", torch::tensor(random_numbers(4 * inputs, seed, 0.5)).reshape({4, inputs}).requires_grad_(),
      false);
  module.register_parameter("v", torch::tensor(random_numbers(4, seed + 1, 0.5)).requires_grad_(), false);
  torch::jit::Module constant("Constant");
  constant.register_buffer("shift", torch::tensor(0.25F));
  constant.define("def forward(self) -> Tensor:\n  return self.shift\n");
  module.register_module("constant", constant);
  module.define("def forward(self, docs: Tensor) -> Tensor:\n" + code);
  module.save(path.string());
}

/// Holds what a test's own module gives in double: scores, and a row of gradients for each document.
struct AutogradRows {
  Eigen::VectorXd scores;
  Eigen::MatrixXd rows;  // [V × p]
};

template <class Module>
AutogradRows autograd_rows(Module& module, const std::vector<float>& theta, const std::vector<float>& docs,
                           std::int64_t features) {
  module.to(torch::kDouble);
  std::int64_t place = 0;
  std::vector<torch::Tensor> parameters = module.parameters();
  {
    const torch::NoGradGuard no_gradient;
    for (torch::Tensor& parameter : parameters) {
      parameter.copy_(
          torch::from_blob(const_cast<float*>(theta.data()) + place, parameter.sizes(), torch::kFloat));
      place += parameter.numel();
    }
  }
  const std::int64_t count = std::ssize(docs) / features;
  const torch::Tensor inputs =
      torch::from_blob(const_cast<float*>(docs.data()), {count, features}, torch::kFloat)
          .to(torch::kDouble);
  AutogradRows found{Eigen::VectorXd(count), Eigen::MatrixXd(count, place)};
  for (std::int64_t doc = 0; doc < count; ++doc) {
    const torch::Tensor score = module.forward(inputs)[doc];
    found.scores(doc) = score.template item<double>();
    const auto gradients = torch::autograd::grad({score}, parameters);
    std::int64_t column = 0;
    for (const torch::Tensor& gradient : gradients) {
      const torch::Tensor flat = gradient.contiguous();
      for (std::int64_t k = 0; k < flat.numel(); ++k)
        found.rows(doc, column++) = flat.data_ptr<double>()[k];
    }
  }
  return found;
}

/// A module's factors, written out: [V × p].
inline Eigen::MatrixXd written_out(const ModuleModel& model, const std::vector<float>& factors) {
  return slow_gradients(model.tangent_shape(), view_of(model.tangent_shape(), factors));
}

inline double largest_difference(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  const double largest = (a - b).cwiseAbs().maxCoeff();
  return std::isfinite(largest) ? largest : 1e300;
}

}  // namespace olrank
