#include "apps/service_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/data/data_loader.h"
#include "core/data/normaliser_text.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/fingerprint.h"
#include "core/io/mapped_memory.h"
#include "core/text/nearest.h"
#include "models/model_file.h"
#include "models/network_shape.h"
#include "models/ranker_factory.h"
#include "serve/feedback_record.h"
#include "serve/learner.h"
#include "sim/recorded_feedback.h"

namespace olrank {
namespace {

/// The kind that goes on from a model where none is named.
std::string_view kind_for(const LoadedModel& model) {
  if (model.is_linear()) return "ranknet";
  return model.members.size() > 1 ? "p2neurrank" : "olranknet";
}

const std::string* metadata_of(const LoadedModel& model, std::string_view key) {
  for (const auto& [known, text] : model.metadata) {
    if (known == key) return &text;
  }
  return nullptr;
}

Normalisation parse_normalisation(const std::string& text) {
  if (const auto known = value_named<Normalisation>(text)) return *known;
  std::vector<std::string> names;
  for (const auto& [value, name] : EnumNames<Normalisation>::values) names.emplace_back(name);
  throw InvalidArgument(
      fmt::format("--normalise: '{}' is unknown; the nearest is '{}'.", text, nearest_name(text, names)));
}

/// What can be done to one query alone; the others were fitted to data, which only a model file carries.
FittedNormaliser unfitted_normaliser(const std::string& text, std::int64_t features) {
  FittedNormaliser normaliser;
  normaliser.kind = text.empty() ? Normalisation::kQueryMinmax : parse_normalisation(text);
  normaliser.features = features;
  if (normaliser.kind == Normalisation::kZscore || normaliser.kind == Normalisation::kLog1pZscore) {
    throw InvalidArgument(fmt::format(
        "--normalise {} needs means and deviations of data: start from a --model that carries them, or "
        "choose query-minmax or none.",
        text));
  }
  return normaliser;
}

FittedNormaliser normaliser_of(const ServiceRequest& request, const LoadedModel& model) {
  const std::string* said = metadata_of(model, "normalisation");
  if (said == nullptr) return unfitted_normaliser(request.normalise, model.shape.inputs);
  FittedNormaliser normaliser = parse_normaliser(*said, request.model);
  if (normaliser.inputs() != model.shape.inputs) {
    throw InvalidArgument(fmt::format("{}: The model takes {} inputs and its normalisation gives {}.",
                                      request.model, model.shape.inputs, normaliser.inputs()));
  }
  if (!request.normalise.empty() && parse_normalisation(request.normalise) != normaliser.kind) {
    throw InvalidArgument(fmt::format("--normalise {} contradicts the model, which was trained with {}.",
                                      request.normalise, name_of(normaliser.kind)));
  }
  return normaliser;
}

/// The network is the model's; everything else is what the flags say.
void take_network(const LoadedModel& model, RankerSettings& ranker) {
  ranker.network.network = model.settings.network;
  if (model.is_linear()) return;
  ranker.network.width = model.settings.width;
  ranker.network.depth = model.settings.depth;
  ranker.network.parameterisation = model.settings.parameterisation;
  if (model.members.size() > 1) ranker.posterior.members = static_cast<std::int64_t>(model.members.size());
}

std::vector<std::vector<float>> first_thetas(const SettledService& service) {
  if (service.identity.model.empty()) return {};
  if (fingerprint_of(read_file(service.model_file)).hex() != service.identity.model) {
    throw IoError(fmt::format("{}: This is not the model that the service started from.",
                              service.model_file.string()));
  }
  return load_model(service.model_file).members;
}

SettledService describe_service(const ServiceRequest& request) {
  SettledService described;
  ServiceIdentity& identity = described.identity;
  std::vector<SettingOverride> overrides = request.ranker;
  std::optional<LoadedModel> model;
  if (!request.model.empty()) {
    described.model_file = request.model;
    described.model = read_file(request.model);
    model = load_model(request.model);
    identity.model = fingerprint_of(described.model).hex();
    if (!request.names_kind)
      overrides.push_back({"ranker", "", "kind", std::string(kind_for(*model)), "--model"});
  } else if (request.features < 1) {
    throw InvalidArgument("A ranker without a model needs the number of features: --features D.");
  }
  identity.ranker = resolve_configuration(std::nullopt, overrides).rankers.front();
  FittedNormaliser normaliser;
  if (model) {
    take_network(*model, identity.ranker);
    normaliser = normaliser_of(request, *model);
  } else {
    normaliser = unfitted_normaliser(request.normalise, request.features);
  }
  if (request.features > 0 && request.features != normaliser.features) {
    throw InvalidArgument(
        fmt::format("--features is {} and the model takes {}.", request.features, normaliser.features));
  }
  identity.features = normaliser.features;
  identity.normalisation = normaliser_text(normaliser);
  identity.cutoff = request.cutoff.value_or(identity.cutoff);
  identity.seed = request.seed.value_or(identity.seed);
  described.fresh = true;
  return described;
}

/// What is here with whatever is said instead.
ServiceIdentity as_asked(const ServiceIdentity& here, const ServiceRequest& request) {
  ServiceIdentity asked = here;
  if (!request.model.empty()) asked.model = fingerprint_of(read_file(request.model)).hex();
  if (request.features > 0) asked.features = request.features;
  if (!request.normalise.empty() &&
      parse_normaliser(here.normalisation, "service").kind != parse_normalisation(request.normalise)) {
    asked.normalisation = request.normalise;
  }
  asked.cutoff = request.cutoff.value_or(here.cutoff);
  asked.seed = request.seed.value_or(here.seed);
  const auto of_protocol = [](const SettingOverride& said) { return said.table == "protocol"; };
  if (std::any_of(request.ranker.begin(), request.ranker.end(), of_protocol)) {
    // It chooses whatever is not said.
    std::vector<SettingOverride> said = {
        {"ranker", "", "kind", std::string(name_of(here.ranker.kind)), "--state"}};
    said.insert(said.end(), request.ranker.begin(), request.ranker.end());
    asked.ranker = resolve_configuration(std::nullopt, said).rankers.front();
    asked.ranker.name = here.ranker.name;
    if (!here.model.empty()) {  // which chose these
      asked.ranker.network = here.ranker.network;
      asked.ranker.posterior.members = here.ranker.posterior.members;
    }
    return asked;
  }
  for (const SettingOverride& said : request.ranker) {
    if (said.table != RankerSettings::schema().table) continue;
    assign_setting_text(RankerSettings::schema(), &asked.ranker, said.key, said.text, said.origin);
  }
  return asked;
}

class LogWriter {
 public:
  explicit LogWriter(const std::filesystem::path& path) : file_(path) {}

