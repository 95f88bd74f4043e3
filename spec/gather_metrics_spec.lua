local troupe = require "troupe"
local new_kit = require "spec.support.kit"

local Router = troupe.Router
local first_completed = Router.scatter_gather_first_completed

describe("the metrics of routers that gather", function()
  local each = new_kit.each(before_each, after_each)
  local function kit() return each { metrics = true } end
  local function spawn(...) return kit().system:spawn(...) end

  -- The counts of a family, of those labels that are not at 0.
  local function counts(family)
    local found = {}
    local pattern = "^" .. family .. '{%a+="([%w-]+)"} (%d+)$'
    for line in kit().system.metrics:render():gmatch("[^\n]+") do
      local label, n = line:match(pattern)
      if label and n ~= "0" then found[label] = tonumber(n) end
    end
    return found
  end

  local function value_of(series)
    local text = kit().system.metrics:render()
    return tonumber(text:match("\n" .. series:gsub("%W", "%%%0") .. " (%S+)"))
  end

  local function outcomes() return counts("router_scatter_gather_resolved_total") end
  local function hedges() return counts("router_hedges_total") end

  -- Routees that do what the message says.
  local function obedient(actor, message)
    if message == "fail" then return actor:fail("broken") end
    if message == "mute" then return end
    troupe.sleep(tonumber(message) or 0)
    actor:reply(message)
  end

  it("SG-10 counts each scatter by its outcome, once", function()
    local pool = spawn(first_completed(2, obedient, { timeout_ms = 50 }))

    pool:ask("10")
    pool:ask("10")
    pool:ask("fail")
    pool:ask("mute")
    local open = kit():async(function() return pool:ask("1000") end)
    kit():settle()
    pool:stop()
    open:await()

    assert.are.same({ first = 2, ["all-failed"] = 1, timeout = 1, stopped = 1 }, outcomes())
  end)

  it("SG-10 counts a complete list as enough, one that is too short by its reason", function()
    local pool = spawn(Router.scatter_gather(3, function(actor, message)
      if message == actor.name then return actor:fail("broken") end
      if message == "mute" and actor.name == "routee-1" then return end
      actor:reply(message)
    end, { timeout_ms = 50 }))

    pool:ask("k")
    pool:ask("routee-2")
    pool:ask("mute")

    assert.are.same({ enough = 1, ["all-failed"] = 1, timeout = 1 }, outcomes())
  end)

  it("SG-10 counts a scatter without routees as all-failed", function()
    local pool = spawn(first_completed(1, obedient), "pool")
    kit():settle()
    kit().system:actor_selection("/user/pool/routee-1"):resolve_one():stop()
    kit():settle()

    pool:ask("k")

    assert.are.same({ ["all-failed"] = 1 }, outcomes())
  end)

  it("SG-10 measures from the scatter to its answer, whatever that is", function()
    local pool = spawn(first_completed(2, obedient, { timeout_ms = 50 }))
    local family = "router_scatter_gather_latency_seconds"

    pool:ask("10")
    pool:ask("mute")
    pool:tell("k")
    kit():settle()

    assert.are.equal(2, value_of(family .. "_count"))
    assert.are.equal(0.06, value_of(family .. "_sum"))
    assert.are.equal(1, value_of(family .. '_bucket{le="0.025"}'))
  end)

  it("SG-4 counts a tell that has no reply target", function()
    local pool = spawn(first_completed(2, obedient))

    pool:tell("k")
    pool:tell("k", pool)
    kit():settle()

    assert.are.same({ ["no-reply-target"] = 2 }, outcomes())
  end)

  it("SG-3 counts nothing for the replies of losers", function()
    local pool = spawn(first_completed(3, obedient))

    pool:ask("5")
    kit():advance(10)

    assert.are.same({ first = 1 }, outcomes())
  end)

  it("SG-15 counts hedges that were sent, that won, and that were refused", function()
    local slow = true
    local pool = spawn(Router.hedged(2, function(actor, message)
      local took = slow and 100 or 1
      slow = not slow
      troupe.sleep(took)
      actor:reply(message)
    end, { delay_ms = 10, max_extra_load = 0 }))
    local hedged = spawn(Router.hedged(2, function(actor, message)
      local took = message == "both" and 100 or slow and 100 or 1
      slow = not slow
      troupe.sleep(took)
      actor:reply(message)
    end, { delay_ms = 10 }))

    pool:ask("k")
    assert.are.same({ refused = 1 }, hedges())

    slow = true
    hedged:ask("k")
    kit():advance(200)
    assert.are.same({ refused = 1, sent = 1, won = 1 }, hedges())

    hedged:ask("both")
    assert.are.same({ refused = 1, sent = 2, won = 1 }, hedges())
  end)

  it("SG-15 counts no hedge for what a failure makes it ask", function()
    local failing = true
    local pool = spawn(Router.hedged(2, function(actor, message)
      failing = not failing
      if not failing then return actor:fail("broken") end
      actor:reply(message)
    end, { delay_ms = 10 }))

    assert.are.equal("k", (pool:ask("k")))

    assert.are.same({}, hedges())
    assert.are.same({ first = 1 }, outcomes())
  end)

  it("SG-15 counts no hedge as won when what its failure made it ask has won", function()
    local pool = spawn(Router.hedged(3, function(actor, message)
      if actor.name == "routee-2" then return actor:fail("broken") end
      troupe.sleep(actor.name == "routee-1" and 100 or 5)
      actor:reply(message)
    end, { delay_ms = 20 }))

    local _, _, from = pool:ask("k")

    assert.are.equal("routee-3", from.name)
    assert.are.same({ sent = 1 }, hedges())
  end)
end)
