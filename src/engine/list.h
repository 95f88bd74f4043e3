/* A circular, intrusive, doubly linked list. A link is embedded in what is listed; the list's
 * head is a link too. A link that is in no list points to itself, so removing it twice is safe. */
#ifndef TP_LIST_H
#define TP_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tp_link {
  struct tp_link *next, *prev;
} tp_link;

/* The struct of `type` whose member `member` is at `pointer`. */
#define TP_CONTAINER(pointer, type, member)                                                        \
  ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static inline void tp_list_init(tp_link *l) { l->next = l->prev = l; }

static inline bool tp_list_empty(const tp_link *head) { return head->next == head; }

static inline void tp_list_append(tp_link *head, tp_link *l) {
  l->prev = head->prev;
  l->next = head;
  head->prev->next = l;
  head->prev = l;
}

static inline void tp_list_remove(tp_link *l) {
  l->prev->next = l->next;
  l->next->prev = l->prev;
  tp_list_init(l);
}

#endif
