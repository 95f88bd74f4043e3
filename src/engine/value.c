#include "value.h"

#include "alloc.h"
#include "fault.h"
#include "system.h"
#include "watch.h"

static size_t bundle_size(uint32_t size) { return sizeof(tp_bundle) + size * sizeof(tp_value); }

tp_bundle *tp_bundle_new(tp_system *s, uint32_t size) {
  tp_bundle *b = tp_alloc(s, bundle_size(size));
  if (b == NULL) return NULL;
  b->count = 1;
  b->size = size;
  return b;
}

uint32_t tp_value_depth(tp_value v) {
  if (v.type == TP_FAULT) return v.as.fault->depth;
  return v.type == TP_BUNDLE ? v.as.bundle->depth : 0;
}

static void put(tp_value *place, uint32_t *depth, tp_value v) {
  uint32_t deeper = tp_value_depth(v) + 1;
  *place = v;
  if (*depth < deeper) *depth = deeper;
}

void tp_fault_put(tp_fault *f, uint32_t i, tp_value v) { put(&f->member[i], &f->depth, v); }

void tp_bundle_put(tp_bundle *b, uint32_t i, tp_value v) { put(&b->item[i], &b->depth, v); }

static void release_bundle(tp_system *s, tp_bundle *b) {
  if (--b->count > 0) return;
  for (uint32_t i = 0; i < b->size; i++) tp_value_release(s, b->item[i]);
  tp_free(s, b, bundle_size(b->size));
}

void tp_value_retain(tp_system *s, tp_value v) {
  switch (v.type) {
    case TP_HOST: s->host.retain(s->host.context, v.as.host); break;
    case TP_TERMINATED:
    case TP_REF: tp_ref_retain(v.as.ref); break;
    case TP_NOTICE: tp_notice_retain(v.as.notice); break;
    case TP_FAULT: v.as.fault->count++; break;
    case TP_BUNDLE: v.as.bundle->count++; break;
    default: break;
  }
}

void tp_value_release(tp_system *s, tp_value v) {
  switch (v.type) {
    case TP_HOST: s->host.release(s->host.context, v.as.host); break;
    case TP_TERMINATED:
    case TP_REF: tp_ref_release(v.as.ref); break;
    case TP_NOTICE: tp_notice_release(v.as.notice); break;
    case TP_FAULT: tp_fault_release(s, v.as.fault); break;
    case TP_BUNDLE: release_bundle(s, v.as.bundle); break;
    default: break;
  }
}

void tp_envelope_release(tp_system *s, tp_envelope *e) {
  if (e->message.type >= TP_HOST) tp_value_release(s, e->message);
  if (e->sender != NULL) tp_ref_release(e->sender);
  *e = (tp_envelope){0};
}
