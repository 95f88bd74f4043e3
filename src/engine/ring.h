/* A queue of envelopes that grows by doubling and gives memory back when it drains.
 *
 * First in, first out; push and pop are O(1) amortized. The ring owns the envelopes in it: what is
 * pushed is taken, what is popped is given. It knows nothing of actors. An empty ring owns no
 * memory: buffers come from and go back to a pool of the system, so that an actor that gets a
 * message now and then costs no allocation and an idle one no bytes. */
#ifndef TP_RING_H
#define TP_RING_H

#include "troupe.h"

/* Sizes of buffers that are pooled: from 8 envelopes on, each twice the one before. */
#define TP_RING_CLASSES 14

typedef struct tp_ring {
  tp_envelope *slots;
  uint32_t head;     /* index of the oldest */
  uint32_t count;    /* envelopes queued */
  uint32_t capacity; /* a power of two, or 0 */
  uint32_t mark;     /* the owner's; 0 again when the ring has been empty */
} tp_ring;

/* Takes `e`. TP_ENOMEM when the ring cannot grow; then nothing is taken or lost. */
int tp_ring_push(tp_system *s, tp_ring *r, tp_envelope e);

/* Gives the oldest envelope; the ring must not be empty. */
tp_envelope tp_ring_pop(tp_system *s, tp_ring *r);

/* The envelope that is `i` places behind the oldest. */
tp_envelope *tp_ring_at(tp_ring *r, uint32_t i);

/* Room for `n` more, so that putting them does not fail. TP_ENOMEM. */
int tp_ring_reserve(tp_system *s, tp_ring *r, uint32_t n);

/* Puts `e` (taken) before the oldest, into room that was made before. */
void tp_ring_put_back(tp_ring *r, tp_envelope e);

/* Takes out and gives the one at `i`; the others keep their order. O(1) near both ends, else O(n). */
tp_envelope tp_ring_remove(tp_system *s, tp_ring *r, uint32_t i);

/* Where one of that sender's is, from place `from` on; the count when there is none. As quick. */
uint32_t tp_ring_find(tp_ring *r, uint32_t from, const tp_ref *sender);

/* Gives back the pool's buffers; for the end of a system. */
void tp_ring_pool_fini(tp_system *s);

#endif
