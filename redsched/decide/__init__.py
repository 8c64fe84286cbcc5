"""Decisions: filtering, weighing and picking as pure functions of columns and a request, without Redis or asyncio."""
