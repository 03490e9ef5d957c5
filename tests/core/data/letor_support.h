#pragma once

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/data/dataset.h"
#include "core/data/dataset_file.h"
#include "core/data/letor_reader.h"
#include "core/data/letor_stream.h"
#include "core/io/atomic_file.h"
#include "core/io/byte_stream.h"

namespace olrank {

inline Dataset read_text(std::string_view text, const LetorOptions& options = {}, int threads = 1) {
  ThreadPool pool(threads);
  return read_letor_bytes(text, "data.txt", options, pool);
}

inline std::string compressed(std::string_view bytes, Compression compression) {
  std::string out;
  const auto compressor = Compressor::make(compression, [&](std::string_view piece) { out += piece; });
  compressor->write(bytes);
  compressor->finish();
  return out;
}

inline void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string binary_of(const Dataset& data) {
  std::string bytes;
  write_dataset(data, {}, [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

inline Dataset read_binary(std::string_view bytes, int threads = 1) {
  ThreadPool pool(threads);
  MappedMemory memory = MappedMemory::anonymous(bytes.size());
  std::memcpy(memory.data(), bytes.data(), bytes.size());
  return read_dataset_memory(std::move(memory), "data.olrank", pool);
}

inline std::string letor_text(const Dataset& data, bool sparse) {
  std::string text;
  write_letor(data, {.sparse = sparse}, [&](std::string_view piece) { text += piece; });
  return text;
}

/// Tells whether both have the same bits everywhere, names and fingerprint included.
inline bool same_content(const Dataset& a, const Dataset& b) {
  if (a.docs() != b.docs() || a.queries() != b.queries() || a.features() != b.features()) return false;
  if (!(a.fingerprint() == b.fingerprint()) || a.contents().weights != b.contents().weights) return false;
  const std::size_t bytes = static_cast<std::size_t>(a.docs() * a.features()) * sizeof(float);
  if (std::memcmp(a.all_features().values, b.all_features().values, bytes) != 0) return false;
  for (std::int64_t query = 0; query < a.queries(); ++query) {
    if (a.qid(query) != b.qid(query) || a.offset(query + 1) != b.offset(query + 1)) return false;
  }
  for (std::int64_t doc = 0; doc < a.docs(); ++doc) {
    if (a.all_grades()[doc] != b.all_grades()[doc] || a.doc_name(doc) != b.doc_name(doc)) return false;
  }
  return true;
}

/// The folder of real data sets; empty where this machine has none. Tests run in the source folder. The
/// program takes OLRANK_DATA_… for settings of [data], so the variable's name begins otherwise.
inline std::string real_data_folder() {
  const char* named = std::getenv("OLRANK_REAL_DATA");
  const std::string folder = named != nullptr ? named : "../shared/data";
  return std::filesystem::exists(folder + "/mq2008/S1.txt.gz") ? folder : "";
}

#define OLRANK_NEED_REAL_DATA()                                                                 \
  if (real_data_folder().empty()) {                                                             \
    GTEST_SKIP() << "the real data sets are not here: set OLRANK_REAL_DATA to the folder that " \
                    "holds mq2008, clueweb09-webis and mslr-sample";                            \
  }                                                                                             \
  static_assert(true)

}  // namespace olrank
