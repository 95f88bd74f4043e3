/* Behaviors: counted, immutable recipes of actors, shared by all actors made from them. */
#include <assert.h>

#include "alloc.h"
#include "system.h"

struct tp_behavior {
  tp_system *system;
  uint32_t count;
  tp_behavior_spec spec;
};

static void release_values(tp_system *s, const tp_behavior_spec *spec) {
  tp_value_release(s, spec->code);
  tp_value_release(s, spec->receive);
  tp_value_release(s, spec->priority);
  tp_value_release(s, spec->own.decider);
  tp_value_release(s, spec->children.decider);
  tp_value_release(s, spec->strategy);
}

int tp_behavior_new(tp_system *s, const tp_behavior_spec *spec, tp_behavior **out) {
  assert(spec->capacity == 0 ||
         spec->overflow !=
             (spec->priority.type == TP_NIL ? TP_OVERFLOW_DROP_LOWEST : TP_OVERFLOW_DROP_HEAD));
  tp_behavior *b = tp_alloc(s, sizeof *b);
  if (b == NULL) {
    release_values(s, spec);
    return TP_ENOMEM;
  }
  *b = (tp_behavior){.system = s, .count = 1, .spec = *spec};
  if (b->spec.throughput == 0) b->spec.throughput = s->throughput;
  if (b->spec.routee != NULL) tp_behavior_retain(b->spec.routee);
  tp_system_hold(s);
  *out = b;
  return TP_OK;
}

void tp_behavior_retain(tp_behavior *b) { b->count++; }

void tp_behavior_release(tp_behavior *b) {
  if (--b->count > 0) return;
  tp_system *s = b->system;
  release_values(s, &b->spec);
  if (b->spec.routee != NULL) tp_behavior_release(b->spec.routee);
  tp_free(s, b, sizeof *b);
  tp_system_drop(s);
}

const tp_behavior_spec *tp_behavior_look(const tp_behavior *b) { return &b->spec; }
