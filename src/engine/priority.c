#include "priority.h"

#include <math.h>

#include "alloc.h"
#include "events.h"
#include "mailbox.h"
#include "system.h"
#include "tick.h"
#include "value.h"

/* ---- The mailbox ------------------------------------------------------------------------ */

int tp_priority_new(tp_actor *a) {
  tp_priority *p = tp_alloc(a->ref.system, sizeof *p);
  if (p == NULL) return TP_ENOMEM;
  tp_list_init(&p->link);
  p->actor = a;
  a->priority = p;
  a->ranks = a->choosy = true;
  return TP_OK;
}

void tp_priority_free(tp_actor *a) {
  tp_system *s = a->ref.system;
  tp_priority *p = a->priority;
  tp_list_remove(&p->link);
  tp_value_release(s, p->asked);
  tp_minmax_fini(s, &p->counted);
  tp_minmax_fini(s, &p->kept);
  tp_free(s, p, sizeof *p);
  a->priority = NULL;
  a->ranks = false;
}

static tp_minmax *queue_for(tp_priority *p, tp_value message) {
  return tp_mail_counts(message) ? &p->counted : &p->kept;
}

int tp_priority_push(tp_actor *a, tp_envelope e) {
  tp_system *s = a->ref.system;
  tp_priority *p = a->priority;
  tp_minmax *q = queue_for(p, e.message);
  if (tp_minmax_reserve(s, q, 1) != TP_OK) return TP_ENOMEM;
  if (tp_ring_push(&s->rings, &a->mailbox, e) != TP_OK) {
    tp_minmax_give_back(s, q, 1);
    return TP_ENOMEM;
  }
  if (tp_list_empty(&p->link)) tp_list_append(&s->unranked, &p->link);
  return TP_OK;
}

/* Which of the two queues each of them will need shows when it is put back. */
int tp_priority_reserve(tp_actor *a, uint32_t n) {
  tp_system *s = a->ref.system;
  tp_priority *p = a->priority;
  if (tp_minmax_reserve(s, &p->counted, n) != TP_OK) return TP_ENOMEM;
  if (tp_minmax_reserve(s, &p->kept, n) == TP_OK) return TP_OK;
  tp_minmax_give_back(s, &p->counted, n);
  return TP_ENOMEM;
}

void tp_priority_put_back(tp_actor *a, tp_envelope e) {
  tp_priority *p = a->priority;
  tp_minmax *q = queue_for(p, e.message);
  tp_minmax_push(q, (tp_minmax_entry){-INFINITY, --p->put_back, e});
  tp_minmax_give_back(a->ref.system, q == &p->kept ? &p->counted : &p->kept, 1);
}

bool tp_priority_ready(const tp_actor *a) {
  return a->mailbox.count == 0 && tp_priority_count(a) > 0;
}

uint32_t tp_priority_count(const tp_actor *a) {
  return a->mailbox.count + a->priority->counted.count + a->priority->kept.count;
}

/* The oldest that has no rank is taken out; its place stays reserved. */
static tp_envelope take_oldest(tp_actor *a) {
  tp_envelope e = tp_ring_pop(&a->ref.system->rings, &a->mailbox);
  if (a->mailbox.count == 0) tp_list_remove(&a->priority->link);
  return e;
}

static tp_envelope pop_unranked(tp_actor *a) {
  tp_envelope e = take_oldest(a);
  tp_minmax_give_back(a->ref.system, queue_for(a->priority, e.message), 1);
  return e;
}

tp_envelope tp_priority_pop(tp_actor *a) {
  tp_priority *p = a->priority;
  const tp_minmax_entry *counted = tp_minmax_first(&p->counted), *kept = tp_minmax_first(&p->kept);
  if (tp_priority_count(a) == 1) p->mark = 0;
  if (counted == NULL && kept == NULL) return pop_unranked(a);
  bool from_counted = kept == NULL || (counted != NULL && tp_minmax_less(counted, kept));
  return tp_minmax_pop_min(a->ref.system, from_counted ? &p->counted : &p->kept);
}

static bool withdraw_ranked(tp_system *s, tp_minmax *q, const tp_ref *asker, tp_envelope *out) {
  for (uint32_t i = 0; i < q->count; i++) {
    if (q->entries[i].envelope.sender != asker) continue;
    *out = tp_minmax_remove(s, q, i);
    return true;
  }
  return false;
}

