local check = require "troupe.check"
local errors = require "troupe.errors"

-- What the function raises, an OptionsError, without its position.
local function message_of(fn, ...)
  local ok, err = pcall(fn, ...)
  assert.is_false(ok)
  assert.is_true(errors.is(err, "OptionsError"))
  return (err.message:gsub("^[^ ]*:%d+: ", ""))
end

local function refusal(rule, value)
  return message_of(check.argument, "f", "x", value, rule)
end

local function taken(rule, value)
  return check.argument("f", "x", value, rule)
end

describe("the message of a refusal", function()
  it("SPAWN-3 says where, what, what it must be, and what it got", function()
    local rule = check.integer { min = 1 }

    assert.are.equal("Router.round_robin: size must be an integer of at least 1 (got 0)",
      message_of(check.argument, "Router.round_robin", "size", 0, rule))
    assert.are.equal("ask: timeout_ms must be a positive finite number (got nan)",
      message_of(check.argument, "ask", "timeout_ms", 0 / 0, check.duration()))
  end)

  it("SPAWN-3 names an unknown option and the known ones, sorted", function()
    local schema = { supervisor_strategy = check.any(), mailbox = check.any() }

    assert.are.equal('spawn: unknown option "capcity" (known: mailbox, supervisor_strategy)',
      message_of(check.options, "spawn", { capcity = 5 }, schema))
    assert.are.equal("spawn: unknown option 1 (known: mailbox, supervisor_strategy)",
      message_of(check.options, "spawn", { "mailbox" }, schema))
    assert.are.equal("spawn: unknown option true (known: none)",
      message_of(check.options, "spawn", { [true] = 1 }, {}))

    local many = {}
    for name in ("hgfedcba"):gmatch(".") do many[name] = check.any() end
    assert.are.equal("f: unknown option 1 (known: a, b, c, d, e, f, g, h)",
      message_of(check.options, "f", { 1 }, many))
  end)

  it("SPAWN-3 names the option that is wrong", function()
    local schema = { throughput = check.integer { min = 1, default = 32 } }

    assert.are.equal("spawn: throughput must be an integer of at least 1 (got 0.5)",
      message_of(check.options, "spawn", { throughput = 0.5 }, schema))
  end)

  it("SPAWN-3 refuses options that are no table", function()
    assert.are.equal("spawn: options must be a table (got 5)",
      message_of(check.options, "spawn", 5, {}))
    assert.are.equal("spawn: options must be a table (got false)",
      message_of(check.options, "spawn", false, {}))
  end)

  it("SPAWN-3 shows what was given in a few words", function()
    local shown = {
      { 0 / 0, "nan" }, { -(0 / 0), "nan" }, { 1 / 0, "inf" }, { -1 / 0, "-inf" },
      { 3, "3" }, { 3.0, "3.0" }, { true, "true" }, { "a\nb", '"a\\x0ab"' },
      { ("x"):rep(100), '"' .. ("x"):rep(64) .. '"...' },
      { {}, "a table" }, { print, "a function" }, { coroutine.create(print), "a thread" },
      { io.stderr, "a FILE*" },
      { setmetatable({}, { __name = "troupe.Thing" }), "a troupe.Thing" },
      { setmetatable({}, { __name = 5 }), "a table" },
      { setmetatable({}, { __metatable = "locked" }), "a table" },
      { setmetatable({}, { __tostring = function() error("no") end }), "a table" },
      { errors.new("Broken", "no\ndisk"), '"Broken: no\\x0adisk"' },
    }
    for _, case in ipairs(shown) do assert.are.equal(case[2], check.show(case[1])) end
    assert.are.equal("nil", check.show(nil))
  end)
end)

