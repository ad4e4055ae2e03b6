"""Fixtures of these tests: the sandbox as a process, and an ear for its events."""

from tests.sandbox_process import ear, sandbox, sandbox_process

__all__ = ["ear", "sandbox", "sandbox_process"]
