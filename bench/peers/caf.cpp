// An arm of the bench: the C++ Actor Framework (CAF) 0.17, as Debian 12 has it.
//
//     caf WORKERS WORKLOAD SIZE [WORKLOAD SIZE ...]
//
// Actors do the work, so that one worker is one thread; but the main thread drives two workloads,
// idle and deep, and CAF's clock, which sees to timeouts and delayed messages, has a thread too.

#include <caf/all.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace caf;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

using go_atom = atom_constant<atom("go")>;
using meet_atom = atom_constant<atom("meet")>;
using count_atom = atom_constant<atom("count")>;
using ask_atom = atom_constant<atom("ask")>;
using done_atom = atom_constant<atom("done")>;
using over_atom = atom_constant<atom("over")>;
using fail_atom = atom_constant<atom("fail")>;
using ping_atom = atom_constant<atom("ping")>;
using up_atom = atom_constant<atom("up")>;
using tick_atom = atom_constant<atom("tick")>;

// --- measuring

struct result {
  long handled;
  std::string more;
};

// A workload is made ready for n operations, and gives what is measured.
using run = std::function<result()>;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double processor_time() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  auto in_seconds = [](timeval t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
  return in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime);
}

double resident() {
  std::ifstream file("/proc/self/statm");
  long all = 0, pages = 0;
  file >> all >> pages;
  return double(pages) * double(sysconf(_SC_PAGESIZE));
}

