// An arm of the bench: nact, on Bun.
//
//     bun build/peers/nact.mjs WORKLOAD SIZE [WORKLOAD SIZE ...]
//
// It is copied to where the package nact is installed, and run there. Actors are named, since names
// that nact makes up are random, and soon no longer different. Asks are nact's queries.

import { dispatch, query, spawn, start, stop } from "nact";

const TIMEOUT_MS = 5000;

let names = 0;
const actor = (parent, receive, properties) => spawn(parent, receive, `${++names}`, properties);

const times = (n, make) => Array.from({ length: n }, (_, i) => make(i + 1));

/** A promise with its resolve function. */
function deferred() {
  let resolve;
  const promise = new Promise((done) => { resolve = done; });
  return { promise, resolve };
}

// Workloads: each is given a system and n, and makes ready the function that is measured. That one
// gives how many were handled, or an object with `handled` and more figures.

const workloads = {};

/** Two actors answer with what next makes of a message, until that is nothing. */
const pingPong = (first, next) => (system, n) => {
  let handled = 0;
  const over = deferred();
  const player = (other) => actor(system, (_, message) => {
    handled++;
    const answer = next(message);
    if (answer) dispatch(other(), answer);
    else over.resolve();
  });
  const ping = player(() => pong);
  const pong = player(() => ping);
  return async () => {
    dispatch(ping, first(n));
    await over.promise;
    return handled;
  };
};

workloads["ping-pong"] = pingPong((n) => n, (left) => left > 1 && left - 1);
workloads["ping-pong-table"] = pingPong((n) => ({ left: n }),
  ({ left }) => left > 1 && { left: left - 1 });

/** An actor whose state is how many numbers it was told; it tells who asks anything else. */
const counter = (system) => actor(system, (count = 0, message) => {
  if (typeof message === "number") return count + 1;
  dispatch(message.sender, count);
  return count;
});

async function tell(target, n, size) {
  let count;
  for (let left = n; left > 0; left -= size) {
    const batch = Math.min(left, size);
    for (let i = 1; i <= batch; i++) dispatch(target, i);
    count = await query(target, (sender) => ({ sender }), TIMEOUT_MS);
  }
  return count;
}

const tellBy = (size) => (system, n) => {
  const target = counter(system);
  return () => tell(target, n, size);
};

workloads["tell-1000"] = tellBy(1000);
workloads["tell-10000"] = tellBy(10000);

workloads["fan-in"] = (system, n) => {
  const target = counter(system);
  const over = deferred();
  let counts = [];
  const producers = times(10, () => actor(system, async (_, share) => {
    counts.push(await tell(target, share, 1000));
    if (counts.length === 10) over.resolve(Math.max(...counts));
  }));
  return () => {
    for (const producer of producers) dispatch(producer, n / 10);
    return over.promise;
  };
};

workloads["ring"] = (system, n) => {
  let handled = 0;
  const over = deferred();
  const ring = times(1000, (i) => actor(system, (_, left) => {
    handled++;
    if (left > 1) dispatch(ring[i % 1000], left - 1);
    else over.resolve();
  }));
  return async () => {
    dispatch(ring[0], n);
    await over.promise;
    return handled;
  };
};

// nact has no router: an actor forwards.
workloads["round-robin"] = (system, n) => {
  let handled = 0;
  const over = deferred();
  const workers = times(8, () => actor(system, (count = 0) => {
    handled++;
    if (count + 1 < 125) return count + 1;
    dispatch(producer, "done");
    return 0;
  }));
  const router = actor(system, (turn = 0, message) => {
    dispatch(workers[turn], message);
    return (turn + 1) % 8;
  });
  const produce = (left) => {
    for (let i = 1; i <= 1000; i++) dispatch(router, i);
    return { left: left - 1000, busy: 8 };
  };
  const producer = actor(system, (state, message) => {
    if (message !== "done") return produce(message);
    const { left, busy } = state;
    if (busy > 1) return { left, busy: busy - 1 };
    if (left > 0) return produce(left);
    over.resolve();
  });
  return async () => {
    dispatch(producer, n);
    await over.promise;
    return handled;
  };
};

