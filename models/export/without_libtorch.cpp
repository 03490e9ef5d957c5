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
      "LibTorch, in Python the package olrank[torch], or {}.",
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

std::shared_ptr<const std::string> load_module_file(const std::string& path) {
  refuse(fmt::format("Module '{}'", path));
}

std::unique_ptr<ModuleModel> open_module(const ModuleRequest& request, std::optional<int>) {
  refuse(fmt::format("Module '{}'", request.module));
}

}  // namespace olrank
