#include "recommend/review_reader.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/byte_stream.h"
#include "core/io/descriptor.h"
#include "core/io/json_stream.h"
#include "recommend/review_scanner.h"

namespace olrank {
namespace {

constexpr std::size_t kReadPiece = std::size_t{1} << 16;
constexpr std::size_t kLongestReviewLine = std::size_t{64} << 20;

Reviews read_review_stream(ByteStream& stream, const std::string& name, double highest_rating) {
  Reviews reviews;
  reviews.highest_rating = highest_rating;
  ReviewScanner scanner(name, reviews);
  std::vector<char> buffer(kReadPiece);
  std::size_t held = 0;  // bytes of an unfinished line at the beginning of the buffer
  std::int64_t line = 0;
  for (;;) {
    if (held == buffer.size()) {
      if (held >= kLongestReviewLine)
        throw DataError(name, line + 1, 0, "A line must not be longer than 64 MiB.");
      buffer.resize(2 * buffer.size());
    }
    const std::size_t count = stream.read({buffer.data() + held, buffer.size() - held});
    if (count == 0) break;
    const char* begin = buffer.data();
    const char* const end = begin + held + count;
    const char* search = begin + held;
    while (const void* found = std::memchr(search, '\n', end - search)) {
      const char* const line_end = static_cast<const char*>(found);
      scanner.read_line({begin, static_cast<std::size_t>(line_end - begin)}, ++line);
      begin = search = line_end + 1;
    }
    held = end - begin;
    std::memmove(buffer.data(), begin, held);
  }
  if (held > 0) scanner.read_line({buffer.data(), held}, ++line);
  if (reviews.size() == 0) throw DataError(name, 0, 0, "This file has no reviews.");
  return reviews;
}

}  // namespace

Reviews read_reviews(const std::filesystem::path& file, double highest_rating) {
  const std::string name = file.string();
  const Descriptor descriptor(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.is_open()) throw IoError("read", name, errno);
  try {
    const std::unique_ptr<ByteStream> stream = descriptor_stream(descriptor.number(), name);
    return read_review_stream(*stream, name, highest_rating);
  } catch (const BrokenStream& broken) {
    throw DataError(name, 0, 0, broken.what());
  }
}

Reviews parse_reviews(std::string_view text, const std::string& name, double highest_rating) {
  const std::unique_ptr<ByteStream> stream = decompressed(memory_source(text), Compression::kNone);
  return read_review_stream(*stream, name, highest_rating);
}

std::string review_line(const Reviews& reviews, std::int64_t review) {
  std::string line = "{\"user\":";
  append_json_string(line, reviews.names.users[reviews.user[review]]);
  line += ",\"item\":";
  append_json_string(line, reviews.names.items[reviews.item[review]]);
  fmt::format_to(std::back_inserter(line), ",\"rating\":{},\"opinions\":[", reviews.rating[review]);
  bool first = true;
  for (const Mention& mention : reviews.mentions_of(review)) {
    line += first ? "[" : ",[";
    first = false;
    append_json_string(line, reviews.names.features[mention.feature]);
    line += ',';
    append_json_string(line, reviews.names.phrases[mention.phrase]);
    line += mention.sentiment > 0 ? ",1]" : ",-1]";
  }
  line += "]}\n";
  return line;
}

void write_reviews(const Reviews& reviews, const std::filesystem::path& file) {
  AtomicFile target(file);
  const std::unique_ptr<Compressor> compressor = Compressor::make(
      compression_of_name(file.string()), [&](std::string_view bytes) { target.write(bytes); });
  std::string lines;
  for (std::int64_t review = 0; review < reviews.size(); ++review) {
    lines += review_line(reviews, review);
    if (lines.size() < kReadPiece && review + 1 < reviews.size()) continue;
    compressor->write(lines);
    lines.clear();
  }
  compressor->finish();
  target.commit();
}

}  // namespace olrank