  void write(const FeedbackRecord& record) { file_.write(record_line(++rounds_, record_body(record))); }
  std::uint64_t commit() {
    file_.commit();
    return rounds_;
  }
  std::uint64_t rounds() const { return rounds_; }

 private:
  AtomicFile file_;
  std::uint64_t rounds_ = 0;
};

void import_whole_lines(const ImportSource& source, std::int64_t inputs, bool with_unshown,
                        LogWriter& log) {
  const MappedMemory file = MappedMemory::of_file(source.log);
  std::string_view text = file.text();
  FeedbackRecord record;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto refuse = [&](std::int64_t column, const std::string& sentence) {
      throw DataError(source.log.string(), number, column, sentence);
    };
    if (const auto failure = parse_record(line, record)) refuse(failure->column, failure->sentence);
    if (record.inputs.empty())
      refuse(1, "The line has no 'inputs': name the data that it speaks of with --import-data.");
    if (record.columns != inputs)
      refuse(1, fmt::format("The line has {} inputs a document and the model takes {}.", record.columns,
                            inputs));
    if (with_unshown && record.docs.size() == record.clicks.size())
      refuse(1, "The line has no 'unshown' documents, and this kind of ranker learns from them.");
    if (record.impression.empty()) record.impression = fmt::format("imported-{}", log.rounds() + 1);
    log.write(record);
  }
}

void import_rounds_of_data(const ImportSource& source, const FittedNormaliser& normaliser,
                           bool with_unshown, LogWriter& log) {
  ExecutionContext context;
  DataSettings settings;
  settings.source = source.data;
  const Dataset train = load_part(settings, source.fold, DataPart::kTrain, context);
  if (train.features() != normaliser.features) {
    throw InvalidArgument(fmt::format("{} has {} features and the model takes {}.", source.data,
                                      train.features(), normaliser.features));
  }
  const RecordedFeedback recorded = RecordedFeedback::read(source.log, train);
  const std::int64_t columns = normaliser.inputs();
  std::vector<float> inputs;
  for (std::int64_t round = 0; round < recorded.rounds(); ++round) {
    const RecordedFeedback::Record shown = recorded.at(round);
    const FeatureMatrix raw = train.features_of(shown.query);
    inputs.resize(static_cast<std::size_t>(raw.docs * columns));
    normaliser.apply(raw, inputs.data());
    FeedbackRecord record;
    record.impression = fmt::format("imported-{}", round + 1);
    record.query = std::string(train.qid(shown.query));
    record.clicks.assign(shown.clicks.begin(), shown.clicks.end());
    record.columns = columns;
    std::vector<std::int32_t> docs(shown.shown.begin(), shown.shown.end());
    for (std::int32_t doc = 0; with_unshown && doc < raw.docs; ++doc) {
      if (std::find(shown.shown.begin(), shown.shown.end(), doc) == shown.shown.end()) docs.push_back(doc);
    }
    for (const std::int32_t doc : docs) {
      const std::string_view name = train.doc_name(train.offset(shown.query) + doc);
      record.docs.push_back(name.empty() ? DocId{fmt::format("{}", doc), true}
                                         : DocId{std::string(name), false});
      const float* row = inputs.data() + doc * columns;
      record.inputs.insert(record.inputs.end(), row, row + columns);
    }
    log.write(record);
  }
}

}  // namespace

