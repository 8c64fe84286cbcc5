"""Import all that a running scheduler uses, for processes that fork: their forks share these modules.

Otherwise each fork would import them at its first use, as `Scheduler` does.
"""

import structlog  # noqa: F401

import redsched.cache.snapshot
import redsched.decide.decider
import redsched.decide.plugins.registry
import redsched.decide.scoring.demand
import redsched.operate.audit.audit
import redsched.operate.maintenance
import redsched.operate.observe.change_log
import redsched.operate.observe.changes
import redsched.operate.observe.events
import redsched.operate.observe.usage
import redsched.operate.plans.plans
import redsched.operate.plans.running
import redsched.scheduler.agents.calls
import redsched.scheduler.background.reconciler
import redsched.scheduler.background.sweeper
import redsched.scheduler.cell_tasks
import redsched.scheduler.claims.bulk
import redsched.scheduler.claims.claims
import redsched.scheduler.claims.migration
import redsched.scheduler.decide_apart.jobs
import redsched.scheduler.decide_apart.planner
import redsched.scheduler.declared.declarations
import redsched.scheduler.explain
import redsched.scheduler.health
import redsched.scheduler.hosts.drain
import redsched.scheduler.hosts.hosts
import redsched.scheduler.quotas.quotas
import redsched.scheduler.scheduler
import redsched.scheduler.selection.blockers
import redsched.scheduler.selection.selector  # noqa: F401 - one name is bound by all of these