template <class... Ts> std::string text(const char *format, Ts... values) {
  char buffer[200];
  snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

// How an actor tells the program that all is done, and how many were handled.
using promise = std::shared_ptr<std::promise<long>>;

promise make_promise() { return std::make_shared<std::promise<long>>(); }

long await(const promise &done) { return done->get_future().get(); }

// --- numbers and objects back and forth

struct ball {
  long left;
};

template <class Inspector> typename Inspector::result_type inspect(Inspector &f, ball &x) {
  return f(meta::type_name("ball"), x.left);
}

long left_of(long message) { return message; }
long left_of(const ball &message) { return message.left; }

struct player_state {
  actor peer;
  long handled = 0;
};

template <class Message> behavior player(stateful_actor<player_state> *self, promise done) {
  return {
      [=](meet_atom, actor peer) { self->state.peer = std::move(peer); },
      [=](const Message &message) {
        auto &state = self->state;
        ++state.handled;
        if (left_of(message) > 1)
          self->send(state.peer, Message{left_of(message) - 1});
        else
          self->send(state.peer, over_atom::value, state.handled);
      },
      [=](over_atom, long handled) { done->set_value(self->state.handled + handled); },
  };
}

template <class Message> run ping_pong(actor_system &system, long n) {
  auto done = make_promise();
  auto ping = system.spawn(player<Message>, done);
  auto pong = system.spawn(player<Message>, done);
  anon_send(ping, meet_atom::value, pong);
  anon_send(pong, meet_atom::value, ping);
  return [=]() -> result {
    anon_send(ping, Message{n});
    return {await(done), ""};
  };
}

// --- telling

struct counter_state {
  long handled = 0;
};

behavior counter(stateful_actor<counter_state> *self) {
  return {
      [=](long) { ++self->state.handled; },
      [=](count_atom) { return self->state.handled; },
  };
}

// Tells a counter n numbers, batch by batch.
struct teller_state {
  long left = 0;
};

void tell_batch(stateful_actor<teller_state> *self, const actor &target, long batch, promise done) {
  for (long i = 1; i <= batch; ++i) self->send(target, i);
  self->state.left -= batch;
  self->request(target, seconds(5), count_atom::value).then([=](long handled) {
    if (self->state.left > 0)
      tell_batch(self, target, batch, done);
    else
      done->set_value(handled);
  });
}

behavior teller(stateful_actor<teller_state> *self, actor target, long batch, promise done) {
  return {[=](go_atom, long n) {
    self->state.left = n;
    tell_batch(self, target, batch, done);
  }};
}

template <long Producers, long Batch> run tell(actor_system &system, long n) {
  auto target = system.spawn(counter);
  return [=, &system]() -> result {
    std::vector<promise> all;
    for (long i = 0; i < Producers; ++i) {
      all.push_back(make_promise());
      anon_send(system.spawn(teller, target, Batch, all.back()), go_atom::value, n / Producers);
    }
    long handled = 0;
    for (auto &done : all) handled = std::max(handled, await(done));
    return {handled, ""};
  };
}

struct member_state {
  actor next;
  long handled = 0;
  bool last = false;
};

// The end goes round once more, and gathers what each has handled.
behavior ring_member(stateful_actor<member_state> *self, promise done) {
  return {
      [=](meet_atom, actor next) { self->state.next = std::move(next); },
      [=](long left) {
        auto &state = self->state;
        ++state.handled;
        state.last = left == 1;
        if (state.last)
          self->send(state.next, over_atom::value, state.handled);
        else
          self->send(state.next, left - 1);
      },
      [=](over_atom, long handled) {
        auto &state = self->state;
        if (state.last)
          done->set_value(handled);
        else
          self->send(state.next, over_atom::value, handled + state.handled);
      },
  };
}

run ring(actor_system &system, long n) {
  auto done = make_promise();
  std::vector<actor> members;
  for (int i = 0; i < 1000; ++i) members.push_back(system.spawn(ring_member, done));
  for (size_t i = 0; i < members.size(); ++i)
    anon_send(members[i], meet_atom::value, members[(i + 1) % members.size()]);
  return [=]() -> result {
    anon_send(members[0], n);
    return {await(done), ""};
  };
}

// --- round robin: CAF's pool, which hands a message on in the thread of who sends it

using count = std::shared_ptr<std::atomic<long>>;

count make_count() { return std::make_shared<std::atomic<long>>(0); }

void add_one(const count &to) { to->fetch_add(1, std::memory_order_relaxed); }

struct worker_state {
  long since_done = 0;
};

behavior worker(stateful_actor<worker_state> *self, actor producer, count handled) {
  return {[=](long) {
    add_one(handled);
    if (++self->state.since_done < 125) return;
    self->state.since_done = 0;
    self->send(producer, done_atom::value);
  }};
}

struct producer_state {
  actor pool;
  long left = 0;
  int busy_workers = 0;
};

void produce(stateful_actor<producer_state> *self) {
  auto &state = self->state;
  for (long i = 1; i <= 1000; ++i) self->send(state.pool, i);
  state.left -= 1000;
  state.busy_workers = 8;
}

behavior producer(stateful_actor<producer_state> *self, count handled, promise done) {
  return {
      [=](go_atom, actor pool, long n) {
        self->state.pool = std::move(pool);
        self->state.left = n;
        produce(self);
      },
      [=](done_atom) {
        auto &state = self->state;
        if (--state.busy_workers > 0) return;
        if (state.left > 0)
          produce(self);
        else
          done->set_value(*handled);
      },
  };
}

run round_robin(actor_system &system, long n) {
  auto done = make_promise();
  auto handled = make_count();
  auto from = system.spawn(producer, handled, done);
  scoped_execution_unit unit{&system};
  auto pool = actor_pool::make(
      &unit, 8, [&] { return system.spawn(worker, from, handled); }, actor_pool::round_robin());
  return [=]() -> result {
    anon_send(from, go_atom::value, pool, n);
    return {await(done), ""};
  };
}

// --- asking

behavior server(event_based_actor *) {
  return {
      [](ask_atom, long question) { return question; },
      [](const std::string &question) { return long(question.size()); },
  };
}

struct asker_state {
  long left = 0, under_way = 0, right = 0;
};

void ask_next(stateful_actor<asker_state> *self, const std::vector<actor> &servers, promise done);

void answered(stateful_actor<asker_state> *self, const std::vector<actor> &servers, promise done,
              bool right) {
  auto &state = self->state;
  --state.under_way;
  if (right) ++state.right;
  if (state.left > 0)
    ask_next(self, servers, done);
  else if (state.under_way == 0)
    done->set_value(state.right);
}

void ask_next(stateful_actor<asker_state> *self, const std::vector<actor> &servers, promise done) {
  auto &state = self->state;
  long question = state.left--;
  ++state.under_way;
  if (servers.size() == 1) {
    self->request(servers[0], seconds(5), ask_atom::value, question)
        .then([=](long answer) { answered(self, servers, done, answer == question); },
              [=](error &) { answered(self, servers, done, false); });
    return;
  }
  // The first reply, or when all have failed the last failure, is what counts.
  auto waiting = std::make_shared<size_t>(servers.size());
  for (auto &server : servers)
    self->request(server, milliseconds(250), ask_atom::value, question)
        .then(
            [=](long answer) {
              if (*waiting == 0) return;
              *waiting = 0;
              answered(self, servers, done, answer == question);
            },
            [=](error &) {
              if (*waiting > 0 && --*waiting == 0) answered(self, servers, done, false);
            });
}

behavior asker(stateful_actor<asker_state> *self, std::vector<actor> servers, promise done) {
  return {[=](go_atom, long n, long in_flight) {
    self->state.left = n;
    for (long i = 0; i < std::min(n, in_flight); ++i) ask_next(self, servers, done);
  }};
}

template <long Servers, long InFlight> run ask(actor_system &system, long n) {
  auto done = make_promise();
  std::vector<actor> servers;
  for (long i = 0; i < Servers; ++i) servers.push_back(system.spawn(server));
  auto from = system.spawn(asker, servers, done);
  return [=]() -> result {
    anon_send(from, go_atom::value, n, InFlight);
    return {await(done), ""};
  };
}

// A message is shared, not copied, when it is made once.
void ask_text(stateful_actor<asker_state> *self, const actor &server, const message &question,
              long bytes, promise done) {
  --self->state.left;
  self->request(server, seconds(5), question).then([=](long answer) {
    if (answer == bytes) ++self->state.right;
    if (self->state.left > 0)
      ask_text(self, server, question, bytes, done);
    else
      done->set_value(self->state.right);
  });
}

behavior text_asker(stateful_actor<asker_state> *self, actor server, long bytes, promise done) {
  auto question = make_message(std::string(size_t(bytes), 'x'));
  return {[=](go_atom, long n) {
    self->state.left = n;
    ask_text(self, server, question, bytes, done);
  }};
}

template <long Bytes> run ask_with(actor_system &system, long n) {
  auto done = make_promise();
  auto from = system.spawn(text_asker, system.spawn(server), Bytes, done);
  return [=]() -> result {
    anon_send(from, go_atom::value, n);
    return {await(done), ""};
  };
}

std::atomic<bool> busy;

behavior busy_player(stateful_actor<player_state> *self) {
  return {
      [=](meet_atom, actor peer) { self->state.peer = std::move(peer); },
      [=](long count) {
        if (busy) self->send(self->state.peer, count + 1);
      },
  };
}

struct watch_state {
  std::vector<double> times;
};

void ask_timed(stateful_actor<watch_state> *self, const actor &server, long left, promise done,
               std::vector<double> *times) {
  auto began = now();
  self->request(server, seconds(5), ask_atom::value, left).then([=](long answer) {
    if (answer == left) self->state.times.push_back(now() - began);
    if (left > 1) {
      ask_timed(self, server, left - 1, done, times);
    } else {
      *times = std::move(self->state.times);
      done->set_value(long(times->size()));
    }
  });
}

behavior timed_asker(stateful_actor<watch_state> *self, actor server, promise done,
                     std::vector<double> *times) {
  return {[=](go_atom, long n) { ask_timed(self, server, n, done, times); }};
}

run latency(actor_system &system, long n) {
  auto done = make_promise();
  auto times = std::make_shared<std::vector<double>>();
  auto from = system.spawn(timed_asker, system.spawn(server), done, times.get());
  busy = true;
  for (long i = 0; i < 500; ++i) {
    auto ping = system.spawn(busy_player);
    auto pong = system.spawn(busy_player);
    anon_send(ping, meet_atom::value, pong);
    anon_send(pong, meet_atom::value, ping);
    anon_send(ping, i);
  }
  return [=]() -> result {
    anon_send(from, go_atom::value, n);
    long handled = await(done);
    busy = false;
    std::sort(times->begin(), times->end());
    auto quantile = [&](double q) {
      return (*times)[size_t(std::max(0., double(times->size()) * q - 1))] * 1e6;
    };
    return {handled,
            text("p50=%.1f p99=%.1f p999=%.1f", quantile(0.5), quantile(0.99), quantile(0.999))};
  };
}

// --- lives

behavior mortal(event_based_actor *self, count started, count handled) {
  if (started) add_one(started);
  return {
      [=](long) { add_one(handled); },
      [=](over_atom) { self->quit(); },
  };
}

// Spawns, tells and ends batch by batch, and goes on when all of a batch have ended.
struct parent_state {
  long left = 0, alive = 0;
  std::vector<actor> children;
};

void live_batch(stateful_actor<parent_state> *self, long batch, const count &handled) {
  auto &state = self->state;
  state.alive = std::min(state.left, batch);
  state.left -= state.alive;
  state.children.clear();
  for (long i = 0; i < state.alive; ++i)
    state.children.push_back(self->spawn<monitored + lazy_init>(mortal, nullptr, handled));
  for (auto &child : state.children) self->send(child, 1L);
  for (auto &child : state.children) self->send(child, over_atom::value);
}

behavior parent(stateful_actor<parent_state> *self, long batch, count handled, promise done) {
  self->set_down_handler([=](down_msg &) {
    auto &state = self->state;
    if (--state.alive > 0) return;
    if (state.left > 0)
      live_batch(self, batch, handled);
    else
      done->set_value(*handled);
  });
  return {[=](go_atom, long n) {
    self->state.left = n;
    live_batch(self, batch, handled);
  }};
}

run lives(actor_system &system, long n, long batch) {
  auto done = make_promise();
  auto from = system.spawn(parent, batch, make_count(), done);
  return [=]() -> result {
    anon_send(from, go_atom::value, n);
    return {await(done), ""};
  };
}

run spawn_by_100(actor_system &system, long n) { return lives(system, n, 100); }
run all_live(actor_system &system, long n) { return lives(system, n, n); }

void wait_for(const count &of, long n) {
  while (*of < n) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

run idle(actor_system &system, long n) {
  return [=, &system]() -> result {
    auto empty = resident();
    auto bytes = [=] { return (resident() - empty) / double(n); };
    auto per_second = [=](const std::function<void()> &action) {
      auto began = now();
      action();
      return double(n) / (now() - began);
    };
    auto started = make_count();
    auto handled = make_count();
    auto ended = make_count();
    std::vector<actor> actors;
    auto spawned = per_second([&] {
      for (long i = 0; i < n; ++i) actors.push_back(system.spawn(mortal, started, handled));
      wait_for(started, n);
    });
    auto idle = bytes();
    auto told = per_second([&] {
      for (auto &one : actors) anon_send(one, 1L);
      wait_for(handled, n);
    });
    auto after = bytes();
    auto stopped = per_second([&] {
      for (auto &one : actors) {
        one->attach_functor([=] { add_one(ended); });
        anon_send(one, over_atom::value);
      }
      wait_for(ended, n);
    });
    return {*handled, text("bytes=%.0f bytes_after=%.0f spawn_rate=%.0f tell_rate=%.0f "
                           "stop_rate=%.0f",
                           idle, after, spawned, told, stopped)};
  };
}

// --- restarts: CAF has monitors, and leaves it to who uses them to spawn again

behavior fragile(event_based_actor *self) {
  return {
      [=](fail_atom) { self->quit(sec::runtime_error); },
      [](ping_atom) { return 1L; },
  };
}

struct supervisor_state {
  actor user;
  long restarts = 0;
};

struct user_state {
  actor child; // an actor that nobody knows any more ends
};

behavior supervisor(stateful_actor<supervisor_state> *self) {
  self->set_down_handler([=](down_msg &) {
    auto &state = self->state;
    self->send(state.user, up_atom::value, self->spawn<monitored>(fragile), ++state.restarts);
  });
  return {[=](meet_atom, actor user) {
    self->state.user = std::move(user);
    self->send(self->state.user, up_atom::value, self->spawn<monitored>(fragile), 0L);
  }};
}

behavior user(stateful_actor<user_state> *self, long n, promise done) {
  return {[=](up_atom, const actor &child, long restarts) {
    self->state.child = child;
    if (restarts == 0) {
      self->send(child, fail_atom::value);
      return;
    }
    self->request(child, seconds(5), ping_atom::value).then([=](long) {
      if (restarts < n)
        self->send(self->state.child, fail_atom::value);
      else
        done->set_value(restarts);
    });
  }};
}

run restart(actor_system &system, long n) {
  auto done = make_promise();
  auto from = system.spawn(user, n, done);
  auto above = system.spawn(supervisor);
  return [=]() -> result {
    anon_send(above, meet_atom::value, from);
    return {await(done), ""};
  };
}

// --- timers

struct timed_state {
  long fired = 0;
};

behavior timed(stateful_actor<timed_state> *self, promise armed, promise done) {
  return {
      [=](go_atom, long n) {
        std::minstd_rand random(42);
        for (long i = 0; i < n; ++i)
          self->delayed_send(self, milliseconds(random() % 1001), tick_atom::value, n);
        armed->set_value(n);
      },
      [=](tick_atom, long n) {
        if (++self->state.fired == n) done->set_value(self->state.fired);
      },
  };
}

run timers_fire(actor_system &system, long n) {
  auto armed = make_promise(), done = make_promise();
  auto self = system.spawn(timed, armed, done);
  return [=]() -> result {
    auto empty = resident();
    anon_send(self, go_atom::value, n);
    await(armed);
    auto bytes = (resident() - empty) / double(n);
    return {await(done), text("bytes=%.0f", bytes)};
  };
}

// A delayed message cannot be taken back, but the clock's timeouts of requests can.
behavior canceller(event_based_actor *self, promise done) {
  return {[=](go_atom, long n) {
    auto &clock = self->system().clock();
    auto began = clock.now();
    std::minstd_rand random(42);
    std::vector<message_id> ids;
    for (long i = 1; i <= n; ++i) {
      ids.push_back(make_message_id(uint64_t(i)).response_id());
      clock.set_request_timeout(began + milliseconds(60000 + random() % 1001), self, ids.back());
    }
    for (auto id : ids) clock.cancel_request_timeout(self, id);
    done->set_value(long(ids.size()));
  }};
}

run timers_cancel(actor_system &system, long n) {
  auto done = make_promise();
  auto self = system.spawn(canceller, done);
  return [=]() -> result {
    anon_send(self, go_atom::value, n);
    return {await(done), ""};
  };
}

// --- a deep mailbox: the first message keeps its receiver until all the others are there

struct deep_state {
  long handled = 0;
};

behavior held(stateful_actor<deep_state> *self, std::shared_future<void> release, promise done) {
  return {
      [=](go_atom) { release.wait(); },
      [=](long left) {
        ++self->state.handled;
        if (left == 1) done->set_value(self->state.handled);
      },
  };
}

run deep(actor_system &system, long n) {
  auto done = make_promise();
  auto release = std::make_shared<std::promise<void>>();
  auto self = system.spawn(held, release->get_future().share(), done);
  return [=]() -> result {
    anon_send(self, go_atom::value);
    for (long left = n; left > 0; --left) anon_send(self, left);
    release->set_value();
    return {await(done), ""};
  };
}

// --- the program

const std::map<std::string, run (*)(actor_system &, long)> workloads{
    {"ping-pong", ping_pong<long>},
    {"ping-pong-table", ping_pong<ball>},
    {"tell-1000", tell<1, 1000>},
    {"tell-10000", tell<1, 10000>},
    {"fan-in", tell<10, 1000>},
    {"ring", ring},
    {"round-robin", round_robin},
    {"ask", ask<1, 1>},
    {"ask-1000", ask<1, 1000>},
    {"scatter", ask<3, 100>},
    {"ask-64", ask_with<64>},
    {"ask-16k", ask_with<16384>},
    {"ask-256k", ask_with<262144>},
    {"latency", latency},
    {"spawn", spawn_by_100},
    {"lives", all_live},
    {"idle", idle},
    {"restart", restart},
    {"timers-fire", timers_fire},
    {"timers-cancel", timers_cancel},
    {"deep", deep},
};

// Not warmed up, mostly because memory is measured.
const std::set<std::string> cold{"idle", "timers-fire", "latency"};

// By default workers steal from each other, and each turns first to the actor that was woken last;
// so two that keep each other awake keep all others waiting. With the other policy it is first
// come, first served. It is used where stealing is slower, or would never come to an end.
const std::set<std::string> in_order{"scatter", "lives", "latency"};

int measure(size_t workers, const std::string &name, long n) {
  auto workload = workloads.find(name);
  if (workload == workloads.end()) {
    fprintf(stderr, "%s: no such workload here (a mailbox has two priorities)\n", name.c_str());
    return 3;
  }
  actor_system_config config;
  config.set("scheduler.max-threads", workers);
  if (in_order.count(name) > 0) config.set("scheduler.policy", atom("sharing"));
  auto system = new actor_system(config); // its end would wait for that of all actors
  if (cold.count(name) == 0) workload->second(*system, std::min(n, 10000L))();
  auto run = workload->second(*system, n);
  auto began = now(), processor = processor_time();
  auto result = run();
  printf("handled=%ld seconds=%.6f cpu=%.6f %s\n", result.handled, now() - began,
         processor_time() - processor, result.more.c_str());
  fflush(stdout);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  int status = 0;
  for (int i = 2; i + 1 < argc && status == 0; i += 2)
    status = measure(size_t(atol(argv[1])), argv[i], atol(argv[i + 1]));
  _exit(status);
}
