#pragma once

#include <memory>

#include "apps/command.h"

namespace olrank {

// The commands of `olrank recommend`.
std::unique_ptr<Command> make_recommend_eval_command();
std::unique_ptr<Command> make_recommend_explain_command();
std::unique_ptr<Command> make_recommend_interview_command();
std::unique_ptr<Command> make_recommend_rank_command();
std::unique_ptr<Command> make_recommend_study_command();
std::unique_ptr<Command> make_recommend_synth_command();
std::unique_ptr<Command> make_recommend_train_command();

}  // namespace olrank
