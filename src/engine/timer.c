#include "timer.h"

#include <assert.h>

#include "alloc.h"
#include "system.h"

/* A time is a number of eleven digits of six bits. A timer stands in the wheel of the highest digit
 * in which its due time differs from `base`, in the place that this digit names; so everything in a
 * finer wheel is due before everything in a coarser one, and a place before those of higher digits.
 * When its time has come, a place is spread over the finer wheels, and `base` moves there.
 *
 * A place is a ring in the order of arming, but the earliest may stand before its turn: never before
 * one that is due at the same time, so equal times stay in order. Places whose earliest is known to
 * stand first have their bit in `known`; in the finest wheel all do, for a place there is one
 * nanosecond. */
enum { DIGIT = 6, PLACES = 1 << DIGIT, WHEELS = 11 };

typedef struct wheel {
  uint64_t taken; /* places with something in them, a bit each */
  uint64_t known;
  tp_timer *first[PLACES]; /* of those that are taken */
} wheel;

struct tp_timers {
  tp_time base; /* no timer is due before, and no place of a coarser wheel begins before */
  size_t count;
  uint32_t taken;   /* wheels with something in them, a bit each */
  tp_timer undated; /* the head of a ring of those that count from the next time that is told */
  wheel wheels[WHEELS];
};

static uint32_t lowest_bit(uint64_t bits) {
#ifdef __GNUC__
  return (uint32_t)__builtin_ctzll(bits);
#else
  uint32_t n = 0;
  while ((bits >> n & 1) == 0) n++;
  return n;
#endif
}

static uint32_t highest_bit(uint64_t bits) {
#ifdef __GNUC__
  return 63 - (uint32_t)__builtin_clzll(bits);
#else
  uint32_t n = 63;
  while ((bits >> n & 1) == 0) n--;
  return n;
#endif
}

static uint32_t wheel_of(const tp_timers *w, tp_time due) {
  return highest_bit((uint64_t)(due ^ w->base) | 1) / DIGIT;
}

static uint32_t place_of(uint32_t level, tp_time due) {
  return (uint32_t)(due >> level * DIGIT) & (PLACES - 1);
}

static void append(tp_timer *first, tp_timer *t) {
  t->next = first;
  t->prev = first->prev;
  first->prev->next = t;
  first->prev = t;
}

static void unlink(tp_timer *t) {
  t->next->prev = t->prev;
  t->prev->next = t->next;
}

static void add(tp_timers *w, tp_timer *t) {
  uint32_t level = wheel_of(w, t->due), place = place_of(level, t->due);
  wheel *at = &w->wheels[level];
  uint64_t bit = UINT64_C(1) << place;
  if ((at->taken & bit) != 0) {
    append(at->first[place], t);
    if ((at->known & bit) == 0 || t->due >= at->first[place]->due) return;
  } else {
    t->next = t->prev = t;
    at->taken |= bit;
    at->known |= bit;
    w->taken |= 1u << level;
  }
  at->first[place] = t; /* the ring is closed: the last one becomes the first */
}

static void vacate(tp_timers *w, uint32_t level, uint32_t place) {
  wheel *at = &w->wheels[level];
  at->taken &= ~(UINT64_C(1) << place);
  if (at->taken == 0) w->taken &= ~(1u << level);
}

static void take_out(tp_timers *w, tp_timer *t) {
  uint32_t level = wheel_of(w, t->due), place = place_of(level, t->due);
  wheel *at = &w->wheels[level];
  if (t->next == t) {
    vacate(w, level, place);
  } else {
    unlink(t);
    if (at->first[place] == t) {
      at->first[place] = t->next;
      if (level > 0) at->known &= ~(UINT64_C(1) << place);
    }
  }
}

/* The time at which the place of a timer begins. */
static tp_time beginning(uint32_t level, const tp_timer *first) {
  return first->due >> level * DIGIT << level * DIGIT;
}

/* A million timers are in no cache, and the next in a ring is known only when this one has come from
 * memory. So the ring is walked from its other end too, and each step waits for two at once. */
