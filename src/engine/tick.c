#include "tick.h"

#include <assert.h>
#include <string.h>

#include "alloc.h"
#include "mailbox.h"
#include "system.h"

enum {
  SLAB = 128,     /* tickers in a slab */
  CELL_BITS = 26, /* of a timer's number, that say where it is; the others count what was started */
  FIRST_CAPACITY = 8
};
#define CELL_MASK ((UINT64_C(1) << CELL_BITS) - 1)

enum {
  REPEAT = 3,  /* its tp_repeat */
  PASSIVE = 4, /* the system does not go on for its sake */
  WAITING = 8, /* its tick is queued, and not taken up yet */
  OF_SYSTEM = 16
};

/* Cells are counted from 1 where 0 stands for none. Of the timer's spare bytes, the first is what is
 * above, the next two are type and flags of the value. */
struct tp_ticker {
  tp_timer timer;
  union {
    tp_actor *owner;
    tp_ticker *next_due; /* OF_SYSTEM */
  } with;
  uint32_t next, prev; /* cells, in the owner's list; or the next free one of the slab */
  tp_tick id;          /* 0 when it is over */
  union {
    uint64_t value; /* the message's or function's, of a timer that goes off once */
    struct repetition *repetition;
  } what;
};

typedef struct repetition {
  tp_value value;
  tp_time interval;
} repetition;

struct tp_slab {
  tp_slab *next, *prev; /* of those with room */
  uint32_t number;
  uint32_t first_free; /* cell, or 0 */
  uint32_t used;
  tp_ticker tickers[SLAB];
};

/* ---- Cells ------------------------------------------------------------------------------ */

static tp_ticker *ticker_at(tp_system *s, uint32_t cell) {
  return &s->tickers.slabs[(cell - 1) / SLAB].slab->tickers[(cell - 1) % SLAB];
}

static uint32_t cell_of(tp_tick id) { return (uint32_t)(id & CELL_MASK); }

static tp_ticker *find(tp_system *s, tp_tick id) {
  uint32_t cell = cell_of(id);
  if (cell == 0 || cell > s->tickers.count * SLAB) return NULL;
  if (s->tickers.slabs[(cell - 1) / SLAB].slab == NULL) return NULL;
  tp_ticker *t = ticker_at(s, cell);
  return t->id == id ? t : NULL;
}

static void link_slab(tp_tickers *k, tp_slab *b) {
  b->prev = NULL;
  b->next = k->with_room;
  if (b->next != NULL) b->next->prev = b;
  k->with_room = b;
}

static void unlink_slab(tp_tickers *k, tp_slab *b) {
  if (b->next != NULL) b->next->prev = b->prev;
  if (b->prev != NULL) {
    b->prev->next = b->next;
  } else {
    k->with_room = b->next;
  }
}

/* Gives a number to be had, from 1, or 0 when memory is out. */
static uint32_t room_for_slab(tp_system *s) {
  tp_tickers *k = &s->tickers;
  if (k->first_free != 0) return k->first_free;
  if (k->count == k->capacity) {
    if (k->count >= (CELL_MASK - SLAB) / SLAB) return 0;
    uint32_t capacity = k->capacity == 0 ? FIRST_CAPACITY : k->capacity * 2;
    size_t size = sizeof *k->slabs;
    void *p = tp_resize(s, k->slabs, k->capacity * size, capacity * size);
    if (p == NULL) return 0;
    k->slabs = p;
    k->capacity = capacity;
  }
  k->slabs[k->count] = (tp_slab_entry){0};
  k->first_free = ++k->count;
  return k->first_free;
}

