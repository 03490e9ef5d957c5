#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/settings/schema.h"
#include "core/settings/toml_document.h"

namespace olrank {

/// A setting from the command line or the environment. It overrides the file; later overrides win over
/// earlier ones.
struct SettingOverride {
  std::string table;
  std::string ranker;  // the ranker's name; empty: all rankers
  std::string key;
  std::string text;
  std::string origin;  // "--alpha", "--set ranker.alpha", "OLRANK_RANKER_ALPHA"
};

/// Hears of each setting before it is assigned, with the place that gives it. Returns whether to assign it.
using SettingFilter = std::function<bool(const std::string& key, const std::string& origin)>;

/// The sources of settings in increasing precedence: a file, then the command line.
class SettingSources {
 public:
  SettingSources(const TomlDocument& document, std::span<const SettingOverride> overrides)
      : document_(document), overrides_(overrides) {}

  /// Throws InvalidArgument, naming the nearest, for a table that is not among these: `whose` says of whom,
  /// as in "'olrank train' has no table 'trian'.".
  void require_tables(std::span<const std::string> names, std::string_view whose) const;

  /// Assigns the settings of the schema's table to the object.
  void apply(const Schema& schema, void* object, const SettingFilter& filter = {}) const;

  /// Assigns the settings of one table of a file, whatever its name. Settings of earlier versions are
  /// passed over where they have the value that is fixed now.
  static void apply_table(const Schema& schema, void* object, const TomlDocument::Table& table,
                          const SettingFilter& filter = {});
  static void apply_override(const Schema& schema, void* object, const SettingOverride& override) {
    assign_setting_text(schema, object, override.key, override.text, override.origin);
  }

