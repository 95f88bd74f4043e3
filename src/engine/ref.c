#include "ref.h"

#include "actor.h"
#include "slot.h"
#include "system.h"

void tp_ref_init(tp_ref *r, tp_system *s, tp_ref_kind kind) {
  r->system = s;
  r->uid = ++s->uids & TP_UID_MAX;
  r->count = 1;
  r->kind = (uint8_t)kind;
  r->handle = 0;
  tp_system_hold(s);
}

void tp_ref_fini(tp_system *s) { tp_system_drop(s); }

void tp_ref_retain(tp_ref *r) { r->count++; }

void tp_ref_release(tp_ref *r) {
  if (--r->count > 0) return;
  if (r->kind == TP_REF_ACTOR) {
    tp_actor_free((tp_actor *)(void *)r);
  } else {
    tp_slot_free((tp_slot *)(void *)r);
  }
}

bool tp_ref_is_actor(const tp_ref *r) { return r->kind == TP_REF_ACTOR; }

bool tp_ref_alive(const tp_ref *r) {
  if (r->kind == TP_REF_SLOT) return !tp_slot_settled(r);
  return ((const tp_actor *)(const void *)r)->phase != TP_PHASE_STOPPED;
}

uint32_t tp_ref_handle(const tp_ref *r) { return r->handle; }

void tp_ref_set_handle(tp_ref *r, uint32_t handle) { r->handle = handle; }

uint64_t tp_ref_uid(const tp_ref *r) { return r->uid; }

tp_system *tp_ref_system(const tp_ref *r) { return r->system->freed ? NULL : r->system; }
