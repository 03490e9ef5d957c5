#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace olrank {

/// A setting of earlier versions. Files that the program wrote may still hold it with the value that is
/// fixed now.
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
};

inline const DroppedSetting* dropped_setting(std::string_view table, std::string_view key) {
  for (const DroppedSetting& dropped : kDroppedSettings) {
    if (dropped.table == table && dropped.key == key) return &dropped;
  }
  return nullptr;
}

/// The sentence for a flag of earlier versions: --slack, --data-features-as.
inline std::optional<std::string> dropped_flag_sentence(std::string_view flag) {
  for (const DroppedSetting& dropped : kDroppedSettings) {
    std::string key = "--" + std::string(dropped.key);
    std::string whole = "--" + std::string(dropped.table) + "-" + std::string(dropped.key);
    for (std::string* name : {&key, &whole}) {
      for (std::size_t i = 2; i < name->size(); ++i) {
        if ((*name)[i] == '_') (*name)[i] = '-';
      }
      if (*name == flag) return std::string(flag) + " " + std::string(dropped.sentence);
    }
  }
  return std::nullopt;
}

}  // namespace olrank
