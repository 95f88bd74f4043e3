--- Counts the instructions of an operation in each workload, and compares them with the table in
--- docs/performance.md.
--
--     make bench-instructions
--     make bench-instructions ARGS="[--renew] [--short] [WORKLOAD ...]"
--
-- A workload runs under callgrind twice, with two sizes. The difference of the counts over that
-- of the sizes is an operation's, for what starting, warming up and ending cost cancels out. The
-- machine stands still meanwhile (still.c) and the environment is always the same, so that another
-- run counts the same. --renew writes the table anew. --short counts one workload of each kind.
--
-- Exit code: 0 done, with warnings or without; 1 a workload failed; 2 wrong usage, or not built.

local counts = require "bench.counts"
local profile = require "bench.profile"
local workloads = require "bench.workloads"

local DOCUMENT = "docs/performance.md"
local lua = os.getenv("LUA") or "lua5.4"
local compiler = os.getenv("CC") or "gcc"
local build_dir = os.getenv("TROUPE_BUILD") or "build/release"

-- Sizes are multiples of what the workload does at once, and no smaller than its warming up, which
-- then is the same in both runs. Where there is garbage the collector goes through some cycles
-- between them.
local USUAL = { 1000, 6000 }
local SIZES = {
  ["ping-pong-table"] = { 1000, 21000 },
  ["tell-10000"] = { 10000, 20000 },
  ["fan-in"] = { 10000, 20000 },
  ["spawn"] = { 1000, 11000 },
  ["lives"] = { 1000, 9000 },
  ["idle"] = { 1000, 9000 },
  ["restart"] = { 1000, 1300 },
  ["timers-fire"] = { 1000, 11000 },
  ["timers-cancel"] = { 1000, 11000 },
}
local FLOORS = { "ping-pong", "ping-pong-table", "tell-1000" }
local SHORT = {
  "ping-pong", "ping-pong-table", "tell-1000", "round-robin", "ask", "scatter", "spawn", "restart",
  "timers-fire",
}
local COSTS = {
  "nothing", "tell-in-a-local", "with-a-sender", "fresh-closure", "bounded", "priority-mailbox",
  "metrics", "no-watchdog", "sleep", "ask-in-a-handler",
}

local function say(message, ...) io.stderr:write(("bench: " .. message .. "\n"):format(...)) end

local function quit(exit_code, message, ...)
  say(message, ...)
  os.exit(exit_code, true)
end

local function output_of(command)
  local pipe = assert(io.popen(command .. " 2>&1"))
  local text = pipe:read("a"):gsub("%s+$", "")
  pipe:close()
  return text
end

local function first_line(text) return text:match("^[^\n]*") end

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read("a")
end

local function tools()
  local library = output_of("getconf GNU_LIBC_VERSION || ldd --version")
  return table.concat({
    first_line(output_of(compiler .. " --version")),
    output_of(lua .. " -v"):match("^Lua [%d.]+"),
    first_line(library),
    output_of("uname -m"),
  }, ", ")
end

-- What is counted -----------------------------------------------------------------------------

-- An ask of `latency` comes with a thousand messages, which others count.
local function is_counted(workload)
  return workload.id == workload.program and workload.id ~= "latency"
end

