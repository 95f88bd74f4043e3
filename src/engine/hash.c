#include "hash.h"

uint64_t tp_hash(const void *bytes, size_t length) {
  const unsigned char *b = bytes;
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < length; i++) hash = (hash ^ b[i]) * 0x100000001b3u;
  return hash;
}

uint64_t tp_hash_mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t tp_hash_score(uint64_t key, uint64_t node) {
  return tp_hash_mix(key + node * TP_HASH_STEP);
}
