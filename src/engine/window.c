#include "window.h"

#include <string.h>

#include "alloc.h"
#include "system.h"

enum { FIRST_CAPACITY = 4 };

static void forget_old(tp_window *w, tp_time now, tp_time within) {
  uint32_t old = 0;
  while (old < w->count && now - w->times[old] >= within) old++;
  w->count -= old;
  if (old > 0) memmove(w->times, w->times + old, w->count * sizeof *w->times);
}

static bool remember(tp_system *s, tp_window *w) {
  if (w->count == w->capacity) {
    uint32_t capacity = w->capacity == 0 ? FIRST_CAPACITY : w->capacity * 2;
    size_t size = sizeof(tp_time);
    void *p = tp_resize(s, w->times, w->capacity * size, capacity * size);
    if (p == NULL) return false;
    w->times = p;
    w->capacity = capacity;
  }
  w->times[w->count++] = s->now;
  return true;
}

bool tp_window_grant(tp_system *s, tp_window *w, int64_t limit, tp_time within) {
  if (limit < 0) return true;
  forget_old(w, s->now, within);
  return (int64_t)w->count < limit && remember(s, w);
}

void tp_window_fini(tp_system *s, tp_window *w) {
  tp_free(s, w->times, w->capacity * sizeof *w->times);
  *w = (tp_window){0};
}
