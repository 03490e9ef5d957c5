#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset_file.h"
#include "core/data/doc_table.h"
#include "core/data/letor_reader.h"
#include "core/data/letor_stream.h"
#include "core/data/normaliser.h"
#include "core/error.h"
#include "core/io/json.h"
#include "core/io/safetensors.h"
#include "core/settings/toml_document.h"
#include "tests/fuzz/promise.h"

/// These checks say what must hold of any bytes whatever.
namespace olrank::fuzz {

inline void check_dataset(const Dataset& data) {
  promise(data.docs() >= 1 && data.queries() >= 1 && data.features() >= 1);
  promise(data.offset(0) == 0 && data.offset(data.queries()) == data.docs());
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    promise(data.docs_of(query) >= 1 && !data.qid(query).empty());
  }
  const FeatureMatrix all = data.all_rows();
  const std::int64_t values = all.is_sparse() ? all.row_begins[all.docs] : all.docs * all.features;
  for (std::int64_t i = 0; i < values; ++i) promise(std::isfinite(all.values[i]));
  for (std::int64_t doc = 0; all.is_sparse() && doc < all.docs; ++doc) {
    std::int64_t last = -1;
    for (const std::int32_t column : all.sparse_doc(doc).columns) {
      promise(last < column && column < all.features);
      last = column;
    }
  }
  for (std::int64_t doc = 0; doc < data.docs(); ++doc) promise(data.doc_name(doc).size() < (1U << 30));
  promise(data.max_grade() <= 31);
}

/// Returns the data of LETOR text, plain or compressed; nothing where it is refused with a place.
inline std::optional<Dataset> read_or_refused(std::string_view bytes, const LetorOptions& options,
                                              ThreadPool& pool) {
  try {
    Dataset data = read_letor_bytes(bytes, "fuzz", options, pool);
    check_dataset(data);
    return data;
  } catch (const DataError& error) {
    promise(error.line() >= 1 && error.column() >= 1);
    check_sentence(error.what());
    return std::nullopt;
  }
}

/// A data set's own text reproduces it. The first byte chooses how the text is cut into blocks.
inline void check_letor(unsigned choice, std::string_view bytes) {
  constexpr std::int64_t kMaxBytes = 1 << 16;
  ThreadPool pool(1);
  const auto data = read_or_refused(bytes, {.max_bytes = kMaxBytes, .block_bytes = choice % 64 + 1}, pool);
  if (!data) return;
  std::string text;
  write_letor(*data, {.sparse = choice % 2 != 0}, [&](std::string_view piece) { text += piece; });
  promise(read_letor_bytes(text, "again", {.max_bytes = kMaxBytes}, pool).fingerprint() ==
          data->fingerprint());
}

/// Checks that sparse rows survive a round trip through text and binary form, and equal the dense rows.
/// The first byte cuts the text here, too.
inline void check_sparse(unsigned choice, std::string_view bytes) {
  LetorOptions options{
      .max_bytes = 1 << 20, .block_bytes = choice % 64 + 1, .layout = FeatureLayout::kSparse};
  ThreadPool pool(1);
  const auto read = read_or_refused(bytes, options, pool);
  if (!read) return;
  const Dataset& data = *read;
  promise(data.is_sparse());
  const bool is_small = data.docs() * data.features() <= 1 << 14;
  std::string text;
  write_letor(data, {.sparse = !is_small || choice % 2 != 0},
              [&](std::string_view piece) { text += piece; });
  promise(read_letor_bytes(text, "again", options, pool).fingerprint() == data.fingerprint());
  std::string file;
  write_dataset(data, {}, [&](std::string_view piece) { file += piece; });
  MappedMemory memory = MappedMemory::anonymous(file.size());
  std::memcpy(memory.data(), file.data(), file.size());
  promise(read_dataset_memory(std::move(memory), "binary", pool).fingerprint() == data.fingerprint());
  if (!is_small) return;
  options.layout = FeatureLayout::kDense;
  const Dataset dense = read_letor_bytes(bytes, "dense", options, pool);
  std::vector<float> values;
  const FeatureMatrix zeros = with_zeros(data.all_rows(), values);
  promise(dense.docs() == data.docs() && dense.features() == data.features());
  promise(std::equal(values.begin(), values.end(), dense.all_rows().values));
  promise(as_sparse(dense, pool).fingerprint() == data.fingerprint() && zeros.docs == dense.docs());
}

