#include "core/ranks/rank_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/runtime/interrupt.h"

namespace olrank {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

RankGroup::RankGroup(int rank, int ranks, std::unique_ptr<RankTransport> transport)
    : rank_(rank), ranks_(ranks), transport_(std::move(transport)) {}

RankGroup::Header RankGroup::header_of(int rank) const {
  Header header;
  std::memcpy(&header, received_.data() + rank * std::ssize(sent_), sizeof header);
  return header;
}

std::span<const std::byte> RankGroup::gathered(int rank) const {
  return std::span(received_).subspan(rank * sent_.size(), sent_.size()).subspan(sizeof(Header));
}

void RankGroup::exchange(std::span<const std::byte> mine) {
  const Header header{++calls_, mine.size(), InterruptGuard::requested(), failure_.empty() ? 0 : 1};
  sent_.resize(sizeof header + mine.size());
  std::memcpy(sent_.data(), &header, sizeof header);
  std::copy(mine.begin(), mine.end(), sent_.begin() + sizeof header);
  received_.resize(ranks_ * sent_.size());
  transport_->all_gather(sent_, received_);
  for (int rank = 0; rank < ranks_; ++rank) {
    const Header theirs = header_of(rank);
    if (theirs.call != header.call || theirs.bytes != header.bytes) {
      throw Error(
          fmt::format("Rank {} is at exchange {} with {} bytes, rank {} at exchange {} with {}: the ranks "
                      "have come out "
                      "of step. Continue from the last checkpoint with --resume, and report this as a bug.",
                      rank, theirs.call, theirs.bytes, rank_, header.call, header.bytes));
    }
    if (stop_signal_ == 0) stop_signal_ = theirs.signal;
  }
}

void RankGroup::all_gather(std::span<const std::byte> mine) {
  exchange(mine);
  bool failed = false;
  for (int rank = 0; rank < ranks_; ++rank) failed = failed || header_of(rank).failed != 0;
  if (!failed) return;
  const std::vector<std::string> sentences = exchange_texts(std::exchange(failure_, {}));
  throw NumericError(*std::find_if(sentences.begin(), sentences.end(),
                                   [](const std::string& sentence) { return !sentence.empty(); }));
}

std::vector<std::string> RankGroup::exchange_texts(const std::string& mine) {
  const std::uint64_t size = mine.size();
  exchange(std::as_bytes(std::span(&size, 1)));
  std::vector<std::uint64_t> sizes(ranks_);
  for (int rank = 0; rank < ranks_; ++rank)
    std::memcpy(&sizes[rank], gathered(rank).data(), sizeof sizes[rank]);
  std::string padded = mine;
  padded.resize(*std::max_element(sizes.begin(), sizes.end()));
  exchange(bytes_of(padded));
  std::vector<std::string> texts;
  texts.reserve(ranks_);
  for (int rank = 0; rank < ranks_; ++rank)
    texts.emplace_back(reinterpret_cast<const char*>(gathered(rank).data()), sizes[rank]);
  return texts;
}

std::vector<std::string> RankGroup::all_gather_text(const std::string& mine) {
  all_gather({});
  return exchange_texts(mine);
}

int RankGroup::announce(const Error* error) {
  std::string mine;
  if (error != nullptr)
    mine = static_cast<char>('0' + static_cast<int>(error->exit_code())) + std::string(error->what());
  const std::vector<std::string> texts = exchange_texts(mine);
  for (int rank = 0; rank < ranks_; ++rank) {
    if (texts[rank].empty()) continue;
    announced_code_ = static_cast<ExitCode>(texts[rank].front() - '0');
    announced_ = texts[rank].substr(1);
    return rank;
  }
  return -1;
}

}  // namespace olrank
