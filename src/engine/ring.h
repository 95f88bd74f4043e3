/* A queue of envelopes that grows by doubling and gives memory back when it drains.
 *
 * First in, first out; push and pop are O(1) amortized. The ring owns the envelopes in it: what is
 * pushed is taken, what is popped is given. It knows nothing of actors. An empty ring owns no
 * memory: buffers come from and go back to a pool of the system, so that an actor that gets a
 * message now and then costs no allocation and an idle one no bytes. */
#ifndef TP_RING_H
#define TP_RING_H

#include <assert.h>

#include "troupe.h"

/* Sizes of buffers that are pooled: from TP_RING_SMALL envelopes on, each twice the one before. */
enum { TP_RING_CLASSES = 16, TP_RING_SMALL = 2 };

/* Buffers that are kept for the next mailbox that needs one; beyond TP_RING_POOL_BYTES they are freed. */
#define TP_RING_POOL_BYTES ((size_t)1 << 20)

/* A pooled buffer's first bytes hold the next one of its size. */
typedef struct tp_pooled {
  struct tp_pooled *next;
} tp_pooled;

typedef struct tp_ring_pool {
  tp_system *system; /* whose it is */
  tp_pooled *free[TP_RING_CLASSES];
  size_t bytes;
} tp_ring_pool;

typedef struct tp_ring {
  tp_envelope *slots;
  uint32_t head;     /* index of the oldest */
  uint32_t count;    /* envelopes queued */
  uint32_t capacity; /* a power of two, or 0 */
  uint32_t mark;     /* the owner's; 0 again when the ring has been empty */
} tp_ring;

/* The envelope that is `i` places behind the oldest. */
static inline tp_envelope *tp_ring_at(tp_ring *r, uint32_t i) {
  return &r->slots[(r->head + i) & (r->capacity - 1)];
}

/* A buffer of TP_RING_SMALL << c envelopes from the pool; NULL when there is none. */
static inline tp_envelope *tp_ring_pool_take(tp_ring_pool *pool, uint32_t c) {
  tp_pooled *p = pool->free[c];
  if (p == NULL) return NULL;
  pool->free[c] = p->next;
  pool->bytes -= (sizeof(tp_envelope) * TP_RING_SMALL) << c;
  return (tp_envelope *)(void *)p;
}

/* Gives such a buffer to the pool; false when that has enough. */
static inline bool tp_ring_pool_give(tp_ring_pool *pool, uint32_t c, tp_envelope *slots) {
  size_t bytes = (sizeof(tp_envelope) * TP_RING_SMALL) << c;
  if (pool->bytes + bytes > TP_RING_POOL_BYTES) return false;
  tp_pooled *p = (tp_pooled *)(void *)slots;
  p->next = pool->free[c];
  pool->free[c] = p;
  pool->bytes += bytes;
  return true;
}

/* Room for one more in a ring that is full. TP_ENOMEM. */
int tp_ring_grow(tp_ring_pool *pool, tp_ring *r);

/* The place for one more, which the caller fills. NULL when the ring cannot grow; then nothing has
 * changed. */
static inline tp_envelope *tp_ring_place(tp_ring_pool *pool, tp_ring *r) {
  if (r->capacity == 0 && (r->slots = tp_ring_pool_take(pool, 0)) != NULL) {
    r->capacity = TP_RING_SMALL;
  } else if (r->count == r->capacity && tp_ring_grow(pool, r) != TP_OK) {
    return NULL;
  }
  return tp_ring_at(r, r->count++);
}

/* Takes `e`. TP_ENOMEM when the ring cannot grow; then nothing is taken or lost. */
static inline int tp_ring_push(tp_ring_pool *pool, tp_ring *r, tp_envelope e) {
  tp_envelope *place = tp_ring_place(pool, r);
  if (place == NULL) return TP_ENOMEM;
  *place = e;
  return TP_OK;
}

/* An envelope fewer is in it: gives back memory that is not worth its while any more. */
void tp_ring_shrink(tp_ring_pool *pool, tp_ring *r);

/* Gives the oldest envelope; the ring must not be empty. */
static inline tp_envelope tp_ring_pop(tp_ring_pool *pool, tp_ring *r) {
  assert(r->count > 0);
  tp_envelope e = *tp_ring_at(r, 0);
  r->head = (r->head + 1) & (r->capacity - 1);
  if (--r->count > r->capacity / 8) return e;
  if (r->capacity == TP_RING_SMALL && tp_ring_pool_give(pool, 0, r->slots)) {
    *r = (tp_ring){0};
  } else {
    tp_ring_shrink(pool, r);
  }
  return e;
}

/* Room for `n` more, so that putting them does not fail. TP_ENOMEM. */
int tp_ring_reserve(tp_ring_pool *pool, tp_ring *r, uint32_t n);

/* Puts `e` (taken) before the oldest, into room that was made before. */
void tp_ring_put_back(tp_ring *r, tp_envelope e);

/* Takes out and gives the one at `i`; the others keep their order. O(1) near both ends, else O(n). */
tp_envelope tp_ring_remove(tp_ring_pool *pool, tp_ring *r, uint32_t i);

/* Where one of that sender's is, from place `from` on; the count when there is none. As quick. */
uint32_t tp_ring_find(tp_ring *r, uint32_t from, const tp_ref *sender);

/* Gives back the pool's buffers; for the end of a system. */
void tp_ring_pool_fini(tp_ring_pool *pool);

#endif
