// A neural ranker learns, list by list, from a user who clicks with the probability x[0] - x[1].
#include <olrank/error.h>
#include <olrank/ranker.h>

#include <cstdio>
#include <random>
#include <vector>

int main() {
  constexpr int kDocs = 50;
  constexpr int kFeatures = 40;
  try {
    olrank::Ranker ranker({.kind = "olranknet",
                           .features = kFeatures,
                           .seed = 1,
                           .settings = {{"width", "32"}, {"covariance", "full"}}});
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform;
    int clicks_since = 0;
    double certain_since = 0.0;
    for (int round = 1; round <= 400; ++round) {
      std::vector<float> docs(kDocs * kFeatures);
      for (float& value : docs) value = uniform(random);

      const olrank::ShownList list = ranker.rank(docs);
      std::vector<unsigned char> clicks;
      for (const int doc : list.docs) {
        const float* x = docs.data() + doc * kFeatures;
        clicks.push_back(uniform(random) < x[0] - x[1] ? 1 : 0);
        clicks_since += clicks.back();
      }
      ranker.learn(list, clicks);

      certain_since += static_cast<double>(list.certain.size()) / 45.0;  // of 45 pairs in a list of 10
      if (round % 100 != 0) continue;
      std::printf("rounds %3d to %3d: %.2f clicks a list, %2.0f %% of the shown orders certain\n",
                  round - 99, round, clicks_since / 100.0, certain_since);
      clicks_since = 0;
      certain_since = 0.0;
    }
    ranker.save_model("click_loop.safetensors");
  } catch (const olrank::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