 private:
  const TomlDocument& document_;
  std::span<const SettingOverride> overrides_;
};

/// A name of earlier versions, and the sentence that refuses it.
struct DroppedName {
  std::string_view name;  // as users write it: a flag with its dashes, behind the command that had it alone
  std::string_view sentence;
};

constexpr std::array kDroppedNames = {
    DroppedName{"report --watch",
                "--watch is gone: 'watch olrank report DIR' shows the report of a folder again and again."},
    DroppedName{"report --every",
                "--every is gone with --watch: 'watch -n SECONDS olrank report DIR' repeats a report."},
    DroppedName{"report --figures-format",
                "--figures-format is gone, and figures are SVG: rsvg-convert -f pdf FILE.svg makes a PDF."},
    DroppedName{
        "recommend interview --html",
        "--html is gone: 'recommend interview' asks in the terminal, and --trees FILE has both trees."},
    DroppedName{"rank --explore",
                "--explore is gone: 'rank' writes lists by score, and olrank.Ranker.load of the trial's "
                "folder in Python, like a service, makes lists that explore."},
    DroppedName{"prpo", "kind 'prpo' is gone: take \"pdgd\"."},
    DroppedName{
        "intervention-aware",
        "kind 'intervention-aware' is gone: take \"clickgp\", or learn from a log with 'olrank train "
        "--log FILE --estimator ips'."},
    DroppedName{
        "bench round --trials",
        "--trials is gone: 'olrank run --jobs N' plays several trials at once, and summary.json has "
        "the seconds of each."},
    DroppedName{"eval --latex", "--latex is gone: --json has the figures of every comparison."},
    DroppedName{"tune --per",
                "--per is gone: tune each fold and user by itself, with --fold and --clicks."},
    DroppedName{"list = sample", "list = \"sample\" is gone: clickgp draws its lists from its posterior."},
    DroppedName{"list = ucb", "list = \"ucb\" is gone: clickgp explores by a draw of its posterior."},
    DroppedName{"lambdarank-step", "kind 'lambdarank-step' is gone: take \"lambdarank-labels\"."},
    DroppedName{"--share-members",
                "--share-members is gone, as an ensemble trains in one process: use --shard I/N, or "
                "olrank.run(executor=...) in Python, to spread trials over processes and machines."},
    DroppedName{
        "last-layer",
        "covariance 'last-layer' is gone: take \"diagonal\", or \"inducing\" where directions matter."},
    DroppedName{
        "unit-blocks",
        "covariance 'unit-blocks' is gone: take \"diagonal\", or \"inducing\" where directions matter."},
};

/// A setting of earlier versions. Files may still have it with the value that is fixed now.
struct DroppedSetting {
  std::string_view table;
  std::string_view key;
  std::string_view fixed;     // as TOML
  std::string_view sentence;  // follows the setting's name
};

inline constexpr std::array kDroppedSettings = {
    DroppedSetting{"data", "features_as", "\"float32\"",
                   "is gone, and features are float32: bound their memory with max_memory."},
    DroppedSetting{"ranker", "loss_kind", "\"pairs\"",
                   "is gone: networks learn from pairs of clicks; olrank train has the losses of lists."},
    DroppedSetting{
        "ranker", "history_limit", "0",
        "is gone, and the history keeps all pairs: retrain = \"growth\" bounds what a round costs."},
    DroppedSetting{"ranker", "module_state", "\"refuse\"",
                   "is gone: write a module whose forward() changes no buffer and no attribute."},
    DroppedSetting{"train", "module_state", "\"refuse\"",
                   "is gone: write a module whose forward() changes no buffer and no attribute."},
    DroppedSetting{"ranker", "slack", "0.0",
                   "is gone: a larger alpha asks for more evidence before an order is certain."},
    DroppedSetting{"ranker", "noise_subgaussian", "0.5",
                   "is fixed at 0.5, as clicks lie in [0, 1]: scale the bound with c1."},
    DroppedSetting{"ranker", "temperature", "3.0",
                   "is fixed at 3, the value of probabilistic interleaving."},
    DroppedSetting{"ranker", "refresh_rounds", "10",
                   "is gone with the kind intervention-aware: remove it."},
    DroppedSetting{"ranker", "exposure_clip", "1.2", "is gone with the kind prpo: remove it."},
    DroppedSetting{"groups", "examination_lists", "100000",
                   "is fixed at 100000 lists: give the probabilities with examination."},
    DroppedSetting{"groups", "group_a", "\"at-most\"",
                   "is gone, and A has the values of at most the first threshold: give beta for A to B."},
    DroppedSetting{"recommend", "pairs_per_rating", "2", "is fixed at 2."},
    DroppedSetting{"recommend", "finalists", "5", "is fixed at 5."},
    DroppedSetting{"recommend", "descent_steps", "30", "is fixed at 30."},
    DroppedSetting{"recommend", "descent_step_size", "0.1", "is fixed at 0.1."},
    DroppedSetting{"recommend", "start_passes", "10", "is fixed at 10."},
    DroppedSetting{"study", "calibration_alphas", "[0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0]",
                   "is fixed at 0.001, 0.003, 0.01 and so on to 3."},
    DroppedSetting{"ranker", "training_blocks", "0",
                   "is gone, as the training kernel takes the whole GPU: remove it."},
    DroppedSetting{"ranker", "member_schedule", "\"auto\"",
                   "is gone, as a GPU trains members side by side in every kernel: remove it."},
    DroppedSetting{"ranker", "precision", "\"float32\"", "is gone, as a GPU trains in float32: remove it."},
    DroppedSetting{"ranker", "stop_gradient_norm", "0.0",
                   "is gone: set steps, and a linear ranker stops at 1e-06 as before."},
    DroppedSetting{"ranker", "stop_gradient_norm", "1e-06",
                   "is gone: set steps, and a linear ranker stops at 1e-06 as before."},
};

/// Finds a dropped setting: with `fixed`, only one that had this value.
inline const DroppedSetting* dropped_setting(std::string_view table, std::string_view key,
                                             std::string_view fixed = {}) {
  for (const DroppedSetting& dropped : kDroppedSettings) {
    if (dropped.table == table && dropped.key == key && (fixed.empty() || dropped.fixed == fixed))
      return &dropped;
  }
  return nullptr;
}

/// The sentence that refuses a dropped value or flag (last-layer, --slack, --data-features-as); none for
/// any other name.
inline std::optional<std::string> dropped_sentence(std::string_view name) {
  for (const DroppedName& dropped : kDroppedNames) {
    if (dropped.name == name) return std::string(dropped.sentence);
  }
  for (const DroppedSetting& dropped : kDroppedSettings) {
    std::string key = "--" + std::string(dropped.key);
    std::string whole = "--" + std::string(dropped.table) + "-" + std::string(dropped.key);
    for (std::string* flag : {&key, &whole}) {
      for (std::size_t i = 2; i < flag->size(); ++i) {
        if ((*flag)[i] == '_') (*flag)[i] = '-';
      }
      if (*flag == name) return std::string(name) + " " + std::string(dropped.sentence);
    }
  }
  return std::nullopt;
}

}  // namespace olrank
