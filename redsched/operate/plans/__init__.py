"""Plans: what would happen if hosts went or came, and how much more fits; on a copy of a cell, writing nothing.

cell_copy    the copy: columns, claims and requests; changes that can be undone
live         the claims and requests that a copy of the running cell needs beside its columns
relocation   where a claim would go, by the rules of moves, drains and evacuations
capacity     how many more of a request fit
leaving      hosts that are drained, or gone: one after the other, or in turn (N+1)
adding       hosts to be bought
service      plans on the running cells, made in forks of the process
exported     the same on an exported cell, in a private store
"""
