#include "core/data/letor_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <vector>

#include "core/data/doc_table.h"
#include "core/data/letor_blocks.h"
#include "core/data/letor_parser.h"
#include "core/data/query_weights.h"
#include "core/io/atomic_file.h"
#include "core/io/byte_stream.h"
#include "core/io/text_lines.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::int64_t kLeastSideBytes = 64 << 20;

/// Counts the bytes that a block takes besides its values until the end of reading: its text of names, and
/// what a run of documents and the ID of a query cost in tables.
std::int64_t side_bytes_of(const LetorBlock& block) {
  constexpr std::int64_t kPerQuery = 128;
  return block.names.bytes() + block.docs() + kPerQuery * std::ssize(block.names.qid_ends);
}

/// Takes parsed blocks in any order and looks at them in the order of the text, so that what it reports is
/// the first mistake of the file whichever thread met one first.
class ParsedBlocks {
 public:
  /// `text_bytes` of the source, 0 if they are unknown.
  ParsedBlocks(std::string name, const LetorOptions& options, double text_bytes)
      : name_(std::move(name)), options_(options), most_bytes_(options.most_bytes_of(text_bytes)) {}

  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  void add(std::int64_t number, LetorBlock block) {
    const std::lock_guard lock(mutex_);
    const auto at = static_cast<std::size_t>(number);
    if (at >= blocks_.size()) blocks_.resize(at + 1);
    store(block);
    blocks_[at] = std::move(block);
    while (!failure_ && next_ < blocks_.size() && blocks_[next_]) look_at(*blocks_[next_++]);
  }

  DocTable table(ThreadPool& pool) {
    if (failure_) throw DataError(name_, failure_->place.line, failure_->place.column, failure_->sentence);
    refuse_wide();
    seen_.check_end(name_);
    return move_together(pool);
  }

  const MissingValues& missing() const { return seen_.missing; }

 private:
  void look_at(const LetorBlock& block) {
    if (block.failure) return fail(seen_.in_text(block.failure->place), block.failure->sentence);
    seen_.add(block);
    text_bytes_ += block.text_bytes;
    nonzeros_ += static_cast<double>(block.nonzeros);
    side_bytes_ += side_bytes_of(block);
    named_ |= !block.names.doc_ends.empty();
    const double bytes = bytes_of_features();
    if (side_bytes_ > std::max(options_.max_bytes, kLeastSideBytes)) {
      fail({seen_.lines, 0},
           fmt::format("The names of the first {} documents and their queries need {} bytes, but "
                       "--max-memory allows {}. Raise --max-memory.",
                       seen_.docs, side_bytes_, options_.max_bytes));
    } else if (bytes > (is_sparse() ? static_cast<double>(options_.max_bytes) : most_bytes_)) {
      fail(seen_.widest,
           fmt::format("With feature {}, the {} of the first {} documents {} {:.0f} bytes, but "
                       "--max-memory allows {}. Raise --max-memory, or remove or renumber features.",
                       seen_.largest_feature, is_sparse() ? "sparse matrix and model" : "dense matrix",
                       seen_.docs, is_sparse() ? "need" : "needs", bytes, options_.max_bytes));
    }
  }

  /// Moves the values to a file if they and those of earlier blocks exceed the limit.
  void store(LetorBlock& block) {
    const std::size_t bytes = block.runs.size();
    stored_bytes_ += static_cast<std::int64_t>(bytes);
    if (options_.store == nullptr || stored_bytes_ <= options_.store->left() || stopped_) return;
    constexpr std::size_t kPiece = std::size_t{16} << 20;
    if (room_.size() < bytes) {
      pieces_.push_back(options_.store->take_in_file(std::max(kPiece, bytes)));
      room_ = pieces_.back().as<std::byte>();
    }
    std::memcpy(room_.data(), block.runs.data(), bytes);
    block.moved = room_.first(bytes);
    room_ = room_.subspan(bytes);
    block.runs.release();
  }

  /// Both factors are below 2^40, so only the product with the size of a value needs care.
  double dense_bytes() const {
    return static_cast<double>(seen_.docs) * static_cast<double>(seen_.largest_feature) * sizeof(float);
  }

