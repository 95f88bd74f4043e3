--- Measures what a message costs as all else grows, and what the collector has to do with it.
--
--     make bench-scale
--     make bench-scale ARGS="[--quick] [--renew] [TABLE ...]"
--
-- It prints the tables of docs/performance.md: `actors`, `mailbox` and `collector`, in nanoseconds
-- a message, and `misses` of the cache, which needs valgrind. Figures are medians over rounds, each
-- of which measures every cell once, in a process of its own. --renew puts them into the document.
-- With --quick all is small, and there is one round.
--
-- Exit code: 0 done; 1 something failed; 2 wrong usage.

local counts = require "bench.counts"

local DOCUMENT = "docs/performance.md"
local lua = os.getenv("LUA") or "lua5.4"

-- As in instructions.lua. And no watchdog sends signals, which valgrind does not always survive.
local STILL = ("LD_PRELOAD=%s/troupe_bench_still.so"):format(
  os.getenv("TROUPE_BUILD") or "build/release")

local ROUNDS, QUICKER = 5, 1000
local quick = false

local function quit(exit_code, message, ...)
  io.stderr:write(("bench: " .. message .. "\n"):format(...))
  os.exit(exit_code, true)
end

local function commas(n)
  return (("%.0f"):format(n):reverse():gsub("%d%d%d", "%0,"):reverse():gsub("^,", ""))
end

-- Measuring -----------------------------------------------------------------------------------

