local errors = require "troupe.errors"
local fault = require "troupe.fault"

local PATH = "troupe://demo/user/replicas"

describe("the error of a failed ask", function()
  it("ASK-6 names the target's path and the budget", function()
    local err = fault.build("ask-timeout", PATH, 250.0)

    assert.is_true(errors.is(err, "AskTimeoutError"))
    assert.are.equal("no reply from " .. PATH .. " within 250ms", err.message)
    assert.are.equal(PATH, err.path)
    assert.are.equal(250, err.timeout_ms)
  end)

  it("ASK-6 renders milliseconds as they were given", function()
    local rendered = { [0.5] = "0.5ms", [250.0] = "250ms", [1e12] = "1000000000000ms" }
    for ms, expected in pairs(rendered) do
      local err = fault.build("ask-timeout", PATH, ms)
      assert.are.equal("no reply from " .. PATH .. " within " .. expected, err.message)
    end
    assert.are.equal("integer", math.type(fault.build("ask-timeout", PATH, 250.0).timeout_ms))
    assert.are.equal(0.5, fault.build("ask-timeout", PATH, 0.5).timeout_ms)
  end)

  it("ASK-7 names the target that has stopped", function()
    local err = fault.build("actor-stopped", PATH)

    assert.are.equal("ActorStoppedError: " .. PATH .. " has stopped", tostring(err))
    assert.are.equal(PATH, err.path)
  end)
end)

describe("the error of an aggregate", function()
  it("SG-5 says that nobody replied in time, with an error for each routee in order", function()
    local first = fault.build("ask-timeout", PATH .. "/routee-1", 250.0)
    local second = fault.build("ask-timeout", PATH .. "/routee-2", 250.0)
    local err = fault.build("scatter-timeout", PATH, 250.0, { first, second }, 2)

    assert.are.equal("AggregateError", err.name)
    assert.are.equal(PATH .. ": none of 2 routees replied within 250ms", err.message)
    assert.are.equal(PATH, err.path)
    assert.are.equal(250, err.timeout_ms)
    assert.are.equal(2, #err.errors)
    assert.are.equal(first, err.errors[1])
    assert.are.equal(second, err.errors[2])
  end)

  it("SG-5 says that all failed, and holds what each gave, unchanged", function()
    local broken = errors.new("Broken", "no disk")
    local given = { "text", broken, false }
    local err = fault.build("scatter-failed", PATH, nil, given, 3)

    assert.are.equal("AggregateError: " .. PATH .. ": all 3 routees failed", tostring(err))
    assert.are.equal(PATH, err.path)
    assert.are.equal("text", err.errors[1])
    assert.are.equal(broken, err.errors[2])
    assert.is_false(err.errors[3])
    assert.are_not.equal(given, err.errors)
  end)

  it("SG-5 has no hole where a routee failed with nil", function()
    for _, code in ipairs { "scatter-failed", "scatter-timeout" } do
      local err = fault.build(code, PATH, 250.0, { nil, "text", nil }, 3)

      assert.are.equal(3, #err.errors)
      assert.is_nil(err.errors[0])
      assert.are.equal("Error: the routee failed with nil", tostring(err.errors[1]))
      assert.are.equal("text", err.errors[2])
      assert.are.equal("Error: the routee failed with nil", tostring(err.errors[3]))
    end
  end)

  it("SG-5 says that no routees were left, and is empty", function()
    local err = fault.build("scatter-empty", PATH)

    assert.are.equal("AggregateError: " .. PATH .. ": no routees left to scatter to", tostring(err))
    assert.are.equal(PATH, err.path)
    assert.are.same({}, err.errors)
  end)

  it("SG-5 says that the router stopped, and is empty", function()
    local err = fault.build("scatter-stopped", PATH, 250.0, { "late" }, 1)

    assert.are.equal("AggregateError: " .. PATH .. ": stopped while the scatter was still open",
      tostring(err))
    assert.are.equal(PATH, err.path)
    assert.are.same({}, err.errors)
  end)
end)

describe("the errors of other failures", function()
  local expected = {
    ["timeout"] = "TimeoutError: no result within 1.5ms",
    ["system-terminated"] = "SystemTerminatedError: the system has terminated",
    ["no-routees"] = "NoRouteesError: " .. PATH .. " has no routees left",
    ["cancelled"] = "CancelledError: the wait was cancelled",
    ["killed"] = "ActorKilledError: " .. PATH .. " was killed",
    ["mailbox-full"] = "MailboxFullError: the mailbox of " .. PATH .. " is full",
    ["strategy-error"] = "StrategyError: " .. PATH .. ": the routing strategy failed",
    ["hash-key-error"] = "StrategyError: " .. PATH .. ": the hash_key failed",
  }

  for code, rendered in pairs(expected) do
    it("ERR-1 say what happened: " .. code, function()
      local err = fault.build(code, PATH, 1.5, {})

      assert.is_true(errors.is(err))
      assert.are.equal(rendered, tostring(err))
      assert.are.equal(code ~= "timeout" and PATH or nil, err.path)
      assert.are.equal(code == "timeout" and 1.5 or nil, err.timeout_ms)
    end)
  end

  it("ERR-1 are built without a path where there is none", function()
    assert.is_nil(fault.build("system-terminated").path)
    assert.is_nil(fault.build("cancelled").path)
  end)

  it("ERR-2 refuse a failure that does not exist", function()
    local _, reason = pcall(function() fault.build("no-luck") end)

    assert.matches("fault_spec.lua:%d+: no such failure: no%-luck$", reason)
  end)
end)
