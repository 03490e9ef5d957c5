#include "models/modules/module_checks.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/generated/Functions.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace olrank {
namespace {

using torch::autograd::Node;
/// A counted pointer to a function, whose type is another one in newer versions of LibTorch.
using NodePointer = decltype(torch::autograd::Edge::function);

/// A function, and which of its operands.
using Operand = std::pair<NodePointer, std::uint32_t>;

/// Rows of numbers for the host, [docs × columns], filled where the scores are and brought down at once.
class HostRows {
 public:
  HostRows(const torch::Tensor& scores, std::int64_t columns, float* out)
      : out_(torch::from_blob(out, {scores.numel(), columns}, torch::kFloat)),
        rows_(scores.is_cpu() ? out_ : torch::empty({scores.numel(), columns}, on(scores))) {}

  const torch::Tensor& get() const { return rows_; }
  void bring() {
    if (!rows_.is_same(out_)) out_.copy_(rows_);
  }

 private:
  static torch::TensorOptions on(const torch::Tensor& scores) {
    return torch::dtype(torch::kFloat).device(scores.device());
  }

  torch::Tensor out_;
  torch::Tensor rows_;
};

}  // namespace

struct ModuleFactors::Use {
  Role role;
  NodePointer function;

  /// h: what the function saved of its other operands.
  torch::Tensor input() const;
};

torch::Tensor ModuleFactors::Use::input() const {
  using namespace torch::autograd::generated;
  switch (role) {
    case Role::kBias:
      return {};
    case Role::kGain: {
      const auto& norm = static_cast<const NativeLayerNormBackward0&>(*function);
      return (norm.input_.unpack().detach() - norm.result1_.unpack(function).detach()) *
             norm.result2_.unpack(function).detach();
    }
    case Role::kTable:
      return static_cast<const EmbeddingBackward0&>(*function).indices_.unpack();
    case Role::kTransposedMatrix:
    case Role::kMatrix:
      break;
  }
  if (const auto* addmm = dynamic_cast<const AddmmBackward0*>(function.get()))
    return addmm->mat1_.unpack().detach();
  return static_cast<const MmBackward0&>(*function).self_.unpack().detach();
}

std::optional<std::vector<ModuleFactors::Use>> ModuleFactors::find_uses(
    const torch::Tensor& scores, std::span<const torch::Tensor> parameters) {
  using namespace torch::autograd::generated;
  // Who uses what: all functions behind the scores, by the functions whose results they take.
  std::unordered_map<const Node*, std::vector<Operand>> users;
  std::unordered_set<const Node*> seen;
  std::vector<NodePointer> open = {scores.grad_fn()};
  while (!open.empty()) {
    const NodePointer function = std::move(open.back());
    open.pop_back();
    if (!function || !seen.insert(function.get()).second) continue;
    for (std::uint32_t operand = 0; operand < function->num_outputs(); ++operand) {
      const torch::autograd::Edge& edge = function->next_edge(operand);
      if (!edge.is_valid()) continue;
      users[edge.function.get()].emplace_back(function, operand);
      open.push_back(edge.function);
    }
  }
  const auto only_user = [&](const Node* node) -> Operand {
    const auto found = users.find(node);
    return found != users.end() && found->second.size() == 1 ? found->second.front() : Operand();
  };

  std::vector<Use> uses;
  for (const torch::Tensor& parameter : parameters) {
    const auto source = torch::autograd::impl::gradient_edge(parameter).function;
    Operand user = only_user(source.get());
    if (!user.first) return std::nullopt;
    const bool transposed = dynamic_cast<const TBackward0*>(user.first.get()) != nullptr;
    if (transposed) user = only_user(user.first.get());
    if (!user.first) return std::nullopt;
    const auto& [function, operand] = user;
    std::optional<Role> role;
    const Role matrix = transposed ? Role::kTransposedMatrix : Role::kMatrix;
    if (const auto* addmm = dynamic_cast<const AddmmBackward0*>(function.get())) {
      const bool plain = addmm->alpha.to<double>() == 1.0 && addmm->beta.to<double>() == 1.0;
      if (plain && operand == 2) role = matrix;
      if (plain && operand == 0 && !transposed && parameter.dim() == 1) role = Role::kBias;
    } else if (dynamic_cast<const MmBackward0*>(function.get()) != nullptr) {
      if (operand == 1) role = matrix;
    } else if (dynamic_cast<const NativeLayerNormBackward0*>(function.get()) != nullptr) {
      if (parameter.dim() == 1 && operand == 1) role = Role::kGain;
      if (parameter.dim() == 1 && operand == 2) role = Role::kBias;
    } else if (const auto* table = dynamic_cast<const EmbeddingBackward0*>(function.get())) {
      if (!table->scale_grad_by_freq && !table->sparse) role = Role::kTable;
    }
    if (!role) return std::nullopt;
    uses.push_back({*role, function});
  }
  return uses;
}