local function command_of(settings)
  local words = { lua, "bench/scale_arm.lua" }
  for name, value in pairs(settings) do words[#words + 1] = ("%s=%s"):format(name, value) end
  return table.concat(words, " ")
end

local function output_of(command)
  local pipe = assert(io.popen(command .. " 2>&1"))
  local output = pipe:read("a")
  if not pipe:close() then quit(1, "%s: %s", command, output) end
  return output
end

local function sized(settings)
  local copy = {}
  for name, value in pairs(settings) do copy[name] = value end
  if quick then
    copy.messages = math.max(2, copy.messages // QUICKER)
    for _, name in ipairs { "actors", "timers", "depth", "playing" } do
      copy[name] = copy[name] and math.min(copy[name], 1000)
    end
  end
  return copy
end

--- What an arm measures with these settings.
---@return { ns: number, pause: number, memory: number }
local function measure(settings)
  local figures = {}
  for name, value in output_of(command_of(sized(settings))):gmatch("(%l+)=(%S+)") do
    figures[name] = tonumber(value)
  end
  figures.ns = figures.seconds * 1e9 / figures.handled
  return figures
end

local function median(values)
  table.sort(values)
  return values[#values // 2 + 1]
end

--- Measures cells in rounds; gives the median of one figure of each.
---@param cells { settings: table, figure: string }[]
local function medians(cells)
  local values = {}
  for i = 1, #cells do values[i] = {} end
  for round = 1, quick and 1 or ROUNDS do
    for i, cell in ipairs(cells) do values[i][round] = measure(cell.settings)[cell.figure] end
  end
  local found = {}
  for i = 1, #cells do found[i] = median(values[i]) end
  return found
end

-- Tables --------------------------------------------------------------------------------------

local function format(heads, rows)
  local lines = {
    "| " .. table.concat(heads, " | ") .. " |",
    "| ---" .. (" | ---:"):rep(#heads - 1) .. " |",
  }
  for i, row in ipairs(rows) do lines[i + 2] = "| " .. table.concat(row, " | ") .. " |" end
  return table.concat(lines, "\n") .. "\n"
end

--- A table all of whose cells are measured. A column has a head, and a function that gives the
--- settings of a row and the name of the figure that is wanted.
local function measured_table(corner, rows, columns)
  local cells, heads = {}, { corner }
  for _, row in ipairs(rows) do
    for _, column in ipairs(columns) do
      local settings, figure = column[2](row[2])
      cells[#cells + 1] = { settings = settings, figure = figure or "ns" }
    end
  end
  local found, lines = medians(cells), {}
  for i, column in ipairs(columns) do heads[i + 1] = column[1] end
  for i, row in ipairs(rows) do
    lines[i] = { row[1] }
    for j = 1, #columns do lines[i][j + 1] = commas(found[(i - 1) * #columns + j]) end
  end
  return format(heads, lines)
end

local MILLION = 1000000

local function crowd(actors, playing, timers)
  return { messages = MILLION, actors = actors, playing = playing, timers = timers }
end

local ACTORS = { { "2", 2 }, { "100", 100 }, { "10,000", 10000 }, { "1,000,000", MILLION } }

local tables = {}

function tables.actors()
  return measured_table("live actors", ACTORS, {
    { "two play", function(n) return crowd(n, 2, 0) end },
    { "two play, 1,000,000 timers", function(n) return crowd(n, 2, MILLION) end },
    { "all play", function(n) return crowd(n, n, 0) end },
    { "all play, 1,000,000 timers", function(n) return crowd(n, n, MILLION) end },
  })
end

function tables.mailbox()
  return measured_table("messages at once", {
    { "1", 1 }, { "1,000", 1000 }, { "1,000,000", MILLION },
  }, {
    { "ns a message", function(n)
      return { messages = 3 * MILLION, actors = 2, depth = n }
    end },
  })
end

-- The heap of the large one is some 500 MB, which messages must double for a cycle to begin.
local function heap(actors, fresh, messages, pauses)
  return function(collector)
    return {
      messages = messages, actors = actors, state = 1, fresh = fresh, pauses = pauses,
      collector = collector,
    }, pauses and "pause"
  end
end

function tables.collector()
  return measured_table("collector", {
    { "incremental, 200/100 (Lua's default)", "200/100" },
    { "incremental, 400/100", "400/100" },
    { "incremental, 200/400", "200/400" },
    { "generational", "generational" },
    { "stopped", "stop" },
  }, {
    { "small heap, integers", heap(10, 0, 2 * MILLION) },
    { "small, fresh tables", heap(10, 1, 2 * MILLION) },
    { "large heap, integers", heap(MILLION, 0, 2 * MILLION) },
    { "large, fresh tables", heap(MILLION, 1, 10 * MILLION) },
    { "small: longest pause, us", heap(10, 1, MILLION, 1) },
    { "large: longest pause, us", heap(MILLION, 1, 10 * MILLION, 1) },
  })
end

--- Misses of an operation in the first and in the last cache, as cachegrind simulates them.
local function misses(settings)
  local function count(messages)
    settings.messages = messages
    local output = output_of(STILL .. " valgrind --tool=cachegrind --LL=33554432,16,64 "
      .. "--cachegrind-out-file=/dev/null " .. command_of(settings))
    local function misses_in(cache)
      return tonumber((output:match(cache .. " misses:%s+([%d,]+)"):gsub(",", "")))
    end
    return misses_in("D1 "), misses_in("LLd")
  end
  local FEW, MANY = 20000, 120000
  local first, last = count(FEW)
  local first_more, last_more = count(MANY)
  local function each(more) return math.max(0, more) / (MANY - FEW) end
  return each(first_more - first), each(last_more - last)
end

function tables.misses()
  if not output_of("command -v valgrind || true"):find("/") then
    return "valgrind is missing, so no misses are counted; to get it: apt-get install valgrind\n"
  end
  local rows = {}
  for _, actors in ipairs { 2, 100, 10000, 100000 } do
    local first, last = misses { actors = actors, playing = actors }
    rows[#rows + 1] = { commas(actors), ("%.1f"):format(first), ("%.1f"):format(last) }
  end
  return format({ "live actors, all play", "misses of 32 KB", "misses of 32 MB" }, rows)
end

-- ---------------------------------------------------------------------------------------------

local renew, wanted = false, {}
for _, word in ipairs(arg) do
  if word == "--quick" then
    quick = true
  elseif word == "--renew" then
    renew = true
  elseif tables[word] then
    wanted[#wanted + 1] = word
  else
    quit(2, "usage: lua5.4 bench/scale.lua [--quick] [--renew] [actors] [mailbox] [collector] "
      .. "[misses]")
  end
end
if #wanted == 0 then wanted = { "actors", "mailbox", "collector", "misses" } end
for _, name in ipairs(wanted) do
  local made = tables[name]()
  print(made)
  if renew then counts.replace_in(DOCUMENT, name, made) end
end
