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

/// Trials that the manifest's configuration amounts to.
std::int64_t expected_trials(const std::filesystem::path& experiment) {
  const std::filesystem::path file = experiment / "manifest.json";
  const auto manifest = nlohmann::json::parse(read_file(file), nullptr, false);
  try {
    const auto& config = manifest.at("config");
    const std::size_t users =
        manifest.value("recorded", false) ? 1 : config.at("clicks").at("models").size();
    return static_cast<std::int64_t>(config.at("ranker").size() * users *
                                     config.at("data").at("folds").size() *
                                     config.at("protocol").at("seeds").size());
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
      log_info("{} of {} trials have finished; 'olrank run {}/config.toml --resume' goes on.", finished,
               expected, folder_);
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
