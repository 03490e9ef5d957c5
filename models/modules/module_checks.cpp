#include "models/modules/module_checks.h"

#include <ATen/record_function.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>

#include "core/random/rng_stream.h"
#include "core/throw_error.h"
#include "models/modules/random_operators.h"
#include "models/modules/script_archive.h"

namespace olrank {
namespace {

/// A sentence about what is wrong with the module, and what to do.
template <class... Args>
[[noreturn]] void refuse_module(const ModuleRequest& request, fmt::format_string<Args...> wrong,
                                Args&&... args) {
  throw_error<InvalidArgument>("module: '{}' {}", request.module,
                               fmt::format(wrong, std::forward<Args>(args)...));
}

/// Sees what a module does beyond its scores, on the thread that calls it, while this object exists.
class WatchedModule {
 public:
  explicit WatchedModule(const ScoringModule& module) : module_(module) {
    for (const auto& [name, buffer] : module.buffers) buffers_.push_back(buffer.clone());
    drawn_here().clear();
    watching_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(note).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  ~WatchedModule() { at::removeCallback(watching_); }
  WatchedModule(const WatchedModule&) = delete;
  WatchedModule& operator=(const WatchedModule&) = delete;

  /// The first random operator that ran; empty if none did.
  static const std::string& drawn() { return drawn_here(); }
  /// A buffer with other values than before; empty if there is none.
  std::string changed_buffer() const {
    for (std::size_t k = 0; k < buffers_.size(); ++k) {
      const auto& [name, buffer] = module_.buffers[k];
      if (!buffer.equal(buffers_[k])) return name;
    }
    return "";
  }

 private:
  static std::string& drawn_here() {
    thread_local std::string name;
    return name;
  }
  static std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& call) {
    const auto name = call.operator_name();
    if (!name || !drawn_here().empty()) return nullptr;
    // The inputs of an interpreter are its whole stack, of which the arguments come last.
    const std::size_t count = std::min(call.num_inputs(), call.inputs().size());
    const bool draws = draws_random_numbers(*name, [&](std::size_t k) -> std::optional<c10::IValue> {
      if (k < count) return call.inputs()[call.inputs().size() - count + k];
      return std::nullopt;
    });
    if (draws) drawn_here() = name->name;
    return nullptr;
  }

  const ScoringModule& module_;
  std::vector<torch::Tensor> buffers_;
  at::CallbackHandle watching_ = 0;
};

/// Tries one module on a device.
class ModuleCheck {
 public:
  ModuleCheck(const ModuleSource& source, const ModuleRequest& request, const torch::Device& device)
      : source_(source), request_(request), device_(device), docs_(tried_docs(request.features)) {}

  ModuleFindings run() {
    const torch::AutoGradMode with_gradient(true);
    ModuleFindings found;
    ScoringModule module;
    try {
      module = source_.make(0);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      refuse("cannot be made: {}.", reason_of(error));
    }
    check_parameters(module, found);
    const std::vector<float> theta = flat_parameters(module);
    ModuleInstance instance(std::move(module), torch::kDouble, device_);
    instance.set_parameters(theta);
    const WatchedModule watched(instance.module());
    const torch::Tensor first = scores(instance, docs()).detach().clone();
    const bool repeats = torch::equal(first, scores(instance, docs()));
    check_side_effects(instance, watched);
    if (!repeats) {
      refuse(
          "gives other scores when it is called again: call eval() before you save it, and let forward "
          "draw nothing and keep nothing.");
    }
    check_gradients(instance, found);
    found.reads_lists = reads_lists(instance);

    instance.set_parameters(near_theta(instance.module(), theta));
    found.reads_lists = reads_lists(instance) || found.reads_lists;
    const auto parameters = std::ssize(theta);
    const std::vector<float> whole = rows(instance, parameters);
    found.rows = TangentShape::of_rows(parameters);
    if (!found.reads_lists) {
      found.factors = ModuleFactors::find(scores(instance, docs()), instance.parameters());
      if (found.factors && !factors_hold(instance, *found.factors, whole)) found.factors.reset();
    }
    found.products_by_gradients = !found.factors && products_hold(instance, whole);
    check_side_effects(instance, watched);
    return found;
  }

