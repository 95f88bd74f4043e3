--- Tables in a document: that of instructions is read and compared, any is written anew.
local counts = {}

--- A count may differ by so many per cent before it is told.
local TOLERANCE = 3

local HEAD = [[
| operation | instructions | Lua | binding | engine | C library |
| --- | ---: | ---: | ---: | ---: | ---: |
]]

---@class bench.Count
---@field total integer    instructions of an operation
---@field lua integer      of Lua: VM, API, collector, and what is written in Lua
---@field binding integer
---@field engine integer
---@field c integer        of the C library, and what else there is

--- A whole number, with commas.
local function commas(n)
  return (("%d"):format(n):reverse():gsub("%d%d%d", "%0,"):reverse():gsub("^(-?),", "%1"))
end

local function number(text) return math.tointeger((text:gsub(",", ""))) end

--- What stands between the marks of a table, and from where to where that is.
local function block(document, name)
  local _, first = document:find(("<!-- %s -->\n"):format(name), 1, true)
  local last = first and document:find(("<!-- end of %s -->\n"):format(name), first, true)
  if not last then error(("the table of %s has lost its marks"):format(name), 0) end
  return document:sub(first + 1, last - 1), first, last
end

--- The document with another text between the marks of a table.
---@param document string
---@param name string
---@param text string
function counts.replace(document, name, text)
  local _, first, last = block(document, name)
  return document:sub(1, first) .. text .. document:sub(last)
end

--- The same, in a file.
function counts.replace_in(path, name, text)
  local document
  do
    local file <close> = assert(io.open(path))
    document = counts.replace(file:read("a"), name, text)
  end
  local file <close> = assert(io.open(path, "w"))
  assert(file:write(document))
end

--- The table of a document.
---@param document string
---@return table<string, integer> totals  instructions by the name of the operation
---@return string tools  what they were counted with
function counts.read(document)
  local text, totals = block(document, "instructions"), {}
  for name, total in text:gmatch("\n| ([^|]+) | ([%d,]+) |") do totals[name] = number(total) end
  return totals, text:match("Counted with (.-)%.\n")
end

--- A table of instructions.
---@param names string[]  of operations, in order
---@param counted table<string, bench.Count>
---@param tools string  what they were counted with
function counts.format(names, counted, tools)
  local lines = { ("Counted with %s.\n\n%s"):format(tools, HEAD) }
  for _, name in ipairs(names) do
    local one = counted[name]
    lines[#lines + 1] = ("| %s | %s | %s | %s | %s | %s |\n"):format(name, commas(one.total),
      commas(one.lua), commas(one.binding), commas(one.engine), commas(one.c))
  end
  return table.concat(lines)
end

--- What there is to say of new counts beside those of a table.
---@param names string[]
---@param counted table<string, bench.Count>
---@param totals table<string, integer>
---@return string[] remarks  one a line
function counts.compare(names, counted, totals)
  local remarks = {}
  local function remark(...) remarks[#remarks + 1] = string.format(...) end
  for _, name in ipairs(names) do
    local was, is = totals[name], counted[name].total
    local change = was and 100 * (is - was)
    if not was then
      remark("%s is not in the table: renew it", name)
    elseif change > TOLERANCE * was then
      remark("WARNING: %s takes %s instructions instead of %s (%+.1f %%)", name, commas(is),
        commas(was), change / was)
    elseif change < -TOLERANCE * was then
      remark("%s takes only %s instructions instead of %s (%+.1f %%): renew the table", name,
        commas(is), commas(was), change / was)
    end
  end
  return remarks
end

return counts
