#include "core/runtime/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>

namespace olrank {
namespace {

TEST(InterruptTest, RecordsTheFirstSignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const InterruptGuard guard;
    EXPECT_EQ(InterruptGuard::requested(), 0);
    std::raise(signal);
    EXPECT_EQ(InterruptGuard::requested(), signal);
  }
  EXPECT_EQ(InterruptGuard::exit_code(SIGINT), 130);
  EXPECT_EQ(InterruptGuard::exit_code(SIGTERM), 143);
  EXPECT_EQ(InterruptGuard::exit_code(SIGHUP), 129);
}

TEST(InterruptTest, LeavesAnIgnoredHangUpIgnored) {
  std::signal(SIGHUP, SIG_IGN);  // as nohup does
  {
    const InterruptGuard guard;
    std::raise(SIGHUP);
    EXPECT_EQ(InterruptGuard::requested(), 0);
  }
  EXPECT_EQ(std::signal(SIGHUP, SIG_DFL), SIG_IGN);
}

TEST(InterruptTest, SecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        const InterruptGuard guard;
        std::raise(SIGINT);
        std::raise(SIGINT);
        std::exit(0);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(InterruptTest, RestoresEarlierHandlers) {
  struct sigaction before {};
  sigaction(SIGTERM, nullptr, &before);
  { const InterruptGuard guard; }
  struct sigaction after {};
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace
}  // namespace olrank
