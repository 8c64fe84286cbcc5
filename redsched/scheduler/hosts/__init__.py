"""Hosts: reads, operator actions, drain and evacuation."""
