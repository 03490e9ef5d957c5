#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "core/data/dataset_file.h"
#include "core/data/letor_reader.h"
#include "core/data/letor_writer.h"
#include "core/error.h"
#include "core/runtime/log.h"

/// What must hold of any bytes whatever. A broken promise aborts, which both the fuzzer and the tests see.
namespace olrank::fuzz {

inline void promise(bool kept) {
  if (!kept) std::abort();
}

inline void check_error(const DataError& error) {
  const std::string sentence = error.what();
  promise(sentence.size() < 1000 && sentence.back() == '.' && sentence.find('\n') == std::string::npos);
}

inline void check_dataset(const Dataset& data) {
  promise(data.docs() >= 1 && data.queries() >= 1 && data.features() >= 1);
  promise(data.offset(0) == 0 && data.offset(data.queries()) == data.docs());
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    promise(data.docs_of(query) >= 1 && !data.qid(query).empty());
  }
  const FeatureMatrix all = data.all_features();
  for (std::int64_t i = 0; i < all.docs * all.features; ++i) promise(std::isfinite(all.values[i]));
  for (std::int64_t doc = 0; doc < data.docs(); ++doc) promise(data.doc_name(doc).size() < (1U << 30));
  promise(data.max_grade() <= 31);
}

/// LETOR text, plain or compressed: a DataError with a place, or a data set that its own text reproduces.
/// The matrix may take `max_bytes`; the first byte chooses how the text is cut into blocks.
inline void check_letor(std::string_view bytes, std::int64_t max_bytes = 1 << 16) {
  if (bytes.empty()) return;
  const auto block_bytes = static_cast<std::size_t>(static_cast<unsigned char>(bytes.front()) % 64 + 1);
  bytes.remove_prefix(1);
  ThreadPool pool(1);
  const LetorOptions options{.max_bytes = max_bytes, .block_bytes = block_bytes};
  try {
    const Dataset data = read_letor_bytes(bytes, "fuzz", options, pool);
    check_dataset(data);
    std::string text;
    write_letor(data, {.sparse = block_bytes % 2 == 0}, [&](std::string_view piece) { text += piece; });
    promise(read_letor_bytes(text, "again", {.max_bytes = max_bytes}, pool).fingerprint() ==
            data.fingerprint());
  } catch (const DataError& error) {
    promise(error.line() >= 1 && error.column() >= 1);
    check_error(error);
  }
}

/// A binary data file. With the first byte odd the header's checksum is repaired, so that damage reaches
/// what lies behind it.
inline void check_dataset_file(std::string_view bytes) {
  if (bytes.empty()) return;
  const bool repair = bytes.front() % 2 != 0;
  bytes.remove_prefix(1);
  MappedMemory memory = MappedMemory::anonymous(bytes.size());
  if (!bytes.empty()) std::memcpy(memory.data(), bytes.data(), bytes.size());
  if (repair && bytes.size() >= 256) {
    std::memset(memory.data() + 248, 0, 8);
    const std::uint64_t checksum = fingerprint_of(memory.text().substr(0, 256)).low;
    std::memcpy(memory.data() + 248, &checksum, 8);
  }
  ThreadPool pool(1);
  try {
    check_dataset(read_dataset_memory(std::move(memory), "fuzz", pool));
  } catch (const DataError& error) {
    check_error(error);
  }
}

}  // namespace olrank::fuzz
