/* When a hedged router may ask one more routee (SG-15).
 *
 * The delay is fixed, or a percentile of the latencies of the router's own answers. Of an answer, the
 * latency is that of the whole request: of one that a hedge has won it is longer than the delay, so
 * that hedging does not lower the very percentile that it goes by. Losers are not measured.
 *
 * A bucket of tokens caps the load: a request earns a share of one, a hedge costs one. See J. Dean and
 * L. A. Barroso, "The Tail at Scale", CACM 56, 2013, and the retry budgets of gRPC and Finagle. */
#ifndef TP_HEDGING_H
#define TP_HEDGING_H

#include "latency.h"
#include "troupe.h"

typedef struct tp_hedging tp_hedging;

/* For a router with these settings, which are borrowed; its bucket is full. NULL when out of memory. */
tp_hedging *tp_hedging_new(tp_system *s, const tp_gathering *how);

void tp_hedging_free(tp_system *s, tp_hedging *h);

/* One more request. */
void tp_hedging_request(tp_hedging *h);

/* A request was answered after `latency`. */
void tp_hedging_answered(tp_hedging *h, tp_time latency);

/* How long to wait before one more is asked; TP_NEVER while too little is known. */
tp_time tp_hedging_delay(const tp_hedging *h);

/* Takes a token for a hedge; false when the cap is reached. */
bool tp_hedging_spend(tp_hedging *h);

#endif