 private:
  static constexpr std::int64_t kTriedDocs = 7;

  static PhiloxKey key() { return make_key({.seed = 28, .purpose = Purpose::kProbe}); }
  /// Uniform in [0, 1), as after query-minmax; as categories they are 0.
  static std::vector<float> tried_docs(std::int64_t features) {
    RngStream draws(key(), 1);
    std::vector<float> values(kTriedDocs * features);
    for (float& value : values) value = static_cast<float>(draws.uniform());
    return values;
  }
  /// Parameters near θ, where nothing cancels that cancels at the start.
  static std::vector<float> near_theta(const ScoringModule& module, std::span<const float> theta) {
    RngStream draws(key(), 2);
    std::vector<float> near(theta.begin(), theta.end());
    std::size_t next = 0;
    for (const ScoringModule::Parameter& parameter : module.parameters) {
      const std::int64_t columns = parameter.value.dim() < 2 ? 4 : parameter.value.size(-1);
      const double step = 0.5 / std::sqrt(static_cast<double>(std::max<std::int64_t>(columns, 1)));
      for (std::int64_t k = 0; k < parameter.value.numel(); ++k)
        near[next++] += static_cast<float>(step * (2.0 * draws.uniform() - 1.0));
    }
    return near;
  }

  FeatureMatrix docs(std::int64_t first = 0, std::int64_t count = kTriedDocs) const {
    return {docs_.data() + first * request_.features, count, request_.features};
  }
  /// Scores in double, checked.
  torch::Tensor scores(ModuleInstance& instance, const torch::Tensor& docs) const {
    torch::Tensor scores;
    try {
      scores = instance.forward(docs);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      if (docs.size(0) == kTriedDocs) refuse_precision(reason_of(error));
      refuse("fails on a list of {}: {}. Let forward take any number of documents.",
             docs.size(0) == 1 ? "one document" : "few documents", reason_of(error));
    }
    const std::int64_t count = docs.size(0);
    if (!scores.defined() || scores.dim() != 1 || scores.size(0) != count) {
      const bool column =
          scores.defined() && scores.dim() == 2 && scores.size(0) == count && scores.size(1) == 1;
      refuse("returns scores of shape [{}] for {} document{}, not [{}]: {}",
             scores.defined() ? fmt::format("{}", fmt::join(scores.sizes(), " × ")) : "", count,
             count == 1 ? "" : "s", count,
             column ? "add .squeeze(1) to them."
             : scores.defined() && count == 1 && scores.dim() == 0
                 ? "squeeze(1) keeps the one document that squeeze() drops."
                 : "return one score for each document.");
    }
    if (scores.scalar_type() != torch::kDouble) {
      refuse_precision(fmt::format("scores of type {}", toString(scores.scalar_type())));
    }
    if (!torch::isfinite(scores).all().item<bool>()) {
      refuse(
          "gives scores that are not finite for features from 0 to 1: look for divisions by zero, "
          "logarithms and roots.");
    }
    return scores;
  }
  torch::Tensor scores(ModuleInstance& instance, FeatureMatrix docs) const {
    return scores(instance, instance.documents(docs));
  }
  void check_parameters(const ScoringModule& module, ModuleFindings& found) const {
    if (module.parameters.empty()) {
      refuse(
          "has no parameters that can be learned: register them as parameters that require gradients, and "
          "do not freeze the module before you save it.");
    }
    for (const ScoringModule::Parameter& parameter : module.parameters) {
      if (!torch::isfinite(parameter.value).all().item<bool>()) {
        refuse("starts with a number that is not finite in parameter '{}': initialise it.", parameter.name);
      }
      found.parameters.push_back({parameter.name, parameter.value.sizes().vec()});
    }
  }
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> wrong, Args&&... args) const {
    refuse_module(request_, wrong, std::forward<Args>(args)...);
  }
  /// The module fails in double; it may not in float32.
  [[noreturn]] void refuse_precision(const std::string& reason) const {
    bool works = true;
    try {
      ModuleInstance instance(source_.make(0), torch::kFloat, device_);
      const torch::Tensor scores = instance.forward(instance.documents(docs()));
      works = scores.scalar_type() == torch::kFloat;
    } catch (const std::exception&) {
      works = false;
    }
    if (works) {
      refuse(
          "computes in float32 alone ({}): let its tensors have the type of its documents, "
          "dtype=docs.dtype, because scores are computed in double.",
          reason);
    }
    refuse(
        "fails on {} documents of {} features: {}. Let forward take any number of documents with that many "
        "features.",
        kTriedDocs, request_.features, reason);
  }
  void check_gradients(ModuleInstance& instance, const ModuleFindings& found) const {
    const torch::Tensor sum = scores(instance, docs()).sum();
    if (!sum.requires_grad()) {
      refuse(
          "gives scores without gradients: let forward compute them from the parameters, without "
          "torch.no_grad() and detach().");
    }
    std::vector<torch::Tensor> gradients;
    try {
      const std::vector<torch::Tensor> parameters(instance.parameters().begin(),
                                                  instance.parameters().end());
      gradients = torch::autograd::grad({sum}, parameters, {}, std::nullopt, false, /*allow_unused=*/true);
    } catch (const std::exception& error) {
      refuse(
          "cannot be differentiated: {}. Use operations that have gradients, and do not change tensors in "
          "place that are needed for them.",
          reason_of(error));
    }
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      if (!gradients[k].defined()) {
        refuse("does not use its parameter '{}' for scores: use it, or remove it.",
               found.parameters[k].name);
      }
      if (!torch::isfinite(gradients[k]).all().item<bool>()) {
        refuse("has a gradient by '{}' that is not finite: look for roots and norms at zero.",
               found.parameters[k].name);
      }
    }
  }
  void check_side_effects(ModuleInstance& instance, const WatchedModule& watched) const {
    if (!WatchedModule::drawn().empty()) {
      refuse(
          "draws random numbers ({}): call eval() before you save it, and let forward compute the same "
          "from the same documents.",
          WatchedModule::drawn());
    }
    if (const std::string buffer = watched.changed_buffer(); !buffer.empty()) {
      refuse(
          "changes its buffer '{}' in forward, so that its scores may depend on earlier calls: change "
          "nothing there.",
          buffer);
    }
    const torch::Tensor before = instance.documents(docs()).clone();
    const torch::Tensor after = before.clone();
    scores(instance, after);
    if (!after.equal(before))
      refuse("changes its documents in place: let forward make new tensors of them.");
  }
  bool reads_lists(ModuleInstance& instance) const {
    // In double, products of other sizes round differently by some 1e-15.
    const auto differ = [](const torch::Tensor& a, const torch::Tensor& b) {
      return !((a - b).abs() <= 1e-9 * (1.0 + b.abs())).all().item<bool>();
    };
    const torch::Tensor together = scores(instance, docs());
    std::vector<std::int64_t> order(kTriedDocs);
    for (std::int64_t doc = 0; doc < kTriedDocs; ++doc) order[doc] = (3 * doc + 2) % kTriedDocs;
    const torch::Tensor index = torch::tensor(order, torch::kLong).to(device_);
    const torch::Tensor permuted = scores(instance, instance.documents(docs()).index_select(0, index));
    if (differ(permuted, together.index_select(0, index))) {
      refuse(
          "gives documents other scores when they come in another order: let forward treat them as a set, "
          "because a query has no order of its own.");
    }
    bool differs = false;
    for (std::int64_t doc = 0; doc < kTriedDocs; ++doc)
      differs |= differ(scores(instance, docs(doc, 1)), together.narrow(0, doc, 1));
    return differs;
  }
  /// The whole gradients, [V × (p + 1)].
  std::vector<float> rows(ModuleInstance& instance, std::int64_t parameters) const {
    std::vector<float> rows(kTriedDocs * (parameters + 1));
    find_gradient_rows(scores(instance, docs()), instance.parameters(), rows.data());
    return rows;
  }
  /// Factors are numbers of float32, and so are rows: each rounds by 6e-8.
  bool factors_hold(ModuleInstance& instance, const ModuleFactors& factors,
                    const std::vector<float>& rows) const {
    const TangentShape& shape = factors.shape();
    std::vector<float> values(kTriedDocs * shape.factors());
    if (!factors.extract(scores(instance, docs()), instance.parameters(), values.data())) return false;
    const std::int64_t size = shape.parameters();
    std::vector<double> expanded(kTriedDocs * size);
    expand_docs(shape, {values.data(), kTriedDocs}, 1.0, 0, size, expanded.data(), size);
    double largest = 0.0;
    for (const float value : rows) largest = std::max(largest, std::abs(double{value}));
    for (std::int64_t doc = 0; doc < kTriedDocs; ++doc) {
      for (std::int64_t k = 0; k < size; ++k) {
        const double row{rows[doc * (size + 1) + k]};
        if (!(std::abs(expanded[doc * size + k] - row) <= 1e-6 * std::abs(row) + 1e-9 * largest))
          return false;
      }
    }
    return true;
  }
  bool products_hold(ModuleInstance& instance, const std::vector<float>& rows) const {
    const std::int64_t size = instance.flat().numel();
    RngStream draws(key(), 3);
    std::vector<double> direction(size);
    for (double& value : direction) value = draws.normal();
    try {
      const torch::Tensor products =
          multiply_by_gradients(scores(instance, docs()), instance.parameters(),
                                instance.here(on_host(std::span<const double>(direction))));
      for (std::int64_t doc = 0; doc < kTriedDocs; ++doc) {
        double expected = 0.0;
        double terms = 0.0;
        for (std::int64_t k = 0; k < size; ++k) {
          const double term = direction[k] * double{rows[doc * (size + 1) + k]};
          expected += term;
          terms += std::abs(term);
        }
        if (!(std::abs(products[doc].item<double>() - expected) <= 1e-6 * terms)) return false;
      }
    } catch (const std::exception&) {
      return false;  // an operation without second derivatives
    }
    return true;
  }

