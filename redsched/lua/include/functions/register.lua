-- register(): add a reading function to the library. Its only key is `rs:{cell}:meta`; it reads other keys of this
-- cell, which are all in the same hash slot. `usage`: its arguments as people type them; `least`: how many it needs;
-- `answer(cell, arguments, say)` says the lines of the reply.
--
-- Lines are status replies, which redis-cli prints without quotes. Control characters become spaces: a reason that a
-- hook has written may have some, and a terminal would obey them. A function raises errors by refuse().
local USAGES = {}

local function refuse(message) -- never returns
  error({err = 'ERR ' .. message})
end

local function cell_of(key)
  local prefix, name = string.match(key or '', '^(rs:{([^{}]+)}:)')
  if not prefix then
    refuse("name the cell by its key: FCALL_RO rs_cell 1 'rs:{c1}:meta'; FCALL_RO rs_help 0 lists all functions")
  end
  local meta = redis.call('HMGET', prefix .. 'meta', 'epoch', 'settled')
  if not meta[1] then
    refuse('there is no cell ' .. name .. ' on this server: SMEMBERS rs:cells lists the cells')
  end
  local time = redis.call('TIME')
  local now_ms = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
  return {prefix = prefix, name = name, epoch = meta[1], settled = meta[2] == '1', now_ms = now_ms}
end

-- Return the reply of a function: the lines that it says, or an error.
local function reply_of(speak)
  local lines = {}
  local function say(form, ...)
    lines[#lines + 1] = {ok = (string.gsub(string.format(form, ...), '%c', ' '))}
  end
  local done, problem = pcall(speak, say)
  if done then
    return lines
  end
  -- Servers differ in whether pcall returns the table of an error or its text.
  local text = type(problem) == 'table' and problem.err or tostring(problem)
  return redis.error_reply(string.find(text, '^%u+ ') and text or 'ERR ' .. text)
end

local function register(name, usage, least, about, answer)
  local form = 'FCALL_RO ' .. name .. " 1 'rs:{c1}:meta'" .. usage
  USAGES[#USAGES + 1] = {form = form, about = about}
  local function callback(keys, arguments)
    return reply_of(function(say)
      local cell = cell_of(keys[1])
      if #arguments < least then
        refuse('arguments are missing: ' .. form)
      end
      cell.call = 'FCALL_RO ' .. name .. ' 1 ' .. cell.prefix .. 'meta'
      answer(cell, arguments, say)
    end)
  end
  redis.register_function{function_name = name, callback = callback, flags = {'no-writes'}, description = about}
end
