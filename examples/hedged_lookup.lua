--- Hedged lookups: what asking three replicas at once buys, and what it costs.
--
--     lua5.4 examples/hedged_lookup.lua [FILE [LOOKUPS]]
--
-- FILE has a `key<TAB>value` on each line; by default it is data/countries.tsv beside this script.
-- Blank lines are skipped, CRLF is fine, and of a key given twice the later value counts.
--
-- Three replicas index the file. The same lookups (LOOKUPS, or 20,000) go first through a
-- round-robin pool, where one replica does each, and then through a scatter/gather pool, where all
-- three do each and the first answer wins.
--
-- Exit code: 0 done; 1 a lookup failed or gave a wrong answer; 2 wrong usage or wrong input.

local troupe = require "troupe"
local Router = troupe.Router

local USAGE = "usage: lua5.4 hedged_lookup.lua [FILE [LOOKUPS]], LOOKUPS from 1 to 1000000"
local DEFAULT_FILE = (arg[0]:match("^.*/") or "") .. "data/countries.tsv"
local DEFAULT_LOOKUPS = 20000
local REPLICAS = 3
local CLIENTS = 200
local PAUSE_MS = 40
local SEED = 2026
local ANSWERS_SHOWN = 5
local BAR_WIDTH = 20

local function printf(...) print(string.format(...)) end

local function with_commas(n)
  return (tostring(n):reverse():gsub("%d%d%d", "%0,"):reverse():gsub("^,", ""))
end

local function quit(exit_code, message)
  io.stderr:write(("hedged_lookup: %s\n"):format(message))
  os.exit(exit_code, true)
end

-- Input -------------------------------------------------------------------------------------------

local function parse(path, text)
  local entries, number = {}, 0
  for line in (text .. "\n"):gmatch("(.-)\r?\n") do
    number = number + 1
    local key, value = line:match("^([^\t]+)\t(.*)$")
    if key then
      table.insert(entries, { key = key, value = value })
    elseif line ~= "" then
      return nil, ("%s:%d: expected key<TAB>value"):format(path, number)
    end
  end
  if #entries == 0 then return nil, path .. ": has no entries" end
  return entries
end

local function read_entries(path)
  local file, open_error = io.open(path)
  if not file then return nil, open_error end
  local text, read_error = file:read("a")
  file:close()
  if not text then return nil, path .. ": " .. read_error end
  return parse(path, text)
end

local function index_of(entries)
  local index = {}
  for _, entry in ipairs(entries) do index[entry.key] = entry.value end
  return index
end

