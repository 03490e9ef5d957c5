#include "apps/help_formatter.h"

#include <unistd.h>

#include <algorithm>

#include "core/runtime/terminal.h"
#include "core/text/columns.h"

namespace olrank {
namespace {

constexpr int kWidestHelp = 100;
constexpr int kNarrowestHelp = 48;
constexpr std::int64_t kNames = 30;  // columns in front of the descriptions

}  // namespace

int help_columns() {
  const int columns = terminal_columns(STDOUT_FILENO);
  return columns == 0 ? kWidestHelp : std::clamp(columns, kNarrowestHelp, kWidestHelp);
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrapped(Formatter::make_description(app), columns_);
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  return wrapped(Formatter::make_usage(app, std::move(name)), columns_, 2);
}

std::string HelpFormatter::make_subcommand(const CLI::App* sub) const {
  return entry(sub->get_display_name(true), sub->get_description());
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return entry(make_option_name(option, is_positional) + make_option_opts(option),
               make_option_desc(option));
}

std::string HelpFormatter::entry(const std::string& name, const std::string& description) const {
  std::string text = wrapped("  " + name, columns_, 6);
  if (description.empty()) return text + "\n";
  const bool own_line = columns_of(name) + 2 >= kNames || text.find('\n') != std::string::npos;
  const std::string blank(kNames, ' ');
  text = own_line ? text + "\n" + blank : padded_right(text, kNames);
  std::string lines = wrapped(description, columns_ - kNames);
  for (std::size_t at = 0; (at = lines.find('\n', at)) != std::string::npos; at += blank.size() + 1)
    lines.insert(at + 1, blank);
  return text + lines + "\n";
}

}  // namespace olrank
