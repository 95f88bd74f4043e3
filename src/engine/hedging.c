#include "hedging.h"

#include "alloc.h"

/* Tokens are counted in millionths. A bucket holds ten at least. */
enum { TOKEN = 1000000, BUCKET = 10 * TOKEN };
#define WINDOW (10000 * TP_MILLISECOND)

/* Fewer answers say nothing of what is late; so many weigh in what has been won lately. */
enum { ENOUGH = 20, LATELY = 256 };

/* How many latencies tell a percentile: enough for fifty that are longer, and no more than that, so that
 * it follows what happens now. */
static uint32_t telling(double percentile) {
  double n = 50 / (1 - percentile);
  return n < 1024 ? 1024 : n > 65536 ? 65536 : (uint32_t)n;
}

struct tp_hedging {
  const tp_gathering *how;
  uint64_t tokens;         /* in the bucket */
  uint64_t share;          /* that each request earns */
  tp_time window;          /* when the present window of time began */
  uint64_t earned, before; /* in it, and in the one before */
  double won;              /* the share of answers that hedges have given lately */
  tp_latency latency;
};

tp_hedging *tp_hedging_new(tp_system *s, const tp_gathering *how) {
  tp_hedging *h = tp_alloc(s, sizeof *h);
  if (h == NULL) return NULL;
  h->how = how;
  h->tokens = BUCKET;
  h->latency.full = telling(how->percentile);
  h->share = how->max_extra_load >= 10 ? BUCKET : (uint64_t)(how->max_extra_load * TOKEN + 0.5);
  return h;
}

void tp_hedging_free(tp_system *s, tp_hedging *h) { tp_free(s, h, sizeof *h); }

static uint64_t capacity(const tp_hedging *h) {
  uint64_t lately = h->before + h->earned;
  return lately > BUCKET ? lately : BUCKET;
}

void tp_hedging_request(tp_hedging *h, tp_time now) {
  if (now - h->window >= WINDOW) {
    h->before = now - h->window < 2 * WINDOW ? h->earned : 0;
    h->earned = 0;
    h->window = now;
  }
  h->earned += h->share;
  h->tokens += h->share;
  if (h->tokens > capacity(h)) h->tokens = capacity(h);
}

void tp_hedging_answered(tp_hedging *h, tp_time latency, bool by_hedge) {
  if (h->how->percentile <= 0) return;
  h->won += ((by_hedge ? 1 : 0) - h->won) / LATELY;
  bool too_often = by_hedge && h->won > 2 * (1 - h->how->percentile);
  tp_latency_add(&h->latency, too_often ? tp_hedging_delay(h) : latency);
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
