
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "core/data/data_loader.h"
#include "core/io/atomic_file.h"
#include "core/settings/choice.h"
#include "core/settings/enum_names.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "logs/off_policy.h"
#include "serve/feature_schema.h"
#include "serve/own_file.h"
#include "serve/service_identity.h"

namespace olrank {
namespace {

class OpeCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--log", request_.log, "FILE",
               "feedback.jsonl of a service or its state folder, or a trace of a trial");
    add_option(app, "--model", request_.models, "MODEL", "model files or folders of finished trials");
    add_option(app, "--trust-code", request_.trust_code, "true|false",
               "whether the models may contain a TorchScript module, whose code can read and write "
               "your files [default: false]");
    add_option(app, "--policy", names_.policy, "NAME",
               "how the lists are made: greedy, plackett-luce or epsilon=0.1 by the models' scores, "
               "incumbent in the order that requests brought, or candidate as the learner would have "
               "shown them [default: greedy]");
    add_option(app, "--reward", names_.reward, "NAME",
               "the value of a list's clicks: clicks, dcg (discounted by rank), "
               "first-click, or weight (by the values of their events) [default: clicks]");
    add_option(app, "--estimators", names_.estimators, "NAMES",
               "estimators to use, such as direct,cascade-dr [default: all that the log has the data for]")
        ->delimiter(',');
    add_option(app, "--click-model", names_.click_model, "NAME",
               "click model of direct, cascade-dr and intervention-aware, which is fitted to the log: "
               "pbm, cascade, dcm, dbn, ubm, two-tower or trust [default: pbm]");
    add_output(app, "--page", page_, "FILE", "file for an HTML page with the estimates side by side");
    at_ = add_option(app, "--at", request_.estimates.ranks, "K", "ranks that count [default: 10]");
    add_option(app, "--data", data_.source, "SOURCE",
               "data set that the documents of a trace refer to, as in run --data");
    add_option(app, "--fold", fold_, "N", "fold of a data folder [default: 1]");
    add_option(app, "--part", part_text_, "PART", "part of the data: train, vali or test [default: train]");
    add_option(app, "--cache", data_.cache, "DIR",
               "folder for binary copies of text files, auto or none [default: auto]");
    add_option(app, "--clip", request_.estimates.clip, "W",
               "largest weight; a larger weight counts as W, which bounds the estimate and biases it "
               "towards 0 [default: none]");
    add_option(app, "--confidence", request_.estimates.confidence, "P",
               "confidence of the intervals [default: 0.95]");
    add_option(app, "--replicates", request_.estimates.replicates, "N",
               "replicates of the bootstrap over queries [default: 400]");
    add_option(app, "--seed", request_.estimates.seed, "N", "random seed of the bootstrap [default: 1]");
    add_option(app, "--threads", threads_, "N", "CPU threads; 0 uses every core [default: 0]");
  }

  int run(const OutputFlags& output) override {
    request_.choose(names_);
    request_.check();
    if (threads_ < 0) throw_error<InvalidArgument>("--threads must be at least 0, not {}.", threads_);
    // A file that cannot be written is found out about before the log is read.
    std::optional<AtomicFile> page;
    if (!page_.empty()) page.emplace(page_);
    ExecutionContext context(threads_ > 0 ? threads_ : available_threads());
    std::optional<Dataset> data;
    data_.layout = FeatureLayout::kDense;
    if (!data_.source.empty())
      data.emplace(load_part(data_, fold_, parse_choice<DataPart>("--part", part_text_), context));
    request_.of_log = features_of_log();
    const OffPolicyResult result = evaluate_off_policy(request_, data ? &*data : nullptr, context);
    if (at_->count() > 0 && result.longest < request_.estimates.ranks) {
      throw_error<InvalidArgument>("--at {} is beyond the lists of {}, which have at most {}.",
                                   request_.estimates.ranks, request_.log, counted(result.longest, "rank"));
    }
    output.print(off_policy_json(request_, result), off_policy_text(request_, result, output.columns()));
    if (page) {
      page->write(off_policy_page(request_, result));
      page->commit();
    }
    return 0;
  }

 private:
  /// Says which features the schema of the log's service has dropped and renamed.
  NamedInputs features_of_log() const {
    const std::filesystem::path log(request_.log);
    const std::filesystem::path file = (is_directory(log) ? log : log.parent_path()) / "service.toml";
    const auto text = read_own_file(file);
    if (!text) return {};
    const ServiceIdentity stored = parse_identity(*text, file.string());
    if (stored.feature_schema.empty()) return {};
    NamedInputs inputs = FeatureSchema::parse(stored.feature_schema, file.string()).named_columns();
    inputs.defaults.clear();  // those of a model are its own
    return inputs;
  }

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

const CommandEntry kOpeCommand{"ope", "estimate the reward of other rankers from a log of shown lists",
                               make_command<OpeCommand>};

}  // namespace olrank
