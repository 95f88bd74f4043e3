/* Behaviors: counted, immutable recipes of actors, shared by all actors made from them. */
#include <assert.h>
#include <string.h>

#include "alloc.h"
#include "system.h"

struct tp_behavior {
  tp_system *system;
  uint32_t count;
  tp_behavior_spec spec;
};

/* With room for what `spec` points to, which is copied behind the behavior. */
static size_t size_of(const tp_behavior_spec *spec) {
  size_t size = sizeof(tp_behavior);
  if (spec->resizer != NULL) size += sizeof *spec->resizer;
  if (spec->members == NULL) return size;
  for (uint32_t i = 0; i < spec->size; i++) size += sizeof *spec->members + spec->members[i].length;
  return size;
}

static char *copy_resizer(tp_behavior *b, char *room) {
  if (b->spec.resizer == NULL) return room;
  b->spec.resizer = memcpy(room, b->spec.resizer, sizeof *b->spec.resizer);
  return room + sizeof *b->spec.resizer;
}

/* The members, and behind them the text of their paths. */
static void copy_members(tp_behavior *b, char *room) {
  if (b->spec.members == NULL) return;
  size_t size = b->spec.size * sizeof *b->spec.members;
  tp_member *members = memcpy(room, b->spec.members, size);
  room += size;
  for (tp_member *m = members; m < members + b->spec.size; m++) {
    if (m->actor != NULL) tp_ref_retain(m->actor);
    if (m->length > 0) m->path = memcpy(room, m->path, m->length);
    room += m->length;
  }
  b->spec.members = members;
}

static void release_members(const tp_behavior_spec *spec) {
  for (uint32_t i = 0; spec->members != NULL && i < spec->size; i++) {
    if (spec->members[i].actor != NULL) tp_ref_release(spec->members[i].actor);
  }
}

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
  tp_behavior *b = tp_alloc(s, size_of(spec));
  if (b == NULL) {
    release_values(s, spec);
    return TP_ENOMEM;
  }
  *b = (tp_behavior){.system = s, .count = 1, .spec = *spec};
  if (b->spec.throughput == 0) b->spec.throughput = s->throughput;
  if (b->spec.routee != NULL) tp_behavior_retain(b->spec.routee);
  copy_members(b, copy_resizer(b, (char *)(b + 1)));
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
  release_members(&b->spec);
  tp_free(s, b, size_of(&b->spec));
  tp_system_drop(s);
}

const tp_behavior_spec *tp_behavior_look(const tp_behavior *b) { return &b->spec; }
