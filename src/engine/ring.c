#include "ring.h"

#include <assert.h>
#include <string.h>

#include "alloc.h"
#include "system.h"

enum { SMALL = 8, LARGE = 1024 };

/* A pooled buffer's first bytes hold the next one in the pool. */
typedef struct pooled {
  struct pooled *next;
} pooled;

static tp_envelope *take_small(tp_system *s) {
  pooled *p = s->ring_pool;
  if (p == NULL) return tp_alloc(s, SMALL * sizeof(tp_envelope));
  s->ring_pool = p->next;
  return (tp_envelope *)(void *)p;
}

static void give_buffer(tp_system *s, tp_ring *r) {
  if (r->capacity == SMALL) {
    pooled *p = (pooled *)(void *)r->slots;
    p->next = s->ring_pool;
    s->ring_pool = p;
  } else {
    tp_free(s, r->slots, r->capacity * sizeof(tp_envelope));
  }
  *r = (tp_ring){0};
}

/* Moves what is queued to a buffer of `capacity`, which has room for it. */
static int move(tp_system *s, tp_ring *r, uint32_t capacity) {
  tp_envelope *slots = tp_alloc(s, capacity * sizeof *slots);
  if (slots == NULL) return TP_ENOMEM;
  uint32_t count = r->count, to_end = r->capacity - r->head;
  uint32_t tail = count < to_end ? count : to_end; /* from the head to the end, then the rest */
  memcpy(slots, r->slots + r->head, tail * sizeof *slots);
  memcpy(slots + tail, r->slots, (count - tail) * sizeof *slots);
  give_buffer(s, r);
  *r = (tp_ring){.slots = slots, .count = count, .capacity = capacity};
  return TP_OK;
}

static int grow(tp_system *s, tp_ring *r) {
  if (r->capacity > UINT32_MAX / 2) return TP_ENOMEM;
  if (r->capacity > 0) return move(s, r, r->capacity * 2);
  r->slots = take_small(s);
  if (r->slots == NULL) return TP_ENOMEM;
  r->capacity = SMALL;
  return TP_OK;
}

int tp_ring_push(tp_system *s, tp_ring *r, tp_envelope e) {
  if (r->count == r->capacity) {
    int status = grow(s, r);
    if (status != TP_OK) return status;
  }
  r->slots[(r->head + r->count) & (r->capacity - 1)] = e;
  r->count++;
  return TP_OK;
}

tp_envelope tp_ring_pop(tp_system *s, tp_ring *r) {
  assert(r->count > 0);
  tp_envelope e = r->slots[r->head];
  r->head = (r->head + 1) & (r->capacity - 1);
  if (--r->count == 0) {
    give_buffer(s, r);
  } else if (r->count < r->capacity / 8 && r->capacity > LARGE) {
    (void)move(s, r, r->capacity / 4); /* failing to shrink loses nothing */
  }
  return e;
}

void tp_ring_pool_fini(tp_system *s) {
  while (s->ring_pool != NULL) {
    pooled *p = s->ring_pool;
    s->ring_pool = p->next;
    tp_free(s, p, SMALL * sizeof(tp_envelope));
  }
}
