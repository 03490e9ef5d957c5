// The whole of olrank with one more module: documents whose first feature is a category, such as a product
// group.
//   own_module run --data synth:small --ranker olranknet --network module --module product --out
//   runs/product
#include <olrank/module.h>
#include <olrank/program.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <memory>

namespace {

constexpr std::int64_t kGroups = 10;
constexpr std::int64_t kGroupNumbers = 4;

/// Scores of documents [V × d]: the group of x[0] ∈ [0, 1] as numbers that are learned, next to the other
/// features.
class ProductRanker : public torch::nn::Module {
 public:
  explicit ProductRanker(const olrank::ModuleRequest& request) {
    group_ = register_module("group", torch::nn::Embedding(kGroups, kGroupNumbers));
    hidden_ =
        register_module("hidden", torch::nn::Linear(request.features - 1 + kGroupNumbers, request.width));
    norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({request.width})));
    output_ = register_module("output", torch::nn::Linear(request.width, 1));
  }

  torch::Tensor forward(const torch::Tensor& docs) {
    const torch::Tensor group = (docs.select(1, 0) * kGroups).to(torch::kLong).clamp(0, kGroups - 1);
    const torch::Tensor rest = docs.narrow(1, 1, docs.size(1) - 1);
    const torch::Tensor units = torch::gelu(norm_(hidden_(torch::cat({group_(group), rest}, 1))));
    return output_(units).squeeze(1);
  }

 private:
  torch::nn::Embedding group_{nullptr};
  torch::nn::Linear hidden_{nullptr}, output_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
};

OLRANK_REGISTER_MODULE("product", [](const olrank::ModuleRequest& request) {
  return std::make_shared<ProductRanker>(request);
});

}  // namespace

int main(int argc, char** argv) {
  return olrank::run_program(argc, argv);
}