static tp_slab *new_slab(tp_system *s) {
  tp_tickers *k = &s->tickers;
  uint32_t number = room_for_slab(s);
  tp_slab *b = number == 0 ? NULL : tp_alloc_raw(s, sizeof *b);
  if (b == NULL) return NULL;
  b->number = number - 1;
  b->first_free = b->used = 0;
  k->first_free = k->slabs[b->number].next_free;
  k->slabs[b->number] = (tp_slab_entry){.slab = b};
  for (uint32_t i = SLAB; i-- > 0; b->first_free = b->number * SLAB + i + 1) {
    b->tickers[i].id = 0;
    b->tickers[i].next = b->first_free;
  }
  k->empty++;
  link_slab(k, b);
  return b;
}

static void free_slab(tp_system *s, tp_slab *b) {
  tp_tickers *k = &s->tickers;
  unlink_slab(k, b);
  k->slabs[b->number] = (tp_slab_entry){.next_free = k->first_free};
  k->first_free = b->number + 1;
  k->empty--;
  tp_free(s, b, sizeof *b);
}

/* With the last timer of many, the table of slabs goes too. */
static void free_all(tp_system *s) {
  tp_tickers *k = &s->tickers;
  while (k->with_room != NULL) free_slab(s, k->with_room);
  tp_free(s, k->slabs, k->capacity * sizeof *k->slabs);
  k->slabs = NULL;
  k->count = k->capacity = k->first_free = 0;
}

static tp_ticker *new_ticker(tp_system *s) {
  tp_tickers *k = &s->tickers;
  tp_slab *b = k->with_room;
  if (b == NULL) b = new_slab(s);
  if (b == NULL) return NULL;
  uint32_t cell = b->first_free;
  tp_ticker *t = &b->tickers[(cell - 1) % SLAB];
  b->first_free = t->next;
  k->used++;
  if (b->used++ == 0) k->empty--;
  if (b->first_free == 0) unlink_slab(k, b);
  *t = (tp_ticker){.id = ++k->started << CELL_BITS | cell};
  return t;
}

static void free_ticker(tp_system *s, tp_ticker *t, uint32_t cell) {
  tp_tickers *k = &s->tickers;
  tp_slab *b = TP_CONTAINER(t - (cell - 1) % SLAB, tp_slab, tickers);
  t->id = 0;
  t->next = b->first_free;
  if (b->first_free == 0) link_slab(k, b);
  b->first_free = cell;
  k->used--;
  if (--b->used > 0) return;
  if (++k->empty > 1) free_slab(s, b);
  if (k->used == 0 && k->capacity > FIRST_CAPACITY) free_all(s);
}

/* ---- What it is ------------------------------------------------------------------------- */

static bool is(const tp_ticker *t, uint32_t what) { return (t->timer.spare[0] & what) != 0; }

static void set(tp_ticker *t, uint32_t what) {
  t->timer.spare[0] = (uint8_t)(t->timer.spare[0] | what);
}

static void clear(tp_ticker *t, uint32_t what) {
  t->timer.spare[0] = (uint8_t)(t->timer.spare[0] & ~what);
}

static tp_repeat repeat_of(const tp_ticker *t) { return (tp_repeat)(t->timer.spare[0] & REPEAT); }

static tp_value value_of(const tp_ticker *t) {
  if (repeat_of(t) != TP_ONCE) return t->what.repetition->value;
  tp_value v = {.type = t->timer.spare[1], .flags = t->timer.spare[2]};
  memcpy(&v.as, &t->what.value, sizeof v.as);
  return v;
}

static bool set_value(tp_system *s, tp_ticker *t, tp_value v, tp_time interval) {
  if (repeat_of(t) == TP_ONCE) {
    t->timer.spare[1] = v.type;
    t->timer.spare[2] = v.flags;
    memcpy(&t->what.value, &v.as, sizeof v.as);
    return true;
  }
  t->what.repetition = tp_alloc(s, sizeof *t->what.repetition);
  if (t->what.repetition == NULL) return false;
  *t->what.repetition = (repetition){v, interval};
  return true;
}

static void arm(tp_system *s, tp_ticker *t, tp_time due) {
  tp_timer_arm(s, &t->timer, TP_TIMER_TICK, due);
}

