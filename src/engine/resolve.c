#include "resolve.h"

#include <string.h>

#include "alloc.h"
#include "list.h"
#include "system.h"

typedef struct resolution {
  tp_link link;
  tp_ref *slot; /* counted */
  size_t length;
  char path[];
} resolution;

static void end(tp_system *s, resolution *r) {
  tp_list_remove(&r->link);
  tp_ref_release(r->slot);
  tp_free(s, r, sizeof *r + r->length);
}

static bool resolve(tp_system *s, const char *path, size_t length, tp_ref *slot) {
  tp_ref *found = tp_lookup(s, path, length);
  if (found == NULL) return false;
  tp_ref_retain(found);
  tp_slot_settle(slot, (tp_value){.type = TP_REF, .as.ref = found}, false, NULL);
  return true;
}

int tp_resolve(tp_system *s, const char *path, size_t length, tp_ref *slot) {
  tp_resolve_spawned(s); /* those that have timed out go here at the latest */
  if (resolve(s, path, length, slot)) return TP_OK;
  resolution *r = tp_alloc(s, sizeof *r + length);
  if (r == NULL) return TP_ENOMEM;
  memcpy(r->path, path, length);
  r->length = length;
  r->slot = slot;
  tp_ref_retain(slot);
  tp_list_append(&s->resolutions, &r->link);
  return TP_OK;
}

void tp_resolve_spawned(tp_system *s) {
  tp_link *next;
  for (tp_link *l = s->resolutions.next; l != &s->resolutions; l = next) {
    next = l->next;
    resolution *r = TP_CONTAINER(l, resolution, link);
    if (tp_slot_settled(r->slot) || resolve(s, r->path, r->length, r->slot)) end(s, r);
  }
}

void tp_resolve_fini(tp_system *s) {
  while (!tp_list_empty(&s->resolutions)) {
    end(s, TP_CONTAINER(s->resolutions.next, resolution, link));
  }
}
