#include "value.h"

#include "fault.h"
#include "system.h"
#include "watch.h"

void tp_value_retain(tp_system *s, tp_value v) {
  switch (v.type) {
    case TP_HOST: s->host.retain(s->host.context, v.as.host); break;
    case TP_TERMINATED:
    case TP_REF: tp_ref_retain(v.as.ref); break;
    case TP_NOTICE: tp_notice_retain(v.as.notice); break;
    case TP_FAULT: v.as.fault->count++; break;
    case TP_TICK: tp_tick_retain(v.as.tick); break;
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
    case TP_TICK: tp_tick_release(v.as.tick); break;
    default: break;
  }
}

void tp_envelope_release(tp_system *s, tp_envelope *e) {
  tp_value_release(s, e->message);
  if (e->sender != NULL) tp_ref_release(e->sender);
  *e = (tp_envelope){0};
}
