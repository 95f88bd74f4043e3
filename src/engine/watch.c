#include "watch.h"

#include "alloc.h"
#include "mailbox.h"
#include "system.h"

void tp_notice_retain(tp_watch_notice *n) { n->count++; }

void tp_notice_release(tp_watch_notice *n) {
  if (--n->count > 0) return;
  tp_system *s = n->target->ref.system;
  tp_value_release(s, n->message);
  if (n->slot != NULL) tp_ref_release(n->slot);
  tp_ref *target = &n->target->ref;
  tp_free(s, n, sizeof *n);
  tp_ref_release(target); /* last: it holds the system */
}

/* ---- Who watches whom ------------------------------------------------------------------- */

enum { FIRST_BUCKETS = 16 };

/* Uids are given one after another; the multiplier spreads them (Knuth, 1973: multiplicative hash). */
static tp_watch_notice **bucket_of(tp_watches *t, const tp_actor *watcher, const tp_actor *target) {
  uint64_t h = (watcher->ref.uid * 31 + target->ref.uid) * 0x9e3779b97f4a7c15u;
  return &t->buckets[(h >> 32) & (t->size - 1)];
}

static void insert(tp_watches *t, tp_watch_notice *n) {
  tp_watch_notice **bucket = bucket_of(t, n->watcher, n->target);
  n->next = *bucket;
  *bucket = n;
}

static int reserve(tp_system *s) {
  tp_watches *t = &s->watches;
  if (t->count < t->size) return TP_OK;
  tp_watches bigger = {.count = t->count, .size = t->size == 0 ? FIRST_BUCKETS : t->size * 2};
  bigger.buckets = tp_alloc(s, bigger.size * sizeof(tp_watch_notice *));
  if (bigger.buckets == NULL) return TP_ENOMEM;
  for (size_t i = 0; i < t->size; i++) {
    for (tp_watch_notice *n = t->buckets[i], *next; n != NULL; n = next) {
      next = n->next;
      insert(&bigger, n);
    }
  }
  tp_watches_fini(s);
  *t = bigger;
  return TP_OK;
}

static tp_watch_notice *find(const tp_actor *watcher, const tp_actor *target) {
  tp_watches *t = &watcher->ref.system->watches;
  if (t->count == 0) return NULL;
  tp_watch_notice *n = *bucket_of(t, watcher, target);
  while (n != NULL && (n->watcher != watcher || n->target != target)) n = n->next;
  return n;
}

static void take_out(tp_watch_notice *n) {
  tp_watches *t = &n->target->ref.system->watches;
  tp_watch_notice **link = bucket_of(t, n->watcher, n->target);
  while (*link != n) link = &(*link)->next;
  *link = n->next;
  t->count--;
}

void tp_watches_fini(tp_system *s) {
  tp_free(s, s->watches.buckets, s->watches.size * sizeof(tp_watch_notice *));
  s->watches = (tp_watches){0};
}

/* ---- Watches ---------------------------------------------------------------------------- */

/* It is over, and so is the count that its being active held. */
static void end(tp_watch_notice *n) {
  if (!n->active) return;
  n->active = false;
  if (n->watcher != NULL) take_out(n);
  tp_list_remove(&n->mine);
  tp_list_remove(&n->theirs);
  tp_notice_release(n);
}

static tp_watch_notice *new_notice(tp_actor *target) {
  tp_watch_notice *n = tp_alloc(target->ref.system, sizeof *n);
  if (n == NULL) return NULL;
  n->count = 1;
  n->active = true;
  n->target = target;
  tp_ref_retain(&target->ref);
  tp_list_init(&n->mine);
  tp_list_init(&n->theirs);
  return n;
}

/* Tells whoever watches; a notice for which there is no memory is tried again. */
static void tell(tp_watch_notice *n) {
  tp_list_remove(&n->theirs);
  if (n->slot != NULL) {
    tp_slot_settle(n->slot, (tp_value){.type = TP_BOOLEAN, .as.boolean = true}, false, NULL);
    return;
  }
  tp_notice_retain(n);
  tp_envelope e = {.message = {.type = TP_NOTICE, .as.notice = n}};
  if (tp_mail_push(n->watcher, e) == TP_OK) return;
  tp_list_append(&n->watcher->ref.system->owed, &n->theirs);
  tp_notice_release(n);
}

