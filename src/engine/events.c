#include "events.h"

#include <string.h>

#include "alloc.h"
#include "system.h"

enum { FIRST_CAPACITY = 16, KEPT_CAPACITY = 256 };

void tp_events_want(tp_system *s, uint32_t kinds) { s->events.wanted = kinds; }

static int grow(tp_system *s, tp_events *q) {
  uint32_t capacity = q->capacity == 0 ? FIRST_CAPACITY : q->capacity * 2;
  tp_event *ring = tp_alloc(s, capacity * sizeof *ring);
  if (ring == NULL) return TP_ENOMEM;
  for (uint32_t i = 0; i < q->count; i++) ring[i] = q->ring[(q->head + i) & (q->capacity - 1)];
  tp_free(s, q->ring, q->capacity * sizeof *ring);
  q->ring = ring;
  q->head = 0;
  q->capacity = capacity;
  return TP_OK;
}

void tp_events_publish(tp_system *s, const tp_event *e) {
  tp_events *q = &s->events;
  if (!tp_events_wanted(q, e->kind)) return;
  if (q->in_hand && tp_terminated(s)) return; /* or a subscriber could keep the end from coming */
  if (q->count == q->capacity && grow(s, q) != TP_OK) {
    q->lost++;
    return;
  }
  if (e->subject != NULL) tp_ref_retain(e->subject);
  if (e->sender != NULL) tp_ref_retain(e->sender);
  tp_value_retain(s, e->value);
  tp_value_retain(s, e->trace);
  q->ring[(q->head + q->count++) & (q->capacity - 1)] = *e;
}

void tp_events_next(tp_system *s, tp_job *job) {
  tp_events *q = &s->events;
  job->kind = TP_JOB_EVENT;
  q->in_hand = true;
  job->actor = NULL;
  job->event = q->ring[q->head];
  q->head = (q->head + 1) & (q->capacity - 1);
  if (--q->count == 0 && q->capacity > KEPT_CAPACITY) {
    tp_event *ring = q->ring;
    q->ring = NULL;
    tp_free(s, ring, q->capacity * sizeof *ring);
    q->head = q->capacity = 0;
  }
}

void tp_event_release(tp_system *s, tp_event *e) {
  if (e->subject != NULL) tp_ref_release(e->subject);
  if (e->sender != NULL) tp_ref_release(e->sender);
  tp_value_release(s, e->value);
  tp_value_release(s, e->trace);
}

void tp_events_fini(tp_system *s) {
  tp_events *q = &s->events;
  for (; q->count > 0; q->count--, q->head = (q->head + 1) & (q->capacity - 1)) {
    tp_event_release(s, &q->ring[q->head]);
  }
  tp_free(s, q->ring, q->capacity * sizeof *q->ring);
  *q = (tp_events){.wanted = q->wanted};
}
