#include "hedging.h"

#include "alloc.h"

/* Tokens are counted in millionths. A full bucket lets as many hedges through at once. */
enum { TOKEN = 1000000, BUCKET = 10 * TOKEN };

/* Fewer answers say nothing of what is late. */
enum { ENOUGH = 20 };

struct tp_hedging {
  const tp_gathering *how;
  uint64_t tokens, earned; /* in the bucket; by each request */
  tp_latency latency;
};

tp_hedging *tp_hedging_new(tp_system *s, const tp_gathering *how) {
  tp_hedging *h = tp_alloc(s, sizeof *h);
  if (h == NULL) return NULL;
  h->how = how;
  h->tokens = BUCKET;
  h->earned = how->max_extra_load >= 10 ? BUCKET : (uint64_t)(how->max_extra_load * TOKEN + 0.5);
  return h;
}

void tp_hedging_free(tp_system *s, tp_hedging *h) { tp_free(s, h, sizeof *h); }

void tp_hedging_request(tp_hedging *h) {
  h->tokens = h->tokens + h->earned < BUCKET ? h->tokens + h->earned : BUCKET;
}

void tp_hedging_answered(tp_hedging *h, tp_time latency) {
  if (h->how->percentile > 0) tp_latency_add(&h->latency, latency);
}

tp_time tp_hedging_delay(const tp_hedging *h) {
  if (h->how->percentile <= 0) return h->how->delay;
  return h->latency.count < ENOUGH ? TP_NEVER : tp_latency_at(&h->latency, h->how->percentile);
}

bool tp_hedging_spend(tp_hedging *h) {
  if (h->how->max_extra_load <= 0 || h->tokens < TOKEN) return false;
  h->tokens -= TOKEN;
  return true;
}
