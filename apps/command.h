#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/text/text_table.h"

namespace olrank {

/// The flags that every command has, and the whole command line.
struct OutputFlags {
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  bool wide = false;
  std::string command_line;  // quoted for a shell

  /// The columns that tables on standard output may take; 0 is no limit.
  int columns() const;
  OutputForm form() const { return {json, columns()}; }
};

/// One subcommand: declares its flags, then runs and returns the process's exit code.
class Command {
 public:
  Command() = default;
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;
  virtual void declare(CLI::App& app) = 0;
  virtual int run(const OutputFlags& output) = 0;
};

std::unique_ptr<Command> make_bench_command();
std::unique_ptr<Command> make_clicks_command();
std::unique_ptr<Command> make_completion_command();
std::unique_ptr<Command> make_data_command();
std::unique_ptr<Command> make_demo_command();
std::unique_ptr<Command> make_eval_command();
std::unique_ptr<Command> make_export_command();
std::unique_ptr<Command> make_info_command();
std::unique_ptr<Command> make_log_command();
std::unique_ptr<Command> make_man_command();
std::unique_ptr<Command> make_ope_command();
std::unique_ptr<Command> make_rank_command();
std::unique_ptr<Command> make_recommend_command();
std::unique_ptr<Command> make_report_command();
std::unique_ptr<Command> make_run_command();
std::unique_ptr<Command> make_serve_command();
std::unique_ptr<Command> make_train_command();
std::unique_ptr<Command> make_tune_command();

/// A command that only has subcommands. Without one, run() throws InvalidArgument with `missing`.
class CommandGroup : public Command {
 public:
  CommandGroup(std::string name, std::string summary, std::string missing,
               std::vector<std::unique_ptr<Command>> commands);

  std::string name() const override { return name_; }
  std::string summary() const override { return summary_; }
  void declare(CLI::App& app) override;
  int run(const OutputFlags& output) override;

 private:
  std::string name_;
  std::string summary_;
  std::string missing_;
  std::vector<std::pair<std::unique_ptr<Command>, CLI::App*>> commands_;
};

}  // namespace olrank
