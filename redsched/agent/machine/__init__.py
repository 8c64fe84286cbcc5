"""The collector of the agent's own machine: CPUs, memory, NUMA nodes, PCI devices and GPUs."""