describe("the line of a refusal", function()
  local function line_of(fn)
    local ok, err = pcall(fn)
    assert.is_false(ok)
    return tonumber(err.message:match("^[^ ]*check_spec%.lua:(%d+): "))
  end

  local schema = {
    size = check.integer(),
    mailbox = check.record { capacity = check.integer() },
  }

  -- Public functions, as other modules write them.
  local function takes_argument(size) check.argument("f", "size", size, check.integer()) end
  local function takes_options(options) check.options("f", options, schema) end
  local function fails() check.fail("f", "wrong") end
  local function deep_argument(size)
    (function() check.argument("f", "size", size, check.integer(), 3) end)()
  end
  local function deep_options(options)
    (function() check.options("f", options, schema, 3) end)()
  end
  local function deep_fail()
    (function() check.fail("f", "wrong", 3) end)()
  end

  local wrong_uses = {
    { "an argument", takes_argument, 0.5 },
    { "a missing argument", takes_argument, nil },
    { "an option", takes_options, { size = 0.5 } },
    { "an unknown option", takes_options, { sise = 1 } },
    { "an option within an option", takes_options, { mailbox = { capacity = 0.5 } } },
    { "an unknown option within an option", takes_options, { mailbox = { size = 1 } } },
    { "options that are no table", takes_options, 5 },
    { "what no rule covers", fails },
    { "an argument, one function deeper", deep_argument, 0.5 },
    { "an option, one function deeper", deep_options, { size = 0.5 } },
    { "options that are no table, one function deeper", deep_options, 5 },
    { "what no rule covers, one function deeper", deep_fail },
  }

  for _, use in ipairs(wrong_uses) do
    local title, fn, value = use[1], use[2], use[3]
    it("ERR-2 is the user's for " .. title, function()
      local line
      local found = line_of(function()
        line = debug.getinfo(1, "l").currentline; fn(value)
      end)
      assert.are.equal(line, found)
    end)
  end
end)

describe("options", function()
  local schema = {
    throughput = check.integer { min = 1, default = 32 },
    verbose = check.boolean { default = true },
    name = check.string(),
  }

  it("SPAWN-3 are read into a fresh table, with defaults", function()
    local given = { throughput = 8, name = "a" }
    local values = check.options("spawn", given, schema)
    given.throughput = 9

    assert.are.same({ throughput = 8, verbose = true, name = "a" }, values)
  end)

  it("SPAWN-3 may be left out", function()
    assert.are.same({ throughput = 32, verbose = true }, check.options("spawn", nil, schema))
  end)

  it("SPAWN-3 may be false, which is no default", function()
    assert.is_false(check.options("spawn", { verbose = false }, schema).verbose)
  end)

  it("SPAWN-3 must be given where they are required", function()
    local needed = { hash_key = check.func { required = true } }

    assert.are.equal("Router.consistent_hashing: hash_key must be a function (got nil)",
      message_of(check.options, "Router.consistent_hashing", nil, needed))
  end)

  it("SPAWN-3 may hold options of their own, read into a fresh table too", function()
    local nested = {
      mailbox = check.record { capacity = check.integer { min = 1 }, overflow = check.any() },
    }
    local given = { mailbox = { capacity = 3.0 } }
    local values = check.options("spawn", given, nested)

    assert.are.same({ mailbox = { capacity = 3 } }, values)
    assert.are_not.equal(given.mailbox, values.mailbox)
    assert.are.same({}, check.options("spawn", {}, nested))
    assert.are.equal("spawn: mailbox.capacity must be an integer of at least 1 (got 0)",
      message_of(check.options, "spawn", { mailbox = { capacity = 0 } }, nested))
    assert.are.equal(
      'spawn: unknown option "mailbox.size" (known: mailbox.capacity, mailbox.overflow)',
      message_of(check.options, "spawn", { mailbox = { size = 0 } }, nested))
    assert.are.equal("spawn: mailbox must be a table (got 5)",
      message_of(check.options, "spawn", { mailbox = 5 }, nested))
  end)

  it("SPAWN-3 are read without their metamethods", function()
    local given = setmetatable({}, {
      __index = function() error("read") end,
      __pairs = function() error("read") end,
    })

    assert.are.same({ throughput = 32, verbose = true }, check.options("spawn", given, schema))
  end)
end)

describe("an argument", function()
  it("ERR-2 takes its rule's default for nil, and has to be given without one", function()
    assert.are.equal(5000, taken(check.duration { default = 5000 }, nil))
    assert.is_false(taken(check.boolean { default = false }, nil))
    assert.are.equal("f: x must be a boolean (got nil)", refusal(check.boolean(), nil))
  end)
end)

