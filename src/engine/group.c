#include "group.h"

#include "system.h"

/* Whoever the member is now; NULL when that is nobody. A group that sent to itself would do so for
 * ever, and guardians ignore mail. */
static tp_actor *find(const tp_actor *group, const tp_member *m) {
  tp_ref *found = m->actor != NULL ? m->actor : tp_lookup(group->ref.system, m->path, m->length);
  tp_actor *a = found == NULL ? NULL : tp_actor_of(found);
  return a == NULL || a == group || a->closed || a->guardian ? NULL : a;
}

/* Whose turn it is, as a place among the members. */
static uint64_t turn_of(const tp_router *r) {
  return r->count > 0 ? r->routees[r->next].number : 0;
}

static void find_all(tp_actor *group) {
  tp_router *r = group->router;
  const tp_behavior_spec *spec = tp_router_spec(group);
  uint64_t turn = turn_of(r);
  tp_router_drop_all(r);
  for (uint32_t i = 0; i < spec->size; i++) {
    tp_actor *a = find(group, &spec->members[i]);
    if (a == NULL) continue;
    tp_ref_retain(&a->ref);
    uint64_t place = (uint64_t)i + 1; /* as the routees of a pool count, for the sake of hashes */
    if (place < turn) r->next++;
    r->routees[r->count++] = (tp_routee){.actor = a, .number = place};
  }
  if (r->next >= r->count) r->next = 0;
}

void tp_group_fill(tp_actor *group) {
  group->router->spawned = 0; /* the group itself has been spawned since */
  tp_group_look(group);
}

void tp_group_look(tp_actor *group) {
  const tp_system *s = group->ref.system;
  tp_router *r = group->router;
  bool misses = r->count < tp_router_spec(group)->size;
  if (r->closed == s->closed && !(misses && r->spawned != s->spawned)) return;
  r->spawned = s->spawned;
  r->closed = s->closed;
  find_all(group);
}