/* ---- Lists of an actor's ---------------------------------------------------------------- */

static void enlist(tp_system *s, uint32_t *list, tp_ticker *t) {
  t->next = *list;
  if (*list != 0) ticker_at(s, *list)->prev = cell_of(t->id);
  *list = cell_of(t->id);
}

static void delist(tp_system *s, tp_ticker *t) {
  if (t->next != 0) ticker_at(s, t->next)->prev = t->prev;
  if (t->prev != 0) {
    ticker_at(s, t->prev)->next = t->next;
  } else {
    t->with.owner->extra->ticks = t->next;
  }
}

/* ---- Begin and end ---------------------------------------------------------------------- */

/* It is over, but for its value. One that stands among what is due stays there, without a number. */
static void finish(tp_system *s, tp_ticker *t) {
  uint32_t cell = cell_of(t->id);
  if (is(t, PASSIVE)) s->passive--;
  tp_timer_disarm(s, &t->timer);
  if (!is(t, OF_SYSTEM)) delist(s, t);
  if (repeat_of(t) != TP_ONCE) tp_free(s, t->what.repetition, sizeof *t->what.repetition);
  t->id = 0;
  if (is(t, OF_SYSTEM) && is(t, WAITING)) {
    t->next = cell;
  } else {
    free_ticker(s, t, cell);
  }
}

static void end(tp_system *s, tp_ticker *t) {
  tp_value value = value_of(t);
  finish(s, t);
  tp_value_release(s, value);
}

static int start(tp_system *s, tp_actor *owner, tp_value value, tp_repeat repeat, tp_time delay,
                 tp_time interval, tp_tick *out) {
  tp_ticker *t = new_ticker(s);
  if (t == NULL) goto fail;
  set(t, repeat | (owner == NULL ? OF_SYSTEM : 0));
  t->with.owner = owner;
  if (!set_value(s, t, value, interval)) {
    free_ticker(s, t, cell_of(t->id));
    goto fail;
  }
  if (owner != NULL) enlist(s, &owner->extra->ticks, t);
  arm(s, t, tp_time_after(s->now, delay));
  *out = t->id;
  return TP_OK;
fail:
  tp_value_release(s, value);
  return TP_ENOMEM;
}

int tp_timer_start(tp_ref *actor, tp_value message, tp_repeat repeat, tp_time delay,
                   tp_time interval, tp_tick *out) {
  tp_actor *a = tp_actor_of(actor);
  if (a->phase >= TP_PHASE_STOPPING) {
    tp_value_release(actor->system, message);
    return TP_ESTOPPED;
  }
  if (tp_actor_extra(a) == NULL) {
    tp_value_release(actor->system, message);
    return TP_ENOMEM;
  }
  return start(actor->system, a, message, repeat, delay, interval, out);
}

int tp_schedule(tp_system *s, tp_value function, tp_time delay, tp_time interval, tp_tick *out) {
  if (tp_terminating(s)) {
    tp_value_release(s, function);
    return TP_ETERMINATED;
  }
  tp_repeat repeat = interval > 0 ? TP_FIXED_RATE : TP_ONCE;
  return start(s, NULL, function, repeat, delay, interval, out);
}

void tp_tick_set_passive(tp_system *s, tp_tick id) {
  tp_ticker *t = find(s, id);
  if (t == NULL || is(t, PASSIVE)) return;
  set(t, PASSIVE);
  s->passive++;
}

bool tp_only_passive(const tp_system *s) { return tp_timers_count(s) <= s->passive; }

bool tp_tick_active(tp_system *s, tp_tick id) { return find(s, id) != NULL; }

bool tp_tick_cancel(tp_system *s, tp_tick id) {
  tp_ticker *t = find(s, id);
  if (t == NULL) return false;
  end(s, t);
  return true;
}

void tp_ticks_cancel(tp_system *s, uint32_t *list) {
  while (*list != 0) end(s, ticker_at(s, *list));
}

