#include "tick.h"

#include "alloc.h"
#include "mailbox.h"
#include "system.h"

void tp_tick_retain(tp_tick *t) { t->count++; }

void tp_tick_release(tp_tick *t) {
  if (--t->count > 0) return;
  tp_system *s = t->system;
  tp_free(s, t, sizeof *t);
  tp_system_drop(s);
}

/* It is over: what it holds is given back, and the count that its being active held. */
static void end(tp_tick *t) {
  t->active = false;
  if (t->passive) t->system->passive--;
  tp_timer_disarm(t->system, &t->timer);
  tp_list_remove(&t->link);
  tp_value_release(t->system, t->value);
  t->value = tp_nil();
  tp_tick_release(t);
}

static int start(tp_system *s, tp_actor *owner, tp_link *list, tp_value value, tp_repeat repeat,
                 tp_time delay, tp_time interval, tp_tick **out) {
  tp_tick *t = list == NULL ? NULL : tp_alloc(s, sizeof *t);
  if (t == NULL) goto fail;
  *t = (tp_tick){.count = 2,
                 .repeat = (uint8_t)repeat,
                 .active = true,
                 .system = s,
                 .owner = owner,
                 .run = {.kind = TP_RUN_TICK},
                 .interval = interval,
                 .value = value};
  tp_system_hold(s);
  tp_list_append(list, &t->link);
  tp_timer_arm(s, &t->timer, TP_TIMER_TICK, tp_time_after(s->now, delay));
  *out = t;
  return TP_OK;
fail:
  tp_value_release(s, value);
  return TP_ENOMEM;
}

int tp_timer_start(tp_ref *actor, tp_value message, tp_repeat repeat, tp_time delay,
                   tp_time interval, tp_tick **out) {
  tp_actor *a = tp_actor_of(actor);
  if (a->phase >= TP_PHASE_STOPPING) {
    tp_value_release(actor->system, message);
    return TP_ESTOPPED;
  }
  tp_extra *x = tp_actor_extra(a);
  return start(actor->system, a, x == NULL ? NULL : &x->ticks, message, repeat, delay, interval,
               out);
}

int tp_schedule(tp_system *s, tp_value function, tp_time delay, tp_time interval, tp_tick **out) {
  if (tp_terminating(s)) {
    tp_value_release(s, function);
    return TP_ETERMINATED;
  }
  tp_repeat repeat = interval > 0 ? TP_FIXED_RATE : TP_ONCE;
  return start(s, NULL, &s->ticks, function, repeat, delay, interval, out);
}

void tp_tick_set_passive(tp_tick *t) {
  if (!t->active || t->passive) return;
  t->passive = true;
  t->system->passive++;
}

bool tp_only_passive(const tp_system *s) { return tp_timers_count(s) <= s->passive; }

bool tp_tick_active(const tp_tick *t) { return t->active; }

void tp_tick_drop(tp_tick *t) {
  t->waiting = false;
  tp_tick_release(t); /* the ready queue's count */
}

bool tp_tick_cancel(tp_tick *t) {
  if (!t->active) return false;
  end(t); /* a tick that is queued stays there, and is passed over in its turn */
  return true;
}

/* The next time on the grid after now; a stall skips what it covered (TMR-3). */
static void arm_on_grid(tp_tick *t) {
  tp_time now = t->system->now;
  tp_time next = tp_time_after(t->timer.due, t->interval);
  if (next <= now) next += (now - next) / t->interval * t->interval + t->interval;
  tp_timer_arm(t->system, &t->timer, TP_TIMER_TICK, next);
}

static bool queue(tp_tick *t) {
  if (t->waiting) return true;
  tp_tick_retain(t);
  if (t->owner == NULL) {
    tp_schedule_run(t->system, &t->run);
  } else {
    tp_envelope e = {.message = {.type = TP_TICK, .as.tick = t}};
    if (tp_mail_push(t->owner, e) != TP_OK) {
      tp_tick_release(t);
      return false;
    }
  }
  t->waiting = true;
  return true;
}

void tp_tick_fire(tp_tick *t) {
  if (!queue(t)) { /* memory is out: a little later, rather than never */
    tp_timer_arm(t->system, &t->timer, TP_TIMER_TICK, t->system->now + TP_MILLISECOND);
  } else if (t->repeat == TP_FIXED_RATE) {
    arm_on_grid(t);
  }
}

bool tp_tick_take(tp_tick *t, tp_value *out) {
  t->waiting = false;
  if (!t->active) return false;
  *out = t->value;
  tp_value_retain(t->system, t->value);
  if (t->repeat == TP_ONCE) end(t);
  return true;
}

void tp_tick_handled(tp_tick *t) {
  if (!t->active || t->repeat != TP_FIXED_DELAY) return;
  tp_timer_arm(t->system, &t->timer, TP_TIMER_TICK, tp_time_after(t->system->now, t->interval));
}

void tp_ticks_cancel(tp_link *list) {
  while (!tp_list_empty(list)) tp_tick_cancel(TP_CONTAINER(list->next, tp_tick, link));
}
