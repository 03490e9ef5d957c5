#pragma once

namespace olrank {

/// Whether a sanitizer looks at each access: what is true of many random numbers is then tested with few.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace olrank
