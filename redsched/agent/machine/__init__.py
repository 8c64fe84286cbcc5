"""The machine that the agent runs on: CPUs, memory, NUMA, PCI devices and GPUs."""
