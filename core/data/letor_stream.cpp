#include "core/data/letor_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/data/letor_blocks.h"
#include "core/io/mapped_memory.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

/// Blocks of text in a piece: enough for many threads, and a few megabytes.
constexpr std::int64_t kBlocksPerPiece = 16;
constexpr std::uint64_t kPerQuery = 64;  // bytes of an entry without the ID
constexpr std::uint64_t kLeastSeenBytes = 64 << 20;

/// Documents side by side, and the queries they belong to.
struct Piece {
  std::vector<float> values;
  SparseRows rows;  // in place of values
  std::vector<std::uint8_t> grades;
  std::vector<std::int64_t> offsets = {0};
  std::vector<std::string> qids;
  std::vector<std::uint64_t> name_ends;  // empty until a document has a name
  std::string names;

  std::int64_t docs() const { return std::ssize(grades); }
};

Dataset as_dataset(std::shared_ptr<Piece> piece, std::int64_t features, bool sparse) {
  Dataset::Contents contents;
  contents.values = piece->values;
  if (sparse) {
    contents.values = piece->rows.values;
    contents.row_begins = piece->rows.begins;
    contents.columns = piece->rows.columns;
  }
  contents.grades = piece->grades;
  contents.offsets = piece->offsets;
  contents.qids = std::move(piece->qids);
  contents.doc_names = {std::span<const char>(piece->names.data(), piece->names.size()), piece->name_ends};
  contents.features = features;
  contents.memory = std::move(piece);
  return Dataset(std::move(contents));
}

template <class Number>
void append(std::string& text, Number number) {
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

/// Another name would read back as something else, such as a further document.
bool is_one_word(std::string_view name) {
  return std::none_of(name.begin(), name.end(), [](unsigned char c) { return c <= ' ' || c == 0x7F; });
}

void require_names_of_one_word(const Dataset& data) {
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    const std::string_view name = data.qid(query);
    if (!name.empty() && is_one_word(name) && name.find('#') == std::string_view::npos) continue;
    throw_error<InvalidArgument>(
        "Query {} has a name that LETOR text cannot hold: choose one without spaces, control characters "
        "and '#'.",
        query + 1);
  }
  for (std::int64_t doc = 0; doc < data.docs(); ++doc) {
    if (is_one_word(data.doc_name(doc))) continue;
    throw_error<InvalidArgument>(
        "Document {} has a name that LETOR text cannot hold: choose one without spaces and control "
        "characters.",
        doc + 1);
  }
}

}  // namespace

class LetorStream::Reader {
 public:
  Reader(const std::string& path, std::int64_t features, const LetorOptions& options, ThreadPool& pool)
      : name_(path),
        features_(features),
        sparse_(options.layout == FeatureLayout::kSparse ||
                (options.layout == FeatureLayout::kAuto && features >= kManyColumns)),
        max_bytes_(options.max_bytes),
        pool_(pool),
        memory_(MappedMemory::of_file(path)),
        blocks_(letor_text_blocks(memory_.text(), options)) {
    require_compression_of_name(path, memory_.text());
  }

  std::optional<Dataset> next() {
    while (!ended_) {
      const std::vector<LetorBlock> blocks = read_blocks();
      auto piece = std::make_shared<Piece>(std::move(rest_));
      rest_ = Piece();
      append(blocks, *piece);
      if (!ended_) cut_last_query(*piece);
      if (piece->docs() == 0) continue;
      blocks_per_piece_ = kBlocksPerPiece;
      return as_dataset(std::move(piece), features_, sparse_);
    }
    return std::nullopt;
  }
  std::int64_t largest_feature() const { return seen_.largest_feature; }

 private:
  /// Blocks are taken one after the other, which for compressed text is work, and parsed side by side.
  std::vector<LetorBlock> read_blocks() {
    std::vector<LetorBlock> parsed(blocks_per_piece_);
    std::mutex mutex;
    std::int64_t taken = 0;
    pool_.run(std::min<std::int64_t>(pool_.threads(), blocks_per_piece_), [&](std::int64_t, int) {
      TextBlock block;
      for (;;) {
        std::int64_t number = 0;
        {
          const std::lock_guard lock(mutex);
          if (taken == blocks_per_piece_ || ended_) return;
          if (!blocks_->next(block)) {
            ended_ = true;
            return;
          }
          number = taken++;
        }
        parsed[number] = parsed_block(block);
        block.failure.reset();
      }
    });
    parsed.resize(taken);
    for (const LetorBlock& block : parsed) check(block);
    if (ended_) seen_.check_end(name_);
    return parsed;
  }

  void check(const LetorBlock& block) {
    if (block.failure) {
      const TextPlace place = seen_.in_text(block.failure->place);
      throw DataError(name_, place.line, place.column, block.failure->sentence);
    }
    if (block.largest_feature > features_) {
      const TextPlace place = seen_.in_text(block.largest_feature_place);
      throw_data_error(name_, place.line, place.column, "Feature {} exceeds the limit of {} features.",
                       block.largest_feature, features_);
    }
    seen_.add(block);
  }