std::optional<ModuleFactors> ModuleFactors::find(const torch::Tensor& scores,
                                                 std::span<const torch::Tensor> parameters) {
  const auto uses = find_uses(scores, parameters);
  if (!uses) return std::nullopt;
  ModuleFactors found;
  std::vector<NetworkLayer> layers;
  std::int64_t place = 0;
  bool vectors = false;  // the last layer is one of vectors
  for (std::size_t k = 0; k < uses->size(); ++k) {
    const Use& use = (*uses)[k];
    const torch::Tensor& parameter = parameters[k];
    const std::int64_t size = parameter.numel();
    Part part{use.role};
    if (use.role == Role::kTransposedMatrix || use.role == Role::kMatrix) {
      // The gradient of x·M is the outer product x ⊗ δ, that of x·Mᵀ is δ ⊗ x.
      const torch::Tensor input = use.input();
      if (input.dim() != 2 || input.size(0) != scores.numel()) return std::nullopt;
      NetworkLayer layer;
      layer.rows = parameter.size(0);
      layer.columns = parameter.size(1);
      layer.weight = place;
      layers.push_back(layer);
      vectors = false;
    } else if (use.role == Role::kBias && k > 0 && use.function == (*uses)[k - 1].function &&
               (*uses)[k - 1].role == Role::kTransposedMatrix && size == layers.back().rows) {
      layers.back().bias = place;
      part.with_bias = true;
      vectors = false;
    } else {
      if (!vectors) {
        layers.push_back({});
        layers.back().rows = 1;
        layers.back().weight = place;
      }
      vectors = true;
      part.column = layers.back().columns;
      layers.back().columns += size;
    }
    part.layer = std::ssize(layers) - 1;
    found.parts_.push_back(part);
    place += size;
  }
  found.shape_ = TangentShape(std::move(layers));
  return found;
}

bool ModuleFactors::extract(const torch::Tensor& scores, std::span<const torch::Tensor> parameters,
                            float* factors) const {
  const auto uses = find_uses(scores, parameters);
  if (!uses) return false;
  std::vector<torch::Tensor> inputs;
  torch::autograd::edge_list outputs;
  std::vector<std::size_t> delta_of;  // places in `outputs`
  std::unordered_map<const Node*, std::size_t> known;
  for (std::size_t k = 0; k < uses->size(); ++k) {
    const Use& use = (*uses)[k];
    if (use.role != parts_[k].role) return false;
    inputs.push_back(use.input());
    const auto [found, fresh] = known.emplace(use.function.get(), outputs.size());
    if (fresh) outputs.emplace_back(use.function, 0);
    delta_of.push_back(found->second);
  }
  const auto deltas = torch::autograd::Engine::get_default_engine().execute(
      {torch::autograd::impl::gradient_edge(scores)}, {torch::ones_like(scores)}, /*keep_graph=*/false,
      /*create_graph=*/false, /*accumulate_grad=*/false, outputs);

  const torch::NoGradGuard no_gradient;
  const std::int64_t docs = scores.numel();
  HostRows host(scores, shape_.factors(), factors);
  const torch::Tensor& rows = host.get();
  for (std::size_t k = 0; k < uses->size(); ++k) {
    const Part& part = parts_[k];
    if (part.with_bias) continue;
    const NetworkLayer& layer = shape_.layers()[part.layer];
    const torch::Tensor& delta = deltas[delta_of[k]];
    torch::Tensor row_factor = rows.narrow(1, layer.delta, layer.rows);
    if (part.role == Role::kTransposedMatrix || part.role == Role::kMatrix) {
      const bool transposed = part.role == Role::kTransposedMatrix;
      torch::Tensor column_factor = rows.narrow(1, layer.input, layer.columns);
      if (inputs[k].dim() != 2 || inputs[k].size(0) != docs) return false;
      (transposed ? row_factor : column_factor).copy_(delta);
      (transposed ? column_factor : row_factor).copy_(inputs[k]);
      continue;
    }
    row_factor.fill_(1.0);
    const std::int64_t size = parameters[k].numel();
    torch::Tensor vector = rows.narrow(1, layer.input + part.column, size);
    if (delta.size(0) != docs) return false;
    if (part.role == Role::kTable) {
      // The rows of the table that a document looks up, each with its δ.
      const std::int64_t width = parameters[k].size(1);
      const torch::Tensor looked_up = inputs[k].reshape({docs, -1});
      torch::Tensor gradient = torch::zeros({docs, parameters[k].size(0), width}, delta.options());
      const torch::Tensor places = looked_up.unsqueeze(2).expand({docs, looked_up.size(1), width});
      gradient.scatter_add_(1, places, delta.reshape({docs, -1, width}));
      const std::int64_t padding =
          static_cast<const torch::autograd::generated::EmbeddingBackward0&>(*(*uses)[k].function)
              .padding_idx.guard_int(__FILE__, __LINE__);
      if (padding >= 0) gradient.select(1, padding).zero_();
      vector.copy_(gradient.reshape({docs, size}));
    } else if (part.role == Role::kGain) {
      vector.copy_(delta * inputs[k]);
    } else {
      vector.copy_(delta);
    }
  }
  host.bring();
  return true;
}