// Asking

const server = (system) => actor(system, (_, { question, sender }) => {
  dispatch(sender, typeof question === "string" ? question.length : question);
});

const ask = (target, question, timeout) =>
  query(target, (sender) => ({ question, sender }), timeout);

/** So many callers ask n times in all; gives how many times the answer was right. */
async function askBy(callers, n, isRight) {
  let right = 0;
  await Promise.all(times(callers, async (first) => {
    for (let i = first; i <= n; i += callers) {
      if (await isRight(i)) right++;
    }
  }));
  return right;
}

const asks = (callers) => (system, n) => {
  const target = server(system);
  return () => askBy(callers, n, async (i) => await ask(target, i, TIMEOUT_MS) === i);
};

workloads["ask"] = asks(1);
workloads["ask-1000"] = asks(1000);

workloads["scatter"] = (system, n) => {
  const replicas = times(3, () => server(system));
  const first = (i) => Promise.any(replicas.map((replica) => ask(replica, i, 250)));
  return () => askBy(100, n, async (i) => await first(i).catch(() => undefined) === i);
};

const askWith = (bytes) => (system, n) => {
  const target = server(system);
  const text = "x".repeat(bytes);
  return () => askBy(1, n, async () => await ask(target, text, TIMEOUT_MS) === bytes);
};

workloads["ask-64"] = askWith(64);
workloads["ask-16k"] = askWith(16384);
workloads["ask-256k"] = askWith(262144);

workloads["latency"] = (system, n) => {
  const target = server(system);
  let busy = true;
  for (let i = 0; i < 500; i++) {
    const player = (other) => actor(system, (_, count) => {
      if (busy) dispatch(other(), count + 1);
    });
    const ping = player(() => pong);
    const pong = player(() => ping);
    dispatch(ping, i);
  }
  return async () => {
    const took = [];
    for (let i = 1; i <= n; i++) {
      const began = performance.now();
      if (await ask(target, i, TIMEOUT_MS) === i) took.push(performance.now() - began);
    }
    busy = false;
    took.sort((a, b) => a - b);
    const quantile = (q) => took[Math.max(0, Math.floor(took.length * q) - 1)] * 1000;
    return {
      handled: took.length, p50: quantile(0.5), p99: quantile(0.99), p999: quantile(0.999),
    };
  };
};

// Lives. stop() throws away what waits in the mailbox, so actors are told to stop, and do it.

function mortals(system) {
  const counts = { handled: 0, stopped: 0 };
  let wanted = 0;
  let reached = deferred();
  const count = (what) => {
    counts[what]++;
    if (counts[what] === wanted) reached.resolve();
  };
  const receive = (_, message, { self }) => {
    if (message === "stop") stop(self);
    else count("handled");
  };
  const properties = { afterStop: () => count("stopped") };
  return {
    counts,
    spawn: () => actor(system, receive, properties),
    /** Does what is given, and waits until n more are counted. */
    async until(what, n, action) {
      wanted = counts[what] + n;
      reached = deferred();
      action();
      await reached.promise;
    },
  };
}

const lives = (size) => (system, n) => {
  const { counts, spawn, until } = mortals(system);
  return async () => {
    for (let left = n; left > 0; left -= size) {
      const batch = Math.min(left, size);
      await until("stopped", batch, () => {
        const actors = times(batch, spawn);
        for (const one of actors) dispatch(one, 1);
        for (const one of actors) dispatch(one, "stop");
      });
    }
    return counts.handled;
  };
};

workloads["spawn"] = lives(100);
workloads["lives"] = lives(Infinity);

