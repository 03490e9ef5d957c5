#include "core/runtime/utc_time.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>

namespace olrank {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Takes a text from its beginning to its end; once something is missing, so is the rest.
class TimeText {
 public:
  explicit TimeText(std::string_view text) : rest_(text) {}

  bool ended() const { return valid_ && rest_.empty(); }
  bool begins_with(std::string_view any) const {
    return !rest_.empty() && any.find(rest_.front()) != std::string_view::npos;
  }
  char take(std::string_view any) {
    if (!begins_with(any)) {
      valid_ = false;
      return '\0';
    }
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  int take_number(int digits) {
    int number = 0;
    for (int digit = 0; digit < digits; ++digit) {
      const char c = take("0123456789");
      if (c != '\0') number = 10 * number + (c - '0');
    }
    return number;
  }
  int take_number(int digits, int most) {
    const int number = take_number(digits);
    valid_ = valid_ && number <= most;
    return number;
  }
  /// The first three digits of a fraction of any length.
  int take_thousandths() {
    int number = take_number(1) * 100;
    for (int unit = 10; !rest_.empty() && is_digit(rest_.front()); unit /= 10)
      number += unit * take_number(1);
    return number;
  }

 private:
  std::string_view rest_;
  bool valid_ = true;
};

}  // namespace

std::string utc_text(std::int64_t milliseconds) {
  std::int64_t thousandths = milliseconds % 1000;
  if (thousandths < 0) thousandths += 1000;
  const auto seconds = static_cast<std::time_t>((milliseconds - thousandths) / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", text, thousandths);
}

std::optional<std::int64_t> utc_milliseconds(std::string_view text) {
  using namespace std::chrono;
  TimeText rest(text);
  const year_month_day date = [&rest] {
    const year y{rest.take_number(4)};
    rest.take("-");
    const month m{static_cast<unsigned>(rest.take_number(2))};
    rest.take("-");
    return y / m / day{static_cast<unsigned>(rest.take_number(2))};
  }();
  rest.take("Tt ");
  std::int64_t seconds = 3600 * rest.take_number(2, 23);
  rest.take(":");
  seconds += 60 * rest.take_number(2, 59);
  rest.take(":");
  seconds += rest.take_number(2, 60);  // a leap second counts as the next one
  std::int64_t thousandths = 0;
  if (rest.begins_with(".,")) {
    rest.take(".,");
    thousandths = rest.take_thousandths();
  }
  if (rest.begins_with("Zz")) {
    rest.take("Zz");
  } else if (rest.begins_with("+-")) {
    const int sign = rest.take("+-") == '+' ? -1 : 1;
    seconds += sign * 3600 * rest.take_number(2, 23);
    if (rest.begins_with(":")) rest.take(":");
    seconds += sign * 60 * rest.take_number(2, 59);
  }
  if (!rest.ended() || !date.ok()) return std::nullopt;
  seconds += 86400 * std::int64_t{sys_days(date).time_since_epoch().count()};
  return 1000 * seconds + thousandths;
}

}  // namespace olrank
