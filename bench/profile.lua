--- Reads what callgrind writes, and says where the instructions are.
local profile = {}

---@alias bench.Part "lua" | "binding" | "engine" | "c"

local function part_of(object, file)
  if object:find("liblua", 1, true) or object:find("/lua[%d.]*$") then return "lua" end
  if not object:find("troupe/core", 1, true) then return "c" end
  return file:find("src/engine/", 1, true) and "engine" or "binding"
end

-- A name stands in full the first time, with a number in brackets, which it has from then on.
local function naming()
  local names = {}
  return function(text)
    local number, name = text:match("^(%b()) ?(.*)$")
    if not number then return text end
    if name ~= "" then names[number] = name end
    return names[number]
  end
end

--- Instructions by what they belong to: Lua itself (its VM, API and collector, and the code that it
--- runs), the binding, the engine, and all else, which is the C library's for the most part.
---@param lines fun(): string?  those of a file of callgrind's
---@return table<bench.Part, integer> counts
function profile.read(lines)
  local counts = { lua = 0, binding = 0, engine = 0, c = 0 }
  local object_name, file_name = naming(), naming()
  local object, own_file, file = "", "", "" -- of the function; and of the line, where it is inlined
  for line in lines do
    local key, value = line:match("^(%l+)=(.*)$")
    if key == "ob" then
      object = object_name(value)
    elseif key == "fl" then
      own_file = file_name(value)
    elseif key == "fn" then
      file = own_file
    elseif key == "fi" or key == "fe" then
      file = file_name(value)
    elseif key == "cob" then
      object_name(value)
    elseif key == "cfi" or key == "cfl" then
      file_name(value)
    elseif key == "calls" then
      lines() -- what was called counts for itself
    elseif not key then
      local cost = line:match("^[%d+*-]%d* (%d+)$")
      if cost then
        local part = part_of(object, file)
        counts[part] = counts[part] + math.tointeger(cost)
      end
    end
  end
  return counts
end

return profile
