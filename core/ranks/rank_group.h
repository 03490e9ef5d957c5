#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"

namespace olrank {

/// Another rank has ended or cannot be reached.
class RankLost : public Error {
 public:
  using Error::Error;
};

/// Carries bytes between ranks.
class RankTransport {
 public:
  RankTransport() = default;
  virtual ~RankTransport() = default;
  RankTransport(const RankTransport&) = delete;
  RankTransport& operator=(const RankTransport&) = delete;

  /// Fills `all` with the bytes of every rank, in order of ranks; every rank sends the same number. Throws
  /// RankLost.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
};

/// Processes that play one run together, numbered as torchrun does. Every rank makes the same calls in the
/// same order, so that a gather doubles as agreement: on signals, on failures and on the order itself.
/// For one thread.
class RankGroup {
 public:
  RankGroup(int rank, int ranks, std::unique_ptr<RankTransport> transport);

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  /// Whether this rank writes the files.
  bool is_first() const { return rank_ == 0; }

  /// Gathers the same number of bytes from every rank. Throws NumericError on all of them if one had called
  /// fail().
  void all_gather(std::span<const std::byte> mine);
  /// What `rank` sent to the latest all_gather().
  std::span<const std::byte> gathered(int rank) const;
  /// A text of any length from every rank.
  std::vector<std::string> all_gather_text(const std::string& mine);
  /// The text of rank 0.
  std::string text_of_first(const std::string& mine) { return all_gather_text(mine).front(); }

  /// Makes the next all_gather() a NumericError on every rank, with the sentence of the first that failed.
  void fail(const std::string& sentence) { failure_ = sentence; }
  /// Calls `action`. Every rank throws the error of the first rank on which it threw one.
  template <class Action>
  void together(const Action& action) {
    try {
      action();
    } catch (const Error& error) {
      announce(&error);
      throw Error(announced_, announced_code_);
    }
    if (announce(nullptr) >= 0) throw Error(announced_, announced_code_);
  }
  /// The signal that asks to stop, as of the latest gather: the same on every rank.
  int stop_signal() const { return stop_signal_; }

 private:
  /// In front of every rank's bytes.
  struct Header {
    std::uint64_t call = 0;
    std::uint64_t bytes = 0;
    std::int32_t signal = 0;
    std::int32_t failed = 0;
  };
  void exchange(std::span<const std::byte> mine);
  Header header_of(int rank) const;
  std::vector<std::string> exchange_texts(const std::string& mine);
  /// Returns the first rank with an error, -1 if there is none.
  int announce(const Error* error);

  int rank_;
  int ranks_;
  std::unique_ptr<RankTransport> transport_;
  std::uint64_t calls_ = 0;
  int stop_signal_ = 0;
  std::string failure_;
  std::string announced_;
  ExitCode announced_code_ = ExitCode::kFailed;
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;
};

}  // namespace olrank
