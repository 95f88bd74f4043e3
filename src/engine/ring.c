#include "ring.h"

#include <assert.h>
#include <string.h>

#include "alloc.h"
#include "system.h"

enum { LARGE = 1024 };

/* Buffers hold TP_RING_SMALL << size_class envelopes. */
static uint32_t size_class(uint32_t capacity) {
  uint32_t c = 0;
  while ((uint32_t)TP_RING_SMALL << c < capacity) c++;
  return c;
}

static tp_envelope *take_buffer(tp_ring_pool *pool, uint32_t capacity) {
  uint32_t c = size_class(capacity);
  tp_envelope *slots = c < TP_RING_CLASSES ? tp_ring_pool_take(pool, c) : NULL;
  return slots != NULL ? slots : tp_alloc(pool->system, capacity * sizeof *slots);
}

static void give_buffer(tp_ring_pool *pool, tp_ring *r) {
  uint32_t c = size_class(r->capacity);
  if (c >= TP_RING_CLASSES || !tp_ring_pool_give(pool, c, r->slots)) {
    tp_free(pool->system, r->slots, r->capacity * sizeof *r->slots);
  }
  *r = (tp_ring){0};
}

/* Moves what is queued to a buffer of `capacity`, which has room for it. */
static int move(tp_ring_pool *pool, tp_ring *r, uint32_t capacity) {
  tp_envelope *slots = take_buffer(pool, capacity);
  if (slots == NULL) return TP_ENOMEM;
  uint32_t count = r->count, to_end = r->capacity - r->head;
  uint32_t tail = count < to_end ? count : to_end; /* from the head to the end, then the rest */
  memcpy(slots, r->slots + r->head, tail * sizeof *slots);
  memcpy(slots + tail, r->slots, (count - tail) * sizeof *slots);
  uint32_t mark = r->mark;
  give_buffer(pool, r);
  *r = (tp_ring){.slots = slots, .count = count, .capacity = capacity, .mark = mark};
  return TP_OK;
}

int tp_ring_grow(tp_ring_pool *pool, tp_ring *r) {
  if (r->capacity > UINT32_MAX / 2) return TP_ENOMEM;
  if (r->capacity > 0) return move(pool, r, r->capacity * 2);
  r->slots = take_buffer(pool, TP_RING_SMALL);
  if (r->slots == NULL) return TP_ENOMEM;
  r->capacity = TP_RING_SMALL;
  return TP_OK;
}

void tp_ring_shrink(tp_ring_pool *pool, tp_ring *r) {
  if (r->count == 0) {
    give_buffer(pool, r);
  } else if (r->count < r->capacity / 8 && r->capacity > LARGE) {
    (void)move(pool, r, r->capacity / 4); /* failing to shrink loses nothing */
  }
}

int tp_ring_reserve(tp_ring_pool *pool, tp_ring *r, uint32_t n) {
  while (r->capacity - r->count < n) {
    if (tp_ring_grow(pool, r) != TP_OK) return TP_ENOMEM;
  }
  return TP_OK;
}

void tp_ring_put_back(tp_ring *r, tp_envelope e) {
  assert(r->count < r->capacity);
  r->head = (r->head - 1) & (r->capacity - 1);
  r->slots[r->head] = e;
  r->count++;
}

tp_envelope tp_ring_remove(tp_ring_pool *pool, tp_ring *r, uint32_t i) {
  tp_envelope e = *tp_ring_at(r, i);
  if (i < r->count / 2) {
    for (; i > 0; i--) *tp_ring_at(r, i) = *tp_ring_at(r, i - 1);
    r->head = (r->head + 1) & (r->capacity - 1);
  } else {
    for (; i + 1 < r->count; i++) *tp_ring_at(r, i) = *tp_ring_at(r, i + 1);
  }
  r->count--;
  tp_ring_shrink(pool, r);
  return e;
}

uint32_t tp_ring_find(tp_ring *r, uint32_t from, const tp_ref *sender) {
  for (uint32_t i = from, j = r->count; i < j; i++) {
    if (tp_ring_at(r, i)->sender == sender) return i;
    if (tp_ring_at(r, --j)->sender == sender) return j;
  }
  return r->count;
}

void tp_ring_pool_fini(tp_ring_pool *pool) {
  for (uint32_t c = 0; c < TP_RING_CLASSES; c++) {
    while (pool->free[c] != NULL) {
      tp_pooled *p = pool->free[c];
      pool->free[c] = p->next;
      tp_free(pool->system, p, ((size_t)TP_RING_SMALL << c) * sizeof(tp_envelope));
    }
  }
  pool->bytes = 0;
}
