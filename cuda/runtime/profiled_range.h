#pragma once

#include <string>
#include <string_view>

#if defined(OLRANK_NVTX)
#include <nvtx3/nvToolsExt.h>
#endif

namespace olrank {

/// Names the stage that the host is starting work for in profilers, in builds with -DOLRANK_NVTX=ON, as
/// those of the preset profile are; else does nothing. docs/CONTRIBUTING.md, "Measure", lists the names.
class ProfiledRange {
 public:
  ProfiledRange() = default;
  explicit ProfiledRange(std::string_view name) { begin(name); }
  ~ProfiledRange() { end(); }
  ProfiledRange(const ProfiledRange&) = delete;
  ProfiledRange& operator=(const ProfiledRange&) = delete;

  /// Ends the previous range; an empty name starts none.
  void begin(std::string_view name) {
    end();
    if (name.empty()) return;
#if defined(OLRANK_NVTX)
    nvtxRangePushA(std::string(name).c_str());
#endif
    open_ = true;
  }
  void end() {
#if defined(OLRANK_NVTX)
    if (open_) nvtxRangePop();
#endif
    open_ = false;
  }

 private:
  bool open_ = false;
};

}  // namespace olrank