void tp_ticks_cancel_own(tp_system *s) {
  const tp_tickers *k = &s->tickers;
  for (uint32_t cell = 1; cell <= k->count * SLAB; cell++) { /* with the last, the count is 0 */
    if (k->slabs[(cell - 1) / SLAB].slab == NULL) continue;
    tp_ticker *t = ticker_at(s, cell);
    if (t->id != 0 && is(t, OF_SYSTEM)) end(s, t);
  }
}

size_t tp_ticks_count(tp_system *s, uint32_t list) {
  size_t n = 0;
  for (; list != 0; list = ticker_at(s, list)->next) n++;
  return n;
}

void tp_ticks_free(tp_system *s) {
  while (s->tickers.first_due != NULL) {
    tp_tick id;
    tp_value value;
    if (tp_tick_take_due(s, &id, &value)) tp_value_release(s, value);
  }
  tp_ticks_cancel_own(s);
  assert(s->tickers.used == 0);
  free_all(s);
}

/* ---- Ticks ------------------------------------------------------------------------------ */

/* The next time on the grid after now; a stall skips what it covered (TMR-3). */
static void arm_on_grid(tp_system *s, tp_ticker *t) {
  tp_time interval = t->what.repetition->interval;
  tp_time next = tp_time_after(t->timer.due, interval);
  if (next <= s->now) next += (s->now - next) / interval * interval + interval;
  arm(s, t, next);
}

static void queue_function(tp_tickers *k, tp_ticker *t) {
  t->with.next_due = NULL;
  if (k->first_due != NULL) {
    k->last_due->with.next_due = t;
  } else {
    k->first_due = t;
  }
  k->last_due = t;
}

static bool queue(tp_system *s, tp_ticker *t) {
  if (is(t, WAITING)) return true;
  if (is(t, OF_SYSTEM)) {
    queue_function(&s->tickers, t);
  } else {
    tp_envelope e = {.message = {.type = TP_TICK, .as.tick = t->id}};
    if (tp_mail_push(t->with.owner, e) != TP_OK) return false;
  }
  set(t, WAITING);
  return true;
}

void tp_tick_fire(tp_system *s, tp_timer *timer) {
  tp_ticker *t = TP_CONTAINER(timer, tp_ticker, timer);
  if (!queue(s, t)) { /* memory is out: a little later, rather than never */
    arm(s, t, s->now + TP_MILLISECOND);
  } else if (repeat_of(t) == TP_FIXED_RATE) {
    arm_on_grid(s, t);
  }
}

static void take(tp_system *s, tp_ticker *t, tp_value *out) {
  clear(t, WAITING);
  *out = value_of(t);
  if (repeat_of(t) == TP_ONCE) {
    finish(s, t); /* its value is given on */
  } else {
    tp_value_retain(s, *out);
  }
}

bool tp_tick_take(tp_system *s, tp_tick id, tp_value *out) {
  tp_ticker *t = find(s, id);
  if (t != NULL) take(s, t, out);
  return t != NULL;
}

bool tp_tick_take_due(tp_system *s, tp_tick *id, tp_value *out) {
  tp_ticker *t = s->tickers.first_due;
  s->tickers.first_due = t->with.next_due;
  TP_PREFETCH(t->with.next_due); /* it comes from memory while this one's function runs */
  *id = t->id;
  if (t->id == 0) {
    free_ticker(s, t, t->next);
    return false;
  }
  take(s, t, out);
  return true;
}

void tp_tick_handled(tp_system *s, tp_tick id) {
  tp_ticker *t = find(s, id);
  if (t == NULL || repeat_of(t) != TP_FIXED_DELAY) return;
  arm(s, t, tp_time_after(s->now, t->what.repetition->interval));
}

bool tp_tick_message(tp_system *s, tp_tick id, tp_value *out) {
  tp_ticker *t = find(s, id);
  if (t != NULL) *out = value_of(t);
  return t != NULL;
}