/* Lists the watch with its target, or tells at once when that has stopped. */
static int begin(tp_watch_notice *n) {
  if (n->target->phase == TP_PHASE_STOPPED) {
    tell(n);
    return TP_OK;
  }
  tp_extra *x = tp_actor_extra(n->target);
  if (x == NULL) return TP_ENOMEM;
  tp_list_append(&x->watchers, &n->theirs);
  return TP_OK;
}

int tp_watch(tp_ref *watcher, tp_ref *target, tp_value message, bool custom) {
  tp_actor *w = tp_actor_of(watcher), *t = tp_actor_of(target);
  tp_watch_notice *n = find(w, t);
  bool known = n != NULL;
  if (w->phase >= TP_PHASE_STOPPING) {
    tp_value_release(watcher->system, message);
    return TP_OK; /* nobody is left to be told */
  }
  bool room = known || (tp_actor_extra(w) != NULL && reserve(watcher->system) == TP_OK);
  if (!room || (!known && (n = new_notice(t)) == NULL)) {
    tp_value_release(watcher->system, message);
    return TP_ENOMEM;
  }
  tp_value_release(watcher->system, n->message);
  n->message = message;
  n->custom = custom;
  if (known) return TP_OK;
  n->watcher = w;
  insert(&watcher->system->watches, n);
  watcher->system->watches.count++;
  tp_list_append(&w->extra->watches, &n->mine);
  int status = begin(n);
  if (status != TP_OK) end(n);
  return status;
}

void tp_unwatch(tp_ref *watcher, tp_ref *target) {
  tp_watch_notice *n = find(tp_actor_of(watcher), tp_actor_of(target));
  if (n != NULL) end(n);
}

void tp_watch_settled(tp_watch_notice *n) { end(n); }

int tp_await_stop(tp_ref *target, tp_time timeout, tp_ref **out) {
  tp_ref *slot;
  int status = tp_slot_new(target->system, timeout, false, &slot);
  if (status != TP_OK) return status;
  if (tp_slot_settled(slot)) { /* the system has ended all waits */
    *out = slot;
    return TP_OK;
  }
  tp_watch_notice *n = new_notice(tp_actor_of(target));
  if (n == NULL) {
    tp_ref_release(slot);
    return TP_ENOMEM;
  }
  n->slot = slot;
  tp_ref_retain(slot);
  tp_slot_of(slot)->notice = n;
  status = begin(n);
  if (status == TP_OK) {
    *out = slot;
  } else {
    tp_slot_of(slot)->notice = NULL;
    end(n);
    tp_ref_release(slot);
  }
  return status;
}

bool tp_notice_take(tp_watch_notice *n, tp_value *out) {
  if (!n->active) return false;
  if (n->custom) {
    *out = n->message;
  } else {
    *out = (tp_value){.type = TP_TERMINATED, .as.ref = &n->target->ref};
  }
  tp_value_retain(n->target->ref.system, *out);
  end(n);
  return true;
}

void tp_watchers_tell(tp_actor *a) {
  if (a->extra == NULL) return;
  tp_link *head = &a->extra->watchers;
  while (!tp_list_empty(head)) tell(TP_CONTAINER(head->next, tp_watch_notice, theirs));
}

void tp_watches_end(tp_actor *a) {
  if (a->extra == NULL) return;
  tp_link *mine = &a->extra->watches, *theirs = &a->extra->watchers;
  while (!tp_list_empty(mine)) end(TP_CONTAINER(mine->next, tp_watch_notice, mine));
  while (!tp_list_empty(theirs)) end(TP_CONTAINER(theirs->next, tp_watch_notice, theirs));
}

void tp_watches_retry(tp_system *s) {
  tp_link owed = s->owed;
  if (tp_list_empty(&s->owed)) return;
  owed.next->prev = owed.prev->next =
      &owed; /* the list moves here: what fails again is listed anew */
  tp_list_init(&s->owed);
  while (!tp_list_empty(&owed)) tell(TP_CONTAINER(owed.next, tp_watch_notice, theirs));
}
