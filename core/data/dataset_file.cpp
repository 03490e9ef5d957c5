#include "core/data/dataset_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "core/data/doc_table.h"
#include "core/data/letor_parser.h"
#include "core/data/query_weights.h"
#include "core/io/atomic_file.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr char kMagic[8] = {'o', 'l', 'r', 'a', 'n', 'k', 'd', '\n'};
// Sparse rows and weights are versions of their own, which programs without them refuse.
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kSparse = 1;    // added to the version
constexpr std::uint32_t kWeighted = 2;  // as well
constexpr std::uint64_t kAlignment = 64;

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint64_t file_bytes;
  std::uint64_t docs;
  std::uint64_t queries;
  std::uint64_t features;
  std::uint64_t named_docs;  // docs or 0
  std::uint64_t qid_bytes;
  std::uint64_t name_bytes;
  std::uint64_t null_values;
  std::uint64_t null_line;
  std::uint64_t null_column;
  Fingerprint content;
  Fingerprint source;
  std::uint64_t reordered;  // 0 or 1
  std::uint64_t nonzeros;   // values of sparse rows; 0 of dense ones
  std::uint64_t reserved[13];
  std::uint64_t checksum;  // of the header with 0 in this place
};
static_assert(sizeof(Header) == 256 && std::is_trivially_copyable_v<Header>);

bool is(std::uint32_t kind, const Header& header) {
  return ((header.version - kVersion) & kind) != 0;
}

std::uint64_t checksum_of(Header header) {
  header.checksum = 0;
  return fingerprint_of({reinterpret_cast<const char*>(&header), sizeof header}).low;
}

/// Where each section lies. Sizes come from a file that may be hostile: a section that does not fit below
/// `limit` makes the layout invalid instead of wrapping around.
class Sections {
 public:
  Sections(const Header& header, std::uint64_t limit) : limit_(limit) {
    values = is(kSparse, header) ? place(header.nonzeros, 1, sizeof(float))
                                 : place(header.docs, header.features, sizeof(float));
    if (is(kSparse, header)) {
      row_begins = place(header.docs, 1, sizeof(std::int64_t), sizeof(std::int64_t));
      columns = place(header.nonzeros, 1, sizeof(std::int32_t));
    }
    offsets = place(header.queries, 1, sizeof(std::int64_t), sizeof(std::int64_t));
    qid_ends = place(header.queries, 1, sizeof(std::uint64_t));
    name_ends = place(header.named_docs, 1, sizeof(std::uint64_t));
    grades = place(header.docs, 1, 1);
    qid_text = place(header.qid_bytes, 1, 1);
    name_text = place(header.name_bytes, 1, 1);
    if (is(kWeighted, header)) weights = place(header.queries, 1, sizeof(float));
  }
  bool valid() const { return valid_; }
  std::uint64_t end() const { return end_; }

  std::uint64_t row_begins = 0;
  std::uint64_t columns = 0;
  std::uint64_t weights = 0;
  std::uint64_t values, offsets, qid_ends, name_ends, grades, qid_text, name_text;

 private:
  std::uint64_t place(std::uint64_t rows, std::uint64_t columns, std::uint64_t size,
                      std::uint64_t extra = 0) {
    const std::uint64_t begin = (end_ + kAlignment - 1) / kAlignment * kAlignment;
    std::uint64_t bytes = 0;
    valid_ = valid_ && !__builtin_mul_overflow(rows, columns, &bytes) &&
             !__builtin_mul_overflow(bytes, size, &bytes) &&
             !__builtin_add_overflow(bytes, extra, &bytes) && begin <= limit_ && bytes <= limit_ - begin;
    if (valid_) end_ = begin + bytes;
    return begin;
  }

  std::uint64_t limit_;
  std::uint64_t end_ = sizeof(Header);
  bool valid_ = true;
};

bool ends_are_sound(std::span<const std::uint64_t> ends, std::uint64_t bytes) {
  std::uint64_t last = 0;
  for (const std::uint64_t end : ends) {
    if (end < last || end > bytes) return false;
    last = end;
  }
  return last == bytes;
}

/// Whether text can hold the names; if not, written text would read back as something else.
bool is_printable(std::string_view names) {
  return std::none_of(names.begin(), names.end(),
                      [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F; });
}

bool all_finite(std::span<const float> values) {
  // Two at a time: an exponent of all ones carries into the sign's place, which the mask has cleared.
  std::uint64_t carried = 0;
  std::size_t i = 0;
  for (; i + 2 <= values.size(); i += 2) {
    std::uint64_t two = 0;
    std::memcpy(&two, values.data() + i, sizeof two);
    carried |= (two & 0x7F8000007F800000) + 0x0080000000800000;
  }
  if (i < values.size()) {
    std::uint32_t one = 0;
    std::memcpy(&one, values.data() + i, sizeof one);
    carried |= (one & 0x7F800000U) + 0x00800000U;
  }
  return (carried & 0x8000000080000000) == 0;
}