local function random_keys(entries, count)
  local keys = {}
  for i = 1, count do keys[i] = entries[math.random(#entries)].key end
  return keys
end

-- Replicas ----------------------------------------------------------------------------------------

local HANDLED = {} -- a message: how many lookups have you handled?

-- Simulated: mostly quick, now and then very slow, like a disk or a network.
local function lookup_time_ms()
  if math.random(50) == 1 then return 20 + 60 * math.random() end
  return 1 + 2 * math.random()
end

-- An actor handles one message at a time: a replica that slept through a slow lookup would hold up
-- all the others. So it remembers who asked, goes on, and answers when the time has come.
local function replica(entries)
  return {
    pre_start = function(actor)
      actor.index = index_of(entries)
      actor.handled = 0
    end,

    receive = function(actor, message)
      if message == HANDLED then return actor:reply(actor.handled) end
      actor.handled = actor.handled + 1
      local value, asker, me = actor.index[message], actor.sender, actor.ref
      actor.system:schedule_once(lookup_time_ms(), function() asker:tell(value, me) end)
    end,
  }
end

local function count_handled(system, pool)
  local sum = 0
  for i = 1, REPLICAS do
    local path = ("%s/routee-%d"):format(pool.path, i)
    sum = sum + system:actor_selection(path):resolve_one():ask(HANDLED)
  end
  return sum
end

-- Measurement -------------------------------------------------------------------------------------

-- A client pauses, asks, waits for the answer, and so on. All clients of a run take their keys from
-- one list, so that every run does the same lookups in the same order.
local function client(system, run, truth)
  while true do
    troupe.sleep(PAUSE_MS * math.random())
    if run.asked == #run.keys then return true end
    run.asked = run.asked + 1
    local number, key, start = run.asked, run.keys[run.asked], system:now()
    local value, err, winner = run.pool:ask(key)
    local ms = system:now() - start
    if err then return nil, ("%s: no answer for %s: %s"):format(run.title, key, err) end
    if value ~= truth[key] then return nil, ("%s: wrong answer for %s"):format(run.title, key) end
    table.insert(run.latencies, ms)
    if number % math.ceil(#run.keys / ANSWERS_SHOWN) == 0 then
      table.insert(run.answers, { key = key, value = value, winner = winner.name, ms = ms })
    end
  end
end

local on_terminal = os.execute("test -t 2")

-- Keeps a line on the terminal up to date until what it gives is closed.
local function show_progress(system, run)
  if not on_terminal then return nil end
  local ticker = system:schedule_every(50, function()
    local asked, total = with_commas(run.asked), with_commas(#run.keys)
    io.stderr:write(("%s: %s of %s lookups\27[K\r"):format(run.title, asked, total))
  end)
  return setmetatable({}, { __close = function()
    ticker:cancel()
    io.stderr:write("\27[K")
  end })
end

local function measure(system, title, router, keys, truth)
  math.randomseed(SEED)
  local pool = system:spawn(router)
  local run = { title = title, pool = pool, keys = keys, asked = 0, latencies = {}, answers = {} }
  local _ <close> = show_progress(system, run)
  local tasks = {}
  for i = 1, CLIENTS do tasks[i] = system:go(client, system, run, truth) end
  for _, task in ipairs(tasks) do
    local ok, err = task:await()
    if not ok then quit(1, err) end
  end
  run.handled = count_handled(system, pool)
  table.sort(run.latencies)
  return run
end

-- Report ------------------------------------------------------------------------------------------

local function print_answers(run)
  printf("A few of the answers of %s, with the replica that won:", run.title)
  for _, answer in ipairs(run.answers) do
    printf("  %s  %4.1f ms  %s  %s", answer.winner, answer.ms, answer.key, answer.value)
  end
end

-- By nearest rank: the least latency that so many in a thousand lookups did not exceed.
local function percentile(run, per_thousand)
  return run.latencies[(#run.latencies * per_thousand + 999) // 1000]
end

local function print_table(runs)
  printf("%-16s%8s%8s%8s%8s%8s%18s", "ms", "p50", "p95", "p99", "p99.9", "max", "messages handled")
  for _, run in ipairs(runs) do
    printf("%-16s%8.1f%8.1f%8.1f%8.1f%8.1f%18s", run.title,
      percentile(run, 500), percentile(run, 950), percentile(run, 990), percentile(run, 999),
      percentile(run, 1000), with_commas(run.handled))
  end
end

-- Two buckets to a doubling: bucket b counts what took from 2^(b/2) to 2^((b+1)/2) ms.
local function bucket_of(ms) return math.max(0, math.floor(2 * math.log(ms, 2))) end

local function bucket_counts(run)
  local counts, peak = setmetatable({}, { __index = function() return 0 end }), 0
  for _, ms in ipairs(run.latencies) do
    local bucket = bucket_of(ms)
    counts[bucket] = counts[bucket] + 1
    peak = math.max(peak, counts[bucket])
  end
  return counts, peak
end

local function bar(count, peak)
  local length = math.ceil(BAR_WIDTH * count / peak)
  return ("%8s %s%s"):format(with_commas(count), ("█"):rep(length), (" "):rep(BAR_WIDTH - length))
end

local function print_plot(a, b)
  local counts_a, peak_a = bucket_counts(a)
  local counts_b, peak_b = bucket_counts(b)
  local peak, slowest = math.max(peak_a, peak_b), math.max(percentile(a, 1000), percentile(b, 1000))
  printf("%25s%-20s%9s%s", "", a.title, "", b.title)
  for bucket = 0, bucket_of(slowest) do
    local bars = bar(counts_a[bucket], peak) .. bar(counts_b[bucket], peak)
    printf("%5.1f to %5.1f ms%s", 2 ^ (bucket / 2), 2 ^ ((bucket + 1) / 2), bars:match("^.*%S"))
  end
end

-- Main --------------------------------------------------------------------------------------------

local path, lookups = arg[1] or DEFAULT_FILE, math.tointeger(tonumber(arg[2] or DEFAULT_LOOKUPS))
if arg[3] or not lookups or lookups < 1 or lookups > 1000000 then quit(2, USAGE) end
local entries, input_error = read_entries(path)
if not entries then quit(2, input_error) end

printf("%s lookups in %s, by %d clients at once.", with_commas(lookups), path, CLIENTS)
print("Their time is simulated: 1 to 3 ms, but 20 to 80 ms for one in fifty.\n")

math.randomseed(SEED)
local keys, truth = random_keys(entries, lookups), index_of(entries)
local system <close> = troupe.system("lookup", { log_level = "warn" })
local one = Router.round_robin(REPLICAS, replica(entries))
local all = Router.scatter_gather_first_completed(REPLICAS, replica(entries), { timeout_ms = 2000 })
local single = measure(system, "round robin", one, keys, truth)
local hedged = measure(system, "scatter/gather", all, keys, truth)

print_answers(hedged)
print()
print_table({ single, hedged })
print()
print_plot(single, hedged)
