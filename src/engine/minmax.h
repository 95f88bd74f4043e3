/* A priority queue of envelopes with two ends: a min-max heap (Atkinson, Sack, Santoro and Strothotte,
 * "Min-max heaps and generalized priority queues", CACM 29, 1986).
 *
 * The entry with the lowest rank comes out at one end, the one with the highest at the other; among
 * equal ranks the order decides. Pushing and popping are O(log n). The queue owns the envelopes in
 * it. A place is reserved before it is filled, so that pushing never fails. The array grows by
 * doubling and gives memory back as it drains, all but a small one. */
#ifndef TP_MINMAX_H
#define TP_MINMAX_H

#include "troupe.h"

typedef struct tp_minmax_entry {
  double rank; /* not NaN */
  int64_t order;
  tp_envelope envelope;
} tp_minmax_entry;

static inline bool tp_minmax_less(const tp_minmax_entry *a, const tp_minmax_entry *b) {
  return a->rank < b->rank || (a->rank == b->rank && a->order < b->order);
}

typedef struct tp_minmax {
  tp_minmax_entry *entries; /* even levels are minima of what is below them, odd ones are maxima */
  uint32_t count;
  uint32_t places; /* filled or reserved */
  uint32_t capacity;
} tp_minmax;

/* Reserves `n` more places. TP_ENOMEM; then none is. */
int tp_minmax_reserve(tp_system *s, tp_minmax *q, uint32_t n);

/* Gives back `n` places that were reserved and have not been filled. */
void tp_minmax_give_back(tp_system *s, tp_minmax *q, uint32_t n);

/* Fills a reserved place with `e` (taken). */
void tp_minmax_push(tp_minmax *q, tp_minmax_entry e);

/* The first to come out, or NULL. */
const tp_minmax_entry *tp_minmax_first(const tp_minmax *q);

/* Give the lowest and the highest; the queue must not be empty. */
tp_envelope tp_minmax_pop_min(tp_system *s, tp_minmax *q);
tp_envelope tp_minmax_pop_max(tp_system *s, tp_minmax *q);

/* Gives the entry at `i` of `entries`. O(log n) */
tp_envelope tp_minmax_remove(tp_system *s, tp_minmax *q, uint32_t i);

/* Gives back the array; the queue must be empty. */
void tp_minmax_fini(tp_system *s, tp_minmax *q);

#endif
