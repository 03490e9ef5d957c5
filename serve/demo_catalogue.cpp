#include "serve/demo_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

namespace olrank {
namespace {

using nlohmann::json;

constexpr std::size_t kProducts = 40;  // of a category
constexpr std::array<std::string_view, 8> kBrands = {"Alder", "Birch", "Cedar", "Hazel",
                                                     "Larch", "Maple", "Rowan", "Willow"};

struct Category {
  std::string_view name;
  double price;   // the median, in euros
  double weight;  // the median, in grams
  std::array<std::string_view, 5> models;
};
constexpr std::array<Category, 3> kCategories = {
    Category{"Running shoes", 95, 270, {"Glide", "Pacer", "Ridge", "Sprint", "Trail"}},
    Category{"Laptops", 900, 1500, {"Air", "Book", "Note", "Pro", "Studio"}},
    Category{"Coffee machines", 240, 5200, {"Barista", "Crema", "Drip", "Lungo", "Moka"}}};

struct Product {
  std::size_t brand = 0;
  std::array<double, 6> values{};  // price, rating, reviews, delivery, weight, discount
};

/// Uniform in [0, 1), the same with every standard library.
double draw(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11U) * 0x1p-53;
}
/// Roughly normal.
double draw_normal(std::mt19937_64& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += draw(random);
  return sum;
}

Product draw_product(const Category& category, std::size_t brand, std::mt19937_64& random) {
  Product product;
  product.brand = brand;
  product.values = {std::round(category.price * std::exp(0.45 * draw_normal(random))),
                    std::clamp(std::round(39 + 6 * draw_normal(random)) / 10, 2.0, 5.0),
                    std::floor(std::exp(7 * draw(random))),
                    std::floor(1 + 8 * draw(random)),
                    std::round(category.weight * std::exp(0.2 * draw_normal(random)) / 10) * 10,
                    draw(random) < 0.4 ? 5 * std::floor(1 + 8 * draw(random)) : 0};
  return product;
}

/// Each product's place among all by one value, from 0 to 1.
std::vector<double> places(const std::vector<Product>& products, std::size_t value) {
  std::vector<double> result;
  for (const Product& product : products) {
    const auto below = std::count_if(products.begin(), products.end(), [&](const Product& other) {
      return other.values[value] < product.values[value];
    });
    result.push_back(static_cast<double>(below) / static_cast<double>(products.size() - 1));
  }
  return result;
}

/// The two best products have grade 4, the next two 3, the next two 2, the next four 1.
std::vector<int> grades_of(const std::vector<double>& liking) {
  constexpr std::array<int, 10> kGrades = {4, 4, 3, 3, 2, 2, 1, 1, 1, 1};
  std::vector<std::size_t> order(liking.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return liking[a] > liking[b]; });
  std::vector<int> grades(liking.size(), 0);
  for (std::size_t place = 0; place < kGrades.size(); ++place) grades[order[place]] = kGrades[place];
  return grades;
}

json category_json(const Category& category, std::mt19937_64& random) {
  std::vector<Product> products;
  for (std::size_t i = 0; i < kProducts; ++i)
    products.push_back(draw_product(category, i % kBrands.size(), random));
  const std::vector<double> price = places(products, 0);
  const std::vector<double> rating = places(products, 1);
  std::array<std::vector<double>, 3> liking;
  for (std::size_t i = 0; i < kProducts; ++i) {
    const double distance = (price[i] - 0.6) / 0.12;
    liking[0].push_back(std::exp(-distance * distance) + 0.1 * rating[i]);
    liking[1].push_back(0.3 * rating[i] - price[i]);
    liking[2].push_back((products[i].brand == 2 || products[i].brand == 6 ? 1.0 : 0.0) + 0.3 * rating[i]);
  }
  std::array<std::vector<int>, 3> grades;
  std::transform(liking.begin(), liking.end(), grades.begin(), grades_of);
  json docs = json::array();
  for (std::size_t i = 0; i < kProducts; ++i) {
    docs.push_back(
        {{"id", fmt::format("{} {}", category.name, i)},
         {"name", fmt::format("{} {}", kBrands[products[i].brand], category.models[i / kBrands.size()])},
         {"features", products[i].values},
         {"grades", {grades[0][i], grades[1][i], grades[2][i]}}});
  }
  return {{"name", category.name}, {"docs", docs}};
}

}  // namespace

DemoCatalogue product_catalogue(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  json queries = json::array();
  for (const Category& category : kCategories) queries.push_back(category_json(category, random));
  return {
      {{"about", "120 invented products. A ranker is told their figures, but not their names."},
       {"words", {"€ #", "★ #", "reviews: #", "delivery: # d", "# g", "−# %"}},
       {"queries", queries},
       {"tastes",
        {{{"name", "Ann"}, {"about", "wants neither cheap nor dear: a price a little above the middle."}},
         {{"name", "Ben"}, {"about", "likes it cheap, and well rated where the prices are close."}},
         {{"name", "Cleo"},
          {"about", "is a fan of Cedar and Rowan. No figure says so: only trying a product tells."}}}}},
      6,
      3};
}

}  // namespace olrank
