#include "apps/command.h"
#include "apps/recommend/commands.h"

namespace olrank {

std::unique_ptr<Command> make_recommend_command() {
  std::vector<std::unique_ptr<Command>> commands;
  for (const auto& make :
       {make_recommend_synth_command, make_recommend_train_command, make_recommend_rank_command,
        make_recommend_explain_command, make_recommend_interview_command, make_recommend_eval_command,
        make_recommend_study_command}) {
    commands.push_back(make());
  }
  return std::make_unique<CommandGroup>("recommend", "recommend items from reviews, and say why",
                                        "No subcommand given. See 'olrank recommend --help'.",
                                        std::move(commands));
}

}  // namespace olrank