/// nullptr, or what is wrong with the header.
const char* load_header(std::string_view bytes, Header& header) {
  if (bytes.size() < sizeof header) return "it is shorter than its header";
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0)
    return "it does not begin with the format's signature";
  if (header.version < kVersion || header.version > kVersion + kSparse + kWeighted)
    return "another version of olrank wrote it";
  if (header.header_bytes != sizeof header || header.checksum != checksum_of(header))
    return "its header is damaged";
  return nullptr;
}

DatasetFileNotes notes_of(const Header& header) {
  return {header.source,
          {static_cast<std::int64_t>(header.null_values), static_cast<std::int64_t>(header.null_line),
           static_cast<std::int64_t>(header.null_column)}};
}

/// Whether rows follow each other and have rising columns below `features`.
bool rows_are_sound(std::span<const std::int64_t> begins, std::span<const std::int32_t> columns,
                    std::uint64_t features) {
  if (begins.front() != 0 || begins.back() != std::ssize(columns)) return false;
  if (!std::is_sorted(begins.begin(), begins.end())) return false;
  for (std::size_t row = 0; row + 1 < begins.size(); ++row) {
    std::int64_t last = -1;
    for (std::int64_t at = begins[row]; at < begins[row + 1]; ++at) {
      if (columns[at] <= last) return false;
      last = columns[at];
    }
    if (last >= static_cast<std::int64_t>(features)) return false;
  }
  return true;
}

template <class T>
std::span<const T> section(const MappedMemory& memory, std::uint64_t at, std::uint64_t count) {
  return {reinterpret_cast<const T*>(memory.data() + at), static_cast<std::size_t>(count)};
}

}  // namespace

