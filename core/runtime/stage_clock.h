#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// Seconds by named stage, on the monotonic clock. Stages appear in the order of their first use.
class StageClock {
 public:
  struct Stage {
    std::string name;
    double seconds = 0.0;
  };

  /// Measures its own lifetime.
  class Scope {
   public:
    Scope(StageClock& clock, std::size_t stage)
        : clock_(clock), stage_(stage), start_(std::chrono::steady_clock::now()) {}
    ~Scope() {
      clock_.stages_[stage_].seconds +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StageClock& clock_;
    std::size_t stage_;
    std::chrono::steady_clock::time_point start_;
  };

  [[nodiscard]] Scope measure(std::string_view stage) { return Scope(*this, index_of(stage)); }
  void add(std::string_view stage, double seconds) { stages_[index_of(stage)].seconds += seconds; }

  double seconds(std::string_view stage) const;  // 0 for a stage never measured
  double total() const;
  const std::vector<Stage>& stages() const { return stages_; }

 private:
  std::size_t index_of(std::string_view stage);

  std::vector<Stage> stages_;
};

/// Seconds on the clock since it was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begun_ = Clock::now();
};

}  // namespace olrank
