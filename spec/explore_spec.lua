-- Running a scenario under many schedules.

local new_kit = require "spec.support.kit"
local raised_here = require "spec.support.raised_here"

describe("kit:explore", function()
  local kit = new_kit.each(before_each, after_each)

  --- Two actors tell a store as they start: the one sets it, the other reads it, and nothing makes
  --- them wait for each other.
  local function racy(fresh)
    local value, read
    local store = fresh.system:spawn(function(_, message)
      if message == "read" then read = value else value = message end
    end)
    local function teller(message)
      return { receive = function() end, pre_start = function() store:tell(message) end }
    end
    fresh.system:spawn(teller("set"))
    fresh.system:spawn(teller("read"))
    fresh:settle()
    assert.are.equal("set", read)
  end

  --- The names of five actors in the order in which they started.
  local function order_of_starts(fresh)
    local started = {}
    for i = 1, 5 do
      fresh.system:spawn({
        receive = function() end,
        pre_start = function(actor) started[#started + 1] = actor.name end,
      }, tostring(i))
    end
    fresh:settle()
    return table.concat(started)
  end

  local function failure_of(scenario, options)
    local ok, failure = pcall(function() kit():explore(scenario, options) end)
    assert.is_false(ok)
    return failure
  end

  it("TK-3 finds a bug that only some orders show", function()
    racy(kit()) -- first come, first served, it goes well

    assert.matches("explore: seed %d+ fails", failure_of(racy))
  end)

  it("TK-3 passes what is right in every order", function()
    local runs = 0
    kit():explore(function(fresh)
      local sum = 0
      local adder = fresh.system:spawn(function(_, n) sum = sum + n end)
      for n = 1, 5 do
        fresh.system:spawn(function(_, m) adder:tell(m) end):tell(n)
      end
      fresh:settle()
      assert.are.equal(15, sum)
      runs = runs + 1
    end, { seeds = 40 })

    assert.are.equal(40, runs)
  end)

  it("TK-3 names the first seed that fails, which fails alone too", function()
    local seed = math.tointeger(failure_of(racy):match("{ first = (%d+), seeds = 1 }"))

    assert.matches(("seed %d fails"):format(seed), failure_of(racy, { first = seed, seeds = 1 }))
    for earlier = 1, seed - 1 do kit():explore(racy, { first = earlier, seeds = 1 }) end
  end)

  it("TK-3 runs the same for the same seed, and not for every seed", function()
    local function orders()
      local list = {}
      kit():explore(function(fresh) list[#list + 1] = order_of_starts(fresh) end, { seeds = 50 })
      return list
    end
    local once = orders()

    assert.are.same(once, orders())
    local different = {}
    for _, order in ipairs(once) do different[order] = true end
    different["12345"] = nil -- the order of every other system
    assert.is_not_nil(next(different))
  end)

  it("TK-3 gives each run a kit of its own with the options of the kit", function()
    local kits = {}
    kit { log_level = "error", throughput = 5 }:explore(function(fresh)
      fresh.system.log:warn("not logged")
      fresh.system.log:error("logged")
      kits[#kits + 1] = fresh
    end, { seeds = 2 })

    assert.are_not.equal(kits[1].system, kits[2].system)
    assert.are_not.equal(kit().system, kits[1].system)
    for _, fresh in ipairs(kits) do
      assert.are.equal("demo", fresh.system.name)
      assert.are.equal(1, #fresh.logs)
    end
    assert.are.equal(0, #kit().logs)
  end)

  it("TK-3 ends every system, also that of a run that fails", function()
    local kits = {}
    failure_of(function(fresh)
      fresh.system:spawn(function() end)
      kits[#kits + 1] = fresh
      if #kits == 3 then error("enough") end
    end)

    assert.are.equal(3, #kits)
    for _, fresh in ipairs(kits) do
      assert.are.equal(0, fresh.system:stats().actors)
      assert.is_false(pcall(fresh.system.spawn, fresh.system, function() end))
    end
  end)

  it("TK-3 raises at the caller's line, with what went wrong and where", function()
    local function scenario() error({ code = 7 }) end
    local failure = raised_here(function() kit():explore(scenario) end)

    local line = debug.getinfo(scenario, "S").linedefined
    assert.matches("table: 0x", failure)
    assert.matches(("explore_spec.lua:%d: in"):format(line), failure)
    assert.matches("explore_spec.lua:%d+: no luck", failure_of(function() error("no luck") end))
  end)

  it("ERR-2 refuses wrong use", function()
    local ignore = function() end
    assert.matches('explore: the scenario must be a function %(got "x"%)',
      raised_here(function() kit():explore("x") end))
    assert.matches("explore: seeds must be an integer of at least 1 %(got 0%)",
      raised_here(function() kit():explore(ignore, { seeds = 0 }) end))
    assert.matches("explore: first must be an integer %(got 0.5%)",
      raised_here(function() kit():explore(ignore, { first = 0.5 }) end))
    assert.matches('explore: unknown option "seed" %(known: first, seeds%)',
      raised_here(function() kit():explore(ignore, { seed = 1 }) end))
  end)
end)
