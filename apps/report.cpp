#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/command.h"
#include "apps/experiment_run.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/runtime/log.h"

namespace olrank {
namespace {

/// Trials of the whole experiment, finished or not.
std::int64_t expected_trials(const std::filesystem::path& experiment) {
  const std::filesystem::path file = experiment / "manifest.json";
  const auto manifest = nlohmann::json::parse(read_file(file), nullptr, false);
  try {
    return manifest.at("trials").get<std::int64_t>();
  } catch (const nlohmann::json::exception&) {
    throw IoError(fmt::format("{}: This is no manifest of an experiment.", file.string()));
  }
}

class ReportCommand : public Command {
 public:
  std::string name() const override { return "report"; }
  std::string summary() const override {
    return "the results of an experiment, finished or not, merged or not";
  }
  void declare(CLI::App& app) override {
    app.add_option("experiment", folder_, "the folder that `olrank run` wrote")
        ->type_name("DIR")
        ->required();
  }
  int run(const OutputFlags& output) override {
    if (!std::filesystem::is_directory(folder_)) {
      throw InvalidArgument(fmt::format("There is no experiment at '{}'.", folder_));
    }
    const std::int64_t expected = expected_trials(folder_);
    const std::int64_t finished = print_summary(folder_, output);
    if (finished < expected) {
      // The test part of a tuning whose choices differ from place to place has no single configuration.
      const std::string again = std::filesystem::exists(std::filesystem::path(folder_) / "config.toml")
                                    ? fmt::format("'olrank run {}/config.toml --resume'", folder_)
                                    : std::string("the command that began it, with --resume,");
      log_info("{} of {} trials have finished; {} goes on.", finished, expected, again);
    }
    return 0;
  }

 private:
  std::string folder_;
};

}  // namespace

std::unique_ptr<Command> make_report_command() {
  return std::make_unique<ReportCommand>();
}

}  // namespace olrank
