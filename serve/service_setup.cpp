#include "serve/service_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/data/data_loader.h"
#include "core/io/safetensors.h"
#include "core/runtime/device.h"
#include "core/runtime/log.h"
#include "core/settings/enum_names.h"
#include "core/settings/value.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/device_choice.h"
#include "jobs/saved_trial.h"
#include "logs/documents.h"
#include "logs/log_reader.h"
#include "models/files/model_file.h"
#include "models/files/snapshot_file.h"
#include "models/neural/ranker_network.h"
#include "models/ranker_factory.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/network_settings.h"
#include "serve/file_log.h"
#include "serve/learner.h"
#include "serve/own_file.h"
#include "serve/requests.h"
#include "serve/service.h"
#include "serve/service_identity.h"
#include "serve/snapshot.h"
#include "sim/recorded_feedback.h"

namespace olrank {
namespace {

Normalisation parse_normalisation(const std::string& text) {
  return parse_choice<Normalisation>("--normalise", text);
}

/// A normaliser that works on each query alone. The other kinds are fitted to data and come with a model
/// file.
FittedNormaliser unfitted_normaliser(const std::string& text, std::int64_t features) {
  FittedNormaliser normaliser;
  normaliser.kind = text.empty() ? Normalisation::kQueryMinmax : parse_normalisation(text);
  normaliser.features = features;
  if (normaliser.kind == Normalisation::kZscore || normaliser.kind == Normalisation::kLog1pZscore) {
    throw_error<InvalidArgument>(
        "--normalise {} requires means and deviations of the training data: start from a --model that "
        "contains them, or choose query-minmax or none.",
        text);
  }
  return normaliser;
}

FittedNormaliser normaliser_of(const ServiceRequest& request, const LoadedModel& model) {
  if (std::none_of(model.metadata.begin(), model.metadata.end(),
                   [](const auto& entry) { return entry.first == "normalisation"; }))
    return unfitted_normaliser(request.normalise, model.normaliser.features);
  if (!request.normalise.empty() && parse_normalisation(request.normalise) != model.normaliser.kind) {
    throw_error<InvalidArgument>("--normalise {} contradicts the model, which was trained with {}.",
                                 request.normalise, name_of(model.normaliser.kind));
  }
  return model.normaliser.without_terms();
}

RankerSettings resolve_ranker(std::span<const SettingOverride> given, bool starts_from_model) {
  std::vector<SettingOverride> overrides(given.begin(), given.end());
  // A configuration has groups by a feature or a file, or refuses rankers that need them. Whether the
  // service has groups is checked by check_service_fairness().
  overrides.push_back({GroupSettings::schema().table, "", "file", "requests", "--groups"});
  const Configuration configuration = resolve_configuration(std::nullopt, overrides);
  const std::vector<RankerSettings>& rankers = configuration.rankers;
  for (const RankerSettings& ranker : rankers) {
    if (!ranker.start_from.empty())
      throw InvalidArgument("A service starts from --model: use it in place of --start-from.");
  }
  if (rankers.size() != 1)
    throw_error<InvalidArgument>("A service has one ranker, not {}: choose one kind.", rankers.size());
  RankerSettings ranker = rankers.front();
  const auto has_prior = [](const SettingOverride& setting) { return setting.key == "lambda"; };
  if (starts_from_model && std::none_of(given.begin(), given.end(), has_prior)) {
    RankerSettings started = ranker;
    started.start_from = "--model";
    ranker.posterior.lambda =
        RankerSettings::defaults(started, configuration.protocol.name).posterior.lambda;
  }
  return ranker;
}

/// Requests name features by their numbers, too.
bool is_number(const std::string& name) {
  return name.find_first_not_of("0123456789") == std::string::npos;
}

/// The names of the features that were given, or the model's; empty without any, or if the model's are
/// plain or have numbers among them, as those of a table without names of columns.
std::string feature_names_of(const ServiceRequest& request, const LoadedModel* model,
                             std::int64_t features) {
  const std::vector<std::string> own =
      model != nullptr ? telling_names(model->feature_names) : std::vector<std::string>();
  const auto& names = request.feature_names.empty() ? own : request.feature_names;
  if (names.empty()) return "";
  require_feature_names(names, features, request.feature_names.empty() ? "--model" : "--feature-names");
  if (const auto number = std::find_if(names.begin(), names.end(), is_number); number != names.end())
    throw_error<InvalidArgument>(
        "--feature-names: '{}' is a number, and a name must not be one: a request would mean the feature "
        "of that number.",
        *number);
  if (!own.empty() && names != own)
    throw_error<InvalidArgument>("--feature-names contradicts the model, whose features are {}.",
                                 joined(own));
  return feature_names_text(names);
}

/// Where search answers have the features that were given.
std::string origins_of(const ServiceRequest& request) {
  if (request.origins.empty()) return "";
  std::unordered_map<std::string, std::int64_t> names;
  for (const std::string& name : request.feature_names) names.emplace(name, names.size());
  parse_hit_origins(request.origins, names);  // refuses what is none
  return feature_names_text(request.origins);
}

/// The given settings of the ranker on top of `ranker`.
void assign_overrides(std::span<const SettingOverride> overrides, RankerSettings& ranker) {
  for (const SettingOverride& setting : overrides) {
    if (setting.table != RankerSettings::schema().table) continue;
    assign_setting_text(RankerSettings::schema(), &ranker, setting.key, setting.text, setting.origin);
  }
}

/// The network comes from the model, so flags may only repeat it.
void refuse_other_network(const ServiceRequest& request, const ServiceIdentity& identity) {
  ServiceIdentity requested = identity;
  assign_overrides(request.ranker, requested.ranker);
  const std::string difference = identity_difference(identity, requested);
  if (difference.empty()) return;
  throw_error<InvalidArgument>("{} has another network ({}): remove the flags, or choose another model.",
                               request.model, difference);
}

/// A state on a GPU is the same on any GPU of its type.
std::string place_of(const std::string& device) {
  return parse_device(device).on_gpus() ? "cuda" : "cpu";
}

/// The file that the service started from; empty without one, and where a follower of it needs none.
std::string start_file(const ResolvedService& service) {
  if (service.identity.model.empty() || (service.model.empty() && service.model_file.empty())) return "";
  std::string bytes =
      service.model.empty() ? read_own_file(service.model_file).value_or("") : service.model;
  if (model_fingerprint(bytes).hex() != service.identity.model) {
    throw_error<IoError>("{}: This is not the model that the service started from.",
                         service.model_file.string());
  }
  return bytes;
}

/// A service goes on from a snapshot with the settings of that one, but for those that are given.
void take_snapshot(const ServiceRequest& request, const std::string& bytes, ServiceIdentity& identity) {
  const SnapshotFile snapshot = open_snapshot(bytes, request.model);
  const ServiceIdentity earlier = parse_identity(snapshot.identity, request.model);
  identity.cutoff = earlier.cutoff;
  identity.feature_origins = earlier.feature_origins;
  identity.ranker = snapshot.settings;
  assign_overrides(request.ranker, identity.ranker);
  refuse_ignored(identity.ranker, request.ranker);
  const ClickTerms terms = snapshot.settings.click.terms;
  if (identity.ranker.kind == snapshot.settings.kind && identity.ranker.click.terms == terms &&
      !snapshot.names_by_content)
    return;
  throw_error<InvalidArgument>(
      "{}: A service goes on from that of a service, here a clickgp with terms = \"{}\", not from a "
      "Ranker: remove "
      "--ranker and --terms, or start from its model.",
      request.model, name_of(terms));
}

/// A TorchScript file as a model to start from, so that the state folder needs no other file. The ranker
/// would start at the file's parameters anyway.
std::string model_of_file(const RankerSettings& ranker, const FittedNormaliser& normaliser) {
  const auto module = make_tangent_model(with_module_file(ranker.network), normaliser.inputs());
  const std::vector<float> theta = module->first_parameters(PhiloxKey{});
  const ModelMetadata about = {{"normalisation", normaliser_text(normaliser)}};
  if (!row_of(ranker.kind).is_ensemble()) return model_bytes(module->tensors(theta), about);
  const std::vector<std::vector<float>> members(ranker.posterior.members, theta);
  return model_bytes(ensemble_tensors(*module, members), about);
}

ResolvedService new_service(const ServiceRequest& request) {
  ResolvedService described;
  ServiceIdentity& identity = described.identity;
  std::vector<SettingOverride> overrides = request.ranker;
  std::optional<LoadedModel> model;
  if (!request.model.empty()) {
    described.model_file = request.model;
    described.model = read_file(request.model);
    RankerSettings said;
    for (const SettingOverride& setting : overrides) {
      if (setting.key == "trust_code") assign_overrides(std::span(&setting, 1), said);
    }
    const bool trusted = said.trust_code;
    model = parse_model(described.model, request.model, code_if(trusted));
    identity.model = model_fingerprint(described.model).hex();
    if (!request.names_kind && !model->memory)
      overrides.push_back({"ranker", "", "kind", std::string(name_of(RankerKind::kClickGp)), "--model"});
  } else if (request.features < 1 && request.feature_names.empty()) {
    throw InvalidArgument("Without --model, --features D is required.");
  }
  if (model && model->memory) {
    take_snapshot(request, described.model, identity);
  } else {
    identity.ranker = resolve_ranker(overrides, model.has_value());
  }
  FittedNormaliser normaliser;
  if (model) {
    take_network(*model, request.model, identity.ranker);
    refuse_other_network(request, identity);
    normaliser = normaliser_of(request, *model);
  } else {
    normaliser = unfitted_normaliser(
        request.normalise, request.features > 0 ? request.features : std::ssize(request.feature_names));
    if (has_module_file(identity.ranker.network)) {
      described.model_file = identity.ranker.network.module;
      described.model = model_of_file(identity.ranker, normaliser);
      identity.model = model_fingerprint(described.model).hex();
    }
  }
  if (request.features > 0 && request.features != normaliser.features) {
    throw_error<InvalidArgument>("--features is {}, but the model expects {}.", request.features,
                                 normaliser.features);
  }
  identity.features = normaliser.features;
  identity.feature_schema = request.schema;
  identity.feature_names = feature_names_of(request, model ? &*model : nullptr, normaliser.features);
  if (!request.feature_names.empty()) identity.feature_origins = origins_of(request);
  identity.normalisation = normaliser_text(normaliser);
  identity.cutoff = request.cutoff.value_or(identity.cutoff);
  identity.seed = request.seed.value_or(identity.seed);
  identity.normalise_query = request.normalise_query.value_or(identity.normalise_query);
  described.device = request.device.value_or(described.device);
  identity.device = place_of(described.device);
  if (request.groups) identity.groups = parse_service_groups(*request.groups, identity.cutoff);
  check_service_fairness(identity.ranker, identity.groups, identity.cutoff);
  described.is_new = true;
  return described;
}

/// The stored identity with the changes that the command line asks for.
ServiceIdentity requested_identity(const ServiceIdentity& stored, const ServiceRequest& request) {
  ServiceIdentity requested = stored;
  if (!request.model.empty()) requested.model = model_fingerprint(read_file(request.model)).hex();
  if (request.features > 0) requested.features = request.features;
  if (!request.schema.empty()) requested.feature_schema = request.schema;
  if (!request.feature_names.empty()) {
    requested.feature_names = feature_names_text(request.feature_names);
    if (request.schema.empty()) requested.feature_origins = origins_of(request);
  }
  if (!request.normalise.empty() &&
      parse_normaliser(stored.normalisation, "service").kind != parse_normalisation(request.normalise)) {
    requested.normalisation = request.normalise;
  }
  requested.cutoff = request.cutoff.value_or(stored.cutoff);
  requested.seed = request.seed.value_or(stored.seed);
  requested.normalise_query = request.normalise_query.value_or(stored.normalise_query);
  if (request.device) requested.device = place_of(*request.device);
  if (request.groups) requested.groups = parse_service_groups(*request.groups, requested.cutoff);
  const auto of_protocol = [](const SettingOverride& setting) { return setting.table == "protocol"; };
  if (std::any_of(request.ranker.begin(), request.ranker.end(), of_protocol)) {
    // The protocol decides the defaults of all settings that are not given.
    std::vector<SettingOverride> overrides = {
        {"ranker", "", "kind", std::string(name_of(stored.ranker.kind)), "--state"}};
    overrides.insert(overrides.end(), request.ranker.begin(), request.ranker.end());
    requested.ranker =
        resolve_ranker(overrides, !stored.model.empty() && !has_module_file(stored.ranker.network));
    requested.ranker.name = stored.ranker.name;
    if (!stored.model.empty()) {  // these come from the model
      requested.ranker.network = stored.ranker.network;
      requested.ranker.posterior.members = stored.ranker.posterior.members;
    }
    return requested;
  }
  assign_overrides(request.ranker, requested.ranker);
  refuse_ignored(requested.ranker, request.ranker);
  return requested;
}

/// The folder's service with another schema, for a log of the one before.
ResolvedService with_schema(const ServiceIdentity& stored, const ServiceRequest& request,
                            const std::string& place) {
  ServiceRequest others = request;
  others.schema.clear();
  others.feature_names.clear();
  ResolvedService service = resolve_stored(stored, others, place);
  if (!stored.model.empty())
    throw InvalidArgument(
        "--schema: This service started from a model, whose features cannot change: create a new "
        "service by --schema and --import-log.");
  const FeatureSchema schema = FeatureSchema::parse(request.schema, "--schema");
  const std::optional<FeatureSchema> before = schema_of(stored);
  ServiceIdentity& identity = service.identity;
  std::vector<std::string> names = parse_feature_names(stored.feature_names);
  if (names.empty()) {  // positions name the features
    if (std::ssize(schema.columns()) != stored.features)
      throw_error<InvalidArgument>(
          "--schema: The log names no features, so that the first schema must have its {} columns in their "
          "order, not {}.",
          stored.features, schema.columns().size());
    names = schema.columns();
  }
  service.change = schema_change(names, before ? &*before : nullptr, schema);
  if (identity.first_names.empty()) identity.first_names = feature_names_text(names);
  identity.feature_schema = request.schema;
  identity.features = std::ssize(schema.columns());
  identity.feature_names = feature_names_text(schema.columns());
  std::vector<std::string> origins = parse_feature_names(stored.feature_origins);
  std::erase_if(origins, [&](const std::string& origin) {
    const auto& columns = schema.columns();
    const std::string name = origin.substr(0, find_origin(origin));
    const bool counts = schema.takes_numbers() && schema.find(name, false) == nullptr;
    return counts || std::find(columns.begin(), columns.end(), name) == columns.end();
  });
  identity.feature_origins = origins.empty() ? "" : feature_names_text(origins);
  FittedNormaliser normaliser = parse_normaliser(stored.normalisation, "service");
  normaliser.features = identity.features;
  identity.normalisation = normaliser_text(normaliser);
  return service;
}

/// The features of a log's lines without names, where the log is in the state folder of a service.
std::vector<std::string> names_beside(const std::filesystem::path& log) {
  const auto text = read_own_file(log.parent_path() / "service.toml");
  if (!text || log.filename() != "feedback.jsonl") return {};
  const ServiceIdentity identity = parse_identity(*text, log.parent_path().string());
  return identity.first_names.empty() ? named_inputs(identity).names
                                      : parse_feature_names(identity.first_names);
}

void import_whole_lines(const ImportSource& source, NamedInputs names, std::int64_t inputs,
                        bool with_unshown, bool with_groups, ImportedLog& log) {
  if (auto beside = names_beside(source.log); !beside.empty()) names.unnamed = std::move(beside);
  FeatureMap map(names);
  const std::string own = feature_names_text(names.names);
  bool by_position = false;
  TextLines lines = log_lines(source.log);
  FeedbackRecord record;
  std::optional<DocumentVersions> documents;  // once a line needs them
  while (lines.next()) {
    if (lines.blank()) continue;
    const std::string_view line = lines.line();
    const auto refuse = [&](std::int64_t column, const std::string& sentence) {
      throw DataError(source.log.string(), lines.number(), column, sentence);
    };
    if (const auto failure = parse_record(line, record)) {
      const char* advice = log.rounds() > 0 || !check_of(line).empty()
                               ? ""
                               : " Lists that another program has shown need 'olrank log import' first.";
      refuse(failure->column, failure->message + advice);
    }
    if (!record.versions.empty()) {
      if (!documents) documents.emplace(source.log.parent_path() / DocumentVersions::kFile);
      if (const std::string wrong = documents->apply(record); !wrong.empty()) refuse(1, wrong);
    }
    if (record.inputs.empty()) refuse(1, "The line has no 'inputs': name its data set with --import-data.");
    const std::size_t check = line.rfind(",\"check\":");
    if (line.starts_with("{\"round\":") && check != std::string_view::npos && check_of(line).empty())
      refuse(
          static_cast<std::int64_t>(check) + 2,
          "The line's 'check' is no checksum, so nothing tells whether the line is whole: restore it from "
          "a copy, or remove its 'check' if you trust it.");
    by_position = by_position || (record.feature_names.empty() && names.unnamed.empty());
    if (by_position && !record.feature_names.empty() && record.feature_names != own && !names.names.empty())
      refuse(
          1,
          "This line names its features and an earlier one does not: import the log from its state folder, "
          "whose service.toml names them.");
    if (const std::string wrong = map.apply(record); !wrong.empty()) refuse(1, wrong);
    if (record.columns != inputs)
      refuse(1, fmt::format("The line has {} inputs per document, but the model expects {}.",
                            record.columns, inputs));
    if (with_unshown && !record.has_unshown)
      refuse(1, "The line has no 'unshown' documents, which this kind of ranker requires.");
    if (!with_groups) record.groups.clear();
    if (with_groups && record.groups.empty())
      refuse(1, "The line has no 'groups', which a service with --groups requires.");
    if (record.impression.empty()) record.impression = fmt::format("imported-{}", log.rounds() + 1);
    log.write(record);
  }
}

void import_rounds_of_data(const ImportSource& source, const NamedInputs& names,
                           const FittedNormaliser& normaliser, bool with_unshown, ImportedLog& log) {
  ExecutionContext context;
  DataSettings settings;
  settings.source = source.data;
  settings.layout = FeatureLayout::kDense;
  const Dataset train = load_part(settings, source.fold, DataPart::kTrain, context);
  if (train.features() != normaliser.features) {
    throw_error<InvalidArgument>("{} has {} features, but the model expects {}.", source.data,
                                 train.features(), normaliser.features);
  }
  const RecordedFeedback recorded = RecordedFeedback::read(source.log, train);
  const std::int64_t columns = normaliser.inputs();
  std::vector<float> inputs;
  for (std::int64_t round = 0; round < recorded.rounds(); ++round) {
    const RecordedFeedback::Record shown = recorded.at(round);
    const FeatureMatrix raw = train.features_of(shown.query);
    inputs.resize(raw.docs * columns);
    normaliser.apply(raw, inputs.data());
    FeedbackRecord record;
    record.impression = fmt::format("imported-{}", round + 1);
    record.query = std::string(train.qid(shown.query));
    record.clicks.assign(shown.clicks.begin(), shown.clicks.end());
    if (!std::equal(shown.rewards.begin(), shown.rewards.end(), shown.clicks.begin()))
      record.rewards.assign(shown.rewards.begin(), shown.rewards.end());
    record.columns = columns;
    if (!names.names.empty()) record.feature_names = feature_names_text(names.names);
    record.has_unshown = with_unshown;
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

/// Where the service has the features of an arm's model; empty if they are its own, or have no names.
std::vector<std::int64_t> columns_of_arm(const std::string& arm, const ModelScorer& model,
                                         const ServiceIdentity& identity) {
  const std::vector<std::string> own = parse_feature_names(identity.feature_names);
  const std::vector<std::string> names = telling_names(model.model().feature_names);
  std::vector<std::int64_t> columns;
  if (own.empty() || names == own) return columns;
  for (const std::string& name : names) {
    const auto found = std::find(own.begin(), own.end(), name);
    if (found == own.end())
      throw_error<InvalidArgument>("The model of arm '{}' has the feature '{}', which the service lacks.",
                                   arm, excerpt(name));
    columns.push_back(found - own.begin());
  }
  return columns;
}

}  // namespace

ResolvedService resolve_service(const StateFolder& folder, const ServiceRequest& request) {
  const auto stored = folder.identity();
  if (stored && !request.schema.empty() && request.schema != stored->feature_schema)
    return with_schema(*stored, request, folder.path().string());
  if (!stored && !request.suffices()) {
    throw_error<InvalidArgument>(
        "{} contains no service yet: create one with --model FILE, or with --features D and optional "
        "settings.",
        folder.path().string());
  }
  if (!stored) return new_service(request);
  ResolvedService service = resolve_stored(*stored, request, folder.path().string(), true);
  if (!stored->model.empty()) service.model_file = folder.model();
  return service;
}

ResolvedService resolve_stored(const ServiceIdentity& stored, const ServiceRequest& request,
                               const std::string& place, bool may_change) {
  const ServiceIdentity requested = requested_identity(stored, request);
  ResolvedService service;
  service.identity = may_change ? with_changes(stored, requested) : stored;
  const std::string difference = identity_difference(service.identity, requested);
  if (!difference.empty()) {
    // Records have the inputs of the model and the normalisation that they were made with.
    const bool can_import = may_change && requested.features == stored.features &&
                            requested.normalisation == stored.normalisation &&
                            requested.model == stored.model && !requested.groups == !stored.groups;
    throw_error<InvalidArgument>(
        "{} contains a service with other settings ({}): remove the flags to continue it, or {}.", place,
        difference,
        can_import ? fmt::format("let a new folder learn the same feedback with them, by --state NEW "
                                 "--import-log {}/feedback.jsonl",
                                 place)
                   : "choose another folder");
  }
  service.changes = identity_difference(service.identity, stored);
  check_service_fairness(service.identity.ranker, service.identity.groups, service.identity.cutoff);
  service.device = request.device.value_or(stored.device);
  return service;
}

ResolvedArms resolve_arms(const StateFolder& folder, const ArmRequest& request,
                          const ServiceIdentity& identity) {
  std::map<std::string, std::string, std::less<>> files;
  for (const std::string& named : request.models) {
    const std::size_t equals = named.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == named.size())
      throw_error<InvalidArgument>("--arm-model: '{}' must be NAME=FILE.", named);
    files[named.substr(0, equals)] = named.substr(equals + 1);
  }
  ResolvedArms resolved;
  const bool kept = !request.arms;
  if (kept) {
    resolved.plan = folder.arms();
  } else if (*request.arms != "none") {
    resolved.plan = ArmPlan::parse(*request.arms);
  }
  const std::vector<std::string> names =
      resolved.plan ? resolved.plan->model_names() : std::vector<std::string>();
  for (const auto& [name, file] : files) {
    if (kept || std::find(names.begin(), names.end(), name) == names.end())
      throw_error<InvalidArgument>("--arm-model {}={}: --arms names no arm '{}'.", name, file, name);
  }
  for (const std::string& name : names) {
    const auto given = files.find(name);
    if (!kept && given == files.end())
      throw_error<InvalidArgument>(
          "--arms: '{0}' is neither learner nor incumbent: name its file with --arm-model {0}=FILE.", name);
    resolved.bytes.push_back(read_file(kept ? folder.arm_model(name) : model_file_of(given->second)));
    if (!kept) resolved.plan->models.push_back(model_fingerprint(resolved.bytes.back()).hex());
  }
  return stored_arms(resolved.plan, std::move(resolved.bytes), identity,
                     kept ? folder.path().string() : "--arm-model");
}

ResolvedArms stored_arms(const std::optional<ArmPlan>& plan, std::vector<std::string> models,
                         const ServiceIdentity& identity, const std::string& place) {
  ResolvedArms resolved{plan, {}, std::move(models), {}};
  if (!plan) return resolved;
  if (identity.groups)
    throw InvalidArgument(
        "--arms: A service with --groups keeps the exposure of its own lists in balance, and shows no "
        "others.");
  const std::vector<std::string> names = plan->model_names();
  for (std::size_t arm = 0; arm < names.size(); ++arm) {
    if (arm >= resolved.bytes.size() || arm >= plan->models.size() ||
        plan->models[arm] != model_fingerprint(resolved.bytes[arm]).hex())
      throw_error<IoError>("{}: This is not the model of arm '{}'.", place, names[arm]);
    resolved.models.emplace_back(parse_model(
        resolved.bytes[arm], fmt::format("the model of arm '{}'", names[arm]), ModelCode::kRefuse));
    resolved.columns.push_back(columns_of_arm(names[arm], resolved.models.back(), identity));
    if (resolved.columns.back().empty() && resolved.models.back().features() != identity.features) {
      throw_error<InvalidArgument>("The model of arm '{}' expects {} features, but the service has {}.",
                                   names[arm], resolved.models.back().features(), identity.features);
    }
  }
  return resolved;
}

std::optional<FeatureSchema> schema_of(const ServiceIdentity& identity) {
  if (identity.feature_schema.empty()) return std::nullopt;
  return FeatureSchema::parse(identity.feature_schema, "service");
}

NamedInputs named_inputs(const ServiceIdentity& identity) {
  const FittedNormaliser normaliser = parse_normaliser(identity.normalisation, "service");
  NamedInputs inputs{names_of_inputs(parse_feature_names(identity.feature_names), normaliser)};
  if (inputs.names.empty()) return inputs;
  inputs.advice = "leave it out of an import with '-NAME' in --feature-names";
  std::vector<float> lacking(identity.features, 0.0F);
  if (const auto schema = schema_of(identity)) {
    std::vector<std::string> names = std::move(inputs.names);
    inputs = schema->named_columns();
    inputs.names = std::move(names);
    lacking = inputs.defaults;
  }
  if (!identity.first_names.empty()) inputs.unnamed = parse_feature_names(identity.first_names);
  inputs.defaults.resize(normaliser.inputs());
  normaliser.apply({lacking.data(), 1, identity.features}, inputs.defaults.data());
  return inputs;
}

FittedNormaliser requested_normaliser(const ServiceRequest& request) {
  if (request.model.empty()) return unfitted_normaliser(request.normalise, request.features);
  return normaliser_of(request, load_model(request.model, ModelCode::kRefuse));
}

std::string kinds_of_services() {
  std::string names;
  for (const auto& [kind, name] : EnumNames<RankerKind>::values) {
    const RankerKindRow& row = row_of(kind);
    // The lists of duels and of toprank belong to the round that learns from them.
    const bool ranks_ahead = row.bandit != BanditUse::kDuels && kind != RankerKind::kTopRank;
    if (row.needs_labels || row.is_external || !ranks_ahead) continue;
    names += (names.empty() ? "" : "|") + std::string(name);
  }
  return names;
}

std::unique_ptr<OnlineRanker> make_service_ranker(const ResolvedService& service, std::int64_t memory) {
  const ServiceIdentity& identity = service.identity;
  if (row_of(identity.ranker.kind).needs_labels) {
    throw_error<InvalidArgument>(
        "Ranker '{}' learns from true grades, which a service does not have: choose another kind.",
        identity.ranker.name);
  }
  if (row_of(identity.ranker.kind).is_external) {
    throw_error<InvalidArgument>(
        "Ranker '{}' is of kind 'external', which plays experiments only: choose another kind.",
        identity.ranker.name);
  }
  const FittedNormaliser normaliser = parse_normaliser(identity.normalisation, "service");
  RankerSettings settings = identity.ranker;
  const std::string file = start_file(service);
  const std::string origin = service.model_file.string();
  std::optional<SnapshotFile> snapshot;
  if (StateReader::is_state(file)) snapshot.emplace(open_snapshot(file, origin));
  StartModel start;
  if (!file.empty() && !snapshot) start = read_start_model(settings, file, origin, ModelCode::kTrust);
  if (start.module_file) settings.network.module_file = start.module_file;
  const auto keys = TrialKeys::of(static_cast<std::uint64_t>(identity.seed), 1, "service");
  const std::optional<RankerDevice> place = ranker_device_for("--device", service.device, settings);
  if (place && !start.thetas.empty())
    throw InvalidArgument(
        "--device: Rankers that start from a model run on the CPU: remove --device or --model.");
  auto ranker = make_ranker(settings, normaliser.inputs(), keys, identity.cutoff,
                            {.memory = memory,
                             .first_thetas = start.thetas,
                             .device = place ? &*place : nullptr,
                             .click_start = start.of_clicks});
  check_ranker(settings, identity.cutoff);
  if (snapshot) ranker->load(snapshot->state);
  Learner::require_lists_ahead_of_rounds(*ranker);
  return ranker;
}

std::string stopped_service_file(const std::filesystem::path& state, bool with_memory) {
  const StateFolder folder(state, StateFolder::Use::kReading);
  require_service(state);
  const auto identity = folder.identity();
  const ResolvedService resolved = resolve_service(folder, {});
  FileLog log(folder.log(), 1, false, FileLog::Access::kRead);
  const DocumentVersions documents(state / DocumentVersions::kFile);
  Learner learner(
      make_service_ranker(resolved, available_memory()), log,
      {.checkpoint = folder.checkpoint(),
       .identity = print_identity(*identity),
       .inputs = parse_normaliser(identity->normalisation, folder.identity_file().string()).inputs(),
       .exposure = identity->exposure(),
       .names = named_inputs(*identity),
       .documents = &documents,
       .schema = schema_of(*identity)});
  if (const std::uint64_t rest = log.rounds() - learner.restored_round(); rest > 0)
    log_info("Learning the {} after the last checkpoint.", counted(rest, "round"));
  learner.learn_all();
  if (!with_memory) return published_model(learner.model(), model_metadata(*identity));
  return followed_bytes(print_identity(*identity), start_file(resolved), learner.snapshot().bytes);
}

ImportedLog::ImportedLog(const StateFolder& folder, const ImportSource& source,
                         const FittedNormaliser& normaliser, bool with_unshown, bool with_groups,
                         NamedInputs names, bool normalise_query)
    : file_(folder.log()), normalise_query_(normalise_query) {
  if (LogText(folder.log()).end() > 0 || std::filesystem::exists(folder.checkpoint())) {
    throw_error<InvalidArgument>(
        "{} already has a log: import into a new folder, so that no round is learned twice.",
        folder.path().string());
  }
  names.dropped.insert(names.dropped.end(), source.dropped.begin(), source.dropped.end());
  if (source.data.empty()) {
    import_whole_lines(source, names, normaliser.inputs(), with_unshown, with_groups, *this);
  } else {
    if (with_groups) {
      throw InvalidArgument(
          "--import-data brings no groups of documents, which a service with --groups requires: import the "
          "log of a service with groups.");
    }
    import_rounds_of_data(source, names, normaliser, with_unshown, *this);
  }
}

void ImportedLog::write(FeedbackRecord& record) {
  if (normalise_query_) {
    if (std::string text = normalised_query(record.query); !text.empty()) record.query = std::move(text);
  }
  file_.write(record_line(++rounds_, record_body(record)));
}

}  // namespace olrank
