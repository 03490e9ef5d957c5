#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "jobs/settings/configuration.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {

/// The configuration that a file with this text gives.
inline Configuration from_text(const std::string& text,
                               const std::vector<SettingOverride>& overrides = {}) {
  const TemporaryFolder folder;
  std::ofstream(folder / "c.toml") << text;
  return resolve_configuration(folder / "c.toml", overrides);
}

/// The message that refuses such a file, from its name "c.toml:" on where it has one.
inline std::string refusal_of(const std::string& text, const std::vector<SettingOverride>& overrides = {}) {
  const std::string message = message_of<InvalidArgument>([&] { from_text(text, overrides); });
  const std::size_t file = message.find("c.toml:");
  return file == std::string::npos ? message : message.substr(file);
}

}  // namespace olrank