  /// Data are sparse, too, where a dense matrix of them would be refused for its zeros.
  bool is_sparse() const {
    if (options_.layout != FeatureLayout::kAuto) return options_.layout == FeatureLayout::kSparse;
    return prefers_sparse(static_cast<double>(seen_.docs), seen_.largest_feature, nonzeros_) ||
           is_too_wide(dense_bytes(), static_cast<double>(text_bytes_));
  }

  double bytes_of_features() const {
    return is_sparse() ? sparse_bytes(static_cast<double>(seen_.docs), seen_.largest_feature, nonzeros_)
                       : dense_bytes();
  }

  void refuse_wide() const {
    const double bytes = bytes_of_features();
    const bool too_wide = options_.refuse_wide && is_too_wide(bytes, static_cast<double>(text_bytes_));
    if (too_wide || (is_sparse() && seen_.largest_feature > kMostSparseColumns)) {
      throw_data_error(
          name_, seen_.widest.line, seen_.widest.column,
          "With feature {}, {} documents of {} of text become {} of {}. Renumber the features{}.",
          seen_.largest_feature, seen_.docs, readable_bytes(static_cast<double>(text_bytes_)),
          is_sparse() ? "a sparse matrix and a model" : "a dense matrix", readable_bytes(bytes),
          seen_.largest_feature > kMostSparseColumns
              ? ""
              : ", or give --max-memory to read the data as they are");
    }
  }

  void fail(TextPlace place, const std::string& sentence) {
    failure_ = LetorBlock::Failure{place, sentence};
    stopped_ = true;
  }

  /// Each block's rows go to their place in the matrix and the block away, so that the two together take
  /// little more than one of them.
  DocTable move_together(ThreadPool& pool) {
    DocTable table;
    table.features = seen_.largest_feature;
    const auto features = static_cast<std::size_t>(seen_.largest_feature);
    if (is_sparse()) {
      table.rows.emplace();
    } else {
      table.values = feature_memory(options_.store.get(), seen_.docs, seen_.largest_feature);
    }
    table.grades.reserve(seen_.docs);
    if (named_) table.name_ends.reserve(seen_.docs);
    std::size_t name_bytes = 0;
    std::size_t query_runs = 0;
    for (const std::optional<LetorBlock>& block : blocks_) {
      name_bytes += block->names.doc_text.size();
      query_runs += block->names.query_runs.size();
    }
    table.name_text.reserve(name_bytes);
    table.query_runs.reserve(query_runs);
    QueryNumbers queries;
    std::vector<std::size_t> first_doc;
    for (std::optional<LetorBlock>& block : blocks_) {
      first_doc.push_back(table.grades.size());
      append_names(*block, queries, table);
    }
    table.qids = queries.take_names();
    if (table.rows) {
      for (std::optional<LetorBlock>& block : blocks_) {
        append_rows(*block, *table.rows);
        block.reset();
      }
      return table;
    }
    float* const values = table.values.as<float>().data();
    pool.run(std::ssize(blocks_), [&](std::int64_t number, int) {
      const auto at = static_cast<std::size_t>(number);
      write_rows(*blocks_[at], seen_.largest_feature, values + first_doc[at] * features);
      blocks_[at].reset();
    });
    return table;
  }

  static void append_names(LetorBlock& block, QueryNumbers& queries, DocTable& table) {
    block.append_doc_names(table.grades.size(), table.name_text, table.name_ends);
    table.grades.insert(table.grades.end(), block.grades.begin(), block.grades.end());
    const PackedTexts qids = block.names.qids();
    std::vector<std::uint32_t> number_of;
    for (std::size_t query = 0; query < qids.size(); ++query)
      number_of.push_back(queries.number_of(qids[query]));
    for (const QueryRun& run : block.names.query_runs)
      append_run(table.query_runs, {number_of[run.query], run.docs});
    block.names = {};
  }

  std::string name_;
  LetorOptions options_;
  double most_bytes_;
  std::mutex mutex_;
  std::atomic<bool> stopped_{false};
  std::vector<std::optional<LetorBlock>> blocks_;
  std::size_t next_ = 0;  // to be looked at
  std::int64_t stored_bytes_ = 0;
  std::vector<MappedMemory> pieces_;  // of files, for values beyond the limit
  std::span<std::byte> room_;         // what is left of the last one
  SeenBlocks seen_;
  // These, too, count what the blocks seen so far hold.
  std::int64_t text_bytes_ = 0;
  double nonzeros_ = 0.0;  // values that are not zero
  std::int64_t side_bytes_ = 0;
  bool named_ = false;
  std::optional<LetorBlock::Failure> failure_;
};

