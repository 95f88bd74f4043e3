--- Scatters that fail, in every way there is: who is told what, and when.
local troupe = require "troupe"
local new_kit = require "spec.support.kit"

local Router, Broadcast = troupe.Router, troupe.Broadcast

local function mute() end

local function number_of(name) return math.tointeger(name:match("%d+$")) end

local function same(a, b) return rawequal(a, b) or a ~= a and b ~= b end

describe("a scatter that fails", function()
  local kit = new_kit.each(before_each, after_each)

  -- What a leg gives ------------------------------------------------------------------------------

  local function gives(value)
    return function(member) return same(member, value) end
  end

  local function fault(name)
    return function(member, path) return troupe.is_error(member, name) and member.path == path end
  end

  local stopped, full, late = fault "ActorStoppedError", fault "MailboxFullError",
    function(member, path)
      return troupe.is_error(member, "AskTimeoutError") and member.path == path
        and member.timeout_ms == 250
    end

  -- What routees do -------------------------------------------------------------------------------

  local reasons = {
    "no disk", { code = 7 }, troupe.error("Broken", "no network"), 42, 0 / 0, true, print,
    coroutine.create(mute), io.stdout,
  }

  local function reason_of(i) return reasons[(i - 1) % #reasons + 1] end

  -- Fails in a different way than its neighbours do: five ways.
  local function fail_somehow(actor)
    local way = number_of(actor.name) % 5
    if way == 1 then return actor:fail("no disk") end
    if way == 2 then return end
    if way == 3 then return actor:stop() end
    if way == 4 then error("no network") end
    actor:reply(reasons[3])
  end

  local function how_it_failed(member, path, i)
    return (({ gives "no disk", late, stopped, late })[i % 5] or gives(reasons[3]))(member, path)
  end

  -- Is busy for 50 ms with the message "park".
  local function parks(_, message)
    if message == "park" then troupe.sleep(50) end
  end

  local stopping = { supervisor_strategy = troupe.stopping_strategy }

  local function bounded(overflow)
    return { mailbox = { capacity = 1, overflow = overflow } }
  end

  -- One message in hand and one in the mailbox of each routee.
  local function fill(pool)
    pool:tell(Broadcast("park"))
    kit():settle()
    pool:tell(Broadcast("waits"))
    kit():settle()
  end

  local function routees_of(pool)
    return kit().system:actor_selection(tostring(pool.path) .. "/*"):resolve()
  end

  local function stop_each(pool) pool:tell(Broadcast(troupe.PoisonPill)) end

  local function kill_each(pool) pool:tell(Broadcast(troupe.Kill)) end

  local outcomes = { "first", "enough", "timeout", "all-failed", "stopped", "no-reply-target" }
  local NONE = "none of %d routees replied within 250ms"
  local ALL = "all %d routees failed"
  local EMPTY = "no routees left to scatter to"
  local STOPPED = "stopped while the scatter was still open"
  local outcome_of = {
    [NONE] = "timeout", [ALL] = "all-failed", [EMPTY] = "all-failed", [STOPPED] = "stopped",
  }

  --- By name: what the routees do; `before` the scatter begins, at 0 ms, and in the `event` at
  --- 10 ms; what the error `says`, `at` which time, and what each `leg` of it is, in order. Without
  --- `leg` there is none.
  local rows = {
    ["nobody replies"] = {
      routee = mute,
      says = NONE, leg = late, at = 250,
    },
    ["all reply too late"] = {
      routee = function(actor)
        troupe.sleep(251)
        actor:reply("late")
      end,
      says = NONE, leg = late, at = 250,
    },
    ["all fail with nil, which raises"] = {
      routee = function(actor) actor:fail(nil) end,
      says = NONE, leg = late, at = 250,
    },
    ["all fail with false, which raises"] = {
      routee = function(actor) actor:fail(false) end,
      says = NONE, leg = late, at = 250,
    },
    ["all stop, and had looked at who asked"] = {
      routee = function(actor)
        if actor.sender then actor:stop() end
      end,
      says = NONE, leg = late, at = 250,
    },
    ["nobody replies, and one of them leaves meanwhile"] = {
      routee = mute,
      event = function(pool) routees_of(pool)[1]:stop() end,
      says = NONE, leg = late, at = 250,
    },
    ["all were busy, and restart with the request in their mailboxes to no avail"] = {
      routee = function(_, message)
        if message == "park" then
          troupe.sleep(50)
          error("no disk")
        end
      end,
      before = function(pool)
        pool:tell(Broadcast("park"))
        kit():settle()
      end,
      says = NONE, leg = late, at = 250,
    },
    ["all fail, with any value, the first one last"] = {
      routee = function(actor)
        local i = number_of(actor.name)
        troupe.sleep(101 - i)
        actor:fail(reason_of(i))
      end,
      says = ALL, leg = function(member, _, i) return same(member, reason_of(i)) end, at = 100,
    },
    ["all reply with an error value, at once"] = {
      routee = function(actor) actor:reply(reasons[3]) end,
      says = ALL, leg = gives(reasons[3]), at = 0,
    },
    ["others tell each reply ref an error value"] = {
      routee = function(actor)
        local reply_to = actor.sender
        actor.system:schedule_once(30, function() reply_to:tell(reasons[3]) end)
      end,
      says = ALL, leg = gives(reasons[3]), at = 30,
    },
    ["one fails, and the others are late"] = {
      routee = function(actor)
        if actor.name == "routee-1" then actor:fail("no disk") end
      end,
      says = ALL, at = function(size) return size == 1 and 0 or 250 end,
      leg = function(member, path, i)
        return (i == 1 and gives "no disk" or late)(member, path)
      end,
    },
    ["they fail in every way at once"] = {
      routee = fail_somehow,
      says = ALL, leg = how_it_failed, at = function(size) return size == 1 and 0 or 250 end,
    },
    ["all stop with the request in hand"] = {
      routee = function(actor)
        troupe.sleep(30)
        actor:stop()
      end,
      says = ALL, leg = stopped, at = 30,
    },
    ["all are killed with the request in hand, and stop"] = {
      routee = function() troupe.sleep(1000) end, routee_options = stopping,
      event = function(pool)
        for _, ref in ipairs(routees_of(pool)) do ref:kill() end
      end,
      says = ALL, leg = stopped, at = 10,
    },
    ["all stop with the request in their mailboxes"] = {
      routee = function()
        troupe.sleep(50)
        error("no disk")
      end,
      routee_options = stopping,
      before = function(pool)
        pool:tell(Broadcast("park"))
        kit():settle()
      end,
      says = ALL, leg = stopped, at = 50,
    },
    ["all have stopped, and are kept"] = {
      routee = mute, options = { on_routee_stop = "keep" },
      before = stop_each,
      says = ALL, leg = stopped, at = 0,
    },
    ["all were killed, and are kept"] = {
      routee = mute, options = { on_routee_stop = "keep" }, routee_options = stopping,
      before = kill_each,
      says = ALL, leg = stopped, at = 0,
    },
    ["all mailboxes are full, and reject it"] = {
      routee = parks, routee_options = bounded "reject",
      before = fill,
      says = ALL, leg = full, at = 0,
    },
    ["all mailboxes are full, and drop it"] = {
      routee = parks, routee_options = bounded "drop-new",
      before = fill,
      says = ALL, leg = full, at = 0,
    },
    ["all mailboxes drop it for something newer"] = {
      routee = parks, routee_options = bounded "drop-head",
      before = fill,
      event = function(pool) pool:tell(Broadcast("newer")) end,
      says = ALL, leg = full, at = 10,
    },
    ["all mailboxes drop it for something that matters more"] = {
      routee = parks,
      routee_options = {
        mailbox = {
          capacity = 1,
          priority = function(message) return message == "k" and 2 or 1 end,
        },
      },
      before = function(pool)
        pool:tell(Broadcast("park"))
        kit():settle()
      end,
      event = function(pool) pool:tell(Broadcast("urgent")) end,
      says = ALL, leg = full, at = 10,
    },
    ["one mailbox is full, and the others reply too late"] = {
      routee = function(actor, message)
        if actor.name == "routee-1" then parks(actor, message) end
      end,
      routee_options = bounded "reject",
      before = fill,
      says = ALL, at = function(size) return size == 1 and 0 or 250 end,
      leg = function(member, path, i) return (i == 1 and full or late)(member, path) end,
    },
    ["all have stopped"] = {
      routee = mute,
      before = stop_each,
      says = EMPTY, at = 0,
    },
    ["all were killed, and stopped"] = {
      routee = mute, routee_options = stopping,
      before = kill_each,
      says = EMPTY, at = 0,
    },
    ["none could start, and all were given up"] = {
      routee = { pre_start = function() error("no disk") end, receive = mute },
      routee_options = stopping,
      before = function() kit():settle() end,
      says = EMPTY, at = 0,
    },
    ["the router is stopped"] = {
      routee = mute,
      event = function(pool) pool:stop() end,
      says = STOPPED, at = 10,
    },
    ["the router is stopped, and its routees are busy"] = {
      routee = function() troupe.sleep(1000) end,
      event = function(pool) pool:stop() end,
      says = STOPPED, at = 10,
    },
    ["the router gets a poison pill"] = {
      routee = mute,
      event = function(pool) pool:tell(troupe.PoisonPill) end,
      says = STOPPED, at = 10,
    },
    ["the router is stopped hard"] = {
      routee = mute,
      event = function(pool) kit().system:stop(pool) end,
      says = STOPPED, at = 10,
    },
    ["the router is killed, and restarts"] = {
      routee = mute,
      event = function(pool) pool:kill() end,
      says = STOPPED, at = 10,
    },
    ["the router gets a kill among its mail, and restarts"] = {
      routee = mute,
      event = function(pool) pool:tell(troupe.Kill) end,
      says = STOPPED, at = 10,
    },
    ["the router is killed, and its supervisor stops it"] = {
      routee = mute,
      spawn = function(behavior)
        local pool
        kit().system:spawn({
          pre_start = function(actor) pool = actor:spawn(behavior, "replicas") end,
          receive = mute,
          supervisor_strategy = troupe.stopping_strategy,
        }, "parent")
        kit():settle()
        return pool
      end,
      event = function(pool) pool:kill() end,
      says = STOPPED, at = 10,
    },
    ["the router's parent stops"] = {
      routee = mute,
      spawn = function(behavior)
        local pool
        kit().system:spawn({
          pre_start = function(actor) pool = actor:spawn(behavior, "replicas") end,
          receive = function(actor) actor:stop() end,
        }, "parent")
        kit():settle()
        return pool
      end,
      event = function() kit().system:actor_selection("/user/parent"):tell("stop") end,
      says = STOPPED, at = 10,
    },
    ["its legs have failed, all but one, and the router stops"] = {
      routee = function(actor)
        if actor.name ~= "routee-1" then actor:fail("no disk") end
      end,
      event = function(pool) pool:stop() end,
      says = STOPPED, at = 10,
    },
    ["the system terminates"] = {
      routee = mute, ends_actors = true,
      event = function() kit().system:terminate() end,
      says = STOPPED, at = 10,
    },
    ["the system terminates, and drains in vain"] = {
      routee = function() troupe.sleep(10000) end, ends_actors = true,
      system_options = { drain_timeout_ms = 100 },
      event = function() kit().system:terminate() end,
      says = STOPPED, at = 110,
    },
  }

  -- By name: who asks. Each calls note(value, error, from) when it has its answer.
  local callers = {
    ["a task"] = function(pool, note)
      kit():async(function() note(pool:ask("k", 60000)) end)
    end,
    ["a handler"] = function(pool, note)
      kit().system:spawn(function() note(pool:ask("k", 60000)) end):tell("go")
    end,
    ["a sender"] = function(pool, note)
      pool:tell("k", kit().system:spawn(function(actor, message)
        note(nil, message, actor.sender)
      end))
    end,
  }

  -- Dead letters that are requests: an asker that is told of its failure loses nothing.
  local function lost_requests()
    local lost = {}
    kit().system.events:subscribe(function(event)
      if event.message == "k" then lost[#lost + 1] = event end
    end, "dead_letter")
    return lost
  end

  -- Routers that gather, set so that one reply will do and that each asks all its routees at once,
  -- or as good as at once: `apart` ms one after another.
  local routers = {
    { id = "SG-5", make = Router.scatter_gather_first_completed, options = {},
      callers = { "a task", "a handler", "a sender" }, sizes = { 1, 3, 100 } },
    { id = "SG-17", make = Router.scatter_gather, options = { wait_for = 1 },
      callers = { "a task" }, sizes = { 1, 3, 100 } },
    { id = "SG-15", make = Router.hedged, apart = 1 / 64,
      options = { delay_ms = 1 / 64, max_extra_load = 10 },
      callers = { "a task" }, sizes = { 1, 3 } },
  }

  local function run(row, router, size, call)
    local system_options = { metrics = true }
    for key, value in pairs(row.system_options or {}) do system_options[key] = value end
    kit(system_options)
    local options = { timeout_ms = 250 }
    for _, more in ipairs { router.options, row.options or {} } do
      for key, value in pairs(more) do options[key] = value end
    end
    local behavior = router.make(size, row.routee, options, row.routee_options)
    local pool = row.spawn and row.spawn(behavior) or kit().system:spawn(behavior, "replicas")
    local answers, lost = {}, lost_requests()
    if row.before then
      row.before(pool)
      kit():settle()
    end
    call(pool, function(value, err, from)
      answers[#answers + 1] = { value = value, err = err, from = from, at = kit():now() }
    end)
    kit():settle()

    if row.event then
      kit():advance(10)
      row.event(pool)
    end
    kit():advance(10000)
    return pool, answers, lost
  end

  local function counted(name, labels)
    local text = kit().system.metrics:render()
    return tonumber(text:match("\n" .. (name .. labels):gsub("%p", "%%%0") .. " (%S+)"))
  end

  -- One scatter has ended, with this outcome (SG-10).
  local function check_metrics(outcome, took_ms)
    for _, each in ipairs(outcomes) do
      assert.are.equal(each == outcome and 1 or 0,
        counted("router_scatter_gather_resolved_total", ('{outcome="%s"}'):format(each)), each)
    end
    assert.are.equal(1, counted("router_scatter_gather_latency_seconds_count", ""))
    local sum = counted("router_scatter_gather_latency_seconds_sum", "")
    assert.is_true(math.abs(sum - took_ms / 1000) < 1e-9, ("took %s s"):format(sum))
  end

  local function check(row, router, size, pool, answers, lost)
    assert.are.equal(1, #answers)
    local answer = answers[1]
    local err = answer.err
    assert.is_nil(answer.value)
    assert.is_true(troupe.is_error(err, "AggregateError"), tostring(err))
    local path = tostring(pool.path)
    assert.are.equal(path .. ": " .. row.says:format(size), err.message)
    assert.are.equal(path, err.path)
    assert.are.equal(pool, answer.from)
    local at = type(row.at) == "function" and row.at(size) or row.at
    local latest = at + (size - 1) * (router.apart or 0)
    assert.is_true(at <= answer.at and answer.at <= latest, ("at %s ms"):format(answer.at))
    assert.are.equal(row.leg and size or 0, #err.errors)
    for i, member in ipairs(err.errors) do
      local as_expected = row.leg(member, path .. "/routee-" .. i, i)
      assert.is_true(as_expected, ("errors[%d] is %s"):format(i, tostring(member)))
    end
    assert.are.same({}, lost)
    assert.are.equal(0, kit().system:stats().scatters)
    check_metrics(outcome_of[row.says], answer.at)
  end

  for name, row in pairs(rows) do
    for _, router in ipairs(routers) do
      for _, who in ipairs(router.callers) do
        for _, size in ipairs(router.sizes) do
          local title = ("%s because %s tells %s (%d routees)"):format(router.id, name, who, size)
          if who == "a task" or not row.ends_actors then
            it(title, function()
              check(row, router, size, run(row, router, size, callers[who]))
            end)
          end
        end
      end
    end
  end

  it("SG-5 because the system terminates is a dead letter of a sender that has stopped", function()
    local pool = kit().system:spawn(Router.scatter_gather_first_completed(3, mute), "replicas")
    local told, letters = {}, {}
    local caller = kit().system:spawn(function(_, message) told[#told + 1] = message end)
    kit().system.events:subscribe(function(event) letters[#letters + 1] = event end, "dead_letter")
    pool:tell("k", caller)
    kit():settle()

    kit().system:terminate()

    assert.are.same({}, told)
    assert.are.equal(1, #letters)
    assert.is_true(troupe.is_error(letters[1].message, "AggregateError"))
    assert.are.equal(tostring(caller.path), tostring(letters[1].recipient))
    assert.are.equal(pool, letters[1].sender)
  end)
end)
