local errors = require "troupe.errors"
local events = require "troupe.events"

-- A stream whose refs are tables { ref = name }, with notes of what it asks of its host.
local function new_stream(key)
  local notes = { told = {}, errors = {}, interest = {} }
  local stream = events.new {
    is_ref = function(value) return type(value) == "table" and value.ref ~= nil end,
    tell = function(ref, event)
      if ref.ref == "broken" then error("no mailbox") end
      table.insert(notes.told, { ref.ref, event })
    end,
    on_error = function(reason, kind) table.insert(notes.errors, { reason, kind }) end,
    on_interest = function(kind, wanted) table.insert(notes.interest, { kind, wanted }) end,
    key = key,
  }
  return stream, notes
end

-- A function that notes its events, and the list of notes.
local function receiver()
  local got = {}
  return function(event) table.insert(got, event) end, got
end

describe("the event stream", function()
  it("EVT-1 gives an event to a function, with its kind and fields", function()
    local stream = new_stream()
    local fn, got = receiver()
    stream:subscribe(fn, "job_done")

    stream:publish("job_done", { job = 5 })
    stream:publish("job_done")

    assert.are.same({ { kind = "job_done", job = 5 }, { kind = "job_done" } }, got)
  end)

  it("EVT-1 tells an event to an actor", function()
    local stream, notes = new_stream()
    stream:subscribe({ ref = "a" }, "job_done")

    stream:publish("job_done", { job = 5 })

    assert.are.same({ { "a", { kind = "job_done", job = 5 } } }, notes.told)
  end)

  it("EVT-1 tells an actor even if its ref can be called", function()
    local stream, notes = new_stream()
    local ref = setmetatable({ ref = "a" }, { __call = function() error("called") end })
    stream:subscribe(ref, "job_done")

    stream:publish("job_done")

    assert.are.equal(1, #notes.told)
  end)

  it("EVT-1 gives an event to what can be called like a function", function()
    local stream = new_stream()
    local fn, got = receiver()
    stream:subscribe(setmetatable({}, { __call = function(_, event) fn(event) end }), "job_done")

    stream:publish("job_done")

    assert.are.same({ { kind = "job_done" } }, got)
  end)

  it("EVT-1 gives events of the subscribed kind alone", function()
    local stream = new_stream()
    local fn, got = receiver()
    stream:subscribe(fn, "job_done")

    stream:publish("job_begun")

    assert.are.same({}, got)
  end)

  it("EVT-1 publishes a copy of the fields", function()
    local stream = new_stream()
    local fn, got = receiver()
    stream:subscribe(fn, "job_done")
    local fields = { job = 5 }

    stream:publish("job_done", fields)
    fields.job = 6

    assert.is_nil(fields.kind)
    assert.are.equal(5, got[1].job)
  end)

  it("EVT-1 says whether a subscription is new, and keeps one of each", function()
    local stream = new_stream()
    local fn, got = receiver()

    assert.is_true(stream:subscribe(fn, "job_done"))
    assert.is_false(stream:subscribe(fn, "job_done"))
    assert.is_true(stream:subscribe(fn, "job_begun"))
    stream:publish("job_done")
    assert.are.equal(1, #got)
  end)

  it("EVT-1 keeps the order of subscription", function()
    local stream = new_stream()
    local order = {}
    local function note(name) return function() table.insert(order, name) end end
    local first, second, third = note("first"), note("second"), note("third")
    stream:subscribe(first, "k")
    stream:subscribe(second, "k")
    stream:subscribe(third, "k")
    stream:unsubscribe(second, "k")
    stream:subscribe(second, "k")

    stream:publish("k")

    assert.are.same({ "first", "third", "second" }, order)
  end)

  it("EVT-1 takes subscriptions back, one kind or all", function()
    local stream = new_stream()
    local fn, got = receiver()
    for _, kind in ipairs { "a", "b", "c" } do stream:subscribe(fn, kind) end

    assert.is_true(stream:unsubscribe(fn, "a"))
    assert.is_false(stream:unsubscribe(fn, "a"))
    assert.is_false(stream:unsubscribe(fn, "never"))
    stream:publish("a")
    assert.are.same({}, got)

    stream:publish("b")
    assert.is_true(stream:unsubscribe(fn))
    assert.is_false(stream:unsubscribe(fn))
    stream:publish("b")
    stream:publish("c")
    assert.are.same({ { kind = "b" } }, got)
    assert.is_true(stream:subscribe(fn, "a"))
  end)

  it("EVT-1 leaves other receivers when one goes", function()
    local stream = new_stream()
    local fn, got = receiver()
    local other, other_got = receiver()
    stream:subscribe(fn, "k")
    stream:subscribe(other, "k")

    assert.is_true(stream:unsubscribe(fn))
    stream:publish("k")

    assert.are.same({ 0, 1 }, { #got, #other_got })
  end)

  it("EVT-1 fixes the receivers when publishing starts", function()
    local stream = new_stream()
    local late, late_got = receiver()
    local gone, gone_got = receiver()
    stream:subscribe(function()
      stream:unsubscribe(gone, "k")
      stream:subscribe(late, "k")
    end, "k")
    stream:subscribe(gone, "k")

    stream:publish("k")
    assert.are.same({ 0, 1 }, { #late_got, #gone_got })

    stream:publish("k")
    assert.are.same({ 1, 1 }, { #late_got, #gone_got })
  end)

  it("EVT-1 reports a receiver that raises, with a traceback, and goes on with the rest", function()
    local stream, notes = new_stream()
    local fn, got = receiver()
    stream:subscribe(function() error("no luck") end, "k")
    stream:subscribe({ ref = "broken" }, "k")
    stream:subscribe(function() error(errors.new("Broken", "no disk")) end, "k")
    stream:subscribe(function() error() end, "k")
    stream:subscribe(fn, "k")

    stream:publish("k")

    assert.are.equal(1, #got)
    assert.are.equal(4, #notes.errors)
    local reason, kind = table.unpack(notes.errors[1])
    assert.are.equal("k", kind)
    assert.matches("^[^\n]*events_spec.lua:%d+: no luck\nstack traceback:\n", reason)
    assert.matches("\nstack traceback:\n\t[C]: in function 'error'\n", reason, 1, true)
    assert.matches("events_spec.lua:%d+: in function", reason)
    assert.matches("no mailbox\nstack traceback:", notes.errors[2][1], 1, true)
    assert.matches("^Broken: no disk\nstack traceback:", notes.errors[3][1])
    assert.matches("^nil\nstack traceback:", notes.errors[4][1])
  end)

  it("EVT-1 lets a receiver publish and subscribe", function()
    local stream = new_stream()
    local fn, got = receiver()
    stream:subscribe(fn, "second")
    stream:subscribe(function() stream:publish("second") end, "first")

    stream:publish("first")

    assert.are.same({ { kind = "second" } }, got)
  end)

  it("EVT-1 unsubscribes an actor that stopped", function()
    local stream, notes = new_stream()
    local ref, other = { ref = "a" }, { ref = "b" }
    for _, kind in ipairs { "k", "l" } do
      stream:subscribe(ref, kind)
      stream:subscribe(other, kind)
    end

    stream:remove(ref)
    stream:remove({ ref = "never subscribed" })
    stream:publish("k")
    stream:publish("l")

    assert.are.same({ { "b", { kind = "k" } }, { "b", { kind = "l" } } }, notes.told)
    assert.is_false(stream:unsubscribe(ref))
  end)

  it("EVT-1 keeps nothing of a receiver that left", function()
    local stream = new_stream()
    local left = setmetatable({}, { __mode = "k" })
    for _, leave in ipairs { stream.unsubscribe, stream.remove } do
      local ref = { ref = "a" }
      left[ref] = true
      stream:subscribe(ref, "k")
      stream:publish("l")
      leave(stream, ref)
    end

    collectgarbage()
    assert.is_nil(next(left))
  end)

  it("EVT-1 forgets a receiver in the same time, however many there are", function()
    local function cost(n, rounds)
      local seconds = 0
      for _ = 1, rounds do
        local stream = new_stream()
        local refs = {}
        for i = 1, n do
          refs[i] = { ref = "a" }
          stream:subscribe(refs[i], "k")
        end
        local began = os.clock()
        for i = n, 1, -1 do stream:remove(refs[i]) end
        seconds = seconds + os.clock() - began
      end
      return seconds
    end
    cost(1000, 1)

    local few, many = cost(1000, 10), cost(10000, 1)

    assert.is_true(many < 4 * few, ("%g s against %g s"):format(many, few))
  end)

  it("EVT-1 knows equal refs by their key", function()
    local stream, notes = new_stream(function(ref) return ref.ref end)
    stream:subscribe(function() end, "k")

    assert.is_true(stream:subscribe({ ref = "a" }, "k"))
    assert.is_false(stream:subscribe({ ref = "a" }, "k"))
    stream:remove({ ref = "a" })
    stream:publish("k")
    assert.are.same({}, notes.told)

    stream:subscribe({ ref = "a" }, "k")
    assert.is_true(stream:unsubscribe({ ref = "a" }, "k"))
    assert.are.same({}, notes.errors)
  end)

  it("EVT-1 tells its host which kinds anyone wants", function()
    local stream, notes = new_stream()
    local fn, other = receiver(), receiver()

    assert.is_false(stream:wants("k"))
    stream:subscribe(fn, "k")
    assert.is_true(stream:wants("k"))
    stream:subscribe(other, "k")
    stream:unsubscribe(fn, "k")
    assert.is_true(stream:wants("k"))
    stream:unsubscribe(other)
    assert.is_false(stream:wants("k"))
    stream:subscribe(fn, "k")
    stream:remove(fn)

    assert.are.same({ { "k", true }, { "k", false }, { "k", true }, { "k", false } },
      notes.interest)
  end)

  it("EVT-1 needs no host that cares", function()
    local stream = events.new { is_ref = function() return false end }
    local fn, got = receiver()
    stream:subscribe(fn, "k")
    stream:publish("k")
    stream:unsubscribe(fn)

    assert.are.equal(1, #got)
  end)
end)

describe("wrong use of the event stream", function()
  local stream = new_stream()
  local function fn() end

  local wrong_uses = {
    { "subscribe: target must be a function or a ref (got nil)", "subscribe", nil, "k" },
    { "subscribe: target must be a function or a ref (got a table)", "subscribe", {}, "k" },
    { "subscribe: kind must be a non-empty string (got nil)", "subscribe", fn },
    { 'subscribe: kind must be a non-empty string (got "")', "subscribe", fn, "" },
    { "unsubscribe: target must be a function or a ref (got 5)", "unsubscribe", 5 },
    { "unsubscribe: kind must be a non-empty string (got 5)", "unsubscribe", fn, 5 },
    { "publish: kind must be a non-empty string (got a function)", "publish", fn },
    { "publish: fields must be a table (got 5)", "publish", "k", 5 },
    { 'publish: fields must not hold "kind"', "publish", "k", { kind = "l" } },
  }

  for _, use in ipairs(wrong_uses) do
    local message, method, a, b = use[1], use[2], use[3], use[4]
    it("ERR-2 raises at the caller's line: " .. message, function()
      local line
      local ok, err = pcall(function()
        line = debug.getinfo(1, "l").currentline; stream[method](stream, a, b)
      end)

      assert.is_false(ok)
      assert.are.equal("OptionsError", err.name)
      assert.matches(("events_spec.lua:%d: %s"):format(line, message), err.message, 1, true)
    end)
  end
end)
