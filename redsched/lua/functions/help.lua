-- rs_help: the version of the library and how each function is called. It comes last, because it lists the others, and
-- needs no cell.
-- include: register
redis.register_function{function_name = 'rs_help', flags = {'no-writes'}, callback = function()
  return reply_of(function(say)
    say('redsched functions, version %d: they only read, 500 hosts in a call.', VERSION)
    say('{c1} is the cell. Go on at a cursor with the last line of a reply.')
    for _, usage in ipairs(USAGES) do
      say('%s', usage.form)
      say('    %s', usage.about)
    end
  end)
end}
