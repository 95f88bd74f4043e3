#include "minmax.h"

#include <assert.h>

#include "alloc.h"

enum { FIRST_CAPACITY = 8 };

/* ---- Order ------------------------------------------------------------------------------ */

/* Whether `a` belongs above `b` on a level of maxima, or of minima. */
static bool above(bool maxima, const tp_minmax_entry *a, const tp_minmax_entry *b) {
  return maxima ? tp_minmax_less(b, a) : tp_minmax_less(a, b);
}

static bool on_maxima(uint32_t i) {
  bool odd = false;
  for (i++; i > 1; i /= 2) odd = !odd;
  return odd;
}

static uint32_t parent(uint32_t i) { return (i - 1) / 2; }

static void swap(tp_minmax *q, uint32_t i, uint32_t j) {
  tp_minmax_entry e = q->entries[i];
  q->entries[i] = q->entries[j];
  q->entries[j] = e;
}

static void bubble_up(tp_minmax *q, uint32_t i) {
  const tp_minmax_entry *h = q->entries;
  bool maxima = on_maxima(i);
  if (i > 0 && above(!maxima, &h[i], &h[parent(i)])) {
    swap(q, i, parent(i));
    i = parent(i);
    maxima = !maxima;
  }
  while (i > 2 && above(maxima, &h[i], &h[parent(parent(i))])) {
    swap(q, i, parent(parent(i)));
    i = parent(parent(i));
  }
}

/* Of the children and grandchildren of `i`, that which belongs above the others. */
static uint32_t best_below(const tp_minmax *q, uint32_t i, bool maxima) {
  const tp_minmax_entry *h = q->entries;
  uint32_t child = 2 * i + 1, grandchild = 2 * child + 1, best = child;
  if (child + 1 < q->count && above(maxima, &h[child + 1], &h[best])) best = child + 1;
  for (uint32_t g = grandchild; g < grandchild + 4 && g < q->count; g++) {
    if (above(maxima, &h[g], &h[best])) best = g;
  }
  return best;
}

static void trickle_down(tp_minmax *q, uint32_t i) {
  const tp_minmax_entry *h = q->entries;
  bool maxima = on_maxima(i);
  while (2 * i + 1 < q->count) {
    uint32_t best = best_below(q, i, maxima);
    if (!above(maxima, &h[best], &h[i])) return;
    swap(q, best, i);
    if (best <= 2 * i + 2) return; /* a child */
    if (above(maxima, &h[parent(best)], &h[best])) swap(q, best, parent(best));
    i = best;
  }
}

/* ---- Memory ----------------------------------------------------------------------------- */

static int set_capacity(tp_system *s, tp_minmax *q, uint32_t capacity) {
  size_t size = sizeof *q->entries;
  void *p = tp_resize(s, q->entries, q->capacity * size, capacity * size);
  if (p == NULL) return TP_ENOMEM;
  q->entries = p;
  q->capacity = capacity;
  return TP_OK;
}

int tp_minmax_reserve(tp_system *s, tp_minmax *q, uint32_t n) {
  uint32_t capacity = q->capacity == 0 ? FIRST_CAPACITY : q->capacity;
  if (n > UINT32_MAX / 4 - q->places) return TP_ENOMEM;
  while (capacity < q->places + n) capacity *= 2;
  if (capacity > q->capacity && set_capacity(s, q, capacity) != TP_OK) return TP_ENOMEM;
  q->places += n;
  return TP_OK;
}

void tp_minmax_give_back(tp_system *s, tp_minmax *q, uint32_t n) {
  assert(q->places - q->count >= n);
  q->places -= n;
  uint32_t capacity = q->capacity;
  while (capacity > FIRST_CAPACITY && q->places < capacity / 4) capacity /= 2;
  /* Failing to shrink loses nothing. */
  if (capacity < q->capacity) (void)set_capacity(s, q, capacity);
}

void tp_minmax_fini(tp_system *s, tp_minmax *q) {
  assert(q->places == 0);
  tp_free(s, q->entries, q->capacity * sizeof *q->entries);
  *q = (tp_minmax){0};
}

/* ---- The queue -------------------------------------------------------------------------- */

void tp_minmax_push(tp_minmax *q, tp_minmax_entry e) {
  assert(q->count < q->places);
  q->entries[q->count] = e;
  bubble_up(q, q->count++);
}

const tp_minmax_entry *tp_minmax_first(const tp_minmax *q) {
  return q->count == 0 ? NULL : q->entries;
}

/* What takes its place may belong above it or below it. */
tp_envelope tp_minmax_remove(tp_system *s, tp_minmax *q, uint32_t i) {
  assert(i < q->count);
  tp_envelope e = q->entries[i].envelope;
  q->entries[i] = q->entries[--q->count];
  if (i < q->count) {
    bubble_up(q, i);
    trickle_down(q, i);
  }
  tp_minmax_give_back(s, q, 1);
  return e;
}

tp_envelope tp_minmax_pop_min(tp_system *s, tp_minmax *q) { return tp_minmax_remove(s, q, 0); }

tp_envelope tp_minmax_pop_max(tp_system *s, tp_minmax *q) {
  uint32_t i = q->count > 1 ? 1 : 0;
  if (q->count > 2 && tp_minmax_less(&q->entries[1], &q->entries[2])) i = 2;
  return tp_minmax_remove(s, q, i);
}
