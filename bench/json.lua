--- Writes JSON.

local function string_of(text)
  return '"' .. text:gsub('[%c"\\]', function(char)
    return ("\\u%04x"):format(char:byte())
  end) .. '"'
end

local function sorted_names(value)
  local names = {}
  for name in pairs(value) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local json

local function table_of(value, indent)
  local inner, parts = indent .. "  ", {}
  local is_list = #value > 0 or next(value) == nil
  for i, item in ipairs(value) do parts[i] = json(item, inner) end
  if not is_list then
    for i, name in ipairs(sorted_names(value)) do
      parts[i] = string_of(name) .. ": " .. json(value[name], inner)
    end
  end
  local first, last = is_list and "[" or "{", is_list and "]" or "}"
  if #parts == 0 then return first .. last end
  return ("%s\n%s%s\n%s%s"):format(first, inner, table.concat(parts, ",\n" .. inner), indent, last)
end

--- A table is a list when it has a first item or nothing in it, else its keys are names. What JSON
--- has no number for is null.
---@param value any
---@param indent? string
---@return string
function json(value, indent)
  local kind = type(value)
  if kind == "string" then return string_of(value) end
  if kind == "table" then return table_of(value, indent or "") end
  if kind ~= "number" then return tostring(value) end
  if value ~= value or value == math.huge or value == -math.huge then return "null" end
  return math.type(value) == "integer" and tostring(value) or ("%.10g"):format(value)
end

return json
