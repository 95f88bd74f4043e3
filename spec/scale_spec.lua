--- Runs bench/scale.lua the way a user does, in a process of its own.

local child = require "spec.support.child"
local counts = require "bench.counts"

local function scale(words)
  return child(("arg = { [0] = 'bench/scale.lua', %s } dofile(arg[0])"):format(words))
end

describe("the bench of what grows", function()
  it("prints a table with a figure in each cell", function()
    local output, code = scale "'--quick', 'mailbox'"

    assert.are.equal(0, code, output)
    assert.matches("^| messages at once | ns a message |\n| %-%-%- | %-%-%-: |\n"
      .. "| 1 | [%d,]+ |\n| 1,000 | [%d,]+ |\n| 1,000,000 | [%d,]+ |\n\n$", output)
  end)

  it("has a place in docs/performance.md for each of its tables", function()
    local file <close> = assert(io.open("docs/performance.md"))
    local document = file:read("a")

    for _, name in ipairs { "actors", "mailbox", "misses", "collector" } do
      document = counts.replace(document, name, "| a new one |\n")
    end

    local _, replaced = document:gsub("| a new one |\n<!%-%- end of ", "")
    assert.are.equal(4, replaced)
  end)

  it("refuses wrong usage", function()
    local output, code = scale "'weather'"

    assert.are.equal(2, code)
    assert.matches("^bench: usage: lua5.4 bench/scale.lua ", output)
  end)
end)