describe("a rule", function()
  it("SPAWN-3 takes integers, converts integral floats, and knows a range", function()
    assert.are.equal("integer", math.type(taken(check.integer(), 3.0)))
    assert.are.equal(3, taken(check.integer(), 3.0))
    assert.are.equal(-5, taken(check.integer(), -5))
    assert.are.equal("f: x must be an integer (got 0.5)", refusal(check.integer(), 0.5))
    assert.are.equal('f: x must be an integer (got "3")', refusal(check.integer(), "3"))
    assert.are.equal("f: x must be an integer (got inf)", refusal(check.integer(), math.huge))
    assert.are.equal("f: x must be an integer (got a table)", refusal(check.integer(), {}))

    local digit = check.integer { min = 0, max = 9 }
    assert.are.equal(0, taken(digit, 0))
    assert.are.equal(9, taken(digit, 9))
    assert.are.equal("f: x must be an integer from 0 to 9 (got 10)", refusal(digit, 10))
    assert.are.equal("f: x must be an integer from 0 to 9 (got -1)", refusal(digit, -1))
    local few = check.integer { max = 9 }
    assert.are.equal("f: x must be an integer of at most 9 (got 10)", refusal(few, 10))
  end)

  it("SPAWN-3 takes finite numbers, and knows a range", function()
    assert.are.equal(0.5, taken(check.number(), 0.5))
    assert.are.equal(-1, taken(check.number(), -1))
    assert.are.equal("f: x must be a finite number (got nan)", refusal(check.number(), 0 / 0))
    assert.are.equal("f: x must be a finite number (got inf)", refusal(check.number(), 1 / 0))
    assert.are.equal("f: x must be a finite number (got -inf)", refusal(check.number(), -1 / 0))
    assert.are.equal('f: x must be a finite number (got "1")', refusal(check.number(), "1"))

    local share = check.number { positive = true, max = 1 }
    assert.are.equal(1, taken(share, 1))
    local expected = "f: x must be a positive finite number of at most 1 "
    assert.are.equal(expected .. "(got 0)", refusal(share, 0))
    assert.are.equal(expected .. "(got 2)", refusal(share, 2))
    local factor = check.number { min = 0 }
    assert.are.equal(0, taken(factor, 0))
    assert.are.equal("f: x must be a finite number of at least 0 (got -0.5)", refusal(factor, -0.5))
  end)

  it("SPAWN-3 takes time spans of any length, and 0 where it means something", function()
    for _, ms in ipairs { 1, 0.5, 2 ^ 31, 2 ^ 53 + 2, 1e15, 1e300, math.maxinteger } do
      assert.are.equal(ms, taken(check.duration(), ms))
      assert.are.equal(ms, taken(check.duration { zero = true }, ms))
    end
    assert.are.equal(0, taken(check.duration { zero = true }, 0))
    for _, ms in ipairs { 0, -1, 1 / 0, -1 / 0 } do
      assert.matches("^f: x must be a positive finite number %(got ", refusal(check.duration(), ms))
    end
    for _, ms in ipairs { -1, 1 / 0, -1 / 0, 0 / 0 } do
      assert.matches("^f: x must be a finite number of at least 0 %(got ",
        refusal(check.duration { zero = true }, ms))
    end
  end)

  it("SPAWN-3 hands on default and required from a time span", function()
    local rule = check.duration { default = 4500, required = true }

    assert.are.equal(4500, rule.default)
    assert.is_true(rule.required)
  end)

  it("SPAWN-3 takes booleans, strings, tables and anything", function()
    assert.is_false(taken(check.boolean(), false))
    assert.are.equal("f: x must be a boolean (got 0)", refusal(check.boolean(), 0))
    assert.are.equal("a", taken(check.string(), "a"))
    assert.are.equal('f: x must be a non-empty string (got "")', refusal(check.string(), ""))
    assert.are.equal("f: x must be a non-empty string (got 5)", refusal(check.string(), 5))
    local given = {}
    assert.are.equal(given, taken(check.table(), given))
    assert.are.equal("f: x must be a table (got a function)", refusal(check.table(), print))
    assert.is_false(taken(check.any(), false))
    assert.are.equal("f: x must be a value (got nil)", refusal(check.any(), nil))
  end)

  it("SPAWN-3 takes one of some strings", function()
    local rule = check.one_of { "drop-head", "reject", default = "drop-head" }

    assert.are.equal("reject", taken(rule, "reject"))
    assert.are.equal("drop-head", taken(rule, nil))
    local expected = 'f: x must be one of "drop-head", "reject" '
    assert.are.equal(expected .. '(got "drop")', refusal(rule, "drop"))
    assert.are.equal(expected .. "(got 1)", refusal(rule, 1))
  end)

  it("SPAWN-3 takes functions, and what can be called like one", function()
    local callable = setmetatable({}, { __call = print })

    assert.are.equal(print, taken(check.func(), print))
    assert.are.equal(callable, taken(check.func(), callable))
    assert.are.equal("f: x must be a function (got a table)", refusal(check.func(), {}))
    assert.are.equal('f: x must be a function (got "print")', refusal(check.func(), "print"))
    assert.are.equal("f: x must be a function (got a table)",
      refusal(check.func(), setmetatable({}, {})))
  end)
end)
