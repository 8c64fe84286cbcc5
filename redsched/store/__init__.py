"""The only package that knows Redis: connections, keys, and one typed coroutine for each Lua script.

`Store` is in store.py, the cell of a store in cell.py. Importing the package alone imports nothing else.
"""
