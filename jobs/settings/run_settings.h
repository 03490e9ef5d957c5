#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// The machines on which a trial has the same bits.
enum class SameBitsOn { kOneCpuType, kAnyCpu };

template <>
struct EnumNames<SameBitsOn> {
  static constexpr std::array values = {
      std::pair{SameBitsOn::kOneCpuType, std::string_view("one-cpu-type")},
      std::pair{SameBitsOn::kAnyCpu, std::string_view("any-cpu")}};
};

/// Where and how an experiment runs. Only `device` and `same_bits_on` change
/// results, by rounding.
struct RunSettings {
  std::string device = "auto";
  std::int64_t threads = 0;
  std::int64_t jobs = 1;
  SameBitsOn same_bits_on = SameBitsOn::kOneCpuType;
  std::int64_t checkpoint_every = 1000;
  std::int64_t keep_checkpoints = 1;
  std::string out = "runs/latest";

  static const Schema& schema();
};

}  // namespace olrank
