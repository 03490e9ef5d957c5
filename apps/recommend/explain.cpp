#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/recommend/commands.h"
#include "core/error.h"
#include "core/io/json.h"
#include "core/io/standard_output.h"
#include "core/text/excerpt.h"
#include "jobs/recommending/recommender_file.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

class RecommendExplainCommand : public Command {
 public:
  std::string name() const override { return "explain"; }
  std::string summary() const override { return "say why an item is recommended to a user"; }
  void declare(CLI::App& app) override {
    app.add_option("--model", model_, "folder of 'recommend train', or its model file")
        ->type_name("DIR")
        ->required();
    app.add_option("--user", user_, "user")->type_name("NAME")->required();
    app.add_option("--item", item_, "item")->type_name("NAME")->required();
  }

  int run(const OutputFlags& output) override {
    const LoadedRecommender loaded = read_recommender(model_);
    const std::int64_t user = loaded.user(user_);
    const std::int64_t item = loaded.item(item_);
    const std::optional<Explanation> explanation = loaded.model->explain(user, item, loaded.names);
    if (!explanation) {
      throw InvalidArgument(fmt::format(
          "A recommender of kind {} learns from ratings alone and has no reasons: train one of kind mter, "
          "efm or fact.",
          name_of(loaded.settings.kind)));
    }
    if (output.json) {
      ordered_json json = {{"user", user_},
                           {"item", item_},
                           {"kind", name_of(loaded.settings.kind)},
                           {"sentences", explanation->sentences}};
      json.update(explanation->details);
      write_output(dump_json(json, 2) + "\n");
      return 0;
    }
    for (const std::string& sentence : explanation->sentences) write_output(printable(sentence) + "\n");
    return 0;
  }

 private:
  std::string model_;
  std::string user_;
  std::string item_;
};

}  // namespace

std::unique_ptr<Command> make_recommend_explain_command() {
  return std::make_unique<RecommendExplainCommand>();
}

}  // namespace olrank
