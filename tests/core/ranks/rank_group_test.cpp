#include "core/ranks/rank_group.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>

#include "core/ranks/member_share.h"
#include "core/runtime/interrupt.h"
#include "tests/support/thread_ranks.h"

namespace olrank {
namespace {

const std::vector<std::string> kNoErrors(3);

TEST(RankGroupTest, GathersTheBytesOfEveryRankInOrder) {
  const auto errors = play_ranks(3, [](RankGroup& group) {
    for (int round = 0; round < 5; ++round) {
      const int mine = 10 * round + group.rank();
      group.all_gather(std::as_bytes(std::span(&mine, 1)));
      for (int rank = 0; rank < 3; ++rank) {
        int theirs = -1;
        std::memcpy(&theirs, group.gathered(rank).data(), sizeof theirs);
        EXPECT_EQ(theirs, 10 * round + rank);
      }
    }
  });
  EXPECT_EQ(errors, kNoErrors);
}

TEST(RankGroupTest, GathersTextsOfAnyLength) {
  const auto errors = play_ranks(3, [](RankGroup& group) {
    const std::string mine(5 * group.rank(), static_cast<char>('a' + group.rank()));
    EXPECT_EQ(group.all_gather_text(mine), (std::vector<std::string>{"", "bbbbb", "cccccccccc"}));
    EXPECT_EQ(group.text_of_first(group.is_first() ? "all" : "none"), "all");
  });
  EXPECT_EQ(errors, kNoErrors);
}

TEST(RankGroupTest, AFailureOfOneRankIsANumericErrorOfAll) {
  const auto errors = play_ranks(3, [](RankGroup& group) {
    if (group.rank() == 2) group.fail("The third rank's member diverged.");
    if (group.rank() == 1) group.fail("The second rank's member diverged.");
    EXPECT_THROW(
        {
          try {
            group.all_gather({});
          } catch (const NumericError& error) {
            EXPECT_STREQ(error.what(), "The second rank's member diverged.");
            throw;
          }
        },
        NumericError);
    group.all_gather({});  // and the next trial goes on
  });
  EXPECT_EQ(errors, kNoErrors);
}

TEST(RankGroupTest, AnErrorInOneRanksPartIsThrownOnAll) {
  const auto errors = play_ranks(3, [](RankGroup& group) {
    group.together([] {});
    try {
      group.together([&] {
        if (group.rank() == 1) throw InvalidArgument("The folder is full.");
      });
      ADD_FAILURE() << "no error on rank " << group.rank();
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "The folder is full.");
      EXPECT_EQ(error.exit_code(), ExitCode::kWrongUsage);
    }
    group.all_gather({});
  });
  EXPECT_EQ(errors, kNoErrors);
}

TEST(RankGroupTest, RanksOutOfStepAreFound) {
  const auto errors = play_ranks(2, [](RankGroup& group) {
    const double value = 1.0;
    group.all_gather(std::as_bytes(std::span(&value, group.rank() == 0 ? 1 : 0)));
  });
  for (const std::string& error : errors) EXPECT_NE(error.find("rank"), std::string::npos) << error;
}

TEST(RankGroupTest, ALostRankEndsTheOthers) {
  const auto errors = play_ranks(3, [](RankGroup& group) {
    if (group.rank() == 1) throw IoError("The disk is full.");
    group.all_gather({});
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"Another rank has ended.", "The disk is full.",
                                              "Another rank has ended."}));
}

TEST(RankGroupTest, StopsWhereEveryRankKnowsOfTheSignal) {
  const InterruptGuard guard;
  const auto errors = play_ranks(2, [](RankGroup& group) {
    group.all_gather({});
    EXPECT_EQ(group.stop_signal(), 0);
    if (group.rank() == 1) std::raise(SIGTERM);
    group.all_gather({});
    group.all_gather({});
    EXPECT_EQ(group.stop_signal(), SIGTERM);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST(MemberShareTest, SharesFollowOneAnotherAndDifferByAtMostOne) {
  for (int ranks = 1; ranks <= 7; ++ranks) {
    for (std::int64_t members = ranks; members < 20; ++members) {
      const auto errors = play_ranks(ranks, [&](RankGroup& group) {
        const MemberShare share(members, &group);
        EXPECT_EQ(share.first_of(0), 0);
        EXPECT_EQ(share.first_of(ranks), members);
        for (int rank = 0; rank < ranks; ++rank) {
          EXPECT_EQ(share.first_of(rank) + share.count_of(rank), share.first_of(rank + 1));
          EXPECT_GE(share.count_of(rank), members / ranks);
          EXPECT_LE(share.count_of(rank), (members + ranks - 1) / ranks);
        }
        EXPECT_EQ(share.first(), share.first_of(group.rank()));
      });
      EXPECT_EQ(errors, std::vector<std::string>(ranks));
    }
  }
}

TEST(MemberShareTest, CompletesRowsOfAnyLength) {
  // The last takes more than one exchange.
  for (const std::int64_t each : {0, 1, 33, 70'000}) {
    const auto errors = play_ranks(3, [&](RankGroup& group) {
      const std::int64_t members = 7;
      const MemberShare share(members, &group);
      std::vector<float> values(members * each, -1.0F);
      const auto expected = [&](std::int64_t member, std::int64_t at) {
        return static_cast<float>(1000 * member + at % 997);
      };
      for (std::int64_t member = share.first(); member < share.first() + share.count(); ++member) {
        for (std::int64_t at = 0; at < each; ++at) values[member * each + at] = expected(member, at);
      }
      EXPECT_EQ(share.complete(values, each, 0.5 + group.rank()), 2.5);
      for (std::int64_t member = 0; member < members; ++member) {
        for (std::int64_t at = 0; at < each; ++at)
          ASSERT_EQ(values[member * each + at], expected(member, at)) << member << " " << at;
      }
    });
    EXPECT_EQ(errors, kNoErrors);
  }
}

TEST(MemberShareTest, RefusesMoreRanksThanMembers) {
  const auto errors = play_ranks(3, [](RankGroup& group) { const MemberShare share(2, &group); });
  EXPECT_EQ(errors[1], "3 ranks are more than an ensemble of 2 members can use: start at most 2.");
}

}  // namespace
}  // namespace olrank