/// A binary data file. With the first byte odd the header's checksum is repaired, so that damage reaches
/// what lies behind it.
inline void check_dataset_file(unsigned choice, std::string_view bytes) {
  const bool repair = choice % 2 != 0;
  MappedMemory memory = MappedMemory::anonymous(bytes.size());
  if (!bytes.empty()) std::memcpy(memory.data(), bytes.data(), bytes.size());
  if (repair && bytes.size() >= 256) {
    std::memset(memory.data() + 248, 0, 8);
    const std::uint64_t checksum = fingerprint_of(memory.text().substr(0, 256)).low;
    std::memcpy(memory.data() + 248, &checksum, 8);
  }
  ThreadPool pool(1);
  is_taken<DataError>([&] { check_dataset(read_dataset_memory(std::move(memory), "fuzz", pool)); });
}

/// The normalisation that a model file carries: refused, or written and read back unchanged.
inline void check_normalisation(const std::string& text) {
  is_taken<DataError>([&] {
    const std::string written = normaliser_text(parse_normaliser(text, "fuzz"));
    promise(normaliser_text(parse_normaliser(written, "again")) == written);
  });
}

/// A safetensors file: a DataError, or tensors and metadata that a file written from them has, too. With
/// the first byte odd, a line break ends the header, whose length is put right.
inline void check_safetensors(unsigned choice, std::string_view bytes) {
  const bool repair = choice % 2 != 0;
  std::string file(bytes);
  if (const std::size_t line = bytes.find('\n'); repair && line != std::string_view::npos) {
    const std::uint64_t length = line;
    file.assign(sizeof length, '\0');
    std::memcpy(file.data(), &length, sizeof length);
    file.append(bytes.substr(0, line)).append(bytes.substr(line + 1));
  }
  is_taken<DataError>([&] {
    const SafetensorsView view = view_safetensors(file, "fuzz");
    std::vector<NamedTensor> tensors;
    for (const TensorView& tensor : view.tensors) {
      std::int64_t numbers = 1;
      for (const std::int64_t extent : tensor.shape) numbers *= tensor.bytes.empty() ? 0 : extent;
      const std::int64_t size = numbers == 0 ? 1 : std::ssize(tensor.bytes) / numbers;
      promise(numbers * size == std::ssize(tensor.bytes));
      tensors.push_back(
          {tensor.name, tensor.shape, {tensor.dtype, size, std::as_bytes(std::span(tensor.bytes))}});
    }
    const std::string written = safetensors_bytes(tensors, view.metadata);
    const SafetensorsView again = view_safetensors(written, "again");
    promise(again.metadata == view.metadata && again.tensors.size() == view.tensors.size());
    for (std::size_t at = 0; at < again.tensors.size(); ++at) {
      const TensorView& one = view.tensors[at];
      const TensorView& other = again.tensors[at];
      promise(one.name == other.name && one.dtype == other.dtype && one.shape == other.shape &&
              one.bytes == other.bytes);
    }
    for (const auto& [key, text] : view.metadata) {
      if (key == "normalisation") check_normalisation(text);
    }
    parse_safetensors(file, "fuzz");
  });
}

/// A configuration: refused with its place, or values that can be written and read back.
inline void check_toml(std::string_view bytes) {
  try {
    for (const TomlDocument::Table& table : parse_toml(bytes, "fuzz.toml").tables) {
      promise(table.origin.starts_with("fuzz.toml:") && is_printable(table.name));
      for (const TomlDocument::Entry& entry : table.entries) {
        promise(entry.origin.starts_with("fuzz.toml:") && is_printable(entry.key));
        const std::string text = to_toml(entry.value);
        promise(is_printable(text));
        const TomlDocument again = parse_toml("key = " + text, "again.toml");
        promise(again.tables.size() == 1 && again.tables[0].entries.size() == 1);
        promise(to_toml(again.tables[0].entries[0].value) == text);
      }
    }
  } catch (const InvalidArgument& error) {
    promise(std::string_view(error.what()).starts_with("fuzz.toml:"));
    check_sentence(error.what());
  }
}