workloads["idle"] = (system, n) => {
  const { counts, spawn, until } = mortals(system);
  return async () => {
    const empty = process.memoryUsage().rss;
    const bytes = () => (process.memoryUsage().rss - empty) / n;
    const perSecond = async (action) => {
      const began = performance.now();
      await action();
      return n * 1000 / (performance.now() - began);
    };
    const send = (message) => () => { for (const one of actors) dispatch(one, message); };
    let actors;
    const spawn_rate = await perSecond(() => { actors = times(n, spawn); });
    const idle = bytes();
    const tell_rate = await perSecond(() => until("handled", n, send(1)));
    const bytes_after = bytes();
    const stop_rate = await perSecond(() => until("stopped", n, send("stop")));
    return { handled: counts.handled, bytes: idle, bytes_after, spawn_rate, tell_rate, stop_rate };
  };
};

workloads["restart"] = (system, n) => {
  let starts = 0;
  const supervisor = actor(system, () => {});
  const child = actor(supervisor, (_, message) => {
    if (message === "fail") throw new Error("failed on purpose");
    dispatch(message.sender, "pong");
  }, { initialStateFunc: () => { starts++; }, onCrash: (_message, _error, ctx) => ctx.reset });
  return async () => {
    for (let i = 0; i < n; i++) {
      dispatch(child, "fail");
      await query(child, (sender) => ({ sender }), TIMEOUT_MS);
    }
    return starts - 1;
  };
};

// Timers: nact has none of its own, so Bun's.

/** Milliseconds up to 1,000, the same in each run. */
function delays() {
  let seed = 42;
  return () => {
    seed = seed * 48271 % 2147483647;
    return seed % 1001;
  };
}

workloads["timers-fire"] = (_system, n) => () => {
  const over = deferred();
  let fired = 0;
  const fire = () => { if (++fired === n) over.resolve(); };
  const delay = delays();
  const empty = process.memoryUsage().rss;
  for (let i = 0; i < n; i++) setTimeout(fire, delay());
  const bytes = (process.memoryUsage().rss - empty) / n;
  return over.promise.then(() => ({ handled: fired, bytes }));
};

workloads["timers-cancel"] = (_system, n) => () => {
  const delay = delays();
  const timers = times(n, () => setTimeout(() => {}, 60000 + delay()));
  let cancelled = 0;
  for (const timer of timers) {
    clearTimeout(timer);
    cancelled++;
  }
  return cancelled;
};

// Nothing is handled before the event loop gets its turn.
workloads["deep"] = (system, n) => {
  const over = deferred();
  const target = actor(system, (count = 0) => {
    if (count + 1 === n) over.resolve(n);
    return count + 1;
  });
  return () => {
    for (let i = 1; i <= n; i++) dispatch(target, i);
    return over.promise;
  };
};

// The program

// Not warmed up, mostly because memory is measured.
const cold = ["idle", "timers-fire", "latency"];

async function once(name, n) {
  const system = start();
  const run = workloads[name](system, n);
  Bun.gc(true);
  const cpu = process.cpuUsage();
  const began = performance.now();
  const result = await run();
  const seconds = (performance.now() - began) / 1000;
  const { user, system: kernel } = process.cpuUsage(cpu);
  stop(system);
  const { handled, ...more } = typeof result === "number" ? { handled: result } : result;
  return { handled, seconds, cpu: (user + kernel) / 1e6, ...more };
}

const words = process.argv.slice(2);
for (let i = 0; i < words.length; i += 2) {
  const [name, n] = [words[i], Number(words[i + 1])];
  if (!workloads[name]) {
    console.error(`${name}: no such workload here`);
    process.exit(3);
  }
  if (!cold.includes(name)) await once(name, Math.min(n, 10000));
  const figures = Object.entries(await once(name, n));
  const digits = { handled: 0, seconds: 6, cpu: 6 };
  console.log(figures.map(([key, value]) => `${key}=${value.toFixed(digits[key] ?? 1)}`).join(" "));
}
process.exit(0);
