"""Explanations: why hosts fit a request or not, and which changes would make them fit."""
