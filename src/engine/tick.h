/* Timers that users start: those of an actor tell it a message, those of a system run a function.
 *
 * A timer is known by a number, and is gone when it is over: what comes with its number after that
 * finds nothing. So a tick that has fired can wait in the actor's mailbox as a number, and cancelling
 * takes it back too (TMR-2). A timer never has more than one tick waiting; those of a fixed rate that
 * pile up are skipped.
 *
 * Timers that go off once take 64 bytes, in slabs that are given back when they are empty. */
#ifndef TP_TICK_H
#define TP_TICK_H

#include "actor.h"
#include "timer.h"

typedef struct tp_ticker tp_ticker;
typedef struct tp_slab tp_slab;

typedef struct tp_slab_entry {
  tp_slab *slab;      /* NULL: none has this number now */
  uint32_t next_free; /* then the next such number plus 1, or 0 */
} tp_slab_entry;

/* All timers of a system. */
typedef struct tp_tickers {
  tp_slab_entry *slabs; /* by number */
  uint32_t count, capacity;
  uint32_t first_free;             /* number plus 1, or 0 */
  uint32_t empty;                  /* slabs with nothing in them: one at most */
  tp_slab *with_room;              /* the one used last comes first */
  size_t used;                     /* cells, in all slabs */
  uint64_t started;                /* so far */
  tp_ticker *first_due, *last_due; /* of those, what is to run */
} tp_tickers;

/* Its deadline has passed. */
void tp_tick_fire(tp_system *s, tp_timer *t);

/* The tick of an actor's timer is taken up: true and `out` retained when it counts, false when it was
 * cancelled. */
bool tp_tick_take(tp_system *s, tp_tick id, tp_value *out);

/* Gives the next function that is due, retained, and whose it is; false when it was cancelled. There is
 * one: first_due is not NULL. */
bool tp_tick_take_due(tp_system *s, tp_tick *id, tp_value *out);

/* The tick that was taken up has been handled. */
void tp_tick_handled(tp_system *s, tp_tick id);

/* The message of an active timer, borrowed; false for one that is over. */
bool tp_tick_message(tp_system *s, tp_tick id, tp_value *out);

/* Cancels all in an actor's list. */
void tp_ticks_cancel(tp_system *s, uint32_t *list);

/* Cancels all those of the system itself. O(timers). */
void tp_ticks_cancel_own(tp_system *s);

/* How many are in a list. O(n). */
size_t tp_ticks_count(tp_system *s, uint32_t list);

/* Ends all there are, with their values, and gives their memory back. */
void tp_ticks_free(tp_system *s);

#endif
