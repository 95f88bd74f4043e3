--- What a wrong call raises, once it is certain that the error names the line of that call.

---@param fn function  runs the wrong call
---@param call? function  makes the wrong call, in one of its own lines, and little else; default:
---  `fn`
---@return string text
return function(fn, call)
  local ok, err = pcall(fn)
  assert(not ok, "nothing was raised")
  local text = tostring(err)
  local where = debug.getinfo(call or fn, "S")
  for line = where.linedefined, where.lastlinedefined do
    if text:find(("%s:%d: "):format(where.short_src, line), 1, true) then return text end
  end
  error(("%q does not name %s:%d"):format(text, where.short_src, where.linedefined))
end
