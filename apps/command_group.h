#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/command.h"

namespace olrank {

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
