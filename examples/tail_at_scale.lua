--- The tail at scale: what hedged requests buy, and what they cost.
--
--     make run FILE=examples/tail_at_scale.lua [ARGS="REQUESTS [SEED]"]
--
-- After J. Dean and L. A. Barroso, "The Tail at Scale", Communications of the ACM 56(2), 2013.
--
-- Any of three replicas can answer a request. Mostly they are fast. But now and then one of them is
-- busy with something else, and requests wait for it; and a few requests are slow by themselves.
-- REQUESTS (or 20,000) go to such replicas, at the same moments by one router after another. Then
-- there are actions, a tenth as many, that ask a hundred such pools and need an answer of each.
--
-- Time is that of the test kit: virtual. So minutes pass in seconds, and a SEED gives the same
-- figures each time. In a program it is real: that takes `troupe.system` in place of the kit, and
-- replicas that do something instead of sleeping.
--
-- Exit code: 0 done; 1 a request failed; 2 wrong usage.

local troupe = require "troupe"
local testkit = require "troupe.testkit"
local Router = troupe.Router

local USAGE = "usage: lua5.4 tail_at_scale.lua [REQUESTS [SEED]], REQUESTS from 1000 to 1000000"
local REPLICAS = 3
local GAP_MS = 10                 -- between two requests to a pool, on average
local FASTEST_MS, FAST_MS = 1, 2  -- what a request takes: at least, and on average
local SLOW_ONES, SLOW_MS = 1 / 500, 50
local BUSY_EVERY_MS, BUSY_FROM_MS, BUSY_TO_MS = 3000, 40, 120  -- a replica, with something else
local LEAVES = 100                -- pools that an action asks

local function printf(...) print(string.format(...)) end

local function quit(exit_code, message)
  io.stderr:write(message, "\n")
  os.exit(exit_code, true)
end

-- Replicas ----------------------------------------------------------------------------------------

-- Chance comes from the system, and so from its seed.
local function exponential(system, mean) return -mean * math.log(1 - system:random()) end

local function draw_work_ms(system)
  if system:random() < SLOW_ONES then return SLOW_MS end
  return FASTEST_MS + exponential(system, FAST_MS - FASTEST_MS)
end

-- Works, then answers. With `cancel_losers` the work ends early when another has answered.
local function answer_when_done(actor, ms)
  local _, cancelled = troupe.sleep(ms)
  if not cancelled then actor:reply(ms) end
end

-- Answers as soon as it begins, with a task to wait for. Where the same request still waits, it is
-- withdrawn then: whoever begins first cancels the others. The paper calls such requests tied.
local function answer_when_begun(actor, ms)
  local work = actor.system:go(function()
    troupe.sleep(ms)
    return ms
  end)
  actor:reply(work)
  work:await()
end

-- An actor handles one message at a time, so the others wait, as in the queue of a server.
local function replica(run)
  local answer = run.tied and answer_when_begun or answer_when_done
  return {
    pre_start = function(actor)
      local system, at = actor.system, 0
      repeat
        at = at + exponential(system, BUSY_EVERY_MS)
        local ms = BUSY_FROM_MS + (BUSY_TO_MS - BUSY_FROM_MS) * system:random()
        actor.timers:start_single(at, { busy_ms = ms }, at)
      until at > run.end_ms
    end,

    receive = function(actor, message)
      if message.busy_ms then return troupe.sleep(message.busy_ms) end
      local began = actor.system:now()
      answer(actor, draw_work_ms(actor.system))
      run.worked_ms = run.worked_ms + actor.system:now() - began
    end,
  }
end

-- Pools -------------------------------------------------------------------------------------------

local function one(of) return Router.round_robin(REPLICAS, of) end

local function hedged(options)
  return function(of) return Router.hedged(REPLICAS, of, options) end
end

local function all(options)
  return function(of) return Router.scatter_gather_first_completed(REPLICAS, of, options) end
end

-- A pool of pools, which answers with the list of all their answers.
local function fan_out(pool)
  return function(of) return Router.scatter_gather(LEAVES, pool(of)) end
end

-- A request that has waited for 1 ms may be sent again, and once more: up to 200 % extra.
local soon = { delay_ms = 1, cancel_losers = true, max_extra_load = REPLICAS - 1 }

