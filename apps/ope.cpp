#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "core/data/data_loader.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/io/standard_output.h"
#include "core/settings/choice.h"
#include "core/settings/enum_names.h"
#include "core/text/message_text.h"
#include "logs/off_policy.h"

namespace olrank {
namespace {

class OpeCommand : public Command {
 public:
  std::string name() const override { return "ope"; }
  std::string summary() const override {
    return "estimate the reward of other rankers from a log of shown lists";
  }

  void declare(CLI::App& app) override {
    app.add_option("--log", request_.log,
                   "feedback.jsonl of a service or its state folder, or a trace of a trial")
        ->type_name("FILE");
    app.add_option("--model", request_.models, "model files or folders of finished trials")
        ->type_name("MODEL");
    app.add_option("--trust-code", request_.trust_code,
                   "whether the models may contain a TorchScript module, whose code can read and write "
                   "your files [default: false]")
        ->type_name("true|false");
    app.add_option("--policy", names_.policy,
                   "how the lists are made: greedy, plackett-luce or epsilon=0.1 by the models' scores, "
                   "incumbent in the order that requests brought, or candidate as the learner would have "
                   "shown them [default: greedy]")
        ->type_name("NAME");
    app.add_option("--reward", names_.reward,
                   "the value of a list's clicks: clicks, dcg (discounted by rank), "
                   "first-click, or weight (by the values of their events) [default: clicks]")
        ->type_name("NAME");
    app.add_option(
           "--estimators", names_.estimators,
           "estimators to use, such as direct,cascade-dr [default: all that the log has the data for]")
        ->delimiter(',')
        ->type_name("NAMES");
    app.add_option("--click-model", names_.click_model,
                   "click model of direct, cascade-dr and intervention-aware, which is fitted to the log: "
                   "pbm, cascade, dcm, dbn, ubm or two-tower [default: pbm]")
        ->type_name("NAME");
    app.add_option("--page", page_, "file for an HTML page with the estimates side by side")
        ->type_name("FILE");
    at_ =
        app.add_option("--at", request_.estimates.ranks, "ranks that count [default: 10]")->type_name("K");
    app.add_option("--data", data_.source,
                   "data set that the documents of a trace refer to, as in run --data")
        ->type_name("SOURCE");
    app.add_option("--fold", fold_, "fold of a data folder [default: 1]")->type_name("N");
    app.add_option("--part", part_text_, "part of the data: train, vali or test [default: train]")
        ->type_name("PART");
    app.add_option("--cache", data_.cache,
                   "folder for binary copies of text files, auto or none [default: auto]")
        ->type_name("DIR");
    app.add_option("--clip", request_.estimates.clip,
                   "largest weight; a larger weight counts as W, which bounds the estimate and biases it "
                   "towards 0 [default: none]")
        ->type_name("W");
    app.add_option("--confidence", request_.estimates.confidence,
                   "confidence of the intervals [default: 0.95]")
        ->type_name("P");
    app.add_option("--replicates", request_.estimates.replicates,
                   "replicates of the bootstrap over queries [default: 400]")
        ->type_name("N");
    app.add_option("--seed", request_.estimates.seed, "random seed of the bootstrap [default: 1]")
        ->type_name("N");
    app.add_option("--threads", threads_, "CPU threads; 0 uses every core [default: 0]")->type_name("N");
  }

  int run(const OutputFlags& output) override {
    request_.choose(names_);
    request_.check();
    if (threads_ < 0) throw InvalidArgument(fmt::format("--threads must be at least 0, not {}.", threads_));
    // A file that cannot be written is found out about before the log is read.
    std::optional<AtomicFile> page;
    if (!page_.empty()) page.emplace(page_);
    ExecutionContext context(threads_ > 0 ? threads_ : available_threads());
    std::optional<Dataset> data;
    data_.layout = FeatureLayout::kDense;
    if (!data_.source.empty())
      data.emplace(load_part(data_, fold_, parse_choice<DataPart>("--part", part_text_), context));
    const OffPolicyResult result = evaluate_off_policy(request_, data ? &*data : nullptr, context);
    if (at_->count() > 0 && result.longest < request_.estimates.ranks) {
      throw InvalidArgument(fmt::format("--at {} is beyond the lists of {}, which have at most {}.",
                                        request_.estimates.ranks, request_.log,
                                        counted(result.longest, "rank")));
    }
    write_output(output.json ? dump_json(off_policy_json(request_, result), 2) + "\n"
                             : off_policy_text(request_, result, output.columns()));
    if (page) {
      page->write(off_policy_page(request_, result));
      page->commit();
    }
    return 0;
  }

 private:
  OffPolicyRequest request_;
  CLI::Option* at_ = nullptr;
  OffPolicyNames names_;
  std::string page_;
  DataSettings data_;
  std::int64_t fold_ = 1;
  std::string part_text_ = "train";
  int threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_ope_command() {
  return std::make_unique<OpeCommand>();
}

}  // namespace olrank
