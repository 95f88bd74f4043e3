--- What a wrong call raises, once it is certain that the error names the line of that call.

---@param fn function  runs the wrong call
---@param call? function  the wrong call, all on the line where the function begins; default: `fn`
---@return string text
return function(fn, call)
  local ok, err = pcall(fn)
  assert(not ok, "nothing was raised")
  local where = debug.getinfo(call or fn, "S")
  local position = ("%s:%d: "):format(where.short_src, where.linedefined)
  local text = tostring(err)
  assert(text:find(position, 1, true), ("%q does not name %q"):format(text, position))
  return text
end
