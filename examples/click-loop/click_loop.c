/* click_loop.cpp in C: a ranker learns from a user who clicks with the probability x[0] - x[1]. */
#include <olrank/c_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { kDocs = 50, kFeatures = 40, kRanks = 10 };

static void check(olrank_status status) {
  if (status == OLRANK_OK) return;
  fprintf(stderr, "%s\n", olrank_last_error());
  exit(1);
}

int main(void) {
  const char* settings[] = {"kind", "olranknet", "width", "32", "covariance", "full", NULL};
  olrank_ranker* ranker;
  check(olrank_ranker_create(kFeatures, settings, &ranker));
  int clicked = 0;
  for (int round = 1; round <= 400; ++round) {
    float docs[kDocs * kFeatures];
    for (int i = 0; i < kDocs * kFeatures; ++i) docs[i] = (float)rand() / (float)RAND_MAX;
    olrank_list* list;
    check(olrank_ranker_rank(ranker, docs, kDocs, NULL, kRanks, &list));
    uint8_t clicks[kRanks];
    for (int rank = 0; rank < kRanks; ++rank) {
      const float* x = docs + list->docs[rank] * kFeatures;
      clicked += clicks[rank] = (float)rand() / (float)RAND_MAX < x[0] - x[1];
    }
    check(olrank_ranker_learn(ranker, list, clicks, NULL, kRanks));
    olrank_list_free(list);
    if (round % 100 == 0) printf("%d clicks in %d rounds\n", clicked, round);
  }
  check(olrank_ranker_save_model(ranker, "click_loop.safetensors"));
  olrank_ranker_free(ranker);
}
