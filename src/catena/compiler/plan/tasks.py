"""Into how many tasks work on rows is cut: that depends on sizes alone, never on the number of threads."""

WORTHWHILE = 1 << 15  # elements from which threads pay
TASKS = 16


def row_tasks(rows: int, n: int) -> int:
    """Among how many tasks rows are shared out."""
    return min(TASKS, rows) if rows * n >= WORTHWHILE else 1