/// The events of a JSON text, as a text. The first handler is this project's, the second the library's.
struct JsonEvents final : JsonHandler {
  bool null() override { return add("null"); }
  bool boolean(bool value) override { return add(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) override { return add(std::to_string(value)); }
  bool number_unsigned(std::uint64_t value) override { return add("+" + std::to_string(value)); }
  bool number_float(const JsonNumber& number) override {
    promise(number.rounded() == static_cast<float>(number.value()));
    return add_float(number.digits, number.value());
  }
  bool string(std::string& value) override { return add("\"" + value); }
  bool start_object() override { return add("{"); }
  bool key(std::string& name) override { return add(":" + name); }
  bool end_object() override { return add("}"); }
  bool start_array() override { return add("["); }
  bool end_array() override { return add("]"); }
  void invalid(std::size_t byte, Fault fault) override {
    add((fault == Fault::kSyntax ? "invalid " : "beyond ") + std::to_string(byte));
  }

  bool add_float(std::string_view digits, double value) {
    return add(std::string(digits) + "=" + std::to_string(std::bit_cast<std::uint64_t>(value)));
  }
  bool add(const std::string& event) {
    events += std::to_string(event.size()) + " " + event + "\n";
    return true;
  }
  std::string events;
};

struct LibraryJsonEvents {
  bool null() { return into.null(); }
  bool boolean(bool value) { return into.boolean(value); }
  bool number_integer(std::int64_t value) { return into.number_integer(value); }
  bool number_unsigned(std::uint64_t value) { return into.number_unsigned(value); }
  bool number_float(double value, const std::string& digits) { return into.add_float(digits, value); }
  bool string(std::string& value) { return into.string(value); }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return into.start_object(); }
  bool key(std::string& name) { return into.key(name); }
  bool end_object() { return into.end_object(); }
  bool start_array(std::size_t) { return into.start_array(); }
  bool end_array() { return into.end_array(); }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::json::exception& error) {
    into.invalid(byte,
                 error.id == 406 ? JsonHandler::Fault::kNumberOutOfRange : JsonHandler::Fault::kSyntax);
    return false;
  }

  JsonEvents& into;
};

/// JSON: the events of the library's parser.
inline void check_json(std::string_view bytes) {
  JsonEvents ours;
  const bool is_valid = parse_json_events(bytes, ours);
  if (const std::size_t zero = bytes.find('\0'); zero != std::string_view::npos) {
    promise(!is_valid && ours.events.ends_with("invalid " + std::to_string(zero + 1) + "\n"));
    return;
  }
  JsonEvents theirs;
  LibraryJsonEvents handler{theirs};
  promise(nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &handler) == is_valid);
  promise(ours.events == theirs.events);
}

using std::literals::operator""sv;
inline constexpr Target kTargets[] = {
    {"letor", with_choice<check_letor>, "0123456789:.-+eE#\n\r\t q\0\xFF"sv},
    {"sparse", with_choice<check_sparse>, "0123456789:.-+eE#\n\r\t qN\0\xFF"sv},
    {"dataset_file", with_choice<check_dataset_file>, "\0\x01\x7F\xFF"sv},
    {"safetensors", with_choice<check_safetensors>, "0123456789{}[]\":,.-eE\\\n \0\xFF"sv},
    {"json", check_json, "0123456789{}[]\":,.-+eE\\/bfnrtu \n\0\xFF\xEF\xBB\xBF\xED\xA0"sv},
    {"toml", check_toml, "0123456789{}[]\"'=,.-_#\\\n\t nfu\xFF"sv}};

}  // namespace olrank::fuzz
