-- Ordinary Lua: tables, closures, coroutines, string patterns, the garbage collector; prints after every line of input.
io.stdout:setvbuf("no")
local seen, order = {}, {}
local producer = coroutine.wrap(function()
  for line in io.lines() do
    for word in line:gmatch("%a+") do coroutine.yield(word) end
    coroutine.yield(nil, true)
  end
  return nil, false
end)
local lines = 0
while true do
  local word, more = producer()
  if word then
    if not seen[word] then order[#order + 1] = word end
    seen[word] = (seen[word] or 0) + #word
  elseif more then
    lines = lines + 1
    local sum = 0
    for i, w in ipairs(order) do sum = (sum * 31 + seen[w] * i) % 1000000007 end
    print(lines, #order, sum)
    if lines % 20 == 0 then collectgarbage() end
  else
    break
  end
end
print("done", #order)
