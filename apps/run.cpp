#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "apps/command.h"
#include "apps/configuration.h"
#include "apps/setting_flags.h"
#include "core/error.h"

namespace olrank {
namespace {

class RunCommand : public Command {
 public:
  std::string name() const override { return "run"; }
  std::string summary() const override { return "one experiment: rankers x click models x folds x seeds"; }
  void declare(CLI::App& app) override {
    app.add_option("config", file_, "a TOML file; without one, defaults and flags")->type_name("FILE");
    app.add_flag("--print-config", print_, "print the resolved configuration and stop");
    flags_.declare(app);
  }
  int run(const OutputFlags&) override {
    const auto file = file_.empty() ? std::nullopt : std::optional<std::filesystem::path>(file_);
    const Configuration configuration = resolve_configuration(file, flags_.overrides());
    if (print_) {
      fmt::print("{}", print_configuration(configuration));
      return 0;
    }
    throw Error(
        "The configuration is sound, but this version has no trial loop and plays no rounds; "
        "--print-config shows what would hold.");
  }

 private:
  std::string file_;
  bool print_ = false;
  SettingFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_run_command() {
  return std::make_unique<RunCommand>();
}

}  // namespace olrank
