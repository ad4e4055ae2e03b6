"""The money: payments become credits; grants, holds, settles and releases."""
