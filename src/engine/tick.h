/* Timers that users start: those of an actor tell it a message, those of a system run a function.
 *
 * A tick that has fired waits in the actor's mailbox or in the ready queue. Cancelling takes that
 * one back too (TMR-2): what is queued is the timer itself, and it is asked when its turn comes. A
 * timer never has more than one tick waiting; those of a fixed rate that pile up are skipped. */
#ifndef TP_TICK_H
#define TP_TICK_H

#include "actor.h"
#include "list.h"
#include "timer.h"

struct tp_tick {
  uint32_t count;
  uint8_t repeat; /* tp_repeat */
  bool active;    /* neither cancelled nor over */
  bool passive;   /* the system does not go on for its sake */
  bool waiting;   /* its tick is queued, and not taken up yet */
  tp_system *system;
  tp_actor *owner; /* NULL: the system's */
  tp_link link;    /* in the owner's list, while active */
  tp_timer timer;
  tp_runnable run;
  tp_time interval;
  tp_value value; /* the message or the function */
};

/* Its deadline has passed. */
void tp_tick_fire(tp_tick *t);

/* Its tick is taken up: true and `out` retained when it counts, false when it was cancelled. */
bool tp_tick_take(tp_tick *t, tp_value *out);

/* The tick that was taken up has been handled. */
void tp_tick_handled(tp_tick *t);

/* Its tick is dropped from the ready queue unhandled. */
void tp_tick_drop(tp_tick *t);

/* Cancels all in an owner's list. */
void tp_ticks_cancel(tp_link *list);

#endif
