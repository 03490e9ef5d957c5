#include "models/files/snapshot_file.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "core/settings/enum_names.h"
#include "core/settings/setting_sources.h"
#include "core/settings/toml_document.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "core/version.h"
#include "models/ranker_kinds.h"

namespace olrank {
namespace {

constexpr std::string_view kRestart = "take the snapshot again";

/// The tables of a service's settings, or of a ranker's.
void read_settings(const std::string& toml, const std::string& origin, SnapshotFile& file) {
  for (const TomlDocument::Table& table : parse_toml(toml, origin).tables) {
    if (table.name == RankerSettings::schema().table)
      SettingSources::apply_table(RankerSettings::schema(), &file.settings, table);
    for (const TomlDocument::Entry& entry : table.entries) {
      const auto* text = std::get_if<std::string>(&entry.value);
      if (entry.key == "normalisation" && text) file.normaliser = parse_normaliser(*text, origin);
      if (entry.key == "feature_names" && text) file.feature_names = *text;
    }
  }
}

}  // namespace

void check_snapshot_format(StateReader& state, const std::string& origin, std::string_view remedy) {
  const auto format = state.get_one<std::int64_t>("snapshot.format");
  const std::string writer = state.get_text("snapshot.version");
  if (format == kSnapshotFormat) return;
  throw_error<IoError>(
      "{}: olrank {} made this model in format {}, but this is olrank {}, which reads format {}: {}.",
      origin, excerpt(writer), format, version(), kSnapshotFormat, remedy);
}

std::unique_ptr<OnlineRanker> SnapshotFile::ranker() {
  const TrialKeys keys;
  const RankerDependencies dependencies;
  auto made = row_of(settings.kind).make({settings, normaliser.inputs(), keys, 1, dependencies});
  made->load(state);
  return made;
}

SnapshotFile open_snapshot(std::string bytes, const std::string& origin) {
  const auto most_inputs = static_cast<std::int64_t>(bytes.size() / sizeof(double));
  SnapshotFile file{StateReader(std::move(bytes), origin, kRestart)};
  if (file.state.is_next("follow.identity")) {
    file.identity = file.state.get_text("follow.identity");
    file.start_model = file.state.get_text("follow.model");
    std::string of_lists = file.state.get_text("follow.snapshot");
    file.state.require_end();
    file.state = StateReader(std::move(of_lists), origin, kRestart);
    check_snapshot_format(file.state, origin, "take it with this version, or use that one");
    file.round = file.state.get_one<std::uint64_t>("snapshot.round");
    read_settings(file.identity, origin, file);
  } else if (file.state.is_next("library.settings")) {
    file.names_by_content = true;
    read_settings(file.state.get_text("library.settings"), origin, file);
    file.normaliser = parse_normaliser(file.state.get_text("library.normalise"), origin);
    if (file.state.is_next("library.feature_names"))
      file.feature_names = file.state.get_text("library.feature_names");
    file.state.skip_to("library.round");
    file.round = file.state.get_one<std::uint32_t>("library.round");
  } else {
    file.state.fail(
        "This is a checkpoint: 'olrank export --state DIR --to snapshot' makes a snapshot of it.");
  }
  if (file.settings.kind != RankerKind::kClickGp)
    file.state.fail(
        "Only a clickgp remembers documents: take the model, by GET /v1/model, 'olrank export' or "
        "save_model().");
  if (!file.names_by_content) file.state.skip_to("clickgp.learned");
  // Each input has a weight of eight bytes.
  if (file.normaliser.inputs() > most_inputs) file.state.fail("Its settings are not those of its state.");
  return file;
}

LoadedModel model_of_snapshot(std::string bytes, const std::string& origin, ModelCode code) {
  SnapshotFile file = open_snapshot(std::move(bytes), origin);
  file.settings.trust_code = file.settings.trust_code && code == ModelCode::kTrust;
  const std::unique_ptr<OnlineRanker> ranker = file.ranker();
  ModelMetadata about = {{"normalisation", normaliser_text(file.normaliser)},
                         {"ranker", std::string(name_of(file.settings.kind))},
                         {"rounds", fmt::format("{}", file.round)}};
  if (!file.feature_names.empty()) about.emplace_back("feature_names", file.feature_names);
  LoadedModel model = parse_model(model_bytes(ranker->model(), about), origin, code);
  model.memory = ranker->freeze();
  model.names_by_content = file.names_by_content;
  return model;
}

}  // namespace olrank
