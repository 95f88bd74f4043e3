#include "names.h"

#include <string.h>

#include "alloc.h"
#include "hash.h"
#include "system.h"

enum { FIRST_BUCKETS = 16 };

static tp_actor **bucket_of(tp_names *t, const tp_actor *parent, const char *name, size_t length) {
  uint64_t uid = parent == NULL ? 0 : parent->ref.uid;
  return &t->buckets[tp_hash_mix(tp_hash(name, length) ^ uid) & (t->size - 1)];
}

static void insert(tp_names *t, tp_actor *a) {
  tp_label *label = a->label.name;
  tp_actor **bucket = bucket_of(t, a->parent, label->text, strlen(label->text));
  label->next = *bucket;
  *bucket = a;
}

int tp_names_reserve(tp_system *s) {
  tp_names *t = &s->names;
  if (t->count < t->size) return TP_OK;
  tp_names bigger = {.count = t->count, .size = t->size == 0 ? FIRST_BUCKETS : t->size * 2};
  bigger.buckets = tp_alloc(s, bigger.size * sizeof(tp_actor *));
  if (bigger.buckets == NULL) return TP_ENOMEM;
  for (size_t i = 0; i < t->size; i++) {
    for (tp_actor *a = t->buckets[i], *next; a != NULL; a = next) {
      next = a->label.name->next;
      insert(&bigger, a);
    }
  }
  tp_names_fini(s);
  *t = bigger;
  return TP_OK;
}

void tp_names_add(tp_system *s, tp_actor *a) {
  insert(&s->names, a);
  s->names.count++;
}

void tp_names_remove(tp_system *s, tp_actor *a) {
  const char *name = a->label.name->text;
  tp_actor **link = bucket_of(&s->names, a->parent, name, strlen(name));
  while (*link != a) link = &(*link)->label.name->next;
  *link = a->label.name->next;
  s->names.count--;
}

tp_actor *tp_names_find(tp_system *s, const tp_actor *parent, const char *name, size_t length) {
  if (s->names.size == 0) return NULL;
  tp_actor *a = *bucket_of(&s->names, parent, name, length);
  for (; a != NULL; a = a->label.name->next) {
    const char *text = a->label.name->text;
    if (a->parent == parent && strncmp(text, name, length) == 0 && text[length] == '\0') return a;
  }
  return NULL;
}

void tp_names_fini(tp_system *s) {
  tp_free(s, s->names.buckets, s->names.size * sizeof(tp_actor *));
  s->names = (tp_names){0};
}
