--- Paths that may have wildcards: `*` is any number of characters, `?` is one, both within one
--- element.  (SEL-3)
local check = require "troupe.check"

local pattern = {}

--- The two parts of a path: what names an actor within its system, and the name of the system where
--- that is given; nil for what is no path.
---@param path any           "/user/a", the full text, or a path
---@return string? short     "/user/a"
---@return string? system_name
function pattern.split(path)
  local text = getmetatable(path) and tostring(path) or path
  if type(text) ~= "string" then return nil end
  local system_name, short = text:match("^troupe://([^/]+)(/.*)$")
  if short then return short, system_name end
  return text:match("^/.*"), nil
end

local path_rule = {
  expected = 'a path such as "/user/a" or "troupe://<system>/user/a"',
  test = function(value) return pattern.split(value) ~= nil, value end,
}

--- Checks a path, and gives it without the system.
---@param where string       the function, as the user calls it
---@param path any           "/user/a", the full text, or a path
---@param system_name string the system that it must be of
---@param level integer      as in `check.argument`
---@return string short      "/user/a"
---@raise OptionsError
function pattern.read(where, path, system_name, level)
  check.argument(where, "path", path, path_rule, level + 1)
  local short, name = pattern.split(path)
  if name and name ~= system_name then
    check.fail(where, ("the path must be of the system %q (got %q)"):format(system_name,
      tostring(path)), level + 1)
  end
  return short
end

--- Whether a path has wildcards. Names have none.
---@param path string
---@return boolean
function pattern.is_wild(path) return path:find("[*?]") ~= nil end

-- A piece between two asterisks as a pattern of Lua's: text, and question marks.
local function lua_pattern(piece)
  return (piece:gsub("%W", "%%%0"):gsub("%%%?", utf8.charpattern))
end

-- Each piece is looked for behind the one before, so no name takes long, however many asterisks
-- there are: what a piece matches has a fixed number of characters, and the first place is as good
-- as any.
local function matcher(element)
  local pieces = {}
  for piece in (element .. "*"):gmatch("([^*]*)%*") do pieces[#pieces + 1] = lua_pattern(piece) end
  pieces[1] = "^" .. pieces[1]
  pieces[#pieces] = pieces[#pieces] .. "$"
  return function(name)
    local at = 0
    for _, piece in ipairs(pieces) do
      local _, last = name:find(piece, at + 1)
      if not last then return false end
      at = last
    end
    return true
  end
end

--- The elements of a path from the root down: a name, or a function that tells whether a name
--- matches.
---@param path string  as `pattern.read` gives it
---@return (string | fun(name: string): boolean)[]
function pattern.elements(path)
  local list = {}
  for element in path:gmatch("[^/]+") do
    list[#list + 1] = pattern.is_wild(element) and matcher(element) or element
  end
  return list
end

--- Whether these elements are those of a path in full.
---@param elements (string | fun(name: string): boolean)[]
---@param path string  "troupe://demo/user/a"
---@return boolean
function pattern.matches(elements, path)
  local n = 0
  for name in path:match("^troupe://[^/]*(.*)$"):gmatch("[^/]+") do
    n = n + 1
    local element = elements[n]
    if element ~= name and (type(element) ~= "function" or not element(name)) then return false end
  end
  return n == #elements
end

return pattern