  void append(const std::vector<LetorBlock>& blocks, Piece& piece) {
    std::vector<std::int64_t> first_doc;
    for (const LetorBlock& block : blocks) {
      first_doc.push_back(piece.docs());
      block.append_doc_names(piece.grades.size(), piece.names, piece.name_ends);
      append_queries(block, piece);
      piece.grades.insert(piece.grades.end(), block.grades.begin(), block.grades.end());
    }
    if (sparse_) {
      for (const LetorBlock& block : blocks) append_rows(block, piece.rows);
    }
    const double bytes =
        sparse_ ? static_cast<double>(piece.rows.matrix(features_).bytes())
                : static_cast<double>(piece.docs()) * static_cast<double>(features_) * sizeof(float);
    if (bytes > static_cast<double>(max_bytes_)) {
      throw_data_error(name_, seen_.lines, 0,
                       "The {} documents that must be in memory at once need {:.0f} bytes, but "
                       "--max-memory allows {}. Raise --max-memory.",
                       piece.docs(), bytes, max_bytes_);
    }
    if (sparse_) return;
    piece.values.resize(piece.docs() * features_);
    pool_.run(std::ssize(blocks), [&](std::int64_t number, int) {
      const auto at = static_cast<std::size_t>(number);
      write_rows(blocks[at], features_, piece.values.data() + first_doc[at] * features_);
    });
  }

  void append_queries(const LetorBlock& block, Piece& piece) {
    for (const QueryRun& run : block.names.query_runs) {
      const std::string_view name = block.names.qids()[run.query];
      if (piece.qids.empty() || piece.qids.back() != name) {
        seen_bytes_ += name.size() + kPerQuery;
        if (seen_bytes_ > std::max<std::uint64_t>(max_bytes_, kLeastSeenBytes)) {
          throw_data_error(
              name_, seen_.lines, 0,
              "The IDs of the first {} queries need {} bytes, but --max-memory allows {}. Raise "
              "--max-memory.",
              seen_queries_.size(), seen_bytes_, max_bytes_);
        }
        if (!seen_queries_.emplace(name).second) {
          throw ScatteredQueries(
              fmt::format("{}: The documents of query '{}' are not consecutive.", name_, name));
        }
        piece.qids.emplace_back(name);
        piece.offsets.push_back(piece.offsets.back());
      }
      piece.offsets.back() += run.docs;
    }
  }

  /// The last query may go on in the next piece.
  void cut_last_query(Piece& piece) {
    if (piece.docs() == 0) return;
    const std::int64_t first = piece.offsets[piece.offsets.size() - 2];
    const auto at = static_cast<std::ptrdiff_t>(first);
    const auto move_tail = [](auto& from, std::ptrdiff_t begin, auto& to) {
      to.assign(from.begin() + begin, from.end());
      from.resize(begin);
    };
    rest_.qids = {piece.qids.back()};
    rest_.offsets = {0, piece.docs() - first};
    if (sparse_) {
      rest_.rows.append_rows(piece.rows.matrix(features_).part(first, piece.docs()));
      piece.rows.truncate(first);
    } else {
      move_tail(piece.values, at * features_, rest_.values);
    }
    move_tail(piece.grades, at, rest_.grades);
    if (!piece.name_ends.empty()) {
      move_tail(piece.name_ends, at, rest_.name_ends);
      const std::uint64_t names = piece.name_ends.empty() ? 0 : piece.name_ends.back();
      for (std::uint64_t& end : rest_.name_ends) end -= names;
      rest_.names = piece.names.substr(names);
      piece.names.resize(names);
    }
    piece.qids.pop_back();
    piece.offsets.pop_back();
    // A query that fills a piece is not to be copied once for each further one.
    if (first == 0) blocks_per_piece_ *= 2;
  }

  std::string name_;
  std::int64_t features_;
  bool sparse_;
  std::int64_t max_bytes_;
  ThreadPool& pool_;
  MappedMemory memory_;
  std::unique_ptr<TextBlocks> blocks_;
  std::int64_t blocks_per_piece_ = kBlocksPerPiece;
  bool ended_ = false;
  Piece rest_;  // documents of the latest query
  std::unordered_set<std::string> seen_queries_;
  std::uint64_t seen_bytes_ = 0;
  SeenBlocks seen_;
};

LetorStream::LetorStream(const std::string& path, std::int64_t features, const LetorOptions& options,
                         ThreadPool& pool)
    : reader_(std::make_unique<Reader>(path, features, options, pool)) {}

LetorStream::~LetorStream() = default;

std::optional<Dataset> LetorStream::next() {
  return reader_->next();
}

std::int64_t LetorStream::largest_feature() const {
  return reader_->largest_feature();
}

void write_letor(const Dataset& data, const LetorFormat& format,
                 const std::function<void(std::string_view)>& sink) {
  require_names_of_one_word(data);
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::string text;
  // The first line that has to name the last feature, so that it is not lost with its zeros.
  bool last_feature_named = false;
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    for (std::int64_t doc = data.offset(query); doc < data.offset(query + 1); ++doc) {
      append(text, int{data.all_grades()[doc]});
      text += " qid:";
      text += data.qid(query);
      const auto append_value = [&](std::int64_t feature, float value) {
        text += ' ';
        append(text, feature + 1);
        text += ':';
        append(text, value);
      };
      const std::int64_t last = data.features() - 1;
      if (data.is_sparse()) {
        const SparseRow row = data.all_rows().sparse_doc(doc);
        for (std::size_t i = 0; i < row.columns.size(); ++i) append_value(row.columns[i], row.values[i]);
        if (!last_feature_named && (row.columns.empty() || row.columns.back() != last))
          append_value(last, 0.0F);
      } else {
        const auto row = data.all_features().doc(doc);
        for (std::int64_t f = 0; f <= last; ++f) {
          const bool keeps_width = !last_feature_named && f == last;
          if (format.sparse && std::bit_cast<std::uint32_t>(row[f]) == 0 && !keeps_width) continue;
          append_value(f, row[f]);
        }
      }
      last_feature_named = true;
      if (const std::string_view name = data.doc_name(doc); !name.empty()) {
        text += " # docid = ";
        text += name;
      }
      text += '\n';
      if (text.size() >= kPiece) {
        sink(text);
        text.clear();
      }
    }
  }
  sink(text);
}

}  // namespace olrank
