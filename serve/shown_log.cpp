#include "serve/shown_log.h"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>

#include "core/data/text_blocks.h"
#include "core/error.h"
#include "core/io/byte_stream.h"
#include "core/io/descriptor.h"

namespace olrank {

void for_each_shown_list(const std::string& log, const std::function<void(const LoggedLine&)>& take) {
  constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
  constexpr std::size_t kLongestLine = std::size_t{256} << 20;
  const std::filesystem::path named = log;
  const std::string file = std::filesystem::is_directory(named) ? named / "feedback.jsonl" : named;
  const Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.is_open()) throw IoError("open", file, errno);
  const auto blocks =
      TextBlocks::of_stream(descriptor_stream(descriptor.number(), file), kBlockBytes, kLongestLine);
  FeedbackRecord record;
  std::int64_t number = 0;
  for (TextBlock block; blocks->next(block);) {
    if (block.failure) throw DataError(file, number + 1, 1, *block.failure);
    for (std::string_view rest = block.text; !rest.empty();) {
      const std::size_t end = rest.find('\n');
      const std::string_view line = rest.substr(0, end);
      ++number;
      rest.remove_prefix(end + 1);
      if (line.empty() || line.starts_with("{\"config\":")) continue;  // the first line of a trace
      if (const auto failure = parse_record(line, record))
        throw DataError(file, number, failure->column, failure->message);
      take({record, file, number});
    }
  }
}

}  // namespace olrank
