#include "ring.h"

#include <assert.h>
#include <string.h>

#include "alloc.h"
#include "system.h"

enum { SMALL = 8, LARGE = 1024 };

/* Buffers that are kept for the next mailbox that needs one; beyond this they are freed. */
#define POOL_BYTES ((size_t)1 << 20)

/* A pooled buffer's first bytes hold the next one of its size. */
typedef struct pooled {
  struct pooled *next;
} pooled;

/* Buffers hold SMALL << size_class envelopes. */
static uint32_t size_class(uint32_t capacity) {
  uint32_t c = 0;
  while ((uint32_t)SMALL << c < capacity) c++;
  return c;
}

static tp_envelope *take_buffer(tp_system *s, uint32_t capacity) {
  uint32_t c = size_class(capacity);
  pooled *p = c < TP_RING_CLASSES ? s->ring_pool[c] : NULL;
  size_t bytes = capacity * sizeof(tp_envelope);
  if (p == NULL) return tp_alloc(s, bytes);
  s->ring_pool[c] = p->next;
  s->ring_pool_bytes -= bytes;
  return (tp_envelope *)(void *)p;
}

static void give_buffer(tp_system *s, tp_ring *r) {
  uint32_t c = size_class(r->capacity);
  size_t bytes = r->capacity * sizeof(tp_envelope);
  if (c < TP_RING_CLASSES && s->ring_pool_bytes + bytes <= POOL_BYTES) {
    pooled *p = (pooled *)(void *)r->slots;
    p->next = s->ring_pool[c];
    s->ring_pool[c] = p;
    s->ring_pool_bytes += bytes;
  } else {
    tp_free(s, r->slots, bytes);
  }
  *r = (tp_ring){0};
}

/* Moves what is queued to a buffer of `capacity`, which has room for it. */
static int move(tp_system *s, tp_ring *r, uint32_t capacity) {
  tp_envelope *slots = take_buffer(s, capacity);
  if (slots == NULL) return TP_ENOMEM;
  uint32_t count = r->count, to_end = r->capacity - r->head;
  uint32_t tail = count < to_end ? count : to_end; /* from the head to the end, then the rest */
  memcpy(slots, r->slots + r->head, tail * sizeof *slots);
  memcpy(slots + tail, r->slots, (count - tail) * sizeof *slots);
  uint32_t mark = r->mark;
  give_buffer(s, r);
  *r = (tp_ring){.slots = slots, .count = count, .capacity = capacity, .mark = mark};
  return TP_OK;
}

static int grow(tp_system *s, tp_ring *r) {
  if (r->capacity > UINT32_MAX / 2) return TP_ENOMEM;
  if (r->capacity > 0) return move(s, r, r->capacity * 2);
  r->slots = take_buffer(s, SMALL);
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

static void shrink(tp_system *s, tp_ring *r) {
  if (--r->count == 0) {
    give_buffer(s, r);
  } else if (r->count < r->capacity / 8 && r->capacity > LARGE) {
    (void)move(s, r, r->capacity / 4); /* failing to shrink loses nothing */
  }
}

tp_envelope tp_ring_pop(tp_system *s, tp_ring *r) {
  assert(r->count > 0);
  tp_envelope e = r->slots[r->head];
  r->head = (r->head + 1) & (r->capacity - 1);
  shrink(s, r);
  return e;
}

int tp_ring_reserve(tp_system *s, tp_ring *r, uint32_t n) {
  while (r->capacity - r->count < n) {
    if (grow(s, r) != TP_OK) return TP_ENOMEM;
  }
  return TP_OK;
}

void tp_ring_put_back(tp_ring *r, tp_envelope e) {
  assert(r->count < r->capacity);
  r->head = (r->head - 1) & (r->capacity - 1);
  r->slots[r->head] = e;
  r->count++;
}

tp_envelope *tp_ring_at(tp_ring *r, uint32_t i) {
  return &r->slots[(r->head + i) & (r->capacity - 1)];
}

tp_envelope tp_ring_remove(tp_system *s, tp_ring *r, uint32_t i) {
  tp_envelope e = *tp_ring_at(r, i);
  if (i < r->count / 2) {
    for (; i > 0; i--) *tp_ring_at(r, i) = *tp_ring_at(r, i - 1);
    r->head = (r->head + 1) & (r->capacity - 1);
  } else {
    for (; i + 1 < r->count; i++) *tp_ring_at(r, i) = *tp_ring_at(r, i + 1);
  }
  shrink(s, r);
  return e;
}

uint32_t tp_ring_find(tp_ring *r, uint32_t from, const tp_ref *sender) {
  for (uint32_t i = from, j = r->count; i < j; i++) {
    if (tp_ring_at(r, i)->sender == sender) return i;
    if (tp_ring_at(r, --j)->sender == sender) return j;
  }
  return r->count;
}

void tp_ring_pool_fini(tp_system *s) {
  for (uint32_t c = 0; c < TP_RING_CLASSES; c++) {
    while (s->ring_pool[c] != NULL) {
      pooled *p = s->ring_pool[c];
      s->ring_pool[c] = p->next;
      tp_free(s, p, ((size_t)SMALL << c) * sizeof(tp_envelope));
    }
  }
  s->ring_pool_bytes = 0;
}
