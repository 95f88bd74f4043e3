local errors = require "troupe.errors"

-- The error that the function raises.
local function raised(fn, ...)
  local ok, reason = pcall(fn, ...)
  assert.is_false(ok)
  return reason
end

describe("error values", function()
  it("ERR-1 hold a name, a message and the fields they were given", function()
    local cause = { "any table" }
    local err = errors.new("Broken", "no disk", { disk = "sda", cause = cause, [1] = "first" })

    assert.are.equal("Broken", err.name)
    assert.are.equal("no disk", err.message)
    assert.are.equal("sda", err.disk)
    assert.are.equal(cause, err.cause)
    assert.are.equal("first", err[1])
  end)

  it("ERR-1 copy their fields, so that later changes change nothing", function()
    local fields = { disk = "sda" }
    local err = errors.new("Broken", "no disk", fields)
    fields.disk = "sdb"

    assert.are.equal("sda", err.disk)
    assert.is_nil(fields.name)
    assert.is_nil(getmetatable(fields))

    local inherited = setmetatable({ disk = "sda" }, { __index = { name = "n", size = 5 } })
    err = errors.new("Broken", "no disk", inherited)
    assert.are.equal("sda", err.disk)
    assert.is_nil(err.size)
  end)

  it("ERR-1 render as name and message", function()
    assert.are.equal("Broken: no disk", tostring(errors.new("Broken", "no disk")))
    assert.are.equal("Broken: ", tostring(errors.new("Broken", "")))
  end)

  it("ERR-1 share a metatable that C can compare and that adds no fields", function()
    local err = errors.new("Broken", "no disk")

    assert.are.equal(errors.Error, getmetatable(err))
    assert.are.equal("troupe.Error", errors.Error.__name)
    assert.is_nil(errors.Error.__index)
    assert.is_nil(errors.Error.__metatable)
  end)

  it("ERR-1 render whatever became of their name and message", function()
    local err = errors.new("Broken", "no disk")
    local raising = setmetatable({}, { __tostring = function() error("no") end })
    for _, rubbish in ipairs { raising, err, {}, print, 0 / 0, false } do
      err.name, err.message = rubbish, rubbish
      assert.is_string(tostring(err))
    end
    err.name, err.message = nil, nil
    assert.are.equal("nil: nil", tostring(err))
    err.name, err.message = raising, err
    assert.are.equal("a table: a troupe.Error", tostring(err))
  end)

  it("ERR-1 are told from other values, by name if wanted", function()
    local err = errors.new("Broken", "no disk")

    assert.is_true(errors.is(err))
    assert.is_true(errors.is(err, "Broken"))
    assert.is_false(errors.is(err, "AskTimeoutError"))
    for _, other in ipairs { "Broken: no disk", 1, { name = "Broken", message = "" }, print } do
      assert.is_false(errors.is(other))
      assert.is_false(errors.is(other, "Broken"))
    end
    assert.is_false(errors.is(nil))
  end)

  it("ERR-1 are not to be had without a name and a message", function()
    local nameless = raised(function() errors.new("", "no disk") end)
    assert.matches('error: name must be a non-empty string (got "")', nameless.message, 1, true)
    local numbered = raised(function() errors.new(5, "no disk") end)
    assert.matches("error: name must be a non-empty string (got 5)", numbered.message, 1, true)
    local silent = raised(function() errors.new("Broken") end)
    assert.matches("error: message must be a string (got nil)", silent.message, 1, true)
  end)

  it("ERR-1 take no fields that would hide the name or the message", function()
    local name = raised(function() errors.new("Broken", "", { name = false }) end)
    assert.matches('error: fields must not hold "name"', name.message, 1, true)
    local message = raised(function() errors.new("Broken", "", { message = "m" }) end)
    assert.matches('error: fields must not hold "message"', message.message, 1, true)
    local text = raised(function() errors.new("Broken", "", "fields") end)
    assert.matches('error: fields must be a table (got "fields")', text.message, 1, true)
  end)
end)

describe("wrong use", function()
  it("ERR-2 raises an OptionsError whose message begins with the caller's line", function()
    local wrong_uses = { { 5, "m" }, { "N", 5 }, { "N", "m", 5 }, { "N", "m", { name = 1 } } }
    for _, wrong in ipairs(wrong_uses) do
      local line
      local err = raised(function()
        line = debug.getinfo(1, "l").currentline; errors.new(table.unpack(wrong))
      end)
      assert.is_true(errors.is(err, "OptionsError"))
      assert.matches(("errors_spec.lua:%d: error: "):format(line), err.message, 1, true)
    end
  end)

  it("ERR-2 counts levels as error does", function()
    local function misuse(level) errors.misuse("wrong", level) end
    local function plain(level) error("wrong", level) end
    local function position(fn, level)
      local reason = raised(function() fn(level) end)
      return (type(reason) == "string" and reason or reason.message):match(":(%d+): wrong$")
    end

    assert.are.equal(1, position(plain, 1) - position(misuse, 1))
    assert.are.equal(position(plain, 2), position(misuse, 2))
  end)

  it("ERR-2 names the first line of a file too", function()
    local chunk = load("require('troupe.errors').new()", "@first.lua")

    assert.matches("^first.lua:1: error: ", raised(chunk).message)
  end)

  it("ERR-2 names no line where there is none", function()
    local message = "error: name must be a non-empty string (got nil)"
    local _, in_coroutine = coroutine.resume(coroutine.create(errors.new))

    assert.are.equal(message, raised(errors.new).message)
    assert.are.equal(message, in_coroutine.message)
  end)
end)
