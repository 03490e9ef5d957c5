#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/skeleton/module_request.h"

namespace olrank {

/// A LibTorch module behind what rankers need of it: any module with forward(docs [V × d]) → scores [V].
struct ScoringModule {
  struct Parameter {
    std::string name;
    torch::Tensor value;
  };

  ScoringModule() = default;
  /// A module in C++, which gives up dropout and other behaviour of training.
  template <class Module>
  explicit ScoringModule(std::shared_ptr<Module> module);

  /// A parameter, which counts once under its first name. One that needs no gradient is not learned. Throws
  /// InvalidArgument unless it has real numbers.
  void add(const std::string& name, const torch::Tensor& value);

  std::function<torch::Tensor(const torch::Tensor& docs)> forward;
  std::vector<Parameter> parameters;  // in the order of θ
  std::vector<Parameter> buffers;     // what is not learned
  /// Draws θ₀; where there is none, θ₀ is what the module is made with.
  std::function<std::vector<float>(std::uint64_t seed)> first_parameters;
};

using ModuleFactory = std::function<ScoringModule(const ModuleRequest& request)>;

/// Makes `factory` known as `name`, so that `module = "name"` is a ranker. Throws InvalidArgument for a
/// name that is taken.
void register_factory(const std::string& name, ModuleFactory factory);

/// Registers a function that returns a std::shared_ptr to a torch::nn::Module with a forward().
template <class Factory>
bool register_module(const std::string& name, Factory factory) {
  register_factory(name,
                   [factory](const ModuleRequest& request) { return ScoringModule(factory(request)); });
  return true;
}

template <class Module>
ScoringModule::ScoringModule(std::shared_ptr<Module> module) {
  module->eval();
  for (const auto& parameter : module->named_parameters()) add(parameter.key(), parameter.value());
  for (const auto& buffer : module->named_buffers()) buffers.push_back({buffer.key(), buffer.value()});
  forward = [module = std::move(module)](const torch::Tensor& docs) { return module->forward(docs); };
}

}  // namespace olrank

/// OLRANK_REGISTER_MODULE("name", factory) in a source file of a program, outside of functions.
#define OLRANK_REGISTER_MODULE(name, ...) OLRANK_REGISTER_MODULE_AT(__COUNTER__, name, __VA_ARGS__)
#define OLRANK_REGISTER_MODULE_AT(place, name, ...) OLRANK_REGISTER_MODULE_AS(place, name, __VA_ARGS__)
#define OLRANK_REGISTER_MODULE_AS(place, name, ...)              \
  [[maybe_unused]] static const bool olrank_registered_##place = \
      ::olrank::register_module(name, __VA_ARGS__)