void write_dataset(const Dataset& data, const DatasetFileNotes& notes,
                   const std::function<void(std::string_view)>& sink) {
  const Dataset::Contents& contents = data.contents();
  std::string qid_text;
  std::vector<std::uint64_t> qid_ends;
  for (const std::string& qid : contents.qids) {
    qid_text += qid;
    qid_ends.push_back(qid_text.size());
  }
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion + (data.is_sparse() ? kSparse : 0) + (contents.weights.empty() ? 0 : kWeighted);
  header.nonzeros = contents.columns.size();
  header.header_bytes = sizeof header;
  header.docs = static_cast<std::uint64_t>(data.docs());
  header.queries = static_cast<std::uint64_t>(data.queries());
  header.features = static_cast<std::uint64_t>(data.features());
  header.named_docs = contents.doc_names.size();
  header.qid_bytes = qid_text.size();
  header.name_bytes = contents.doc_names.empty() ? 0 : contents.doc_names.ends.back();
  header.null_values = static_cast<std::uint64_t>(notes.missing.count);
  header.null_line = static_cast<std::uint64_t>(notes.missing.line);
  header.null_column = static_cast<std::uint64_t>(notes.missing.column);
  header.content = contents.fingerprint;
  header.source = notes.source;
  header.reordered = contents.reordered ? 1 : 0;
  const Sections layout(header, std::numeric_limits<std::int64_t>::max());
  header.file_bytes = layout.end();
  header.checksum = checksum_of(header);

  std::uint64_t written = 0;
  const auto write = [&](std::uint64_t begin, const auto& items) {  // behind zeros
    static constexpr char kZeros[kAlignment] = {};
    const auto bytes = std::as_bytes(std::span(items));
    sink({kZeros, static_cast<std::size_t>(begin - written)});
    sink({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    written = begin + bytes.size();
  };
  write(0, std::span(&header, 1));
  write(layout.values, contents.values);
  if (data.is_sparse()) {
    write(layout.row_begins, contents.row_begins);
    write(layout.columns, contents.columns);
  }
  write(layout.offsets, contents.offsets);
  write(layout.qid_ends, qid_ends);
  write(layout.name_ends, contents.doc_names.ends);
  write(layout.grades, contents.grades);
  write(layout.qid_text, qid_text);
  write(layout.name_text, contents.doc_names.text.first(header.name_bytes));
  if (is(kWeighted, header)) write(layout.weights, contents.weights);
}

void write_dataset_file(const Dataset& data, const DatasetFileNotes& notes,
                        const std::filesystem::path& path) {
  AtomicFile file(path);
  write_dataset(data, notes, [&](std::string_view bytes) { file.write(bytes); });
  file.commit();
}

bool is_dataset_file(std::string_view first_bytes) {
  return first_bytes.starts_with(std::string_view(kMagic, sizeof kMagic));
}

std::optional<DatasetFileNotes> read_dataset_notes(std::string_view bytes) {
  Header header;
  if (load_header(bytes, header) != nullptr) return std::nullopt;
  return notes_of(header);
}

Dataset read_dataset_file(const std::filesystem::path& path, ThreadPool& pool) {
  return read_dataset_memory(MappedMemory::of_file(path), path.string(), pool);
}

Dataset read_dataset_memory(MappedMemory memory, const std::string& name, ThreadPool& pool) {
  const auto refuse = [&](std::string_view why) {
    throw_data_error(name, 0, 0, "This is not a valid olrank data file: {}.", why);
  };
  Header header;
  if (const char* why = load_header(memory.text(), header)) refuse(why);
  const Sections layout(header, memory.size());
  if (!layout.valid() || layout.end() != memory.size() || header.file_bytes != memory.size()) {
    refuse("its size does not match its header");
  }
  if (header.docs == 0 || header.queries == 0 || header.queries > header.docs || header.features == 0 ||
      header.features > static_cast<std::uint64_t>(kLargestFeature) ||
      (header.named_docs != 0 && header.named_docs != header.docs)) {
    refuse("its counts contradict each other");
  }
  const bool has_null_place = header.null_line > 0 && header.null_column > 0;
  const double places = static_cast<double>(header.docs) * static_cast<double>(header.features);
  if (static_cast<double>(header.null_values) > places || (header.null_values > 0) != has_null_place)
    refuse("its count of NULL values contradicts the others");
  // Ask for the pages ahead of the checks that walk through them; where the kernel cannot, they come
  // anyway.
  ::madvise(memory.data(), memory.size(), MADV_POPULATE_READ);

  Dataset::Contents contents;
  contents.features = static_cast<std::int64_t>(header.features);
  contents.reordered = header.reordered != 0;
  contents.values = section<float>(memory, layout.values,
                                   is(kSparse, header) ? header.nonzeros : header.docs * header.features);
  if (is(kSparse, header)) {
    contents.row_begins = section<std::int64_t>(memory, layout.row_begins, header.docs + 1);
    contents.columns = section<std::int32_t>(memory, layout.columns, header.nonzeros);
    if (!rows_are_sound(contents.row_begins, contents.columns, header.features))
      refuse("its sparse rows contradict each other");
  }
  contents.offsets = section<std::int64_t>(memory, layout.offsets, header.queries + 1);
  contents.grades = section<std::uint8_t>(memory, layout.grades, header.docs);
  if (header.named_docs > 0) {
    contents.doc_names = {section<char>(memory, layout.name_text, header.name_bytes),
                          section<std::uint64_t>(memory, layout.name_ends, header.docs)};
  }
  if (contents.offsets.front() != 0 || contents.offsets.back() != static_cast<std::int64_t>(header.docs) ||
      std::adjacent_find(contents.offsets.begin(), contents.offsets.end(), std::greater_equal<>()) !=
          contents.offsets.end()) {
    refuse("its query offsets are not increasing");
  }
  const PackedTexts qids{section<char>(memory, layout.qid_text, header.qid_bytes),
                         section<std::uint64_t>(memory, layout.qid_ends, header.queries)};
  if (!ends_are_sound(qids.ends, header.qid_bytes) ||
      !ends_are_sound(contents.doc_names.ends, header.named_docs > 0 ? header.name_bytes : 0)) {
    refuse("its name offsets are not increasing");
  }
  if (!is_printable({qids.text.data(), qids.text.size()}) ||
      !is_printable({contents.doc_names.text.data(), contents.doc_names.text.size()})) {
    refuse("a name contains blanks or control characters");
  }
  for (std::size_t query = 0; query < qids.size(); ++query) {
    if (qids[query].empty() || qids[query].find('#') != std::string_view::npos)
      refuse("a query ID is empty or contains '#'");
    contents.qids.emplace_back(qids[query]);
  }
  if (*std::max_element(contents.grades.begin(), contents.grades.end()) > kLargestGrade) {
    refuse("a grade is too large");
  }
  if (is(kWeighted, header)) {
    const auto weights = section<float>(memory, layout.weights, header.queries);
    if (!std::all_of(weights.begin(), weights.end(), is_weight))
      refuse("a weight is below 0 or not finite");
    contents.weights.assign(weights.begin(), weights.end());
  }
  std::atomic<bool> finite{true};
  contents.fingerprint = content_fingerprint(contents, pool, [&](std::span<const float> values) {
    if (!all_finite(values)) finite = false;
  });
  if (!(contents.fingerprint == header.content)) refuse("its contents do not match its fingerprint");
  if (!finite) refuse("a value is not finite");
  contents.memory = std::make_shared<MappedMemory>(std::move(memory));
  return Dataset(std::move(contents));
}

}  // namespace olrank