local function rows(wanted)
  local all = {}
  local function add(program, id, name)
    if next(wanted) and not wanted[id] then return end
    local command = ("bench/%s.lua %s"):format(program, id)
    all[#all + 1] = { name = name, command = command, sizes = SIZES[id] or USUAL }
  end
  for _, workload in ipairs(workloads) do
    if is_counted(workload) then add("troupe", workload.id, workload.id) end
  end
  for _, id in ipairs(FLOORS) do add("floor", id, "floor: " .. id) end
  for _, id in ipairs(COSTS) do add("costs", id, "with: " .. id) end
  return all
end

local function arguments()
  local renew, wanted, known = false, {}, {}
  for _, workload in ipairs(workloads) do known[workload.id] = is_counted(workload) end
  for _, id in ipairs(COSTS) do known[id] = true end
  for _, word in ipairs(arg) do
    if word == "--renew" then
      renew = true
    elseif word == "--short" then
      for _, id in ipairs(SHORT) do wanted[id] = true end
    elseif known[word] then
      wanted[word] = true
    else
      quit(2, "usage: %s bench/instructions.lua [--renew] [--short] [WORKLOAD ...]", lua)
    end
  end
  if renew and next(wanted) then quit(2, "only the whole table can be renewed") end
  return renew, wanted
end

-- Counting ------------------------------------------------------------------------------------

-- Nothing of the user's environment, whose size alone moves the stack, and so the seed of hashes.
local COMMAND = "env -i PATH=\"$PATH\" LD_PRELOAD=%s/troupe_bench_still.so "
  .. "LUA_PATH='./lua/?.lua;./lua/?/init.lua;./?.lua' LUA_CPATH='%s/?.so' "
  .. "valgrind -q --tool=callgrind --callgrind-out-file=%s %s %s %d >%s.txt 2>&1"

--- Runs commands, as many at once as there are processors, and waits for all of them.
local function run_all(commands, folder)
  local path = folder .. "/commands"
  local file = assert(io.open(path, "w"))
  assert(file:write(table.concat(commands, "\n")))
  file:close()
  os.execute(("xargs -P $(nproc) -d '\\n' -n 1 sh -c <%s"):format(path))
end

local function counts_of(row, size, path)
  local output = read(path .. ".txt")
  if not output:find(("handled=%d "):format(size), 1, true) then
    error(("%s failed with %d operations: %s"):format(row.name, size, output), 0)
  end
  local file <close> = assert(io.open(path))
  return profile.read(file:lines())
end

--- An operation's share of what the larger run has more than the smaller one.
local function difference(row, smaller, larger)
  local operations, one = row.sizes[2] - row.sizes[1], { total = 0 }
  for part, instructions in pairs(larger) do
    one[part] = (instructions - smaller[part] + operations // 2) // operations
    one.total = one.total + instructions - smaller[part]
  end
  one.total = (one.total + operations // 2) // operations
  return one
end

local function count_all(all, folder)
  local commands, counted = {}, {}
  local function path(i, which) return ("%s/%d.%d"):format(folder, i, which) end
  for i, row in ipairs(all) do
    for which, size in ipairs(row.sizes) do
      local to = path(i, which)
      commands[#commands + 1] = COMMAND:format(build_dir, build_dir, to, lua, row.command, size, to)
    end
  end
  run_all(commands, folder)
  for i, row in ipairs(all) do
    local smaller = counts_of(row, row.sizes[1], path(i, 1))
    local larger = counts_of(row, row.sizes[2], path(i, 2))
    counted[row.name] = difference(row, smaller, larger)
  end
  return counted
end

-- ---------------------------------------------------------------------------------------------

local renew, wanted = arguments()
if not output_of("command -v valgrind"):find("/") then
  say("valgrind is missing, so no instructions are counted; to get it: apt-get install valgrind")
  os.exit(0)
end

local all, names = rows(wanted), {}
for i, row in ipairs(all) do names[i] = row.name end
local folder = output_of("mktemp -d")
local ok, counted = pcall(count_all, all, folder)
os.execute("rm -r " .. folder)
if not ok then quit(1, "%s", counted) end

local with = tools()
local kept, kept_with = counts.read(read(DOCUMENT))
print(counts.format(names, counted, with))
if renew then
  counts.replace_in(DOCUMENT, "instructions", counts.format(names, counted, with))
  say("%s has the new table", DOCUMENT)
elseif kept_with ~= with then
  say("%s has counts with %s, which are not to be compared", DOCUMENT, kept_with)
else
  local remarks = counts.compare(names, counted, kept)
  for _, remark in ipairs(remarks) do say("%s", remark) end
  if #remarks == 0 then say("no count differs from %s by more than 3 %%", DOCUMENT) end
end
