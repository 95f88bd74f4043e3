#include "timer.h"

#include "alloc.h"
#include "system.h"

enum { ARITY = 4, FIRST_CAPACITY = 16 };

static bool before(const tp_deadline *a, const tp_deadline *b) {
  return a->due < b->due || (a->due == b->due && a->order < b->order);
}

static void place(tp_timers *h, uint32_t i, tp_deadline d) {
  h->heap[i] = d;
  d.timer->place = i + 1;
}

static void sift_up(tp_timers *h, uint32_t i, tp_deadline d) {
  while (i > 0) {
    uint32_t parent = (i - 1) / ARITY;
    if (!before(&d, &h->heap[parent])) break;
    place(h, i, h->heap[parent]);
    i = parent;
  }
  place(h, i, d);
}

static void sift_down(tp_timers *h, uint32_t i, tp_deadline d) {
  for (;;) {
    uint32_t first = i * ARITY + 1;
    if (first >= h->count) break;
    uint32_t last = first + ARITY < h->count ? first + ARITY : h->count;
    uint32_t least = first;
    for (uint32_t c = first + 1; c < last; c++) {
      if (before(&h->heap[c], &h->heap[least])) least = c;
    }
    if (!before(&h->heap[least], &d)) break;
    place(h, i, h->heap[least]);
    i = least;
  }
  place(h, i, d);
}

static int set_capacity(tp_system *s, tp_timers *h, uint32_t capacity) {
  size_t size = sizeof(tp_deadline);
  void *p = tp_resize(s, h->heap, h->capacity * size, capacity * size);
  if (p == NULL) return TP_ENOMEM;
  h->heap = p;
  h->capacity = capacity;
  return TP_OK;
}

static void remove_at(tp_system *s, uint32_t i) {
  tp_timers *h = &s->timers;
  h->heap[i].timer->place = 0;
  tp_deadline last = h->heap[--h->count];
  if (i < h->count) {
    if (i > 0 && before(&last, &h->heap[(i - 1) / ARITY])) {
      sift_up(h, i, last);
    } else {
      sift_down(h, i, last);
    }
  }
  if (h->capacity > FIRST_CAPACITY && h->count < h->capacity / 4) {
    (void)set_capacity(s, h, h->capacity / 2); /* failing to shrink loses nothing */
  }
}

int tp_timer_arm(tp_system *s, tp_timer *t, tp_timer_kind kind, tp_time due) {
  tp_timers *h = &s->timers;
  t->kind = (uint8_t)kind;
  if (due == TP_NEVER) return TP_OK;
  if (h->count == h->capacity) {
    if (h->capacity > UINT32_MAX / 2) return TP_ENOMEM;
    int status = set_capacity(s, h, h->capacity == 0 ? FIRST_CAPACITY : h->capacity * 2);
    if (status != TP_OK) return status;
  }
  sift_up(h, h->count++, (tp_deadline){due, h->armed++, t});
  return TP_OK;
}

void tp_timer_disarm(tp_system *s, tp_timer *t) {
  if (t->place != 0) remove_at(s, t->place - 1);
}

tp_timer *tp_timers_pop(tp_system *s, tp_time now, tp_time *due) {
  tp_timers *h = &s->timers;
  if (h->count == 0 || h->heap[0].due > now) return NULL;
  tp_timer *t = h->heap[0].timer;
  *due = h->heap[0].due;
  remove_at(s, 0);
  return t;
}

void tp_timers_fini(tp_system *s) {
  tp_timers *h = &s->timers;
  tp_free(s, h->heap, h->capacity * sizeof(tp_deadline));
  *h = (tp_timers){0};
}
