#include "core/settings/schema.h"

#include <gtest/gtest.h>

namespace olrank {
namespace {

struct Wheel {
  double spoke_length = 0.3;
  static const Schema& schema() {
    static const Schema schema = SchemaBuilder<Wheel>("wheel", "A wheel.")
                                     .field("spoke_length", &Wheel::spoke_length, "hub | rim")
                                     .unit("m")
                                     .symbol("r")
                                     .above(0)
                                     .flag("spokes")
                                     .build();
    return schema;
  }
};

TEST(ReferencePageTest, ShowsKeyFlagsDefaultAllowedValuesAndMeaning) {
  const Wheel defaults;
  const SchemaWithDefaults tables[] = {{&Wheel::schema(), &defaults}};
  const std::string page = reference_page(tables);
  EXPECT_NE(page.find("## `[wheel]`\n\nA wheel.\n"), std::string::npos);
  EXPECT_NE(
      page.find(
          "| `spoke_length` | `--spokes`, `--wheel-spoke-length` | `0.3` | a finite number, above 0 | "
          "hub \\| rim (r) [m] |\n"),
      std::string::npos)
      << page;
}

TEST(ReferencePageTest, OmitsFlagsOfFileOnlyTables) {
  Schema schema = Wheel::schema();
  schema.repeated = true;
  schema.file_only = true;
  const Wheel defaults;
  const SchemaWithDefaults tables[] = {{&schema, &defaults}};
  const std::string page = reference_page(tables);
  EXPECT_NE(page.find("| key | default | allowed | meaning |\n|---|---|---|---|\n"
                      "| `spoke_length` | `0.3` | a finite number, above 0 | hub \\| rim (r) [m] |\n"),
            std::string::npos)
      << page;
  EXPECT_EQ(page.find("`--spoke"), std::string::npos) << page;
}

}  // namespace
}  // namespace olrank