SettledService settle_service(const StateFolder& folder, const ServiceRequest& request) {
  const auto here = folder.identity();
  if (!here && !request.names_ranker()) {
    throw InvalidArgument(
        fmt::format("{} holds no service yet: start it from --model FILE, or from --ranker KIND --features "
                    "D, to which other settings may be added.",
                    folder.path().string()));
  }
  if (!here) return describe_service(request);
  const std::string difference = identity_difference(*here, as_asked(*here, request));
  if (!difference.empty()) {
    throw InvalidArgument(fmt::format(
        "{} belongs to another service ({}): leave the flags out to go on with it, or choose another "
        "folder.",
        folder.path().string(), difference));
  }
  SettledService service;
  service.identity = *here;
  if (!here->model.empty()) service.model_file = folder.model();
  return service;
}

std::unique_ptr<OnlineRanker> make_service_ranker(const SettledService& service, std::int64_t memory) {
  const ServiceIdentity& identity = service.identity;
  if (row_of(identity.ranker.kind).needs_labels) {
    throw InvalidArgument(
        fmt::format("Ranker '{}' learns from true grades, which no click tells: choose another kind.",
                    identity.ranker.name));
  }
  const FittedNormaliser normaliser = parse_normaliser(identity.normalisation, "service");
  const auto thetas = first_thetas(service);
  const auto keys = TrialKeys::of(static_cast<std::uint64_t>(identity.seed), 1, "service");
  auto ranker =
      make_ranker(identity.ranker, normaliser.inputs(), keys, identity.cutoff, {nullptr, memory, thetas});
  check_ranker(identity.ranker, identity.cutoff);
  Learner::require_lists_ahead_of_rounds(*ranker);
  return ranker;
}

std::uint64_t import_feedback(const StateFolder& folder, const ImportSource& source,
                              const FittedNormaliser& normaliser, bool with_unshown) {
  std::error_code failed;
  if (std::filesystem::file_size(folder.log(), failed) > 0 && !failed) {
    throw InvalidArgument(
        fmt::format("{} has a log already: import into a new folder, so that no round is learned twice.",
                    folder.path().string()));
  }
  LogWriter log(folder.log());
  if (source.data.empty()) {
    import_whole_lines(source, normaliser.inputs(), with_unshown, log);
  } else {
    import_rounds_of_data(source, normaliser, with_unshown, log);
  }
  return log.commit();
}

}  // namespace olrank