static bool withdraw(tp_actor *a, const tp_ref *asker, tp_envelope *out) {
  tp_system *s = a->ref.system;
  tp_priority *p = a->priority;
  uint32_t at = tp_ring_find(&a->mailbox, p->asking ? 1 : 0, asker);
  if (at < a->mailbox.count) {
    *out = tp_ring_remove(&s->rings, &a->mailbox, at);
    tp_minmax_give_back(s, queue_for(p, out->message), 1);
    if (a->mailbox.count == 0) {
      tp_list_remove(&p->link);
      tp_schedule_run(s, &a->run);
    }
    return true;
  }
  return withdraw_ranked(s, &p->counted, asker, out) || withdraw_ranked(s, &p->kept, asker, out);
}

bool tp_priority_withdraw(tp_actor *a, const tp_ref *asker, tp_envelope *out) {
  if (!withdraw(a, asker, out)) return false;
  if (tp_priority_count(a) == 0) a->priority->mark = 0;
  return true;
}

/* ---- Ranking ---------------------------------------------------------------------------- */

/* The latest of those with the highest rank goes, be it the newcomer. */
static void drop_lowest(tp_actor *a) {
  const tp_behavior_spec *spec = tp_behavior_look(a->behavior);
  tp_minmax *q = &a->priority->counted;
  if (spec->overflow != TP_OVERFLOW_DROP_LOWEST || spec->capacity == 0 ||
      q->count <= spec->capacity) {
    return;
  }
  tp_envelope e = tp_minmax_pop_max(a->ref.system, q);
  tp_mail_shed(a, &e);
}

/* The oldest of what has no rank gets `rank`. */
static void place(tp_actor *a, double rank) {
  tp_priority *p = a->priority;
  tp_envelope e = take_oldest(a);
  tp_value v = e.message;
  if (tp_value_is_signal(v) && v.as.integer == TP_POISON_PILL) p->sealed = true;
  tp_minmax_push(queue_for(p, v), (tp_minmax_entry){rank, ++p->arrived, e});
  if (a->mailbox.count == 0) tp_schedule_run(a->ref.system, &a->run);
  if (tp_mail_counts(v)) drop_lowest(a);
}

/* What the function is to be asked about; false for what comes last without a question: signals and
 * death notices, which come after all that was told before them, and what comes behind a pill. */
static bool is_for_function(tp_system *s, const tp_priority *p, tp_value queued,
                            tp_value *message) {
  if (p->sealed) return false;
  *message = queued;
  if (queued.type == TP_TICK && !tp_tick_message(s, queued.as.tick, message)) return false;
  return tp_mail_counts(*message);
}

static bool ask(tp_actor *a, tp_job *job) {
  tp_priority *p = a->priority;
  while (a->mailbox.count > 0) {
    tp_value message;
    if (is_for_function(a->ref.system, p, tp_ring_at(&a->mailbox, 0)->message, &message)) {
      tp_value_retain(a->ref.system, message);
      p->asked = message;
      p->asking = true;
      job->kind = TP_JOB_RANK;
      job->system = a->ref.system;
      job->actor = &a->ref;
      job->behavior = a->behavior;
      job->code = tp_behavior_look(a->behavior)->priority;
      job->envelope = (tp_envelope){.message = message};
      return true;
    }
    place(a, INFINITY);
  }
  return false;
}

bool tp_priority_next(tp_system *s, tp_job *job) {
  while (!tp_list_empty(&s->unranked)) {
    if (ask(TP_CONTAINER(s->unranked.next, tp_priority, link)->actor, job)) return true;
  }
  return false;
}

bool tp_unranked(const tp_system *s) { return !tp_list_empty(&s->unranked); }

bool tp_rank_next(tp_ref *r, tp_job *job) {
  if (r->kind != TP_REF_ACTOR) return false;
  const tp_priority *p = tp_actor_look(r)->priority;
  return p != NULL && !p->asking && ask(p->actor, job);
}

void tp_ranked(tp_job *job, double rank) {
  tp_actor *a = tp_actor_of(job->actor);
  tp_priority *p = a->priority;
  tp_value_release(job->system, p->asked);
  p->asked = tp_nil();
  p->asking = false;
  place(a, isnan(rank) ? INFINITY : rank);
}

void tp_priority_failed(tp_job *job, tp_value reason, tp_value trace) {
  tp_priority *p = tp_actor_of(job->actor)->priority;
  if (!p->complained) {
    p->complained = true;
    tp_events_publish(job->system, &(tp_event){.kind = TP_EVENT_HOOK_FAILED,
                                               .code = "priority",
                                               .subject = job->actor,
                                               .value = reason,
                                               .trace = trace});
  }
  tp_value_release(job->system, reason);
  tp_value_release(job->system, trace);
  tp_ranked(job, INFINITY);
}
