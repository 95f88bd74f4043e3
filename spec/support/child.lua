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

-- AddressSanitizer, which is preloaded, reserves more than any limit; it can refuse what is large.
local function limit(memory_mb)
  if not memory_mb then return "" end
  if not (os.getenv("LD_PRELOAD") or ""):find("libasan", 1, true) then
    return ("ulimit -v %d; "):format(memory_mb * 1024)
  end
  return ("ASAN_OPTIONS=$ASAN_OPTIONS:allocator_may_return_null=1:max_allocation_size_mb=%d ")
    :format(memory_mb)
end

---@param code string
---@param memory_mb? integer  an allocation of more than that fails
---@return string output  what it wrote, errors included
---@return integer status  its exit status; 124 when it had not ended after a minute
return function(code, memory_mb)
  local pipe = assert(io.popen(
    ("%sLUA_PATH_5_4=%s LUA_CPATH_5_4=%s timeout 60 lua5.4 -e %s 2>&1"):format(limit(memory_mb),
      quote(absolute(package.path)), quote(absolute(package.cpath)), quote(code))))
  local output = pipe:read("a"):gsub("==%d+==WARNING: AddressSanitizer failed to alloc[^\n]*\n", "")
  local _, how, status = pipe:close()
  return output, how == "signal" and 128 + status or status
end
