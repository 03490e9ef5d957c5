#include "core/settings/reference_page.h"

#include <fmt/format.h>

#include <algorithm>

namespace olrank {
namespace {

std::string escaped(std::string text) {
  for (std::size_t i = 0; (i = text.find('|', i)) != std::string::npos; i += 2) text.insert(i, "\\");
  return text;
}

std::string allowed(const Setting& setting) {
  if (setting.choices.empty()) {
    std::string text(readable_kind(setting.kind));
    if (const std::string bounds = setting.bounds.text(); !bounds.empty()) text += ", " + bounds;
    return text;
  }
  std::string text;
  for (const std::string& choice : setting.choices) text += (text.empty() ? "`" : ", `") + choice + "`";
  return text;
}

std::string meaning(const Setting& setting) {
  std::string text = setting.help;
  if (!setting.symbol.empty()) text += fmt::format(" ({})", setting.symbol);
  if (!setting.unit.empty()) text += fmt::format(" [{}]", setting.unit);
  return text;
}

std::string flags_of(const Schema& schema, const Setting& setting) {
  const std::string flags = "`" + systematic_flag(schema, setting) + "`";
  return setting.flag.empty() || setting.has_only_flag ? flags
                                                       : fmt::format("`--{}`, {}", setting.flag, flags);
}

}  // namespace

std::string systematic_flag(const Schema& schema, const Setting& setting) {
  if (setting.has_only_flag) return "--" + setting.flag;
  std::string flag = schema.repeated ? setting.key : schema.table + "-" + setting.key;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return "--" + flag;
}

std::string reference_page(std::span<const SchemaWithDefaults> tables) {
  std::string page =
      "# Configuration\n\n"
      "Every setting of `olrank run`, and `[train]` of `olrank train`: its key in a TOML file, its flags "
      "on the command line, its default "
      "and its allowed values. The program generates this page: `olrank info --settings`.\n\n"
      "Set a key in a file, with its flag, or with `--set TABLE.KEY=VALUE`. The command line overrides the "
      "file; on the command line, later settings override earlier ones. `--set ranker.KEY=VALUE` and a "
      "ranker's flags apply to every ranker, `--set ranker.NAME.KEY=VALUE` to one. Where a default depends "
      "on the protocol or the ranker's kind, this page shows that of `recommended` and `olranknet`; "
      "`olrank run "
      "… --print-config` prints the values in effect.\n";
  for (const auto& [schema, defaults] : tables) {
    page += schema->repeated ? fmt::format("\n## `[[{}]]`\n\n", schema->table)
                             : fmt::format("\n## `[{}]`\n\n", schema->table);
    page += schema->help + "\n\n";
    if (schema->file_only) page += "This table has no flags and cannot be changed with `--set`.\n\n";
    page += schema->file_only ? "| key | default | allowed | meaning |\n|---|---|---|---|\n"
                              : "| key | flags | default | allowed | meaning |\n|---|---|---|---|---|\n";
    for (const Setting& setting : schema->settings) {
      page += fmt::format("| `{}` | ", setting.key);
      if (!schema->file_only) page += flags_of(*schema, setting) + " | ";
      page += fmt::format("`{}` | {} | {} |\n", escaped(to_toml(setting.read(defaults))),
                          escaped(allowed(setting)), escaped(meaning(setting)));
    }
  }
  return page;
}

}  // namespace olrank