void find_gradient_rows(const torch::Tensor& scores, std::span<const torch::Tensor> parameters,
                        float* rows) {
  const std::vector<torch::Tensor> all(parameters.begin(), parameters.end());
  std::int64_t size = 0;
  for (const torch::Tensor& parameter : all) size += parameter.numel();
  const std::int64_t docs = scores.numel();
  HostRows host(scores, size + 1, rows);
  const torch::Tensor& filled = host.get();
  const torch::Tensor chosen = torch::eye(docs, scores.options().requires_grad(false));
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const auto gradients =
        torch::autograd::grad({scores}, all, {chosen[doc]}, /*retain_graph=*/doc + 1 < docs,
                              /*create_graph=*/false, /*allow_unused=*/true);
    const torch::NoGradGuard no_gradient;
    const torch::Tensor row = filled[doc];
    std::int64_t place = 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      torch::Tensor part = row.narrow(0, place, all[k].numel());
      place += all[k].numel();
      if (gradients[k].defined()) {
        part.copy_(gradients[k].reshape(-1));
      } else {
        part.zero_();
      }
    }
  }
  filled.select(1, size).fill_(1.0);
  host.bring();
}

std::vector<torch::Tensor> gradients_of(const torch::Tensor& scores,
                                        std::span<const torch::Tensor> parameters,
                                        const torch::Tensor& weights) {
  auto gradients = torch::autograd::grad(
      {scores}, std::vector<torch::Tensor>(parameters.begin(), parameters.end()), {weights});
  if (!scores.is_cpu()) {
    for (torch::Tensor& gradient : gradients) gradient = gradient.reshape(-1);
    return {torch::cat(gradients).cpu()};
  }
  for (torch::Tensor& gradient : gradients) gradient = gradient.contiguous();
  return gradients;
}

torch::Tensor multiply_by_gradients(const torch::Tensor& scores, std::span<const torch::Tensor> parameters,
                                    const torch::Tensor& v) {
  const std::vector<torch::Tensor> all(parameters.begin(), parameters.end());
  const torch::Tensor u = torch::ones_like(scores).requires_grad_(true);
  const auto sums = torch::autograd::grad({scores}, all, {u}, /*retain_graph=*/true, /*create_graph=*/true,
                                          /*allow_unused=*/true);
  std::vector<torch::Tensor> outputs;
  std::vector<torch::Tensor> weights;
  std::int64_t place = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const torch::Tensor part = v.narrow(0, place, all[k].numel()).view(all[k].sizes());
    place += all[k].numel();
    if (!sums[k].defined() || !sums[k].requires_grad()) continue;
    outputs.push_back(sums[k]);
    weights.push_back(part);
  }
  if (outputs.empty()) return torch::zeros_like(scores);
  return torch::autograd::grad(outputs, {u}, weights).front();
}

}  // namespace olrank