Dataset read_blocks(TextBlocks& source, double text_bytes, const std::string& name,
                    const LetorOptions& options, ThreadPool& pool, MissingValues* missing,
                    const std::string& weights = {}) {
  ParsedBlocks blocks(name, options, text_bytes);
  std::mutex source_mutex;
  std::atomic<bool> source_failed{false};
  pool.run(pool.threads(), [&](std::int64_t, int) {
    TextBlock block;
    while (!blocks.stopped() && !source_failed) {
      {
        const std::lock_guard lock(source_mutex);
        try {
          if (!source.next(block)) return;
        } catch (...) {
          source_failed = true;
          throw;
        }
      }
      blocks.add(block.number, parsed_block(block));
      block.failure.reset();
    }
  });
  DocTable table = blocks.table(pool);
  if (missing != nullptr) *missing = blocks.missing();
  if (!weights.empty()) table.weights = read_weights(weights, table, name);
  return stored_by(options.store, gathered(std::move(table), pool), name);
}

Dataset read_descriptor(int descriptor, const std::string& name, const LetorOptions& options,
                        ThreadPool& pool, MissingValues* missing) {
  const auto blocks = letor_text_blocks(descriptor_stream(descriptor, name), options);
  return read_blocks(*blocks, 0.0, name, options, pool, missing);
}

double as_text(double bytes, Compression compression) {
  return compression == Compression::kNone ? bytes : 10.0 * bytes;
}

}  // namespace

double LetorOptions::most_bytes_of(double text_bytes) const {
  const auto limit = static_cast<double>(max_bytes);
  return store == nullptr ? limit : std::max(limit, FeatureStore::most_bytes_of(text_bytes));
}

double text_bytes_of(const std::string& path) {
  std::error_code unknown;
  const auto bytes = static_cast<double>(std::filesystem::file_size(path, unknown));
  return unknown ? 0.0 : as_text(bytes, compression_of_name(path));
}

bool is_too_wide(double bytes, double text_bytes) {
  constexpr double kSmall = 1e9;
  constexpr double kRatio = 100.0;
  return bytes > kSmall && bytes > kRatio * text_bytes;
}

double sparse_bytes(double docs, std::int64_t features, double values) {
  constexpr double kEntry = sizeof(float) + sizeof(std::int32_t);
  constexpr double kRow = sizeof(std::int64_t);
  constexpr double kParameter = 64.0;
  return kEntry * values + kRow * docs + kParameter * static_cast<double>(features);
}

void warn_of_missing(const std::string& name, const MissingValues& missing) {
  if (missing.count == 0) return;
  const std::string what =
      missing.count == 1
          ? "One value is NULL and is read as 0."
          : fmt::format("{} values are NULL and are read as 0; this is the first.", missing.count);
  log_warning("{}:{}:{}: {}", name, missing.line, missing.column, what);
}

Dataset read_letor_bytes(std::string_view bytes, const std::string& name, const LetorOptions& options,
                         ThreadPool& pool, MissingValues* missing, const std::string& weights) {
  require_compression_of_name(name, bytes);
  const auto blocks = letor_text_blocks(bytes, options);
  const double text_bytes = as_text(static_cast<double>(bytes.size()), compression_of(bytes.substr(0, 4)));
  return read_blocks(*blocks, text_bytes, name, options, pool, missing, weights);
}

Dataset read_letor(const std::string& path, const LetorOptions& options, ThreadPool& pool,
                   MissingValues* missing) {
  if (path == "-") return read_descriptor(STDIN_FILENO, "standard input", options, pool, missing);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) throw IoError("read", path, errno);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) throw IoError("read", path, errno);
  if (S_ISDIR(status.st_mode)) throw IoError("read", path, EISDIR);
  if (!S_ISREG(status.st_mode)) return read_descriptor(file.number(), path, options, pool, missing);
  MappedMemory memory = MappedMemory::of_descriptor(file.number(), path);
  if (memory.size() > 0) ::madvise(memory.data(), memory.size(), MADV_SEQUENTIAL);
  return read_letor_bytes(memory.text(), path, options, pool, missing,
                          options.weights ? weights_file_of(path) : std::string());
}

}  // namespace olrank
