#include "serve/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "core/error.h"

namespace olrank {
namespace {

constexpr std::size_t kLongest = 4096;

}  // namespace

std::string read_token(const std::filesystem::path& file) {
  const auto refuse = [&](std::string_view sentence) {
    throw InvalidArgument(fmt::format("{}: {}", file.string(), sentence));
  };
  std::string token(kLongest + 2, '\0');
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  stream.read(token.data(), std::ssize(token));
  if (stream.bad() || !stream.is_open()) throw IoError("read", file.string(), errno);
  token.resize(stream.gcount());
  if (token.size() > kLongest + 1) refuse(fmt::format("The token file has more than {} bytes.", kLongest));
  if (token.ends_with('\n')) token.pop_back();
  if (token.ends_with('\r')) token.pop_back();
  if (token.find('\n') != std::string::npos)
    refuse("The token file has more than one line; write the token alone into it.");
  while (token.ends_with(' ')) token.pop_back();
  if (token.empty()) refuse("The token file is empty.");
  if (std::any_of(token.begin(), token.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; }))
    refuse("The token has a control character, which no request can send.");
  return token;
}

}  // namespace olrank
