"""Orchestration: from a frame or a file to an audit and what is made of it."""
