#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "core/device/visible_gpus.h"
#include "core/error.h"
#include "core/io/folder.h"
#include "core/ops/blas.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/log.h"
#include "core/version.h"
#include "jobs/device_choice.h"
#include "jobs/recommending/recommender_run.h"
#include "jobs/settings/configuration.h"
#include "jobs/settings/train_configuration.h"
#include "models/modules/module_model.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

std::string cuda_version(int number) {
  return number == 0 ? "none" : fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

/// Null if the GPU cannot be used now, by this process or by any.
ordered_json free_bytes_or_null(const GpuDescription& gpu) {
  try {
    return free_bytes_of(gpu);
  } catch (const CudaError& error) {
    log_warning("{}", error.what());
    return nullptr;
  }
}

ordered_json describe_gpu(const GpuDescription& gpu) {
  return {{"index", gpu.index},
          {"name", gpu.name},
          {"capability", fmt::format("{}.{}", gpu.capability_major, gpu.capability_minor)},
          {"multiprocessors", gpu.multiprocessors},
          {"memory_bytes", gpu.total_bytes},
          {"free_bytes", free_bytes_or_null(gpu)}};
}

ordered_json describe_machine() {
  const LibtorchDescription libtorch = describe_libtorch();
  const GpuSurvey survey = visible_gpus();
  ordered_json devices = ordered_json::array();
  for (const GpuDescription& gpu : survey.gpus) devices.push_back(describe_gpu(gpu));
  ordered_json libraries = ordered_json::object();
  for (const DeviceLibrary& library : survey.libraries) libraries[library.name] = library.version;
  const std::optional<std::string> refusal = why_no_gpu(survey);
  ordered_json cuda = {
      {"built", survey.built_with_cuda},
      {"runtime",
       survey.built_with_cuda ? ordered_json(cuda_version(survey.runtime_version)) : ordered_json(nullptr)},
      {"driver", survey.driver_version > 0 ? ordered_json(cuda_version(survey.driver_version))
                                           : ordered_json(nullptr)},
      {"libraries", libraries},
      {"devices", devices},
      {"no_device_because", refusal ? ordered_json(*refusal) : ordered_json(nullptr)},
      {"auto", meaning_of_auto(survey)}};
  return {{"version", version()},
          {"revision", revision()},
          {"compiler", compiler()},
          {"libtorch",
           {{"version", libtorch.version}, {"cuda", libtorch.cuda}, {"cpu", libtorch.cpu_capability}}},
          {"blas", blas::library_name()},
          {"cuda", cuda},
          {"threads", available_threads()},
          {"memory_bytes", available_memory()},
          {"cache", user_cache_folder().string()}};
}

void print_row(std::string_view name, std::string_view value) {
  fmt::print("{:<10} {}\n", name, value);
}

void print_as_text(const ordered_json& machine) {
  const auto text = [](const ordered_json& value) { return value.get<std::string>(); };
  const ordered_json& cuda = machine["cuda"];
  print_row("olrank", fmt::format("{} ({})", text(machine["version"]), text(machine["revision"])));
  print_row("compiler", text(machine["compiler"]));
  print_row("libtorch", fmt::format("{} ({}, {})", text(machine["libtorch"]["version"]),
                                    machine["libtorch"]["cuda"].get<bool>() ? "CPU and CUDA" : "CPU",
                                    text(machine["libtorch"]["cpu"])));
  print_row("blas", text(machine["blas"]));
  if (cuda["built"].get<bool>()) {
    const std::string driver =
        cuda["driver"].is_null() ? "no driver" : "driver supports " + text(cuda["driver"]);
    print_row("cuda", fmt::format("built with {}, {}", text(cuda["runtime"]), driver));
    for (const auto& [name, version] : cuda["libraries"].items()) print_row(name, text(version));
  } else {
    print_row("cuda", "not built in");
  }
  for (const ordered_json& gpu : cuda["devices"]) {
    const ordered_json& free = gpu["free_bytes"];
    print_row(
        fmt::format("cuda:{}", gpu["index"].get<int>()),
        fmt::format("{}, capability {}, {} of {:.1f} GiB free", text(gpu["name"]), text(gpu["capability"]),
                    free.is_null() ? "unknown" : fmt::format("{:.1f}", free.get<double>() / kGibibyte),
                    gpu["memory_bytes"].get<double>() / kGibibyte));
  }
  if (!cuda["no_device_because"].is_null()) print_row("gpu", "none: " + text(cuda["no_device_because"]));
  print_row("auto", text(cuda["auto"]));
  print_row("threads", fmt::format("{}", machine["threads"].get<int>()));
  print_row("memory", fmt::format("{:.1f} GiB", machine["memory_bytes"].get<double>() / kGibibyte));
  print_row("cache", text(machine["cache"]));
}

class InfoCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_flag("--settings", settings_, "print a reference of all settings (docs/CONFIGURATION.md)");
  }
  int run(const OutputFlags& output) override {
    if (settings_ && output.json)
      throw InvalidArgument("--settings prints Markdown and cannot be combined with --json.");
    if (settings_) {
      std::vector<SchemaWithDefaults> tables(configuration_tables().begin(), configuration_tables().end());
      tables.push_back(train_tables().back());  // [data] is there
      tables.push_back(recommend_tables().back());
      fmt::print("{}", reference_page(tables));
      return 0;
    }
    const ordered_json machine = describe_machine();
    if (output.json) {
      fmt::print("{}\n", machine.dump(2));
    } else {
      print_as_text(machine);
    }
    return 0;
  }

 private:
  bool settings_ = false;
};

}  // namespace

const CommandEntry kInfoCommand{"info", "show version, libraries and hardware", make_command<InfoCommand>};

}  // namespace olrank
