--- Values as text that is safe to print: never raises, no control characters, valid UTF-8.
---
--- Needs no other module of Troupe, so that every one may use it.
local text = {}

local CUT_MARK = "..."
local SHOWN_BYTES = 64

--- What `tostring` gives, or a description when a `__tostring` fails.  (ERR-1, LOG-1)
---@param value any
---@return string
function text.of(value)
  local ok, rendered = pcall(tostring, value)
  if ok then return rendered end
  return ("(a %s that cannot be shown)"):format(type(value))
end

--- The text with each byte that is no part of valid UTF-8 replaced.
---@param s string
---@param replace fun(byte: integer): string
---@return string
function text.repair(s, replace)
  local parts, from = {}, 1
  while true do
    local valid, bad = utf8.len(s, from)
    if valid then break end
    parts[#parts + 1] = s:sub(from, bad - 1)
    parts[#parts + 1] = replace(s:byte(bad))
    from = bad + 1
  end
  parts[#parts + 1] = s:sub(from)
  return table.concat(parts)
end

local function hex(byte)
  return ("\\x%02x"):format(byte)
end

local function hex_character(character)
  return hex(character:byte())
end

--- The text on one line: control characters and bytes that are no UTF-8 become `\x0a` and the like.
---@param s string
---@return string
function text.escape(s)
  return (text.repair(s, hex):gsub("[\0-\31\127]", hex_character))
end

--- The text when it is no longer than `max` bytes, else its beginning, and what marks the cut.
---
--- No UTF-8 character is cut in two.
---@param s string
---@param max integer  bytes, at least 3
---@return string beginning
---@return string mark  "..." after a cut, else ""
function text.cut(s, max)
  if #s <= max then return s, "" end
  local last = max
  while last > max - 3 and s:find("^[\128-\191]", last + 1) do last = last - 1 end
  return s:sub(1, last), CUT_MARK
end

--- The text in quotes, escaped, cut at 64 bytes.  (PATH-3)
---@param s string
---@return string
function text.quote(s)
  local beginning, mark = text.cut(s, SHOWN_BYTES)
  return '"' .. text.escape((beginning:gsub('["\\]', "\\%0"))) .. '"' .. mark
end

--- What a value is, in a few words, for the messages of errors. Calls no metamethod.  (SPAWN-3)
---
--- Numbers, booleans and nil as they are, strings quoted and cut, else the type: "a function".
---@param value any
---@return string
function text.show(value)
  local kind = type(value)
  if kind == "string" then return text.quote(value) end
  if kind == "number" and value ~= value then return "nan" end -- tostring may give "-nan"
  if kind == "number" or kind == "boolean" or kind == "nil" then return tostring(value) end
  local meta = getmetatable(value)
  local name = type(meta) == "table" and rawget(meta, "__name")
  return "a " .. (type(name) == "string" and name or kind)
end

local MAX_DEPTH, MAX_ITEMS, INSPECTED_BYTES = 5, 20, 1000

local function key_order(a, b)
  local kind = type(a)
  if kind ~= type(b) then return kind < type(b) end
  return (kind == "number" or kind == "string") and a < b
end

local function inspect_string(s)
  return '"' .. text.escape((s:gsub('["\\]', "\\%0"))) .. '"'
end

local inspect

local function inspect_key(key)
  if type(key) == "string" and key:find("^[%a_][%w_]*$") then return key .. " = " end
  return "[" .. (type(key) == "string" and inspect_string(key) or text.show(key)) .. "] = "
end

local function inspect_table(value, above)
  if above[value] or above.depth == MAX_DEPTH then return "{...}" end
  above[value], above.depth = true, above.depth + 1
  local parts, keys = {}, {}
  local size = rawlen(value)
  for i = 1, math.min(size, MAX_ITEMS) do parts[i] = inspect(rawget(value, i), above) end
  for key in next, value do
    if not (math.type(key) == "integer" and key >= 1 and key <= size) then keys[#keys + 1] = key end
  end
  table.sort(keys, key_order)
  for i = 1, math.min(#keys, MAX_ITEMS - #parts) do
    parts[#parts + 1] = inspect_key(keys[i]) .. inspect(rawget(value, keys[i]), above)
  end
  if #parts < size + #keys then parts[#parts + 1] = CUT_MARK end
  above[value], above.depth = nil, above.depth - 1
  return #parts == 0 and "{}" or "{ " .. table.concat(parts, ", ") .. " }"
end

function inspect(value, above)
  local kind = type(value)
  if kind == "string" then return inspect_string(value) end
  if kind == "number" then return text.show(value) end
  local meta = debug.getmetatable(value)
  if kind ~= "table" or meta and rawget(meta, "__eq") then return text.escape(text.of(value)) end
  local name = meta and rawget(meta, "__name")
  return (type(name) == "string" and name .. " " or "") .. inspect_table(value, above)
end

--- A value with what is in it, on one line, for people who look for a difference.
---
--- Tables with their keys in order, 5 levels and 20 items of each, the metatable's `__name` before
--- them; one that has `__eq` as `tostring` gives it. All is cut at 1,000 bytes.
---@param value any
---@return string
function text.inspect(value)
  local beginning, mark = text.cut(inspect(value, { depth = 0 }), INSPECTED_BYTES)
  return beginning .. mark
end

return text
