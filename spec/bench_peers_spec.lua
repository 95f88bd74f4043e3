--- Runs the bench's arms for other systems with sizes that take no time.

local sizes = {
  ["ping-pong"] = 100,
  ["ping-pong-table"] = 100,
  ["tell-1000"] = 1000,
  ["tell-10000"] = 10000,
  ["fan-in"] = 10000,
  ["ring"] = 2000,
  ["round-robin"] = 1000,
  ["ask"] = 100,
  ["ask-1000"] = 1000,
  ["scatter"] = 100,
  ["spawn"] = 100,
  ["lives"] = 100,
  ["idle"] = 100,
  ["timers-fire"] = 100,
  ["timers-cancel"] = 100,
  ["restart"] = 10,
  ["deep"] = 1000,
  ["priority"] = 1000,
  ["ask-64"] = 10,
  ["ask-16k"] = 10,
  ["ask-256k"] = 10,
  ["latency"] = 10,
}

--- What each can do, and the command line before the workload and its size.
local peers = {
  lua = { command = "lua5.4 bench/peers/lua.lua" },
  luajit = { command = "luajit bench/peers/lua.lua" },
}

local function installed(peer)
  return os.execute("command -v " .. peer.command:match("%S+") .. " >/dev/null")
end

local function without(names)
  local left = {}
  for name, size in pairs(sizes) do left[name] = size end
  for _, name in ipairs(names or {}) do left[name] = nil end
  return left
end

describe("the bench's peers", function()
  for name, peer in pairs(peers) do
    it(name .. " handles as many as it is to, in each workload it has", function()
      if not installed(peer) then
        pending("not there: make deps-peers")
        return
      end
      local words, wanted = { peer.command }, {}
      for workload, size in pairs(without(peer.lacks)) do
        words[#words + 1] = workload .. " " .. size
        wanted[#wanted + 1] = { workload, size }
      end

      local output <close> = assert(io.popen(table.concat(words, " ") .. " 2>&1"))

      for _, pair in ipairs(wanted) do
        local line = output:read("l") or "nothing"
        local handled = line:match("^handled=(%d+) seconds=%d+%.%d+ cpu=%d+%.%d+")
        assert.are.same(pair, { pair[1], tonumber(handled) or line })
      end
    end)

    it(name .. " exits with 3 for a workload that it does not have", function()
      if not installed(peer) then
        pending("not there: make deps-peers")
        return
      end

      local _, how, code = os.execute(peer.command .. " juggling 1 2>/dev/null")

      assert.are.same({ "exit", 3 }, { how, code })
    end)
  end
end)
