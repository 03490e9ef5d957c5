#include "core/clicks/click_fit.h"

#include <gtest/gtest.h>

#include <vector>

namespace olrank {
namespace {

ClickLists lists_of(const std::vector<std::vector<std::int32_t>>& shown) {
  ClickLists lists;
  for (const auto& docs : shown) lists.add(docs, std::vector<std::uint8_t>(docs.size(), 0));
  return lists;
}

using Groups = std::vector<std::vector<std::int64_t>>;

TEST(RankLinksTest, WithoutSwapsEachRankIsAlone) {
  const RankLinks links = find_rank_links(lists_of({{0, 1, 2}, {3, 4, 5}, {0, 1, 2}}), 6);
  EXPECT_EQ(links.docs, 6);
  EXPECT_EQ(links.moved, 0);
  EXPECT_EQ(links.by_rank, (std::vector<std::int64_t>{0, 0, 0}));
  EXPECT_EQ(links.groups, (Groups{{0}, {1}, {2}}));
}

TEST(RankLinksTest, MovedDocumentsLinkRanks) {
  // 0 and 2 change places; 3 is at the ranks 2 and 4; a document that no list shows counts for nothing.
  const RankLinks links = find_rank_links(lists_of({{0, 1, 2, 3, 4}, {2, 3, 0}, {0, 5}}), 9);
  EXPECT_EQ(links.docs, 6);
  EXPECT_EQ(links.moved, 3);
  EXPECT_EQ(links.by_rank, (std::vector<std::int64_t>{2, 1, 2, 1, 0}));
  EXPECT_EQ(links.groups, (Groups{{0, 2}, {1, 3}, {4}}));
}

TEST(RankLinksTest, LinksAreTransitive) {
  const RankLinks links =
      find_rank_links(lists_of({{0, 1, 2, 3}, {1, 0, 4, 5}, {6, 2, 7, 8}, {9, 10, 3, 11}}), 12);
  EXPECT_EQ(links.moved, 4);
  EXPECT_EQ(links.groups, (Groups{{0, 1, 2, 3}}));
}

TEST(RankLinksTest, NoListsHaveNoRanks) {
  EXPECT_TRUE(find_rank_links(ClickLists(), 0).groups.empty());
}

}  // namespace
}  // namespace olrank
