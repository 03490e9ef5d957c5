// A build without LibTorch has these in place of what needs it. They refuse modules and TorchScript.

#include <fmt/format.h>

#include "core/throw_error.h"
#include "models/export/export_format.h"
#include "models/modules/module_model.h"
#include "models/skeleton/network_settings.h"

namespace olrank {
namespace {

[[noreturn]] void refuse(std::string_view what, std::string_view instead = "network = \"mlp\"") {
  throw_error<InvalidArgument>(
      "{} needs LibTorch, and this program was built without it (OLRANK_TORCH=OFF): use a build with "
      "LibTorch, or {}.",
      what, instead);
}

}  // namespace

LibtorchDescription describe_libtorch() {
  return {.version = "none", .cuda = false, .cpu_capability = "none"};
}

void use_one_libtorch_thread() {}

std::string torch_script_of(const LoadedModel&) {
  refuse("The format torchscript", "--to onnx");
}

bool is_module_file(std::string_view module) {
  return module.ends_with(".pt");
}
bool is_built_in_module(std::string_view) {
  return false;
}
std::vector<std::string> module_names() {
  return {};
}

std::shared_ptr<const std::string> load_module_file(const std::string& path, ModuleState) {
  refuse(fmt::format("Module '{}'", path));
}

/// The constructor throws, so the other functions are never called.
struct ModuleModel::State {};

ModuleModel::ModuleModel(const ModuleRequest& request, std::optional<int>) {
  refuse(fmt::format("Module '{}'", request.module));
}
ModuleModel::~ModuleModel() = default;
bool ModuleModel::reads_lists() const {
  refuse("A module");
}
std::string_view ModuleModel::factors_by() const {
  refuse("A module");
}
const std::string& ModuleModel::fingerprint() const {
  refuse("A module");
}
std::int64_t ModuleModel::features() const {
  refuse("A module");
}
std::int64_t ModuleModel::parameters() const {
  refuse("A module");
}
double ModuleModel::largest_parameter() const {
  refuse("A module");
}
void ModuleModel::score(ExecutionContext&, std::span<const float>, FeatureMatrix, std::span<float>) const {
  refuse("A module");
}
ModelTensors ModuleModel::tensors(std::span<const float>) const {
  refuse("A module");
}
void ModuleModel::score_precisely(std::span<const float>, FeatureMatrix, std::span<double>) const {
  refuse("A module");
}
const TangentShape& ModuleModel::tangent_shape() const {
  refuse("A module");
}
std::shared_ptr<const void> ModuleModel::keep_docs(FeatureMatrix) const {
  refuse("A module");
}
std::vector<float> ModuleModel::first_parameters(PhiloxKey) const {
  refuse("A module");
}
void ModuleModel::score_with_magnitudes(ExecutionContext&, std::span<const float>, FeatureMatrix,
                                        std::span<float>, std::span<float>) const {
  refuse("A module");
}
void ModuleModel::find_factors(ExecutionContext&, std::span<const float>, FeatureMatrix, std::span<float>,
                               std::span<float>, std::span<float>) const {
  refuse("A module");
}
void ModuleModel::multiply_gradients(ExecutionContext&, std::span<const float>, FeatureMatrix,
                                     std::span<const double>, std::span<double>) const {
  refuse("A module");
}
void ModuleModel::add_gradient_of_scores(ExecutionContext&, std::span<const float>, FeatureMatrix,
                                         FunctionRef<void(std::span<const float>, std::span<double>)>,
                                         std::span<double>) const {
  refuse("A module");
}

}  // namespace olrank
