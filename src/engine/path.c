/* Paths: how refs are written and how text leads back to actors. */
#include <stdio.h>
#include <string.h>

#include "actor.h"
#include "names.h"
#include "system.h"

/* Appends as snprintf does: what does not fit is counted all the same. */
typedef struct text {
  char *buffer;
  size_t size, length;
} text;

static void append(text *t, const char *bytes, size_t length) {
  if (t->length + 1 < t->size) {
    size_t room = t->size - t->length - 1;
    memcpy(t->buffer + t->length, bytes, length < room ? length : room);
  }
  t->length += length;
  if (t->size > 0) t->buffer[t->length < t->size ? t->length : t->size - 1] = '\0';
}

static void append_number(text *t, char prefix, uint64_t number) {
  char digits[24];
  int n = snprintf(digits, sizeof digits, "%c%llu", prefix, (unsigned long long)number);
  append(t, digits, (size_t)n);
}

static void append_name(text *t, const tp_actor *a) {
  if (a->named) {
    append(t, a->label.name->text, strlen(a->label.name->text));
  } else if (a->parent != NULL) {
    append_number(t, '$', a->label.number);
  }
}

static size_t length_of(const tp_actor *a) {
  size_t length = 0;
  for (; a->parent != NULL; a = a->parent) {
    text t = {0};
    append_name(&t, a);
    length += 1 + t.length;
  }
  return length;
}

/* Where the bytes of an element go; those that are beyond the buffer are left out. */
static void put(text *t, size_t at, const char *bytes, size_t length) {
  if (at + 1 >= t->size) return;
  size_t room = t->size - at - 1;
  memcpy(t->buffer + at, bytes, length < room ? length : room);
}

/* From the leaf up, each element in its place. */
static void append_elements(text *t, const tp_actor *a) {
  size_t end = t->length += length_of(a);
  for (; a->parent != NULL; a = a->parent) {
    char number[24];
    text name = {number, sizeof number, 0};
    const char *bytes = a->named ? a->label.name->text : number;
    if (!a->named) append_name(&name, a);
    size_t length = a->named ? strlen(bytes) : name.length;
    end -= length;
    put(t, end, bytes, length);
    put(t, --end, "/", 1);
  }
  if (t->size > 0) t->buffer[t->length < t->size ? t->length : t->size - 1] = '\0';
}

size_t tp_ref_path(const tp_ref *r, char *buffer, size_t size) {
  text t = {buffer, size, 0};
  append(&t, "troupe://", 9);
  append(&t, r->system->name, strlen(r->system->name));
  if (r->kind == TP_REF_SLOT) {
    append(&t, "/temp/ask", 9);
    append_number(&t, '-', r->uid);
  } else if (tp_actor_look(r)->parent == NULL) {
    append(&t, "/", 1);
  } else {
    append_elements(&t, tp_actor_look(r));
  }
  return t.length;
}

size_t tp_ref_name(const tp_ref *r, char *buffer, size_t size) {
  text t = {buffer, size, 0};
  append(&t, "", 0);
  if (r->kind == TP_REF_SLOT) {
    append(&t, "ask", 3);
    append_number(&t, '-', r->uid);
  } else {
    append_name(&t, tp_actor_look(r));
  }
  return t.length;
}

static tp_actor *find_numbered(const tp_actor *parent, const char *name, size_t length) {
  enum { DIGITS_MAX = 19 };
  uint64_t number = 0;
  if (name[1] == '0' || length > 1 + DIGITS_MAX) return NULL;
  for (size_t i = 1; i < length; i++) {
    if (name[i] < '0' || name[i] > '9') return NULL;
    number = number * 10 + (uint64_t)(name[i] - '0');
  }
  for (tp_actor *a = tp_actor_first_child(parent); a != NULL;
       a = tp_actor_sibling(parent, a->siblings.next)) {
    if (!a->named && a->label.number == number) return a;
  }
  return NULL;
}

static tp_actor *find_child(const tp_actor *parent, const char *name, size_t length) {
  if (length > 1 && name[0] == '$') return find_numbered(parent, name, length);
  return tp_names_find(parent->ref.system, parent, name, length);
}

tp_ref *tp_child(const tp_ref *parent, const char *name, size_t length) {
  tp_actor *a = find_child(tp_actor_look(parent), name, length);
  return a == NULL ? NULL : &a->ref;
}

tp_ref *tp_lookup(tp_system *s, const char *path, size_t length) {
  const char *end = path + length;
  tp_actor *a = s->root;
  while (path < end && a != NULL) {
    const char *slash = memchr(path, '/', (size_t)(end - path));
    const char *stop = slash == NULL ? end : slash;
    if (stop > path) a = find_child(a, path, (size_t)(stop - path));
    path = stop + 1;
  }
  return a == NULL || a->phase == TP_PHASE_STOPPED ? NULL : &a->ref;
}

tp_ref *tp_ref_parent(const tp_ref *r) {
  if (r->kind == TP_REF_SLOT) return NULL;
  const tp_actor *a = tp_actor_look(r);
  return a->parent == NULL ? NULL : &a->parent->ref;
}

tp_ref *tp_next_child(const tp_ref *parent, const tp_ref *after) {
  const tp_actor *p = tp_actor_look(parent);
  if (after == NULL) {
    tp_actor *first = tp_actor_first_child(p);
    return first == NULL ? NULL : &first->ref;
  }
  tp_actor *next = tp_actor_sibling(p, tp_actor_look(after)->siblings.next);
  return next == NULL ? NULL : &next->ref;
}
