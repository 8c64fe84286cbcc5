"""The models, in the order of the table. A new one is a module with a `MODEL`, and an entry here."""

from benchmarks.models import caching_scheduler, filter_scheduler, placement_service, redsched_model, shared_state

MODELS = {
    module.MODEL.name: module.MODEL
    for module in (filter_scheduler, caching_scheduler, shared_state, placement_service, redsched_model)
}
