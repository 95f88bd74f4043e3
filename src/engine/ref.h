/* What every ref begins with. A ref is an actor's cell or a reply slot; the two are told apart
 * here, once. Refs are counted. A live actor is counted by its tree, an open slot by nobody: what
 * has ended stays as a small stale handle until the last count is given back.
 *
 * A system's memory outlives its refs: each of them counts it. */
#ifndef TP_REF_H
#define TP_REF_H

#include "troupe.h"

typedef enum tp_ref_kind { TP_REF_ACTOR, TP_REF_SLOT } tp_ref_kind;

#define TP_UID_MAX (((uint64_t)1 << 56) - 1)

struct tp_ref {
  tp_system *system;
  __extension__ uint64_t uid : 56; /* of the incarnation of a name (PATH-6), or an ask's number */
  __extension__ uint64_t kind : 8; /* tp_ref_kind */
  uint32_t count;
  uint32_t handle; /* the host's, see tp_ref_handle */
};

/* Begins a ref with a count of one. */
void tp_ref_init(tp_ref *r, tp_system *s, tp_ref_kind kind);

/* To be called last when a ref's memory has been given back. */
void tp_ref_fini(tp_system *s);

#endif
