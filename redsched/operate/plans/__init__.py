"""Plans: what would happen if hosts went or came, and how much more fits; on a copy of a cell, writing nothing.

plans        the service: plans on the running cells, made in forks of the process
questions    what a plan is asked, hosts to be bought too; merging: one answer from those of several cells
cell_copy    the copy: columns, claims and requests; changes that can be undone
live         the claims and requests that a copy of the running cell needs beside its columns
relocation   where a claim would go, by the rules of moves, drains and evacuations
capacity     how many more of a request fit
leaving      hosts that are drained, or gone: one after the other, or in turn (N+1)
making_room  the hosts to clear for a request
rebalancing  moves for an aim; movers: which claims may be moved; running: carrying the moves out

`redsched.offline.plans` makes the same plans on an exported cell.
"""
