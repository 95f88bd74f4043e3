--- Runs Lua code in a process of its own, which finds the same modules as this one.

local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

local function absolute(templates)
  local pipe = assert(io.popen("pwd"))
  local here = pipe:read("l")
  pipe:close()
  return (templates:gsub("[^;]+", function(template)
    if template:sub(1, 1) ~= "/" then return here .. "/" .. template end
  end))
end

---@param code string
---@return string output  what it wrote, errors included
---@return integer status  its exit status; 124 when it had not ended after a minute
return function(code)
  local pipe = assert(io.popen(("LUA_PATH_5_4=%s LUA_CPATH_5_4=%s timeout 60 lua5.4 -e %s 2>&1")
    :format(quote(absolute(package.path)), quote(absolute(package.cpath)), quote(code))))
  local output = pipe:read("a")
  local _, how, status = pipe:close()
  return output, how == "signal" and 128 + status or status
end
