#include "models/modules/module_registry.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <regex>
#include <sstream>

#include "core/io/atomic_file.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "models/modules/built_in_modules.h"
#include "models/modules/module_instance.h"
#include "models/modules/script_archive.h"

namespace olrank {
namespace {

/// The network of the closed form, with its θ and its first parameters.
ScoringModule relu_module(const ModuleRequest& request) {
  const NetworkShape shape = {request.features, request.width, request.depth, request.biases,
                              request.output_scale};
  ScoringModule module(std::make_shared<ReluRanker>(shape));
  module.first_parameters = [shape, symmetric = request.symmetric](std::uint64_t seed) {
    std::vector<float> theta(shape.parameters());
    initialise(shape, symmetric ? Initialisation::kSymmetric : Initialisation::kUniform, key_of_seed(seed),
               theta);
    return theta;
  };
  return module;
}

template <class Module>
ModuleFactory factory_of() {
  return [](const ModuleRequest& request) { return ScoringModule(std::make_shared<Module>(request)); };
}

using Factories = std::map<std::string, ModuleFactory, std::less<>>;

const Factories& built_in_modules() {
  static const Factories made = {{"attention", factory_of<AttentionRanker>()},
                                 {"layernorm", factory_of<LayerNormRanker>()},
                                 {"relu", relu_module},
                                 {"residual", factory_of<ResidualRanker>()}};
  return made;
}

struct Registry {
  std::mutex mutex;
  Factories factories = built_in_modules();
};

Registry& registry() {
  static Registry made;
  return made;
}

/// Draws of LibTorch's generator start at a seed, and its state is as before at the end. One at a time.
class SeededDraws {
 public:
  explicit SeededDraws(std::uint64_t seed) : lock_(mutex()), before_(generator().get_state()) {
    generator().set_current_seed(seed);
  }
  ~SeededDraws() { generator().set_state(before_); }
  SeededDraws(const SeededDraws&) = delete;
  SeededDraws& operator=(const SeededDraws&) = delete;

 private:
  static at::Generator generator() { return at::detail::getDefaultCPUGenerator(); }
  static std::mutex& mutex() {
    static std::mutex made;
    return made;
  }

  std::lock_guard<std::mutex> lock_;
  at::Tensor before_;
};

/// Model files carry the file, in a header of at most 100 MB, where it takes a third more.
constexpr std::int64_t kMostModuleBytes = 64'000'000;

std::shared_ptr<const std::string> read_module_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw_error<InvalidArgument>(
        "module: there is no file '{}': give the path of a TorchScript file that ends in .pt, or one of "
        "{}.",
        path, joined(module_names(), " or "));
  }
  if (const auto bytes = std::filesystem::file_size(path); bytes > kMostModuleBytes) {
    throw_error<InvalidArgument>(
        "module: '{}' has {}, and a model file has room for {}: save a smaller module.", path,
        readable_bytes(static_cast<double>(bytes)), readable_bytes(static_cast<double>(kMostModuleBytes)));
  }
  return std::make_shared<const std::string>(read_file(path));
}

torch::jit::Module parse_module(const std::string& bytes, const std::string& path) {
  try {
    check_script_archive(bytes, path);
    std::istringstream stream(bytes);
    return torch::jit::load(stream, torch::kCPU);
  } catch (const InvalidArgument&) {
    throw;
  } catch (const std::exception&) {
    throw_error<InvalidArgument>(
        "module: '{}' is not a TorchScript file that LibTorch can read: write it with "
        "torch.jit.script(module).save(…) or torch.jit.trace(…).save(…); torch.save() writes another "
        "format.",
        path);
  }
}

void check_signature(const torch::jit::Module& module, const std::string& path) {
  const auto forward = module.find_method("forward");
  const auto needed = [](const c10::FunctionSchema& schema) {
    std::int64_t count = -1;  // without self
    for (const c10::Argument& argument : schema.arguments()) count += argument.default_value() ? 0 : 1;
    return count;
  };
  if (!forward) {
    throw_error<InvalidArgument>(
        "module: '{}' has no method forward: define forward(docs) that turns documents [V × features] into "
        "scores [V].",
        path);
  }
  const c10::FunctionSchema& schema = forward->function().getSchema();
  if (needed(schema) > 1 || schema.arguments().size() < 2 ||
      !schema.arguments()[1].type()->isSubtypeOf(*c10::TensorType::get())) {
    throw_error<InvalidArgument>(
        "module: forward of '{}' does not take one tensor: define forward(docs) with the documents [V × "
        "features] as its only argument without a default.",
        path);
  }
}

