--- What is measured. What an operation is, in each of them, stands in README.md.

---@class bench.WorkloadRow
---@field id string
---@field program string  what arms are told to run
---@field title string
---@field unit string     operations, in the plural
---@field size integer    operations in a round
---@field quick integer   the same with --quick
---@field by "seconds" | "cpu"  what the figures are taken from: processor time where an arm has
---  nothing to do for a part of the time
---@field long boolean?   takes so long that it is left out unless peers are measured too
---@field once "peers" | "all" | nil  measured in one round only, for memory hardly varies
---@field ours boolean?   peers are not measured at all, for it tells no more of them
---@field whole boolean?  slow arms do all of it too, for the size is what it is about

local function row(id, title, unit, size, quick, more)
  local made = { id = id, title = title, unit = unit, size = size, quick = quick }
  for name, value in pairs(more or {}) do made[name] = value end
  made.program, made.by = made.program or id, made.by or "seconds"
  return made
end

---@type bench.WorkloadRow[]
return {
  row("ping-pong", "ping-pong, an integer", "messages", 1000000, 2000),
  row("ping-pong-table", "ping-pong, a fresh table", "messages", 1000000, 2000),
  row("tell-1000", "tell, batches of 1,000", "messages", 1000000, 2000),
  row("tell-10000", "tell, batches of 10,000", "messages", 1000000, 10000),
  row("fan-in", "fan-in, 10 to 1", "messages", 1000000, 10000),
  row("ring", "ring of 1,000", "messages", 1000000, 2000),
  row("round-robin", "round-robin over 8", "messages", 1000000, 2000),
  row("deep", "a mailbox that deep", "messages", 1000000, 2000),
  row("priority", "priority mailbox", "messages", 1000000, 2000),
  row("ask", "ask, one after another", "asks", 200000, 500),
  row("ask-1000", "ask, 1,000 in flight", "asks", 200000, 1000),
  row("scatter", "scatter over 3, 100 in flight", "scatters", 100000, 500),
  row("ask-64", "ask with 64 bytes", "asks", 100000, 500),
  row("ask-16k", "ask with 16 KB", "asks", 100000, 500),
  row("ask-256k", "ask with 256 KB", "asks", 100000, 500),
  row("latency", "ask while 1,000 are busy", "asks", 1000, 50),
  row("spawn", "spawn, tell, stop, by 100", "actors", 100000, 500),
  row("lives", "the same, all live at once", "actors", 100000, 500, { whole = true }),
  row("idle", "idle actors, 100,000", "actors", 100000, 500, { whole = true, once = "peers" }),
  row("idle-1m", "idle actors, 1,000,000", "actors", 1000000, 1000,
    { program = "idle", ours = true, once = "all", long = true }),
  row("restart", "restart and ping", "restarts", 10000, 100),
  row("timers-fire", "timers that fire", "timers", 1000000, 500, { by = "cpu", whole = true }),
  row("timers-cancel", "timers, started, cancelled", "timers", 1000000, 500,
    { whole = true }),
}