  const ModuleSource& source_;
  const ModuleRequest& request_;
  torch::Device device_;
  std::vector<float> docs_;
};

}  // namespace

std::vector<float> flat_parameters(const ScoringModule& module) {
  std::vector<float> theta;
  for (const ScoringModule::Parameter& parameter : module.parameters) {
    const torch::Tensor values = parameter.value.detach().to(torch::kCPU, torch::kFloat).contiguous();
    theta.insert(theta.end(), values.data_ptr<float>(), values.data_ptr<float>() + values.numel());
  }
  return theta;
}

ModuleFindings check_module(const ModuleSource& source, const ModuleRequest& request,
                            const torch::Device& device) {
  ModuleFindings found = ModuleCheck(source, request, torch::kCPU).run();
  if (device.is_cpu()) return found;
  std::string reason = "its gradients are made in another way there";
  try {
    ModuleFindings there = ModuleCheck(source, request, device).run();
    if (there.reads_lists == found.reads_lists && there.factors.has_value() == found.factors.has_value())
      return there;
  } catch (const std::exception& error) {
    reason = reason_of(error);
  }
  refuse_module(request,
                "computes on the CPU, but not on {} ({}): let its tensors be on the device of its "
                "documents, device=docs.device, or use --device cpu.",
                device.str(), reason);
}

}  // namespace olrank
