"""What commands print.

formats    how values look: times, colours, names in their order, hosts and claims in words
tables     tables, plain or fitted to the terminal; JSON and YAML
fitted     tables that fit a terminal, with rich
listings   lists of objects: columns, forms of output, sorting, pages
progress   how far a long command is, on stderr
picture    a replay as a PNG
"""
