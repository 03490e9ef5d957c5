#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace olrank {

/// Calls work(number, slot) for each number below `count` in ascending order, up to `slots` at once on a
/// thread each, of which slot 0 is the caller's. Begins nothing more once `stopping` says so, or once a
/// call has thrown; the first exception is thrown again when all calls have ended.
void run_in_slots(std::size_t count, int slots, const std::function<bool()>& stopping,
                  const std::function<void(std::size_t number, std::int64_t slot)>& work);

}  // namespace olrank
