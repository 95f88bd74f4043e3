local troupe = require "troupe"
local new_kit = require "spec.support.kit"

describe("looking at actors", function()
  local kit = new_kit.each(before_each, after_each)

  local function states()
    local found = {}
    for _, outline in ipairs(kit().system:tree()) do
      found[outline.path:match("[^/]+$") or "/"] = outline.state
    end
    return found
  end

  local function line_of(fn)
    return "spec/inspect_spec.lua:" .. debug.getinfo(fn, "S").linedefined
  end

  it("INS-1 lists every actor, parents first, with what it is and has", function()
    local function receive(_, message)
      if message == "boom" then error("boom") end
    end
    local parent = kit().system:spawn({
      pre_start = function(actor) actor:spawn(receive, "child") end,
      receive = receive,
    }, "parent")
    parent:tell("boom")
    kit():settle()
    parent:tell("queued")

    local tree = kit().system:tree()

    local paths = {}
    for i, outline in ipairs(tree) do paths[i] = outline.path end
    assert.are.same({
      "troupe://demo/", "troupe://demo/user", "troupe://demo/user/parent",
      "troupe://demo/user/parent/child", "troupe://demo/system",
    }, paths)
    assert.are.same({
      ref = parent, depth = 2, state = "running", behavior = line_of(receive), queued = 1,
      restarts = 1,
    }, setmetatable(tree[3], nil))
    assert.are.equal("guardian", tree[1].behavior)
  end)

  it("INS-1 prints as a tree", function()
    kit().system:spawn(troupe.Router.round_robin(2, function() end), "pool"):tell("x")

    assert.are.equal(table.concat({
      "troupe://demo/  running, 0 queued, 0 restarts, guardian",
      "  user  running, 0 queued, 0 restarts, guardian",
      "    pool  starting, 1 queued, 0 restarts, Router.round_robin(2)",
      "  system  running, 0 queued, 0 restarts, guardian",
    }, "\n"), tostring(kit().system:tree()))
  end)

  it("INS-1 tells what each actor is doing", function()
    local system = kit().system
    local function sleep() troupe.sleep(100) end
    local function fail() error("fail") end
    local lasting = { receive = fail, pre_restart = sleep, post_stop = sleep }
    system:spawn({ pre_start = sleep, receive = sleep }, "starting")
    system:spawn(sleep, "running")
    system:spawn(sleep, "waiting"):tell("x")
    local restarting = system:spawn({
      receive = fail,
      pre_start = function(actor)
        actor:spawn(sleep, "child")
        actor:spawn({ receive = fail, post_stop = sleep }, "stopping-child")
      end,
      post_restart = function() end,
    }, "restarting")
    system:spawn(lasting, "pre_restart"):tell("x")
    local stopping = system:spawn(lasting, "stopping")
    kit():settle()
    restarting:tell("x")
    stopping:stop()
    kit():settle()

    local found = states()

    for name, state in pairs {
      ["starting"] = "starting", ["running"] = "running", ["waiting"] = "waiting",
      ["restarting"] = "restarting", ["stopping-child"] = "stopping",
      ["pre_restart"] = "restarting", ["stopping"] = "stopping",
    } do
      assert.are.equal(state, found[name], name)
    end
  end)

  it("INS-1 tells who is suspended", function()
    local seen
    local function observe() seen = states() return "resume" end
    local ref = kit().system:spawn({
      pre_start = function(actor) actor:spawn(function() end, "below") end,
      receive = function() error("fail") end,
    }, "failed", { supervisor_strategy = troupe.one_for_one { decider = observe } })
    kit():settle()

    ref:tell("x")
    kit():settle()

    assert.are.equal("suspended", seen["failed"])
    assert.are.equal("suspended", seen["below"])
    assert.are.equal("running", states()["below"])
  end)

  it("INS-1 counts restarts and shows the last failure", function()
    local ref = kit().system:spawn(function(_, message) error(message) end)
    kit():advance(5)
    ref:tell({ "first" })
    local last = setmetatable({}, { __tostring = error })
    ref:tell(last)
    kit():settle()

    local seen = kit().system:inspect(ref)

    assert.are.equal(2, seen.restarts)
    assert.are.same({ count = 2, at_ms = 5, reason = last }, seen.last_failure)
    assert.are.equal(last, seen.last_failure.reason)
    assert.matches("last failure: a table %(2 in all, at 5ms%)", tostring(seen))
  end)

  it("INS-1 shows mailbox, stash, timers, watchers and children of one actor", function()
    local system = kit().system
    local function become() end
    local other = system:spawn(function() end)
    local ref = system:spawn(function(actor)
      actor:stash()
      actor:spawn(function() end)
      actor:watch(other)
      actor.timers:start_single("key", "tick", 50)
      actor:set_receive_timeout(1000)
      actor:become(become)
      troupe.sleep(10)
    end, "busy", { mailbox = { capacity = 1, overflow = "drop-new" } })
    system:spawn(function(actor) actor:watch(ref) end):tell("watch")
    ref:tell("go")
    kit():settle()
    for _ = 1, 3 do ref:tell("more") end

    local seen = system:inspect(ref)

    assert.are.same({
      ref = ref, state = "waiting", behavior = seen.behavior,
      queued = 1, restarts = 0, stashed = 1, timers = 1, children = 1, watches = 1, watchers = 1,
      mailbox = { capacity = 1, overflow = "drop-new", dropped = 2 },
      receive_timeout_ms = 1000, became = line_of(become),
    }, setmetatable(seen, nil))
  end)

  it("INS-1 prints one actor", function()
    local ref = kit().system:spawn(function() end, "idle")
    kit():settle()

    local lines = {}
    for line in tostring(kit().system:inspect(ref)):gmatch("[^\n]+") do lines[#lines + 1] = line end

    assert.matches("^troupe://demo/user/idle  running, 0 queued, 0 restarts, spec/inspect_spec",
      lines[1])
    assert.are.same({
      "  mailbox: no bound",
      "  stashed: 0, timers: 0, children: 0, watches: 0, watchers: 0",
      "  last failure: none",
    }, table.move(lines, 2, #lines, 1, { nil }))
  end)

  it("INS-1 shows a stale ref as stopped", function()
    local ref = kit().system:spawn(function() end, "gone")
    ref:stop()
    kit():settle()

    local seen = kit().system:inspect(ref)

    assert.are.equal("stopped", seen.state)
    assert.is_nil(seen.behavior)
    assert.matches("^troupe://demo/user/gone  stopped", tostring(seen))
  end)

  it("INS-1 can be asked from a handler, about the one that asks", function()
    local seen
    local ref = kit().system:spawn(function(actor) seen = actor.system:inspect(actor.ref) end)
    ref:tell("x")
    kit():settle()

    assert.are.equal("running", seen.state)
  end)

  it("INS-1 changes nothing and runs no user code", function()
    local touched = 0
    local function touch() touched = touched + 1 return "x" end
    local hostile = setmetatable({}, {
      __tostring = touch, __index = touch, __pairs = touch, __len = touch, __name = "hostile",
    })
    local ref = kit().system:spawn(function(actor)
      actor.field = hostile
      error(hostile)
    end)
    ref:tell(hostile)
    kit():settle()
    ref:tell(hostile)
    touched = 0
    local before = kit().system:stats()

    local _ = tostring(kit().system:tree()) .. tostring(kit().system:inspect(ref))

    local after = kit().system:stats()
    assert.are.same({ 0, before.queued, before.anchored, before.engine_bytes },
      { touched, after.queued, after.anchored, after.engine_bytes })
  end)

  it("INS-1 looks at one actor as fast among 100,000 with a million messages", function()
    local ref = kit().system:spawn(function() end)
    local function cost()
      local began = os.clock()
      for _ = 1, 1000 do kit().system:inspect(ref) end
      return os.clock() - began
    end
    kit():settle()
    cost()
    local alone = cost()
    for _ = 1, 100000 do kit().system:spawn(function() end) end
    kit():settle()
    for i = 1, 1000000 do ref:tell(i) end

    local crowded = math.min(cost(), cost(), cost()) -- the collector has much to do

    assert.is_true(crowded < alone * 20, ("%g s, %g s"):format(alone, crowded))
    assert.are.equal(100004, #kit().system:tree())
  end)

  it("INS-1 shows a tree that is deep, or wide, at the same cost for each actor", function()
    local function cost(nest, n)
      local system <close> = troupe.system("tree", { log_level = "off" })
      local link = {}
      function link.receive(actor, left)
        if left > 0 then (nest and actor or actor.system):spawn(link):tell(left - 1) end
      end
      system:spawn(link):tell(n)
      system:run()
      collectgarbage()
      local began = os.clock()
      local tree = system:tree()
      local text = tostring(tree)
      local seconds = os.clock() - began
      assert.are.equal(n + 4, #tree)
      assert.are.equal(n + 3, select(2, text:gsub("\n", "")))
      return seconds
    end
    for _, nest in ipairs { true, false } do
      local few, many = cost(nest, 1000), cost(nest, 16000)

      assert.is_true(many < few * 16 * 6, ("%g s, %g s"):format(few, many))
    end
  end)

  it("INS-1 raises for what is no actor of the system", function()
    local system, why = kit().system, {}
    local other = troupe.system("other", { log_level = "off" })
    local foreign = other:spawn(function() end)
    system:spawn(function(actor)
      for i, what in ipairs { "/user", {}, foreign, actor.sender } do
        why[i] = tostring(select(2, pcall(system.inspect, system, what)))
      end
      actor:reply(true)
    end):ask("x")
    other:terminate()

    assert.matches('inspect: the actor must be a ref %(got "/user"%)', why[1])
    assert.matches("inspect: the actor must be a ref %(got a table%)", why[2])
    assert.matches("inspect: the actor must be of this system", why[3])
    assert.matches("inspect: a reply ref is no actor", why[4])
  end)
end)
