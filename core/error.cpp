#include "core/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "core/text/message_text.h"

namespace olrank {
namespace {

std::string located(const std::string& file, std::int64_t line, std::int64_t column,
                    const std::string& sentence) {
  if (line <= 0) return fmt::format("{}: {}", file, sentence);
  if (column <= 0) return fmt::format("{}:{}: {}", file, line, sentence);
  return fmt::format("{}:{}:{}: {}", file, line, column, sentence);
}

const char* way_out(std::string_view action, int error_number) {
  const bool denied = error_number == EACCES || error_number == EPERM;
  if (denied && (action.starts_with("read") || action.starts_with("open")))
    return " Make it readable for you (chmod), or run as its owner.";
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return " Free some space or choose another folder.";
    case EFBIG:
      return " Raise the limit on the size of files (ulimit -f).";
    case EACCES:
    case EPERM:
    case EROFS:
      return " Choose a folder with write permission, or change its permissions.";
    case ENOENT:
    case ENOTDIR:
      return " Check the path.";
    default:
      return "";
  }
}

}  // namespace

DataError::DataError(const std::string& file, std::int64_t line, std::int64_t column,
                     const std::string& sentence)
    // The sentence may hold names of any length from the file.
    : Error(excerpt(located(file, line, column, sentence), 800, 300)), line_(line), column_(column) {}

IoError::IoError(const std::string& action, const std::string& path, int error_number)
    : Error(fmt::format("Cannot {} '{}': {}.{}", action, path,
                        std::generic_category().message(error_number), way_out(action, error_number))) {}

NotBuiltWithCuda::NotBuiltWithCuda(const std::string& what)
    : Error(fmt::format(
                "{} requires a GPU, but this olrank was built without CUDA. Build it with OLRANK_CUDA=ON, "
                "or use --device cpu.",
                what),
            ExitCode::kWrongUsage) {}

ExitCode exit_code_of(const std::exception& error) noexcept {
  const auto* ours = dynamic_cast<const Error*>(&error);
  return ours != nullptr ? ours->exit_code() : ExitCode::kFailed;
}

}  // namespace olrank
