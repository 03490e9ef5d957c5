#include "apps/command.h"
#include "apps/command_outline.h"
#include "apps/manual_page.h"
#include "apps/shell_completion.h"
#include "core/error.h"
#include "core/io/standard_output.h"

namespace olrank {
namespace {

class CompletionCommand : public Command {
 public:
  std::string name() const override { return "completion"; }
  std::string summary() const override { return "print the completion script of a shell"; }
  void declare(CLI::App& app) override {
    app_ = &app;
    app.add_option("shell", shell_, "bash or zsh: for example, source <(olrank completion bash)")
        ->type_name("SHELL");
  }
  int run(const OutputFlags&) override {
    if (shell_ != "bash" && shell_ != "zsh") {
      throw InvalidArgument(shell_.empty()
                                ? "No shell given: name bash or zsh."
                                : "There is no completion for '" + shell_ + "': choose bash or zsh.");
    }
    const auto commands = outline_of_program(*app_);
    write_output(shell_ == "bash" ? bash_completion(commands) : zsh_completion(commands));
    return 0;
  }

 private:
  const CLI::App* app_ = nullptr;
  std::string shell_;
};

class ManCommand : public Command {
 public:
  std::string name() const override { return "man"; }
  std::string summary() const override { return "print the manual page, for example to 'man -l -'"; }
  void declare(CLI::App& app) override { app_ = &app; }
  int run(const OutputFlags&) override {
    write_output(manual_page(outline_of_program(*app_)));
    return 0;
  }

 private:
  const CLI::App* app_ = nullptr;
};

}  // namespace

std::unique_ptr<Command> make_completion_command() {
  return std::make_unique<CompletionCommand>();
}

std::unique_ptr<Command> make_man_command() {
  return std::make_unique<ManCommand>();
}

}  // namespace olrank
