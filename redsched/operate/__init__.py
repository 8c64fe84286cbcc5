"""What an operator sees and does beside placing: audit, backup, plans, status, and what there is and was.

It reads what places claims, in `redsched.scheduler`, which does not know it: the Scheduler composes both.
"""
