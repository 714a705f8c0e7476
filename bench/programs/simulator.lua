-- A processor with 16 registers, and a program for it that sieves primes.
local turns, size = tonumber(arg[1]), 100000
local code = {
  {"li", 1, 2},                      -- 1: n = 2
  {"li", 2, size},                   -- 2
  {"li", 3, 317},                    -- 3
  {"ld", 4, 1},                      -- 4: next: r4 = mem[n]
  {"bnz", 4, 11},                    -- 5
  {"add", 5, 1, 1},                  -- 6: r5 = 2n
  {"bge", 5, 2, 11},                 -- 7: strike
  {"st", 1, 5},                      -- 8: mem[r5] = n
  {"add", 5, 5, 1},                  -- 9
  {"jmp", 7},                        -- 10
  {"inc", 1},                        -- 11
  {"blt", 1, 3, 4},                  -- 12
  {"halt"},                          -- 13
}
local mem, reg = {}, {}
local ops = {
  li = function(i, pc) reg[i[2]] = i[3] return pc + 1 end,
  ld = function(i, pc) reg[i[2]] = mem[reg[i[3]]] return pc + 1 end,
  st = function(i, pc) mem[reg[i[3]]] = reg[i[2]] return pc + 1 end,
  add = function(i, pc) reg[i[2]] = reg[i[3]] + reg[i[4]] return pc + 1 end,
  inc = function(i, pc) reg[i[2]] = reg[i[2]] + 1 return pc + 1 end,
  bnz = function(i, pc) return reg[i[2]] ~= 0 and i[3] or pc + 1 end,
  bge = function(i, pc) return reg[i[2]] >= reg[i[3]] and i[4] or pc + 1 end,
  blt = function(i, pc) return reg[i[2]] < reg[i[3]] and i[4] or pc + 1 end,
  jmp = function(i, pc) return i[2] end,
}
for _ = 1, turns do
  for n = 0, size do mem[n] = 0 end
  local pc = 1
  while code[pc][1] ~= "halt" do pc = ops[code[pc][1]](code[pc], pc) end
end
local count = 0
for n = 2, size - 1 do if mem[n] == 0 then count = count + 1 end end
assert(count == 9592, count)