local request_runs = {
  { title = "one replica", pool = one },
  { title = "hedged at p95", pool = hedged { percentile = 0.95 } },
  { title = "hedged at p95, cancelling",
    pool = hedged { percentile = 0.95, cancel_losers = true } },
  { title = "hedged after 10 ms", pool = hedged { delay_ms = 10 } },
  { title = "hedged after 1 ms, cancelling", pool = hedged(soon) },
  { title = "tied after 1 ms", pool = hedged(soon), tied = true },
  { title = "all replicas", pool = all(), copies = REPLICAS },
  { title = "all replicas, cancelling", pool = all { cancel_losers = true }, copies = REPLICAS },
}

local action_runs = {
  { title = "one replica of each", pool = fan_out(one), leaves = LEAVES },
  { title = "hedged after 10 ms, cancelling", leaves = LEAVES,
    pool = fan_out(hedged { delay_ms = 10, cancel_losers = true }) },
}

-- Measurement -------------------------------------------------------------------------------------

local function ask(system, run)
  local start = system:now()
  local answer, err = run.ref:ask {}
  if not err and run.tied then answer, err = answer:await() end
  if err then
    run.failure = err
    return
  end
  table.insert(run.latencies, system:now() - start)
  local answers = run.leaves and answer or { { value = answer } }
  for _, reply in ipairs(answers) do run.useful_ms = run.useful_ms + reply.value end
end

local function hedges_sent(system)
  return tonumber(system.metrics:render():match('router_hedges_total{outcome="sent"} (%d+)'))
end

-- Asks `count` times, whether earlier ones have been answered or not, and waits until all is done.
-- What is drawn before time goes on, when requests come and replicas are busy, is always the same.
local function measure(run, count, seed)
  local system <close> = testkit.system("scale", { seed = seed, metrics = true }).system
  local at = 0
  for _ = 1, count do
    at = at + exponential(system, GAP_MS)
    system:schedule_once(at, function() ask(system, run) end)
  end
  run.end_ms, run.latencies, run.useful_ms, run.worked_ms = at, {}, 0, 0
  run.ref = system:spawn(run.pool(replica(run)))
  system:run()
  if run.failure then quit(1, ("%s: %s"):format(run.title, run.failure)) end
  table.sort(run.latencies)
  run.extra = hedges_sent(system) / (count * (run.leaves or 1)) + (run.copies or 1) - 1
  run.wasted = 1 - run.useful_ms / run.worked_ms
end

-- Report ------------------------------------------------------------------------------------------

-- By nearest rank: the least latency that this share of them did not exceed.
local function percentile(run, share) return run.latencies[math.ceil(share * #run.latencies)] end

local function share_above(run, ms)
  local count = 0
  for _, latency in ipairs(run.latencies) do count = count + (latency > ms and 1 or 0) end
  return count / #run.latencies
end

local function report(title, runs, count, seed)
  printf("%-31s%8s%8s%8s%8s%9s%8s", title, "p50", "p90", "p99", "p99.9", "extra", "wasted")
  for _, run in ipairs(runs) do
    measure(run, count, seed)
    printf("%-31s%8.1f%8.1f%8.1f%8.1f%7.1f %%%6.1f %%", run.title, percentile(run, 0.5),
      percentile(run, 0.9), percentile(run, 0.99), percentile(run, 0.999), 100 * run.extra,
      100 * run.wasted)
  end
end

local requests = math.tointeger(tonumber(arg[1] or 20000))
local seed = math.tointeger(tonumber(arg[2] or 1))
if arg[3] or not seed or not requests or requests < 1000 or requests > 1000000 then
  quit(2, USAGE)
end

print("Times in ms. Extra: copies, per request. Wasted: share of the time that replicas worked.\n")
report("a request", request_runs, requests, seed)
print()
report(("an action: %d requests"):format(LEAVES), action_runs, requests // 10, seed)

local slow_ms = percentile(request_runs[1], 0.99)
printf("\nOf one replica's requests 1 %% take longer than %.1f ms, and %.1f %% of such actions.",
  slow_ms, 100 * share_above(action_runs[1], slow_ms))
printf("Hedged, %.1f %% of the actions do.", 100 * share_above(action_runs[2], slow_ms))
