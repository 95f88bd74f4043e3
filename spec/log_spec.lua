local errors = require "troupe.errors"
local log = require "troupe.log"
local path = require "troupe.path"

local SYSTEM = "troupe://demo/"
local WORKER = "troupe://demo/user/a"

local function clock() return 1767323045.678 end

-- A log that keeps its records, at level debug, a logger of it, and the records.
local function new_log(level)
  local records = {}
  local own = log.new(SYSTEM, clock, {
    level = level or "debug",
    sink = function(record) table.insert(records, record) end,
  })
  return own, own:logger(WORKER), records
end

-- What is written to stderr while fn runs.
local function stderr_of(fn)
  local real, written = io.stderr, {}
  io.stderr = { write = function(_, text) table.insert(written, text) end } -- luacheck: ignore 122
  local ok, reason = pcall(fn)
  io.stderr = real -- luacheck: ignore 122
  assert(ok, reason)
  return table.concat(written)
end

local function line_of(sink, message, fields)
  return stderr_of(function()
    log.new(SYSTEM, clock, { sink = sink }):write("info", WORKER, message, fields)
  end)
end

describe("a log", function()
  it("LOG-1 hands records to a function, with time, level, path, message and fields", function()
    local _, logger, records = new_log()

    logger:warn("late")
    logger:info("done", { k = 5 })

    assert.are.same({
      { time = clock(), level = "warn", path = WORKER, message = "late", fields = {} },
      { time = clock(), level = "info", path = WORKER, message = "done", fields = { k = 5 } },
    }, records)
  end)

  it("LOG-1 copies the fields", function()
    local _, logger, records = new_log()
    local fields = { k = 5 }

    logger:info("done", fields)
    fields.k = 6

    assert.are.equal(5, records[1].fields.k)
  end)

  it("LOG-1 writes from its level on", function()
    local order = { "debug", "info", "warn", "error" }
    for rank, level in ipairs(order) do
      local own, logger, records = new_log(level)
      for _, each in ipairs(order) do logger[each](logger, each) end

      assert.are.equal(#order - rank + 1, #records)
      assert.are.equal(level, records[1].level)
      for each_rank, each in ipairs(order) do
        assert.are.equal(each_rank >= rank, own:enabled(each))
      end
    end
  end)

  it("LOG-1 writes nothing when it is off", function()
    local own, logger, records = new_log("off")

    logger:error("lost")
    own:write("error", WORKER, "lost")

    assert.is_false(own:enabled("error"))
    assert.are.same({}, records)
  end)

  it("LOG-1 begins at info", function()
    local own = log.new(SYSTEM, clock)

    assert.is_true(own:enabled("info"))
    assert.is_false(own:enabled("debug"))
  end)

  it("LOG-1 changes its level while it runs", function()
    local own, logger, records = new_log("error")

    own:set_level("info")
    logger:info("seen")
    logger:debug("not seen")
    own:set_level("off")
    logger:error("not seen")

    assert.are.equal(1, #records)
  end)

  it("LOG-1 logs for the system itself, and for paths that are values", function()
    local own, _, records = new_log()

    own:info("up %d", 1)
    own:write("info", path.of(WORKER), 5)

    assert.are.same({ SYSTEM, "up 1" }, { records[1].path, records[1].message })
    assert.are.same({ WORKER, "5" }, { records[2].path, records[2].message })
  end)

  it("LOG-1 keeps a sink that raises from the actor, and reports it once", function()
    local count = 0
    local own = log.new(SYSTEM, clock, { sink = function()
      count = count + 1
      error(errors.new("Full", "no\nspace"))
    end })

    local written = stderr_of(function()
      own:logger(WORKER):info("one")
      own:logger(WORKER):info("two")
    end)

    assert.are.equal(2, count)
    assert.are.equal("troupe: the log sink of troupe://demo/ failed, and is not reported again: "
      .. "Full: no\\x0aspace\n", written)
  end)

  it("LOG-1 survives a stderr that raises", function()
    local real = io.stderr
    io.stderr = { write = function() error("closed") end } -- luacheck: ignore 122
    local ok = pcall(function() log.new(SYSTEM, clock):info("lost") end)
    io.stderr = real -- luacheck: ignore 122

    assert.is_true(ok)
  end)

  it("LOG-1 survives a sink that logs", function()
    local own
    own = log.new(SYSTEM, clock, { sink = function() own:info("again") end })

    stderr_of(function() own:info("once") end)
  end)
end)

describe("wrong use of a log", function()
  local own = new_log()
  local wrong_uses = {
    { 'log.new: level must be one of "debug", "info", "warn", "error", "off" (got "loud")',
      function() log.new(SYSTEM, clock, { level = "loud" }) end },
    { 'log.new: sink must be "text", "json" or a function (got "xml")',
      function() log.new(SYSTEM, clock, { sink = "xml" }) end },
    { 'log:set_level: level must be one of "debug", "info", "warn", "error", "off" (got nil)',
      function() own:set_level() end },
    { 'log:enabled: level must be one of "debug", "info", "warn", "error" (got "off")',
      function() own:enabled("off") end },
    { 'log:write: level must be one of "debug", "info", "warn", "error" (got "loud")',
      function() own:write("loud", WORKER, "m") end },
  }

  for _, use in ipairs(wrong_uses) do
    local message, fn = use[1], use[2]
    it("ERR-2 raises at the caller's line: " .. message, function()
      local ok, err = pcall(fn)

      assert.is_false(ok)
      assert.are.equal("OptionsError", err.name)
      local line = debug.getinfo(fn, "S").linedefined
      assert.matches(("log_spec.lua:%d: %s"):format(line, message), err.message, 1, true)
    end)
  end
end)

describe("a logger", function()
  -- The message and the fields that a call gives.
  local function logged(...)
    local _, logger, records = new_log()
    logger:info(...)
    return records[1].message, records[1].fields
  end

  it("LOG-2 formats its arguments and takes fields after them", function()
    local message, fields = logged("worked on %s, %05.1f%% in %d", "x", 99.5, 3, { k = "v" })

    assert.are.equal("worked on x, 099.5% in 3", message)
    assert.are.same({ k = "v" }, fields)
  end)

  it("LOG-2 has a method for each level", function()
    local _, logger, records = new_log()
    for _, level in ipairs { "debug", "info", "warn", "error" } do
      logger[level](logger, "%s", level)
      assert.are.same({ level, level },
        { records[#records].level, records[#records].message })
    end
  end)

  it("LOG-2 formats a table where the format takes it", function()
    local thing = setmetatable({}, { __tostring = function() return "thing" end })
    local message, fields = logged("%s", thing)
    assert.are.equal("thing", message)
    assert.are.same({}, fields)

    local plain_message, plain_fields = logged("%s", { k = "v" })
    assert.matches("^table: ", plain_message)
    assert.are.same({}, plain_fields)
  end)

  it("LOG-2 counts no %% as an argument", function()
    local message, fields = logged("100%% of %%%d%%", 5, { k = "v" })

    assert.are.equal("100% of %5%", message)
    assert.are.same({ k = "v" }, fields)
  end)

  it("LOG-2 appends what the format does not take", function()
    assert.are.equal("count 5 nil false", (logged("count", 5, nil, false)))
    local message, fields = logged("count %d", 5, { k = "v" }, "more")
    assert.are.equal("count 5 more", message)
    assert.are.same({ k = "v" }, fields)
    local late_message, late_fields = logged("count", 5, { k = "v" })
    assert.matches("^count 5 table: ", late_message)
    assert.are.same({}, late_fields)
  end)

  it("LOG-2 appends an error value, a path and the like, which are no fields", function()
    local message, fields = logged("no luck:", errors.new("Broken", "no disk"), { k = "v" })

    assert.matches("^no luck: Broken: no disk table: ", message)
    assert.are.same({}, fields)
  end)

  it("LOG-2 takes nil for no fields", function()
    local message, fields = logged("worked on %s", "x", nil)

    assert.are.equal("worked on x", message)
    assert.are.same({}, fields)
  end)

  it("LOG-2 never raises for a bad format, and loses nothing", function()
    local raising = setmetatable({}, { __tostring = function() error("no") end })

    assert.are.equal("worked on %d x", (logged("worked on %d", "x")))
    assert.are.equal("%d and %d 1", (logged("%d and %d", 1)))
    assert.are.equal("100% done", (logged("100% done")))
    assert.are.equal("50% or 5 6", (logged("50% or", 5, 6)))
    assert.are.equal("%y", (logged("%y")))
    assert.are.equal("%s (a table that cannot be shown)", (logged("%s", raising)))
    assert.are.equal("%d nil", (logged("%d", nil)))
    local message, fields = logged("worked on %d", "x", { k = "v" })
    assert.are.equal("worked on %d x", message)
    assert.are.same({ k = "v" }, fields)
  end)

  it("LOG-2 logs any value", function()
    local raising = setmetatable({}, { __tostring = function() error("no") end })
    local unnamed = setmetatable({}, { __tostring = function() return {} end })

    assert.are.equal("nil", (logged(nil)))
    assert.are.equal("5.5", (logged(5.5)))
    assert.are.equal("true", (logged(true)))
    assert.are.equal("Broken: 100%s", (logged(errors.new("Broken", "100%s"))))
    assert.are.equal("(a table that cannot be shown)", (logged(raising)))
    assert.are.equal("(a table that cannot be shown)", (logged(unnamed)))
    local message, fields = logged(errors.new("Broken", "no disk"), { k = "v" })
    assert.are.equal("Broken: no disk", message)
    assert.are.same({ k = "v" }, fields)
  end)

  it("LOG-2 formats nothing when its level is off", function()
    local _, logger, records = new_log("info")
    local formatted = 0
    local thing = setmetatable({}, { __tostring = function()
      formatted = formatted + 1
      return "thing"
    end })

    logger:debug("%s", thing)
    logger:debug(thing)

    assert.are.equal(0, formatted)
    assert.are.same({}, records)
  end)
end)

describe("a line of text", function()
  it("LOG-1 holds the time in UTC, level, path, message and sorted fields", function()
    assert.are.equal("2026-01-02T03:04:05.678Z INFO troupe://demo/user/a worked on 3 {a=1, k=v}\n",
      line_of("text", "worked on 3", { k = "v", a = 1 }))
    assert.are.equal("2026-01-02T03:04:05.678Z INFO troupe://demo/user/a done\n",
      line_of(nil, "done"))
  end)

  local function time_in_line(seconds)
    return stderr_of(function()
      log.new(SYSTEM, function() return seconds end):info("m")
    end):match("^[^ ]+")
  end

  it("LOG-1 has the right date on every day, also around leap days", function()
    local DAY = 24 * 60 * 60
    local ranges = {
      { year = 2000, days = 1500 }, { year = 2100, days = 100 }, { year = 2400, days = 100 },
    }
    for _, range in ipairs(ranges) do
      local first = os.time { year = range.year, month = 1, day = 1, hour = 12 }
      for seconds = first, first + range.days * DAY, DAY do
        assert.are.equal(os.date("!%Y-%m-%dT%H:%M:%S.000Z", seconds), time_in_line(seconds))
      end
    end
  end)

  it("LOG-1 has the time to the millisecond, also before 1970", function()
    assert.are.equal("1970-01-01T00:00:00.000Z", time_in_line(0))
    assert.are.equal("1969-12-31T23:59:59.999Z", time_in_line(-0.001))
    assert.are.equal("2024-12-31T23:59:59.500Z", time_in_line(1735689599.5))
    assert.are.equal("2100-03-01T00:00:00.000Z", time_in_line(4107542399.9996))
  end)

  it("LOG-1 is one line whatever it holds", function()
    local line = line_of("text", "a\nb\27[0m\xff ü", { ["k\n"] = "v\nw", p = "\xff" })

    assert.are.equal('2026-01-02T03:04:05.678Z INFO troupe://demo/user/a '
      .. 'a\\x0ab\\x1b[0m\\xff ü {k\\x0a="v\\x0aw", p="\\xff"}\n', line)
  end)

  it("LOG-1 quotes values that could be taken for something else", function()
    local raising = setmetatable({}, { __tostring = function() error("no") end })
    local fields = { a = "x y", b = "", c = 'a"b\\', d = "x, k=v", e = true, f = 1.5, g = raising,
      h = "troupe://demo/user/a", i = "{" }

    assert.matches([[ m {a="x y", b="", c="a\"b\\", d="x, k=v", e=true, f=1.5, ]]
      .. [[g="(a table that cannot be shown)", h=troupe://demo/user/a, i="{"}]],
      line_of("text", "m", fields), 1, true)
  end)

  it("LOG-1 is followed by the traceback, indented", function()
    local traceback = "no luck\nstack traceback:\n\t[C]: in ?\27"

    assert.are.equal("2026-01-02T03:04:05.678Z INFO troupe://demo/user/a failed {k=v}\n"
      .. "    no luck\n    stack traceback:\n      [C]: in ?\\x1b\n",
      line_of("text", "failed", { k = "v", traceback = traceback }))
    assert.are.equal("2026-01-02T03:04:05.678Z INFO troupe://demo/user/a failed\n    no luck\n",
      line_of("text", "failed", { traceback = "no luck" }))
  end)

  it("LOG-1 is written at once, so that lines of several writers do not mix", function()
    local writes = 0
    local real = io.stderr
    io.stderr = { write = function() writes = writes + 1 end } -- luacheck: ignore 122
    log.new(SYSTEM, clock):info("m", { k = "v", traceback = "a\nb" })
    io.stderr = real -- luacheck: ignore 122

    assert.are.equal(1, writes)
  end)
end)

describe("a line of JSON", function()
  it("LOG-1 holds the record as an object", function()
    assert.are.equal('{"time":"2026-01-02T03:04:05.678Z","level":"info",'
      .. '"path":"troupe://demo/user/a","message":"done","fields":{"a":1,"k":"v"}}\n',
      line_of("json", "done", { k = "v", a = 1 }))
    assert.are.equal('{"time":"2026-01-02T03:04:05.678Z","level":"info",'
      .. '"path":"troupe://demo/user/a","message":"done"}\n', line_of("json", "done"))
  end)

  it("LOG-1 escapes strings", function()
    assert.matches([["message":"a\"b\\c\u000ad\u0000\u001f]] .. "ü\u{fffd}\u{fffd}z\"",
      line_of("json", 'a"b\\c\nd\0\31ü\xff\xc3z'), 1, true)
    assert.matches([["fields":{"k\"\u0009":"v"}]],
      line_of("json", "m", { ['k"\t'] = "v" }), 1, true)
    assert.matches([["fields":{"traceback":"a\u000ab"}]],
      line_of("json", "m", { traceback = "a\nb" }), 1, true)
  end)

  it("LOG-1 writes numbers without loss, and as text what JSON cannot hold", function()
    local fields = { a = 0.1, b = 0 / 0, c = 1 / 0, d = -1 / 0, e = math.mininteger, f = 3.0,
      g = 0.1 + 0.2, h = 1e300, i = 2 ^ 53 }

    assert.matches('"fields":{"a":0.1,"b":"nan","c":"inf","d":"-inf","e":-9223372036854775808,'
      .. '"f":3,"g":0.30000000000000004,"h":1e+300,"i":9007199254740992}',
      line_of("json", "m", fields), 1, true)
  end)

  it("LOG-1 writes booleans, and the text of any other value", function()
    local raising = setmetatable({}, { __tostring = function() error("no") end })
    local broken = errors.new("Broken", "no disk")
    local fields = { a = true, b = false, c = broken, d = raising, [5] = 1 }

    assert.matches('"fields":{"5":1,"a":true,"b":false,"c":"Broken: no disk",'
      .. '"d":"(a table that cannot be shown)"}', line_of("json", "m", fields), 1, true)
  end)
end)
