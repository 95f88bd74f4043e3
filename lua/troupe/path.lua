--- Paths: where an actor is in the tree of its system, as a value.  (PATH-1, PATH-2, PATH-3)
local errors = require "troupe.errors"
local text = require "troupe.text"

local path = {}

local MAX_NAME_BYTES = 255

-- The only field of a path. Users cannot name the key, so every field that they assign is new to
-- the table and reaches __newindex.
local TEXT = {}

---@class troupe.Path
---@field name string           the last element; "" for the root
---@field parent troupe.Path?   nil for the root
---@field elements string[]     the names from the root down, a fresh list; empty for the root
---@field system string         the system's name
local Path = { __name = "troupe.Path" }

local fields = {
  name = function(rendered)
    return rendered:match("[^/]*$")
  end,

  parent = function(rendered)
    local above, name = rendered:match("^(.*/)([^/]*)$")
    if name == "" then return nil end
    local is_root = above:find("^troupe://[^/]*/$")
    return path.of(is_root and above or above:sub(1, -2))
  end,

  elements = function(rendered)
    local list = {}
    for name in rendered:match("^troupe://[^/]*(.*)$"):gmatch("[^/]+") do list[#list + 1] = name end
    return list
  end,

  system = function(rendered)
    return rendered:match("^troupe://([^/]*)")
  end,
}

function Path:__index(key)
  local field = fields[key]
  return field and field(self[TEXT])
end

function Path.__newindex(_, key)
  errors.misuse(("a path is read-only (assigning %s)"):format(text.show(key)), 2)
end

function Path.__eq(a, b)
  return rawget(a, TEXT) == rawget(b, TEXT)
end

function Path:__tostring()
  return self[TEXT]
end

--- The path with this text. Nothing is parsed before a field is read.  (PATH-1, PATH-2)
---@param rendered string  as the engine renders it: "troupe://demo/user/a"
---@return troupe.Path
function path.of(rendered)
  return setmetatable({ [TEXT] = rendered }, Path)
end

--- Whether an actor may have this name.  (PATH-3)
---@param name any
---@return true? ok
---@return string? reason  why not, to follow the name: "must not be empty"
function path.check_name(name)
  if type(name) ~= "string" then return nil, "must be a string (got " .. text.show(name) .. ")" end
  if name == "" then return nil, "must not be empty" end
  if name == "." or name == ".." then return nil, 'must not be "." or ".."' end
  if name:find("^%$") then return nil, 'must not begin with "$"' end
  if #name > MAX_NAME_BYTES then
    return nil, ("must not exceed %d bytes (has %d)"):format(MAX_NAME_BYTES, #name)
  end
  if not utf8.len(name) then return nil, "must be valid UTF-8" end
  if name:find("[\0-\31\127]") then return nil, "must not hold a control character" end
  local forbidden = name:match("[/\\*?]")
  if forbidden then return nil, ('must not hold "%s"'):format(forbidden) end
  return true
end

--- A name for the message of an error: in quotes, escaped, cut at 64 bytes.  (PATH-3)
---@param name any  what is no string is described
---@return string
function path.quote(name)
  return text.show(name)
end

return path
