--- What a system counts, and how it is shown to Prometheus.
local troupe = require "troupe"
local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"
local read_samples = require "spec.support.samples"
local testkit = require "troupe.testkit"

local Router = troupe.Router

local function ignore() end

describe("metrics", function()
  local each_kit = new_kit.each(before_each, after_each)

  --- The test's kit, whose system counts.
  local function kit(options)
    options = options or {}
    options.metrics = true
    return each_kit(options)
  end

  local function samples() return read_samples.read(kit().system.metrics:render()) end

  --- What has changed of all that the system counts, since the call, as a table when called.
  local function changes()
    local before = samples()
    return function()
      local changed = {}
      for series, value in next, samples() do
        local difference = value - before[series]
        if difference ~= 0 then changed[series] = difference end
      end
      return changed
    end
  end

  local function spawn(...)
    local ref = kit().system:spawn(...)
    kit():settle()
    return ref
  end

  local function tell(ref, ...)
    for _, message in ipairs { ... } do ref:tell(message) end
    kit():settle()
  end

  it("MET-1 are off by default", function()
    local plain = each_kit()

    local text = raised_here(function() return plain.system.metrics end)

    assert.matches("system.metrics: there are none; make the system with metrics = true", text,
      1, true)
  end)

  it("MET-1 are off when they are said to be", function()
    local plain = each_kit { metrics = false }

    assert.has.errors(function() return plain.system.metrics end)
  end)

  it("MET-1 takes no other value for the option", function()
    for _, wrong in ipairs { 1, "true", {} } do
      local text = raised_here(function() testkit.system("demo", { metrics = wrong }) end)

      assert.matches("system: metrics must be a boolean", text, 1, true)
    end
  end)

  it("MET-1 are the same object each time", function()
    assert.are.equal(kit().system.metrics, kit().system.metrics)
  end)

  it("MET-1 are there for real time too, and in handlers", function()
    local system <close> = troupe.system("demo", { metrics = true })

    local text = system:spawn(function(actor) actor:reply(actor.system.metrics:render()) end)
      :ask("render")

    assert.are.equal(1, read_samples.read(text).actor_messages_delivered_total)
  end)

  it("MET-1 can be shown when the system has terminated", function()
    spawn(ignore)
    kit().system:terminate()

    assert.are.equal(1, samples().actor_terminated_total)
  end)

  it("MET-2 are all there from the start, at 0, in one order", function()
    local families, labelled = {}, {}
    for line in kit().system.metrics:render():gmatch("[^\n]+") do
      local name, kind = line:match("^# TYPE (%S+) (%S+)$")
      if name then families[#families + 1] = name .. " " .. kind end
      local series, value = line:match("^([%l_]+{%l+=\"[%l_-]+\"}) (.+)$")
      if series then labelled[#labelled + 1] = series end
      if value then assert.are.equal("0", value) end
    end

    assert.are.same({
      "actor_created_total counter",
      "actor_restarted_total counter",
      "actor_terminated_total counter",
      "actor_messages_delivered_total counter",
      "actor_message_handler_seconds histogram",
      "actor_mailbox_depth gauge",
      "actor_mailbox_dropped_total counter",
      "dead_letters_total counter",
      "router_routed_total counter",
      "router_scatter_gather_resolved_total counter",
      "router_scatter_gather_latency_seconds histogram",
      "router_hedges_total counter",
    }, families)
    assert.are.same({
      'actor_mailbox_dropped_total{reason="drop-head"}',
      'actor_mailbox_dropped_total{reason="drop-lowest"}',
      'actor_mailbox_dropped_total{reason="drop-new"}',
      'actor_mailbox_dropped_total{reason="reject"}',
      'dead_letters_total{reason="mailbox-full"}',
      'dead_letters_total{reason="no-routees"}',
      'dead_letters_total{reason="out-of-memory"}',
      'dead_letters_total{reason="restarted"}',
      'dead_letters_total{reason="stopped"}',
      'dead_letters_total{reason="strategy-error"}',
      'dead_letters_total{reason="system-terminated"}',
      'dead_letters_total{reason="unresolved"}',
    }, table.move(labelled, 1, 12, 1, {}))
    for series, value in next, samples() do assert.are.equal(0, value, series) end
  end)

  it("MET-2 have outcomes of scatters and of hedges", function()
    local text = kit().system.metrics:render()

    assert.are.same({
      "# HELP router_scatter_gather_resolved_total Scatters that have ended, by outcome.",
      "# TYPE router_scatter_gather_resolved_total counter",
      'router_scatter_gather_resolved_total{outcome="all-failed"} 0',
      'router_scatter_gather_resolved_total{outcome="enough"} 0',
      'router_scatter_gather_resolved_total{outcome="first"} 0',
      'router_scatter_gather_resolved_total{outcome="no-reply-target"} 0',
      'router_scatter_gather_resolved_total{outcome="stopped"} 0',
      'router_scatter_gather_resolved_total{outcome="timeout"} 0',
    }, read_samples.lines(text, "router_scatter_gather_resolved_total"))
    assert.are.same({
      'router_hedges_total{outcome="refused"} 0',
      'router_hedges_total{outcome="sent"} 0',
      'router_hedges_total{outcome="won"} 0',
    }, table.move(read_samples.lines(text, "router_hedges_total"), 3, 5, 1, {}))
  end)

  it("MET-2 have a strategy for each factory of routers", function()
    local all = samples()

    for factory in next, Router do
      if factory ~= "group" then -- which is told what its strategy is
        assert.are.equal(0, all[('router_routed_total{strategy="%s"}'):format(factory)], factory)
      end
    end
  end)

  it("MET-2 counts actors that were spawned, and not the guardians", function()
    local changed = changes()
    spawn(function(actor) actor:spawn(ignore) end):tell("spawn")
    kit():settle()
    spawn(Router.random(3, ignore))

    assert.are.equal(6, changed().actor_created_total)
  end)

  it("MET-2 counts no spawn that was refused", function()
    spawn(ignore, "name")
    local changed = changes()

    pcall(kit().system.spawn, kit().system, ignore, "name")
    kit():settle()

    assert.is_nil(changed().actor_created_total)
  end)

  it("MET-2 counts actors that have stopped, with what is below them", function()
    local parent = spawn { pre_start = function(actor) actor:spawn(ignore) end, receive = ignore }
    local changed = changes()

    parent:stop()
    kit():settle()

    assert.are.same({ actor_terminated_total = 2 }, changed())
  end)

  it("MET-2 counts the actors that the end of the system stops, and not the guardians", function()
    spawn(ignore)
    spawn(ignore)
    local changed = changes()

    kit().system:terminate()

    assert.are.same({ actor_terminated_total = 2 }, changed())
  end)

  it("MET-2 counts restarts, those of siblings too", function()
    local parent = {
      supervisor_strategy = troupe.all_for_one {},
      pre_start = function(actor)
        actor:spawn(ignore)
        actor:spawn(function() error("a failure") end, "fails")
      end,
      receive = function(actor) actor:child("fails"):tell("fail") end,
    }
    local ref = spawn(parent)
    local changed = changes()

    tell(ref, "fail")

    assert.are.equal(2, changed().actor_restarted_total)
  end)

  it("MET-2 counts no restart for a failure that is resumed, or stops the actor", function()
    local function fail() error("a failure") end
    local resumes = spawn(fail, nil,
      { supervisor_strategy = troupe.one_for_one { decider = "resume" } })
    local stops = spawn(fail, nil, { supervisor_strategy = troupe.stopping_strategy })
    local changed = changes()

    tell(resumes, "fail")
    tell(stops, "fail")

    assert.is_nil(changed().actor_restarted_total)
    assert.are.equal(1, changed().actor_terminated_total)
  end)

  it("MET-2 counts a message when its handler begins", function()
    local ref = spawn(function() troupe.sleep(10) end)
    local changed = changes()

    tell(ref, "first", "second")
    assert.are.equal(1, changed().actor_messages_delivered_total)
    assert.is_nil(changed().actor_message_handler_seconds_count)

    kit():advance(10)
    assert.are.equal(2, changed().actor_messages_delivered_total)
    assert.are.equal(1, changed().actor_message_handler_seconds_count)
  end)

  it("MET-2 counts what handlers get: timers, death notices and receive timeouts too", function()
    local other = spawn(ignore)
    local handled = 0
    local ref = spawn {
      pre_start = function(actor)
        actor:watch(other)
        actor.timers:start_single("key", "tick", 5)
        actor:set_receive_timeout(20)
      end,
      receive = function(actor, message)
        handled = handled + 1
        if message == troupe.ReceiveTimeout then actor:set_receive_timeout(nil) end
      end,
    }
    local changed = changes()

    tell(ref, "mail")
    other:stop()
    kit():advance(30)

    assert.are.equal(4, handled)
    assert.are.equal(4, changed().actor_messages_delivered_total)
  end)

  it("MET-2 counts no signal, no hook and no task as a message", function()
    local ref = spawn { pre_start = ignore, receive = ignore, post_stop = ignore }
    local changed = changes()

    tell(ref, troupe.Kill)
    tell(ref, troupe.PoisonPill)
    kit():async(ignore)
    kit().system:schedule_once(1, ignore)
    kit():advance(1)

    assert.are.same({ actor_restarted_total = 1, actor_terminated_total = 1 }, changed())
  end)

  it("MET-2 counts a message once more when it comes back from the stash", function()
    local stashed = false
    local ref = spawn(function(actor, message)
      if message == "open" then
        actor:unstash_all()
      elseif not stashed then
        stashed = true
        actor:stash()
      end
    end)
    local changed = changes()

    tell(ref, "early", "open")

    assert.are.equal(3, changed().actor_messages_delivered_total)
  end)

  it("MET-2 counts a message of a pool where a routee handles it, and not at the router", function()
    local pool = spawn(Router.broadcast(3, ignore))
    local changed = changes()

    tell(pool, "mail")

    assert.are.equal(3, changed().actor_messages_delivered_total)
  end)

  it("MET-2 measures a handler to its end, waits included", function()
    local ref = spawn(function(_, ms) troupe.sleep(ms) end)
    local changed = changes()

    tell(ref, 250, 2000)
    kit():advance(3000)

    local change = changed()
    assert.are.equal(2, change.actor_message_handler_seconds_count)
    assert.are.equal(2.25, change.actor_message_handler_seconds_sum)
    assert.is_nil(change['actor_message_handler_seconds_bucket{le="0.1"}'])
    assert.are.equal(1, change['actor_message_handler_seconds_bucket{le="0.25"}'])
    assert.are.equal(1, change['actor_message_handler_seconds_bucket{le="1"}'])
    assert.are.equal(2, change['actor_message_handler_seconds_bucket{le="2.5"}'])
    assert.are.equal(2, change['actor_message_handler_seconds_bucket{le="+Inf"}'])
  end)

  it("MET-2 counts what takes exactly as long as a bound says below it", function()
    local ref = spawn(function(_, ms) troupe.sleep(ms) end)
    local changed = changes()

    tell(ref, 0.1)
    kit():advance(1)
    assert.are.equal(1, changed()['actor_message_handler_seconds_bucket{le="0.0001"}'])

    tell(ref, 0.100001, 10000.001)
    kit():advance(20000)
    local change = changed()
    assert.are.equal(1, change['actor_message_handler_seconds_bucket{le="0.0001"}'])
    assert.are.equal(2, change['actor_message_handler_seconds_bucket{le="10"}'])
    assert.are.equal(3, change['actor_message_handler_seconds_bucket{le="+Inf"}'])
  end)

  it("MET-2 measures handlers that end at a wait, because their request is cancelled", function()
    local pool = spawn(Router.scatter_gather_first_completed(2, function(actor, message)
      troupe.sleep(10)
      if actor.name == "routee-1" then actor:reply(message) end
      troupe.sleep(10)
    end, { cancel_losers = true }))
    local changed = changes()

    pool:ask("k")
    kit():advance(10)

    assert.are.equal(2, changed().actor_messages_delivered_total)
    assert.are.equal(2, changed().actor_message_handler_seconds_count)
  end)

  it("MET-2 measures handlers that raise, at once and after a wait", function()
    local ref = spawn(function(_, ms)
      if ms > 0 then troupe.sleep(ms) end
      error("a failure")
    end)
    local changed = changes()

    tell(ref, 0, 500)
    kit():advance(1000)

    assert.are.equal(2, changed().actor_message_handler_seconds_count)
    assert.are.equal(0.5, changed().actor_message_handler_seconds_sum)
  end)

  it("MET-2 measures a handler that is closed while it waits to that moment", function()
    local ref = spawn(function() troupe.sleep(60000) end)
    local changed = changes()

    tell(ref, "mail")
    kit():advance(500)
    ref:kill()
    kit():settle()

    assert.are.equal(1, changed().actor_message_handler_seconds_count)
    assert.are.equal(0.5, changed().actor_message_handler_seconds_sum)
  end)

  it("MET-2 measures no hook, no task and no coroutine of the user's own", function()
    local ref = spawn { pre_start = function() troupe.sleep(10) end, receive = ignore }
    local changed = changes()
    kit():advance(20)

    kit():async(function() troupe.sleep(10) end)
    kit():async(function() error("a failure") end)
    coroutine.wrap(function() ref:ask("mail", 10) end)()
    coroutine.wrap(function()
      ref:ask("mail", 10)
      error("a failure")
    end)()
    kit():advance(20)

    assert.are.equal(2, changed().actor_messages_delivered_total)
    assert.are.equal(2, changed().actor_message_handler_seconds_count)
    assert.is_nil(changed().actor_message_handler_seconds_sum)
  end)

  it("MET-2 measures on the machine's clock in real time", function()
    local system <close> = troupe.system("demo", { metrics = true })
    local spun_ms = 3
    system:spawn(function(actor)
      local begin = os.clock()
      repeat until os.clock() - begin >= spun_ms / 1000
      actor:reply("done")
    end):ask("spin")
    system:run()

    local all = read_samples.read(system.metrics:render())
    assert.are.equal(1, all.actor_message_handler_seconds_count)
    assert.is_true(all.actor_message_handler_seconds_sum >= spun_ms / 2000)
  end)

  it("MET-2 shows how many messages wait in mailboxes", function()
    local busy = spawn(function() troupe.sleep(10) end)
    local other = spawn(function() troupe.sleep(10) end)

    tell(busy, 1, 2, 3)
    tell(other, 1, 2)
    assert.are.equal(3, samples().actor_mailbox_depth)

    kit():advance(10)
    assert.are.equal(1, samples().actor_mailbox_depth)
  end)

  it("MET-2 counts what full mailboxes shed or refuse, by policy", function()
    local function rank(message) return message end
    local mailboxes = {
      { capacity = 1, overflow = "drop-head" },
      { capacity = 2, overflow = "drop-new" },
      { capacity = 3, overflow = "reject" },
      { capacity = 4, overflow = "drop-lowest", priority = rank },
    }
    local changed = changes()

    for _, mailbox in ipairs(mailboxes) do
      local ref = kit().system:spawn(ignore, nil, { mailbox = mailbox })
      for i = 1, 5 do ref:tell(i) end
    end

    local change = changed()
    assert.are.equal(4, change['actor_mailbox_dropped_total{reason="drop-head"}'])
    assert.are.equal(3, change['actor_mailbox_dropped_total{reason="drop-new"}'])
    assert.are.equal(2, change['actor_mailbox_dropped_total{reason="reject"}'])
    assert.are.equal(1, change['actor_mailbox_dropped_total{reason="drop-lowest"}'])
  end)

  it("MET-2 counts dead letters by their reason, whether anybody looks at them or not", function()
    kit { log_level = "off" }
    local dead = spawn(ignore)
    dead:stop()
    local full = spawn(Router.round_robin(1, function() troupe.sleep(10) end,
      { mailbox = { capacity = 1, overflow = "reject" } }))
    local deserted = spawn(Router.round_robin(1, function(actor) actor:stop() end))
    tell(deserted, "leave")
    local lost = spawn(Router.custom(1, ignore, function() error("a failure") end))
    local fails = spawn(function(actor, message)
      if message == "fail" then error("a failure") end
      actor:stash()
    end)
    local changed = changes()

    tell(dead, 1, 2)
    tell(full, 1)
    tell(full, 2, 3, 4, 5)
    tell(deserted, 1, 2, 3, 4)
    tell(lost, 1, 2, 3, 4, 5)
    tell(fails, 1, 2, 3, 4, 5, 6, "fail")
    for _ = 1, 7 do kit().system:actor_selection("/user/nobody"):tell("mail") end
    kit():advance(20)

    local change = changed()
    assert.are.equal(2, change['dead_letters_total{reason="stopped"}'])
    assert.are.equal(3, change['dead_letters_total{reason="mailbox-full"}'])
    assert.are.equal(4, change['dead_letters_total{reason="no-routees"}'])
    assert.are.equal(5, change['dead_letters_total{reason="strategy-error"}'])
    assert.are.equal(6, change['dead_letters_total{reason="restarted"}'])
    assert.are.equal(7, change['dead_letters_total{reason="unresolved"}'])
  end)

  it("MET-2 counts the dead letters of a system that has terminated", function()
    local ref = spawn(ignore)
    kit().system:terminate()

    ref:tell("late")
    ref:tell("late")

    assert.are.equal(2, samples()['dead_letters_total{reason="system-terminated"}'])
  end)

  it("MET-2 counts no dead letter for what is none", function()
    local dead = spawn(ignore)
    dead:stop()
    kit():settle()
    kit().system.events:subscribe(dead, "dead_letter")
    local changed = changes()

    tell(dead, "mail")
    kit():async(function() dead:ask("mail") end)

    assert.are.same({ ['dead_letters_total{reason="stopped"}'] = 1 }, changed())
  end)

  it("MET-2 counts each message that a router takes up once, by its factory", function()
    local function first(routees) return routees[1] end
    local function reply(actor, message) actor:reply(message) end
    local routers = {
      Router.round_robin(2, ignore),
      Router.random(2, ignore),
      Router.broadcast(2, ignore),
      Router.smallest_mailbox(2, ignore),
      Router.custom(2, ignore, first),
      Router.consistent_hashing(2, ignore, { hash_key = tostring }),
    }
    local names = {
      "round_robin", "random", "broadcast", "smallest_mailbox", "custom", "consistent_hashing",
    }
    local scatter = spawn(Router.scatter_gather_first_completed(2, reply))
    local changed = changes()

    for i, router in ipairs(routers) do
      local ref = spawn(router)
      for _ = 1, i do tell(ref, "mail") end
    end
    for _ = 1, 6 do scatter:ask("mail") end

    local change = changed()
    for i, name in ipairs(names) do
      assert.are.equal(i, change[('router_routed_total{strategy="%s"}'):format(name)])
    end
    assert.are.equal(6,
      change['router_routed_total{strategy="scatter_gather_first_completed"}'])
  end)

  it("MET-2 counts a message at a router also when it is wrapped, or nobody gets it", function()
    local series = 'router_routed_total{strategy="round_robin"}'
    local pool = spawn(Router.round_robin(2, function(actor) actor:stop() end))
    local changed = changes()

    tell(pool, troupe.Broadcast("leave"))
    assert.are.equal(1, changed()[series])

    tell(pool, "nobody", "nobody")
    assert.are.equal(3, changed()[series])
  end)

  it("MET-2 counts a message at a group by the strategy of the group", function()
    local members = { spawn(ignore, "a"), spawn(ignore, "b") }
    local group = spawn(Router.group("smallest_mailbox", members))
    local own = spawn(Router.group(function(routees) return routees[1] end, members))
    local changed = changes()

    tell(group, 1, 2)
    tell(own, 1)

    assert.are.equal(2, changed()['router_routed_total{strategy="smallest_mailbox"}'])
    assert.are.equal(1, changed()['router_routed_total{strategy="custom"}'])
  end)

  it("MET-2 counts no request to a pool itself as a message that is routed", function()
    local pool = spawn(Router.round_robin(2, ignore))
    local changed = changes()

    pool:ask(troupe.GetRoutees)
    pool:ask(troupe.AddRoutees(1))

    assert.are.same({ actor_created_total = 1 }, changed())
  end)

  it("MET-2 counts a signal at no router, but one that is wrapped", function()
    local series = 'router_routed_total{strategy="random"}'
    local pool = spawn(Router.random(2, ignore))
    local changed = changes()

    tell(pool, troupe.Broadcast(troupe.Kill))
    tell(pool, troupe.PoisonPill)

    assert.are.equal(1, changed()[series])
  end)

  it("SYS-3 are separate in two systems", function()
    local other <close> = testkit.system("demo", { metrics = true }).system
    other.metrics:counter("jobs_total", "Jobs."):inc()
    local before = other.metrics:render()

    local gone = spawn(ignore)
    tell(gone, "mail")
    gone:stop()
    kit().system.metrics:counter("jobs_total", "Something else.", { "kind" })
    kit():settle()

    assert.are.equal(before, other.metrics:render())
    assert.are.equal(1, samples().actor_created_total)
    assert.is_nil(samples().jobs_total)
  end)

  --- A run that has some of everything in it, and metrics of the user's own with what may be hard
  --- to read.
  local function busy_system()
    local system = kit().system
    local pool = spawn(Router.random(3, function(_, n)
      if n % 5 == 0 then error("a failure") end
      troupe.sleep(n)
    end))
    for i = 1, 50 do pool:tell(i) end
    system:actor_selection("/user/nobody"):tell("mail")
    kit():advance(500)
    local jobs = system.metrics:counter("jobs_total", 'Jobs:\n"all" of \\them.', { "kind", "by" })
    for byte = 0, 255 do jobs:inc(byte, { kind = string.char(byte), by = byte % 2 == 0 }) end
    local age = system.metrics:gauge("age_seconds", "Ages, 猫.", { "of" })
    for of, value in next, { a = 0 / 0, b = math.huge, c = -math.huge, d = 1 / 3, e = 5e-324 } do
      age:set(value, { of = of })
    end
    system.metrics:gauge("open_files", "Open files."):set(-1e300)
    local sizes = system.metrics:histogram("size_bytes", "Sizes.", { buckets = { -1, 0, 1e-3 } })
    sizes:observe(0.5)
    return system
  end

  --- What promtool says of a text, and its exit status: 0 when it has nothing to say.
  local function ask_promtool(text)
    local name = os.tmpname()
    local file <close> = assert(io.open(name, "w"))
    file:write(text)
    file:close()
    local pipe = io.popen("env -u LD_PRELOAD promtool check metrics 2>&1 <" .. name)
    local said = pipe:read("a")
    local _, _, status = pipe:close()
    os.remove(name)
    return said, status
  end

  it("MET-1 is text that promtool of the Debian package prometheus has nothing against", function()
    if not os.execute("command -v promtool >/dev/null") then
      pending("promtool is missing")
      return
    end

    local said, status = ask_promtool(busy_system().metrics:render())

    assert.are.equal("", said)
    assert.are.equal(0, status)
    local fault, failed = ask_promtool("# TYPE jobs counter\njobs 1\n")
    assert.matches("jobs", fault, 1, true)
    assert.are_not.equal(0, failed)
  end)

  --- A history that the seed draws, in a kit of its own, and a model that counts along by what the
  --- actors and their watchers see.
  local function random_history(seed)
    local fresh = testkit.system("history", { metrics = true, seed = seed, drain_timeout_ms = 0 })
    local system = fresh.system
    local model = { restarted = 0, terminated = 0, delivered = 0, handled = 0, dead = 0 }
    local function roll(n) return math.floor(system:random() * n) + 1 end
    local actors = {}

    local function note_restart() model.restarted = model.restarted + 1 end
    model.created = 1
    local undertaker = system:spawn { -- its siblings may restart it
      receive = function(actor, message)
        model.delivered, model.handled = model.delivered + 1, model.handled + 1
        if troupe.is(message, troupe.Terminated) then
          model.terminated = model.terminated + 1
        else
          actor:watch(message)
        end
      end,
      post_restart = note_restart,
    }

    local strategies = { "default_strategy", "stopping_strategy", "escalating_strategy" }
    local behavior
    local function spawn_one(parent)
      model.created = model.created + 1
      local strategy = roll(4) == 1 and troupe.all_for_one {} or troupe[strategies[roll(3)]]
      local ref = parent:spawn(behavior, nil, { supervisor_strategy = strategy })
      undertaker:tell(ref)
      actors[#actors + 1] = ref
    end

    local acts = {
      function() error("a failure") end,
      function() troupe.sleep(roll(20)) end,
      function(actor) actor:stop() end,
      function(actor) if #actors < 40 then spawn_one(actor) end end,
      function(actor) actor:stash() end,
      function(actor) actor:unstash_all() end,
      function() actors[roll(#actors)]:tell("mail") end,
      function() actors[roll(#actors)]:kill() end,
      ignore,
    }
    local function act(actor)
      model.delivered = model.delivered + 1
      local ended <close> = setmetatable({}, {
        __close = function() model.handled = model.handled + 1 end,
      })
      acts[roll(#acts)](actor)
      return ended
    end
    behavior = { receive = act, post_restart = note_restart }

    system.events:subscribe(function() model.dead = model.dead + 1 end, "dead_letter")
    for _ = 1, 3 do spawn_one(system) end
    for _ = 1, 40 do
      actors[roll(#actors)]:tell("mail")
      if roll(3) == 1 then fresh:advance(roll(10)) end
    end
    fresh:advance(1000)
    return system, model
  end

  it("MET-1 are the same text after the same history", function()
    local function history()
      local system <close> = random_history(7)
      return system.metrics:render()
    end

    local text = history()

    assert.are.equal(text, history())
    assert.is_true(read_samples.read(text).actor_message_handler_seconds_sum > 0)
  end)

  it("MET-2 counts what a model counts, in random histories", function()
    local totals = { restarted = 0, terminated = 0, dead = 0 }
    for seed = 1, tonumber(os.getenv("TROUPE_HISTORIES")) or 300 do
      local system <close>, model = random_history(seed)
      local all = read_samples.read(system.metrics:render())
      local dead = 0
      for series, value in next, all do
        if series:find("^dead_letters_total") then dead = dead + value end
      end

      assert.are.same(model, {
        created = all.actor_created_total,
        restarted = all.actor_restarted_total,
        terminated = all.actor_terminated_total,
        delivered = all.actor_messages_delivered_total,
        handled = all.actor_message_handler_seconds_count,
        dead = dead,
      }, "seed " .. seed)
      assert.are.equal(system:stats().actors, model.created - model.terminated)
      for name, total in next, totals do totals[name] = total + model[name] end
    end
    for name, total in next, totals do assert.is_true(total > 0, name) end
  end)
end)