static void spread(tp_timers *w, uint32_t level, uint32_t place) {
  tp_timer *t = w->wheels[level].first[place], *last = t->prev, *next, *ahead = last;
  vacate(w, level, place);
  w->base = beginning(level, t);
  for (;; t = next) {
    next = t->next;
    if (ahead != t && ahead != next) ahead = ahead->prev;
    TP_PREFETCH(ahead);
    add(w, t);
    if (t == last) return;
  }
}

/* Puts the earliest of a place first; of those of one time, that which stands first of them. */
static tp_timer *find_earliest(wheel *at, uint32_t place) {
  tp_timer *first = at->first[place], *earliest = first;
  for (tp_timer *t = first->next; t != first; t = t->next) {
    if (t->due < earliest->due) earliest = t;
  }
  if (earliest != first) {
    unlink(earliest);
    append(first, earliest);
    at->first[place] = earliest;
  }
  at->known |= UINT64_C(1) << place;
  return earliest;
}

static void disarm(tp_timers *w, tp_timer *t) {
  if (t->undated) {
    unlink(t);
  } else {
    take_out(w, t);
  }
  t->next = NULL;
  w->count--;
}

tp_timers *tp_timers_new(tp_system *s) {
  tp_timers *w = tp_alloc(s, sizeof *w);
  if (w != NULL) w->undated.next = w->undated.prev = &w->undated;
  return w;
}

void tp_timers_free(tp_system *s, tp_timers *w) { tp_free(s, w, sizeof *w); }

size_t tp_timers_count(const tp_system *s) { return s->timers == NULL ? 0 : s->timers->count; }

void tp_timer_arm(tp_system *s, tp_timer *t, tp_timer_kind kind, tp_time due) {
  tp_timers *w = s->timers;
  assert(t->next == NULL && due >= s->now);
  t->kind = (uint8_t)kind;
  t->undated = false;
  if (due == TP_NEVER) return;
  t->due = due;
  if (w->taken == 0) w->base = s->now;
  w->count++;
  add(w, t);
}

void tp_timer_arm_coarsely(tp_system *s, tp_timer *t, tp_timer_kind kind, tp_time delay) {
  if (!s->coarse || delay == TP_NEVER) {
    tp_timer_arm(s, t, kind, tp_time_after(s->now, delay));
    return;
  }
  t->kind = (uint8_t)kind;
  t->undated = true;
  t->due = delay;
  s->timers->count++;
  append(&s->timers->undated, t);
}

void tp_timers_date(tp_system *s) {
  tp_timers *w = s->timers;
  while (w->undated.next != &w->undated) {
    tp_timer *t = w->undated.next;
    disarm(w, t);
    tp_timer_arm(s, t, (tp_timer_kind)t->kind, tp_time_after(s->now, t->due));
  }
}

void tp_timer_disarm(tp_system *s, tp_timer *t) {
  if (t->next != NULL) disarm(s->timers, t);
}

tp_timer *tp_timers_pop(tp_system *s, tp_time now) {
  tp_timers *w = s->timers;
  while (w->taken != 0) {
    uint32_t level = lowest_bit(w->taken);
    wheel *at = &w->wheels[level];
    uint32_t place = lowest_bit(at->taken);
    tp_timer *first = at->first[place];
    bool known = (at->known >> place & 1) != 0;
    if (known && first->due <= now) {
      disarm(w, first);
      return first;
    }
    if (beginning(level, first) > now) { /* so the places of all others do */
      w->base = now;
      return NULL;
    }
    spread(w, level, place);
  }
  return NULL;
}

tp_time tp_next_deadline(const tp_system *s) {
  tp_timers *w = s->timers;
  if (w == NULL || w->taken == 0) return TP_NEVER;
  wheel *at = &w->wheels[lowest_bit(w->taken)];
  uint32_t place = lowest_bit(at->taken);
  bool known = (at->known >> place & 1) != 0;
  return known ? at->first[place]->due : find_earliest(at, place)->due;
}
