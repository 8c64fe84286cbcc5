"""Hosts: reading them, operator actions, drain and evacuation."""
