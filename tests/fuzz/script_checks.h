#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/io/containers.h"
#include "models/modules/script_archive.h"
#include "tests/fuzz/promise.h"

namespace olrank::fuzz {

/// A TorchScript file, as the first reader sees it: refused in a sentence, or by an exception of LibTorch.
/// With the first byte odd, the bytes are the pickle of an archive whose checksums are right and which
/// holds 32 bytes of a tensor.
inline void check_script_file(unsigned choice, std::string_view bytes) {
  const bool pack = choice % 2 != 0;
  std::string file(bytes);
  if (pack) {
    StoredZip archive;
    archive.add("m/data.pkl", bytes);
    archive.add("m/byteorder", "little");
    archive.add("m/data/0", std::string(32, '\0'));
    archive.add("m/version", "3\n");
    file = archive.finish();
  }
  try {
    check_script_archive(file, "fuzz.pt");
  } catch (const InvalidArgument& error) {
    check_sentence(error.what());
  } catch (const Error&) {
    promise(false);
  } catch (const std::exception&) {
    // parse_module() says so in a sentence.
  }
}

using std::literals::operator""sv;
inline constexpr Target kTargets[] = {
    {"script_file", with_choice<check_script_file>, "\0\x01\x02\x80(.)KJMQRXX}]ctbqhrsu\xFF"sv, 2'000}};

}  // namespace olrank::fuzz
