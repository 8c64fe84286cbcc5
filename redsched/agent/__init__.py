"""The agent: reports hosts to the store and runs their claims. `redsched.agent.run.run` is the entry point.

Imports nothing, because commands of schedulers read fleet files with `redsched.agent.collectors`, without psutil.
"""
