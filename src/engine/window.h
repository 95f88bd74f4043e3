/* A budget in a sliding window of time: so many in so long (SUP-5). */
#ifndef TP_WINDOW_H
#define TP_WINDOW_H

#include "troupe.h"

typedef struct tp_window {
  tp_time *times; /* those granted that may still count, the oldest first */
  uint32_t count, capacity;
} tp_window;

/* Whether one more is within `limit` (-1: none) in the last `within`; if so, it counts from now on.
 * Something exactly `within` old no longer counts. Refuses when there is no memory to count. */
bool tp_window_grant(tp_system *s, tp_window *w, int64_t limit, tp_time within);

void tp_window_fini(tp_system *s, tp_window *w);

#endif
