#include <string>

#include "apps/recommend/commands.h"
#include "core/io/standard_output.h"
#include "jobs/recommending/recommender_study.h"

namespace olrank {
namespace {

class RecommendStudyCommand : public Command {
 public:
  std::string name() const override { return "study"; }
  std::string summary() const override {
    return "train kinds over sources, seeds and values, and compare them";
  }
  void declare(CLI::App& app) override {
    app.add_option("config", request_.file,
                   "configuration file (TOML) with [recommend] and [recommend_study]")
        ->type_name("FILE")
        ->required();
    app.add_option("--out", request_.out, "output folder; what it holds already is not trained again")
        ->type_name("DIR");
    app.add_flag("--dry-run", request_.dry_run, "check the file, say how many trainings it has, and exit");
    app.add_option("--threads", request_.threads, "CPU threads [default: every core]")
        ->type_name("N")
        ->check(CLI::Range(1, 4096));
  }

  int run(const OutputFlags& output) override {
    return run_recommender_study(request_, output.command_line, output.form(), write_output);
  }

 private:
  RecommenderStudyRequest request_;
};

}  // namespace

std::unique_ptr<Command> make_recommend_study_command() {
  return std::make_unique<RecommendStudyCommand>();
}

}  // namespace olrank
