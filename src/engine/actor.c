#include "actor.h"

#include <assert.h>
#include <string.h>

#include "alloc.h"
#include "idle.h"
#include "names.h"
#include "priority.h"
#include "system.h"
#include "value.h"

static int set_name(tp_system *s, tp_actor *a, const char *name, size_t length) {
  if (name == NULL) return TP_OK;
  a->label.name = tp_alloc(s, sizeof *a->label.name + length + 1);
  if (a->label.name == NULL) return TP_ENOMEM;
  memcpy(a->label.name->text, name, length);
  a->named = true;
  return TP_OK;
}

static int have_family(tp_system *s, tp_actor *a) {
  if (a->family != NULL) return TP_OK;
  a->family = tp_alloc(s, sizeof *a->family);
  if (a->family == NULL) return TP_ENOMEM;
  tp_list_init(&a->family->children);
  return TP_OK;
}

static void free_name(tp_actor *a) {
  if (!a->named) return;
  tp_label *label = a->label.name;
  tp_free(a->ref.system, label, sizeof *label + strlen(label->text) + 1);
  a->named = false;
}

static void join_family(tp_actor *a, tp_actor *parent) {
  a->parent = parent;
  tp_ref_retain(&parent->ref);
  tp_list_append(&parent->family->children, &a->siblings);
  parent->family->count++;
  if (!a->named) a->label.number = ++parent->family->unnamed;
  a->suspended = parent->suspended || parent->frozen;
}

int tp_actor_new(tp_system *s, tp_actor *parent, tp_behavior *behavior, const char *name,
                 size_t length, tp_actor **out) {
  if (parent != NULL && have_family(s, parent) != TP_OK) return TP_ENOMEM;
  tp_actor *a = tp_alloc(s, sizeof *a);
  if (a == NULL) return TP_ENOMEM;
  if (set_name(s, a, name, length) != TP_OK || tp_names_reserve(s) != TP_OK) {
    a->ref.system = s;
    free_name(a);
    tp_free(s, a, sizeof *a);
    return TP_ENOMEM;
  }
  tp_ref_init(&a->ref, s, TP_REF_ACTOR);
  tp_ref_retain(&a->ref);
  tp_list_init(&a->siblings);
  a->run.kind = TP_RUN_ACTOR;
  a->behavior = behavior;
  if (behavior != NULL) tp_behavior_retain(behavior);
  a->guardian = behavior == NULL;
  a->phase = TP_PHASE_STARTING;
  a->choosy = behavior != NULL && tp_behavior_look(behavior)->capacity > 0;
  if (parent != NULL) join_family(a, parent);
  if (a->named) tp_names_add(s, a);
  if (!a->guardian) s->actors++;
  *out = a;
  return TP_OK;
}

void tp_actor_leave(tp_actor *a) {
  if (a->named) tp_names_remove(a->ref.system, a);
  if (a->parent != NULL) {
    tp_list_remove(&a->siblings);
    a->parent->family->count--;
  }
  if (!a->guardian) a->ref.system->actors--;
  tp_ref_release(&a->ref);
}

static void free_extra(tp_system *s, tp_actor *a) {
  tp_extra *x = a->extra;
  if (x == NULL) return;
  assert(x->ticks == 0 && tp_list_empty(&x->watches) && tp_list_empty(&x->watchers));
  tp_value_release(s, x->reason);
  tp_value_release(s, x->trace);
  tp_envelope_release(s, &x->failed);
  assert(x->stash.count == 0);
  tp_idle_free(a);
  tp_value_release(s, x->receive);
  tp_value_release(s, x->last_failure);
  tp_window_fini(s, &x->restarts);
  tp_free(s, x, sizeof *x);
  a->extra = NULL;
  tp_actor_adapt(a);
}

void tp_actor_strip(tp_actor *a) {
  tp_system *s = a->ref.system;
  tp_actor_set_state(&a->ref, tp_nil());
  free_extra(s, a);
  if (a->priority != NULL) tp_priority_free(a);
  if (a->family != NULL) tp_free(s, a->family, sizeof *a->family);
  a->family = NULL;
  if (a->behavior != NULL) tp_behavior_release(a->behavior);
  a->behavior = NULL;
}

void tp_actor_free(tp_actor *a) {
  tp_system *s = a->ref.system;
  /* A deep branch may hang on this count: it is given back in a loop, not by recursion. */
  while (a != NULL) {
    tp_actor *parent = a->parent;
    assert(a->phase == TP_PHASE_STOPPED);
    free_name(a);
    tp_free(s, a, sizeof *a);
    bool last = parent != NULL && --parent->ref.count == 0;
    tp_ref_fini(s);
    a = last ? parent : NULL;
  }
}

tp_extra *tp_actor_extra(tp_actor *a) {
  if (a->extra == NULL) {
    a->extra = tp_alloc(a->ref.system, sizeof *a->extra);
    if (a->extra == NULL) return NULL;
    tp_list_init(&a->extra->watches);
    tp_list_init(&a->extra->watchers);
  }
  return a->extra;
}

tp_value tp_actor_state(const tp_ref *actor) {
  const tp_actor *a = tp_actor_look(actor);
  return a->keeps ? (tp_value){.type = TP_HOST, .as.host = a->state} : tp_nil();
}

void tp_actor_set_state(tp_ref *actor, tp_value state) {
  tp_actor *a = tp_actor_of(actor);
  tp_value_release(actor->system, tp_actor_state(actor));
  a->keeps = state.type == TP_HOST;
  a->state = state.as.host;
}

tp_ref *tp_actor_sender(tp_ref *actor) {
  const tp_actor *a = tp_actor_of(actor);
  tp_ref *sender = a->job == NULL ? NULL : a->job->envelope.sender;
  if (sender != NULL && sender->kind == TP_REF_SLOT) tp_slot_of(sender)->shown = true;
  return sender;
}
