/* When a hedged router may ask one more routee (SG-15).
 *
 * The delay is fixed, or a percentile of the latencies of the router's own answers. Of an answer, that is
 * the latency of the whole request: what a hedge has won took longer than the delay, so that hedging
 * does not lower the very percentile that it goes by. Losers are not measured. But when hedges win far
 * more often than the percentile says, a routee is always late, and what they win counts as late and no
 * more: else it would lengthen the delay for ever.
 *
 * A bucket of tokens caps the load: a request earns a share of one, a hedge costs one. It holds ten, or
 * what the requests of the last ten to twenty seconds have earned, since routees that pause make many
 * requests late at once. See J. Dean and L. A. Barroso, "The Tail at Scale", CACM 56, 2013, and the
 * retry budgets of gRPC and Finagle. */
#ifndef TP_HEDGING_H
#define TP_HEDGING_H

#include "latency.h"
#include "troupe.h"

typedef struct tp_hedging tp_hedging;

/* For a router with these settings, which are borrowed; its bucket is full. NULL when out of memory. */
tp_hedging *tp_hedging_new(tp_system *s, const tp_gathering *how);

void tp_hedging_free(tp_system *s, tp_hedging *h);

/* One more request. */
void tp_hedging_request(tp_hedging *h, tp_time now);

/* A request was answered after `latency`, by a hedge or by whom it had asked before. */
void tp_hedging_answered(tp_hedging *h, tp_time latency, bool by_hedge);

/* How long to wait before one more is asked; TP_NEVER while too little is known. */
tp_time tp_hedging_delay(const tp_hedging *h);

/* Takes a token for a hedge; false when the cap is reached. */
bool tp_hedging_spend(tp_hedging *h);

#endif
