"""`redsched top`: a live view of the fleet in the terminal.

command.py    the command               app.py           the screen, its keys, and what is read when
reading.py    what is read, how often   host_screen.py   the screen of one host
pictures.py   bars, tables and lines
"""
