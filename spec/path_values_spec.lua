local path = require "troupe.path"

describe("a path", function()
  it("PATH-1 renders as its text", function()
    assert.are.equal("troupe://demo/user/a/b", tostring(path.of("troupe://demo/user/a/b")))
    assert.are.equal("troupe://demo/", tostring(path.of("troupe://demo/")))
  end)

  it("PATH-2 tells its name, system and elements", function()
    local p = path.of("troupe://demo/user/a b/routee-1")

    assert.are.equal("routee-1", p.name)
    assert.are.equal("demo", p.system)
    assert.are.same({ "user", "a b", "routee-1" }, p.elements)
  end)

  it("PATH-2 leads from parent to parent up to the root, which has none", function()
    local p = path.of("troupe://demo/user/a")

    assert.are.equal("troupe://demo/user", tostring(p.parent))
    assert.are.equal("user", p.parent.name)
    assert.are.equal("troupe://demo/", tostring(p.parent.parent))
    assert.is_nil(p.parent.parent.parent)
  end)

  it("PATH-2 of the root has no name and no elements", function()
    local root = path.of("troupe://demo/")

    assert.are.equal("", root.name)
    assert.are.same({}, root.elements)
    assert.are.equal("demo", root.system)
  end)

  it("PATH-2 equals paths with the same text, and nothing else", function()
    local p = path.of("troupe://demo/user/a")

    assert.is_true(p == path.of("troupe://demo/user/a"))
    assert.is_true(p.parent == path.of("troupe://demo/user"))
    assert.is_false(p == path.of("troupe://demo/user/b"))
    assert.is_false(p == path.of("troupe://other/user/a"))
    assert.is_false(p == "troupe://demo/user/a")
    assert.is_false(p == {})
    assert.is_false({} == p)
    local raising = setmetatable({}, { __index = function() error("read") end })
    assert.is_false(p == raising)
    assert.is_false(raising == p)
  end)

  it("PATH-2 is read-only, and says so at the caller's line", function()
    local p = path.of("troupe://demo/user/a")
    for _, field in ipairs { "name", "parent", "colour", 1 } do
      local line
      local ok, err = pcall(function()
        line = debug.getinfo(1, "l").currentline; p[field] = "b"
      end)
      assert.is_false(ok)
      assert.matches(("path_values_spec.lua:%d: a path is read-only (assigning %s)"):format(line,
        type(field) == "string" and '"' .. field .. '"' or field), err.message, 1, true)
    end
    assert.are.equal("troupe://demo/user/a", tostring(p))
  end)

  it("PATH-2 cannot be changed through its elements", function()
    local p = path.of("troupe://demo/user/a")
    p.elements[1] = "system"

    assert.are.same({ "user", "a" }, p.elements)
  end)

  it("PATH-2 has no other fields", function()
    assert.is_nil(path.of("troupe://demo/user/a").nam)
    assert.is_nil(path.of("troupe://demo/user/a")[1])
  end)
end)

describe("the name of an actor", function()
  local function refused(name)
    local ok, reason = path.check_name(name)
    assert.is_nil(ok)
    return reason
  end

  it("PATH-3 may hold spaces, #, dots, $ and any character of UTF-8", function()
    for _, name in ipairs { "a", "a b", "#1", "...", ".a", "a.", "a$", "-", "grüße", "日本", " ",
      "\u{80}", "\u{10ffff}", "~", "routee-1" } do
      assert.are.same({ true }, { path.check_name(name) })
    end
  end)

  it("PATH-3 must not be empty, one dot or two", function()
    assert.are.equal("must not be empty", refused(""))
    assert.are.equal('must not be "." or ".."', refused("."))
    assert.are.equal('must not be "." or ".."', refused(".."))
  end)

  it("PATH-3 must not hold what a path or a pattern is made of", function()
    assert.are.equal('must not hold "/"', refused("a/b"))
    assert.are.equal('must not hold "\\"', refused("a\\b"))
    assert.are.equal('must not hold "*"', refused("*"))
    assert.are.equal('must not hold "?"', refused("what?"))
  end)

  it("PATH-3 must not hold a control character", function()
    for byte = 0, 31 do
      assert.are.equal("must not hold a control character", refused("a" .. string.char(byte)))
    end
    assert.are.equal("must not hold a control character", refused("\127"))
  end)

  it("PATH-3 must not begin with $", function()
    assert.are.equal('must not begin with "$"', refused("$1"))
    assert.are.equal('must not begin with "$"', refused("$"))
  end)

  it("PATH-3 must not exceed 255 bytes", function()
    assert.is_true(path.check_name(("a"):rep(255)))
    assert.are.equal("must not exceed 255 bytes (has 256)", refused(("a"):rep(256)))
    assert.are.equal("must not exceed 255 bytes (has 256)", refused(("ü"):rep(128)))
  end)

  it("PATH-3 must be valid UTF-8", function()
    for _, name in ipairs { "\xff", "a\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
      "\x80" } do
      assert.are.equal("must be valid UTF-8", refused(name))
    end
  end)

  it("PATH-3 must be a string", function()
    assert.are.equal("must be a string (got 5)", refused(5))
    assert.are.equal("must be a string (got nil)", refused(nil))
  end)

  it("PATH-3 is quoted and escaped in an error", function()
    assert.are.equal('"a/b"', path.quote("a/b"))
    assert.are.equal('"a\\x0ab\\x7f\\x00"', path.quote("a\nb\127\0"))
    assert.are.equal('"\\"a\\\\"', path.quote('"a\\'))
    assert.are.equal('"ü\\xff\\xc3"', path.quote("ü\xff\xc3"))
    assert.are.equal('"\\xed\\xa0\\x80z"', path.quote("\xed\xa0\x80z"))
    assert.are.equal('""', path.quote(""))
  end)

  it("PATH-3 is cut in an error after 64 bytes, between characters", function()
    assert.are.equal('"' .. ("a"):rep(64) .. '"', path.quote(("a"):rep(64)))
    assert.are.equal('"' .. ("a"):rep(64) .. '"...', path.quote(("a"):rep(65)))
    assert.are.equal('"' .. ("a"):rep(63) .. '"...', path.quote(("a"):rep(63) .. "ü"))
    assert.are.equal('"' .. ("a"):rep(61) .. '"...', path.quote(("a"):rep(61) .. "\u{10ffff}"))
    assert.are.equal('"' .. ("a"):rep(62) .. 'ü"...', path.quote(("a"):rep(62) .. "üü"))
    assert.are.equal('"' .. ("\\x80"):rep(61) .. '"...', path.quote(("\x80"):rep(65)))
  end)
end)
