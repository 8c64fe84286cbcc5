"""The only package that uses Redis: connections, keys, and one typed coroutine for each Lua script.

`Store` is in store.py, `CellStore` in cell.py. Importing the package alone imports nothing else.
"""