/// A copy of a module from a file. Its graph runs as written: optimisation after a few calls would change
/// bits.
ScoringModule script_module(const torch::jit::Module& file, const std::string& path) {
  ScoringModule scoring;
  torch::jit::Module copy = file.deepcopy();
  for (const auto& parameter : copy.named_parameters()) scoring.add(parameter.name, parameter.value);
  for (const auto& buffer : copy.named_buffers()) scoring.buffers.push_back({buffer.name, buffer.value});
  scoring.forward = [copy, path](const torch::Tensor& docs) mutable {
    const torch::jit::GraphOptimizerEnabledGuard as_written(false);
    const torch::jit::IValue scores = copy.forward({docs});
    if (!scores.isTensor()) {
      throw_error<InvalidArgument>(
          "module: forward of '{}' returns {}, not a tensor: return the scores [V] alone.", path,
          scores.tagKind());
    }
    return scores.toTensor();
  };
  return scoring;
}

/// Its methods and those of its parts, as text. LibTorch also prints where in memory the parts lie, which
/// differs each time that a file is read: that is left out.
std::string code_of(const torch::jit::Module& module) {
  static const std::regex address(" object at 0x[0-9a-f]+");
  return std::regex_replace(module.dump_to_str(true, false, false), address, "");
}

}  // namespace

bool is_module_file(std::string_view module) {
  return module.ends_with(".pt");
}

bool is_built_in_module(std::string_view module) {
  return built_in_modules().contains(module);
}

std::vector<std::string> module_names() {
  Registry& known = registry();
  const std::lock_guard<std::mutex> lock(known.mutex);
  std::vector<std::string> names;
  for (const auto& [name, factory] : known.factories) names.push_back(name);
  return names;
}

void ScoringModule::add(const std::string& name, const torch::Tensor& value) {
  if (!value.is_floating_point()) {
    throw_error<InvalidArgument>(
        "module: parameter '{}' has numbers of type {}: make it float32, or a buffer, which is not "
        "learned.",
        name, toString(value.scalar_type()));
  }
  for (const Parameter& known : parameters) {
    if (known.value.is_same(value)) return;
  }
  if (value.requires_grad()) {
    parameters.push_back({name, value});
  } else {
    buffers.push_back({name, value});
  }
}

void register_factory(const std::string& name, ModuleFactory factory) {
  if (name.empty() || is_module_file(name)) {
    throw_error<InvalidArgument>(
        "A module cannot be called '{}': choose a name that is not empty and does not end in .pt.", name);
  }
  Registry& known = registry();
  const std::lock_guard<std::mutex> lock(known.mutex);
  if (!known.factories.emplace(name, std::move(factory)).second) {
    throw_error<InvalidArgument>("There is a module '{}' already: choose another name.", name);
  }
}

ModuleSource::ModuleSource(const ModuleRequest& request) {
  if (is_module_file(request.module)) {
    file_ = request.file ? request.file : read_module_file(request.module);
    torch::jit::Module file = parse_module(*file_, request.module);
    check_signature(file, request.module);
    file.eval();
    check_script_code(file, request.module);
    code_ = code_of(file);
    make_ = [file, path = request.module] { return script_module(file, path); };
    return;
  }
  Registry& known = registry();
  std::unique_lock<std::mutex> lock(known.mutex);
  const auto found = known.factories.find(request.module);
  if (found == known.factories.end()) {
    lock.unlock();
    throw_error<InvalidArgument>("module {} A path that ends in .pt is a TorchScript file.",
                                 must_be_one_of(request.module, module_names()));
  }
  make_ = [factory = found->second, request] { return factory(request); };
}

ScoringModule ModuleSource::make(std::uint64_t seed) const {
  const SeededDraws draws(seed);
  const torch::AutoGradMode with_gradient(true);  // without it, copies would have no parameters to learn
  return make_();
}

}  // namespace olrank
